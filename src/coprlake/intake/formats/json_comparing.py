"""Whether a column has the values that are written in JSON: kernels that compare the two."""

from typing import Final

import numpy as np
import numpy.typing as npt

from coprlake.kernel import I32Array, I64Array, U8Array, cold_kernel, i64, kernel, word_of
from coprlake.text.arrow_strings import Strings
from coprlake.text.byte_classes import BACKSLASH, COLON, DASH, QUOTE, ZERO
from coprlake.text.civil_time import NO_DATE, SECOND_MICROS, date_micros
from coprlake.text.digits import hex_number_at, number_at

BoolArray = npt.NDArray[np.bool_]

_ESCAPED: Final = np.zeros(256, np.uint8)
_ESCAPED[np.frombuffer(b'"\\/bfnrt', np.uint8)] = np.frombuffer(b'"\\/\b\f\n\r\t', np.uint8)
_BACKSLASHES: Final = np.uint64(0x5C5C5C5C5C5C5C5C)
_LOW_BITS: Final = np.uint64(0x0101010101010101)
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_BLANKS: Final = np.array([byte in b" \t\r\n" for byte in range(256)], np.bool_)


@kernel
def _has_backslash(word: np.uint64) -> bool:
    mixed = np.uint64(word ^ _BACKSLASHES)
    return bool((np.uint64(mixed - _LOW_BITS) & np.uint64(~mixed) & _HIGH_BITS) != np.uint64(0))


@cold_kernel
def _code_point(data: U8Array, at: int, end: int) -> tuple[int, int]:
    r"""The character that ``\uXXXX`` at `at`, or a pair of them, stands for, or -1, and where that ends."""
    high = hex_number_at(data, at + 2, end, 4)
    if high < 0 or not 0xD800 <= high < 0xE000:
        return high, at + 6
    if high >= 0xDC00 or at + 12 > end or data[at + 6] != BACKSLASH or data[at + 7] != 117:
        return -1, at + 6
    low = hex_number_at(data, at + 8, end, 4)
    if not 0xDC00 <= low < 0xE000:
        return -1, at + 6
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), at + 12


@cold_kernel
def _is_utf8(point: int, text: U8Array, at: int, end: int) -> int:
    """Where the character ends if ``text[at:end]`` begins with it; -1 if it does not."""
    if point < 0x80:
        return at + 1 if at < end and text[at] == point else -1
    size = 2 if point < 0x800 else 3 if point < 0x10000 else 4
    if at + size > end:
        return -1
    lead = (0xC0 if size == 2 else 0xE0 if size == 3 else 0xF0) | (point >> (6 * (size - 1)))
    if text[at] != lead:
        return -1
    for i in range(1, size):
        if text[at + i] != 0x80 | ((point >> (6 * (size - 1 - i))) & 0x3F):
            return -1
    return at + size


@kernel
def _is_string(data: U8Array, at: int, end: int, text: U8Array, start: int, stop: int) -> bool:
    """Whether the JSON string between two quotes is this text: ``json.loads(data[at - 1:end + 1]) == text[start:stop]``."""
    while at < end:
        if at + 8 <= end and start + 8 <= stop:
            word = word_of(data, at)
            if word == word_of(text, start) and not _has_backslash(word):
                at += 8
                start += 8
                continue
        byte = data[at]
        if byte != BACKSLASH:
            if start >= stop or text[start] != byte:
                return False
            at += 1
            start += 1
        elif at + 1 < end and data[at + 1] == 117:
            point, at = _code_point(data, at, end)
            start = _is_utf8(point, text, start, stop) if point >= 0 else -1
            if start < 0:
                return False
        else:
            if at + 1 >= end or start >= stop or text[start] != _ESCAPED[data[at + 1]]:
                return False
            at += 2
            start += 1
    return start == stop


@kernel
def same_strings(
    data: U8Array, firsts: I32Array, lasts: I32Array, texts: Strings, rows: I64Array, out: BoolArray
) -> None:
    """``out[i]``: whether ``json.loads(data[firsts[i]:lasts[i]]) == texts[rows[i]]``; not if the row is -1 or null."""
    for i in range(len(firsts)):
        row = i64(rows[i])
        out[i] = False
        if row >= 0 and (len(texts.valid) == 0 or texts.valid[row] != 0):
            start, stop = i64(texts.starts[row]), i64(texts.starts[row + 1])
            out[i] = _is_string(data, i64(firsts[i]) + 1, i64(lasts[i]) - 1, texts.data, start, stop)


@kernel
def same_json(data: U8Array, firsts: I32Array, lasts: I32Array, texts: Strings, rows: I64Array, out: BoolArray) -> None:
    """``out[i]``: whether ``data[firsts[i]:lasts[i]]`` without blanks between tokens is ``texts[rows[i]]``."""
    for i in range(len(firsts)):
        row = i64(rows[i])
        out[i] = False
        if row < 0 or (len(texts.valid) > 0 and texts.valid[row] == 0):
            continue
        at, end = i64(firsts[i]), i64(lasts[i])
        start, stop = i64(texts.starts[row]), i64(texts.starts[row + 1])
        in_string = False
        while at < end:
            byte = data[at]
            if in_string or not _BLANKS[byte]:
                if start >= stop or texts.data[start] != byte:
                    break
                start += 1
                if byte == QUOTE:
                    in_string = not in_string
                elif byte == BACKSLASH and at + 1 < end and start < stop and texts.data[start] == data[at + 1]:
                    at += 1
                    start += 1
            at += 1
        out[i] = at == end and start == stop


@kernel
def _integer(data: U8Array, at: int, end: int) -> int:
    """``int(data[at:end])``, at most 63 bits."""
    is_negative = data[at] == DASH
    value = 0
    for i in range(at + is_negative, end):
        value = value * 10 + i64(data[i]) - ZERO
    return -value if is_negative else value


@kernel
def read_integers(data: U8Array, firsts: I32Array, lasts: I32Array, out: I64Array) -> None:
    """``out[i] = int(data[firsts[i]:lasts[i]])``."""
    for i in range(len(firsts)):
        out[i] = _integer(data, i64(firsts[i]), i64(lasts[i]))


@kernel
def _micros_of(data: U8Array, at: int, layout: U8Array) -> int:
    """The time in ISO 8601 at `at` as microseconds UTC, or `NO_DATE` if it is out of range or has more digits."""
    end = at + 19
    date = date_micros(number_at(data, at, end, 4), number_at(data, at + 5, end, 2), number_at(data, at + 8, end, 2))
    hours, minutes = number_at(data, at + 11, end, 2), number_at(data, at + 14, end, 2)
    seconds = number_at(data, at + 17, end, 2)
    if date == NO_DATE or not (0 <= hours < 24 and 0 <= minutes < 60 and 0 <= seconds < 60):
        return NO_DATE
    digits = ((i64(layout[0]) | 32) - 97) % 10
    fraction, scale = 0, 100_000
    for i in range(digits):
        digit = i64(data[at + 20 + i]) - ZERO
        if scale == 0 and digit != 0:
            return NO_DATE
        fraction += digit * scale
        scale //= 10
    east = 0
    if layout[1] == COLON or layout[1] == 43:
        east = (i64(layout[2]) - ZERO - 12) * 60 + (i64(layout[3]) - ZERO) * 15
    return date + ((hours * 60 + minutes - east) * 60 + seconds) * SECOND_MICROS + fraction


@kernel
def same_times(
    data: U8Array,
    firsts: I32Array,
    shapes: U8Array,
    marks: I32Array,
    micros: I64Array,
    out: BoolArray,
) -> None:
    """``out[i]``: whether the time that is written at ``firsts[i]`` in its layout is ``micros[i]``."""
    for i in range(len(firsts)):
        mark = i64(marks[i])
        own = _micros_of(data, i64(firsts[i]) + 1, shapes[mark + 1 : mark + 5])
        out[i] = own != NO_DATE and own == micros[i]
