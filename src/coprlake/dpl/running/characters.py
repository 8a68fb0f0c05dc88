"""Kernels for characters of UTF-8: how long they are, which they are, and where a number of them ends."""

from typing import Final

import numpy as np

from coprlake.dpl.compiling import opcodes as op
from coprlake.dpl.compiling.program import Code
from coprlake.kernel import U8Array, i64, kernel, word_of

LINE_FEED: Final = 10
_ONES: Final = np.uint64(0x0101010101010101)
_TOPS: Final = np.uint64(0x8080808080808080)
_FEEDS: Final = np.uint64(0x0A0A0A0A0A0A0A0A)
_ZERO: Final = np.uint64(0)


@kernel
def next_char(data: U8Array, at: int, end: int) -> int:
    """Where the character behind the one at ``at < end`` begins."""
    byte = data[at]
    at += 1
    if byte >= 0xC0:
        while at < end and (data[at] & 0xC0) == 0x80:
            at += 1
    return at


@kernel
def character_at(data: U8Array, at: int, end: int) -> int:
    """The number of a character beyond ASCII."""
    byte = i64(data[at])
    number = byte & 0x1F if byte < 0xE0 else (byte & 0x0F if byte < 0xF0 else byte & 0x07)
    at += 1
    while at < end and (data[at] & 0xC0) == 0x80:
        number = number << 6 | i64(data[at]) & 0x3F
        at += 1
    return number


@kernel
def end_of_chars(data: U8Array, at: int, end: int, most: int) -> int:
    """Where the `most` characters from `at` on end, or `end` if there are not so many."""
    if end - at <= most:
        return end
    stop, counted, continuations = at + most, at, 0
    while counted < stop:  # each byte that goes on with a character makes room for one more
        for i in range(counted, stop):
            continuations += (data[i] & 0xC0) == 0x80
        counted = stop
        stop = min(end, at + most + continuations)
    while stop < end and (data[stop] & 0xC0) == 0x80:
        stop += 1
    return stop


@kernel
def after_least(data: U8Array, at: int, end: int, least: int, over_lines: int) -> int:
    """Where the first `least` characters end, or -1 if the line (the text, with `over_lines`) has not so many."""
    for _ in range(least):
        if at >= end or (over_lines == 0 and data[at] == LINE_FEED):
            return -1
        at = next_char(data, at, end)
    return at


@kernel
def line_end(data: U8Array, at: int, end: int) -> int:
    """Where the first line feed from `at` on is, or `end`: eight bytes at a time."""
    while at + 8 <= end:
        differs = word_of(data, at) ^ _FEEDS
        if (differs - _ONES) & ~differs & _TOPS != _ZERO:
            break
        at += 8
    while at < end and data[at] != LINE_FEED:
        at += 1
    return at


@kernel
def rest_at(data: U8Array, at: int, end: int, least: int, most: int, over_lines: int) -> int:
    """LD or DATA with nothing behind it: where it ends, or -1."""
    least_stop = after_least(data, at, end, least, over_lines)
    if least_stop < 0:
        return -1
    limit = end_of_chars(data, at, end, most)
    return limit if over_lines != 0 else line_end(data, least_stop, limit)


@kernel
def literal_at(code: Code, pc: int, data: U8Array, at: int, end: int) -> int:
    """A text, as often as it is there and allowed."""
    text, size = i64(code.rows[pc, op.A]), i64(code.rows[pc, op.B])
    least, most = i64(code.rows[pc, op.C]), i64(code.rows[pc, op.D])
    count = 0
    while count < most and at + size <= end:
        same = 0
        while same < size and data[at + same] == code.pool[text + same]:
            same += 1
        if same < size:
            break
        at += size
        count += 1
    return at if count >= least else -1


@kernel
def chars_at(code: Code, pc: int, data: U8Array, at: int, end: int) -> int:
    """Characters of a set, as many as there are and allowed."""
    table, least, most = i64(code.rows[pc, op.A]), i64(code.rows[pc, op.B]), i64(code.rows[pc, op.C])
    first, last = i64(code.rows[pc, op.D]), i64(code.rows[pc, op.E])
    count = 0
    while count < most and at < end and code.tables[table, data[at]] != 0:
        if data[at] >= 0x80:
            number = character_at(data, at, end)
            k = first
            while k < last and not code.ranges[2 * k] <= number <= code.ranges[2 * k + 1]:
                k += 1
            if k == last:
                break
            at = next_char(data, at, end)
        else:
            at += 1
        count += 1
    return at if count >= least else -1
