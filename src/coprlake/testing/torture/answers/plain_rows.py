"""Converts Arrow data to plain Python values without loss, for the oracle.

``to_pylist`` cannot hold times outside the years 1 to 9999, nanoseconds, or invalid UTF-8. Here all text is bytes, and
a time is a `Moment`. A struct is a dict, a list is a list, and a map is a list of pairs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from coprlake.records import ATTRIBUTES

Row: TypeAlias = dict[str, Any]

_UNITS_A_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY_US: Final = 86_400 * 10**6
_FARTHEST_US: Final = (2**63 - 1) // _DAY_US * _DAY_US


@dataclass(frozen=True, order=True, slots=True)
class Moment:
    """A time of any size and unit; a time without a zone is UTC, and a day is its midnight."""

    microseconds: Fraction


def clipped(microseconds: int) -> int:
    """Clamp a time to whole days that fit into 64 bits of microseconds."""
    return min(max(microseconds, -_FARTHEST_US), _FARTHEST_US)


@dataclass(frozen=True, slots=True)
class Unordered:
    """A value that is neither text, number, boolean nor time, such as a time of day: it only exists."""

    shown: str


class Pairs(tuple[tuple[bytes, bytes | None], ...]):
    """The attributes of a row: a map of text to text."""

    __slots__ = ()


def plain_rows(table: pa.Table) -> list[Row]:
    """The rows of a table; nulls are None."""
    columns = {name: _values(name, table.column(name).combine_chunks()) for name in table.schema.names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _values(name: str, column: pa.Array | pa.ChunkedArray) -> list[Any]:
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if (
        name == ATTRIBUTES
        and isinstance(column, pa.MapArray)
        and _is_text(column.keys.type)
        and _is_text(column.items.type)
    ):
        keys, items = _values("", column.keys), _values("", column.items)
        return _sliced(column, lambda first, last: Pairs(zip(keys[first:last], items[first:last], strict=True)))
    return _plain(column)


def _plain(column: pa.Array) -> list[Any]:
    kind = column.type
    types = pa.types
    if isinstance(column, pa.DictionaryArray):
        return _plain(column.dictionary_decode())
    if _is_text(kind):
        return list(column.cast(pa.large_binary()).to_pylist())
    if types.is_timestamp(kind):
        scale = Fraction(10**6, _UNITS_A_SECOND[kind.unit])
        return [None if n is None else Moment(n * scale) for n in column.view(pa.int64()).to_pylist()]
    if types.is_date32(kind):
        return [None if n is None else Moment(Fraction(n * _DAY_US)) for n in column.view(pa.int32()).to_pylist()]
    if types.is_date64(kind):
        return [None if n is None else Moment(Fraction(n * 1000)) for n in column.view(pa.int64()).to_pylist()]
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_decimal(kind):
        return list(column.to_pylist())
    if types.is_floating(kind):
        return list(column.cast(pa.float64()).to_pylist())
    if types.is_nested(kind):
        return _nested(column)
    if types.is_null(kind):
        return [None] * len(column)
    numbers = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())  # time of day, duration
    return [None if n is None else Unordered(f"{n} {kind}") for n in numbers.to_pylist()]


def _nested(column: pa.Array) -> list[Any]:
    kind = column.type
    if isinstance(column, pa.StructArray):
        names = [kind.field(number).name for number in range(kind.num_fields)]
        members = [_plain(column.field(number)) for number in range(kind.num_fields)]
        found = [dict(zip(names, values, strict=True)) for values in zip(*members, strict=True)]
        return [value if valid else None for value, valid in zip(found, column.is_valid().to_pylist(), strict=True)]
    if isinstance(column, pa.MapArray):
        keys, items = _plain(column.keys), _plain(column.items)
        return _sliced(column, lambda a, b: list(zip(keys[a:b], items[a:b], strict=True)))
    if pa.types.is_fixed_size_list(kind):
        column = column.cast(pa.list_(kind.value_type))
    assert isinstance(column, pa.ListArray | pa.LargeListArray), kind
    elements = _plain(column.values)
    return _sliced(column, lambda a, b: elements[a:b])


def _sliced(column: pa.ListArray | pa.LargeListArray, take: Callable[[int, int], Any]) -> list[Any]:
    offsets = column.offsets.to_pylist()
    valid = column.is_valid().to_pylist()
    return [take(offsets[i], offsets[i + 1]) if valid[i] else None for i in range(len(column))]


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    names = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    return str(kind) in names or pa.types.is_fixed_size_binary(kind)


def leaves_in(value: Any) -> list[Any]:
    """All leaf values inside a value; keys of maps are names, not values."""
    if isinstance(value, dict):
        return [leaf for member in value.values() for leaf in leaves_in(member)]
    if isinstance(value, list | Pairs):
        return [leaf for part in value for leaf in leaves_in(part[1] if isinstance(part, tuple) else part)]
    return [] if value is None else [value]


def texts_in(value: Any) -> list[bytes]:
    """All text in a value, at any depth."""
    return [leaf for leaf in leaves_in(value) if isinstance(leaf, bytes)]


def is_valid_text(table: pa.Table) -> bool:
    """Whether all strings in the table are valid UTF-8."""
    for column in table.columns:
        if pa.types.is_string(column.type):
            try:
                pc.utf8_length(column)
                for chunk in column.chunks:
                    chunk.validate(full=True)
            except pa.ArrowInvalid:
                return False
    return True
