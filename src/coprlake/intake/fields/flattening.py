"""Columns of any Arrow type as columns of a few simple types, and what has no column of its own as attributes."""

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.kernel import I64Array
from coprlake.records import TIMESTAMP_TYPE

DEPTH: Final = 4
"""Objects inside objects become dotted keys so deep; what is deeper is JSON text."""


class Attribute(NamedTuple):
    """The values of one key that has no column."""

    key: str
    rows: I64Array
    values: pa.StringArray


def json_text(value: Any) -> str:
    """The value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _without_nulls(value: Any) -> Any:
    """Arrow gives all objects of a column all keys: those that one does not have are null."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def as_json(column: pa.Array) -> pa.StringArray:
    """Each value as compact JSON, without keys that are null."""
    texts = (None if value is None else json_text(_without_nulls(value)) for value in column.to_pylist())
    return pa.array(texts, pa.string())


def simple(column: pa.Array) -> pa.Array:
    """The column in the one type that its kind of values has in a table; null if it has no values at all."""
    kind = column.type
    types = pa.types
    if isinstance(column, pa.DictionaryArray):
        return simple(column.dictionary_decode())
    if types.is_integer(kind):
        return column.cast(pa.string() if types.is_uint64(kind) and _is_large(column) else pa.int64())
    if types.is_floating(kind):
        return column.cast(pa.float64())
    if types.is_timestamp(kind):
        return column.cast(TIMESTAMP_TYPE if kind.tz else pa.timestamp("us"), safe=False)
    if types.is_large_string(kind) or types.is_string_view(kind) or types.is_time(kind) or types.is_duration(kind):
        return column.cast(pa.string())
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _decoded(column)
    if types.is_string(kind) or types.is_boolean(kind) or types.is_null(kind) or types.is_date(kind):
        return column
    return column if types.is_decimal(kind) else as_json(column)


def _is_large(column: pa.Array) -> bool:
    return (pc.max(column).as_py() or 0) >= 1 << 63


def _decoded(column: pa.Array) -> pa.StringArray:
    """Bytes as text; with U+FFFD where they are none."""
    try:
        return column.cast(pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        texts = (None if value is None else value.decode("utf-8", "replace") for value in column.to_pylist())
        return pa.array(texts, pa.string())


def flattened(columns: Iterable[tuple[str, pa.Array]], depth: int = DEPTH) -> list[tuple[str, pa.Array]]:
    """The columns with objects taken apart: ``{"http": {"status": 200}}`` becomes ``http.status``."""
    out: list[tuple[str, pa.Array]] = []
    for name, column in columns:
        if not isinstance(column, pa.StructArray) or column.type.num_fields == 0:
            out.append((name, simple(column)))
        elif depth == 0:
            out.append((name, as_json(column)))
        else:
            names = [f"{name}.{field.name}" for field in column.type]
            out += flattened(zip(names, column.flatten(), strict=True), depth - 1)
    return out


def as_text(column: pa.Array) -> pa.StringArray:
    """Values as the attributes hold them."""
    return column if isinstance(column, pa.StringArray) else column.cast(pa.string())


def attribute(key: str, column: pa.Array) -> Attribute:
    """The values that a column has, under its name."""
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    return Attribute(key, rows, as_text(column.drop_null()))


def attribute_maps(attributes: list[Attribute], count: int) -> pa.MapArray:
    """One map for each of `count` rows; the keys of a row in the order of `attributes`, each once."""
    rows = np.concatenate([part.rows for part in attributes])
    numbers = np.repeat(np.arange(len(attributes)), [len(part.rows) for part in attributes])
    order = np.argsort(rows, kind="stable")
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=count), out=starts[1:])
    keys = pa.array([part.key for part in attributes], pa.string()).take(pa.array(numbers[order]))
    values = pa.concat_arrays([part.values for part in attributes]).take(pa.array(order))
    return pa.MapArray.from_arrays(pa.array(starts), keys, values)
