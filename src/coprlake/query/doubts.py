"""Tells what is odd about a search: fields that no record has, values of the wrong type, levels that do not exist.

A doubt never changes a result. It is raised only if the index of every segment rules the alternative out: a table with
segments that have no index, or with records that are not committed yet, may have any field.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import pyarrow as pa

from coprlake.config import LEVELS, OTHER_LEVEL_NAMES
from coprlake.errors import SearchWarning, UsageError
from coprlake.predicate.narrowing.demand import demand_of
from coprlake.predicate.paths import Path, path_of, plain_type, similar_paths
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
    Value,
)
from coprlake.predicate.values import microseconds_of, number_of, truth_of
from coprlake.query.planning import View
from coprlake.records import ATTRIBUTES, CONTENT, DAY, HIDDEN, LOGLEVEL, SCHEMA, SOURCE, TIMESTAMP
from coprlake.text.nearest_words import nearest

_MEANINGS: Final = {
    CONTENT: ("message", "msg", "text", "line", "body", "log", "raw", "_raw"),
    LOGLEVEL: ("level", "lvl", "severity", "severity_text", "priority"),
    TIMESTAMP: ("time", "ts", "date", "datetime", "@timestamp", "_time", "event_time"),
    SOURCE: ("file", "filename", "path", "logfile"),
}
"""What other programs call our columns."""
_MOST_NAMES: Final = 12


@dataclass(frozen=True)
class Doubt:
    """What is odd about a search.

    Attributes:
        about: ``field`` if no record has it, ``value`` if it cannot be compared with the field, ``level`` if no record
            has it and it is not a known one, ``text`` if a text is sought in a field that has none.
        text: what to tell the user.
        is_negated: whether the condition is in a ``not``, so that it matches every record rather than none.
        nearest: the name that was probably meant.
    """

    about: Literal["field", "value", "level", "text"]
    text: str
    is_negated: bool
    nearest: str | None = None


class KnownFields(NamedTuple):
    """The fields with a value in some record.

    Attributes:
        texts: those with text, as the index lists them.
        others: those with other values, such as numbers.
        is_complete: whether there are surely no others.
    """

    texts: frozenset[str]
    others: frozenset[str]
    is_complete: bool


def known_fields(view: View) -> KnownFields:
    """The fields of all records, both columns and attributes, from the indexes."""
    snapshot = view.snapshot
    profiles = [*snapshot.pool.profiles, *(segment.profile for segment in view.uncommitted)]
    is_complete = bool(profiles) and snapshot.pool.is_complete and all(profile.complete for profile in profiles)
    return KnownFields(
        frozenset().union(*(profile.fields for profile in profiles)),
        frozenset().union(*(profile.typed for profile in profiles)),
        is_complete and not snapshot.missing,
    )


def unknown_field(field: str, columns: list[str], known: KnownFields) -> str:
    """The message about a field that no record has."""
    others = sorted({*known.texts, *known.others}.difference(columns))
    names = [name for name in (*columns, *others) if name not in (DAY, ATTRIBUTES, *HIDDEN)]
    meant = next((own for own, others in _MEANINGS.items() if own in columns and field.casefold() in others), None)
    meant = nearest(field, names) or meant
    if meant is not None:
        return f"no record has a field {field}; did you mean {meant}?"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"no record has a field {field}; the table has {', '.join(names[:_MOST_NAMES])}{more}"


def doubts_about(predicate: Predicate, view: View, schema: pa.Schema) -> list[Doubt]:
    """What is odd about a search, each thing once.

    Args:
        predicate: what is searched for, with names as the user wrote them.
        view: where.
        schema: its columns.
    """
    found: dict[Doubt, None] = {}
    known: KnownFields | None = None
    for leaf, is_negated in _leaves(predicate, False):
        if is_plain(leaf) or (leaf.field == "*" and "*" not in schema.names):  # as ALL_FIELDS was spelled before
            continue
        known = known or known_fields(view)
        if not known.is_complete:
            break
        doubt = _doubt(leaf, is_negated, view, schema, known)
        if doubt is not None:
            found[doubt] = None
    return list(found)


def is_plain(leaf: Leaf) -> bool:
    """Whether there can be no doubt about a condition: it looks for a text where every table has some."""
    return leaf.field in (ANY_VALUE, ALL_FIELDS) or (
        leaf.field == CONTENT and not isinstance(leaf, Equals | OneOf | Compare)
    )


def warn_caller(texts: Iterable[str]) -> None:
    """Issue each text as a `SearchWarning` that names the line of the program which called coprlake."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "coprlake":
        level, frame = level + 1, frame.f_back
    for text in texts:
        warnings.warn(text, SearchWarning, stacklevel=level + 1)


def refuse_doubts(predicate: Predicate, view: View, schema: pa.Schema, *, is_repeated: bool) -> None:
    """Reject a deletion that is probably not meant: it would delete nothing, or everything.

    Args:
        predicate: what is to be deleted.
        view: where.
        schema: its columns.
        is_repeated: whether it is done again and again; then it may name fields that no record has at the moment,
            except in a ``not``.

    Raises:
        UsageError: it is.
    """
    for doubt in doubts_about(predicate, view, schema):
        if doubt.is_negated or not is_repeated:
            raise UsageError(f"nothing was deleted: {doubt.text}")


def _leaves(predicate: Predicate, is_negated: bool) -> Iterator[tuple[Leaf, bool]]:
    waiting = [(predicate, is_negated)]
    while waiting:
        node, is_negated = waiting.pop()
        if isinstance(node, And | Or):
            waiting.extend((part, is_negated) for part in reversed(node.parts))
        elif isinstance(node, Not):
            waiting.append((node.part, not is_negated))
        else:
            yield node, is_negated


def _doubt(leaf: Leaf, is_negated: bool, view: View, schema: pa.Schema, known: KnownFields) -> Doubt | None:
    path = _column(leaf.field, schema)
    key = leaf.field if path is None else _key(path)
    if key is not None:
        if key in known.texts or key in known.others:
            return None
        return Doubt("field", unknown_field(leaf.field, schema.names, known), is_negated)
    if path is None or path.steps:
        return None
    if path.column == LOGLEVEL:
        return _unknown_level(leaf, is_negated, view)
    if path.column in known.texts:
        return None
    kind = plain_type(schema.field(path.column).type)
    if isinstance(leaf, Equals | OneOf | Compare):
        values = leaf.values if isinstance(leaf, OneOf) else (leaf.value,)
        expected = next((expected for value in values if (expected := _expected(kind, value))), None)
        return None if expected is None else Doubt("value", f"{path.column} is {expected}", is_negated)
    what = _kind_of(kind)
    if isinstance(leaf, Exists) or what is None:
        return None
    advice = f"compare it instead, as in {path.column}={_EXAMPLES[what]}"
    return Doubt("text", f"{path.column} is a {what}, in which no text is found; {advice}", is_negated)


def _column(field: str, schema: pa.Schema) -> Path | None:
    """The column that `coprlake.query.resolving` takes for the field; None if that is an attribute."""
    found = path_of(field, schema)
    if found is not None or field in SCHEMA.names:
        return found or Path(field, ())
    return next(iter(similar_paths(field, schema)), None)


def _key(path: Path) -> str | None:
    """The attribute that a path leads to."""
    return path.steps[0].name if path.column == ATTRIBUTES and len(path.steps) == 1 else None


_EXAMPLES: Final = {"number": "500", "time": "2026-11-16T03:55:00Z", "truth value": "true"}


def _kind_of(kind: pa.DataType) -> str | None:
    """How a type that is not text is called in messages; None for types without a comparison of their own."""
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "time"
    return "truth value" if types.is_boolean(kind) else None


def _expected(kind: pa.DataType, value: Value) -> str | None:
    """What a column expects instead of this value; None if the value can be compared with it."""
    what = _kind_of(kind)
    read = {"number": number_of, "time": microseconds_of, "truth value": truth_of}.get(what or "")
    if what is None or read is None or read(value) is not None:
        return None
    shown = repr(value) if isinstance(value, str) else str(value)
    form = {"number": "500", "time": "ISO 8601, such as 2026-11-16T03:55:00Z", "truth value": "true or false"}[what]
    return f"a {what}, which {shown} is not; expected {'a number such as ' * (what == 'number')}{form}"


def _unknown_level(leaf: Leaf, is_negated: bool, view: View) -> Doubt | None:
    """The doubt about a level that is not one of ours and that no record has."""
    values = leaf.values if isinstance(leaf, OneOf) else (leaf.value,) if isinstance(leaf, Equals) else ()
    if not values or any(str(value).upper() in (*LEVELS, *OTHER_LEVEL_NAMES) for value in values):
        return None
    if LOGLEVEL in view.snapshot.partition_by or _may_match(leaf, view):
        return None
    level = str(values[0])
    near = nearest_level(level)
    advice = f"did you mean {near}?" if near else f"expected one of {', '.join(LEVELS)}"
    return Doubt("level", f"no record has the level {level}; {advice}", is_negated, near)


def nearest_level(level: str) -> str | None:
    """The level that was probably meant."""
    return nearest(level, LEVELS) or OTHER_LEVEL_NAMES.get(nearest(level, OTHER_LEVEL_NAMES) or "")


def _may_match(leaf: Leaf, view: View) -> bool:
    """Whether the index of some segment does not rule the condition out."""
    return bool(view.snapshot.verdicts(None, lambda profile: demand_of(leaf, profile).program).any())
