"""Converts the points in time that callers give to those that a search compares."""

from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias

from coprlake.errors import UsageError
from coprlake.text.time_words import parse_time

Time: TypeAlias = datetime | date | timedelta | str | int | None
"""A point in time: a datetime (UTC if it has no zone), a day, microseconds since 1970, a timedelta before now, or a
text as on the command line (`coprlake.text.time_words`): ISO 8601, ``2h``, ``now-2h``, ``yesterday``."""


def microseconds(moment: Time, default: int) -> int:
    """Convert a point in time to microseconds since 1970; None gives `default`."""
    if moment is None:
        return default
    if isinstance(moment, int) and not isinstance(moment, bool):
        return moment
    if isinstance(moment, timedelta):
        moment = datetime.now(UTC) - moment
    elif isinstance(moment, str):
        moment = parse_time(moment)
    elif isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if not isinstance(moment, datetime):
        raise UsageError(
            f"{moment!r} is not a valid time; expected a datetime, a timedelta, microseconds since 1970, or a text "
            "such as 2026-11-16T03:55:00Z or 2h"
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
