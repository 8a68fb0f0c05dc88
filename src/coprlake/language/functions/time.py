"""Times and durations."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from coprlake.language.functions.kernels import kernel
from coprlake.language.functions.numbers import whole
from coprlake.language.functions.registry import FUNCTIONS, function, internal
from coprlake.language.plan import Apply, Constant
from coprlake.language.sql.dialect import Dialect
from coprlake.language.times import Months
from coprlake.language.types import TIMESTAMP, Type

GROUP: Final = "time"

Sql = Sequence[exp.Expression]


def _moments(times: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    mask = np.asarray(times.is_null().to_numpy(zero_copy_only=False), np.bool_)
    return times.fill_null(0).to_numpy(zero_copy_only=False).astype("datetime64[us]"), mask


def round_to_months(times: pa.Array, months: int = 1) -> pa.Array:
    """The begin of the month, quarter or year of each time."""
    moments, mask = _moments(times)
    number = moments.astype("datetime64[M]").astype(np.int64)
    starts = (number // months * months).astype("datetime64[M]").astype("datetime64[us]")
    return pa.array(starts.astype(np.int64), mask=mask)


def add_months(times: pa.Array, months: int = 1) -> pa.Array:
    """The same day and time of another month, or its last day."""
    moments, mask = _moments(times)
    month = moments.astype("datetime64[M]")
    since = moments - month.astype("datetime64[us]")
    target = month + np.timedelta64(months, "M")
    last = (target + np.timedelta64(1, "M")).astype("datetime64[D]") - np.timedelta64(1, "D")
    day = since.astype("timedelta64[D]")
    moved = np.minimum(target.astype("datetime64[D]") + day, last).astype("datetime64[us]") + (since - day)
    return pa.array(moved.astype(np.int64), mask=mask)


def _months(run: object) -> object:
    def sql(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
        count = node.arguments[1]
        assert isinstance(count, Constant)
        return d.kernel(kernel(run, (pa.int64(),), pa.int64(), months=int(count.value)), args[0])  # type: ignore[arg-type]

    return sql


FUNCTIONS["round to months"] = internal("round to months", _months(round_to_months), TIMESTAMP)  # type: ignore[arg-type]
FUNCTIONS["add months"] = internal("add months", _months(add_months), TIMESTAMP)  # type: ignore[arg-type]


def _bin_type(types: Sequence[Type | None]) -> Type | None:
    return types[0]


@function(
    "bin(value: number|timestamp|duration, interval: const number|duration, "
    "at: const number|timestamp|duration = null) -> number|timestamp|duration",
    "The value rounded down to a multiple of the interval, counted from 0 or 1970, or from `at`.",
    group=GROUP,
    example='data record(a = toTimestamp("2026-01-31T12:34:56Z"), b = 17) | fields x = bin(a, 15m), y = bin(b, 5)',
    gives=[{"x": "2026-01-31T12:30:00Z", "y": 15}],
    result=_bin_type,
)
def _bin(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    value, step = node.arguments[0], node.arguments[1]
    assert value is not None
    assert isinstance(step, Constant)
    if isinstance(step.value, Months):
        return d.kernel(kernel(round_to_months, (pa.int64(),), pa.int64(), months=step.value.count), args[0])
    origin = args[2] if len(args) > 2 and args[2] is not None else None
    if value.type.kind == "double":
        shifted = args[0] if origin is None else d.minus(args[0], origin)
        slot = whole(d, "floor", d.binary(exp.Div, shifted, d.double(float(step.value))))
        start = d.times(slot, d.double(float(step.value)))
        return start if origin is None else d.plus(start, origin.copy())
    length = max(1, int(step.value) // (1000 if value.type.kind == "timestamp" else 1))
    shifted = args[0] if origin is None else d.minus(args[0], origin)
    start = d.times(d.floor_divide(shifted, d.long(length)), d.long(length))
    return start if origin is None else d.plus(start, origin.copy())
