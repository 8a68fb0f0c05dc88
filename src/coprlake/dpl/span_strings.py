"""New strings from spans of a text, with escapes and doubled quotes undone."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from coprlake.dpl.compiling import opcodes as op
from coprlake.errors import UsageError
from coprlake.kernel import I32Array, I64Array, U8Array, cold_kernel, i64, kernel, long_kernel
from coprlake.text.byte_classes import APOSTROPHE, BACKSLASH, CASE_BIT, QUOTE
from coprlake.text.digits import hex_number_at
from coprlake.text.utf8 import put_character

_MOST_BYTES: Final = np.iinfo(np.int32).max
_U: Final = 117
_REPLACEMENT: Final = 0xFFFD


def _escaped() -> U8Array:
    """What a letter stands for behind a backslash, or 0."""
    table = np.zeros(256, np.uint8)
    for letter, byte in zip(b"\"'\\/bfnrt", b"\"'\\/\b\f\n\r\t", strict=True):
        table[letter] = byte
    return table


_ESCAPED: Final = _escaped()


@kernel
def _unicode_at(data: U8Array, at: int, stop: int) -> int:
    """The number in a backslash, ``u`` and four digits at a place, or -1."""
    if at + 6 > stop or data[at] != BACKSLASH or data[at + 1] != _U:
        return -1
    return hex_number_at(data, at + 2, stop, 4)


@cold_kernel
def _unescape(data: U8Array, at: int, stop: int, out: U8Array, size: int) -> int:
    """Append a span with its escapes undone; unknown ones stay as they are, and half a pair becomes U+FFFD."""
    while at < stop:
        if data[at] != BACKSLASH or at + 1 >= stop:
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
            size = put_character(number, out, size)
        elif _ESCAPED[data[at + 1]] != 0:
            out[size] = _ESCAPED[data[at + 1]]
            size += 1
            at += 2
        else:
            out[size] = data[at]
            size += 1
            at += 1
    return size


@long_kernel
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
                out[size] = byte | CASE_BIT if 65 <= byte <= 90 else byte
                size += 1
        else:
            quote = APOSTROPHE if decoding == op.SINGLE_DOUBLED else QUOTE
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
    copy_spans(data, starts, stops, decodings, offsets, out)
    nulls = None
    if absent is not None and absent.any():
        nulls = pa.py_buffer(np.packbits(~absent, bitorder="little"))
    # The rest of a buffer behind its last offset is never looked at.
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(out), nulls)
