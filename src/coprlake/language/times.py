"""Times and durations as numbers: microseconds since 1970, nanoseconds, months."""

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

NANOSECONDS: Final = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
    "w": 7 * 86_400 * 10**9,
}
MONTHS: Final = {"M": 1, "q": 3, "y": 12}
DAY_US: Final = 86_400 * 10**6
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SPAN = re.compile(r"\s*(\S.*?)\s*/\s*(\S.*?)\s*")
_FACTORS: Final = {"h": 24, "m": 60, "s": 60, "ms": 1000, "us": 1000, "ns": 1000}


@dataclass(frozen=True, slots=True)
class Months:
    """A duration in months, whose length depends on the calendar."""

    count: int


def length(count: int, unit: str) -> int | Months:
    """A duration in nanoseconds, or in months."""
    return Months(count * MONTHS[unit]) if unit in MONTHS else count * NANOSECONDS[unit]


def add(moment: int, duration: int | Months, sign: int = 1) -> int:
    """A time (in microseconds) plus a duration, or minus it if `sign` is -1."""
    if isinstance(duration, Months):
        return add_months(moment, sign * duration.count)
    return moment + sign * duration // 1000


def add_months(moment: int, months: int) -> int:
    """The same day and time in another month, or that month's last day."""
    when = as_datetime(moment)
    year, month = divmod(when.year * 12 + when.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise ValueError(f"year {year}")
    day = min(when.day, calendar.monthrange(year, month + 1)[1])
    return as_microseconds(when.replace(year=year, month=month + 1, day=day))


def as_datetime(moment: int) -> datetime:
    """Microseconds as a datetime."""
    return _EPOCH + timedelta(microseconds=moment)


def as_microseconds(when: datetime) -> int:
    """A datetime as microseconds; UTC if it has no zone."""
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return (when - _EPOCH) // timedelta(microseconds=1)


def check_alignment(count: int, unit: str) -> str | None:
    """The problem with rounding to `count` units, or None."""
    whole = _FACTORS.get(unit)
    if count == 1:
        return None
    if whole is None:
        return f"@{count}{unit}: only hours and shorter units take a number"
    return None if count > 0 and whole % count == 0 else f"@{count}{unit}: {whole} is not a multiple of {count}"


def fixed_step(count: int, unit: str) -> tuple[int, int] | None:
    """The step to round to, in microseconds, and a time at which a step starts; None for months."""
    if unit in MONTHS:
        return None
    if unit.startswith("w"):
        first = int(unit[1:] or 1) % 7  # 0 and 7 are Sunday, 1 is Monday
        return 7 * DAY_US, (first - 4) % 7 * DAY_US  # 1970 began on a Thursday
    return max(1, count * NANOSECONDS[unit] // 1000), 0


def align(moment: int, count: int, unit: str) -> int:
    """Round a time down to `count` units."""
    step = fixed_step(count, unit)
    if step is not None:
        return moment - (moment - step[1]) % step[0]
    when = as_datetime(moment)
    months = MONTHS[unit]
    month = (when.month - 1) // months * months + 1
    return as_microseconds(datetime(when.year, month, 1, tzinfo=UTC))


def parse_time(text: str) -> int | None:
    """Parse a time in ISO format to microseconds; None if it is not valid."""
    try:
        return as_microseconds(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        return None


def parse_timeframe(text: str) -> tuple[int, int] | None:
    """Parse ``start/end``, both in ISO format; None if it is not valid."""
    found = _SPAN.fullmatch(text)
    if found is None:
        return None
    since, until = parse_time(found[1]), parse_time(found[2])
    return None if since is None or until is None else (since, until)
