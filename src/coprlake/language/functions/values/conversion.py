"""Conversions between types."""

import re
import sys
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from sqlglot import exp

from coprlake.language.functions.array_functions import array_function, by_distinct
from coprlake.language.functions.registry import function
from coprlake.language.functions.text.spelling import spell
from coprlake.language.functions.values.operators import FROM_TEXT, from_text
from coprlake.language.plan import Apply
from coprlake.language.sql.dialect import Dialect
from coprlake.language.times import NANOSECONDS, parse_time
from coprlake.language.types import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    IP,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    array,
    carried_type,
    tight,
)

GROUP: Final = "conversion"
_LONGEST: Final = float(2**63)
_DURATION = re.compile(r"\s*([+-]?)((?:\s*[0-9]+(?:ns|us|ms|[smhdw]))+)\s*")
_DURATION_PART = re.compile(r"([0-9]+)([a-z]+)")

Sql = Sequence[exp.Expression]


def kind_at(node: Apply, place: int) -> Type:
    """The type of an argument; null if it is omitted."""
    argument = node.arguments[place]
    return NULL if argument is None else argument.type


def as_text(d: Dialect, value: exp.Expression, kind: Type) -> exp.Expression:
    """A value as text, the same in both engines."""
    if kind.kind in ("string", "ip", "null"):
        return value
    if kind.kind in ("long", "boolean"):
        return d.cast(value, STRING)
    return d.apply(array_function(spell, (carried_type(kind),), pa.string(), kind=kind), value)


def truncated(d: Dialect, value: exp.Expression) -> exp.Expression:
    """A double truncated to a long; null if it does not fit."""
    fits = d.both(d.binary(exp.GTE, value, d.double(-_LONGEST)), d.binary(exp.LT, value.copy(), d.double(_LONGEST)))
    if not d.is_spark:  # DuckDB's cast rounds, Spark's does not
        value = d.call("trunc", value)
    return d.case((fits, d.try_cast(value.copy(), LONG)), default=d.null(LONG))


@function(
    "toString(value: any) -> string",
    "The value as a string: a time like `2026-01-31T12:00:00.500Z`, a duration like `1h 30m`, "
    "arrays and records as JSON.",
    group=GROUP,
    example="data record(a = 1, b = 2.5, c = 90m, d = {1, 2}) | fields x = toString(a), y = toString(b), "
    "z = toString(c), w = toString(d)",
    gives=[{"x": "1", "y": "2.5", "z": "1h 30m", "w": "[1,2]"}],
)
def _to_string(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return as_text(d, args[0], kind_at(node, 0))


@function(
    "toLong(value: any) -> long",
    "The value as a long: a string that spells an integer, a number without its fraction, "
    "true as 1, a time as nanoseconds since 1970, a duration as nanoseconds; otherwise null.",
    group=GROUP,
    example='data record(a = "42", b = 2.7, c = "x") | fields x = toLong(a), y = toLong(b), z = toLong(c)',
    gives=[{"x": 42, "y": 2, "z": None}],
)
def _to_long(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    kind = kind_at(node, 0).kind
    if kind == "string":
        return from_text(d, args[0], LONG)
    if kind == "double":
        return truncated(d, args[0])
    if kind == "timestamp":
        return scaled(d, args[0], 1000)
    if kind in ("long", "boolean", "duration"):
        return d.cast(args[0], LONG)
    return d.null(LONG)


def scaled(d: Dialect, value: exp.Expression, factor: int) -> exp.Expression:
    """A long times a constant; null if the product does not fit in 64 bits."""
    most = (2**63 - 1) // factor
    fits = d.both(d.binary(exp.GTE, value, d.long(-most)), d.binary(exp.LTE, value.copy(), d.long(most)))
    return d.case((fits, d.times(value.copy(), d.long(factor))), default=d.null(LONG))


@function(
    "toDouble(value: any) -> double",
    "The value as a double: a string that spells a number, a number, true as 1, a duration as "
    "nanoseconds; otherwise null.",
    group=GROUP,
    example='data record(a = "2.5", b = 7, c = "x") | fields x = toDouble(a), y = toDouble(b), z = toDouble(c)',
    gives=[{"x": 2.5, "y": 7.0, "z": None}],
)
def _to_double(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    kind = kind_at(node, 0).kind
    if kind == "string":
        number = from_text(d, args[0], DOUBLE)
        is_finite = d.binary(exp.LTE, d.call("abs", number), d.double(sys.float_info.max))
        return d.case((is_finite, number.copy()), default=d.null(DOUBLE))
    if kind == "timestamp":
        return d.cast(scaled(d, args[0], 1000), DOUBLE)
    if kind == "boolean":
        return d.cast(d.cast(args[0], LONG), DOUBLE)
    return d.cast(args[0], DOUBLE) if kind in ("long", "double", "duration") else d.null(DOUBLE)


@function(
    "toBoolean(value: any) -> boolean",
    "True for the string `true` in any case and for numbers other than 0.",
    group=GROUP,
    example='data record(a = "True", b = "yes", c = 3) | fields x = toBoolean(a), y = toBoolean(b), z = toBoolean(c)',
    gives=[{"x": True, "y": False, "z": True}],
)
def _to_boolean(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    kind = kind_at(node, 0).kind
    if kind == "boolean":
        return args[0]
    if kind == "string":
        return d.matches(args[0], r"\A[tT][rR][uU][eE]\z")
    if kind in ("long", "double"):
        return d.binary(exp.NEQ, args[0], d.long(0) if kind == "long" else d.double(0.0))
    return d.null(BOOLEAN)


@function(
    "toTimestamp(value: string|timestamp|long) -> timestamp",
    "A string in ISO 8601 format as a timestamp; a number is in nanoseconds since 1970. Otherwise null.",
    group=GROUP,
    example='data record(a = "2026-01-31T12:00:00+01:00") | fields x = toTimestamp(a)',
    gives=[{"x": "2026-01-31T11:00:00Z"}],
)
def _to_timestamp(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    kind = kind_at(node, 0).kind
    if kind == "long":
        return d.floor_divide(args[0], d.long(1000))
    if kind == "string":
        return d.apply(array_function(_times_of, (pa.string(),), pa.int64()), args[0])
    return args[0]


def _times_of(texts: pa.Array) -> pa.Array:
    return by_distinct(texts, pa.int64(), parse_time)


@function(
    "toDuration(value: string|number|duration) -> duration",
    "A string like `1h 30m` as a duration, in the units w, d, h, m, s, ms, us and ns; a "
    "number is in nanoseconds. Otherwise null.",
    group=GROUP,
    example='data record(a = "1h 30m", b = 1000, c = "soon") | fields x = toDuration(a), y = toDuration(b), '
    "z = toDuration(c)",
    gives=[{"x": 5_400_000_000_000, "y": 1000, "z": None}],
)
def _to_duration(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    kind = kind_at(node, 0).kind
    if kind == "string":
        return d.apply(array_function(_durations_of, (pa.string(),), pa.int64()), args[0])
    return truncated(d, args[0]) if kind == "double" else args[0]


def _durations_of(texts: pa.Array) -> pa.Array:
    return by_distinct(texts, pa.int64(), parse_duration)


def parse_duration(text: str) -> int | None:
    """Parse a duration to nanoseconds; None if it is not valid or too long."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    total = sum(int(count[:20]) * NANOSECONDS[unit] for count, unit in _DURATION_PART.findall(found[2]))
    return None if total >= 2**63 else -total if found[1] == "-" else total


def _as_array_type(types: Sequence[Type | None]) -> Type | None:
    first = types[0] or NULL
    return first if first.kind == "array" else array(tight(first))


@function(
    "toArray(value: any) -> array<any>",
    "An array with the value as its only element. An array is returned unchanged, and null stays null.",
    group=GROUP,
    example="data record(a = 1, b = {2, 3}) | fields x = toArray(a), y = toArray(b)",
    gives=[{"x": [1], "y": [2, 3]}],
    result=_as_array_type,
)
def _to_array(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    kind = kind_at(node, 0)
    if kind.kind == "array":
        return args[0]
    one = d.list_of([args[0]], node.type.element or NULL)
    return d.case((d.is_null(args[0].copy()), d.null(node.type)), default=one)


# The value if it has a certain type

_VALUES: Final = 'data record(a = 1, b = "1") | fields '
_LOOSE_TOO: Final = " An attribute has no type, so it counts as one if it can be read as one."


def _as(name: str, kind: str, gives: Type, doc: str, example: str, rows: Sequence[dict[str, object]]) -> None:
    kinds = ("record", "map") if kind == "record" else (kind,)

    def result(types: Sequence[Type | None]) -> Type | None:
        first = types[0] or NULL
        return tight(first) if first.kind in kinds else gives

    def sql(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
        have = kind_at(node, 0)
        if have.kind in kinds:
            return args[0]
        if have.is_loose and kind in FROM_TEXT:
            return from_text(d, args[0], gives)
        return d.null(node.type)

    function(
        f"{name}(value: any) -> {kind}",
        f"The value if it is {doc}, otherwise null. Nothing is converted."
        + (_LOOSE_TOO if gives in (LONG, DOUBLE, BOOLEAN) else ""),
        group=GROUP,
        example=example,
        gives=rows,
        result=result,
    )(sql)


_as("asLong", "long", LONG, "a long", _VALUES + "x = asLong(a), y = asLong(b)", [{"x": 1, "y": None}])
_as(
    "asDouble",
    "double",
    DOUBLE,
    "a double",
    _VALUES + "x = asDouble(2.5), y = asDouble(b)",
    [{"x": 2.5, "y": None}],
)
_as("asString", "string", STRING, "a string", _VALUES + "x = asString(a), y = asString(b)", [{"x": None, "y": "1"}])
_as(
    "asBoolean",
    "boolean",
    BOOLEAN,
    "a boolean",
    _VALUES + "x = asBoolean(a), y = asBoolean(a == 1)",
    [{"x": None, "y": True}],
)
_as(
    "asTimestamp",
    "timestamp",
    TIMESTAMP,
    "a timestamp",
    _VALUES + 'x = asTimestamp(a), y = asTimestamp(toTimestamp("2026-01-31T12:00:00Z"))',
    [{"x": None, "y": "2026-01-31T12:00:00Z"}],
)
_as(
    "asDuration",
    "duration",
    DURATION,
    "a duration",
    _VALUES + "x = asDuration(a), y = asDuration(2s)",
    [{"x": None, "y": 2 * 10**9}],
)
_as(
    "asIp", "ip", IP, "an IP address", _VALUES + 'x = asIp(b), y = asIp(ip("10.0.0.1"))', [{"x": None, "y": "10.0.0.1"}]
)
_as("asArray", "array", array(NULL), "an array", _VALUES + "x = asArray({1, 2})", [{"x": [1, 2]}])
_as("asRecord", "record", NULL, "a record", _VALUES + "x = asRecord(record(k = a))", [{"x": {"k": 1}}])
