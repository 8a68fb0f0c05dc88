"""Dates of the Gregorian calendar as microseconds since 1970, and the names of its months and days."""

from typing import Final

import numpy as np

from coprlake.kernel import I64Array, U8Array, i64, kernel
from coprlake.text.byte_classes import CASE_BIT
from coprlake.text.calendar_names import DAYS, MONTHS

SECOND_MICROS: Final = 1_000_000
MINUTE_MICROS: Final = 60_000_000
DAY_MICROS: Final = 86_400_000_000

NO_DATE: Final = -(1 << 62)
"""What stands for a day that does not exist."""

SHORT_NAME_BYTES: Final = 3
_NAME_WIDTH: Final = 12
_MONTH_DAYS: Final = np.array([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


def _padded(names: list[str]) -> U8Array:
    lower = b"".join(name.lower().encode().ljust(_NAME_WIDTH, b"\0") for name in names)
    return np.frombuffer(lower, np.uint8).reshape(-1, _NAME_WIDTH)


def _short_keys(names: list[str]) -> I64Array:
    """The first three letters of each name as one number."""
    return np.array([int.from_bytes(name[:SHORT_NAME_BYTES].lower().encode()) for name in names], np.int64)


MONTH_NAMES: Final = _padded(MONTHS)
DAY_NAMES: Final = _padded(DAYS)
"""Names as `name_at` takes them: in lower case, filled up with zeros."""

_SHORT_MONTHS: Final = _short_keys(MONTHS)
_SHORT_DAYS: Final = _short_keys(DAYS)


@kernel
def date_micros(year: int, month: int, day: int) -> int:
    """``datetime(year, month, day)`` in microseconds since 1970, or `NO_DATE`; years are 1 to 9999.

    Hinnant's days_from_civil.
    """
    if not (1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= _MONTH_DAYS[month - 1]):
        return NO_DATE
    if month == 2 and day == 29 and (year % 4 != 0 or (year % 100 == 0 and year % 400 != 0)):
        return NO_DATE
    shifted_year = year - 1 if month <= 2 else year
    shifted_month = month + 9 if month <= 2 else month - 3
    era = shifted_year // 400
    year_of_era = shifted_year - era * 400
    day_of_year = (153 * shifted_month + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return (era * 146_097 + day_of_era - 719_468) * DAY_MICROS


@kernel
def latest_date(first_year: int, last_year: int, month: int, day: int, clock: int, latest: int) -> int:
    """The last such day from `first_year` to `last_year` whose time of day `clock` is not after `latest`, or `NO_DATE`.

    It tells the year of a timestamp that has none. Eight years may pass without a 29th of February.
    """
    year = last_year
    while year >= first_year:
        date = date_micros(year, month, day)
        if date != NO_DATE and date + clock <= latest:
            return date
        year -= 1
    return NO_DATE


@kernel
def name_at(data: U8Array, at: int, end: int, names: U8Array) -> tuple[int, int]:
    """The number of the name at a place, from 1 on, in any case, and where it ends; 0 and -1 if there is none."""
    for name in range(len(names)):
        i = 0
        while i < _NAME_WIDTH and names[name, i] != 0:
            if at + i >= end or (i64(data[at + i]) | CASE_BIT) != names[name, i]:
                break
            i += 1
        else:
            return name + 1, at + i
    return 0, -1


@kernel
def _short_key_at(data: U8Array, at: int) -> int:
    """Three letters in lower case as one number."""
    return (i64(data[at]) | CASE_BIT) << 16 | (i64(data[at + 1]) | CASE_BIT) << 8 | i64(data[at + 2]) | CASE_BIT


@kernel
def month_at(data: U8Array, at: int, end: int) -> int:
    """The month whose abbreviation is at `at`, in any case, 1 to 12, or 0."""
    if at + SHORT_NAME_BYTES > end:
        return 0
    key = _short_key_at(data, at)
    for month in range(12):
        if _SHORT_MONTHS[month] == key:
            return month + 1
    return 0


@kernel
def weekday_at(data: U8Array, at: int, end: int) -> int:
    """The day of the week whose abbreviation is at `at`, in any case, 1 (Monday) to 7, or 0."""
    if at + SHORT_NAME_BYTES > end:
        return 0
    key = _short_key_at(data, at)
    for day in range(7):
        if _SHORT_DAYS[day] == key:
            return day + 1
    return 0
