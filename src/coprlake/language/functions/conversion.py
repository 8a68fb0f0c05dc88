"""From one type to another."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from coprlake.language.functions.kernels import kernel
from coprlake.language.functions.operators import from_text
from coprlake.language.functions.registry import function
from coprlake.language.plan import Apply
from coprlake.language.sql.dialect import Dialect
from coprlake.language.types import LONG, STRING

GROUP: Final = "conversion"

Sql = Sequence[exp.Expression]


def _double_texts(numbers: pa.Array) -> pa.Array:
    """Floating numbers as Python and JSON spell them."""
    distinct = pc.dictionary_encode(numbers)
    return pa.array([repr(value) for value in distinct.dictionary.to_pylist()], pa.string()).take(distinct.indices)


def as_text(d: Dialect, value: exp.Expression, kind: str) -> exp.Expression:
    """A value as text, spelled alike by both engines."""
    if kind == "double":
        return d.kernel(kernel(_double_texts, (pa.float64(),), pa.string()), value)
    return d.cast(value, STRING)


@function(
    "toString(value: any) -> string",
    "The value as text.",
    group=GROUP,
    example="data record(a = 1, b = 2.5, c = true) | fields x = toString(a), y = toString(b), z = toString(c)",
    gives=[{"x": "1", "y": "2.5", "z": "true"}],
)
def _to_string(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    assert node.arguments[0] is not None
    return as_text(d, args[0], node.arguments[0].type.kind)


@function(
    "toLong(value: any) -> long",
    "The value as a whole number: a text that spells one, a number without what is behind the point, a time as "
    "nanoseconds since 1970; else null.",
    group=GROUP,
    example='data record(a = "42", b = 2.7, c = "x") | fields x = toLong(a), y = toLong(b), z = toLong(c)',
    gives=[{"x": 42, "y": 2, "z": None}],
)
def _to_long(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    assert node.arguments[0] is not None
    kind = node.arguments[0].type.kind
    if kind == "string":
        return from_text(d, args[0], LONG)
    if kind == "double":
        whole = (
            d.call("trunc", args[0])
            if not d.is_spark
            else d.case(
                (d.binary(exp.LT, args[0], d.double(0.0)), d.call("ceil", args[0].copy())),
                default=d.call("floor", args[0].copy()),
            )
        )
        return d.try_cast(whole, LONG)
    if kind == "timestamp":
        return d.times(args[0], d.long(1000))
    return d.cast(args[0], LONG)


@function(
    "toTimestamp(value: string|timestamp|long) -> timestamp",
    "A text in ISO format as a time; a number counts nanoseconds since 1970. Else null.",
    group=GROUP,
    example='data record(a = "2026-01-31T12:00:00+01:00") | fields x = toTimestamp(a)',
    gives=[{"x": "2026-01-31T11:00:00Z"}],
)
def _to_timestamp(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    assert node.arguments[0] is not None
    kind = node.arguments[0].type.kind
    if kind == "long":
        return d.floor_divide(args[0], d.long(1000))
    if kind == "string":
        return d.kernel(kernel(_times_of, (pa.string(),), pa.int64()), args[0])
    return args[0]


def _times_of(texts: pa.Array) -> pa.Array:
    from coprlake.language.times import parse_time

    distinct = pc.dictionary_encode(texts)
    parsed = [None if text is None else parse_time(text) for text in distinct.dictionary.to_pylist()]
    return pa.array(parsed, pa.int64()).take(distinct.indices)
