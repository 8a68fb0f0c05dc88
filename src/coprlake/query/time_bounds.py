"""Converts the points in time that callers give to those that a search compares."""

from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias

from coprlake.errors import UsageError

Time: TypeAlias = datetime | date | timedelta | str | int | None
"""A point in time: a datetime (UTC if it has no zone), a day, an ISO 8601 string, microseconds since 1970, or a
timedelta before now."""


def microseconds(moment: Time, default: int) -> int:
    """Convert a point in time to microseconds since 1970; None gives `default`."""
    if moment is None:
        return default
    if isinstance(moment, int) and not isinstance(moment, bool):
        return moment
    if isinstance(moment, timedelta):
        moment = datetime.now(UTC) - moment
    elif isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError as error:
            raise UsageError(
                f"{moment!r} is not a valid time; expected ISO 8601, such as 2026-11-16T03:55:00Z"
            ) from error
    elif isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if not isinstance(moment, datetime):
        raise UsageError(f"{moment!r} is not a valid time; expected a datetime, ISO text, microseconds, or a timedelta")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
