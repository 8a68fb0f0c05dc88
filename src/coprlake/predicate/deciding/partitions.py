"""Decides a predicate by the values of a partition alone, where they suffice."""

from collections.abc import Mapping

import pyarrow as pa

from coprlake.predicate.deciding.matching import Matcher
from coprlake.predicate.predicates import And, Not, Or, Predicate
from coprlake.records import SCHEMA


def fields_of(predicate: Predicate) -> frozenset[str]:
    """The fields that a predicate uses."""
    found: set[str] = set()
    waiting = [predicate]
    while waiting:
        node = waiting.pop()
        if isinstance(node, And | Or):
            waiting.extend(node.parts)
        elif isinstance(node, Not):
            waiting.append(node.part)
        else:
            found.add(node.field)
    return frozenset(found)


def decide(predicate: Predicate, constants: Mapping[str, pa.Scalar]) -> bool | None:
    """True if all records of the partition match, False if none does, None if that depends on the records."""
    if isinstance(predicate, Not):
        inside = decide(predicate.part, constants)
        return None if inside is None else not inside
    if isinstance(predicate, And | Or):
        decisive = isinstance(predicate, Or)  # one True decides an Or, one False an And
        parts = [decide(part, constants) for part in predicate.parts]
        if any(part is decisive for part in parts):
            return decisive
        return None if None in parts else not decisive
    if predicate.field not in constants:
        return None
    if not constants[predicate.field].is_valid and predicate.field not in SCHEMA.names:
        return None  # a record without a value in the column may have an attribute of that name
    row = pa.table({name: pa.array([value], value.type) for name, value in constants.items()})
    return bool(Matcher(predicate, row.schema).mask(row)[0])
