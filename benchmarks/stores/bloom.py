"""Bloom filters: one for each batch, the trivial extension to many sets (paper 2.2).

Here is also what all stores have in common that put the tokens of a batch into an index of their own: `TokenStore`.
"""

import json
import math
import os
import time
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.stores.base import Answer, Reader, Setting, Sizes, Store
from benchmarks.stores.batches import BatchReader, BatchWriter, contains, term
from coprlake.kernel import I64Array, U32Array, U64Array, i64, kernel
from coprlake.predicate.deciding.finding import Mask
from coprlake.predicate.predicates import Predicate
from coprlake.text.arrow_strings import bytes_of
from coprlake.tokens.required_tokens import contains_tokens, term_tokens
from coprlake.tokens.scanner import BatchScanner

DEFAULT_BITS: Final = 10.0
"""Bits a token where COPR's size is not known: a false positive in 120."""
MOST_BITS: Final = 48.0
MOST_PROBES: Final = 16

_MIX1: Final = np.uint64(0xFF51AFD7ED558CCD)
_MIX2: Final = np.uint64(0xC4CEB9FE1A85EC53)
_HALF: Final = np.uint64(32)
_LOWER: Final = np.uint64(0xFFFFFFFF)
_ONE: Final = np.uint64(1)
_SIX_BITS: Final = np.uint64(63)


@kernel
def mixed(word: np.uint64) -> np.uint64:
    """A hash of 64 bits: MurmurHash3's finalizer."""
    word = (word ^ (word >> _HALF)) * _MIX1
    word = (word ^ (word >> _HALF)) * _MIX2
    return word ^ (word >> _HALF)


class Spool:
    """The tokens of batches in a file, for an index whose size depends on all of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb")
        self.counts: list[int] = []

    def add(self, tokens: U32Array) -> None:
        """Take the tokens of the next batch."""
        self._file.write(tokens.tobytes())
        self.counts.append(len(tokens))

    def read(self) -> Iterator[U32Array]:
        """The tokens of each batch, in order; no more can be added."""
        self._file.close()
        with self._path.open("rb") as file:
            for count in self.counts:
                yield np.frombuffer(file.read(4 * count), np.uint32)

    def remove(self) -> None:
        """Let go of the file, and have it no longer."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def write_synced(path: Path, data: bytes) -> None:
    """Have these bytes on disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def mapped_words(path: Path) -> U64Array:
    """The words of a file, read as they are needed."""
    return np.memmap(path, np.uint64, "r").view(np.ndarray) if path.stat().st_size else np.zeros(0, np.uint64)


class TokenReader(Reader):
    """Opens the batches that an index of tokens leaves."""

    def __init__(self, store: "TokenStore") -> None:
        self._batches = BatchReader(store.data)

    @abstractmethod
    def candidates(self, tokens: U32Array) -> I64Array:
        """The batches that may have all these tokens: all batches if there are no tokens."""

    def _answer(self, predicate: Predicate, tokens: U32Array) -> Answer:
        return self._batches.filtered(predicate, self.candidates(tokens).tolist())

    def term(self, text: str) -> Answer:
        """By the tokens of the term and all their n-grams (paper 5.2)."""
        return self._answer(term(text), term_tokens(text, rules="paper"))

    def contains(self, text: str) -> Answer:
        """By the n-grams of the text, and what tokens are whole in it."""
        return self._answer(contains(text), contains_tokens(text, rules="paper"))

    def close(self) -> None:
        """Let go of the files."""
        self._batches.close()


class TokenStore(Store):
    """Batches as those of the scan, and an index of the tokens of each (rules 1-8, as COPR's)."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.data = self.folder / "data.zst"
        self.index = self.folder / "index.bits"
        self.facts = self.folder / "index.json"
        self.batch_count = 0
        self.raw_bytes = 0
        self.index_seconds = 0.0
        """What of finishing was for the index: it happens in `finish_data`, where the last batches become full."""
        self._writer = BatchWriter(self.data, setting.batch_bytes)
        self._scanner = BatchScanner()

    @abstractmethod
    def take_tokens(self, batch: int, tokens: U32Array) -> None:
        """Take the distinct tokens of a batch; batches come in order."""

    @abstractmethod
    def write_index(self) -> None:
        """Have the index on disk, in `index` and `facts`."""

    def ingest(self, content: pa.Array, source: pa.Array) -> None:
        """Compress full batches, and index them."""
        for batch, lines in self._writer.add(content, source):
            self._take(batch, lines)

    def _take(self, batch: int, lines: pa.Array) -> None:
        self.batch_count = batch + 1
        starts = bytes_of(lines.buffers()[1]).view(np.int32)
        self.raw_bytes += int(starts[lines.offset + len(lines)] - starts[lines.offset]) + len(lines)
        self.take_tokens(batch, self._scanner.scan(lines, rules="paper"))

    def finish_index(self) -> None:
        """Done together with the data, which comes first; see `index_seconds`."""
        return

    def finish_data(self) -> None:
        """Compress and index the rest."""
        for batch, lines in self._writer.rest():
            started = time.perf_counter()
            self._take(batch, lines)
            self.index_seconds += time.perf_counter() - started
        self._writer.close()
        started = time.perf_counter()
        self.write_index()
        self.index_seconds += time.perf_counter() - started

    def sizes(self) -> Sizes:
        """The batches with their places, and the index with what it says of itself."""
        index = self.index.stat().st_size + self.facts.stat().st_size
        return Sizes(sum(path.stat().st_size for path in self.files()) - index, index)


@kernel
def _place(hashed: np.uint64, probe: int, size: int) -> np.uint64:
    """The position of a probe in a filter of `size` bits: double hashing, which costs hardly any accuracy."""
    step = (hashed >> _HALF) | _ONE
    reduced = ((hashed & _LOWER) + np.uint64(probe) * step) & _LOWER
    return (reduced * np.uint64(size)) >> _HALF


@kernel
def add_tokens(words: U64Array, first: int, size: int, probe_count: int, tokens: U32Array) -> None:
    """Set the bits of all tokens in the filter that begins at word `first` and has `size` bits."""
    for i in range(len(tokens)):
        hashed = mixed(np.uint64(tokens[i]))
        for probe in range(probe_count):
            place = _place(hashed, probe, size)
            words[first + i64(place >> np.uint64(6))] |= _ONE << (place & _SIX_BITS)


@kernel
def _may_have(words: U64Array, first: int, size: int, probe_count: int, hashed: np.uint64) -> bool:
    for probe in range(probe_count):
        place = _place(hashed, probe, size)
        if (words[first + i64(place >> np.uint64(6))] >> (place & _SIX_BITS)) & _ONE == 0:
            return False
    return True


@kernel
def may_have_all(words: U64Array, firsts: I64Array, probe_count: int, tokens: U32Array, out: Mask) -> None:
    """``out[i] = all(token in filter_i for token in tokens)``; filter ``i`` is the words from ``firsts[i]`` on."""
    for i in range(len(firsts) - 1):
        size = (firsts[i + 1] - firsts[i]) << 6
        found = True
        for k in range(len(tokens)):
            if not _may_have(words, firsts[i], size, probe_count, mixed(np.uint64(tokens[k]))):
                found = False
                break
        out[i] = found


class BloomReader(TokenReader):
    """Asks every filter for every token, until one is not there."""

    def __init__(self, store: "BloomStore") -> None:
        super().__init__(store)
        facts = json.loads(store.facts.read_text())
        self._probe_count = int(facts["probe_count"])
        self._firsts = np.concatenate([[0], np.cumsum(np.array(facts["words"], np.int64))]).astype(np.int64)
        self._words = mapped_words(store.index)

    def candidates(self, tokens: U32Array) -> I64Array:
        """Batch by batch."""
        found = np.zeros(len(self._firsts) - 1, np.bool_)
        may_have_all(self._words, self._firsts, self._probe_count, tokens, found)
        return np.flatnonzero(found)


class BloomStore(TokenStore):
    """A filter for each batch, as large as its own tokens need for a false-positive rate that all share."""

    name = "bloom"
    title = "Bloom filters"
    settings = (
        "a plain (not blocked) Bloom filter for each batch, rules 1-8; bits a token so that all filters together are "
        "as large as COPR's sketch (10 if that is not known), and the best number of hash functions for it, ln 2 times "
        "that and 16 at the most. Plain, because an absent token ends a question after two probes on average, so that "
        "blocks would save little time for their higher rate of false positives"
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._spool = Spool(self.folder / "tokens.tmp")
        self.bits_per_token = DEFAULT_BITS
        self.false_positive_rate = 0.0
        """For one token, as designed; known when the index is finished."""

    def take_tokens(self, batch: int, tokens: U32Array) -> None:
        """Put them aside: how large filters may be depends on all of them."""
        self._spool.add(tokens)

    def write_index(self) -> None:
        """Build the filters one after the other."""
        counts = self._spool.counts
        if self.setting.copr_index_bytes is not None and any(counts):
            self.bits_per_token = min(8 * self.setting.copr_index_bytes / sum(counts), MOST_BITS)
        probe_count = min(max(round(self.bits_per_token * math.log(2)), 1), MOST_PROBES)
        self.false_positive_rate = (1 - math.exp(-probe_count / self.bits_per_token)) ** probe_count
        words = [max(math.ceil(count * self.bits_per_token / 64), 1) for count in counts]
        bits = np.zeros(sum(words), np.uint64)
        first = 0
        for size, tokens in zip(words, self._spool.read(), strict=True):
            add_tokens(bits, first, size << 6, probe_count, tokens)
            first += size
        self._spool.remove()
        write_synced(self.index, bits.tobytes())
        facts = {"probe_count": probe_count, "false_positive_rate": self.false_positive_rate, "words": words}
        write_synced(self.facts, json.dumps(facts, separators=(",", ":")).encode())

    def reader(self) -> Reader:
        """Map the filters."""
        return BloomReader(self)
