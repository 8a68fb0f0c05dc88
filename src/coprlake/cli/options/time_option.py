"""Points in time and spans of time as types of options."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

import click

from coprlake.errors import UsageError
from coprlake.text.time_words import parse_span, parse_time

_Parsed = TypeVar("_Parsed", datetime, timedelta)


def moment_option(value: str | datetime) -> datetime:
    """`parse_time` as an option's type."""
    return value if isinstance(value, datetime) else _as_option(parse_time, value)


def span_option(value: str | timedelta) -> timedelta:
    """`parse_span` as an option's type."""
    return value if isinstance(value, timedelta) else _as_option(parse_span, value)


def pause_option(value: str | timedelta) -> timedelta:
    """A span that may be 0, as an option's type."""
    return timedelta() if value == "0" else span_option(value)


def rhythm_option(value: str | timedelta) -> timedelta | None:
    """A span, or None for ``never`` or 0, as an option's type."""
    return None if value in ("0", "never") else span_option(value)


def _as_option(parse: Callable[[str], _Parsed], text: str) -> _Parsed:
    try:
        return parse(text)
    except UsageError as error:
        raise click.BadParameter(str(error)) from error
