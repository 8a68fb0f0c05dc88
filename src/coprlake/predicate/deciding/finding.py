"""Which values of a column contain a needle: kernels over Arrow's own offsets and bytes.

All values of a batch lie in one piece of memory, so the search runs over that and asks only at a hit in which value it
is; a hit that goes over the end of a value is none. Of the needle two bytes that are rare in logs are looked for first,
at their distance, 64 places at a time.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from coprlake.kernel import I32Array, I64Array, U8Array, i64, kernel, long_kernel, word_of
from coprlake.text.byte_classes import CASE_BIT
from coprlake.text.eight_bytes import NO_BITS, TOPS, eight_times, marks_of_zeros
from coprlake.tokens.fingerprint import as_bytes
from coprlake.tokens.rules import LAST_BLANK, LAST_MARK, LAST_WORD, SYMBOLS

Mask = npt.NDArray[np.bool_]

_BLOCK: Final = 64
_WORDS: Final = 8

PREFIX, SUFFIX, WHOLE = 0, 1, 2
"""Where in the value `find_at_edges` looks."""

_COMMON_BYTES: Final = b" etaoinsrdlc0123.-:/=_\"mpuhgf,45679w8yb[]()vkxTAIESRDNCPOLFMBUHGWV'q;zj"
"""What log lines consist of, the most frequent first; all other bytes are rarer."""


class Needle(NamedTuple):
    """What is looked for.

    A byte of a value matches a byte of the needle if both are equal once `folds` is or-ed to it. Anchors are the two
    bytes to look for first. `barred_before` (`barred_after`) has a 1 for each byte that may not stand before (after) a
    hit.
    """

    bytes: U8Array
    folds: U8Array
    anchors: I64Array  # offsets in `bytes`, ascending, perhaps equal
    barred_before: U8Array
    barred_after: U8Array


def _classes() -> U8Array:
    """As `symbol_class` has it; not asked of the kernel, which would have to be loaded for that."""
    return np.searchsorted([LAST_WORD, LAST_MARK, LAST_BLANK], SYMBOLS).astype(np.uint8)


CLASS_OF: Final = _classes()
"""The class of each byte: 0 word, 1 mark, 2 blank, 3 foreign."""
OPEN: Final = np.zeros(256, np.uint8)
"""No byte is barred."""
_SAME_CLASS: Final = [np.equal(CLASS_OF, kind).astype(np.uint8) for kind in range(4)]
_PHRASE_WORD: Final = np.array([chr(byte) == "_" or CLASS_OF[byte] == 0 for byte in range(256)], np.uint8)


def of_same_class(byte: int) -> U8Array:
    """Bars the class of this byte: the border of a term."""
    return _SAME_CLASS[CLASS_OF[byte]]


def of_same_word(byte: int) -> U8Array:
    """Bars ``[A-Za-z0-9_]`` next to one of these, and nothing next to others: the border of a phrase."""
    return _PHRASE_WORD if _PHRASE_WORD[byte] else OPEN


def _commonness() -> I64Array:
    ranks = np.zeros(256, np.int64)
    for rank, byte in enumerate(_COMMON_BYTES):
        ranks[byte] = len(_COMMON_BYTES) - rank
    return ranks


_COMMONNESS: Final = _commonness()


def new_needle(
    text: str | bytes, *, case_sensitive: bool, barred_before: U8Array = OPEN, barred_after: U8Array = OPEN
) -> Needle:
    """The needle for a text of at least one byte."""
    data = as_bytes(text)
    sought = np.frombuffer(data if case_sensitive else data.lower(), np.uint8)
    is_letter = (sought >= ord("a")) & (sought <= ord("z"))
    folds = np.where(is_letter & (not case_sensitive), CASE_BIT, 0).astype(np.uint8)
    return Needle(sought, folds, _anchors(sought), barred_before, barred_after)


def _anchors(sought: U8Array) -> I64Array:
    """Where the two rarest bytes are (two different ones instead were no faster on 300 words of logs)."""
    rarest = np.argsort(_COMMONNESS[sought], kind="stable")[:2]
    return np.sort(rarest).astype(np.int64) if len(rarest) == 2 else np.zeros(2, np.int64)


@kernel
def _is_at(data: U8Array, place: int, needle: Needle) -> bool:
    """``all(data[place + i] | folds[i] == bytes[i] for i in range(len(bytes)))``."""
    for i in range(len(needle.bytes)):
        if (data[place + i] | needle.folds[i]) != needle.bytes[i]:
            return False
    return True


@kernel
def _is_hit(data: U8Array, place: int, start: int, end: int, needle: Needle) -> bool:
    """Whether the needle is at `place` of the value ``data[start:end]`` with nothing barred around it."""
    stop = place + len(needle.bytes)
    return (
        stop <= end
        and _is_at(data, place, needle)
        and (place == start or needle.barred_before[data[place - 1]] == 0)
        and (stop == end or needle.barred_after[data[stop]] == 0)
    )


class _Anchors(NamedTuple):
    """The two anchors, each byte and fold eight times: what eight places are compared with at once."""

    first: int
    second: int
    bytes: tuple[np.uint64, np.uint64]
    folds: tuple[np.uint64, np.uint64]


@kernel
def _spread_anchors(needle: Needle) -> _Anchors:
    first, second = i64(needle.anchors[0]), i64(needle.anchors[1])
    return _Anchors(
        first,
        second,
        (eight_times(needle.bytes[first]), eight_times(needle.bytes[second])),
        (eight_times(needle.folds[first]), eight_times(needle.folds[second])),
    )


@kernel
def _candidates(data: U8Array, place: int, anchors: _Anchors) -> np.uint64:
    """Not 0 in the top bits of its bytes if, and only if, both anchors match at one of eight places from `place` on."""
    differs = (word_of(data, place + anchors.first) | anchors.folds[0]) ^ anchors.bytes[0]
    differs |= (word_of(data, place + anchors.second) | anchors.folds[1]) ^ anchors.bytes[1]
    return marks_of_zeros(differs)


@kernel
def _next_block(data: U8Array, place: int, last: int, anchors: _Anchors) -> int:
    """The begin of the first block of 64 places from `place` on with a candidate, or of what is left for no block."""
    while place + _BLOCK - 1 <= last:
        found = NO_BITS
        for i in range(_WORDS):
            found |= _candidates(data, place + 8 * i, anchors)
        if found & TOPS != NO_BITS:
            return place
        place += _BLOCK
    return place


@long_kernel
def find_rows(data: U8Array, starts: I32Array | I64Array, needle: Needle, out: Mask) -> None:
    """``out[i] = any(is_hit(data[starts[i]:starts[i + 1]], place) for place in ...)``.

    `out` must be all False and the needle not empty. Cost: about 0.12 ns a byte without candidates; a value is left at
    its first hit.
    """
    row_count = len(starts) - 1
    if row_count == 0:
        return
    row = 0
    place = i64(starts[0])
    last = i64(starts[row_count]) - len(needle.bytes)  # the last place where it can begin
    anchors = _spread_anchors(needle)
    while place <= last:
        place = _next_block(data, place, last, anchors)
        block_end = min(place + _BLOCK, last + 1)
        while place < block_end:
            if place + 7 <= last and _candidates(data, place, anchors) & TOPS == NO_BITS:
                place += 8
                continue
            end = min(place + 8, last + 1)
            while place < end:
                if (data[place + anchors.first] | needle.folds[anchors.first]) != needle.bytes[anchors.first]:
                    place += 1
                    continue
                while i64(starts[row + 1]) <= place:
                    row += 1
                if _is_hit(data, place, i64(starts[row]), i64(starts[row + 1]), needle):
                    out[row] = True
                    place = i64(starts[row + 1])
                else:
                    place += 1


@long_kernel
def find_at_edges(data: U8Array, starts: I32Array | I64Array, needle: Needle, edge: int, out: Mask) -> None:
    """``out[i]``: whether value ``i`` begins (PREFIX) or ends (SUFFIX) with the needle, or is it (WHOLE)."""
    size = len(needle.bytes)
    for row in range(len(starts) - 1):
        start, end = i64(starts[row]), i64(starts[row + 1])
        fits = end - start == size if edge == WHOLE else end - start >= size
        out[row] = fits and _is_at(data, end - size if edge == SUFFIX else start, needle)
