"""Arrow columns as Python values, including those that Python cannot represent.

A datetime covers the years 1 to 9999; Arrow's times have 64 bits. A Python string is valid Unicode; text from another
program may not be. Neither may end a search.
"""

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa

from coprlake.predicate.paths import is_list
from coprlake.segment.searchable import microseconds_of

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
FIRST_MICROSECOND: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
LAST_MICROSECOND: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
FIRST_DAY, LAST_DAY = ((day - date(1970, 1, 1)).days for day in (date.min, date.max))
_CYCLE_YEARS: Final = 400
_CYCLE_MICROSECONDS: Final = 146_097 * 86_400 * 10**6
"""The calendar repeats every 400 years."""


def is_datetime(microseconds: int) -> bool:
    """Whether a datetime can hold this time: the years 1 to 9999."""
    return FIRST_MICROSECOND <= microseconds <= LAST_MICROSECOND


def datetime_of(microseconds: int) -> datetime | None:
    """The time as a datetime; None if it does not fit."""
    return _EPOCH + timedelta(microseconds=microseconds) if is_datetime(microseconds) else None


def iso_text(microseconds: int, digits: int = 6) -> str:
    """The time in ISO 8601 and UTC; years of more than four digits, and those before year 0, have a sign."""
    cycles = 0 if is_datetime(microseconds) else (microseconds - FIRST_MICROSECOND) // _CYCLE_MICROSECONDS
    moment = _EPOCH + timedelta(microseconds=microseconds - cycles * _CYCLE_MICROSECONDS)
    year = moment.year + cycles * _CYCLE_YEARS
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    fraction = f".{moment.microsecond:06d}"[: digits + 1] if digits else ""
    return f"{shown}-{moment:%m-%dT%H:%M:%S}{fraction}Z"


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as dicts; see `python_values`."""
    try:
        found: list[dict[str, Any]] = batch.to_pylist()
    except (OverflowError, ValueError):  # UnicodeDecodeError is a ValueError
        names = batch.schema.names
        columns = [python_values(column) for column in batch.columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return found


def python_values(column: pa.Array) -> list[Any]:
    """The values of a column.

    A time that does not fit in a datetime becomes the number of microseconds since 1970; in lists, structs and maps,
    all times of the column become numbers then. Bytes that are not UTF-8 become U+FFFD.
    """
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        kind = column.type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return [_time(column[place], number) for place, number in enumerate(microseconds_of(column).to_pylist())]
        return [decoded(value) for value in _bare(column).to_pylist()]
    return found


def _time(value: pa.Scalar, microseconds: int | None) -> Any:
    if microseconds is None:
        return None
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return microseconds


def decoded(value: Any) -> Any:
    """The value with bytes decoded to text, at any depth."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list):
        return [decoded(element) for element in value]
    if isinstance(value, tuple):
        return tuple(decoded(element) for element in value)
    if isinstance(value, dict):
        return {name: decoded(member) for name, member in value.items()}
    return value


def _bare(column: pa.Array) -> pa.Array:
    """The column with bytes instead of text and numbers instead of times."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    return column.cast(_bare_type(column.type), safe=False)


def _bare_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        return pa.int64()
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.large_binary()
    if is_list(kind):
        return pa.large_list(_bare_type(kind.value_type)) if not pa.types.is_fixed_size_list(kind) else kind
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _bare_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_bare_type(kind.key_type), _bare_type(kind.item_type))
    return kind


def moment_texts(column: pa.Array, digits: int) -> list[str | None]:
    """Times in ISO 8601 and UTC, including those outside the years 1 to 9999."""
    return [None if number is None else iso_text(number, digits) for number in microseconds_of(column).to_pylist()]


def holds_only_datetimes(column: pa.Array) -> bool:
    """Whether a datetime can hold all times of a column."""
    numbers = np.asarray(microseconds_of(column).fill_null(0))
    return not len(numbers) or (is_datetime(int(numbers.min())) and is_datetime(int(numbers.max())))
