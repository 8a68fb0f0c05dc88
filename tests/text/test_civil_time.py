"""Dates and the names of months and days, against Python's own calendar."""

import calendar
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coprlake.kernel import U8Array
from coprlake.text.civil_time import (
    DAY_MICROS,
    DAY_NAMES,
    MONTH_NAMES,
    NO_DATE,
    date_micros,
    latest_date,
    month_at,
    name_at,
    weekday_at,
)

pytestmark = pytest.mark.kernels

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def array(text: str) -> U8Array:
    return np.frombuffer(text.encode(), np.uint8)


def naive_micros(year: int, month: int, day: int) -> int:
    try:
        return (datetime(year, month, day, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    except ValueError:
        return NO_DATE


@given(st.integers(-1, 10_001), st.integers(-1, 14), st.integers(-1, 33))
@example(1900, 2, 29)
@example(2000, 2, 29)
@example(1, 1, 1)
@example(9999, 12, 31)
def test_dates(year: int, month: int, day: int) -> None:
    assert date_micros(year, month, day) == naive_micros(year, month, day)


@given(st.dates())
def test_every_date(day: date) -> None:
    assert date_micros(day.year, day.month, day.day) == naive_micros(day.year, day.month, day.day)


@given(
    *(st.integers(1990, 2010), st.integers(0, 9), st.sampled_from([(2, 29), (1, 1), (12, 31), (2, 30)])),
    *(st.integers(0, DAY_MICROS - 1), st.integers(-9, 9)),
)
def test_the_year_of_a_date_without_one(year: int, back: int, day: tuple[int, int], clock: int, years: int) -> None:
    latest = date_micros(year + years, 7, 1)
    possible = [naive_micros(number, *day) for number in range(year - back, year + 1)]
    wanted = max((micros for micros in possible if micros + clock <= latest), default=NO_DATE)
    assert latest_date(year - back, year, *day, clock, latest) == wanted


def test_names() -> None:
    for names, table in ((calendar.month_name[1:], MONTH_NAMES), (calendar.day_name, DAY_NAMES)):
        for number, name in enumerate(names, 1):
            for text in (name, name.lower(), name.upper()):
                data = array(f"x{text}.")
                assert name_at(data, 1, len(data), table) == (number, 1 + len(name))
                assert name_at(data, 1, len(name), table) == (0, -1), "cut"


def test_abbreviations() -> None:
    for names, number_at in ((calendar.month_abbr[1:], month_at), (calendar.day_abbr, weekday_at)):
        for number, name in enumerate(names, 1):
            for text in (name, name.lower(), name.upper()):
                data = array(f"x{text}.")
                assert number_at(data, 1, len(data)) == number
                assert number_at(data, 1, len(name)) == 0, "cut"
                assert number_at(data, 0, len(data)) == 0
    assert month_at(array("x aUg"), 2, 5) == 8
    assert month_at(array("Jax"), 0, 3) == 0
