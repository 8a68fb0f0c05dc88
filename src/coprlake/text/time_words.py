"""Points in time as people write them: ``2026-11-16T03:55``, ``2h``, ``now-2h``, ``yesterday``."""

import re
from datetime import UTC, datetime, timedelta

from coprlake.errors import UsageError
from coprlake.text.nearest_words import nearest

_UNITS = {
    "ms": "milliseconds",
    "s": "seconds",
    "m": "minutes",
    "min": "minutes",
    "h": "hours",
    "d": "days",
    "w": "weeks",
}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w)", re.IGNORECASE)
_SPANS = re.compile(rf"(?:{_SPAN.pattern}\s*)+", re.IGNORECASE)
_ANCHORED = re.compile(r"(now|today|yesterday|tomorrow)\s*(?:([+-])\s*(.+))?", re.IGNORECASE | re.DOTALL)
_DAYS = {"today": 0, "yesterday": -1, "tomorrow": 1}


def parse_span(text: str) -> timedelta:
    """Parse a span of time: ``30m``, ``7d``, ``1h30m``.

    >>> parse_span("1h30m")
    datetime.timedelta(seconds=5400)

    Raises:
        UsageError: the text is not a span of time.
    """
    text = text.strip()
    if not _SPANS.fullmatch(text):
        raise UsageError(
            f"{text!r} is not a valid span; expected a number and a unit (s, m, h, d, w), such as 30m or 7d"
        )
    try:
        return sum(
            (timedelta(**{_UNITS[unit.lower()]: float(number)}) for number, unit in _SPAN.findall(text)), timedelta()
        )
    except OverflowError as error:
        raise UsageError(f"{text!r} is too long") from error


def parse_time(text: str, now: datetime | None = None) -> datetime:
    """Parse a point in time; UTC unless the text names a zone.

    Args:
        text: ISO 8601 (a year or month alone will do); a span, counted back from now; ``now``, ``today``,
            ``yesterday`` or ``tomorrow`` (at midnight), also with ``+`` or ``-`` and a span; or ``@`` and seconds
            since 1970.
        now: the current time, for tests.

    Raises:
        UsageError: the text is none of these.
    """
    now = now or datetime.now(UTC)
    text = text.strip()
    try:
        if match := _ANCHORED.fullmatch(text):
            return _anchor(match[1].lower(), now) + _signed(match[2], match[3])
        if _SPANS.fullmatch(text):
            return now - parse_span(text)
        if re.fullmatch(r"@-?\d+(\.\d+)?", text):
            return datetime.fromtimestamp(float(text[1:]), UTC)
        if match := re.fullmatch(r"(\d{4})(?:-(\d{2}))?", text):
            return datetime(int(match[1]), int(match[2] or 1), 1, tzinfo=UTC)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError) as error:
        if isinstance(error, UsageError):
            raise
        near = nearest(text, ("now", *_DAYS))
        raise UsageError(
            f"{text!r} is not a valid time; {f'did you mean {near}? ' if near else ''}"
            "expected ISO 8601 such as 2026-11-16T03:55:00Z, a span such as 2h or 7d, "
            "now-2h, today or yesterday"
        ) from error
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _anchor(name: str, now: datetime) -> datetime:
    if name == "now":
        return now
    return now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=_DAYS[name])


def _signed(sign: str | None, span: str | None) -> timedelta:
    if span is None:
        return timedelta()
    return parse_span(span) if sign == "+" else -parse_span(span)
