"""Converts Arrow columns to Python values that can be printed, whatever bytes they contain."""

import json
import math
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coprlake.text.text_types import is_bytes, is_text


def is_printed_as_text(kind: pa.DataType) -> bool:
    """Whether values of this type are text, or bytes that may be."""
    return is_text(kind) or is_bytes(kind)


def raw_texts(column: pa.Array) -> list[bytes | None]:
    """Return the raw bytes of a text column: what another program wrote may not be valid UTF-8."""
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    return column.cast(pa.large_binary()).to_pylist()


def values(column: pa.Array) -> list[Any]:
    """Convert a column to Python values, with invalid UTF-8 replaced and times as text."""
    if is_printed_as_text(column.type):
        try:
            found = column.to_pylist()
            return [_decoded(value) for value in found] if is_bytes(column.type) else found
        except UnicodeDecodeError:
            return [_decoded(value) for value in raw_texts(column)]
    if pa.types.is_timestamp(column.type):
        return moments(column)
    from coprlake.segment.python_values import iso_text, python_values

    found = python_values(column)
    if pa.types.is_map(column.type):
        return [None if value is None else dict(value) for value in found]
    if pa.types.is_date(column.type):  # a number where no date can hold the day
        return [iso_text(value).partition("T")[0] if isinstance(value, int) else value for value in found]
    return found


def _decoded(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def moments(column: pa.Array, unit: str | None = None) -> list[str | None]:
    """Format times as ISO 8601 in UTC, with all digits of their unit, so that they also sort as text."""
    from coprlake.segment.python_values import holds_only_datetimes, moment_texts

    if unit is None:
        assert pa.types.is_timestamp(column.type), column.type
        unit = column.type.unit
    if not holds_only_datetimes(column):
        return moment_texts(column, _DIGITS[unit])
    naive = column.cast(pa.timestamp(unit), safe=False)
    return pc.strftime(naive, format="%Y-%m-%dT%H:%M:%SZ").to_pylist()


def local_moments(column: pa.Array) -> list[str | None]:
    """Format times as ISO 8601 in the local zone, with its offset and milliseconds; in UTC where that fails."""
    in_utc = moments(column, "ms")
    micros = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_pylist()
    return [_local(us, text) for us, text in zip(micros, in_utc, strict=True)]


def _local(micros: int | None, in_utc: str | None) -> str | None:
    if micros is None:
        return in_utc
    try:
        moment = (_EPOCH + timedelta(microseconds=micros)).astimezone()
    except (OverflowError, ValueError, OSError):
        return in_utc
    return moment.isoformat(timespec="milliseconds") if moment.utcoffset() else in_utc


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 6}


def plain_values(column: pa.Array) -> list[Any]:
    """Convert a column to values that JSON can represent."""
    kind, found = column.type, values(column)
    is_plain = is_printed_as_text(kind) or any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_boolean, pa.types.is_timestamp)
    )
    return found if is_plain or column.null_count == len(column) else [plain(value) for value in found]


def plain(value: Any) -> Any:
    """Convert a value, and everything nested in it, to what JSON can represent."""
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
            return {str(plain(key)): plain(item) for key, item in value}
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, timedelta):
        return value.total_seconds()
    if value is None or isinstance(value, str | int | bool):
        return value
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _moment(value: datetime) -> str:
    """Format a time that is nested in another value."""
    utc = value if value.tzinfo is None else value.astimezone(UTC)
    return utc.replace(tzinfo=None).isoformat() + "Z"


def cell(value: Any) -> str:
    """Format a value as text: times as ISO 8601, maps and lists as JSON, null as an empty text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    known = plain(value)
    if isinstance(known, str):
        return known
    return json.dumps(known, ensure_ascii=False)
