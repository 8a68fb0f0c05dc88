"""Fits records of any shape into the columns of a table; values that fit no column become attributes."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.errors import UsageError
from coprlake.records import (
    ATTRIBUTES,
    ATTRIBUTES_TYPE,
    CONTENT,
    JSON_SHAPE,
    LOGLEVEL,
    SCHEMA,
    SOURCE,
    TIMESTAMP,
    TIMESTAMP_TYPE,
)
from coprlake.segment.python_values import python_values
from coprlake.segment.searchable import microseconds_of
from coprlake.text.text_types import is_text

CHUNK_ROWS = 16_384
"""The number of records appended at a time; a search may run in between."""


def arrow_batches(data: Any) -> Iterator[pa.RecordBatch]:
    """The records of an Arrow table, batch or reader, of a data frame, or of an iterable of mappings.

    Raises:
        UsageError: it is none of these.
    """
    if isinstance(data, pa.RecordBatch):
        yield data
    elif isinstance(data, pa.Table):
        yield from data.to_batches(max_chunksize=CHUNK_ROWS)
    elif isinstance(data, pa.RecordBatchReader):
        yield from data
    elif hasattr(data, "__arrow_c_stream__"):  # pandas, Polars, DuckDB and anything else that speaks Arrow
        yield from pa.RecordBatchReader.from_stream(data)
    elif isinstance(data, Mapping):
        yield _from_mappings([data])
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes):
        yield from _from_iterable(data)
    else:
        raise UsageError(f"cannot append {type(data).__name__}; expected Arrow data, a data frame or a list of dicts")


def _from_iterable(items: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    waiting: list[Mapping[str, Any]] = []
    for item in items:
        if isinstance(item, pa.RecordBatch):
            yield item
            continue
        if isinstance(item, str):
            item = {CONTENT: item}
        if not isinstance(item, Mapping):
            raise UsageError(f"cannot append {type(item).__name__}; expected records as dicts or lines as strings")
        waiting.append(item)
        if len(waiting) == CHUNK_ROWS:
            yield _from_mappings(waiting)
            waiting = []
    if waiting:
        yield _from_mappings(waiting)


def _from_mappings(records: list[Mapping[str, Any]]) -> pa.RecordBatch:
    """One column per key; values of a key that have no common type become text."""
    names = dict.fromkeys(name for record in records for name in record)
    columns = [_column(name, [record.get(name) for record in records]) for name in names]
    return pa.RecordBatch.from_arrays(columns, list(names))


def _column(name: str, values: list[Any]) -> pa.Array:
    try:
        if name == ATTRIBUTES:
            return pa.array([_pairs(value) for value in values], ATTRIBUTES_TYPE)
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    """The value as text that UTF-8 can encode, without lone surrogates. Nested values become JSON."""
    text = json.dumps(value, default=str, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
    return text.encode("utf-8", "replace").decode()


def _pairs(value: Any) -> list[tuple[str, str | None]] | None:
    if value is None:
        return None
    pairs = value.items() if isinstance(value, Mapping) else value
    return [(_text(key), None if item is None else _text(item)) for key, item in pairs]


def tidy(batch: pa.RecordBatch, now: datetime | None = None) -> pa.RecordBatch:
    """The same records with the types of a table; a record without a timestamp gets the current time."""
    names, columns = [], []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in names:
            raise UsageError(f"there are two columns named {name}; rename one of them")
        if pa.types.is_null(column.type):
            continue
        names.append(name)
        columns.append(_tidy_column(name, valid_text(column)))
    if TIMESTAMP not in names:
        names.insert(0, TIMESTAMP)
        columns.insert(0, pa.nulls(batch.num_rows, TIMESTAMP_TYPE))
    at = names.index(TIMESTAMP)
    if columns[at].null_count:
        columns[at] = columns[at].fill_null(pa.scalar(now or datetime.now(UTC), TIMESTAMP_TYPE))
    return pa.RecordBatch.from_arrays(columns, names)


def valid_text(column: pa.Array) -> pa.Array:
    """The column with U+FFFD instead of bytes that are not UTF-8, in text at any depth and in map keys."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        kind = column.type
        if isinstance(column, pa.DictionaryArray):
            return pa.DictionaryArray.from_arrays(column.indices, valid_text(column.dictionary))
        return pa.array(python_values(column), kind)
    return column


def _tidy_column(name: str, column: pa.Array) -> pa.Array:
    try:
        if name == TIMESTAMP:
            return as_timestamps(column)
        if name in (SOURCE, LOGLEVEL, JSON_SHAPE):
            if pa.types.is_dictionary(column.type):
                return column.cast(pa.dictionary(pa.int32(), pa.string()))
            return pc.dictionary_encode(column.cast(pa.string()))
        if name == CONTENT:
            return column.cast(pa.string())
        if name == ATTRIBUTES:
            return _as_attributes(column)
        return _as_lake_type(column)
    except pa.ArrowException as error:
        found = column.type
        raise UsageError(f"the column {name} cannot be stored: {found} cannot become {_wanted(name)}") from error


def _as_lake_type(column: pa.Array) -> pa.Array:
    kind = lake_type(column.type)
    if pa.types.is_timestamp(kind):
        return microseconds_of(column).cast(kind)
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return column.cast(pa.string())  # numbers beyond 63 bits


def _wanted(name: str) -> str:
    return str(SCHEMA.field(name).type) if name in SCHEMA.names else "a type that Delta supports"


def as_timestamps(column: pa.Array) -> pa.Array:
    """Microseconds in UTC, from times, ISO 8601 strings, or numbers since 1970 in the unit that their size suggests."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_timestamp(kind):
        return microseconds_of(column).cast(TIMESTAMP_TYPE)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _epoch_times(column)
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("us")).cast(TIMESTAMP_TYPE)
    return _parse_times(column.cast(pa.string()))


def _epoch_times(column: pa.Array) -> pa.Array:
    """Times from numbers since 1970; present-day seconds, milli-, micro- and nanoseconds differ in size."""
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)  # how data frames mark a missing value
        numbers = np.asarray(column.cast(pa.float64()).fill_null(0.0))
        if (abs(numbers) > 1e20).any():
            raise UsageError(
                f"{abs(numbers).max()} is not a valid timestamp; expected seconds, or milli-, micro- or nanoseconds, "
                "since 1970"
            )
        scale = np.select([abs(numbers) < 1e11, abs(numbers) < 1e14, abs(numbers) < 1e17], [1e6, 1e3, 1.0], 1e-3)
        values = np.rint(numbers * scale).astype(np.int64)
    else:
        whole = np.asarray(column.cast(pa.int64()).fill_null(0))
        size = np.abs(np.maximum(whole, -np.iinfo(np.int64).max))  # the smallest integer has no absolute value
        conditions = [size < 10**11, size < 10**14, size < 10**17]
        values = np.select(conditions, [whole * 1_000_000, whole * 1000, whole], whole // 1000)
    return pc.if_else(column.is_null(), None, pa.array(values)).cast(pa.timestamp("us")).cast(TIMESTAMP_TYPE)


def _parse_times(texts: pa.Array) -> pa.Array:
    """Parse ISO 8601 strings; those without a time zone are in UTC."""
    try:
        return texts.cast(pa.timestamp("us", "UTC"))  # all have a zone
    except pa.ArrowInvalid:
        pass
    try:
        return texts.cast(pa.timestamp("us")).cast(TIMESTAMP_TYPE)  # none has one
    except pa.ArrowInvalid:
        values = [None if text is None else _parse_time(text) for text in texts.to_pylist()]
        return pa.array(values, TIMESTAMP_TYPE)


def _parse_time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a valid timestamp; expected ISO 8601, like 2026-11-16T03:55:00Z") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _as_attributes(column: pa.Array) -> pa.Array:
    if pa.types.is_map(column.type):
        return column.cast(ATTRIBUTES_TYPE)
    try:
        return pa.array([_pairs(value) for value in column.to_pylist()], ATTRIBUTES_TYPE)
    except (TypeError, ValueError, OverflowError) as error:  # neither a struct nor a list of pairs
        raise UsageError(
            f"the column {ATTRIBUTES} cannot be stored: {column.type} cannot become {ATTRIBUTES_TYPE}; "
            "rename it, or pass a map of strings"
        ) from error


def lake_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column in a table: Delta has no unsigned numbers, no views and only one unit of time."""
    if pa.types.is_dictionary(kind):
        return lake_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return TIMESTAMP_TYPE
    replacements = {
        pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.int64(),
        pa.float16(): pa.float32(), pa.date64(): pa.date32(),
        pa.large_string(): pa.string(), pa.string_view(): pa.string(),
        pa.large_binary(): pa.binary(), pa.binary_view(): pa.binary(),
    }  # fmt: skip
    if kind in replacements:
        return replacements[kind]
    if pa.types.is_time(kind) or pa.types.is_interval(kind):
        return pa.string()
    if pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(lake_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, lake_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(lake_type(kind.key_type), lake_type(kind.item_type))
    return kind


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> tuple[pa.RecordBatch, list[pa.Field]]:
    """Convert a tidy batch to the types of the table's columns; also returns the columns that the table lacks.

    A column whose values do not fit the table's type for it becomes an attribute, as text.
    """
    names: list[str] = []
    columns: list[pa.Array] = []
    strangers: dict[str, pa.Array] = {}
    missing: list[pa.Field] = []
    known = {name.lower() for name in schema.names}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name not in schema.names and name.lower() in known:  # Delta's names are case-insensitive
            strangers[name] = column
            continue
        known.add(name.lower())
        if name in schema.names:
            fitting = _fitted(column, schema.field(name).type)
            if fitting is None:
                strangers[name] = column
                continue
            column = fitting
        else:
            missing.append(pa.field(name, lake_type(column.type)))
        names.append(name)
        columns.append(column)
    fitted = pa.RecordBatch.from_arrays(columns, names)
    if not strangers:
        return fitted, missing
    if ATTRIBUTES not in (*schema.names, *names):
        missing.append(pa.field(ATTRIBUTES, ATTRIBUTES_TYPE))
    return with_attributes(fitted, strangers), missing


def _fitted(column: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """The column converted to `kind`, None if a value would change; a dictionary of this type stays as it is.

    Text becomes a number only if it is written as the number would be: 007 is not 7.
    """
    if _demands_values(kind):
        column = column.take(pa.array(np.arange(len(column))))  # Arrow also rejects nulls outside a slice
    if column.type == kind or (pa.types.is_dictionary(column.type) and column.type.value_type == kind):
        return column
    if pa.types.is_boolean(column.type) != pa.types.is_boolean(kind):
        return None  # true is not 1
    try:
        fitted = column.cast(kind)
        is_same = not is_text(column.type) or is_text(kind) or fitted.cast(column.type).equals(column)
    except pa.ArrowException:
        return None
    return fitted if is_same else None


def _demands_values(kind: pa.DataType) -> bool:
    """Whether some nested value must not be null, apart from map keys, which never are."""
    inner = [kind.item_field] if pa.types.is_map(kind) else [kind.field(place) for place in range(kind.num_fields)]
    return any(not field.nullable or _demands_values(field.type) for field in inner)


def with_attributes(batch: pa.RecordBatch, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """The batch with these columns added to its attributes, in rows where they have a value."""
    texts = {name: _as_text(column).to_pylist() for name, column in columns.items()}
    old = batch.column(ATTRIBUTES).to_pylist() if ATTRIBUTES in batch.schema.names else [None] * batch.num_rows
    rows = []
    for number, pairs in enumerate(old):
        more = [(name, values[number]) for name, values in texts.items() if values[number] is not None]
        rows.append([*more, *(pairs or [])] or None)  # if a key has two values, the first one counts
    attributes = pa.array(rows, ATTRIBUTES_TYPE)
    if ATTRIBUTES in batch.schema.names:
        return batch.set_column(batch.schema.get_field_index(ATTRIBUTES), ATTRIBUTES, attributes)
    return batch.append_column(ATTRIBUTES, attributes)


def _as_text(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        return pa.array([None if value is None else _text(value) for value in column.to_pylist()], pa.string())
