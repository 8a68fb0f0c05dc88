"""Whether a column has the values that are written in JSON: kernels that compare the two."""

from typing import Final

import numpy as np
import numpy.typing as npt

from coprlake.intake.formats.json_scanning import BACKSLASHES, Scanned, has_byte
from coprlake.kernel import I64Array, U8Array, cold_kernel, i64, kernel, word_of
from coprlake.text.arrow_strings import Strings
from coprlake.text.byte_classes import BACKSLASH, COLON, QUOTE, ZERO
from coprlake.text.civil_time import NO_DATE, SECOND_MICROS, date_micros
from coprlake.text.digits import hex_number_at, number_at

BoolArray = npt.NDArray[np.bool_]

_ESCAPED: Final = np.zeros(256, np.uint8)
_ESCAPED[np.frombuffer(b'"\\/bfnrt', np.uint8)] = np.frombuffer(b'"\\/\b\f\n\r\t', np.uint8)
_BLANKS: Final = np.array([byte in b" \t\r\n" for byte in range(256)], np.bool_)


@cold_kernel
def code_point(data: U8Array, at: int, end: int) -> tuple[int, int]:
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
    """Whether the JSON string is this text: ``json.loads(data[at - 1:end + 1]) == text[start:stop]``."""
    while at < end:
        if at + 8 <= end and start + 8 <= stop:
            word = word_of(data, at)
            if word == word_of(text, start) and not has_byte(word, BACKSLASHES):
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
            point, at = code_point(data, at, end)
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
    data: U8Array, scanned: Scanned, places: I64Array, texts: Strings, rows: I64Array, out: BoolArray
) -> None:
    """``out[i]``: whether the JSON string at ``places[i]`` is ``texts[rows[i]]``; not if the row is -1 or null."""
    for i in range(len(places)):
        row = i64(rows[i])
        out[i] = False
        if row >= 0 and (len(texts.valid) == 0 or texts.valid[row] != 0):
            first, last = i64(scanned.firsts[places[i]]), i64(scanned.lasts[places[i]])
            start, stop = i64(texts.starts[row]), i64(texts.starts[row + 1])
            out[i] = _is_string(data, first + 1, last - 1, texts.data, start, stop)


@kernel
def same_json(
    data: U8Array, scanned: Scanned, places: I64Array, texts: Strings, rows: I64Array, out: BoolArray
) -> None:
    """``out[i]``: whether the value at ``places[i]`` without blanks between tokens is ``texts[rows[i]]``."""
    for i in range(len(places)):
        row = i64(rows[i])
        out[i] = False
        if row < 0 or (len(texts.valid) > 0 and texts.valid[row] == 0):
            continue
        at, end = i64(scanned.firsts[places[i]]), i64(scanned.lasts[places[i]])
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
def _micros_of(data: U8Array, at: int, layout: U8Array) -> tuple[int, bool]:
    """The time in ISO 8601 at `at` as microseconds UTC, or `NO_DATE`, and whether digits behind the sixth are 0."""
    end = at + 19
    date = date_micros(number_at(data, at, end, 4), number_at(data, at + 5, end, 2), number_at(data, at + 8, end, 2))
    hours, minutes = number_at(data, at + 11, end, 2), number_at(data, at + 14, end, 2)
    seconds = number_at(data, at + 17, end, 2)
    if date == NO_DATE or not (0 <= hours < 24 and 0 <= minutes < 60 and 0 <= seconds < 60):
        return NO_DATE, False
    digits = ((i64(layout[0]) | 32) - 97) % 10
    fraction, scale, is_whole = 0, 100_000, True
    for i in range(digits):
        digit = i64(data[at + 20 + i]) - ZERO
        is_whole = is_whole and (scale > 0 or digit == 0)
        fraction += digit * scale
        scale //= 10
    east = 0
    if layout[1] == COLON or layout[1] == 43:
        east = (i64(layout[2]) - ZERO - 12) * 60 + (i64(layout[3]) - ZERO) * 15
    return date + ((hours * 60 + minutes - east) * 60 + seconds) * SECOND_MICROS + fraction, is_whole


@kernel
def mark_times(data: U8Array, scanned: Scanned, places: I64Array, micros: I64Array, out: U8Array) -> None:
    """``out[i]``: ``t`` if ``micros[i]`` is the time at ``places[i]``, ``u`` if it lacks digits behind the sixth."""
    for i in range(len(places)):
        place = i64(places[i])
        mark = i64(scanned.marks[place])
        own, is_whole = _micros_of(data, i64(scanned.firsts[place]) + 1, scanned.shapes[mark + 1 : mark + 5])
        if own != NO_DATE and own == micros[i]:
            out[i] = 116 if is_whole else 117
