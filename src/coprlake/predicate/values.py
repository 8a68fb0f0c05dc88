"""The value in a predicate as text, a number, a moment or a truth value; None where it cannot be read as one."""

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final

import pyarrow as pa

from coprlake.predicate.predicates import Value

NUMBER: Final = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""Text that spells a number."""

_NUMBER = re.compile(NUMBER)
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,30}")
_MOST_WRITTEN_OUT: Final = 1e22
_LEAST_WRITTEN_OUT: Final = 1e-22
"""Beyond these, programs write a number with an exponent."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def text_of(value: Value) -> str:
    """As text, to compare with strings."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else str(value)


def number_of(value: Value) -> int | float | None:
    """As a number; text counts if it spells one."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value) if _WHOLE_NUMBER.fullmatch(value) else float(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def spellings(number: int | float) -> tuple[str, ...]:
    """The texts that JSON, Python and Arrow write for a number: 404 and 404.0, 1e+17 and 100000000000000000."""
    nearest = float_of(number)
    found = [str(number)]
    if math.isfinite(nearest) and nearest == number:
        found += [repr(nearest), str(pa.scalar(nearest).cast(pa.string()))]
        if nearest.is_integer() and abs(nearest) < _MOST_WRITTEN_OUT:
            found += [str(int(nearest)), f"{int(nearest)}.0"]
        elif _LEAST_WRITTEN_OUT < abs(nearest) < 1:
            found.append(f"{Decimal(repr(nearest)):f}")
    return tuple(dict.fromkeys(found))


def float_of(number: int | float | Fraction) -> float:
    """The nearest float to a number of any size."""
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def microseconds_of(value: Value) -> int | None:
    """As microseconds since 1970. A date means its midnight, no zone means UTC, and text is read as ISO 8601."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, date):
        return None
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def truth_of(value: Value) -> bool | None:
    """As true or false."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else None
