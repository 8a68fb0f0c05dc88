"""How timestamps are written in logs: one kernel for each family of layouts.

Each takes the bytes, the place to look at and the end of the line, and returns the microseconds since 1970, whether
these are in UTC or in a zone that the text does not name, and where the timestamp ends. What is out of range (a 13th
month, a 30th of February) is no timestamp.
"""

from typing import Final

import numpy as np

from coprlake.kernel import I64Array, U8Array, cold_kernel, i64, kernel

NONE, NAIVE, ABSOLUTE = 0, 1, 2
"""No timestamp; one without a zone; one that says its zone."""

Found = tuple[int, int, int]
"""Microseconds since 1970, one of the three kinds, and where it ends."""

YEAR, LATEST = 0, 1
"""Where `memory` holds the year of timestamps without one, and their latest possible value."""

DAY_MICROS: Final = 86_400_000_000
NO_DATE: Final = -(1 << 62)
_NO_ZONE: Final = 1 << 20
_COLON, _BLANK, _DASH, _SLASH, _DOT, _COMMA, _PLUS, _ZERO = 58, 32, 45, 47, 46, 44, 43, 48
_FIRST_EPOCH, _LAST_EPOCH = 1_000_000_000, 4_102_444_800  # 2001 (ten digits) to 2100: others are no times

_MONTHS: Final = np.frombuffer(b"janfebmaraprmayjunjulaugsepoctnovdec", np.uint8).astype(np.int64)
_MONTH_DAYS: Final = np.array([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


@kernel
def is_digit(byte: np.uint8) -> bool:
    """Whether the byte is an ASCII digit."""
    return bool(_ZERO <= byte <= 57)


@kernel
def is_letter(byte: np.uint8) -> bool:
    """Whether the byte is an ASCII letter."""
    return 97 <= (i64(byte) | 32) <= 122


@kernel
def number_at(data: U8Array, i: int, end: int, count: int) -> int:
    """``int(data[i:i + count])``, or -1 where these are not `count` digits before `end`."""
    if i + count > end:
        return -1
    value = 0
    for k in range(i, i + count):
        if not is_digit(data[k]):
            return -1
        value = value * 10 + i64(data[k]) - _ZERO
    return value


@kernel
def month_at(data: U8Array, i: int, end: int) -> int:
    """The month whose English abbreviation stands at `i`, 1 to 12, or 0."""
    if i + 3 > end:
        return 0
    first, second, third = i64(data[i]) | 32, i64(data[i + 1]) | 32, i64(data[i + 2]) | 32
    for month in range(12):
        if _MONTHS[3 * month] == first and _MONTHS[3 * month + 1] == second and _MONTHS[3 * month + 2] == third:
            return month + 1
    return 0


@kernel
def date_micros(year: int, month: int, day: int) -> int:
    """Midnight of the day in microseconds since 1970, or `NO_DATE`: Hinnant's days_from_civil."""
    if not (1900 <= year <= 2200 and 1 <= month <= 12 and 1 <= day <= _MONTH_DAYS[month - 1]):
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
def clock_at(data: U8Array, i: int, end: int) -> tuple[int, int]:
    """``HH:MM:SS`` with or without a fraction: microseconds since midnight, or -1, and where it ends."""
    if i + 8 > end or data[i + 2] != _COLON or data[i + 5] != _COLON:
        return -1, i
    hours, minutes, seconds = number_at(data, i, end, 2), number_at(data, i + 3, end, 2), number_at(data, i + 6, end, 2)
    if not (0 <= hours < 24 and 0 <= minutes < 60 and 0 <= seconds <= 60):  # 60 is a leap second
        return -1, i
    micros = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
    stop = i + 8
    if stop + 1 < end and (data[stop] == _DOT or data[stop] == _COMMA) and is_digit(data[stop + 1]):
        stop += 1
        scale = 100_000
        while stop < end and is_digit(data[stop]):
            micros += scale * (i64(data[stop]) - _ZERO)
            scale //= 10
            stop += 1
    elif stop < end and is_digit(data[stop]):
        return -1, i
    return micros, stop


@kernel
def _is_utc_at(data: U8Array, i: int, end: int) -> bool:
    """Whether the word at `i` is UTC or GMT."""
    if i + 3 > end or (i + 3 < end and is_letter(data[i + 3])):
        return False
    if data[i] == 85:
        return bool(data[i + 1] == 84 and data[i + 2] == 67)
    return bool(data[i] == 71 and data[i + 1] == 77 and data[i + 2] == 84)


@kernel
def zone_at(data: U8Array, i: int, end: int) -> tuple[int, int]:
    """Minutes east of UTC, or `_NO_ZONE`, and where the zone ends: ``Z``, ``+02``, ``+0200``, ``+02:00``, ``UTC``.

    A blank may stand before it, if the offset is one that a place on earth could have.
    """
    if i < end and (i64(data[i]) | 32) == 122 and (i + 1 == end or not is_letter(data[i + 1])):
        return 0, i + 1
    sign = i + 1 if i < end and data[i] == _BLANK else i
    if _is_utc_at(data, sign, end):
        return 0, sign + 3
    if sign + 3 > end or (data[sign] != _PLUS and data[sign] != _DASH):
        return _NO_ZONE, i
    hours = number_at(data, sign + 1, end, 2)
    stop = sign + 3
    minutes = 0
    if stop < end and data[stop] == _COLON:
        minutes = number_at(data, stop + 1, end, 2)
        stop += 3
    elif stop < end and is_digit(data[stop]):
        minutes = number_at(data, stop, end, 2)
        stop += 2
    elif sign > i:
        return _NO_ZONE, i
    if not (0 <= hours <= 15 and 0 <= minutes < 60) or (stop < end and is_digit(data[stop])):
        return _NO_ZONE, i
    if sign > i and minutes % 15 != 0:
        return _NO_ZONE, i
    east = hours * 60 + minutes
    return -east if data[sign] == _DASH else east, stop


@kernel
def _joined(date: int, clock: int, data: U8Array, i: int, end: int) -> Found:
    """The timestamp of a date and a time of day that is followed by what stands at `i`."""
    if date == NO_DATE or clock < 0:
        return 0, NONE, i
    east, stop = zone_at(data, i, end)
    if east == _NO_ZONE:
        return date + clock, NAIVE, i
    return date + clock - east * 60_000_000, ABSOLUTE, stop


@kernel
def _yearless(month: int, day: int, clock: int, stop: int, memory: I64Array) -> Found:
    """The timestamp in the year that is remembered, or in the one before if that lies too late or has no such day."""
    year = i64(memory[YEAR])
    for back in range(9):  # eight years may pass without a 29th of February
        date = date_micros(year - back, month, day)
        if date != NO_DATE and date + clock <= memory[LATEST]:
            return date + clock, NAIVE, stop
        if memory[LATEST] == np.iinfo(np.int64).max:
            break  # the year was given: it is that or none
    return 0, NONE, stop


@cold_kernel
def iso_at(data: U8Array, i: int, end: int) -> Found:
    """``2024-05-06T07:08:09.123+02:00`` and its relatives: ``/`` or ``.`` in the date, a blank before the time."""
    if i + 16 > end or data[i + 4] != data[i + 7] or data[i + 10] == _COLON:
        return 0, NONE, i
    if data[i + 4] != _DASH and data[i + 4] != _SLASH and data[i + 4] != _DOT:
        return 0, NONE, i
    if (i64(data[i + 10]) | 32) != 116 and data[i + 10] != _BLANK:
        return 0, NONE, i
    date = date_micros(number_at(data, i, end, 4), number_at(data, i + 5, end, 2), number_at(data, i + 8, end, 2))
    clock, stop = clock_at(data, i + 11, end)
    if clock < 0 and data[i + 13] == _COLON and (i + 16 == end or data[i + 16] != _COLON):
        hours, minutes = number_at(data, i + 11, end, 2), number_at(data, i + 14, end, 2)
        stop = i + 16
        if 0 <= hours < 24 and 0 <= minutes < 60 and (stop == end or not is_digit(data[stop])):
            clock = (hours * 60 + minutes) * 60_000_000
    return _joined(date, clock, data, stop, end)


@cold_kernel
def two_digits_at(data: U8Array, i: int, end: int, memory: I64Array) -> Found:
    """Spark's ``24/05/06 07:08:09``; Android's ``05-06 07:08:09.123`` and the like, which have no year."""
    if i + 14 > end:
        return 0, NONE, i
    separator = data[i + 2]
    if separator != _DASH and separator != _SLASH and separator != _DOT:
        return 0, NONE, i
    first, second = number_at(data, i, end, 2), number_at(data, i + 3, end, 2)
    if data[i + 5] == _BLANK:
        clock, stop = clock_at(data, i + 6, end)
        if clock < 0 or first < 0 or second < 0:
            return 0, NONE, i
        return _yearless(first, second, clock, stop, memory)
    if data[i + 5] != _SLASH or separator != _SLASH or data[i + 8] != _BLANK or first < 0:
        return 0, NONE, i
    date = date_micros((2000 if first < 70 else 1900) + first, second, number_at(data, i + 6, end, 2))
    clock, stop = clock_at(data, i + 9, end)
    return _joined(date, clock, data, stop, end)


@cold_kernel
def day_month_at(data: U8Array, i: int, digits: int, end: int) -> Found:
    """``06/May/2024:07:08:09 +0200`` of access logs, ``06-May-2024 07:08:09.123``, ``6 May 2024 07:08:09``."""
    after = i + digits + 4  # behind the month
    if after + 13 > end or data[after - 4] != data[after]:
        return 0, NONE, i
    if data[after] != _SLASH and data[after] != _DASH and data[after] != _BLANK:
        return 0, NONE, i
    if data[after + 5] != _COLON and data[after + 5] != _BLANK:
        return 0, NONE, i
    month, year = month_at(data, after - 3, end), number_at(data, after + 1, end, 4)
    clock, stop = clock_at(data, after + 6, end)
    return _joined(date_micros(year, month, number_at(data, i, end, digits)), clock, data, stop, end)


@cold_kernel
def month_day_at(data: U8Array, i: int, month: int, end: int, memory: I64Array) -> Found:
    """Syslog's ``May  6 07:08:09``, which has no year; with one behind it (Apache, ``date``) or before the time."""
    if i + 14 > end or data[i + 3] != _BLANK:
        return 0, NONE, i
    j = i + 5 if data[i + 4] == _BLANK else i + 4
    digits = 2 if is_digit(data[j + 1]) else 1
    day = number_at(data, j, end, digits)
    j += digits
    if day < 0 or data[j] != _BLANK:
        return 0, NONE, i
    year = number_at(data, j + 1, end, 4)
    if year > 0 and j + 5 < end and data[j + 5] == _BLANK:
        clock, stop = clock_at(data, j + 6, end)
        return _joined(date_micros(year, month, day), clock, data, stop, end)
    clock, stop = clock_at(data, j + 1, end)
    if clock < 0:
        return 0, NONE, i
    in_utc = stop < end and data[stop] == _BLANK and _is_utc_at(data, stop + 1, end)
    j = stop + 4 if in_utc else stop
    if j + 5 <= end and data[j] == _BLANK and (j + 5 == end or not (is_digit(data[j + 5]) or is_letter(data[j + 5]))):
        year = number_at(data, j + 1, end, 4)
        date = date_micros(year, month, day)
        if year >= 1970 and date != NO_DATE:
            return date + clock, ABSOLUTE if in_utc else NAIVE, j + 5
    return _yearless(month, day, clock, stop, memory)


@kernel
def _loose_clock_at(data: U8Array, i: int, end: int) -> tuple[int, int]:
    """HealthApp's ``7:8:9:12``, whose numbers have no leading zeros: as `clock_at`."""
    micros, scale, stop = 0, 3_600_000_000, i
    for part in range(4):
        digits, value = 0, 0
        while stop < end and digits < 3 and is_digit(data[stop]):
            value = value * 10 + i64(data[stop]) - _ZERO
            digits += 1
            stop += 1
        if digits == 0 or (part == 0 and value > 23) or (0 < part < 3 and value > 59):
            return -1, i
        micros += value * (1000 if part == 3 else scale)
        scale //= 60
        if part < 3:
            if stop == end or data[stop] != _COLON:
                return -1, i
            stop += 1
    return micros, stop


@cold_kernel
def compact_at(data: U8Array, i: int, digits: int, end: int) -> Found:
    """``20240506-07:08:09:123``, ``20240506T070809Z``, HDFS's ``240506 070809``, MySQL's ``240506 07:08:09``."""
    j = i + digits
    if j + 7 > end or (data[j] != _BLANK and (digits != 8 or (data[j] != _DASH and data[j] != 84))):
        return 0, NONE, i
    first = number_at(data, i, end, digits - 4)
    year = first if digits == 8 else first + (2000 if first < 70 else 1900)
    date = date_micros(year, number_at(data, j - 4, end, 2), number_at(data, j - 2, end, 2))
    clock, stop = clock_at(data, j + 1, end)
    if clock < 0 or (digits == 8 and stop < end and data[stop] == _COLON):
        clock, stop = _loose_clock_at(data, j + 1, end) if digits == 8 else (-1, j)
    if clock < 0:
        time = number_at(data, j + 1, end, 6)
        stop = j + 7
        if time < 0 or time >= 240_000 or time // 100 % 100 > 59 or time % 100 > 60:
            return 0, NONE, i
        if stop < end and (is_digit(data[stop]) or data[stop] == _DOT):
            return 0, NONE, i
        clock = (time // 10_000 * 3600 + time // 100 % 100 * 60 + time % 100) * 1_000_000
    return _joined(date, clock, data, stop, end)


@cold_kernel
def epoch_at(data: U8Array, i: int, digits: int, end: int) -> Found:
    """Seconds (perhaps with a fraction), milli-, micro- or nanoseconds since 1970, told apart by their length."""
    value = number_at(data, i, end, digits)
    if digits == 10:
        value *= 1_000_000
    elif digits == 13:
        value *= 1000
    elif digits == 19:
        value //= 1000
    if not _FIRST_EPOCH <= value // 1_000_000 < _LAST_EPOCH:
        return 0, NONE, i
    stop = i + digits
    if digits == 10 and stop + 1 < end and data[stop] == _DOT and is_digit(data[stop + 1]):
        stop += 1
        scale = 100_000
        while stop < end and is_digit(data[stop]):
            value += scale * (i64(data[stop]) - _ZERO)
            scale //= 10
            stop += 1
    if stop < end and (is_letter(data[stop]) or data[stop] == _DOT or data[stop] == _DASH or data[stop] == 95):
        return 0, NONE, i  # a part of an address, a name or a number
    return value, ABSOLUTE, stop


@cold_kernel
def glog_at(data: U8Array, i: int, end: int, memory: I64Array) -> Found:
    """Google's ``E0506 07:08:09.123456``: a level, month, day, and no year."""
    month, day = number_at(data, i + 1, end, 2), number_at(data, i + 3, end, 2)
    if month < 0 or day < 0 or i + 14 > end or data[i + 5] != _BLANK:
        return 0, NONE, i
    clock, stop = clock_at(data, i + 6, end)
    if clock < 0:
        return 0, NONE, i
    return _yearless(month, day, clock, stop, memory)
