"""Makes columns of the values that `json_walking` finds in JSON lines."""

from typing import Final

import numpy as np
import pyarrow as pa

from coprlake.intake.formats.json_comparing import BoolArray, code_point
from coprlake.intake.formats.json_scanning import BOOLEAN, FLOAT, INTEGER, NESTED, STRING, TIME, Scanned
from coprlake.intake.formats.json_strictness import BLANKS, ESCAPES
from coprlake.kernel import I32Array, I64Array, U8Array, cold_kernel, i64, kernel, long_kernel
from coprlake.text.byte_classes import BACKSLASH, QUOTE, ZERO

_EXACT_FLOATS: Final = 1 << 53
_FIRST_TEXT: Final = 32
_ESCAPED: Final = np.zeros(256, np.uint8)
_ESCAPED[np.frombuffer(b'"\\/bfnrt', np.uint8)] = np.frombuffer(b'"\\/\b\f\n\r\t', np.uint8)
_SHORT: Final = np.zeros(256, np.uint8)
"""The letter after the backslash for each character that JSON text in a column has escaped; 0 for none."""
_SHORT[np.frombuffer(b'"\\\b\f\n\r\t', np.uint8)] = np.frombuffer(b'"\\bfnrt', np.uint8)
_BLANK_BYTES: Final = np.array([byte in b" \t\r\n" for byte in range(256)], np.bool_)

TYPES: Final = {
    STRING: pa.string(),
    TIME: pa.string(),
    NESTED: pa.string(),
    INTEGER: pa.int64(),
    FLOAT: pa.float64(),
    BOOLEAN: pa.bool_(),
}
"""The type of a column whose values are all of this kind."""


@long_kernel
def spread(
    codes: I32Array,
    firsts: I32Array,
    shape_starts: I32Array,
    fields: I32Array,
    scanned: Scanned,
    places: I32Array,
    sizes: I64Array,
) -> None:
    """``places[field * len(codes) + line]`` becomes the number of the value that the line has in this field.

    ``fields[shape_starts[code]:shape_starts[code + 1]]`` are those of the values of a line, whose numbers begin with
    ``firsts[line]``. Lines without a field keep what is there. ``sizes[field]`` grows by the bytes of the values.
    """
    for line in range(len(codes)):
        code = i64(codes[line])
        place = i64(firsts[line])
        for i in range(i64(shape_starts[code]), i64(shape_starts[code + 1])):
            field = i64(fields[i])
            places[field * len(codes) + line] = place
            sizes[field] += i64(scanned.lasts[place]) - i64(scanned.firsts[place])
            place += 1


@cold_kernel
def _put_point(point: int, out: U8Array, at: int) -> int:
    """Write a character to `out` at `at` as UTF-8; where it ends."""
    if point < 0x80:
        out[at] = point
        return at + 1
    size = 2 if point < 0x800 else 3 if point < 0x10000 else 4
    out[at] = (0xC0 if size == 2 else 0xE0 if size == 3 else 0xF0) | (point >> (6 * (size - 1)))
    for i in range(1, size):
        out[at + i] = 0x80 | ((point >> (6 * (size - 1 - i))) & 0x3F)
    return at + size


@cold_kernel
def _put_escaped(point: int, out: U8Array, at: int) -> int:
    r"""As `_put_point`, but as ``json.dumps(..., ensure_ascii=False)`` writes it in a string: ``\n``, ``\u0001``."""
    if point >= 0x80 or (point >= _FIRST_TEXT and _SHORT[point] == 0):
        return _put_point(point, out, at)
    out[at] = BACKSLASH
    if _SHORT[point] != 0:
        out[at + 1] = _SHORT[point]
        return at + 2
    low = point & 15
    out[at + 1], out[at + 2], out[at + 3], out[at + 4] = 117, ZERO, ZERO, ZERO + (point >> 4)
    out[at + 5] = low + (ZERO if low < 10 else 87)
    return at + 6


@cold_kernel
def _put_plain(data: U8Array, at: int, end: int, is_json: bool, out: U8Array, written: int) -> int:
    """Write a string without its escapes, or JSON without blanks and needless escapes; where it ends in `out`."""
    in_string = not is_json
    while at < end:
        byte = data[at]
        if in_string and byte == BACKSLASH:
            if data[at + 1] == 117:
                point, at = code_point(data, at, end)
            else:
                point, at = i64(_ESCAPED[data[at + 1]]), at + 2
            written = _put_escaped(point, out, written) if is_json else _put_point(point, out, written)
            continue
        if is_json and byte == QUOTE:
            in_string = not in_string
        if in_string or not _BLANK_BYTES[byte]:
            out[written] = byte
            written += 1
        at += 1
    return written


@kernel
def _put_value(data: U8Array, place: int, scanned: Scanned, out: U8Array, written: int) -> int:
    first, last = i64(scanned.firsts[place]), i64(scanned.lasts[place])
    is_json = scanned.kinds[place] > TIME
    if not is_json:
        first, last = first + 1, last - 1
    flags = i64(scanned.flags[place])
    if flags & ESCAPES or (is_json and flags & BLANKS):
        return _put_plain(data, first, last, is_json, out, written)
    size = last - first
    source, target = data[first:last], out[written : written + size]
    for i in range(size):
        target[i] = source[i]
    return written + size


@long_kernel
def put_texts(data: U8Array, places: I32Array, scanned: Scanned, out_starts: I32Array, out: U8Array) -> int:
    """The values at `places` one behind the other: strings as they are meant, others as JSON without blanks.

    Those at -1 are empty. ``out_starts`` gets where each begins in `out`, and the end. Returns the number of bytes.
    """
    written = 0
    for row in range(len(places)):
        out_starts[row] = written
        if places[row] >= 0:
            written = _put_value(data, i64(places[row]), scanned, out, written)
    out_starts[len(places)] = written
    return written


def _texts(data: U8Array, places: I32Array, scanned: Scanned, size: int, missing: BoolArray | None) -> pa.StringArray:
    out, starts = np.empty(size, np.uint8), np.empty(len(places) + 1, np.int32)
    written = put_texts(data, places, scanned, starts, out)
    validity = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    buffers = [validity, pa.py_buffer(starts), pa.py_buffer(out[:written])]
    return pa.Array.from_buffers(pa.string(), len(places), buffers, 0 if missing is None else int(missing.sum()))


def column_of(data: U8Array, places: I32Array, scanned: Scanned, size: int, kind: pa.DataType) -> pa.Array | None:
    """The values at `places`, null at -1; None if a float cannot be one of the integers among them.

    Args:
        data: the lines.
        places: the number of the value of each line.
        scanned: the values.
        size: of the values, in bytes.
        kind: the type of the column.
    """
    missing: BoolArray | None = places < 0
    if missing is not None and not missing.any():
        missing = None
    if kind == pa.string():
        return _texts(data, places, scanned, size, missing)
    if kind == pa.float64():
        integers = scanned.integers[places]
        is_integer = (scanned.kinds[places] == INTEGER) & (places >= 0)
        if (is_integer & ((integers >= _EXACT_FLOATS) | (integers <= -_EXACT_FLOATS))).any():
            return None
        return _texts(data, places, scanned, size, missing).cast(kind)
    values = scanned.integers[places]
    return pa.array(values if kind == pa.int64() else values == 1, mask=missing)
