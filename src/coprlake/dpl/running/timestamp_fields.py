"""Kernels for timestamps: a format is a list of fields, run one behind the other."""

from typing import Final

from coprlake.dpl.compiling import opcodes as op
from coprlake.dpl.compiling.program import Code
from coprlake.dpl.running.numerals import LATEST, VALUE, YEAR
from coprlake.dpl.syntax import time_formats as formats
from coprlake.kernel import I64Array, U8Array, cold_kernel, i64, kernel
from coprlake.text.byte_classes import BLANK, CASE_BIT, COMMA, DOT, is_digit
from coprlake.text.civil_time import (
    DAY_NAMES,
    MINUTE_MICROS,
    MONTH_NAMES,
    NO_DATE,
    SECOND_MICROS,
    SHORT_NAME_BYTES,
    date_micros,
    latest_date,
    month_at,
    name_at,
    weekday_at,
)
from coprlake.text.digits import digits_at, fraction_micros_at
from coprlake.text.zones import is_utc_at, offset_at

_Z: Final = 90
_YEARS_BACK: Final = 8
"""How many years may pass without a 29th of February."""


@kernel
def _zone_at(data: U8Array, at: int, end: int) -> tuple[int, int]:
    """Minutes east of UTC and where it ends, or -1: ``Z``, ``UTC``, ``GMT``, ``+02``, ``+0200``, ``+02:00``."""
    if at < end and data[at] == _Z:
        return 0, at + 1
    return (0, at + 3) if is_utc_at(data, at, end) else offset_at(data, at, end)


@kernel
def _number_at(data: U8Array, at: int, end: int, least: int, most: int) -> tuple[int, int]:
    """The number of `least` to `most` digits at a place, and where it ends, or -1."""
    if least == 1 and at + 1 < end and data[at] == BLANK and is_digit(data[at + 1]):
        at += 1  # a blank in place of a leading zero
        most = 1
    value, stop = digits_at(data, at, end, most)
    return value, stop if stop - at >= least else -1


@kernel
def _fraction_at(data: U8Array, at: int, end: int, least: int, most: int) -> tuple[int, int]:
    """The microseconds of a fraction of `least` to `most` digits, and where it ends, or -1."""
    micros, stop = fraction_micros_at(data, at, end, most)
    return micros, stop if stop - at >= least else -1


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
        elif kind == formats.MONTH_NAME:
            month = month_at(data, at, end)
            at = at + SHORT_NAME_BYTES if month > 0 else -1
        elif kind == formats.MONTH_FULL_NAME:
            month, at = name_at(data, at, end, MONTH_NAMES)
        elif kind == formats.DAY_NAME:
            at = at + SHORT_NAME_BYTES if weekday_at(data, at, end) > 0 else -1
        elif kind == formats.DAY_FULL_NAME:
            number, at = name_at(data, at, end, DAY_NAMES)
        elif kind == formats.ZONE:
            east, at = _zone_at(data, at, end)
        elif kind == formats.FRACTION:
            micros, at = _fraction_at(data, at, end, least, most)
        elif kind == formats.OPTIONAL_FRACTION:
            if at + 1 < end and (data[at] == DOT or data[at] == COMMA) and is_digit(data[at + 1]):
                micros, at = _fraction_at(data, at + 1, end, least, most)
        elif kind == formats.HALF_DAY:
            if at + 2 > end or (i64(data[at + 1]) | CASE_BIT) != 109:
                return -1
            letter = i64(data[at]) | CASE_BIT
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
    clock = ((hours * 60 + minutes) * 60 + seconds) * SECOND_MICROS + micros
    if year >= 0:
        date = date_micros(year, month, day)
    elif code.rows[pc, op.C] != 0:
        last = i64(out[YEAR])
        date = latest_date(last - _YEARS_BACK, last, month, day, clock, i64(out[LATEST]))
    else:
        date = 0  # a time of day
    if date == NO_DATE:
        return -1
    out[VALUE] = date + clock - east * MINUTE_MICROS
    return at
