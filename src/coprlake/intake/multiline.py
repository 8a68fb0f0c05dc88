"""Which lines begin a record: stack traces and other lines that belong to the one before."""

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.intake.fields.timestamps import Stamps
from coprlake.intake.lines import BoolArray, Lines, text_column
from coprlake.kernel import I64Array, U8Array, i64, kernel, long_kernel
from coprlake.text.byte_classes import (
    BLANK,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    DOT,
    TAB,
    UNDERSCORE,
    is_digit,
    is_letter,
)


def _padded(texts: tuple[str, ...]) -> U8Array:
    out = np.zeros((len(texts), max(map(len, texts))), np.uint8)
    for row, text in enumerate(texts):
        out[row, : len(text)] = np.frombuffer(text.encode(), np.uint8)
    return out


_BEGINNINGS: Final = _padded(
    ("Traceback (most recent", "Caused by:", "Suppressed:", "...", "---", "During handling of", "The above exception")
)
_ENDINGS: Final = _padded(("noitpecxE", "rorrE", "elbaworhT"))
"""How names of exceptions end, backwards."""

_DOLLAR: Final = 36
_CLOSERS: Final = (41, CLOSE_BRACKET, CLOSE_BRACE)
_BEGINS, _BELONGS, _IN_TRACEBACK = 0, 1, 2
"""What a line is to a record with a timestamp before it; the last one makes a difference to the next line."""


@kernel
def _beginning(data: U8Array, start: int, end: int) -> int:
    """The number of the text of `_BEGINNINGS` that the line begins with, or -1."""
    for row in range(len(_BEGINNINGS)):
        i = 0
        while i < _BEGINNINGS.shape[1] and _BEGINNINGS[row, i] != 0:
            if start + i >= end or data[start + i] != _BEGINNINGS[row, i]:
                break
            i += 1
        if i == _BEGINNINGS.shape[1] or _BEGINNINGS[row, i] == 0:
            return row
    return -1


@kernel
def _is_exception(data: U8Array, start: int, end: int) -> bool:
    """Whether the line is the name of an exception, alone or before a colon: ``java.io.IOException: closed``."""
    stop = start
    while stop < end and (is_letter(data[stop]) or is_digit(data[stop]) or data[stop] in (_DOLLAR, DOT, UNDERSCORE)):
        stop += 1
    if stop < end and data[stop] != COLON:
        return False
    for row in range(len(_ENDINGS)):
        i = 0
        while i < _ENDINGS.shape[1] and _ENDINGS[row, i] != 0:
            if stop - 1 - i < start or data[stop - 1 - i] != _ENDINGS[row, i]:
                break
            i += 1
        if i == _ENDINGS.shape[1] or _ENDINGS[row, i] == 0:
            return True
    return False


@kernel
def _is_indented(data: U8Array, start: int, end: int) -> bool:
    return start == end or data[start] == BLANK or data[start] == TAB


@kernel
def _has_own_time(data: U8Array, start: int, first: int) -> bool:
    """Whether nothing but blanks makes the line look indented before its timestamp at `first`."""
    while start < first and (data[start] == BLANK or data[start] == TAB):
        start += 1
    return start == first


@kernel
def _relation(data: U8Array, start: int, end: int, has_time: bool, first: int, in_traceback: bool) -> int:
    """What the line is to the record before, if that has a timestamp.

    If a line belongs to it outside of a traceback, it does so inside of one.
    """
    if _is_indented(data, start, end):
        if has_time and _has_own_time(data, start, first):
            return _BEGINS
        return _IN_TRACEBACK if in_traceback else _BELONGS
    beginning = _beginning(data, start, end)
    if beginning >= 0:
        return _IN_TRACEBACK if beginning == 0 else _BELONGS
    if has_time:
        return _BEGINS
    belongs = in_traceback or data[start] in _CLOSERS or _is_exception(data, start, end)
    return _BELONGS if belongs else _BEGINS


@long_kernel
def mark_heads(
    data: U8Array,
    starts: I64Array,
    ends: I64Array,
    kinds: U8Array,
    firsts: I64Array,
    limit_bytes: int,
    goes_on: bool,
    heads: U8Array,
) -> None:
    """Mark the lines that begin a record with 1; with 2 where only the limit of a record's size makes them.

    A line belongs to the record before if that has a timestamp and the line has none, and the line is empty or
    indented, closes a bracket, goes on with a stack trace, or is the name of an exception. The first line always
    begins a record; `goes_on` says that this is by the limit.
    """
    stamped, in_traceback = False, False
    size = 0
    for line in range(len(starts)):
        start, end = i64(starts[line]), i64(ends[line])
        has_time = kinds[line] != 0
        belongs = False
        if stamped:
            relation = _relation(data, start, end, has_time, i64(firsts[line]), in_traceback)
            belongs = relation != _BEGINS
            in_traceback = relation == _IN_TRACEBACK
        elif line == 0 and goes_on:
            has_time = True
        heads[line] = 0 if belongs else 1
        if belongs and size + end - start >= limit_bytes:
            belongs = False
            has_time = True  # what was cut off goes on as the record before
            heads[line] = 2
        if belongs:
            size += end - start + 1
        else:
            stamped = has_time
            size = end - start
            in_traceback = False


@long_kernel
def mark_sure_heads(
    data: U8Array, starts: I64Array, ends: I64Array, kinds: U8Array, firsts: I64Array, heads: U8Array
) -> None:
    """Mark the lines that `mark_heads` marks with 1 whatever stands before the first line, and whatever the limit is.

    So it is if they do not belong to the record before though that has a timestamp and, as far as the lines show,
    ends with a traceback.
    """
    in_traceback = True
    for line in range(len(starts)):
        relation = _relation(
            data, i64(starts[line]), i64(ends[line]), kinds[line] != 0, i64(firsts[line]), in_traceback
        )
        heads[line] = relation == _BEGINS
        in_traceback = relation == _IN_TRACEBACK


@long_kernel
def _limit_sizes(starts: I64Array, ends: I64Array, limit_bytes: int, heads: U8Array) -> None:
    """Begin a record where one would get too long."""
    size = 0
    for line in range(len(starts)):
        length = i64(ends[line]) - i64(starts[line])
        if heads[line] == 0 and size + length >= limit_bytes:
            heads[line] = 2
        size = length if heads[line] != 0 else size + length + 1


class RecordStarts:
    """Finds the lines that begin a record, by the default rule, a person's pattern, or not at all.

    Args:
        pattern: as `ReadOptions.multiline`.
        limit_bytes: the longest record.
    """

    def __init__(self, pattern: str | None, limit_bytes: int) -> None:
        self._pattern = pattern
        self._limit_bytes = limit_bytes
        self.joins = pattern != ""

    def heads(self, data: U8Array, lines: Lines, stamps: Stamps, *, goes_on: bool = False) -> U8Array:
        """For each line 1 if it begins a record, 2 if only because that before would be too long, else 0.

        The first one begins a record; `goes_on` says that it was a 2.
        """
        heads = np.ones(lines.count, np.uint8)
        if self._pattern is None:
            mark_heads(data, lines.starts, lines.ends, stamps.kinds, stamps.firsts, self._limit_bytes, goes_on, heads)
        elif self.joins:
            heads = self._matching(text_column(data, lines)).astype(np.uint8)
            heads[:1] = 1
            _limit_sizes(lines.starts, lines.ends, self._limit_bytes, heads)
        return heads

    def sure_heads(self, data: U8Array, lines: Lines, stamps: Stamps) -> BoolArray:
        """Which lines `heads` says 1 for, whatever stands before the first of them."""
        if not self.joins:
            return np.ones(lines.count, np.bool_)
        if self._pattern is not None:
            return self._matching(text_column(data, lines))
        heads = np.empty(lines.count, np.uint8)
        mark_sure_heads(data, lines.starts, lines.ends, stamps.kinds, stamps.firsts, heads)
        return heads != 0

    def _matching(self, texts: pa.StringArray) -> BoolArray:
        assert self._pattern is not None
        try:
            return np.asarray(pc.match_substring_regex(texts, self._pattern).to_numpy(zero_copy_only=False), np.bool_)
        except pa.ArrowInvalid:  # RE2 knows no lookaround; Python does
            search = re.compile(self._pattern).search
            return np.array([search(text) is not None for text in texts.to_pylist()], np.bool_)
