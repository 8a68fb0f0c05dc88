"""What is probably wrong with a search that can run: fields that no record has, and values of another type."""

from collections.abc import Callable, Iterator

import pyarrow as pa

from coprlake.language.suggestions import hint
from coprlake.predicate.paths import is_path, plain_type
from coprlake.predicate.predicates import (
    ALL_FIELDS,
    ANY_VALUE,
    And,
    Compare,
    Equals,
    Leaf,
    Not,
    OneOf,
    Or,
    Predicate,
)
from coprlake.predicate.values import microseconds_of, number_of, truth_of
from coprlake.query.plain_search import TableFields


def doubts(predicate: Predicate, schema: pa.Schema, fields: Callable[[], TableFields]) -> list[str]:
    """What a user should know, each once.

    Args:
        predicate: with the names that the user gave.
        schema: the columns of the table.
        fields: all fields of the table; called only for names that are not columns.
    """
    found: dict[str, None] = {}
    for leaf in _leaves(predicate):
        if leaf.field in (ALL_FIELDS, ANY_VALUE):
            continue
        if leaf.field in schema.names:
            found |= dict.fromkeys(_other_types(leaf, plain_type(schema.field(leaf.field).type)))
        elif not is_path(leaf.field):
            known = fields()
            if known.complete and known.names and known.named(leaf.field) is None and known.has_records:
                found[f"no record has a field {leaf.field}{hint(leaf.field, known.names)}"] = None
    return list(found)


def _leaves(predicate: Predicate) -> Iterator[Leaf]:
    if isinstance(predicate, And | Or):
        for part in predicate.parts:
            yield from _leaves(part)
    elif isinstance(predicate, Not):
        yield from _leaves(predicate.part)
    else:
        yield predicate


def _other_types(leaf: Leaf, kind: pa.DataType) -> Iterator[str]:
    """Values that a column of this type cannot have."""
    if not isinstance(leaf, Equals | OneOf | Compare):
        return
    values = leaf.values if isinstance(leaf, OneOf) else (leaf.value,)
    types = pa.types
    for value in values:
        if types.is_boolean(kind):
            fits, expected = truth_of(value) is not None, "true or false"
        elif types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
            fits, expected = number_of(value) is not None, "a number"
        elif types.is_timestamp(kind) or types.is_date(kind):
            fits, expected = microseconds_of(value) is not None, "a time, as in 2026-11-16T03:55:00"
        else:
            return
        if not fits:
            yield f"{leaf.field} is {kind}, which {value!r} never equals; expected {expected}"
