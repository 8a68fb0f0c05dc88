"""Where JSON values end, with -1 for whatever is not JSON: nothing else has to look at them again."""

from typing import Final

import numpy as np

from coprlake.intake.formats.json_scanning import BACKSLASHES, FLOAT, INTEGER, QUOTES, skipped
from coprlake.kernel import U8Array, bit_length, cold_kernel, i64, kernel, word_of
from coprlake.text.byte_classes import (
    BACKSLASH,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    COMMA,
    DASH,
    DOT,
    OPEN_BRACE,
    OPEN_BRACKET,
    QUOTE,
    ZERO,
    is_digit,
)
from coprlake.text.digits import digits_end, hex_number_at
from coprlake.text.eight_bytes import NO_BITS, TOPS, marks_of_zeros

ESCAPES, BLANKS = 1, 2
"""Flags of a value: a string in it has escapes; there are blanks between its tokens."""

_FIRST_TEXT: Final = 32
_CONTROLS: Final = np.uint64(0x2020202020202020)
_ONE: Final = np.uint64(1)
_DEEPEST: Final = 60
_VALUE, _FIRST, _AFTER, _KEY = 0, 1, 2, 3
_SHORT_ESCAPES: Final = np.array([chr(byte) in '"\\/bfnrt' for byte in range(256)], np.bool_)
_WORDS: Final = np.frombuffer(b"true false null", np.uint8)


@kernel
def is_text_at(data: U8Array, at: int, end: int, text: U8Array) -> bool:
    """``data[at:end].startswith(text)``."""
    if at + len(text) > end:
        return False
    for i in range(len(text)):
        if data[at + i] != text[i]:
            return False
    return True


@cold_kernel
def escape_stop(data: U8Array, at: int, end: int) -> int:
    """Where the escape at `at` ends; -1 if it is none, or half a character."""
    if at + 1 >= end or data[at] != BACKSLASH:
        return -1
    if data[at + 1] != 117:
        return at + 2 if _SHORT_ESCAPES[data[at + 1]] else -1
    high = hex_number_at(data, at + 2, end, 4)
    if not 0xD800 <= high < 0xE000:
        return at + 6 if high >= 0 else -1
    if high >= 0xDC00 or at + 8 > end or data[at + 6] != BACKSLASH or data[at + 7] != 117:
        return -1
    return at + 12 if 0xDC00 <= hex_number_at(data, at + 8, end, 4) < 0xE000 else -1


@kernel
def string_stop(data: U8Array, at: int, end: int) -> tuple[int, int]:
    """Where the string that begins with the quote at `at` ends, behind its other quote, or -1; and its flags."""
    at += 1
    flags = 0
    while at < end:
        if at + 8 <= len(data):
            word = word_of(data, at)
            marks = marks_of_zeros(word ^ QUOTES) | marks_of_zeros(word ^ BACKSLASHES)
            marks = np.uint64((marks | np.uint64(np.uint64(word - _CONTROLS) & np.uint64(~word))) & TOPS)
            if marks == NO_BITS:
                at += 8
                continue
            at += (bit_length(np.uint64(marks & np.uint64(~np.uint64(marks - _ONE)))) - 1) >> 3
        else:
            while at < end and data[at] != QUOTE and data[at] != BACKSLASH and data[at] >= _FIRST_TEXT:
                at += 1
        if at >= end:
            return -1, 0
        if data[at] == QUOTE:
            return at + 1, flags
        at = escape_stop(data, at, end)
        if at < 0:
            return -1, 0
        flags = ESCAPES
    return -1, 0


@kernel
def number_stop(data: U8Array, at: int, end: int) -> tuple[int, int]:
    """INTEGER or FLOAT, and where the number at `at` ends, or -1."""
    first = at + 1 if data[at] == DASH else at
    stop = digits_end(data, first, end)
    if stop == first or (stop - first > 1 and data[first] == ZERO):
        return 0, -1
    if stop == end or (data[stop] != DOT and (i64(data[stop]) | 32) != 101):
        return INTEGER, stop
    if data[stop] == DOT:
        first = stop + 1
        stop = digits_end(data, first, end)
        if stop == first:
            return 0, -1
    if stop < end and (i64(data[stop]) | 32) == 101:
        first = stop + 1
        if first < end and data[first] in (43, DASH):
            first += 1
        stop = digits_end(data, first, end)
        if stop == first:
            return 0, -1
    return FLOAT, stop


@cold_kernel
def _scalar_stop(data: U8Array, at: int, end: int) -> tuple[int, int]:
    """Where the string, number or word at `at` ends, or -1; and its flags."""
    byte = data[at]
    if byte == QUOTE:
        return string_stop(data, at, end)
    if byte == DASH or is_digit(byte):
        _, stop = number_stop(data, at, end)
        return stop, 0
    if is_text_at(data, at, end, _WORDS[:4]):
        return at + 4, 0
    if is_text_at(data, at, end, _WORDS[5:10]):
        return at + 5, 0
    return at + 4 if is_text_at(data, at, end, _WORDS[11:]) else -1, 0


@cold_kernel
def nested_stop(data: U8Array, at: int, end: int) -> tuple[int, int]:
    """Where the array or object at `at` ends, or -1; and its flags."""
    depth, objects, flags, state = 0, 0, 0, _VALUE  # the bits of `objects`: which of those that are open are objects
    while True:
        start = at
        at = skipped(data, at, end)
        if at > start:
            flags |= BLANKS
        if at >= end:
            return -1, 0
        byte = i64(data[at])
        in_object = objects & 1 == 1
        if state in (_FIRST, _AFTER) and byte == (CLOSE_BRACE if in_object else CLOSE_BRACKET):
            depth, objects, state = depth - 1, objects >> 1, _AFTER
            at += 1
            if depth == 0:
                return at, flags
        elif state == _AFTER:
            if byte != COMMA:
                return -1, 0
            state = _KEY if in_object else _VALUE
            at += 1
        elif state == _KEY or (state == _FIRST and in_object):
            at, more = string_stop(data, at, end) if byte == QUOTE else (-1, 0)
            start = at
            at = skipped(data, at, end) if at >= 0 else end
            if at >= end or data[at] != COLON:
                return -1, 0
            flags |= more | (BLANKS if at > start else 0)
            state = _VALUE
            at += 1
        elif byte in (OPEN_BRACE, OPEN_BRACKET):
            depth, objects, state = depth + 1, (objects << 1) | (byte == OPEN_BRACE), _FIRST
            at += 1
            if depth > _DEEPEST:
                return -1, 0
        else:
            at, more = _scalar_stop(data, at, end)
            if at < 0:
                return -1, 0
            flags |= more
            state = _AFTER
