"""Columns of strings as kernels read them: Arrow's own offsets and bytes."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from coprlake.errors import UsageError
from coprlake.kernel import I32Array, I64Array, U8Array

_BUFFERED_TYPES = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def _with_buffers(strings: pa.Array) -> pa.Array:
    """The same values in a type that has offsets and bytes."""
    kind = strings.type
    if kind in _BUFFERED_TYPES:
        return strings
    if pa.types.is_null(kind):
        return pa.array([], pa.binary())
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return strings.cast(pa.large_binary())
    raise UsageError(f"cannot find tokens in a column of type {kind}; expected strings or bytes")


def string_buffers(strings: pa.Array) -> tuple[U8Array, I32Array | I64Array]:
    """The bytes of a column and the n + 1 offsets of its n values into them, as views where Arrow allows it."""
    if pa.types.is_dictionary(strings.type):  # each value once, and only values that occur
        used = pa.compute.unique(strings.indices.drop_null())
        strings = _with_buffers(strings.dictionary).take(used)
    strings = _with_buffers(strings)
    if strings.null_count:
        strings = strings.drop_null()
    _, offsets, data = strings.buffers()
    wide = pa.types.is_large_string(strings.type) or pa.types.is_large_binary(strings.type)
    dtype: Any = np.int64 if wide else np.int32
    if offsets is None or len(strings) == 0:
        return np.zeros(0, np.uint8), np.zeros(1, dtype)
    starts = np.frombuffer(offsets, dtype, len(strings) + 1, strings.offset * dtype().itemsize)
    return np.frombuffer(data or b"", np.uint8), starts
