"""CSC, circular shift and coalesce (paper 2.2 and its [19]): one bit vector for the tokens of all batches.

A token has some anchors, places in a vector of ``m`` bits, by independent hash functions. That batch ``i`` has the
token is said by the bit that is ``g(i)`` places behind each anchor, where ``g`` maps batches to ``p`` partitions. A
question for a token reads the ``p`` bits from each anchor on and intersects them: what is left are partitions.
Repetitions do the same again in vectors of their own, with other hash functions and another ``g``, and batches must be
left by each.
"""

import json
from typing import ClassVar, Final

import numpy as np

from benchmarks.stores.base import Reader, Setting
from benchmarks.stores.bloom import Spool, TokenReader, TokenStore, mapped_words, mixed, write_synced
from coprlake.kernel import I64Array, U32Array, U64Array, i64, kernel

HASH_COUNT: Final = 4
SMALLEST_BITS: Final = 1 << 13
RAW_SHARE: Final = 0.03
"""How large COPR's sketch is thought to be, as a part of the raw text, where that is not known."""

_SEED: Final = np.uint64(0x9E3779B97F4A7C15)
_ONE: Final = np.uint64(1)
_ZERO: Final = np.uint64(0)
_ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_SIX_BITS: Final = np.uint64(63)


def partition_of(batch: int, repetition: int, partition_count: int) -> int:
    """The partition function ``g`` of a repetition.

    Partitions are dealt in turn, so they are equally full, and the second repetition deals each round from another
    place: two batches never share their partitions in both, as long as there are fewer than p * p.
    """
    return (batch + repetition * (batch // partition_count)) % partition_count


@kernel
def _anchor(token: np.uint32, number: int, mask: np.uint64) -> np.uint64:
    """The place of a token by hash function `number` of all repetitions."""
    return mixed(np.uint64(token) ^ (_SEED * np.uint64(number + 1))) & mask


@kernel
def add_tokens(words: U64Array, first_hash: int, hash_count: int, partition: int, tokens: U32Array) -> None:
    """Set ``bits[(anchor + partition) % m]`` for all tokens and anchors; `words` are a power of two."""
    mask = (np.uint64(len(words)) << np.uint64(6)) - _ONE
    for i in range(len(tokens)):
        for number in range(first_hash, first_hash + hash_count):
            place = (_anchor(tokens[i], number, mask) + np.uint64(partition)) & mask
            words[i64(place >> np.uint64(6))] |= _ONE << (place & _SIX_BITS)


@kernel
def intersect(words: U64Array, first_hash: int, hash_count: int, tokens: U32Array, out: U64Array) -> None:
    """``out &= bits[anchor:anchor + 64 * len(out)]``, around the end, for all tokens and anchors; stops at 0."""
    word_mask = len(words) - 1
    mask = (np.uint64(len(words)) << np.uint64(6)) - _ONE
    for i in range(len(tokens)):
        for number in range(first_hash, first_hash + hash_count):
            place = _anchor(tokens[i], number, mask)
            index = i64(place >> np.uint64(6))
            shift = place & _SIX_BITS
            left = _ZERO
            for k in range(len(out)):
                word = words[(index + k) & word_mask] >> shift
                if shift != _ZERO:
                    word |= words[(index + k + 1) & word_mask] << (np.uint64(64) - shift)
                out[k] &= word
                left |= out[k]
            if left == _ZERO:
                return


class CscReader(TokenReader):
    """Asks the sketch for all tokens, and opens the batches of the partitions that are left."""

    def __init__(self, store: "CscStore") -> None:
        super().__init__(store)
        facts = json.loads(store.facts.read_text())
        self._batch_count = int(facts["batches"])
        self._sketches = mapped_words(store.index).reshape(int(facts["repetitions"]), -1)
        partition_count = int(facts["partitions"])
        self._used_words = (min(partition_count, max(self._batch_count, 1)) + 63) // 64
        batches = range(self._batch_count)
        self._partitions = [
            np.array([partition_of(batch, repetition, partition_count) for batch in batches], np.int64)
            for repetition in range(len(self._sketches))
        ]

    def candidates(self, tokens: U32Array) -> I64Array:
        """The batches that all repetitions leave."""
        found = np.ones(self._batch_count, np.bool_)
        for repetition, (sketch, partitions) in enumerate(zip(self._sketches, self._partitions, strict=True)):
            left = np.full(self._used_words, _ALL)
            intersect(sketch, repetition * HASH_COUNT, HASH_COUNT, tokens, left)
            if not left.any():
                return np.zeros(0, np.int64)
            found &= np.unpackbits(left.view(np.uint8), bitorder="little")[partitions] != 0
        return np.flatnonzero(found)


class CscStore(TokenStore):
    """One repetition, as the paper has it."""

    name = "csc"
    title = "CSC"
    repetitions: ClassVar[int] = 1
    partitions: ClassVar[int] = 4096
    settings = (
        "one repetition, four hash functions, the next power of two of bits above COPR's sketch (paper 5.1), rules "
        "1-8; 4,096 partitions, dealt in turn: with a single repetition nothing else tells apart the batches of a "
        "partition, so it gets more than there are batches, as only those in use cost time or space"
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._sketches = np.zeros((self.repetitions, 0), np.uint64)
        self._spool: Spool | None = None
        if setting.copr_index_bytes is None:
            self._spool = Spool(self.folder / "tokens.tmp")
        else:
            self._make_room(setting.copr_index_bytes)

    def _make_room(self, copr_bytes: int) -> None:
        """All repetitions together are the next power of two above COPR's sketch."""
        bits = max(1 << (8 * copr_bytes).bit_length(), SMALLEST_BITS * self.repetitions)
        self._sketches = np.zeros((self.repetitions, bits // 64 // self.repetitions), np.uint64)

    def take_tokens(self, batch: int, tokens: U32Array) -> None:
        """Add them; if the size is not known yet, put them aside."""
        if self._spool is not None:
            self._spool.add(tokens)
            return
        for repetition, sketch in enumerate(self._sketches):
            partition = partition_of(batch, repetition, self.partitions)
            add_tokens(sketch, repetition * HASH_COUNT, HASH_COUNT, partition, tokens)

    def write_index(self) -> None:
        """Write the vectors as they are."""
        if self._spool is not None:
            spool, self._spool = self._spool, None
            self._make_room(int(RAW_SHARE * self.raw_bytes))
            for batch, tokens in enumerate(spool.read()):
                self.take_tokens(batch, tokens)
            spool.remove()
        write_synced(self.index, self._sketches.tobytes())
        facts = {"batches": self.batch_count, "repetitions": self.repetitions, "partitions": self.partitions}
        write_synced(self.facts, json.dumps(facts).encode())

    def reader(self) -> Reader:
        """Map the vectors."""
        return CscReader(self)


class CscTwoStore(CscStore):
    """Two repetitions in the same space."""

    name = "csc2"
    title = "CSC, 2 repetitions"
    repetitions = 2
    partitions = 1024
    settings = (
        "two repetitions of four hash functions, each in half of the bits of CSC with one, rules 1-8; 1,024 "
        "partitions: batches that share one do not share the other, but the error rate of present terms grows as "
        "partitions get fewer (1,500 batches of 32 KiB: 0.04 with 1,024, 0.23 with 256), and absent ones gain little"
    )
