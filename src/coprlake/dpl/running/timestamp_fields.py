"""Kernels for timestamps: a format is a list of fields, run one behind the other."""

from typing import Final

import numpy as np

from coprlake.dpl.compiling import opcodes as op
from coprlake.dpl.compiling.program import Code
from coprlake.dpl.running.numerals import LATEST, VALUE, YEAR, digit_of
from coprlake.dpl.syntax import time_formats as formats
from coprlake.kernel import I64Array, U8Array, cold_kernel, i64, kernel

_MICROS: Final = 1_000_000
_DAY_MICROS: Final = 86_400_000_000
_MINUTE_MICROS: Final = 60_000_000
_NO_DATE: Final = -(1 << 62)
_MONTH_DAYS: Final = np.array([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
_NAME_WIDTH: Final = 12
_BLANK, _PLUS, _MINUS, _COLON, _DOT, _COMMA = 32, 43, 45, 58, 46, 44
_NO_ZONE: Final = 1 << 20


def _padded(names: list[str]) -> U8Array:
    lower = b"".join(name.lower().encode().ljust(_NAME_WIDTH, b"\0") for name in names)
    return np.frombuffer(lower, np.uint8).reshape(-1, _NAME_WIDTH)


_MONTHS: Final = _padded(formats.MONTHS)
_DAYS: Final = _padded(formats.DAYS)


@kernel
def date_micros(year: int, month: int, day: int) -> int:
    """Midnight of the day in microseconds since 1970, or `_NO_DATE`: Hinnant's days_from_civil."""
    if not (1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= _MONTH_DAYS[month - 1]):
        return _NO_DATE
    if month == 2 and day == 29 and (year % 4 != 0 or (year % 100 == 0 and year % 400 != 0)):
        return _NO_DATE
    shifted_year = year - 1 if month <= 2 else year
    shifted_month = month + 9 if month <= 2 else month - 3
    era = shifted_year // 400
    year_of_era = shifted_year - era * 400
    day_of_year = (153 * shifted_month + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return (era * 146_097 + day_of_era - 719_468) * _DAY_MICROS


@kernel
def _name_at(data: U8Array, at: int, end: int, names: U8Array, whole: bool) -> tuple[int, int]:
    """The number of the name at a place, from 1 on, and where it ends; of the first three letters if not `whole`."""
    for name in range(len(names)):
        i = 0
        while i < _NAME_WIDTH and names[name, i] != 0 and (whole or i < 3):
            if at + i >= end or (i64(data[at + i]) | 32) != names[name, i]:
                break
            i += 1
        else:
            return name + 1, at + i
    return 0, -1


@kernel
def _zone_at(data: U8Array, at: int, end: int) -> tuple[int, int]:
    """Minutes east of UTC and where it ends, or -1: ``Z``, ``UTC``, ``GMT``, ``+02``, ``+0200``, ``+02:00``."""
    if at >= end:
        return 0, -1
    if data[at] == 90:
        return 0, at + 1
    if at + 3 <= end and (
        (data[at] == 85 and data[at + 1] == 84 and data[at + 2] == 67)
        or (data[at] == 71 and data[at + 1] == 77 and data[at + 2] == 84)
    ):
        return 0, at + 3
    if data[at] != _PLUS and data[at] != _MINUS:
        return 0, -1
    two = i64(2)  # a literal would have another kernel compiled for it
    hours, stop = _number_at(data, at + 1, end, two, two)
    if stop < 0 or hours > 15:
        return 0, -1
    colon = 1 if stop < end and data[stop] == _COLON else 0
    minutes, behind = _number_at(data, stop + colon, end, two, two)
    if behind < 0:
        minutes, behind = 0, stop
    elif minutes > 59:
        return 0, -1
    east = hours * 60 + minutes
    return -east if data[at] == _MINUS else east, behind


@kernel
def _number_at(data: U8Array, at: int, end: int, least: int, most: int) -> tuple[int, int]:
    """The number of `least` to `most` digits at a place, and where it ends, or -1."""
    if least == 1 and at + 1 < end and data[at] == _BLANK and digit_of(data[at + 1]) >= 0:
        at += 1  # a blank in place of a leading zero
        most = 1
    value, count = 0, 0
    while at < end and count < most:
        digit = digit_of(data[at])
        if digit < 0:
            break
        value = value * 10 + digit
        count += 1
        at += 1
    return value, at if count >= least else -1


@kernel
def _fraction_at(data: U8Array, at: int, end: int, least: int, most: int) -> tuple[int, int]:
    """Digits of a fraction as microseconds, further ones dropped, and where they end, or -1."""
    micros, scale, count = 0, 100_000, 0
    while at < end and count < most:
        digit = digit_of(data[at])
        if digit < 0:
            break
        micros += digit * scale
        scale //= 10
        count += 1
        at += 1
    return micros, at if count >= least else -1


@kernel
def _year_back(year: int, month: int, day: int, clock: int, latest: int) -> int:
    """Midnight of a date without a year: in `year`, or the last before it that has such a day not after `latest`."""
    for back in range(9):  # eight years may pass without a 29th of February
        date = date_micros(year - back, month, day)
        if date != _NO_DATE and date + clock <= latest:
            return date
    return _NO_DATE


@cold_kernel
def moment_at(code: Code, pc: int, data: U8Array, at: int, end: int, out: I64Array) -> int:
    """The timestamp of a format: microseconds since 1970, in UTC if the text names a zone, and where it ends, or -1."""
    first, count = i64(code.rows[pc, op.A]), i64(code.rows[pc, op.B])
    year, month, day, half = -1, 1, 1, -1
    hours, minutes, seconds, micros, east = 0, 0, 0, 0, 0
    for row in range(first, first + count):
        kind, least, most = i64(code.rows[row, op.KIND]), i64(code.rows[row, op.A]), i64(code.rows[row, op.B])
        number = 0
        if kind == formats.TEXT:
            text, size = i64(code.rows[row, op.C]), i64(code.rows[row, op.D])
            for i in range(size):
                if at + i >= end or data[at + i] != code.pool[text + i]:
                    return -1
            at += size
        elif kind == formats.MONTH_NAME or kind == formats.MONTH_FULL_NAME:
            month, at = _name_at(data, at, end, _MONTHS, kind == formats.MONTH_FULL_NAME)
        elif kind == formats.DAY_NAME or kind == formats.DAY_FULL_NAME:
            number, at = _name_at(data, at, end, _DAYS, kind == formats.DAY_FULL_NAME)
        elif kind == formats.ZONE:
            east, at = _zone_at(data, at, end)
        elif kind == formats.FRACTION:
            micros, at = _fraction_at(data, at, end, least, most)
        elif kind == formats.OPTIONAL_FRACTION:
            if at + 1 < end and (data[at] == _DOT or data[at] == _COMMA) and digit_of(data[at + 1]) >= 0:
                micros, at = _fraction_at(data, at + 1, end, least, most)
        elif kind == formats.HALF_DAY:
            if at + 2 > end or (i64(data[at + 1]) | 32) != 109:
                return -1
            letter = i64(data[at]) | 32
            if letter != 97 and letter != 112:
                return -1
            half = 1 if letter == 112 else 0
            at += 2
        else:
            number, at = _number_at(data, at, end, least, most)
            if kind == formats.YEAR:
                year = number
            elif kind == formats.SHORT_YEAR:
                year = number + (2000 if number < 70 else 1900)
            elif kind == formats.MONTH:
                month = number
            elif kind == formats.DAY:
                day = number
            elif kind == formats.HOUR:
                hours = number
            elif kind == formats.HALF_DAY_HOUR:
                if number < 1 or number > 12:
                    return -1
                hours = number % 12
            elif kind == formats.MINUTE:
                minutes = number
            else:
                seconds = number
        if at < 0:
            return -1
    if half == 1 and hours < 12:
        hours += 12
    if hours > 23 or minutes > 59 or seconds > 60:  # 60 is a leap second
        return -1
    clock = ((hours * 60 + minutes) * 60 + seconds) * _MICROS + micros
    if year >= 0:
        date = date_micros(year, month, day)
    elif code.rows[pc, op.C] != 0:
        date = _year_back(i64(out[YEAR]), month, day, clock, i64(out[LATEST]))
    else:
        date = 0  # a time of day
    if date == _NO_DATE:
        return -1
    out[VALUE] = date + clock - east * _MINUTE_MICROS
    return at
