"""Texts in and texts out: Arrow's strings as kernels read them, and spans of them as new strings."""

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from coprlake.dpl.compiling import opcodes as op
from coprlake.dpl.running.numerals import hex_digit_of
from coprlake.errors import UsageError
from coprlake.kernel import I32Array, I64Array, U8Array, cold_kernel, i64, kernel

_MOST_BYTES: Final = np.iinfo(np.int32).max
_BACKSLASH, _U = 92, 117
_REPLACEMENT: Final = 0xFFFD


def _escaped() -> U8Array:
    """What a letter stands for behind a backslash, or 0."""
    table = np.zeros(256, np.uint8)
    for letter, byte in zip(b"\"'\\/bfnrt", b"\"'\\/\b\f\n\r\t", strict=True):
        table[letter] = byte
    return table


_ESCAPED: Final = _escaped()


class Texts(NamedTuple):
    """A column of strings: its bytes, the n + 1 offsets of its n texts, and a 0 for each that is null.

    If none is null, `valid` is empty. Bytes are read-only and offsets wide, whatever they come from: the machine is
    large, and is compiled anew for each type it gets.
    """

    data: U8Array
    starts: I64Array
    valid: U8Array


def _frozen(data: U8Array) -> U8Array:
    """The same bytes, read-only."""
    view = data.view()
    view.flags.writeable = False
    return view


def string_views(texts: pa.Array) -> Texts:
    """The strings of an Arrow column, in place where Arrow allows it."""
    kind = texts.type
    if pa.types.is_string_view(kind):
        texts = texts.cast(pa.large_string())
    elif pa.types.is_null(kind):
        texts = texts.cast(pa.string())
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise UsageError(f"patterns are matched with strings, not with {kind}")
    dtype: Any = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    valid = np.zeros(0, np.uint8)
    if texts.null_count:
        valid = np.array(texts.is_valid().cast(pa.uint8()))
    _, offsets, data = texts.buffers()
    if offsets is None or len(texts) == 0:
        return Texts(_frozen(np.zeros(0, np.uint8)), np.zeros(len(texts) + 1, np.int64), valid)
    starts = np.frombuffer(offsets, dtype, len(texts) + 1, texts.offset * dtype().itemsize)
    return Texts(_frozen(np.frombuffer(data or b"", np.uint8)), starts.astype(np.int64), valid)


@kernel
def _put_character(number: int, out: U8Array, size: int) -> int:
    """Append a character in UTF-8; how many bytes there are then."""
    if number < 0x80:
        out[size] = number
        return size + 1
    if number < 0x800:
        out[size] = 0xC0 | number >> 6
        out[size + 1] = 0x80 | number & 0x3F
        return size + 2
    if number < 0x10000:
        out[size] = 0xE0 | number >> 12
        out[size + 1] = 0x80 | number >> 6 & 0x3F
        out[size + 2] = 0x80 | number & 0x3F
        return size + 3
    out[size] = 0xF0 | number >> 18
    out[size + 1] = 0x80 | number >> 12 & 0x3F
    out[size + 2] = 0x80 | number >> 6 & 0x3F
    out[size + 3] = 0x80 | number & 0x3F
    return size + 4


@kernel
def _unicode_at(data: U8Array, at: int, stop: int) -> int:
    """The number in a backslash, ``u`` and four digits at a place, or -1."""
    if at + 6 > stop or data[at] != _BACKSLASH or data[at + 1] != _U:
        return -1
    number = 0
    for i in range(2, 6):
        digit = hex_digit_of(data[at + i])
        if digit < 0:
            return -1
        number = number * 16 + digit
    return number


@cold_kernel
def _unescape(data: U8Array, at: int, stop: int, out: U8Array, size: int) -> int:
    """Append a span with its escapes undone; unknown ones stay as they are, and half a pair becomes U+FFFD."""
    while at < stop:
        if data[at] != _BACKSLASH or at + 1 >= stop:
            out[size] = data[at]
            size += 1
            at += 1
            continue
        number = _unicode_at(data, at, stop)
        if number >= 0:
            at += 6
            if 0xD800 <= number < 0xDC00:
                low = _unicode_at(data, at, stop)
                if 0xDC00 <= low < 0xE000:
                    at += 6
                    number = 0x10000 + ((number - 0xD800) << 10) + low - 0xDC00
            if 0xD800 <= number < 0xE000:
                number = _REPLACEMENT
            size = _put_character(number, out, size)
        elif _ESCAPED[data[at + 1]] != 0:
            out[size] = _ESCAPED[data[at + 1]]
            size += 1
            at += 2
        else:
            out[size] = data[at]
            size += 1
            at += 1
    return size


@kernel
def copy_spans(
    data: U8Array, starts: I64Array, stops: I64Array, decodings: U8Array, offsets: I32Array, out: U8Array
) -> None:
    """``out[offsets[i]:offsets[i + 1]] = decoded(data[starts[i]:stops[i]])``; decoding never makes a span longer."""
    size = 0
    offsets[0] = 0
    for i in range(len(starts)):
        at, stop, decoding = i64(starts[i]), i64(stops[i]), decodings[i]
        if decoding == op.AS_IS:
            for k in range(stop - at):
                out[size + k] = data[at + k]
            size += stop - at
        elif decoding == op.UNESCAPED:
            size = _unescape(data, at, stop, out, size)
        elif decoding == op.LOWER:
            for k in range(at, stop):
                byte = data[k]
                out[size] = byte | 32 if 65 <= byte <= 90 else byte
                size += 1
        else:
            quote = 39 if decoding == op.SINGLE_DOUBLED else 34
            k = at
            while k < stop:
                out[size] = data[k]
                size += 1
                k += 2 if data[k] == quote else 1
        offsets[i + 1] = size


def strings_of(data: U8Array, starts: I64Array, stops: I64Array, decodings: U8Array, absent: Any = None) -> pa.Array:
    """The spans as strings, null where `absent` has True; absent ones must be empty."""
    total = int((stops - starts).sum())
    if total > _MOST_BYTES:
        raise UsageError(
            f"a column of strings has at most {_MOST_BYTES} bytes, this one has {total}; use smaller batches"
        )
    offsets = np.empty(len(starts) + 1, np.int32)
    out = np.empty(total, np.uint8)
    copy_spans(_frozen(data), starts, stops, decodings, offsets, out)
    nulls = None
    if absent is not None and absent.any():
        nulls = pa.py_buffer(np.packbits(~absent, bitorder="little"))
    # The rest of a buffer behind its last offset is never looked at.
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(out), nulls)
