"""What Spark pushes down to a data source, as a predicate and a range of time.

Spark's filters are SQL: a comparison with null is unknown, a row is kept only if the filter is true, and a column is
never looked for among the attributes. Ours are not (`predicates.py`), so a filter becomes a predicate that holds at
least wherever the filter is true: enough to prune. If it holds nowhere else it is exact, and Spark need not look again.
That cannot be promised of columns that only some tables have: where such a column is null, attributes are asked.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import datasource as spark

from coprlake.predicate.predicates import (
    ALL_FIELDS,
    EVERYTHING,
    NOTHING,
    And,
    Compare,
    Contains,
    Equals,
    Exists,
    OneOf,
    Operator,
    Predicate,
    Prefix,
    Suffix,
)
from coprlake.predicate.texts import is_text_map
from coprlake.predicate.values import microseconds_of
from coprlake.query.planning import FOREVER
from coprlake.records import ATTRIBUTES, SCHEMA, TIMESTAMP

_Answer: TypeAlias = tuple[Predicate | None, bool]

_UNKNOWN: Final[_Answer] = (None, False)
_OPERATORS: Final[dict[type[spark.Filter], Operator]] = {
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
}
_TEXT_PREDICATES: Final[dict[type[spark.Filter], type[Contains] | type[Prefix] | type[Suffix]]] = {
    spark.StringContains: Contains,
    spark.StringStartsWith: Prefix,
    spark.StringEndsWith: Suffix,
}


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a search can decide of some filters.

    Attributes:
        predicate: holds for every row that satisfies the filters; `EVERYTHING` if nothing is known.
        since: microseconds; earlier rows, and if there is a bound rows without a timestamp, satisfy them not.
        until: microseconds; nor do rows of this time and later.
        left_over: the filters that Spark must still apply, as it gave them.
    """

    predicate: Predicate
    since: int
    until: int
    left_over: list[spark.Filter]


def push(filters: Sequence[spark.Filter], schema: pa.Schema) -> Pushed:
    """What all these filters ask for together, of a table with this schema."""
    since, until = FOREVER
    parts: list[Predicate] = []
    left_over: list[spark.Filter] = []
    for pushed in filters:
        times = _times_of(pushed, schema)
        if times is not None:
            since, until = max(since, times[0]), min(until, times[1])
            if not isinstance(pushed, spark.In) and schema.field(TIMESTAMP).type.unit != "ns":
                continue  # the range says it all
        predicate, is_exact = predicate_of(pushed, schema)
        if predicate is not None and predicate not in parts:
            parts.append(predicate)
        if not is_exact:
            left_over.append(pushed)
    if (since, until) != FOREVER:
        parts = [part for part in parts if part != Exists(TIMESTAMP)]  # a range of time has no row without one
    return Pushed(_all_of(parts), since, until, left_over)


def predicate_of(pushed: spark.Filter, schema: pa.Schema) -> _Answer:
    """A predicate that every row matches for which the filter is true, and whether no other row does.

    None if there is none, or none that says anything.
    """
    is_negated = False
    while isinstance(pushed, spark.Not):
        pushed, is_negated = pushed.child, not is_negated
    field = _field_of(pushed, schema)
    if field is None:
        return _UNKNOWN
    exists, is_sole = Exists(field.name), not _may_be_attribute(field.name, schema)
    if isinstance(pushed, spark.IsNull | spark.IsNotNull):
        if isinstance(pushed, spark.IsNull) == is_negated:
            return exists, is_sole
        return (~exists, True) if is_sole else _UNKNOWN  # the attribute may be there where the column is null
    accepted = _accepted(pushed, field)
    if accepted is None or not is_negated:
        return accepted, accepted is not None and is_sole
    if isinstance(pushed, spark.EqualNullSafe):  # is not unknown but false for a null
        return (~accepted, True) if is_sole else _UNKNOWN
    if isinstance(pushed, spark.In) and (None in pushed.value or not pushed.value):
        return (NOTHING, True) if None in pushed.value else _UNKNOWN  # what is not found may be the null
    return exists & ~accepted, is_sole


def _field_of(pushed: spark.Filter, schema: pa.Schema) -> pa.Field | None:
    """The column that the filter is about, if it is one of the table and no part of one."""
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    index = schema.get_field_index(path[0]) if len(path) == 1 else -1
    return schema.field(index) if index >= 0 and path[0] not in ("", ALL_FIELDS) else None


def _may_be_attribute(name: str, schema: pa.Schema) -> bool:
    """Whether a predicate on the column also looks at the attributes."""
    has_map = ATTRIBUTES in schema.names and is_text_map(schema.field(ATTRIBUTES).type)
    return has_map and name not in SCHEMA.names


def _accepted(pushed: spark.Filter, field: pa.Field) -> Predicate | None:
    """A predicate that holds for just those values of the column, not null, for which the filter is true."""
    name, kind = field.name, field.type
    value: Any = getattr(pushed, "value", None)
    if isinstance(pushed, spark.In):
        values = tuple(one for one in value if one is not None)
        return OneOf(name, values, True) if all(_is_value_of(kind, one) for one in values) else None
    if not _is_value_of(kind, value):
        return None
    if isinstance(pushed, spark.EqualTo | spark.EqualNullSafe):
        return Equals(name, value, True)
    if type(pushed) in _TEXT_PREDICATES:
        return _TEXT_PREDICATES[type(pushed)](value, name, True) if isinstance(value, str) else None
    operator = _OPERATORS.get(type(pushed))
    if operator is None or (pa.types.is_floating(kind) and operator.startswith(">")):
        return None  # for SQL not-a-number is more than any number
    return Compare(name, operator, value)


def _is_value_of(kind: pa.DataType, value: object) -> bool:
    """Whether column and value have the same type for Spark, and one that is compared alike here and there.

    Not so nanoseconds, which Spark cuts off, and decimals, which are floats here and whose digits Spark loses.
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return isinstance(value, str)
    if isinstance(value, bool):
        return pa.types.is_boolean(kind)
    if pa.types.is_timestamp(kind):
        return kind.unit != "ns" and _is_moment_of(kind, value)
    if pa.types.is_date32(kind):
        return isinstance(value, date) and not isinstance(value, datetime)
    if pa.types.is_floating(kind):
        return isinstance(value, float) and not math.isnan(value)
    return pa.types.is_integer(kind) and isinstance(value, int)


def _is_moment_of(kind: pa.TimestampType, value: object) -> bool:
    """Whether both have a zone or none has: Spark gives moments in UTC, and times without a zone as they are."""
    return isinstance(value, datetime) and (kind.tz is not None) == (value.tzinfo is not None)


def _times_of(pushed: spark.Filter, schema: pa.Schema) -> tuple[int, int] | None:
    """The range of time outside of which the filter is not true; None if there is no bound."""
    field = _field_of(pushed, schema)
    if field is None or field.name != TIMESTAMP or not pa.types.is_timestamp(field.type):
        return None
    values = pushed.value if isinstance(pushed, spark.In) else [getattr(pushed, "value", None)]
    known = [value for value in values if value is not None]
    if not known or not all(_is_moment_of(field.type, value) for value in known):
        return None
    moments = [moment for value in known if (moment := microseconds_of(value)) is not None]
    slack = int(field.type.unit == "ns")  # they are cut off, up or down
    first, last = min(moments) - slack, max(moments) + slack
    if isinstance(pushed, spark.LessThan | spark.LessThanOrEqual):
        return FOREVER[0], last + isinstance(pushed, spark.LessThanOrEqual)
    if isinstance(pushed, spark.GreaterThan | spark.GreaterThanOrEqual):
        return first + isinstance(pushed, spark.GreaterThan), FOREVER[1]
    return first, last + 1


def _all_of(parts: list[Predicate]) -> Predicate:
    if not parts:
        return EVERYTHING
    return parts[0] if len(parts) == 1 else And(tuple(parts))
