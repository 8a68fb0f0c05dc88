"""Takes JSON objects apart: their shapes, and where their values are."""

from typing import Final, NamedTuple

import numpy as np

from coprlake.kernel import I32Array, I64Array, U8Array, cold_kernel, i64, kernel, word_of
from coprlake.text.byte_classes import (
    BACKSLASH,
    BLANK,
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
from coprlake.text.digits import digits_end
from coprlake.text.zones import offset_at

SCAN, CONTENT_LINE, REST_LINE, NO_LINE = 0, 1, 2, 3
"""What to do with a line: take it apart; its shape is ``=``; its shape is ``r``; it has none."""

STRING, TIME, INTEGER, FLOAT, BOOLEAN, NESTED, REST, LARGE = 0, 1, 2, 3, 4, 5, 6, 7
"""Kinds of values; a large one is an integer of more than 63 bits."""
KINDS: Final = 8
MARKS: Final = np.frombuffer(b"stifbjri", np.uint8)

BACKSLASHES: Final = np.uint64(0x5C5C5C5C5C5C5C5C)
QUOTES: Final = np.uint64(0x2222222222222222)
_LOW_BITS: Final = np.uint64(0x0101010101010101)
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_IS_CONTENT: Final = 61
_REST_MARK: Final = 114
_BLANKS: Final = np.array([byte in b" \t\r\n" for byte in range(256)], np.bool_)
_ENDS: Final = np.array([byte in b" \t\r\n,}]" for byte in range(256)], np.bool_)
_LARGEST: Final = np.frombuffer(str((1 << 63) - 1).encode(), np.uint8)
_OBJECT, _KEY, _NEXT, _DONE = 0, 1, 2, 3
DEPTH: Final = 4
"""So deep objects in objects are taken apart; as `coprlake.intake.fields.flattening.DEPTH`."""
LAYOUT_BYTES: Final = 4


class Scanned(NamedTuple):
    """What `scan_objects` finds."""

    shapes: U8Array  # the bytes of all shapes
    shape_starts: I32Array  # where each begins, and the end
    place_starts: I32Array  # the number of the first value of each line, and of all values
    firsts: I32Array  # where each value begins
    lasts: I32Array  # and ends
    kinds: U8Array
    marks: I32Array  # where its mark is in `shapes`
    integers: I64Array  # its value, if it is an INTEGER; from `walk_lines` also 1 for true and 0 for false
    flags: U8Array  # only from `walk_lines`


def room_for(data_bytes: int, line_count: int) -> Scanned:
    """Arrays for lines of so many bytes: a shape is not longer than its line, and a value has a key."""
    places = data_bytes // 4 + line_count + 1
    return Scanned(
        np.empty(data_bytes + line_count, np.uint8),
        np.empty(line_count + 1, np.int32),
        np.empty(line_count + 1, np.int32),
        np.empty(places, np.int32),
        np.empty(places, np.int32),
        np.empty(places, np.uint8),
        np.empty(places, np.int32),
        np.empty(places, np.int64),
        np.empty(places, np.uint8),
    )


def enough_room(room: Scanned, data_bytes: int, line_count: int) -> Scanned:
    """These arrays if they are large enough, since fresh memory is slow; else new ones."""
    if len(room.shapes) < data_bytes + line_count or len(room.shape_starts) < line_count + 1:
        return room_for(data_bytes, line_count)
    return room


def of_lines(room: Scanned, line_count: int) -> Scanned:
    """The arrays for so many lines."""
    return room._replace(
        shape_starts=room.shape_starts[: line_count + 1], place_starts=room.place_starts[: line_count + 1]
    )


@kernel
def has_byte(word: np.uint64, pattern: np.uint64) -> bool:
    """Whether one of the eight bytes of a word is that of which `pattern` has eight."""
    mixed = np.uint64(word ^ pattern)
    return bool((np.uint64(mixed - _LOW_BITS) & np.uint64(~mixed) & _HIGH_BITS) != np.uint64(0))


@kernel
def integer_of(data: U8Array, at: int, end: int) -> int:
    """``int(data[at:end])``, at most 63 bits."""
    is_negative = data[at] == DASH
    value = 0
    for i in range(at + is_negative, end):
        value = value * 10 + i64(data[i]) - ZERO
    return -value if is_negative else value


@kernel
def string_end(data: U8Array, at: int, end: int) -> int:
    """Where the string that begins with the quote at `at` ends, behind its other quote; -1 if it does not."""
    at += 1
    while at < end:
        if at + 8 <= end:
            word = word_of(data, at)
            if not (has_byte(word, QUOTES) or has_byte(word, BACKSLASHES)):
                at += 8
                continue
        while at < end and data[at] != QUOTE and data[at] != BACKSLASH:
            at += 1
        if at < end and data[at] == QUOTE:
            return at + 1
        at += 2
    return -1


@cold_kernel
def nested_end(data: U8Array, at: int, end: int) -> int:
    """Where the array or object that begins at `at` ends; -1 if it does not."""
    depth = 0
    while at < end:
        byte = data[at]
        if byte == QUOTE:
            at = string_end(data, at, end)
            if at < 0:
                return -1
            continue
        if byte in (OPEN_BRACE, OPEN_BRACKET):
            depth += 1
        elif byte in (CLOSE_BRACE, CLOSE_BRACKET):
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return -1


@kernel
def number_kind(data: U8Array, at: int, end: int) -> int:
    """INTEGER, LARGE, FLOAT, REST if it has an exponent of more than two digits, or -1 if it is not a number."""
    first = at + 1 if data[at] == DASH else at
    stop = digits_end(data, first, end)
    if stop == first:
        return -1
    if stop == end:
        if stop - first < 19:
            return INTEGER
        if stop - first == 19:
            for i in range(19):
                if data[first + i] != _LARGEST[i]:
                    return INTEGER if data[first + i] < _LARGEST[i] else LARGE
            return INTEGER
        return LARGE
    if data[stop] == DOT:
        stop = digits_end(data, stop + 1, end)
    if stop < end and (i64(data[stop]) | 32) == 101:
        stop += 1
        if stop < end and data[stop] in (43, DASH):
            stop += 1
        exponent = stop
        stop = digits_end(data, stop, end)
        if stop - exponent > 2:
            return REST if stop == end else -1
    return FLOAT if stop == end else -1


@cold_kernel
def time_layout(data: U8Array, at: int, end: int, out: U8Array) -> bool:
    """Whether ``data[at:end]`` looks like a time in ISO 8601; the four characters of its layout go to `out`."""
    if end - at < 19 or data[at + 7] != DASH or data[at + 13] != COLON or data[at + 16] != COLON:
        return False
    if data[at + 10] != 84 and data[at + 10] != BLANK:
        return False
    base = 97 if data[at + 10] == 84 else 107
    stop = at + 19
    if stop < end and data[stop] in (DOT, COMMA):
        if data[stop] == COMMA:
            base -= 32
        first = stop + 1
        stop = digits_end(data, first, end)
        if not 1 <= stop - first <= 9:
            return False
        base += stop - first
    out[0] = base
    out[1], out[2], out[3] = DASH, ZERO, ZERO
    if stop == end:
        return True
    if data[stop] == 90:
        out[1] = 90
        return stop + 1 == end
    east, zone_end = offset_at(data, stop, end)
    if zone_end != end or zone_end - stop < 5 or east % 15 != 0 or not -720 <= east <= 885:
        return False
    if east == 0 and data[stop] == DASH:
        return False
    out[1] = COLON if data[stop + 3] == COLON else 43
    hours = (east + 720) // 60
    out[2] = ZERO + hours
    out[3] = ZERO + (east + 720 - hours * 60) // 15
    return True


@kernel
def skipped(data: U8Array, at: int, end: int) -> int:
    """Where the blanks that begin at `at` end."""
    while at < end and _BLANKS[data[at]]:
        at += 1
    return at


@kernel
def _is_word(data: U8Array, at: int, end: int, size: int, last: int) -> bool:
    """Whether a word of `size` letters ends there, with this last letter: true, false or null."""
    return at + size <= end and data[at + size - 1] == last and (at + size == end or bool(_ENDS[data[at + size]]))


@kernel
def _value_end(data: U8Array, at: int, end: int) -> tuple[int, int]:
    """The kind of the value at `at` and where it ends; -1 if it is neither a string, a number, a boolean nor nested."""
    byte = data[at]
    if byte == QUOTE:
        return STRING, string_end(data, at, end)
    if byte == DASH or is_digit(byte):
        stop = at + 1
        while stop < end and not _ENDS[data[stop]]:
            stop += 1
        kind = number_kind(data, at, stop)
        return kind, stop if kind >= 0 else -1
    if byte == 116 and _is_word(data, at, end, 4, 101):
        return BOOLEAN, at + 4
    if byte == 102 and _is_word(data, at, end, 5, 101):
        return BOOLEAN, at + 5
    if byte in (OPEN_BRACE, OPEN_BRACKET):
        return NESTED, nested_end(data, at, end)
    return 0, -1


@kernel
def _copied(data: U8Array, first: int, last: int, out: U8Array, at: int) -> int:
    """Copy ``data[first:last]`` to `out` at `at`; where it ends there."""
    for i in range(first, last):
        out[at] = data[i]
        at += 1
    return at


@kernel
def _scan_key(data: U8Array, at: int, end: int, written: int, out: Scanned) -> tuple[int, int]:
    """Copy the key and the colon at `at` to the shape; where the value begins, or -1, and where the shape ends."""
    stop = string_end(data, at, end) if data[at] == QUOTE else -1
    if stop < 0:
        return -1, written
    written = _copied(data, at, stop, out.shapes, written)
    at = skipped(data, stop, end)
    if at >= end or data[at] != COLON:
        return -1, written
    out.shapes[written] = COLON
    return skipped(data, at + 1, end), written + 1


@kernel
def _scan_literal(data: U8Array, at: int, end: int, written: int, out: Scanned) -> tuple[int, int]:
    """Copy ``null``, ``{}`` or ``[]`` to the shape; where it ends, or -1 if there is none, and where the shape ends."""
    byte = data[at]
    if byte == 110 and _is_word(data, at, end, 4, 108):
        return at + 4, _copied(data, at, at + 4, out.shapes, written)
    if byte != OPEN_BRACE and byte != OPEN_BRACKET:
        return -1, written
    closing = skipped(data, at + 1, end)
    if closing >= end or i64(data[closing]) != i64(byte) + 2:
        return -1, written
    out.shapes[written] = byte
    out.shapes[written + 1] = data[closing]
    return closing + 1, written + 2


@kernel
def _scan_value(data: U8Array, at: int, end: int, written: int, place: int, out: Scanned) -> tuple[int, int]:
    """Note the value at `at` under the number `place`; where it ends, or -1, and where the shape ends."""
    kind, stop = _value_end(data, at, end)
    if stop < 0:
        return -1, written
    layout_bytes = 0
    if kind == STRING and stop - at > 20 and data[at + 5] == DASH:
        layout = out.shapes[written + 1 : written + 1 + LAYOUT_BYTES]
        if time_layout(data, at + 1, stop - 1, layout):
            kind = TIME
            layout_bytes = LAYOUT_BYTES
    out.firsts[place] = at
    out.lasts[place] = stop
    out.marks[place] = written
    out.kinds[place] = kind
    if kind == INTEGER:
        out.integers[place] = integer_of(data, at, stop)
    out.shapes[written] = MARKS[kind]
    return stop, written + 1 + layout_bytes


@kernel
def _scan_object(data: U8Array, at: int, end: int, written: int, place: int, out: Scanned) -> tuple[int, int]:
    """The shape and the values of one line: where the shape ends, or -1 if it is not an object, and how many values."""
    at = skipped(data, at, end)
    if at >= end or data[at] != OPEN_BRACE:
        return -1, place
    out.shapes[written] = OPEN_BRACE
    written += 1
    at += 1
    depth, state = 0, _OBJECT
    while state != _DONE:
        at = skipped(data, at, end)
        if at >= end:
            return -1, place
        byte = data[at]
        if state != _KEY and byte == CLOSE_BRACE:
            depth -= 1
            state = _DONE if depth < 0 else _NEXT
        elif state == _NEXT:
            if byte != COMMA:
                return -1, place
            state = _KEY
        else:
            at, written = _scan_key(data, at, end, written, out)
            if at < 0 or at >= end:
                return -1, place
            stop, written = _scan_literal(data, at, end, written, out)
            if stop < 0 and data[at] == OPEN_BRACE and depth < DEPTH:
                byte = data[at]
                depth += 1
                state = _OBJECT
            else:
                if stop < 0:
                    stop, written = _scan_value(data, at, end, written, place, out)
                    place += 1
                if stop < 0:
                    return -1, place
                at = stop
                state = _NEXT
                continue
        out.shapes[written] = byte
        written += 1
        at += 1
    return written if skipped(data, at, end) == end else -1, place


@kernel
def scan_objects(data: U8Array, starts: I64Array, modes: U8Array, out: Scanned) -> int:
    """The shape of each ``data[starts[i]:starts[i + 1]]`` with the marks of fields, and its values.

    What is not a JSON object gets the shape ``r`` and itself as the value. Returns the number of values. Cost: about
    1 ns a byte.
    """
    written, places = 0, 0
    for line in range(len(modes)):
        at, end = i64(starts[line]), i64(starts[line + 1])
        out.shape_starts[line] = written
        out.place_starts[line] = places
        if modes[line] == CONTENT_LINE:
            out.shapes[written] = _IS_CONTENT
            written += 1
        elif modes[line] != NO_LINE:
            shape_end, place = -1, places
            if modes[line] == SCAN:
                shape_end, place = _scan_object(data, at, end, written, places, out)
            if shape_end < 0:
                out.shapes[written] = _REST_MARK
                out.firsts[places], out.lasts[places], out.marks[places] = at, end, written
                out.kinds[places] = REST
                shape_end, place = written + 1, places + 1
            written, places = shape_end, place
    out.shape_starts[len(modes)] = written
    out.place_starts[len(modes)] = places
    return places
