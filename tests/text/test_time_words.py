"""Points and spans of time as people write them."""

from datetime import UTC, date, datetime, timedelta

import pytest

from coprlake.errors import UsageError
from coprlake.query.time_bounds import microseconds
from coprlake.text.time_words import parse_span, parse_time

NOW = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-16T03:55:00Z", datetime(2026, 11, 16, 3, 55, tzinfo=UTC)),
        ("2026-11-16 03:55", datetime(2026, 11, 16, 3, 55, tzinfo=UTC)),
        ("2026-11-16T03:55+02:00", datetime(2026, 11, 16, 1, 55, tzinfo=UTC)),
        ("2026-11-16", datetime(2026, 11, 16, tzinfo=UTC)),
        ("2026-11", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2h", NOW - timedelta(hours=2)),
        ("30m", NOW - timedelta(minutes=30)),
        ("30min", NOW - timedelta(minutes=30)),
        ("45s", NOW - timedelta(seconds=45)),
        ("7D", NOW - timedelta(days=7)),
        ("1.5w", NOW - timedelta(weeks=1.5)),
        ("1h30m", NOW - timedelta(hours=1, minutes=30)),
        ("now", NOW),
        ("now-2h", NOW - timedelta(hours=2)),
        ("NOW + 1d", NOW + timedelta(days=1)),
        ("today", datetime(2026, 11, 16, tzinfo=UTC)),
        ("yesterday", datetime(2026, 11, 15, tzinfo=UTC)),
        ("yesterday+6h", datetime(2026, 11, 15, 6, tzinfo=UTC)),
        ("tomorrow", datetime(2026, 11, 17, tzinfo=UTC)),
        ("@0", datetime(1970, 1, 1, tzinfo=UTC)),
        ("@1763264100.5", datetime(2025, 11, 16, 3, 35, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_times_as_people_write_them(text: str, expected: datetime) -> None:
    assert parse_time(text, NOW) == expected


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2h ago", "-2h", "now-", "now-x", "2026-13-01", "2026-13", "@", "99999999999d", "@1e99", "12:30:"],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_time(text, NOW)


def test_spans() -> None:
    assert parse_span("1d 2h") == timedelta(days=1, hours=2)
    for text in ("", "7", "d", "7y", "99999999999w"):
        with pytest.raises(UsageError):
            parse_span(text)


def test_a_text_is_as_good_as_a_datetime_in_python() -> None:
    moment = datetime(2026, 11, 16, tzinfo=UTC)
    same = (moment, moment.replace(tzinfo=None), date(2026, 11, 16), "2026-11-16", "2026-11-16T00:00Z", "@1794787200")
    assert {microseconds(one, 0) for one in same} == {1_794_787_200_000_000}
    ago = microseconds("now", 0) - microseconds("2h", 0)
    assert abs(ago - 2 * 3600 * 1_000_000) < 60_000_000
    with pytest.raises(UsageError, match="a span such as 2h"):
        microseconds("two hours", 0)
