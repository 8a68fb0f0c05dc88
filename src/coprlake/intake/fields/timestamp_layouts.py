"""How timestamps are written in logs: one kernel for each family of layouts.

Each takes the bytes, the place to look at and the end of the line, and returns the microseconds since 1970, whether
these are in UTC or in a zone that the text does not name, and where the timestamp ends. What is out of range (a 13th
month, a 30th of February) is no timestamp.
"""

from typing import Final

import numpy as np

from coprlake.kernel import I64Array, U8Array, cold_kernel, i64, kernel
from coprlake.text.byte_classes import (
    BLANK,
    CASE_BIT,
    COLON,
    COMMA,
    DASH,
    DOT,
    SLASH,
    UNDERSCORE,
    is_digit,
    is_letter,
)
from coprlake.text.civil_time import MINUTE_MICROS, NO_DATE, SECOND_MICROS, date_micros, latest_date, month_at
from coprlake.text.digits import digits_at, fraction_micros_at, number_at
from coprlake.text.zones import is_utc_at, offset_at

NONE, NAIVE, ABSOLUTE = 0, 1, 2
"""No timestamp; one without a zone; one that says its zone."""

FoundTimestamp = tuple[int, int, int]
"""Microseconds since 1970, one of the three kinds, and where it ends."""

YEAR, LATEST = 0, 1
"""Where `memory` holds the year of timestamps without one, and their latest possible value."""
NO_LATEST: Final = np.iinfo(np.int64).max
"""The latest possible value where the year is given."""

_NO_ZONE: Final = 1 << 20
_FIRST_YEAR, _LAST_YEAR = 1900, 2200
_YEARS_BACK: Final = 8
"""How many years may pass without a 29th of February."""
_FIRST_EPOCH, _LAST_EPOCH = 1_000_000_000, 4_102_444_800  # 2001 (ten digits) to 2100: others are no times
_MOST_DIGITS: Final = 1 << 20  # of a fraction: as many as there are


@kernel
def date_of(year: int, month: int, day: int) -> int:
    """As `date_micros`, for the years that logs can be of."""
    return date_micros(year, month, day) if _FIRST_YEAR <= year <= _LAST_YEAR else NO_DATE


@kernel
def clock_at(data: U8Array, i: int, end: int) -> tuple[int, int]:
    """``HH:MM:SS`` with or without a fraction: microseconds since midnight, or -1, and where it ends."""
    if i + 8 > end or data[i + 2] != COLON or data[i + 5] != COLON:
        return -1, i
    hours, minutes, seconds = number_at(data, i, end, 2), number_at(data, i + 3, end, 2), number_at(data, i + 6, end, 2)
    if not (0 <= hours < 24 and 0 <= minutes < 60 and 0 <= seconds <= 60):  # 60 is a leap second
        return -1, i
    micros = ((hours * 60 + minutes) * 60 + seconds) * SECOND_MICROS
    stop = i + 8
    if stop + 1 < end and (data[stop] == DOT or data[stop] == COMMA) and is_digit(data[stop + 1]):
        fraction, stop = fraction_micros_at(data, stop + 1, end, _MOST_DIGITS)
        micros += fraction
    elif stop < end and is_digit(data[stop]):
        return -1, i
    return micros, stop


@kernel
def _is_utc_at(data: U8Array, i: int, end: int) -> bool:
    """Whether the word at `i` is UTC or GMT."""
    return is_utc_at(data, i, end) and not (i + 3 < end and is_letter(data[i + 3]))


@kernel
def zone_at(data: U8Array, i: int, end: int) -> tuple[int, int]:
    """Minutes east of UTC, or `_NO_ZONE`, and where the zone ends: ``Z``, ``+02``, ``+0200``, ``+02:00``, ``UTC``.

    It ends there: no letter follows a name, and no digit or half an offset an offset. A blank may be before it, if the
    offset has minutes, and is one that a place on earth could have.
    """
    if i < end and (i64(data[i]) | CASE_BIT) == 122 and (i + 1 == end or not is_letter(data[i + 1])):
        return 0, i + 1
    first = i + 1 if i < end and data[i] == BLANK else i
    if _is_utc_at(data, first, end):
        return 0, first + 3
    east, stop = offset_at(data, first, end)
    if stop < 0:
        return _NO_ZONE, i
    has_minutes = stop > first + 3
    if stop < end and (is_digit(data[stop]) or (data[stop] == COLON and not has_minutes)):
        return _NO_ZONE, i
    if first > i and (not has_minutes or east % 15 != 0):
        return _NO_ZONE, i
    return east, stop


@kernel
def _joined(date: int, clock: int, data: U8Array, i: int, end: int) -> FoundTimestamp:
    """The timestamp of a date and a time of day that is followed by what stands at `i`."""
    if date == NO_DATE or clock < 0:
        return 0, NONE, i
    east, stop = zone_at(data, i, end)
    if east == _NO_ZONE:
        return date + clock, NAIVE, i
    return date + clock - east * MINUTE_MICROS, ABSOLUTE, stop


@kernel
def _yearless(month: int, day: int, clock: int, stop: int, memory: I64Array) -> FoundTimestamp:
    """The timestamp in the year that is remembered, or in one before if that lies too late or has no such day.

    If the year was given, it is that or none.
    """
    year, latest = i64(memory[YEAR]), i64(memory[LATEST])
    back = 0 if latest == NO_LATEST else _YEARS_BACK
    date = latest_date(max(year - back, _FIRST_YEAR), min(year, _LAST_YEAR), month, day, clock, latest)
    return (0, NONE, stop) if date == NO_DATE else (date + clock, NAIVE, stop)


@cold_kernel
def iso_at(data: U8Array, i: int, end: int) -> FoundTimestamp:
    """``2024-05-06T07:08:09.123+02:00`` and its relatives: ``/`` or ``.`` in the date, a blank before the time."""
    if i + 16 > end or data[i + 4] != data[i + 7] or data[i + 10] == COLON:
        return 0, NONE, i
    if data[i + 4] != DASH and data[i + 4] != SLASH and data[i + 4] != DOT:
        return 0, NONE, i
    if (i64(data[i + 10]) | CASE_BIT) != 116 and data[i + 10] != BLANK:
        return 0, NONE, i
    date = date_of(number_at(data, i, end, 4), number_at(data, i + 5, end, 2), number_at(data, i + 8, end, 2))
    clock, stop = clock_at(data, i + 11, end)
    if clock < 0 and data[i + 13] == COLON and (i + 16 == end or data[i + 16] != COLON):
        hours, minutes = number_at(data, i + 11, end, 2), number_at(data, i + 14, end, 2)
        stop = i + 16
        if 0 <= hours < 24 and 0 <= minutes < 60 and (stop == end or not is_digit(data[stop])):
            clock = (hours * 60 + minutes) * MINUTE_MICROS
    return _joined(date, clock, data, stop, end)


@cold_kernel
def two_digits_at(data: U8Array, i: int, end: int, memory: I64Array) -> FoundTimestamp:
    """Spark's ``24/05/06 07:08:09``; Android's ``05-06 07:08:09.123`` and the like, which have no year."""
    if i + 14 > end:
        return 0, NONE, i
    separator = data[i + 2]
    if separator != DASH and separator != SLASH and separator != DOT:
        return 0, NONE, i
    first, second = number_at(data, i, end, 2), number_at(data, i + 3, end, 2)
    if data[i + 5] == BLANK:
        clock, stop = clock_at(data, i + 6, end)
        if clock < 0 or first < 0 or second < 0:
            return 0, NONE, i
        return _yearless(first, second, clock, stop, memory)
    if data[i + 5] != SLASH or separator != SLASH or data[i + 8] != BLANK or first < 0:
        return 0, NONE, i
    date = date_of((2000 if first < 70 else 1900) + first, second, number_at(data, i + 6, end, 2))
    clock, stop = clock_at(data, i + 9, end)
    return _joined(date, clock, data, stop, end)


@cold_kernel
def day_month_at(data: U8Array, i: int, digits: int, end: int) -> FoundTimestamp:
    """``06/May/2024:07:08:09 +0200`` of access logs, ``06-May-2024 07:08:09.123``, ``6 May 2024 07:08:09``."""
    after = i + digits + 4  # behind the month
    if after + 13 > end or data[after - 4] != data[after]:
        return 0, NONE, i
    if data[after] != SLASH and data[after] != DASH and data[after] != BLANK:
        return 0, NONE, i
    if data[after + 5] != COLON and data[after + 5] != BLANK:
        return 0, NONE, i
    month, year = month_at(data, after - 3, end), number_at(data, after + 1, end, 4)
    clock, stop = clock_at(data, after + 6, end)
    return _joined(date_of(year, month, number_at(data, i, end, digits)), clock, data, stop, end)


@cold_kernel
def month_day_at(data: U8Array, i: int, month: int, end: int, memory: I64Array) -> FoundTimestamp:
    """Syslog's ``May  6 07:08:09``, which has no year; with one behind it (Apache, ``date``) or before the time."""
    if i + 14 > end or data[i + 3] != BLANK:
        return 0, NONE, i
    j = i + 5 if data[i + 4] == BLANK else i + 4
    digits = 2 if is_digit(data[j + 1]) else 1
    day = number_at(data, j, end, digits)
    j += digits
    if day < 0 or data[j] != BLANK:
        return 0, NONE, i
    year = number_at(data, j + 1, end, 4)
    if year > 0 and j + 5 < end and data[j + 5] == BLANK:
        clock, stop = clock_at(data, j + 6, end)
        return _joined(date_of(year, month, day), clock, data, stop, end)
    clock, stop = clock_at(data, j + 1, end)
    if clock < 0:
        return 0, NONE, i
    in_utc = stop < end and data[stop] == BLANK and _is_utc_at(data, stop + 1, end)
    j = stop + 4 if in_utc else stop
    if j + 5 <= end and data[j] == BLANK and (j + 5 == end or not (is_digit(data[j + 5]) or is_letter(data[j + 5]))):
        year = number_at(data, j + 1, end, 4)
        date = date_of(year, month, day)
        if year >= 1970 and date != NO_DATE:
            return date + clock, ABSOLUTE if in_utc else NAIVE, j + 5
    return _yearless(month, day, clock, stop, memory)


@kernel
def _loose_clock_at(data: U8Array, i: int, end: int) -> tuple[int, int]:
    """HealthApp's ``7:8:9:12``, whose numbers have no leading zeros: as `clock_at`."""
    micros, scale, stop = 0, 3_600_000_000, i
    for part in range(4):
        first = stop
        value, stop = digits_at(data, first, end, 3)
        if stop == first or (part == 0 and value > 23) or (0 < part < 3 and value > 59):
            return -1, i
        micros += value * (1000 if part == 3 else scale)
        scale //= 60
        if part < 3:
            if stop == end or data[stop] != COLON:
                return -1, i
            stop += 1
    return micros, stop


@cold_kernel
def compact_at(data: U8Array, i: int, digits: int, end: int) -> FoundTimestamp:
    """``20240506-07:08:09:123``, ``20240506T070809Z``, HDFS's ``240506 070809``, MySQL's ``240506 07:08:09``."""
    j = i + digits
    if j + 7 > end or (data[j] != BLANK and (digits != 8 or (data[j] != DASH and data[j] != 84))):
        return 0, NONE, i
    first = number_at(data, i, end, digits - 4)
    year = first if digits == 8 else first + (2000 if first < 70 else 1900)
    date = date_of(year, number_at(data, j - 4, end, 2), number_at(data, j - 2, end, 2))
    clock, stop = clock_at(data, j + 1, end)
    if clock < 0 or (digits == 8 and stop < end and data[stop] == COLON):
        clock, stop = _loose_clock_at(data, j + 1, end) if digits == 8 else (-1, j)
    if clock < 0:
        time = number_at(data, j + 1, end, 6)
        stop = j + 7
        if time < 0 or time >= 240_000 or time // 100 % 100 > 59 or time % 100 > 60:
            return 0, NONE, i
        if stop < end and (is_digit(data[stop]) or data[stop] == DOT):
            return 0, NONE, i
        clock = (time // 10_000 * 3600 + time // 100 % 100 * 60 + time % 100) * SECOND_MICROS
    return _joined(date, clock, data, stop, end)


@cold_kernel
def epoch_at(data: U8Array, i: int, digits: int, end: int) -> FoundTimestamp:
    """Seconds (perhaps with a fraction), milli-, micro- or nanoseconds since 1970, told apart by their length."""
    value = number_at(data, i, end, digits)
    if digits == 10:
        value *= SECOND_MICROS
    elif digits == 13:
        value *= 1000
    elif digits == 19:
        value //= 1000
    if not _FIRST_EPOCH <= value // 1_000_000 < _LAST_EPOCH:
        return 0, NONE, i
    stop = i + digits
    if digits == 10 and stop + 1 < end and data[stop] == DOT and is_digit(data[stop + 1]):
        fraction, stop = fraction_micros_at(data, stop + 1, end, _MOST_DIGITS)
        value += fraction
    if stop < end and (is_letter(data[stop]) or data[stop] == DOT or data[stop] == DASH or data[stop] == UNDERSCORE):
        return 0, NONE, i  # a part of an address, a name or a number
    return value, ABSOLUTE, stop


@cold_kernel
def glog_at(data: U8Array, i: int, end: int, memory: I64Array) -> FoundTimestamp:
    """Google's ``E0506 07:08:09.123456``: a level, month, day, and no year."""
    month, day = number_at(data, i + 1, end, 2), number_at(data, i + 3, end, 2)
    if month < 0 or day < 0 or i + 14 > end or data[i + 5] != BLANK:
        return 0, NONE, i
    clock, stop = clock_at(data, i + 6, end)
    if clock < 0:
        return 0, NONE, i
    return _yearless(month, day, clock, stop, memory)
