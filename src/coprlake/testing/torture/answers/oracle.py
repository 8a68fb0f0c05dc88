"""The meaning of a predicate for a row of any table, in plain Python.

The leaves are those of `coprlake.testing.naive_search`; this adds the rows of foreign tables: the values of a field,
numbers of any width and times of any size. There are three answers: if the meaning is not defined, such as that of a
regular expression on invalid UTF-8, the answer is None, and nothing is compared.
"""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from coprlake.predicate.predicates import (
    ALL_FIELDS,
    ANY_VALUE,
    And,
    Compare,
    Equals,
    Exists,
    Leaf,
    Not,
    OneOf,
    Or,
    Predicate,
    Regex,
    Wildcard,
)
from coprlake.records import ATTRIBUTES, DAY, HIDDEN, LOGLEVEL, SCHEMA, SOURCE, TIMESTAMP
from coprlake.testing.naive_search import NUMBER, accepts
from coprlake.testing.torture.answers.plain_rows import Moment, Pairs, Row, Unordered, leaves_in, texts_in

_NOT_SEARCHED: Final = (TIMESTAMP, SOURCE, LOGLEVEL, *HIDDEN)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def answer(predicate: Predicate, row: Row) -> bool | None:
    """Whether the row matches; None if that is not defined."""
    if isinstance(predicate, And | Or):
        decisive = isinstance(predicate, Or)
        answers = [answer(part, row) for part in predicate.parts]
        if decisive in answers:
            return decisive
        return None if None in answers else not decisive
    if isinstance(predicate, Not):
        inner = answer(predicate.part, row)
        return None if inner is None else not inner
    if isinstance(predicate, Exists) and predicate.field != ALL_FIELDS and reached_in(row, predicate.field):
        return True  # even for a list without elements
    on_value = _on_written if predicate.field == ANY_VALUE else _on_value
    answers = [on_value(predicate, value) for value in values_of(row, predicate.field)]
    return True if True in answers else (None if None in answers else False)


def is_in_time(row: Row, column: str | None, since: int | None, until: int | None) -> bool:
    """Whether the row has a time in the range, in microseconds; the end is excluded."""
    if since is None and until is None:
        return True
    moment = row.get(column or "")
    if not isinstance(moment, Moment):
        return False
    return (since is None or moment.microseconds >= since) and (until is None or moment.microseconds < until)


def values_of(row: Row, field: str) -> list[Any]:
    """The values of the field in the row: one, any number if they are nested, or all values for all fields."""
    if field == ALL_FIELDS:
        return [text for value in row.values() for text in texts_in(value)]
    if field == ANY_VALUE:
        return [value for name, column in row.items() for value in _searched(name, column)]
    reached = reached_in(row, field)
    if reached:
        return [leaf for value in reached for leaf in leaves_in(value)]
    attributes = row.get(ATTRIBUTES)
    if field in SCHEMA.names or not isinstance(attributes, Pairs):
        return []
    first = [value for key, value in attributes if key == field.encode()][:1]
    return [value for value in first if value is not None]


def _searched(name: str, column: Any) -> list[Any]:
    """The values in a column that a plain search looks at."""
    if name == ATTRIBUTES and isinstance(column, Pairs):
        return [
            value for key, value in column if key.decode(errors="replace") not in _NOT_SEARCHED and value is not None
        ]
    if name in _NOT_SEARCHED or (name == DAY and not isinstance(column, bytes)):
        return []
    return [value for value in leaves_in(column) if not isinstance(value, Moment | Unordered)]


def reached_in(row: Row, field: str) -> list[Any]:
    """The values that a column name, or a path into a column, leads to; the longest column name wins."""
    if field in row:
        return [] if row[field] is None else [row[field]]
    for name in sorted(row, key=len, reverse=True):
        rest = field[len(name) :]
        if field.startswith(name) and rest[:1] in (".", "["):
            return [value for value in _reached(row[name], rest) if value is not None]
    return []


def _reached(value: Any, rest: str) -> list[Any]:
    if not rest:
        return [value]
    if isinstance(value, dict):
        for name in sorted(value, key=len, reverse=True):
            behind = rest[len(name) + 1 :]
            if rest[0] == "." and rest[1:].startswith(name) and behind[:1] in ("", ".", "["):
                return _reached(value[name], behind)
        return []
    if isinstance(value, list | Pairs) and value and isinstance(value[0], tuple):
        key = rest[1:-1] if rest[0] == "[" and rest[-1] == "]" else rest[1:]
        return [item for found, item in value if found == key.encode()][:1]
    return [found for element in value for found in _reached(element, rest)] if isinstance(value, list) else []


def _on_value(predicate: Leaf, value: Any) -> bool | None:
    if isinstance(predicate, Exists):
        return True
    if isinstance(value, bytes):
        if isinstance(predicate, Regex | Wildcard) and not _is_utf8(value):
            return None
        return accepts(predicate, value)
    if isinstance(value, Unordered):
        return False
    if isinstance(predicate, Compare):
        return _compares(value, predicate.operator, predicate.value)
    if isinstance(predicate, Equals):
        return _compares(value, "==", predicate.value)
    if isinstance(predicate, OneOf):
        return any(_compares(value, "==", sought) for sought in predicate.values)
    return False


def _on_written(predicate: Leaf, value: Any) -> bool | None:
    """The same for numbers and booleans as text; how Arrow writes a fraction is not defined here."""
    if isinstance(value, bytes) or isinstance(predicate, Compare | Equals | OneOf | Exists):
        return _on_value(predicate, value)
    if isinstance(value, int):
        return accepts(predicate, str(value).lower())
    return None


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _compares(value: Any, operator: str, sought: Any) -> bool:
    """Compare by the type of the value; values that cannot be compared do not match."""
    other = _as_kind_of(value, sought)
    if other is None:
        return False
    own = value.microseconds if isinstance(value, Moment) else value
    if isinstance(own, Decimal):
        own = Fraction(own)
    return bool(
        {"==": own == other, "<": own < other, "<=": own <= other, ">": own > other, ">=": own >= other}[operator]
    )


def _as_kind_of(value: Any, sought: Any) -> Any:
    if isinstance(value, Moment):
        return _microseconds(sought)
    if isinstance(value, bool):
        if isinstance(sought, str):
            return {"true": True, "false": False}.get(sought.lower())
        return sought if isinstance(sought, bool) else None
    number = _number(sought)
    if number is None:
        return None
    if isinstance(value, float):
        return _nearest(number)
    if isinstance(value, Decimal) and isinstance(number, float):
        if number != number or abs(number) == float("inf"):
            return number
        return Fraction(sought if isinstance(sought, str) and "e" not in sought.lower() else repr(number))  # as written
    return number


def _number(sought: Any) -> int | float | None:
    if isinstance(sought, str):
        if not NUMBER.fullmatch(sought):
            return None
        digits = sought.lstrip("+-")
        return int(sought) if digits.isdigit() and len(digits) <= 30 else float(sought)
    return sought if isinstance(sought, int | float) and not isinstance(sought, bool) else None


def _nearest(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _microseconds(sought: Any) -> Fraction | None:
    if isinstance(sought, str):
        try:
            sought = datetime.fromisoformat(sought)
        except ValueError:
            return None
    if not isinstance(sought, date):
        return None
    moment = sought if isinstance(sought, datetime) else datetime(sought.year, sought.month, sought.day)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return Fraction((moment - _EPOCH) // timedelta(microseconds=1))
