"""The sealed sketch: a mapped file that is queried in place (paper 3.3, 4.2)."""

import os
from collections.abc import Iterator, Sequence
from typing import Final, NoReturn, Self

import numpy as np

from coprlake.bits.prefix_sums import PrefixSums
from coprlake.bits.sequence import position_width, read_bits
from coprlake.config import RuleSet
from coprlake.errors import CorruptSketchError, NotFoundError, UnreadableSketchError, UsageError
from coprlake.kernel import (
    I32Array,
    I64Array,
    U8Array,
    U16Array,
    U32Array,
    U64Array,
    i64,
    kernel,
    long_kernel,
    view_kernel,
    words_at,
)
from coprlake.sketch import interpolative
from coprlake.sketch.algebra import TokenProgram, is_conjunction, may_match
from coprlake.sketch.asking import Sketch, as_fingerprints
from coprlake.sketch.bbhash import PerfectHash, find_index
from coprlake.sketch.format import (
    FOOTER_BYTES,
    HEADER,
    LIST_INTERVAL,
    PAGE_BYTES,
    PAGE_HEADER,
    SECTIONS,
    TIGHT_MINOR,
    Header,
    check_footer,
    crc_of,
    header_word,
    read_header,
    rules_of_version,
)
from coprlake.sketch.ranks import decode_ranks, find_rank
from coprlake.sketch.signatures import decode_signatures, fits_signature
from coprlake.unchanging import unchanging_bytes

PRESENT: Final = 0
ABSENT: Final = -1
CORRUPT: Final = -2
CANNOT, MIGHT, DAMAGED = 0, 1, 2
"""What a program can tell about a sketch without decoding a list."""

RUN_POSTINGS: Final = 1 << 20
"""The number of postings decoded at a time when reading all of them."""

_SIGNATURE_BITS_AT: Final = header_word("signature_bits")
_TOKEN_COUNT_AT: Final = header_word("token_count")
_LIST_COUNT_AT: Final = header_word("list_count")
_POSTING_COUNT_AT: Final = header_word("posting_count")
_LEVEL_COUNT_AT: Final = header_word("level_count")
_FALLBACK_COUNT_AT: Final = header_word("fallback_count")
_SECTIONS_AT: Final = header_word("sections")
_LEVEL_STARTS_AT: Final = HEADER.itemsize // 8
_OWN_LIST_COUNT_AT: Final = header_word("own_list_count")
_PAGE_SECTIONS_AT: Final = header_word("sections", PAGE_HEADER)
_PAGE_LEVEL_STARTS_AT: Final = header_word("level_starts", PAGE_HEADER)
_PAGE_OWN_LIST_COUNT_AT: Final = header_word("own_list_count", PAGE_HEADER)
(
    _LEVELS, _LEVEL_RANKS, _FALLBACK, _SIGNATURES, _WIDTH_SAMPLES, _WIDTH_CODES, _WIDTH_TABLE, _RANKS,
    _LIST_OFFSETS, _LISTS,
) = range(len(SECTIONS))  # fmt: skip


@kernel
def _is_tight(words: U64Array) -> bool:
    """Whether the header has the layout of format 1.2; the minor version is bits 16 to 31 of the second word."""
    return i64((words[1] >> np.uint64(16)) & np.uint64(0xFFFF)) >= TIGHT_MINOR


@kernel
def _section_span(words: U64Array, number: int) -> tuple[int, int]:
    """The first word of a section, and the first behind it; its place was checked when the file was opened."""
    if _is_tight(words):
        at = _SECTIONS_AT + number
        return i64(words[at] & np.uint64(0xFFFFFFFF)), i64(words[at + 1] & np.uint64(0xFFFFFFFF))
    at = _PAGE_SECTIONS_AT + 3 * number
    first = i64(words[at]) >> 3
    return first, first + (i64(words[at + 1]) >> 3)


@kernel
def _level_starts_at(words: U64Array) -> int:
    return _LEVEL_STARTS_AT if _is_tight(words) else _PAGE_LEVEL_STARTS_AT


@kernel
def _own_list_count(words: U64Array) -> int:
    """The number of own lists; 0 in format 1.0, which does not mark them."""
    return i64(words[_OWN_LIST_COUNT_AT if _is_tight(words) else _PAGE_OWN_LIST_COUNT_AT])


@view_kernel
def _section(words: U64Array, number: int) -> U64Array:
    """The words of a section."""
    first, end = _section_span(words, number)
    return words[first:end]


@view_kernel
def _perfect_hash(words: U64Array) -> PerfectHash:
    at = _level_starts_at(words)
    level_starts = words[at : at + i64(words[_LEVEL_COUNT_AT]) + 1]
    return PerfectHash(
        level_starts, _section(words, _LEVELS), _section(words, _LEVEL_RANKS), _section(words, _FALLBACK)
    )


@view_kernel
def _prefix_sums(words: U64Array) -> PrefixSums:
    return PrefixSums(
        _section(words, _WIDTH_SAMPLES),
        _section(words, _WIDTH_CODES),
        _section(words, _WIDTH_TABLE),
        _own_list_count(words),
    )


@kernel
def _first_own(words: U64Array) -> int:
    """The first rank of an own list; the number of lists in format 1.0, which does not mark own lists."""
    return i64(words[_LIST_COUNT_AT]) - _own_list_count(words)


@kernel
def _checked_rank(words: U64Array, sums: PrefixSums, ranks: U64Array, index: int) -> int:
    rank = find_rank(sums, ranks, _first_own(words), index)
    return rank if rank < i64(words[_LIST_COUNT_AT]) else CORRUPT


@kernel
def find_lists(words: U64Array, fingerprints: U32Array, out: I64Array) -> bool:
    """``out[i] =`` the rank of the list of ``fingerprints[i]``, ABSENT or CORRUPT; returns whether none is CORRUPT."""
    function = _perfect_hash(words)
    signatures = _section(words, _SIGNATURES)
    sums = _prefix_sums(words)
    ranks = _section(words, _RANKS)
    token_count = i64(words[_TOKEN_COUNT_AT])
    level_count = i64(words[_LEVEL_COUNT_AT])
    fallback_count = i64(words[_FALLBACK_COUNT_AT])
    signature_bits = i64(words[_SIGNATURE_BITS_AT])
    sound = True
    for i in range(len(fingerprints)):
        index = find_index(function, level_count, fallback_count, fingerprints[i])
        if index < 0 or fingerprints[i] == 0:
            out[i] = ABSENT
        elif index >= token_count:
            out[i] = CORRUPT
        elif fits_signature(signatures, signature_bits, index, fingerprints[i]):
            out[i] = _checked_rank(words, sums, ranks, index)
        else:
            out[i] = ABSENT
        sound = sound and out[i] != CORRUPT
    return sound


@kernel
def find_present(words: U64Array, fingerprints: U32Array, wants_all: bool, out: I64Array) -> bool:
    """``out[i] =`` PRESENT or ABSENT for ``fingerprints[i]``, from the last to the first; False if bytes are damaged.

    Does not read ranks. With `wants_all` it stops at the first absent token, and the rest count as absent: the
    last tokens of a search text are its rarest, winnowed grams.
    """
    function = _perfect_hash(words)
    signatures = _section(words, _SIGNATURES)
    token_count = i64(words[_TOKEN_COUNT_AT])
    level_count = i64(words[_LEVEL_COUNT_AT])
    fallback_count = i64(words[_FALLBACK_COUNT_AT])
    signature_bits = i64(words[_SIGNATURE_BITS_AT])
    out[:] = ABSENT
    for i in range(len(fingerprints) - 1, -1, -1):
        index = find_index(function, level_count, fallback_count, fingerprints[i])
        if index >= token_count:
            return False
        if index >= 0 and fingerprints[i] != 0 and fits_signature(signatures, signature_bits, index, fingerprints[i]):
            out[i] = PRESENT
        elif wants_all:
            return True
    return True


@kernel
def find_in_sketches(
    addresses: U64Array,
    word_counts: I64Array,
    fingerprints: U32Array,
    steps: I32Array,
    list_ids: I64Array,
    out: U8Array,
) -> None:
    """``out[k] =`` MIGHT if a batch of sketch ``k`` may match the program, else CANNOT, or DAMAGED.

    `list_ids` has one entry per fingerprint; `out` has one per sketch, followed by room for the program's stack.
    """
    sketch_count = len(addresses)
    wants_all = is_conjunction(steps, len(fingerprints))
    for k in range(sketch_count):
        if not find_present(words_at(addresses[k], word_counts[k]), fingerprints, wants_all, list_ids):
            out[k] = DAMAGED
        else:
            out[k] = MIGHT if may_match(steps, list_ids, out[sketch_count:]) else CANNOT


@kernel
def _decode_list(words: U64Array, rank: int, out: U16Array, stack: I64Array) -> int:
    """Write a list's postings to `out`; returns how many, or CORRUPT if the bytes are damaged."""
    lists = _section(words, _LISTS)
    posting_count = i64(words[_POSTING_COUNT_AT])
    width = position_width(len(lists))
    position = i64(read_bits(_section(words, _LIST_OFFSETS), rank // LIST_INTERVAL * width, width))
    count = 0
    for _ in range(rank % LIST_INTERVAL + 1):
        count, position = interpolative.decode(lists, position, posting_count, out, stack)
        if count == interpolative.CORRUPT:
            return CORRUPT
    return count


@long_kernel
def _decode_tokens(words: U64Array, signatures: U32Array, ranks: U32Array) -> int:
    """Write the signature and rank of each token, by minimal hash; returns how many have own lists."""
    decode_signatures(_section(words, _SIGNATURES), i64(words[_SIGNATURE_BITS_AT]), signatures)
    return decode_ranks(_prefix_sums(words), _section(words, _RANKS), _first_own(words), ranks)


@long_kernel
def _decode_lists(words: U64Array, state: I64Array, postings: U16Array, starts: I64Array, stack: I64Array) -> bool:
    """Write the lists from rank ``state[0]`` on, which starts at bit ``state[1]``, and where each starts.

    Stops when `postings` may not have room for the next list, with `state` at that list. False if the bytes are
    damaged.
    """
    lists = _section(words, _LISTS)
    posting_count = i64(words[_POSTING_COUNT_AT])
    while state[0] < len(starts) - 1 and starts[state[0]] + posting_count <= len(postings):
        rank = state[0]
        count, position = interpolative.decode(lists, state[1], posting_count, postings[starts[rank] :], stack)
        if count == interpolative.CORRUPT:
            return False
        starts[rank + 1] = starts[rank] + count
        state[0] = rank + 1
        state[1] = position
    return True


@long_kernel
def _are_lists_sound(words: U64Array, out: U16Array, stack: I64Array) -> bool:
    """Whether all lists can be decoded, one after another, and start where the samples say."""
    lists = _section(words, _LISTS)
    offsets = _section(words, _LIST_OFFSETS)
    width = position_width(len(lists))
    position = 0
    for rank in range(i64(words[_LIST_COUNT_AT])):
        if rank % LIST_INTERVAL == 0 and position != i64(read_bits(offsets, rank // LIST_INTERVAL * width, width)):
            return False
        count, position = interpolative.decode(lists, position, i64(words[_POSTING_COUNT_AT]), out, stack)
        if count == interpolative.CORRUPT:
            return False
    return True


class SealedSketch(Sketch):
    """A sketch in its final form; reads what a query needs and nothing else.

    Open one with `SealedSketch.open`; it is a context manager. Several threads may query it at the same time. Whatever
    the bytes are, it gives an answer or a `FormatError`; `verify` finds damage that an answer does not touch. See
    `coprlake.unchanging` for what happens when the file is truncated in the meantime.
    """

    def __init__(self, data: memoryview | bytes, file: str | os.PathLike[str] = "<bytes>") -> None:
        self.file = os.fspath(file)
        self.header: Header = read_header(bytes(data[:PAGE_BYTES]), len(data), self.file)
        self._data: memoryview | bytes = data
        self._words: U64Array | None = np.frombuffer(data, "<u8")

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, may_copy: bool = True) -> Self:
        """Open a file that nobody writes to: as a copy in memory while there is room for one, otherwise mapped.

        Raises:
            NotFoundError: there is no such file.
            FormatError: it is not a sketch that this version can read; the subclass and the message say why.
        """
        try:
            data = unchanging_bytes(path, may_copy=may_copy)
        except FileNotFoundError as error:
            raise NotFoundError(f"{os.fspath(path)}: no such sketch file; check the path") from error
        except (OSError, ValueError) as error:
            raise UnreadableSketchError(
                path,
                section="file",
                expected="a readable regular file",
                found=getattr(error, "strerror", None) or str(error),
                advice="check the path and its permissions",
            ) from error
        return cls(data, path)

    def close(self) -> None:
        """Release the file; the sketch cannot be used afterwards."""
        self._words = None
        self._data = b""  # another thread that is querying holds a view

    @property
    def token_count(self) -> int:
        """The number of distinct fingerprints."""
        return self.header.token_count

    @property
    def list_count(self) -> int:
        """The number of distinct posting lists, including those with a single posting."""
        return self.header.list_count

    @property
    def posting_count(self) -> int:
        """One more than the largest posting; 0 for an empty sketch."""
        return self.header.posting_count

    @property
    def signature_bits(self) -> int:
        """One absent token in ``2 ** signature_bits`` passes for a present one."""
        return self.header.signature_bits

    @property
    def rules(self) -> RuleSet:
        """The token rules by which its fingerprints were made."""
        return rules_of_version(self.header.rules_version)

    @property
    def rules_version(self) -> int:
        """The number of these rules in the file."""
        return self.header.rules_version

    @property
    def words(self) -> U64Array:
        """The file as one array."""
        if self._words is None:
            raise UsageError(f"{self.file}: the sketch is closed; open it again")
        return self._words

    def bytes_by_part(self) -> dict[str, int]:
        """The size of the file by part."""
        sizes = {name: size for name, (_, size, _) in self.header.sections.items()}
        return sizes | {"header, footer, padding": self.header.file_bytes - sum(sizes.values())}

    def list_ids(self, fingerprints: U32Array) -> I64Array:
        """The rank of each token's list, -1 where it is absent."""
        out = np.zeros(len(fingerprints), np.int64)
        if not find_lists(self.words, as_fingerprints(fingerprints), out):
            self._refuse("ranks", "numbers of tokens and lists that exist", "others")
        return out

    def decode(self, list_id: int) -> U16Array:
        """The postings of the list with this rank, ascending."""
        if not 0 <= list_id < self.list_count:
            raise UsageError(f"{self.file}: list {list_id} is not one of the {self.list_count} lists of this sketch")
        out = np.zeros(self.posting_count, np.uint16)
        count = _decode_list(self.words, list_id, out, _new_stack())
        if count < 0:
            self._refuse("lists", f"postings below {self.posting_count} for list {list_id}", "something else")
        return out[:count] if 2 * count > len(out) else out[:count].copy()  # a short list must not keep a long array

    def tokens(self) -> tuple[U32Array, U32Array]:
        """The stored bits of each token's fingerprint and the rank of its list, by minimal hash."""
        signatures = np.zeros(self.token_count, np.uint32)
        ranks = np.zeros(self.token_count, np.uint32)
        own_count = _decode_tokens(self.words, signatures, ranks)
        if own_count != self.header.own_list_count:
            self._refuse("width_codes", f"{self.header.own_list_count} tokens with own lists", str(own_count))
        if len(ranks) and ranks.max() >= self.list_count:
            self._refuse("ranks", f"numbers below {self.list_count}", str(ranks.max()))
        return signatures, ranks

    def lists(self) -> tuple[U16Array, I64Array]:
        """All posting lists by rank, one after another, and where each starts and the last one ends."""
        runs = [(postings, starts) for _, postings, starts in self.list_runs()]
        counts = [np.diff(starts) for _, starts in runs]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([np.zeros(0, np.int64), *counts]))])
        return np.concatenate([np.zeros(0, np.uint16), *(postings for postings, _ in runs)]), starts

    def list_runs(self) -> Iterator[tuple[int, U16Array, I64Array]]:
        """Like `lists`, in runs: the rank of the first list, the postings, and where each list starts.

        A list of consecutive postings takes a few bits on disk and up to 128 KiB in memory, so a small file may hold
        more postings than fit in memory; a run has about `RUN_POSTINGS`.
        """
        state = np.zeros(2, np.int64)
        while state[0] < self.list_count:
            first = int(state[0])
            starts = np.zeros(min(self.list_count - first, RUN_POSTINGS) + 1, np.int64)
            postings = np.zeros(min(RUN_POSTINGS, 8 * len(starts) + (1 << 16)) + self.posting_count, np.uint16)
            state[0] = 0
            if not _decode_lists(self.words, state, postings, starts, _new_stack()):
                self._refuse("lists", f"postings below {self.posting_count}", "something else")
            count = int(state[0])
            state[0] = first + count
            yield first, postings[: starts[count]], starts[: count + 1]

    def verify(self) -> None:
        """Read the whole file and check all of it; raises `CorruptSketchError` for the first thing wrong."""
        _ = self.words  # raises if it is closed
        for name, (offset, size, crc) in self.header.sections.items():
            found = crc_of(bytes(self._data[offset : offset + size]))
            if found != crc:
                self._refuse(name, f"checksum {crc:08x}", f"{found:08x}")
        end = self.header.header_bytes
        for name, (offset, size, _) in self.header.sections.items():
            if any(self._data[end:offset]):
                self._refuse(name, "zeros in front", "other bytes")
            end = offset + size
        check_footer(bytes(self._data[-FOOTER_BYTES:]), self.header, self.file)
        self.tokens()
        if not _are_lists_sound(self.words, np.empty(self.posting_count, np.uint16), _new_stack()):
            self._refuse("lists", f"postings below {self.posting_count}", "something else")

    def _refuse(self, section: str, expected: str, found: str) -> NoReturn:
        advice = "the data is not affected: build the sketch again from its data file"
        raise CorruptSketchError(self.file, section=section, expected=expected, found=found, advice=advice)


def _new_stack() -> I64Array:
    """A new stack for each call: several threads may query one sketch."""
    return np.empty(interpolative.STACK_SIZE, np.int64)


def may_match_any(sketches: Sequence[SealedSketch], program: TokenProgram) -> U8Array:
    """MIGHT, CANNOT or DAMAGED for each sketch, from one kernel call for all of them.

    Python only looks at the address and length of each sketch.
    """
    views = [sketch.words for sketch in sketches]  # held until the call is over: a sketch may be closed in the meantime
    addresses = np.array([view.ctypes.data for view in views], np.uint64)
    word_counts = np.array([len(view) for view in views], np.int64)
    list_ids = np.zeros(len(program.fingerprints), np.int64)
    out = np.zeros(len(sketches) + len(program.steps), np.uint8)
    find_in_sketches(addresses, word_counts, program.fingerprints, program.steps, list_ids, out)
    return out[: len(sketches)]
