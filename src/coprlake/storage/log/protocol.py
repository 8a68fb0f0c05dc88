"""What a table's protocol requires of its writers: the rules that we follow, and those for which we reject a change.

A rule counts only where it is in use: a table that merely allows CHECK constraints can be written to until it has one.
Rules about values (constraints, invariants, generated and identity columns) matter when records are added; rules about
changes (append-only, the change data feed) when records are removed. Records that only move to other files already
met all rules. NOT NULL is checked where the records are: see `check_required` and `check_required_inside`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import pyarrow as pa

from coprlake.errors import UsageError

Change: TypeAlias = Literal["append", "delete", "move", "columns"]
"""Records are added, removed (or replaced), or moved to other files unchanged; or the table gains columns."""

FEATURE_VERSION: Final = 7
"""The writer version from which on features are listed by name."""

READER_FEATURE_VERSION: Final = 3
"""The same for readers."""

KEPT_FEATURES: Final = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "deletionVectors",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
"""The features that we support, some of them by rejecting changes where the feature is in use."""

_IDENTITY: Final = "identityColumns"
_IDENTITY_VERSION: Final = 6
_CONSTRAINT: Final = "delta.constraints."


class Rules(NamedTuple):
    """What the log says about a table that matters to writers.

    Attributes:
        writer_version: the lowest protocol version that a writer must support.
        features: the names of the writer features.
        configuration: the table's properties.
        schema: the schema in Delta's JSON.
    """

    writer_version: int
    features: Sequence[str]
    configuration: Mapping[str, str]
    schema: str


def unknown_features(rules: Rules) -> list[str]:
    """The features that a writer must support and that we do not."""
    if rules.writer_version > FEATURE_VERSION:
        return [f"writer version {rules.writer_version}"]
    if rules.writer_version == _IDENTITY_VERSION:  # delta-rs does not commit to such a table
        return [_IDENTITY]
    return sorted(set(rules.features) - KEPT_FEATURES)


def check_change(uri: str, rules: Rules, change: Change) -> None:
    """Raise if a rule of the table forbids the change, or we cannot check the rule.

    Raises:
        UsageError: the change is not possible; the message names the rule.
    """
    if change == "delete":
        if _is_on(rules, "delta.appendOnly"):
            raise UsageError(
                f"{uri}: the table is append-only (delta.appendOnly), so no records can be deleted or replaced; to "
                "allow it, set the property to false with the engine that created the table"
            )
        if _is_on(rules, "delta.enableChangeDataFeed"):
            raise UsageError(
                f"{uri}: the table keeps a change data feed (delta.enableChangeDataFeed), which coprlake does not "
                "write; delete with the engine that created the table, or turn the feed off"
            )
    if change == "append":
        found = next(_rules_of_values(rules), None)
        if found is not None:
            raise UsageError(
                f"{uri}: the table has {found}, which coprlake does not check; append with the engine that created "
                "the table"
            )


def _is_on(rules: Rules, name: str) -> bool:
    values = {key.lower(): value for key, value in rules.configuration.items()}
    return str(values.get(name.lower(), "")).lower() == "true"


def _rules_of_values(rules: Rules) -> Iterator[str]:
    for name, value in rules.configuration.items():
        if name.lower().startswith(_CONSTRAINT):
            yield f"a CHECK constraint {name[len(_CONSTRAINT) :]} ({value})"
    for path, metadata in _fields(json.loads(rules.schema)):
        for key, value in metadata.items():
            if key == "delta.invariants":
                yield f"an invariant on the column {path} ({value})"
            elif key == "delta.generationExpression":
                yield f"a generated column {path} ({value})"
            elif key.startswith("delta.identity."):
                yield f"an identity column {path}"


def _fields(kind: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All fields of a schema, including nested ones, with their metadata."""
    if not isinstance(kind, dict):
        return
    for field in kind.get("fields", ()):
        own = f"{path}.{field['name']}" if path else field["name"]
        yield own, field.get("metadata") or {}
        yield from _fields(field.get("type"), own)
    for part in ("elementType", "keyType", "valueType"):
        yield from _fields(kind.get(part), path)


def check_required(records: pa.RecordBatch, schema: pa.Schema) -> None:
    """Raise if records have no value where the table requires one (NOT NULL).

    Raises:
        UsageError: a column is null.
    """
    for field in schema:
        if field.nullable or not records.num_rows:
            continue
        present = field.name in records.schema.names
        count = records.column(field.name).null_count if present else records.num_rows
        if count:
            raise _missing(field.name, count)


def check_required_inside(records: pa.RecordBatch, schema: pa.Schema) -> None:
    """Raise if there are nulls where the table requires values inside structs, lists and maps.

    Call this before converting the records to the table's types: Arrow casts some of these nulls, and rejects others.

    Raises:
        UsageError: there is a null.
    """
    for field in schema:
        if pa.types.is_nested(field.type) and field.name in records.schema.names:
            for path, count in _nulls_inside(records.column(field.name), field.type, field.name):
                if count:
                    values = "1 value is" if count == 1 else f"{count} values are"
                    raise UsageError(f"{path} must not be null (NOT NULL), but {values}; nothing was appended")


def _nulls_inside(array: pa.Array, kind: pa.DataType, path: str) -> Iterator[tuple[str, int]]:
    """Each nested field that must not be null, and its number of nulls; skips values of a different shape."""
    parts: list[tuple[str, pa.Field, pa.Array | None]] = []
    known = len(array) - array.null_count
    if pa.types.is_struct(kind) and isinstance(array, pa.StructArray):
        members = dict(zip((field.name for field in array.type), array.filter(array.is_valid()).flatten(), strict=True))
        parts = [(f"{path}.{field.name}", field, members.get(field.name)) for field in kind]
    elif pa.types.is_map(kind) and isinstance(array, pa.MapArray):
        full = array.filter(array.is_valid())
        first, last = full.offsets[0].as_py(), full.offsets[-1].as_py()
        parts = [(f"a value of {path}", kind.item_field, full.items.slice(first, last - first))]
    elif pa.types.is_list(kind) and isinstance(array, pa.ListArray) and not isinstance(array, pa.MapArray):
        parts = [(f"an element of {path}", kind.value_field, array.flatten())]
    for name, field, inner in parts:
        if not field.nullable:
            yield name, known if inner is None else inner.null_count
        if inner is not None:
            yield from _nulls_inside(inner, field.type, name)


def _missing(name: str, count: int) -> UsageError:
    records = "1 record has" if count == 1 else f"{count} records have"
    return UsageError(f"the column {name} must not be null (NOT NULL), but {records} no value; nothing was appended")
