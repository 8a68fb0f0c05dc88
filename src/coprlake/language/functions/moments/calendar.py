"""Times in the calendar: their parts, formatting them, and building them from parts."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from coprlake.errors import UsageError
from coprlake.language.functions.array_functions import array_function, call_together
from coprlake.language.functions.registry import function
from coprlake.language.functions.text.spelling import FIRST_US, LAST_US, in_range
from coprlake.language.functions.text.text_matching import constant_at
from coprlake.language.functions.values.conversion import kind_at, scaled, truncated
from coprlake.language.plan import Apply
from coprlake.language.sql.dialect import Dialect
from coprlake.language.times import DAY_US, NANOSECONDS
from coprlake.language.types import DOUBLE, LONG, TIMEFRAME, member_names

GROUP: Final = "time"
_TIME: Final = 'data record(a = toTimestamp("2026-01-31T12:34:56.789Z")) | fields '
_PIECE = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_MONTHS: Final = [
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
]
_DAYS: Final = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

Sql = Sequence[exp.Expression]
Lowering = Callable[[Dialect, Apply, Sql], exp.Expression]
Numbers = npt.NDArray[np.int64]


def check_zone(zone: str) -> None:
    """Reject an unknown time zone."""
    try:
        pc.local_timestamp(pa.array([0], pa.timestamp("us", tz=zone)))
    except (pa.ArrowException, ValueError) as error:
        raise UsageError(f"unknown time zone {zone!r}; write, for example, Europe/Vienna or UTC") from error


def local_times(times: pa.Array, zone: str = "UTC") -> pa.Array:
    """The local times in a zone, as if they were UTC; null outside the years 1 to 9999."""
    local = pc.local_timestamp(in_range(times).cast(pa.timestamp("us", tz=zone)))
    return in_range(local.cast(pa.int64()))


def _local(d: Dialect, node: Apply, args: Sql, place: int) -> exp.Expression:
    zone = str(constant_at(node, place))
    if zone == "UTC":
        is_known = d.both(
            d.binary(exp.GTE, args[0], d.long(FIRST_US)), d.binary(exp.LTE, args[0].copy(), d.long(LAST_US))
        )
        return d.case((is_known, args[0].copy()), default=d.null(LONG))
    return d.apply(array_function(local_times, (pa.int64(),), pa.int64(), zone=zone), args[0])


# Parts of a time


def parts_of(times: pa.Array, part: str = "year") -> pa.Array:
    """A part of each time; see `_PARTS`."""
    return pc.call_function(_PARTS[part], [times.cast(pa.timestamp("us"))], _OPTIONS.get(part)).cast(pa.int64())


_PARTS: Final = {
    "year": "year",
    "month": "month",
    "day": "day",
    "day of week": "day_of_week",
    "day of year": "day_of_year",
    "week": "iso_week",
}
_OPTIONS: Final[dict[str, Any]] = {"day of week": pc.DayOfWeekOptions(count_from_zero=False, week_start=1)}


def _part(name: str, part: str, doc: str, gives: int) -> None:
    def sql(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
        times = _local(d, node, args, 1)
        return d.apply(array_function(parts_of, (pa.int64(),), pa.int64(), part=part), times)

    _put_part(name, doc, gives, sql)


def _clock(name: str, doc: str, gives: int, size: int, count: int) -> None:
    def sql(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
        number = d.floor_divide(_local(d, node, args, 1), d.long(size))
        rest = d.call("mod", number, d.long(count))
        return d.call("mod", d.plus(rest, d.long(count)), d.long(count))  # never negative, even before 1970

    _put_part(name, doc, gives, sql)


def _put_part(name: str, doc: str, gives: int, sql: Lowering) -> None:
    function(
        f'{name}(time: timestamp, timezone: const string = "UTC") -> long',
        doc,
        group=GROUP,
        example=f"{_TIME}x = {name}(a)",
        gives=[{"x": gives}],
        checks={"timezone": check_zone},
    )(sql)


_part("getYear", "year", "The year.", 2026)
_part("getMonth", "month", "The month, from 1 to 12.", 1)
_part("getDayOfMonth", "day", "The day of the month, starting at 1.", 31)
_part("getDayOfWeek", "day of week", "The day of the week, from 1 for Monday to 7 for Sunday.", 6)
_part("getDayOfYear", "day of year", "The day of the year, starting at 1.", 31)
_part("getWeekOfYear", "week", "The ISO 8601 week of the year: week 1 is the one with the first Thursday.", 5)
_clock("getHour", "The hour, from 0 to 23.", 12, 3600 * 10**6, 24)
_clock("getMinute", "The minute, from 0 to 59.", 34, 60 * 10**6, 60)
_clock("getSecond", "The second, from 0 to 59.", 56, 10**6, 60)


# Times as text


def _pieces(pattern: str) -> list[tuple[str, int]]:
    """The parts of a pattern: letters with their count, or plain text with -1.

    Raises:
        UsageError: a letter is unknown, or a quote is not closed.
    """
    found: list[tuple[str, int]] = []
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            raise UsageError(f"the format {pattern!r} has a quote that is not closed")
        quoted, letter = piece.groups()
        text = piece.group()
        if letter is None:
            found.append((text if quoted is None else quoted.replace("''", "'") or "'", -1))
        elif letter not in _LETTERS:
            known = " ".join(_LETTERS)
            raise UsageError(f"the format {pattern!r} has the unknown letter {letter}; expected one of {known}")
        else:
            found.append((letter, len(text)))
        at = piece.end()
    return found


class _Moments:
    """Local times, split into parts."""

    def __init__(self, utc: pa.Array, zone: str) -> None:
        local = local_times(utc, zone)
        self.mask = local.is_null().to_numpy(zero_copy_only=False)
        self.micros = local.fill_null(0).to_numpy(zero_copy_only=False)
        self.offsets = (self.micros - np.where(self.mask, 0, utc.fill_null(0).to_numpy(zero_copy_only=False))) // 10**6
        self._stamps = local.fill_null(0)

    def part(self, name: str) -> Numbers:
        """A part of each time; see `_PARTS`."""
        return parts_of(self._stamps, name).to_numpy(zero_copy_only=False)

    def clock(self, size: int, count: int) -> Numbers:
        """The value of a unit of `size` microseconds that wraps at `count`."""
        return self.micros // size % count


def _digits(numbers: Numbers, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _named(names: Sequence[str], numbers: Numbers, count: int) -> pa.Array:
    shown = names if count >= 4 else [name[:3] for name in names]
    return pa.array(shown).take(pa.array(numbers - 1))


def _offset(moments: _Moments, count: int, *, colon: bool, has_z: bool, minutes: bool = True) -> pa.Array:
    size = np.abs(moments.offsets)
    sign = pc.if_else(pa.array(moments.offsets < 0), pa.scalar("-"), pa.scalar("+"))
    hours, rest = _digits(size // 3600, 2), _digits(size // 60 % 60, 2)
    if not minutes:
        rest = pc.if_else(pa.array(size // 60 % 60 > 0), rest, pa.scalar(""))
    text = pc.binary_join_element_wise(sign, hours, ":" if colon else "", rest, "")
    return pc.if_else(pa.array(has_z & (moments.offsets == 0)), pa.scalar("Z"), text)


def _year(moments: _Moments, count: int) -> pa.Array:
    years = moments.part("year")
    return _digits(years % 100 if count == 2 else years, count)


def _month(moments: _Moments, count: int) -> pa.Array:
    months = moments.part("month")
    return _named(_MONTHS, months, count) if count >= 3 else _digits(months, count)


def _fraction(moments: _Moments, count: int) -> pa.Array:
    return pc.utf8_slice_codeunits(pc.utf8_rpad(_digits(moments.clock(1, 10**6), 6), count, "0"), 0, count)


def _half(moments: _Moments, count: int) -> pa.Array:
    return pc.if_else(pa.array(moments.clock(3600 * 10**6, 24) < 12), pa.scalar("AM"), pa.scalar("PM"))


_LETTERS: Final[dict[str, Callable[[_Moments, int], pa.Array]]] = {
    "y": _year,
    "M": _month,
    "d": lambda m, count: _digits(m.part("day"), count),
    "D": lambda m, count: _digits(m.part("day of year"), count),
    "E": lambda m, count: _named(_DAYS, m.part("day of week"), count),
    "H": lambda m, count: _digits(m.clock(3600 * 10**6, 24), count),
    "h": lambda m, count: _digits((m.clock(3600 * 10**6, 24) + 11) % 12 + 1, count),
    "m": lambda m, count: _digits(m.clock(60 * 10**6, 60), count),
    "s": lambda m, count: _digits(m.clock(10**6, 60), count),
    "S": _fraction,
    "a": _half,
    "Z": lambda m, count: _offset(m, count, colon=False, has_z=False),
    "X": lambda m, count: _offset(m, count, colon=count >= 3, has_z=True, minutes=count >= 2),
}


def formatted(times: pa.Array, pattern: str = "", zone: str = "UTC") -> pa.Array:
    """Times formatted by a pattern; null for null and outside the years 1 to 9999."""
    moments = _Moments(times, zone)
    parts = [text if count < 0 else _LETTERS[text](moments, count) for text, count in _pieces(pattern)]
    none = pc.if_else(pa.array(moments.mask), pa.scalar(None, pa.string()), pa.scalar(""))
    return pc.binary_join_element_wise(none, *parts, "")


@function(
    'formatTimestamp(time: timestamp, format: const string = "yyyy-MM-dd HH:mm:ss", timezone: const string = "UTC") '
    "-> string",
    "The time as text. In the format, y is the year, M the month, d the day, D the day of the "
    "year, E the day of the week, H the hour, h the hour of 12, a AM or PM, m the minute, s "
    "the second, S the fraction, Z and X the offset; repeat a letter for more digits. MMM and "
    "EEE are short names, MMMM and EEEE long ones. Text in single quotes is literal.",
    group=GROUP,
    example=_TIME + """x = formatTimestamp(a), y = formatTimestamp(a, format: "EEE d MMM yyyy 'at' h:mm a", """
    'timezone: "Europe/Vienna")',
    gives=[{"x": "2026-01-31 12:34:56", "y": "Sat 31 Jan 2026 at 1:34 PM"}],
    checks={"format": _pieces, "timezone": check_zone},
)
def _format_timestamp(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    pattern, zone = str(constant_at(node, 1)), str(constant_at(node, 2))
    return d.apply(array_function(formatted, (pa.int64(),), pa.string(), pattern=pattern, zone=zone), args[0])


# Times to and from numbers


def _from_unix(name: str, unit: str, number: int, sql: Lowering) -> None:
    function(
        f"timestampFromUnix{name}(value: long) -> timestamp",
        f"The time this many {unit} after the start of 1970; null if it is out of range.",
        group=GROUP,
        example=f"data record(a = {number}) | fields x = timestampFromUnix{name}(a)",
        gives=[{"x": "2026-01-31T12:00:00Z"}],
    )(sql)


def _to_unix(name: str, unit: str, number: int, sql: Lowering) -> None:
    function(
        f"unix{name}FromTimestamp(time: timestamp) -> long",
        f"The number of {unit} from the start of 1970 to the time.",
        group=GROUP,
        example=f"{_TIME}x = unix{name}FromTimestamp(a)",
        gives=[{"x": number}],
    )(sql)


_from_unix("Seconds", "seconds", 1_769_860_800, lambda d, node, args: scaled(d, args[0], 10**6))
_from_unix("Millis", "milliseconds", 1_769_860_800_000, lambda d, node, args: scaled(d, args[0], 1000))
_from_unix("Nanos", "nanoseconds", 1_769_860_800 * 10**9, lambda d, node, args: d.floor_divide(args[0], d.long(1000)))
_to_unix("Seconds", "seconds", 1_769_862_896, lambda d, node, args: d.floor_divide(args[0], d.long(10**6)))
_to_unix("Millis", "milliseconds", 1_769_862_896_789, lambda d, node, args: d.floor_divide(args[0], d.long(1000)))
_to_unix("Nanos", "nanoseconds", 1_769_862_896_789 * 10**6, lambda d, node, args: scaled(d, args[0], 1000))


@function(
    "timestamp(year: long, month: long, day: long, hour: long = 0, minute: long = 0, second: long = 0, "
    "millis: long = 0, micros: long = 0) -> timestamp",
    "The time with this date and time of day, in UTC; null if there is no such time.",
    group=GROUP,
    example="data record(a = 2026) | fields x = timestamp(year: a, month: 1, day: 31, hour: 12), "
    "y = timestamp(year: a, month: 2, day: 30)",
    gives=[{"x": "2026-01-31T12:00:00Z", "y": None}],
)
def _timestamp(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return call_together(d, times_of, (pa.int64(),) * 8, pa.int64(), *args)


def times_of(*columns: pa.Array) -> pa.Array:
    """Times from year, month, day, hour, minute, second, milliseconds and microseconds; null if not valid."""
    mask = np.zeros(len(columns[0]), np.bool_)
    numbers: list[Numbers] = []
    for column, (least, most) in zip(columns, _RANGES, strict=True):
        values = column.fill_null(least).to_numpy(zero_copy_only=False)
        mask |= column.is_null().to_numpy(zero_copy_only=False) | (values < least) | (values > most)
        numbers.append(np.clip(values, least, most))
    year, month, day, hour, minute, second, millis, micros = numbers
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    mask |= days.astype("datetime64[M]") != months
    clock = ((hour * 60 + minute) * 60 + second) * 10**6 + millis * 1000 + micros
    return pa.array(days.astype(np.int64) * DAY_US + clock, mask=mask)


_RANGES: Final = ((1, 9999), (1, 12), (1, 31), (0, 23), (0, 59), (0, 59), (0, 999), (0, 999_999))


def _check_unit(unit: str) -> None:
    if unit not in NANOSECONDS:
        raise UsageError(f"unit {unit!r} is unknown or has no fixed length; expected one of {' '.join(NANOSECONDS)}")


@function(
    'duration(value: number, unit: const string = "s") -> duration',
    "A number of units as a duration: `ns`, `us`, `ms`, `s`, `m`, `h`, `d` or `w`; null beyond 292 years.",
    group=GROUP,
    example='data record(a = 90, b = 1.5) | fields x = duration(a, unit: "m"), y = duration(b)',
    gives=[{"x": 5_400_000_000_000, "y": 1_500_000_000}],
    checks={"unit": _check_unit},
)
def _duration(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    size = NANOSECONDS[str(constant_at(node, 1))]
    if kind_at(node, 0) == DOUBLE:
        return truncated(d, d.times(args[0], d.double(float(size))))
    return scaled(d, args[0], size)


@function(
    "timeframe(from: timestamp, to: timestamp) -> timeframe",
    "The time from a start to an end, as a record with the members `start` and `end`.",
    group=GROUP,
    example='data record(a = toTimestamp("2026-01-31T12:00:00Z")) | fields x = timeframe(from: a, to: a + 1h)',
    gives=[{"x": {"start": "2026-01-31T12:00:00Z", "end": "2026-01-31T13:00:00Z"}}],
)
def _timeframe(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.pack(member_names(TIMEFRAME), args)
