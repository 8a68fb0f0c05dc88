"""Arrow's strings as kernels read them: one array of bytes, and the offsets at which its strings begin and end.

Whatever the arrays come from, they are read-only here: a kernel is compiled again for each type that it gets, and
memory that may be written to is another type.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from coprlake.errors import UsageError
from coprlake.kernel import I32Array, I64Array, U8Array
from coprlake.text.text_types import is_bytes, is_text, is_text_or_bytes


class Strings(NamedTuple):
    """A column of n strings: its bytes, the n + 1 offsets of the strings, and a 0 for each string that is null.

    If none is null, `valid` is empty. What lies between the offsets of a null has no meaning.
    """

    data: U8Array
    starts: I64Array
    valid: U8Array


def bytes_of(buffer: pa.Buffer | bytes | None) -> U8Array:
    """The bytes of a buffer, in place; None has none."""
    data = np.frombuffer(memoryview(buffer or b""), np.uint8)
    data.setflags(write=False)
    return data


def string_buffers(strings: pa.Array) -> tuple[U8Array, I32Array | I64Array]:
    """The bytes of a column of strings or bytes, and the n + 1 offsets of its n values into them, in place.

    Offsets are as wide as Arrow has them. Nulls have offsets, too; see `occurring_strings` and `Strings`.
    """
    strings = with_offsets(strings)
    _, offsets, data = strings.buffers()
    wide = pa.types.is_large_string(strings.type) or pa.types.is_large_binary(strings.type)
    dtype: Any = np.int64 if wide else np.int32
    if offsets is None or len(strings) == 0:
        starts: npt.NDArray[Any] = np.zeros(len(strings) + 1, dtype)
    else:
        starts = np.frombuffer(memoryview(offsets), dtype, len(strings) + 1, strings.offset * dtype().itemsize)
    starts.setflags(write=False)
    return bytes_of(data), starts


def view_strings(strings: pa.Array) -> Strings:
    """A column of strings with wide offsets and its nulls, in place but for the offsets."""
    data, starts = string_buffers(strings)
    valid = np.zeros(0, np.uint8)
    if strings.null_count:
        valid = np.array(strings.is_valid().cast(pa.uint8()))
    return Strings(data, starts.astype(np.int64), valid)


def occurring_strings(column: pa.Array) -> pa.Array:
    """The values that a column of strings or bytes has, without nulls; each value of a dictionary once."""
    if isinstance(column, pa.DictionaryArray):
        used = pa.compute.unique(column.indices.drop_null())
        column = with_offsets(column.dictionary).take(used)
    elif pa.types.is_null(column.type):
        return pa.array([], pa.binary())
    column = with_offsets(column)
    return column.drop_null() if column.null_count else column


def with_offsets(column: pa.Array) -> pa.Array:
    """The same strings or bytes in a type that has offsets; nulls stay nulls.

    Raises:
        UsageError: the column holds neither.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    if not is_text_or_bytes(kind):
        raise UsageError(f"cannot find text in a column of type {kind}; expected strings or bytes")
    if isinstance(column, pa.DictionaryArray):
        return with_offsets(column.dictionary_decode())
    has_offsets = not (pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))
    return column if has_offsets and (is_text(kind) or is_bytes(kind)) else column.cast(pa.large_binary())


def as_strings(column: pa.Array) -> pa.Array:
    """The same bytes as string or large_string; they need not be valid UTF-8."""
    column = with_offsets(column)
    if is_text(column.type):
        return column
    return column.view(pa.large_string() if pa.types.is_large_binary(column.type) else pa.string())


def as_binary(column: pa.Array) -> pa.Array:
    """The same bytes as binary or large_binary."""
    strings = as_strings(column)
    return strings.view(pa.large_binary() if pa.types.is_large_string(strings.type) else pa.binary())
