"""Column chunks as the footer of a Parquet file describes them: where they are, and what times they span.

Arrow reads footers too, but we cannot use its description of a column chunk: if the statistics of a chunk are damaged,
asking for them ends the process, because the error is thrown where Python cannot catch it. So we read the few numbers
that we need from the footer's bytes (Thrift's compact protocol; parquet.thrift names the fields). If a footer makes no
sense, its numbers stay unknown, and Arrow reports what is wrong with it as soon as data is read.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from coprlake.kernel import I64Array, I64Matrix, U8Array, cold_kernel, i64, kernel

UNKNOWN: Final = -1

CHUNK: Final = np.dtype(
    [
        ("codec", np.int64),
        ("encodings", np.int64),  # one bit per encoding
        ("uncompressed_bytes", np.int64),
        ("compressed_bytes", np.int64),
        ("data_page_offset", np.int64),
        ("dictionary_page_offset", np.int64),
        ("null_count", np.int64),
        ("has_range", np.int64),  # 1 if the next two are known
        ("minimum", np.int64),
        ("maximum", np.int64),
    ]
)
"""One chunk: a column in a row group. Values that the footer does not state are `UNKNOWN`."""

_WIDTH: Final = 10
(
    _CODEC,
    _ENCODINGS,
    _UNCOMPRESSED_BYTES,
    _COMPRESSED_BYTES,
    _DATA_PAGE,
    _DICTIONARY_PAGE,
    _NULL_COUNT,
    _HAS_RANGE,
    _MINIMUM,
    _MAXIMUM,
) = range(_WIDTH)

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
"""Thrift's types."""

_BROKEN: Final = -1
"""Returned instead of the end position if something cannot be read."""

_ALL: Final = -1
"""In place of a column: all of them."""

_DEEPEST: Final = 32
"""The maximum nesting depth of structures; footers nest five deep."""


def column_chunks(footer: U8Array, place: int, row_group_count: int) -> npt.NDArray[np.void]:
    """The chunks of one column, an element for each row group; all unknown if the footer cannot be read."""
    chunks = np.full((row_group_count, _WIDTH), UNKNOWN, np.int64)
    if _read_footer(footer, place, chunks, np.empty((0, 0), np.int64), _frames()) != row_group_count:
        chunks[:] = UNKNOWN
    return chunks.view(CHUNK).reshape(-1)


def compressed_sizes(footer: U8Array, column_count: int, row_group_count: int) -> I64Array:
    """The compressed bytes of all chunks, a row for each row group and a column for each column; 0 where unknown."""
    sizes = np.zeros((row_group_count, column_count), np.int64)
    scratch = np.empty((row_group_count, _WIDTH), np.int64)
    if _read_footer(footer, _ALL, scratch, sizes, _frames()) != row_group_count:
        sizes[:] = 0
    return sizes


def _frames() -> I64Matrix:
    return np.empty((_DEEPEST, 3), np.int64)


@cold_kernel
def _read_footer(data: U8Array, place: int, chunks: I64Matrix, sizes: I64Matrix, frames: I64Matrix) -> int:
    """Fill in the chunks of one column, or the sizes of all; the number of row groups, or `_BROKEN`."""
    at, number, group_count = 0, 0, 0
    while True:
        at, number, kind = _field(data, at, number)
        if at == _BROKEN:
            return _BROKEN
        if kind == _STOP:
            return group_count
        if number == 4 and kind == _LIST:
            at, element, group_count = _list_header(data, at)
            if at == _BROKEN or element != _STRUCT or group_count > len(chunks):
                return _BROKEN
            for group in range(group_count):
                at = _read_row_group(data, at, place, chunks[group], sizes, group, frames)
                if at == _BROKEN:
                    return _BROKEN
        else:
            at = _skip(data, at, kind, frames)
            if at == _BROKEN:
                return _BROKEN


@cold_kernel
def _read_row_group(
    data: U8Array, at: int, place: int, chunk: I64Array, sizes: I64Matrix, group: int, frames: I64Matrix
) -> int:
    number = 0
    while True:
        at, number, kind = _field(data, at, number)
        if at == _BROKEN or kind == _STOP:
            return at
        if number == 1 and kind == _LIST:
            at, element, column_count = _list_header(data, at)
            if at == _BROKEN or element != _STRUCT:
                return _BROKEN
            for column in range(column_count):
                if place == _ALL and column < sizes.shape[1]:
                    chunk[_COMPRESSED_BYTES] = 0
                    at = _read_column_chunk(data, at, chunk, frames)
                    sizes[group, column] = max(i64(0), chunk[_COMPRESSED_BYTES])
                elif column == place:
                    at = _read_column_chunk(data, at, chunk, frames)
                else:
                    at = _skip(data, at, _STRUCT, frames)
                if at == _BROKEN:
                    return _BROKEN
        else:
            at = _skip(data, at, kind, frames)
            if at == _BROKEN:
                return _BROKEN


@cold_kernel
def _read_column_chunk(data: U8Array, at: int, chunk: I64Array, frames: I64Matrix) -> int:
    number = 0
    while True:
        at, number, kind = _field(data, at, number)
        if at == _BROKEN or kind == _STOP:
            return at
        if number == 3 and kind == _STRUCT:
            at = _read_column_metadata(data, at, chunk, frames)
        else:
            at = _skip(data, at, kind, frames)
        if at == _BROKEN:
            return _BROKEN


@cold_kernel
def _read_column_metadata(data: U8Array, at: int, chunk: I64Array, frames: I64Matrix) -> int:
    number, value_bytes = 0, 0
    while True:
        at, number, kind = _field(data, at, number)
        if at == _BROKEN or kind == _STOP:
            return at
        if kind == _I32 and number in (1, 4):
            at, value = _zigzag(data, at)
            if number == 4:
                chunk[_CODEC] = value
            else:  # the physical type: 1 is INT32, 2 is INT64
                value_bytes = 4 if value == 1 else 8 if value == 2 else 0
        elif kind == _I64 and number in (6, 7, 9, 11):
            at, value = _zigzag(data, at)
            if number == 6:
                chunk[_UNCOMPRESSED_BYTES] = value
            elif number == 7:
                chunk[_COMPRESSED_BYTES] = value
            elif number == 9:
                chunk[_DATA_PAGE] = value
            else:
                chunk[_DICTIONARY_PAGE] = value
        elif kind == _LIST and number == 2:
            at = _read_encodings(data, at, chunk)
        elif kind == _STRUCT and number == 12:
            at = _read_statistics(data, at, value_bytes, chunk, frames)
        else:
            at = _skip(data, at, kind, frames)
        if at == _BROKEN:
            return _BROKEN


@cold_kernel
def _read_encodings(data: U8Array, at: int, chunk: I64Array) -> int:
    at, element, count = _list_header(data, at)
    if at == _BROKEN or element != _I32:
        return _BROKEN
    found = i64(0)
    for _ in range(count):
        at, value = _zigzag(data, at)
        if at == _BROKEN or not 0 <= value < 63:
            return _BROKEN
        found |= i64(1) << i64(value)
    chunk[_ENCODINGS] = found
    return at


@cold_kernel
def _read_statistics(data: U8Array, at: int, value_bytes: int, chunk: I64Array, frames: I64Matrix) -> int:
    """Read the null count and the range of integers, from the older fields (1, 2) only if both newer are missing."""
    number = 0
    old_maximum, old_minimum, maximum, minimum = _BROKEN, _BROKEN, _BROKEN, _BROKEN  # where they start
    while True:
        at, number, kind = _field(data, at, number)
        if at == _BROKEN:
            return _BROKEN
        if kind == _STOP:
            break
        if number == 3 and kind == _I64:
            at, value = _zigzag(data, at)
            chunk[_NULL_COUNT] = value
        elif kind == _BINARY:
            at, size = _varint(data, at)
            if at == _BROKEN or not 0 <= size <= len(data) - at:
                return _BROKEN
            start = at if size == value_bytes else _BROKEN
            if number == 1:
                old_maximum = start
            elif number == 2:
                old_minimum = start
            elif number == 5:
                maximum = start
            elif number == 6:
                minimum = start
            at += size
        else:
            at = _skip(data, at, kind, frames)
        if at == _BROKEN:
            return _BROKEN
    if maximum == _BROKEN and minimum == _BROKEN:
        maximum, minimum = old_maximum, old_minimum
    if value_bytes and maximum != _BROKEN and minimum != _BROKEN:
        chunk[_HAS_RANGE] = 1
        chunk[_MINIMUM] = _whole_number(data, minimum, value_bytes)
        chunk[_MAXIMUM] = _whole_number(data, maximum, value_bytes)
    return at


@kernel
def _whole_number(data: U8Array, at: int, size: int) -> int:
    """A signed little-endian number of four or eight bytes."""
    value = i64(0)
    for place in range(size):
        value |= i64(data[at + place]) << i64(8 * place)
    if size == 4 and value >= i64(1) << i64(31):
        value -= i64(1) << i64(32)
    return value


@kernel
def _field(data: U8Array, at: int, number: int) -> tuple[int, int, int]:
    """Read the header of the field after field `number`: where its value starts, its number and type."""
    if at >= len(data):
        return _BROKEN, 0, 0
    head = i64(data[at])
    at += 1
    kind = head & 15
    if kind == _STOP:
        return at, 0, kind
    if head >> 4:
        return at, number + (head >> 4), kind
    at, value = _zigzag(data, at)
    return at, value, kind


@kernel
def _list_header(data: U8Array, at: int) -> tuple[int, int, int]:
    """Where the first element starts, the type of the elements, and their number; each takes a byte or more."""
    if at >= len(data):
        return _BROKEN, 0, 0
    head = i64(data[at])
    at += 1
    count = head >> 4
    if count == 15:
        at, count = _varint(data, at)
        if at == _BROKEN:
            return _BROKEN, 0, 0
    if not 0 <= count <= len(data) - at:
        return _BROKEN, 0, 0
    return at, head & 15, count


@kernel
def _varint(data: U8Array, at: int) -> tuple[int, int]:
    """The end position of a number with seven bits per byte, and the number, as a signed 64-bit integer."""
    value, shift = i64(0), 0
    while shift < 64:
        if at >= len(data):
            return _BROKEN, 0
        byte = i64(data[at])
        at += 1
        value |= (byte & 127) << i64(shift)
        if byte < 128:
            return at, value
        shift += 7
    return _BROKEN, 0


@kernel
def _zigzag(data: U8Array, at: int) -> tuple[int, int]:
    """Like `_varint`, for a number whose lowest bit is its sign."""
    at, value = _varint(data, at)
    return at, ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)


@cold_kernel
def _skip(data: U8Array, at: int, kind: int, frames: I64Matrix) -> int:
    """The end position of a value of this type, however deep it nests; `frames` is scratch space.

    A frame is an open structure, or a list with its two types (keys and values in turn, equal except in maps) and the
    number of elements left.
    """
    depth = 0
    while True:
        if kind in (_STRUCT, _LIST, _SET, _MAP):
            if depth == len(frames):
                return _BROKEN
            first, second, count = _STRUCT, _STRUCT, -1
            if kind == _MAP:
                at, count = _varint(data, at)
                if at == _BROKEN or not 0 <= count <= len(data) - at:
                    return _BROKEN
                if count:
                    first, second = i64(data[at]) >> 4, i64(data[at]) & 15
                    at, count = at + 1, 2 * count
            elif kind != _STRUCT:
                at, first, count = _list_header(data, at)
                second = first
                if at == _BROKEN:
                    return _BROKEN
            frames[depth, 0], frames[depth, 1], frames[depth, 2] = first, second, count
            depth += 1
        else:
            at = _skip_scalar(data, at, kind)
            if at == _BROKEN:
                return _BROKEN
        kind = _STOP
        while depth and kind == _STOP:  # what comes next
            top = depth - 1
            if frames[top, 2] == 0:
                depth -= 1
            elif frames[top, 2] < 0:  # a structure
                at, _, kind = _field(data, at, 0)
                if at == _BROKEN:
                    return _BROKEN
                if kind == _STOP:
                    depth -= 1
            else:
                frames[top, 2] -= 1
                kind = frames[top, 1] if frames[top, 2] % 2 == 0 else frames[top, 0]
                if kind == _STOP:
                    return _BROKEN
                if kind in (_TRUE, _FALSE):  # in a list, booleans take a byte
                    kind = _BYTE
        if kind == _STOP:
            return at


@cold_kernel
def _skip_scalar(data: U8Array, at: int, kind: int) -> int:
    size = 0
    if kind == _BINARY:
        at, size = _varint(data, at)
    elif kind in (_I16, _I32, _I64):
        at, _ = _varint(data, at)
    elif kind == _BYTE:
        size = 1
    elif kind == _DOUBLE:
        size = 8
    elif kind not in (_TRUE, _FALSE):  # the type of a boolean field is its value
        return _BROKEN
    if at == _BROKEN or not 0 <= size <= len(data) - at:
        return _BROKEN
    return at + size
