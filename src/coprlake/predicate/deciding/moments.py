"""Times of any unit in microseconds."""

from typing import overload

import numpy as np
import pyarrow as pa


@overload
def microseconds_of(times: pa.Array) -> pa.Array: ...
@overload
def microseconds_of(times: pa.ChunkedArray) -> pa.ChunkedArray: ...
def microseconds_of(times: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Times of any unit, or dates, in microseconds; nanoseconds are rounded down.

    Times that do not fit into 64 bits become the first or last time that does, which keeps the order.
    """
    kind = times.type
    if pa.types.is_dictionary(kind):
        times, kind = times.cast(kind.value_type), kind.value_type
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return times.cast(pa.int64())
    if isinstance(times, pa.ChunkedArray):
        return pa.chunked_array([microseconds_of(chunk) for chunk in times.chunks], pa.int64())
    factor, divisor = _SCALES[_unit_of(kind)]
    numbers = np.asarray((times.cast(pa.int32()) if pa.types.is_date32(kind) else times).cast(pa.int64()).fill_null(0))
    limit = np.iinfo(np.int64).max // factor
    scaled = np.clip(numbers, -limit, limit) * factor if factor > 1 else numbers // divisor
    return pa.array(scaled, mask=np.asarray(times.is_null()) if times.null_count else None)


def _unit_of(kind: pa.DataType) -> str:
    if pa.types.is_date64(kind):
        return "ms"
    if pa.types.is_date32(kind):
        return "day"
    assert pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind), kind
    return kind.unit


_SCALES = {"day": (86_400 * 10**6, 1), "s": (10**6, 1), "ms": (10**3, 1), "us": (1, 1), "ns": (1, 10**3)}
