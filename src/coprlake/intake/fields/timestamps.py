"""When it happened: the timestamp near the start of each line, and numbers and texts that are timestamps."""

import re
import time
import zoneinfo
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.errors import UsageError
from coprlake.intake.fields.timestamp_layouts import (
    ABSOLUTE,
    LATEST,
    NAIVE,
    NO_LATEST,
    NONE,
    YEAR,
    FoundTimestamp,
    compact_at,
    day_month_at,
    epoch_at,
    glog_at,
    iso_at,
    month_day_at,
    two_digits_at,
)
from coprlake.kernel import I64Array, U8Array, i64, kernel, long_kernel
from coprlake.text.byte_classes import BLANK, DOT, is_digit
from coprlake.text.civil_time import DAY_MICROS, MINUTE_MICROS, SECOND_MICROS, month_at
from coprlake.text.nearest_words import hint

WINDOW_BYTES: Final = 64
"""A timestamp begins within so many bytes of its line."""

_LONGEST_BYTES: Final = 40
_MOST_DIGITS: Final = 20  # one more than any timestamp has in a row


def _class_of(byte: int) -> int:
    """0: no timestamp begins so; 1: a digit; 2: a letter that begins a month or a level of glog."""
    if chr(byte).isdigit() and byte < 128:
        return 1
    return 2 if byte < 128 and chr(byte).lower() in "jfmasondiwe" else 0


_CLASSES: Final = np.array([_class_of(byte) for byte in range(256)], np.uint8)
_JOINS: Final = np.array(
    [byte >= 128 or chr(byte).isalnum() or chr(byte) in "._-:/@+%#~" for byte in range(256)], np.bool_
)
"""Bytes after which no timestamp begins: the next byte belongs to the same name or number."""


class Stamps(NamedTuple):
    """What `find_timestamps` found in each line."""

    micros: I64Array  # since 1970
    kinds: U8Array  # NONE, NAIVE or ABSOLUTE
    firsts: I64Array  # where it begins
    stops: I64Array  # where it ends; the start of the line if there is none

    def part(self, index: slice | npt.NDArray[np.bool_]) -> "Stamps":
        """Those of some of the lines."""
        return Stamps(self.micros[index], self.kinds[index], self.firsts[index], self.stops[index])


@kernel
def _digit_count(data: U8Array, i: int, end: int) -> int:
    """How many digits are at `i`, up to one more than a timestamp can have in a row."""
    count = 0
    while i + count < end and count < _MOST_DIGITS and is_digit(data[i + count]):
        count += 1
    return count


@kernel
def _is_epoch_place(data: U8Array, start: int, i: int, digits: int, end: int) -> bool:
    """At the start of the line, perhaps in a bracket; or behind one word and before the date (BGL, Thunderbird)."""
    if i <= start + 1:
        return True
    j = i + digits
    if digits != 10 or j + 11 > end or data[j] != BLANK or data[j + 5] != DOT or data[j + 8] != DOT:
        return False
    for k in range(start, i - 1):
        if data[k] == BLANK:
            return False
    return True


@kernel
def timestamp_at(data: U8Array, start: int, i: int, end: int, memory: I64Array) -> FoundTimestamp:
    """The timestamp that begins at `i` of the line from `start` to `end`."""
    if not is_digit(data[i]):
        month = month_at(data, i, end)
        if month > 0:
            return month_day_at(data, i, month, end, memory)
        letter = data[i]
        if i <= start + 1 and (letter == 73 or letter == 87 or letter == 69 or letter == 70):
            return glog_at(data, i, end, memory)
        return 0, NONE, i
    digits = _digit_count(data, i, end)
    if digits == 4:
        return iso_at(data, i, end)
    if digits <= 2:
        if month_at(data, i + digits + 1, end) > 0:
            return day_month_at(data, i, digits, end)
        return two_digits_at(data, i, end, memory) if digits == 2 else (0, NONE, i)
    if digits == 6 or digits == 8:
        return compact_at(data, i, digits, end)
    if (digits == 10 or digits == 13 or digits == 16 or digits == 19) and _is_epoch_place(data, start, i, digits, end):
        return epoch_at(data, i, digits, end)
    return 0, NONE, i


@kernel
def _find(data: U8Array, start: int, end: int, memory: I64Array) -> tuple[int, int, int, int]:
    """As `timestamp_at` for the first place in the line that has one, and that place."""
    last = min(end, start + WINDOW_BYTES)
    for i in range(start, last):
        if _CLASSES[data[i]] > 0 and (i == start or not _JOINS[data[i - 1]]):
            micros, kind, stop = timestamp_at(data, start, i, end, memory)
            if kind != NONE:
                return micros, kind, stop, i
    return 0, NONE, start, start


@long_kernel
def find_timestamps(data: U8Array, starts: I64Array, ends: I64Array, memory: I64Array, out: Stamps) -> int:
    """The first timestamp in each ``data[starts[i]:ends[i]]``; how many lines have none.

    What one line has says nothing about the next: a file may be read from any line on. Cost: 40 to 70 ns a line, and
    80 for one without.
    """
    missing = 0
    for line in range(len(starts)):
        start, end = i64(starts[line]), i64(ends[line])
        end = min(end, start + WINDOW_BYTES + _LONGEST_BYTES)
        micros, kind, stop, i = _find(data, start, end, memory)
        missing += kind == NONE
        out.micros[line] = micros
        out.kinds[line] = kind
        out.firsts[line] = i
        out.stops[line] = stop
    return missing


def _offset_micros(zone: str) -> int | None:
    """Of ``+02:00`` or ``-0330``; None if that is no offset but a name."""
    match = re.fullmatch(r"([+-])(\d\d):?(\d\d)?", zone)
    if not match or int(match[2]) > 15 or int(match[3] or 0) > 59:
        return None
    micros = (int(match[2]) * 60 + int(match[3] or 0)) * MINUTE_MICROS
    return -micros if match[1] == "-" else micros


class Clock:
    """Turns what is written in the logs of one zone into microseconds UTC.

    Args:
        zone: of timestamps that name none.
        year: of timestamps that have none; None for the latest that is possible.
        modified: when the logs were written last, in seconds since 1970; None for now.
    """

    def __init__(self, zone: str = "UTC", year: int | None = None, modified: float | None = None) -> None:
        self._zone = zone
        self._offset = 0 if zone.upper() in ("UTC", "Z") else _offset_micros(zone)
        if self._offset is None:
            try:
                zoneinfo.ZoneInfo(zone)
            except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
                known = (
                    hint(zone, sorted(zoneinfo.available_timezones()))
                    or "; expected one such as Europe/Vienna or +02:00"
                )
                raise UsageError(f"unknown time zone {zone!r}{known}") from error
        reference = time.time() if modified is None else modified
        latest = np.datetime64(int(reference * SECOND_MICROS) + DAY_MICROS, "us")
        self._memory = np.zeros(2, np.int64)
        self._memory[YEAR] = latest.astype("datetime64[Y]").astype(np.int64) + 1970 if year is None else year
        self._memory[LATEST] = latest.astype(np.int64) if year is None else NO_LATEST

    def stamps(self, data: U8Array, starts: I64Array, ends: I64Array) -> Stamps:
        """The timestamps of lines, those without a zone still in the zone of the logs."""
        count = len(starts)
        out = Stamps(
            np.empty(count, np.int64), np.empty(count, np.uint8), np.empty(count, np.int64), np.empty(count, np.int64)
        )
        find_timestamps(data, starts, ends, self._memory, out)
        return out

    def utc_micros(self, micros: I64Array, kinds: U8Array) -> I64Array:
        """In UTC. An hour that a change of the clock repeats means its first run; one that it skips, the time after."""
        naive = kinds == NAIVE
        if not naive.any() or self._offset == 0:
            return micros
        if self._offset is not None:
            return np.where(naive, micros - self._offset, micros)
        local = pa.array(np.where(naive, micros, 0), pa.timestamp("us"))
        moved = pc.assume_timezone(local, self._zone, ambiguous="earliest", nonexistent="latest")
        return np.where(naive, moved.cast(pa.int64()).to_numpy(), micros)


def epoch_micros(values: pa.Array) -> pa.Array:
    """Numbers as microseconds since 1970: seconds, milli-, micro- or nanoseconds by their size; else null."""
    numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    exact = values.cast(pa.int64()) if pa.types.is_integer(values.type) else None
    out = np.zeros(len(numbers), np.int64)
    known = np.zeros(len(numbers), np.bool_)
    whole = None if exact is None else exact.fill_null(0).to_numpy()
    for low, factor in ((1e8, 1e6), (1e11, 1e3), (1e14, 1.0), (1e17, 1e-3)):
        with np.errstate(invalid="ignore"):
            fits = (numbers >= low) & (numbers < min(low * 1000, 9e18))
        if whole is None:
            out[fits] = np.rint(numbers[fits] * factor).astype(np.int64)
        else:
            out[fits] = whole[fits] * int(factor) if factor >= 1 else whole[fits] // 1000
        known |= fits
    return pa.array(out, mask=~known)


__all__ = ["ABSOLUTE", "NAIVE", "NONE", "Clock", "Stamps", "epoch_micros", "find_timestamps"]
