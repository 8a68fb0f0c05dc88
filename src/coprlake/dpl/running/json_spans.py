"""Kernels for quoted strings and JSON: where they end, and where a member of an object is.

Neither is ever taken apart here: a JSON value is checked against RFC 8259 and known by its place. Each returns -1 where
there is none, and leaves in ``out[COST]`` how many bytes it looked at.
"""

from typing import Final

import numpy as np

from coprlake.dpl.compiling import opcodes as op
from coprlake.dpl.compiling.program import Code
from coprlake.dpl.running.numerals import COST
from coprlake.dpl.syntax.tree import MOST_JSON_BYTES
from coprlake.kernel import I64Array, U8Array, cold_kernel, i64, kernel
from coprlake.text.byte_classes import (
    BACKSLASH,
    BLANK,
    CASE_BIT,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    COMMA,
    DASH,
    DOT,
    NEWLINE,
    OPEN_BRACE,
    OPEN_BRACKET,
    PLUS,
    QUOTE,
    RETURN,
    TAB,
    ZERO,
    is_digit,
)
from coprlake.text.digits import digits_end, hex_number_at

_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET
_VALUE, _KEY, _AFTER = 0, 1, 2
_IS_ESCAPE: Final = np.isin(np.arange(256), list(b'"\\/bfnrt'))
_MOST_DEPTH: Final = 60
"""How deep values may be nested; a bit for each level says whether it is an object."""


@cold_kernel
def quoted_at(data: U8Array, at: int, end: int, quote: int, other: int, doubled: int, out: I64Array) -> int:
    """A string between two quotes; a quote inside is doubled, or else has a backslash before it."""
    out[COST] = 0
    if at >= end or (data[at] != quote and data[at] != other):
        return -1
    mark = data[at]
    first = at
    end = min(end, at + MOST_JSON_BYTES)
    at += 1
    while at < end:
        if data[at] == mark:
            if doubled == 0 or at + 1 >= end or data[at + 1] != mark:
                out[COST] = at - first
                return at + 1
            at += 2
        elif data[at] == BACKSLASH and doubled == 0:
            at += 2
        else:
            at += 1
    out[COST] = end - first
    return -1


@kernel
def _after_blanks(data: U8Array, at: int, end: int) -> int:
    while at < end and (data[at] == BLANK or data[at] == NEWLINE or data[at] == RETURN or data[at] == TAB):
        at += 1
    return at


@kernel
def _string_stop(data: U8Array, at: int, end: int) -> int:
    """Where the JSON string that begins at `at` ends, or -1."""
    if at >= end or data[at] != QUOTE:
        return -1
    at += 1
    while at < end:
        byte = data[at]
        if byte == QUOTE:
            return at + 1
        if byte < 32:
            return -1
        if byte == BACKSLASH:
            at += 1
            if at >= end:
                return -1
            byte = data[at]
            if byte == 117:  # u
                if hex_number_at(data, at + 1, end, 4) < 0:
                    return -1
                at += 4
            elif not _IS_ESCAPE[byte]:
                return -1
        at += 1
    return -1


@kernel
def _after_digits(data: U8Array, at: int, end: int) -> int:
    """Where a run of digits ends, or -1 if there is none."""
    stop = digits_end(data, at, end)
    return stop if stop > at else -1


@kernel
def _number_stop(data: U8Array, at: int, end: int) -> int:
    """Where the JSON number that begins at `at` ends, or -1."""
    if data[at] == DASH:
        at += 1
    stop = at + 1 if at < end and data[at] == ZERO else _after_digits(data, at, end)
    if stop > 0 and stop + 1 < end and data[stop] == DOT and is_digit(data[stop + 1]):
        stop = _after_digits(data, stop + 1, end)
    if stop > 0 and stop + 1 < end and (i64(data[stop]) | CASE_BIT) == 101:
        sign = 1 if data[stop + 1] == DASH or data[stop + 1] == PLUS else 0
        exponent = _after_digits(data, stop + 1 + sign, end)
        stop = exponent if exponent > 0 else stop
    return stop


@kernel
def _word_stop(data: U8Array, at: int, end: int) -> int:
    """Where ``true``, ``false`` or ``null`` ends, or -1."""
    if at + 4 > end:
        return -1
    word = 0
    for i in range(4):
        word = word << 8 | i64(data[at + i])
    if word == 0x74727565 or word == 0x6E756C6C:
        return at + 4
    return at + 5 if word == 0x66616C73 and at + 5 <= end and data[at + 4] == 101 else -1


@kernel
def _scalar_stop(data: U8Array, at: int, end: int) -> int:
    """Where the string, number or word that begins at `at` ends, or -1."""
    if data[at] == QUOTE:
        return _string_stop(data, at, end)
    if data[at] == DASH or is_digit(data[at]):
        return _number_stop(data, at, end)
    return _word_stop(data, at, end)


@kernel
def _value_stop(data: U8Array, at: int, end: int, out: I64Array) -> int:
    """Where the JSON value that begins at `at` ends, or -1."""
    first, depth, objects, state = at, 0, 0, _VALUE
    while True:
        out[COST] = at - first
        if state != _AFTER and depth > 0:
            at = _after_blanks(data, at, end)
        if at >= end and (state != _AFTER or depth > 0):
            return -1
        if state == _VALUE:
            if data[at] == _OPEN_OBJECT or data[at] == _OPEN_ARRAY:
                if depth == _MOST_DEPTH:
                    return -1
                is_object = 1 if data[at] == _OPEN_OBJECT else 0
                objects = objects << 1 | is_object
                depth += 1
                at = _after_blanks(data, at + 1, end)
                if at < end and data[at] == (_CLOSE_OBJECT if is_object else _CLOSE_ARRAY):
                    state = _AFTER
                else:
                    state = _KEY if is_object else _VALUE
            else:
                at = _scalar_stop(data, at, end)
                if at < 0:
                    return -1
                state = _AFTER
        elif state == _KEY:
            at = _string_stop(data, at, end)
            if at < 0:
                return -1
            at = _after_blanks(data, at, end)
            if at >= end or data[at] != COLON:
                return -1
            at += 1
            state = _VALUE
        else:
            if depth == 0:
                return at
            at = _after_blanks(data, at, end)
            if at >= end:
                return -1
            is_object = objects & 1
            if data[at] == COMMA:
                state = _KEY if is_object else _VALUE
            elif data[at] == (_CLOSE_OBJECT if is_object else _CLOSE_ARRAY):
                objects >>= 1
                depth -= 1
            else:
                return -1
            at += 1


@cold_kernel
def json_at(data: U8Array, at: int, end: int, form: int, most_bytes: int, out: I64Array) -> int:
    """A JSON value of some form and of at most so many bytes."""
    out[COST] = 0
    end = min(end, at + most_bytes)
    if at >= end or (form == 1 and data[at] != _OPEN_OBJECT) or (form == 2 and data[at] != _OPEN_ARRAY):
        return -1
    return _value_stop(data, at, end, out)


@cold_kernel
def member_at(code: Code, pc: int, data: U8Array, at: int, end: int, out: I64Array) -> tuple[int, int]:
    """The place of the value of the first member with a name, in the object ``data[at:end]``, or -1.

    Names are compared as they are written: one with escapes is not found.
    """
    name, size = i64(code.rows[pc, op.A]), i64(code.rows[pc, op.B])
    at = _after_blanks(data, at + 1, end)
    while at < end and data[at] == QUOTE:
        stop = _string_stop(data, at, end)
        same = stop - at - 2 == size
        for i in range(size):
            same = same and data[at + 1 + i] == code.pool[name + i]
        start = _after_blanks(data, _after_blanks(data, stop, end) + 1, end)
        at = _value_stop(data, start, end, out)
        if same:
            return start, at
        at = _after_blanks(data, _after_blanks(data, at, end) + 1, end)
    return -1, -1
