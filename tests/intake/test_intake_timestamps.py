"""Timestamps are found in every layout, and nothing else is taken for one."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import config

from coprlake.errors import UsageError
from coprlake.intake.fields.timestamp_layouts import date_of
from coprlake.intake.fields.timestamps import NONE, Clock, epoch_micros
from coprlake.text.civil_time import NO_DATE

pytestmark = pytest.mark.kernels

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REFERENCE = datetime(2024, 7, 1, 12, tzinfo=UTC).timestamp()


def find(line: str, *, zone: str = "UTC", year: int | None = None, modified: float = REFERENCE) -> datetime | None:
    """The timestamp of one line."""
    data = np.frombuffer(line.encode() or b"\0", np.uint8)
    clock = Clock(zone, year, modified)
    stamps = clock.stamps(data, np.array([0]), np.array([len(line.encode())]))
    if stamps.kinds[0] == NONE:
        assert stamps.stops[0] == 0
        return None
    assert 0 <= stamps.firsts[0] < stamps.stops[0] <= len(line.encode())
    return EPOCH + timedelta(microseconds=int(clock.utc_micros(stamps.micros, stamps.kinds)[0]))


MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2099, 12, 31)).map(lambda moment: moment.replace(tzinfo=UTC))
PREFIXES = st.sampled_from(
    ["", "[", "INFO ", "[ERROR] ", "host-1 ", "10.1.2.3 - - [", '"', "time=", "<34>1 ", "(", "E "]
)
SUFFIXES = st.sampled_from(["", " INFO x", "] y", ", Info", "\t7", " - 12:30:00", '"', "|a"])
LAYOUTS = [
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S,%f",
    "%Y-%m-%dT%H:%M:%S.%fZ",
    "%Y/%m/%d %H:%M:%S.%f",
    "%Y.%m.%d %H:%M:%S.%f",
    "%Y-%m-%d %H:%M:%S.%f UTC",
    "%d/%b/%Y:%H:%M:%S.%f +0000",
    "%d-%b-%Y %H:%M:%S.%f",
    "%d %b %Y %H:%M:%S.%f",
    "%a %b %d %H:%M:%S.%f %Y",
    "%b %d %Y %H:%M:%S.%f",
    "%Y%m%d-%H:%M:%S.%f",
]


@pytest.mark.parametrize("layout", LAYOUTS)
@given(moment=MOMENTS, prefix=PREFIXES, suffix=SUFFIXES)
def test_layouts_with_microseconds(layout: str, moment: datetime, prefix: str, suffix: str) -> None:
    assert find(prefix + moment.strftime(layout) + suffix) == moment


WHOLE = ["%Y%m%dT%H%M%SZ", "%y/%m/%d %H:%M:%S", "%y%m%d %H%M%S", "%y%m%d %H:%M:%S", "%a %b %d %H:%M:%S UTC %Y"]


@pytest.mark.parametrize("layout", WHOLE)
@given(moment=st.datetimes(datetime(1971, 1, 1), datetime(2069, 12, 31)), prefix=st.sampled_from(["", "[", "INFO "]))
def test_layouts_of_whole_seconds(layout: str, moment: datetime, prefix: str) -> None:
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    assert find(prefix + moment.strftime(layout) + " x") == moment


@given(
    moment=MOMENTS, digits=st.integers(1, 9), east=st.integers(-14 * 60, 14 * 60), form=st.sampled_from(["", ":", " "])
)
def test_fractions_and_offsets(moment: datetime, digits: int, east: int, form: str) -> None:
    east -= east % 15 if form == " " else 0
    fraction = f"{moment.microsecond:06}000"[:digits]
    sign, size = "-" if east < 0 else "+", abs(east)
    zone = f"{' ' if form == ' ' else ''}{sign}{size // 60:02}{':' if form == ':' else ''}{size % 60:02}"
    found = find(f"{moment:%Y-%m-%dT%H:%M:%S}.{fraction}{zone} text")
    exact = moment.replace(microsecond=int(fraction.ljust(6, "0")[:6]), tzinfo=timezone(timedelta(minutes=east)))
    assert found == exact


@given(moment=st.datetimes(datetime(2023, 7, 3), datetime(2024, 7, 1)))
@example(moment=datetime(2024, 2, 29, 1, 2, 3))
def test_without_a_year_it_is_the_last_one_that_is_possible(moment: datetime) -> None:
    moment = moment.replace(tzinfo=UTC)
    whole = moment.replace(microsecond=0)
    for layout in ("%b %d %H:%M:%S", "<13>%b %d %H:%M:%S", "[%m.%d %H:%M:%S]", "%m-%d %H:%M:%S"):
        assert find(f"{moment.strftime(layout)} host") == whole
    assert find(f"E{moment:%m%d %H:%M:%S.%f}  12 a.cc:3] x") == moment
    assert find(f"{moment:%b} {moment.day:2} {moment:%H:%M:%S} host") == whole
    assert find(f"{moment:%b} {moment.day} {moment:%H:%M:%S} host") == whole


def test_a_leap_day_goes_back_to_a_leap_year_unless_the_year_is_given() -> None:
    reference = datetime(2023, 5, 1, tzinfo=UTC).timestamp()
    assert find("Feb 29 01:02:03 host", modified=reference) == datetime(2020, 2, 29, 1, 2, 3, tzinfo=UTC)
    assert find("Feb 29 01:02:03 host", year=2023) is None
    assert find("Dec 31 01:02:03 host", year=2031) == datetime(2031, 12, 31, 1, 2, 3, tzinfo=UTC)
    assert find("Jul  2 11:00:00 host") == datetime(2024, 7, 2, 11, tzinfo=UTC), "less than a day ahead is no year back"


@given(st.integers(1_000_000_000, 4_102_444_799), st.integers(0, 999_999_999))
def test_epochs(seconds: int, nanos: int) -> None:
    whole = EPOCH + timedelta(seconds=seconds)
    exact = whole + timedelta(microseconds=nanos // 1000)
    assert find(f"{seconds} x") == whole
    assert find(f"[{seconds}] x") == whole
    assert find(f"{seconds}.{nanos:09} x") == exact
    assert find(f"{seconds}{nanos // 1_000_000:03},x") == whole + timedelta(milliseconds=nanos // 1_000_000)
    assert find(f"{seconds}{nanos // 1000:06}\tx") == exact
    assert find(f"{seconds}{nanos:09}") == exact
    assert find(f"- {seconds} {whole:%Y.%m.%d} node x") == whole, "BGL and Thunderbird"
    assert find(f"user {seconds} logged in") is None
    assert find(f"{seconds}.12.13.14 is an address") is None


NOTHING = [
    "", "x", "2024-13-01 00:00:00", "2024-00-01 00:00:00", "2023-02-29 00:00:00", "2024-04-31 00:00:00",
    "2024-01-01 24:00:00", "2024-01-01 00:60:00", "2024-01-01 00:00:61", "2024-01-01", "12:00:00",
    "12024-01-01 00:00:00",
    "2024-01/01 00:00:00", "Foo 12 00:00:00", "Jan 32 00:00:00", "31/Foo/2024:00:00:00 +0000", "13-01 00:00:00",
    "999999 999999", "134681 node-246 unix.hw 1077804742", "1234567890123456789012", "a2024-01-01 00:00:00",
    "v1.2024-01-01 00:00:00", "0000-00-00 00:00:00", "20241301-00:00:00:000", "20240101-24:0:0:1",
    "x" * 65 + " 2024-01-01 00:00:00", "10.251.111.209:50010", "2024", "20", "Jan", "E0506"
]  # fmt: skip


@pytest.mark.parametrize("line", NOTHING)
def test_what_is_no_timestamp(line: str) -> None:
    assert find(line) is None


@given(st.text(alphabet="0123456789-:/. ,TZ+[JanMon", max_size=48))
def test_any_text_is_safe(text: str) -> None:
    found = find(text)
    assert found is None or found.year >= 1899


def test_special_layouts() -> None:
    assert find("20171223-23:21:0:125|Step") == datetime(2017, 12, 23, 23, 21, 0, 125000, tzinfo=UTC)
    assert find("20171223-9:1:0:5|Step") == datetime(2017, 12, 23, 9, 1, 0, 5000, tzinfo=UTC)
    assert find("081109 203615 148 INFO dfs") == datetime(2008, 11, 9, 20, 36, 15, tzinfo=UTC)
    assert find("nova.log.2017-05-16_13:53:08 2017-05-16 00:00:00.008 1") == datetime(
        2017, 5, 16, 0, 0, 0, 8000, tzinfo=UTC
    )
    assert find("2024-05-06T07:08Z x") == datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
    assert find("2024-05-06 07:08:09 -1234 items") == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC), (
        "no zone has 34 minutes"
    )
    assert find("2016-12-31T23:59:60Z leap second") == datetime(2017, 1, 1, tzinfo=UTC)
    assert find("Sun, 06 Nov 1994 08:49:37 GMT") == datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)


def test_zones() -> None:
    vienna = ZoneInfo("Europe/Vienna")
    for moment in (datetime(2024, 1, 5, 12), datetime(2024, 7, 5, 12), datetime(2024, 10, 27, 4)):
        found = find(f"{moment:%Y-%m-%d %H:%M:%S} x", zone="Europe/Vienna")
        assert found == moment.replace(tzinfo=vienna).astimezone(UTC)
    repeated, skipped = "2024-10-27 02:30:00", "2024-03-31 02:30:00"
    assert find(repeated, zone="Europe/Vienna") == datetime(2024, 10, 27, 0, 30, tzinfo=UTC), "the first run"
    assert find(skipped, zone="Europe/Vienna") == datetime(2024, 3, 31, 1, 0, tzinfo=UTC), "when the clock went on"
    assert find("2024-01-05 12:00:00 x", zone="+02:00") == datetime(2024, 1, 5, 10, tzinfo=UTC)
    assert find("2024-01-05 12:00:00 x", zone="-0330") == datetime(2024, 1, 5, 15, 30, tzinfo=UTC)
    assert find("2024-01-05T12:00:00Z", zone="Europe/Vienna") == datetime(2024, 1, 5, 12, tzinfo=UTC), "says its zone"
    assert find("1704456000 x", zone="Europe/Vienna") == datetime(2024, 1, 5, 12, tzinfo=UTC)
    for wrong in ("Mars/Olympus", "+99:00", "../etc/passwd", "CET DST"):
        with pytest.raises(UsageError, match="unknown time zone"):
            Clock(wrong)


@given(st.dates())
def test_dates(day: object) -> None:
    year, month, number = day.year, day.month, day.day  # type: ignore[attr-defined]
    micros = date_of(year, month, number)
    if 1900 <= year <= 2200:
        assert micros == (datetime(year, month, number, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    else:
        assert micros == NO_DATE


def test_numbers_are_epochs_by_their_size() -> None:
    moment = 1_715_000_000
    numbers = [moment, moment * 10**3 + 5, moment * 10**6 + 5, moment * 10**9 + 5000, 7, None, -5]
    micros = [moment * 10**6, moment * 10**6 + 5000, moment * 10**6 + 5, moment * 10**6 + 5, None, None, None]
    assert epoch_micros(pa.array(numbers, pa.int64())).to_pylist() == micros
    assert epoch_micros(pa.array([moment + 0.25, float("nan"), None])).to_pylist() == [
        moment * 10**6 + 250_000,
        None,
        None,
    ]


SAMPLES = Path(__file__).parent.parent.parent.parent / "shared" / "data" / "loghub_2k"
UNSUPPORTED = {"HPC_2k.log"}  # its seconds stand behind four words


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.log")) or ["none"])
def test_real_samples(name: str) -> None:
    if not SAMPLES.is_dir():
        pytest.skip("no samples here")
    lines = (SAMPLES / name).read_bytes().splitlines()[:: 10 if config.DISABLE_JIT else 1]
    data = np.frombuffer(b"\n".join(lines), np.uint8)
    sizes = np.array([len(line) for line in lines])
    starts = np.concatenate([[0], np.cumsum(sizes + 1)[:-1]])
    stamps = Clock().stamps(data, starts, starts + sizes)
    share = np.count_nonzero(stamps.kinds) / len(lines)
    assert share == 0 if name in UNSUPPORTED else share >= 0.95
