"""Resolves the names in a search to the columns of a table: names in another case, and the time column.

Tables of other writers may name their columns differently. An exact name is used as it is; a name that differs from a
single column only in case means that column; any other name that cannot be in the table is an error, not an empty
result.
"""

from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from coprlake.errors import UsageError
from coprlake.predicate.paths import path_of, similar_paths
from coprlake.predicate.predicates import ALL_FIELDS, ANY_VALUE, And, Equals, Leaf, Not, OneOf, Or, Predicate
from coprlake.predicate.values import number_of, spellings, text_of
from coprlake.query.options import SearchOptions
from coprlake.records import ATTRIBUTES, CONTENT, HIDDEN, LOGLEVEL, SCHEMA, TIMESTAMP
from coprlake.text.nearest_words import hint
from coprlake.text.text_types import is_number, is_text_map

_TIME_NAMES: Final = (
    "time", "ts", "@timestamp", "_time", "event_time", "eventtime", "datetime", "date_time", "log_time", "logtime",
    "event_timestamp", "created_at", "observed_timestamp", "date",
)  # fmt: skip
_LEVEL_NAMES: Final = ("level", "log_level", "severity", "severity_text", "severitytext", "lvl")


def resolved(predicate: Predicate, schema: pa.Schema) -> Predicate:
    """The predicate with field names as the table spells them.

    Raises:
        UsageError: a field cannot be in the table, or its name is ambiguous.
    """
    if isinstance(predicate, And | Or):
        parts = tuple(resolved(part, schema) for part in predicate.parts)
        return predicate if parts == predicate.parts else type(predicate)(parts)
    if isinstance(predicate, Not):
        part = resolved(predicate.part, schema)
        return predicate if part is predicate.part else Not(part)
    return _resolved_leaf(predicate, schema)


def _resolved_leaf(predicate: Leaf, schema: pa.Schema) -> Predicate:
    field = predicate.field
    if field in (ALL_FIELDS, ANY_VALUE):
        return predicate
    if field == "*" and field not in schema.names:  # as ALL_FIELDS was spelled before
        return replace(predicate, field=ALL_FIELDS)
    has_attributes = ATTRIBUTES in schema.names and is_text_map(schema.field(ATTRIBUTES).type)
    if path_of(field, schema) is not None:
        is_mixed = has_attributes and field in schema.names and is_number(schema.field(field).type)
        return _as_spelled(predicate) if is_mixed else predicate
    names = list(dict.fromkeys(path.text for path in similar_paths(field, schema)))
    if not names and field == LOGLEVEL:
        names = [name for name in schema.names if name.casefold() in _LEVEL_NAMES]
    if len(names) > 1:
        raise UsageError(f"there is no field {field}; did you mean {' or '.join(names)}?")
    if has_attributes and field not in SCHEMA.names:  # an attribute of that name matches, too
        return Or((predicate, replace(predicate, field=names[0]))) if names else predicate
    if not names:
        raise UsageError(_unknown(field, schema))
    return replace(predicate, field=names[0])


@dataclass(frozen=True, slots=True)
class _Spelled(OneOf):
    """A condition with other spellings of its numbers; it is shown as it was asked."""

    asked: str = ""

    def __str__(self) -> str:
        return self.asked


def _as_spelled(predicate: Leaf) -> Leaf:
    """A condition on a number that also holds where it is text: values that do not fit the column are attributes."""
    if not isinstance(predicate, Equals | OneOf):
        return predicate
    values = (predicate.value,) if isinstance(predicate, Equals) else predicate.values
    numbers = [number for value in values if (number := number_of(value)) is not None]
    texts = [text for number in numbers for text in spellings(number)]
    more = dict.fromkeys(text for text in texts if text not in map(text_of, values))
    return _Spelled(predicate.field, (*values, *more), predicate.case_sensitive, str(predicate)) if more else predicate


def _unknown(field: str, schema: pa.Schema) -> str:
    columns = ", ".join(name for name in schema.names if name not in HIDDEN)
    if field == CONTENT:
        return f"this table has no column {CONTENT}; name another field (-f) or all of them (--all-fields): {columns}"
    return f"this table has no field {field}{hint(field, schema.names)}; its columns are {columns}"


def time_column(schema: pa.Schema) -> str | None:
    """The column with the time of a record: `timestamp`, or the only other candidate; None if there is none."""
    names = list(dict.fromkeys(schema.names))
    if TIMESTAMP in names and _is_time(schema.field(TIMESTAMP).type, days=True):
        return TIMESTAMP
    times = [name for name in names if _is_time(schema.field(name).type)]
    if len(times) == 1:
        return times[0]
    known = [name for name in times if name.casefold() == TIMESTAMP]
    known = known or [name for name in times if name.casefold() in _TIME_NAMES]
    return known[0] if len(known) == 1 else None


def timed(options: SearchOptions, schema: pa.Schema) -> SearchOptions:
    """The options with the table's time column.

    Raises:
        UsageError: the search has a time range, but the table has no time column.
    """
    column = time_column(schema)
    if column is None and options.is_bounded:
        raise UsageError(no_time(schema))
    return options if column in (None, options.time_column) else replace(options, time_column=str(column))


def no_time(schema: pa.Schema) -> str:
    """The error message for a time range on a table without a time column."""
    times = [field.name for field in schema if _is_time(field.type, days=True)]
    found = f"the column {TIMESTAMP} is {schema.field(TIMESTAMP).type}" if TIMESTAMP in schema.names else ""
    found = found or f"this table has no column {TIMESTAMP}"
    if times:
        return f"{found}; use a condition on one of its time columns instead of a range (--where): {', '.join(times)}"
    return f"{found}, and there is no time column, so a time range (--since, --until) is not possible"


def _is_time(kind: pa.DataType, *, days: bool = False) -> bool:
    return bool(pa.types.is_timestamp(kind) or (days and pa.types.is_date(kind)))
