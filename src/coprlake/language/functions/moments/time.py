"""Times and durations."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from coprlake.errors import UsageError
from coprlake.language.functions.array_functions import array_function
from coprlake.language.functions.registry import FUNCTIONS, function, internal
from coprlake.language.functions.values.numbers import whole
from coprlake.language.plan import Apply, Constant
from coprlake.language.sql.dialect import Dialect
from coprlake.language.times import Months
from coprlake.language.types import DOUBLE, DURATION, LONG, TIMESTAMP, Type

GROUP: Final = "time"

Sql = Sequence[exp.Expression]


def _moments(times: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    mask = np.asarray(times.is_null().to_numpy(zero_copy_only=False), np.bool_)
    return times.fill_null(0).to_numpy(zero_copy_only=False).astype("datetime64[us]"), mask


def round_to_months(times: pa.Array, months: int = 1) -> pa.Array:
    """The start of the month, quarter or year of each time."""
    moments, mask = _moments(times)
    number = moments.astype("datetime64[M]").astype(np.int64)
    starts = (number // months * months).astype("datetime64[M]").astype("datetime64[us]")
    return pa.array(starts.astype(np.int64), mask=mask)


def add_months(times: pa.Array, months: int = 1) -> pa.Array:
    """The same day and time in another month, or that month's last day."""
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
        return d.apply(array_function(run, (pa.int64(),), pa.int64(), months=int(count.value)), args[0])  # type: ignore[arg-type]

    return sql


FUNCTIONS["round to months"] = internal("round to months", _months(round_to_months), TIMESTAMP)  # type: ignore[arg-type]
FUNCTIONS["add months"] = internal("add months", _months(add_months), TIMESTAMP)  # type: ignore[arg-type]


def _bin_type(types: Sequence[Type | None]) -> Type | None:
    value, interval, at = types
    assert value is not None
    assert interval is not None
    origin = at or interval
    if value.is_number:
        fits = interval.is_number and origin.is_number
        return (DOUBLE if DOUBLE in types else LONG) if fits else None
    if value == TIMESTAMP:
        return value if interval == DURATION and origin in (DURATION, TIMESTAMP) else None
    return value if interval == origin == DURATION else None


def _check_interval(interval: object) -> None:
    if interval.count < 1 if isinstance(interval, Months) else interval <= 0:  # type: ignore[operator]
        raise UsageError("the interval of bin must be greater than 0")


def _check_at(at: object) -> None:
    if isinstance(at, Months):
        raise UsageError("at cannot be in months, quarters or years; use a time or a duration of fixed length")


@function(
    "bin(value: number|timestamp|duration, interval: const number|duration, "
    "at: const number|timestamp|duration = null) -> number|timestamp|duration",
    "The value rounded down to a multiple of the interval, counted from 0 or 1970, or from "
    "`at`. For times, `at` is a time or a duration, so `at: 12h` makes days that start at "
    "noon.",
    group=GROUP,
    example='data record(a = toTimestamp("2026-01-31T12:34:56Z"), b = 17) | fields x = bin(a, 15m), y = bin(b, 5), '
    "z = bin(a, 1d, at: 14h)",
    gives=[{"x": "2026-01-31T12:30:00Z", "y": 15, "z": "2026-01-30T14:00:00Z"}],
    result=_bin_type,
    checks={"interval": _check_interval, "at": _check_at},
)
def _bin(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    step = node.arguments[1]
    assert isinstance(step, Constant)
    origin = _origin(node)
    if isinstance(step.value, Months):
        return _months_bin(d, args[0], step.value.count, int(origin))
    if node.type == DOUBLE:
        length, zero = d.double(float(step.value)), d.double(float(origin))
        value = d.cast(args[0], DOUBLE)
        slot = whole(d, "floor", d.binary(exp.Div, value if origin == 0 else d.minus(value, zero), length))
        start = d.times(slot, length.copy())
        return start if origin == 0 else d.plus(start, zero.copy())
    length = d.long(max(1, int(step.value) // (1000 if node.type == TIMESTAMP else 1)))
    shifted = args[0] if origin == 0 else d.minus(args[0], d.long(int(origin)))
    start = d.times(d.floor_divide(shifted, length), length.copy())
    return start if origin == 0 else d.plus(start, d.long(int(origin)))


def _origin(node: Apply) -> int | float:
    """The start of a slot, in the unit of the value; for whole numbers the first one from 0."""
    at, step = node.arguments[2], node.arguments[1]
    assert isinstance(step, Constant)
    if not isinstance(at, Constant) or at.value is None:
        return 0
    origin = at.value // 1000 if node.type == TIMESTAMP and at.type == DURATION else at.value
    if node.type == DOUBLE or isinstance(step.value, Months):
        return origin
    return int(origin) % max(1, int(step.value) // (1000 if node.type == TIMESTAMP else 1))


def _months_bin(d: Dialect, value: exp.Expression, months: int, origin: int) -> exp.Expression:
    rounding = array_function(round_to_months, (pa.int64(),), pa.int64(), months=months)
    if origin == 0:
        return d.apply(rounding, value)
    return d.plus(d.apply(rounding, d.minus(value, d.long(origin))), d.long(origin))
