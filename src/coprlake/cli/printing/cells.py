"""Formats the columns of a query's result for people, and converts them to plain values for programs."""

import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from coprlake.cli.printing.row_values import cell, moments, plain, values
from coprlake.language.relabeling import relabeled
from coprlake.segment.python_values import python_values

_Column = TypeVar("_Column", pa.Array, pa.ChunkedArray)

_UNITS = (("d", 86_400 * 10**9), ("h", 3_600 * 10**9), ("m", 60 * 10**9))
_SMALL_UNITS = (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))


def duration(nanoseconds: int | None) -> str:
    """Format a duration: ``1m 30s``, ``1.5s``, ``250ms``."""
    if nanoseconds is None:
        return ""
    sign, left = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    parts = []
    for unit, length in _UNITS:
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count}{unit}")
    if left or not parts:
        unit, length = next(((u, n) for u, n in _SMALL_UNITS if left >= n), ("s", 10**9))
        if parts:
            unit, length = "s", 10**9
        digits = f"{left / length:.3f}".rstrip("0").rstrip(".") or "0"
        parts.append(f"{digits}{unit}")
    return sign + " ".join(parts)


def number(value: float | None) -> str:
    """Format a number with its significant digits."""
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return str(value)
    if value == 0 or 1 <= abs(value) < 1e15:
        return repr(round(value, 4))
    return f"{value:.5g}"


def is_number(kind: pa.DataType) -> bool:
    """Whether values of this type are right-aligned."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_duration(kind))


def texts(column: pa.Array) -> list[str]:
    """Format a column for people; null becomes an empty text."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return [text or "" for text in moments(column, "ms")]
    if pa.types.is_duration(kind):
        return [duration(value) for value in nanoseconds(column).to_pylist()]
    if pa.types.is_floating(kind):
        return [number(value) for value in column.to_pylist()]
    if pa.types.is_nested(kind):
        encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        shown = _people(kind)
        column = relabeled(column, _counted(kind))
        return ["" if value is None else encode(shown(value)) for value in python_values(column)]
    return [cell(value) for value in values(column)]


def _people(kind: pa.DataType) -> Callable[[Any], Any]:
    """Return the function that converts a nested value to readable JSON."""
    if pa.types.is_duration(kind):
        return lambda value: None if value is None else duration(value)
    if pa.types.is_floating(kind):
        return lambda value: value if value is None or not math.isfinite(value) else float(number(value))
    if pa.types.is_list(kind):
        each = _people(kind.value_type)
        return lambda value: value if value is None else [each(part) for part in value]
    if pa.types.is_struct(kind):
        members = {field.name: _people(field.type) for field in kind}
        return lambda value: value if value is None else {name: show(value[name]) for name, show in members.items()}
    if pa.types.is_map(kind):
        return lambda value: value if value is None else dict(value)
    return plain


def nanoseconds(column: _Column) -> _Column:
    """Convert durations to numbers, at any depth; leave everything else unchanged."""
    return relabeled(column, _counted(column.type))


def _counted(kind: pa.DataType) -> pa.DataType:
    """Return the type with durations replaced by numbers."""
    if pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(_counted(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _counted(field.type)) for field in kind])
    return kind


def for_programs(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert the durations of a batch to nanoseconds."""
    return pa.RecordBatch.from_arrays([nanoseconds(column) for column in batch.columns], names=batch.schema.names)


def for_lines(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert the durations of a batch to readable text."""
    columns = [
        pa.array([text or None for text in texts(column)], pa.string())
        if pa.types.is_duration(column.type)
        else nanoseconds(column)
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
