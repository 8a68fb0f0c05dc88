"""Which partition a record belongs to, and where its data is stored."""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.errors import UsageError
from coprlake.records import DAY, TIMESTAMP
from coprlake.segment.python_values import FIRST_DAY, LAST_DAY

NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name that every engine gives to the folder of records without a value in the column."""

Partition = tuple[str | None, ...]
"""The values of the partition columns as text, as in the log."""


def with_day(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with a column for the day of each timestamp, unless it already has one.

    A time outside the years 1 to 9999, the range of Delta's dates, has no day; its record goes to the partition without
    a value.
    """
    if DAY in batch.schema.names:
        return batch
    days = batch.column(TIMESTAMP).cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
    return batch.append_column(DAY, _dates(days))


def _dates(days: pa.Array) -> pa.Array:
    """The days, null where a date cannot hold them."""
    numbers = days.cast(pa.int32())
    fits = pc.and_(pc.greater_equal(numbers, FIRST_DAY), pc.less_equal(numbers, LAST_DAY))
    return days if pc.all(fits).as_py() in (True, None) else pc.if_else(fits, days, pa.scalar(None, pa.date32()))


def split(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[Partition, pa.RecordBatch]]:
    """The records of each partition, in order, without the partition columns."""
    if not columns:
        yield (), batch
        return
    keys = [_codes(name, batch.column(name)) if name in batch.schema.names else None for name in columns]
    rest = batch.drop_columns([name for name in columns if name in batch.schema.names])
    combined = np.zeros(batch.num_rows, np.int64)
    for key in keys:
        if key is not None:
            combined = combined * (len(key[1]) + 1) + key[0]
    if not len(combined) or (combined == combined[0]).all():
        if batch.num_rows:
            yield _values(keys, 0), rest
        return
    order = np.argsort(combined, kind="stable")
    _, starts = np.unique(combined[order], return_index=True)
    ordered = rest.take(pa.array(order))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        yield _values(keys, int(order[start])), ordered.slice(start, end - start)


def _codes(name: str, column: pa.Array) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[Any]]:
    """A number for each row's value, and the distinct values; nulls get the number after the last."""
    if name == DAY and pa.types.is_date32(column.type):
        column = _dates(column)
    encoded = column if isinstance(column, pa.DictionaryArray) else pc.dictionary_encode(column)
    try:
        values = encoded.dictionary.to_pylist()
    except (OverflowError, ValueError) as error:
        raise UsageError(
            f"the column {name} has a time outside the years 1 to 9999, which cannot be a partition value; "
            "leave these records out, or partition the table by another column"
        ) from error
    return np.asarray(encoded.indices.cast(pa.int64()).fill_null(len(values))), values


def _values(keys: list[Any], row: int) -> Partition:
    found: list[str | None] = []
    for key in keys:
        codes, values = key or (np.zeros(row + 1, np.int64), [])
        number = int(codes[row])
        found.append(log_text(values[number]) if number < len(values) else None)
    return tuple(found)


def log_text(value: Any) -> str | None:
    """A partition value as text, as in the log (Delta protocol, "Partition Value Serialization")."""
    if value is None or value == "":
        return None  # Delta has no empty strings here: they read as null
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")
    return value.isoformat() if isinstance(value, date) else str(value)


def folder_of(columns: Sequence[str], partition: Partition) -> str:
    """The folder of a partition's data files, ending in a slash; empty without partitions."""
    parts = (
        f"{quote(name, safe='')}={NO_VALUE if value is None else quote(value, safe='')}/"
        for name, value in zip(columns, partition, strict=True)
    )
    return "".join(parts)


def fresh_name(columns: Sequence[str], partition: Partition) -> str:
    """A new, unique name for a data file; the names in one partition sort by time of creation."""
    return f"{folder_of(columns, partition)}{time.time_ns():016x}-{uuid.uuid4().hex}.parquet"


def constants(partition: Mapping[str, Any], schema: pa.Schema) -> dict[str, pa.Scalar]:
    """The partition's values with the types of their columns."""
    scalars = {}
    for name, value in partition.items():
        kind = schema.field(name).type if name in schema.names else pa.string()
        if isinstance(value, str):
            text = pa.scalar(value, pa.string())
            is_time = pa.types.is_timestamp(kind)  # times in the log have no zone and are in UTC
            scalars[name] = text.cast(pa.timestamp("us")).cast(kind) if is_time else text.cast(kind)
        else:
            scalars[name] = pa.scalar(value, kind)
    return scalars
