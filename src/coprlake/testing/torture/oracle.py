"""What a predicate means for a row of any table, in plain Python.

The leaves are those of `coprlake.testing.naive_search`; here are the rows of foreign tables: which values a field has,
numbers of any width and times of any size. There are three answers: where the meaning is not defined, such as that of a
regular expression on bytes that are not UTF-8, the answer is None, and nothing is compared.
"""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from coprlake.predicate.predicates import (
    ALL_FIELDS,
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
from coprlake.records import ATTRIBUTES, SCHEMA, TIMESTAMP
from coprlake.testing.naive_search import NUMBER, accepts
from coprlake.testing.torture.plain_rows import Moment, Nested, Pairs, Row, Unordered, texts_in

FINDS_NESTED_TEXT = False
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def answer(predicate: Predicate, row: Row) -> bool | None:
    """Whether the row matches; None where that is not defined."""
    if isinstance(predicate, And | Or):
        decisive = isinstance(predicate, Or)
        answers = [answer(part, row) for part in predicate.parts]
        if decisive in answers:
            return decisive
        return None if None in answers else not decisive
    if isinstance(predicate, Not):
        inner = answer(predicate.part, row)
        return None if inner is None else not inner
    answers = [_on_value(predicate, value) for value in values_of(row, predicate.field)]
    return True if True in answers else (None if None in answers else False)


def is_in_time(row: Row, since: int | None, until: int | None) -> bool:
    """Whether the row has a time in the range, in microseconds; the end is not in it."""
    if since is None and until is None:
        return True
    moment = row.get(TIMESTAMP)
    if not isinstance(moment, Moment):
        return False
    return (since is None or moment.microseconds >= since) and (until is None or moment.microseconds < until)


def values_of(row: Row, field: str) -> list[Any]:
    """The values that the field has in the row: at most one, but any number for all fields."""
    attributes = row.get(ATTRIBUTES)
    pairs = attributes if isinstance(attributes, Pairs) else ()
    if field == ALL_FIELDS:
        found = row.values() if FINDS_NESTED_TEXT else [v for v in row.values() if isinstance(v, bytes | Pairs)]
        return [text for value in found for text in texts_in(value)]
    if row.get(field) is not None:
        return [row[field]]
    if field in SCHEMA.names:
        return []
    first = [value for key, value in pairs if key == field.encode()][:1]
    return [value for value in first if value is not None]


def _on_value(predicate: Leaf, value: Any) -> bool | None:
    if isinstance(predicate, Exists):
        return True
    if isinstance(value, bytes):
        if isinstance(predicate, Regex | Wildcard) and not _is_utf8(value):
            return None
        return accepts(predicate, value)
    if isinstance(value, Unordered | Nested | Pairs):
        return False
    if isinstance(predicate, Compare):
        return _compares(value, predicate.operator, predicate.value)
    if isinstance(predicate, Equals):
        return _compares(value, "==", predicate.value)
    if isinstance(predicate, OneOf):
        return any(_compares(value, "==", sought) for sought in predicate.values)
    return False


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _compares(value: Any, operator: str, sought: Any) -> bool:
    """By the type of the value; what cannot be compared does not match."""
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
        return number if number != number or abs(number) == float("inf") else Fraction(repr(number))  # as written
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
