"""Null handling and conditionals: if, coalesce and similar functions."""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from coprlake.language.functions.registry import FUNCTIONS, function, internal
from coprlake.language.plan import Apply
from coprlake.language.sql.dialect import Dialect
from coprlake.language.types import MAP

GROUP: Final = "null and flow"

Sql = Sequence[exp.Expression]


@function(
    "if(condition: boolean, then: T, else: T = null) -> T",
    "The second argument if the condition is true, otherwise the third, or null without one.",
    group=GROUP,
    example='data record(a = 1), record(a = 5) | fields a, x = if(a > 3, "many", else: "few")',
    gives=[{"a": 1, "x": "few"}, {"a": 5, "x": "many"}],
)
def _if(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    other = args[2] if len(args) > 2 and args[2] is not None else d.null(node.type)
    return d.case((args[0], args[1]), default=other)


@function(
    "coalesce(values: T...) -> T",
    "The first argument that is not null.",
    group=GROUP,
    example='data record(a = null, b = "x") | fields x = coalesce(a, b, "y")',
    gives=[{"x": "x"}],
)
def _coalesce(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.call("coalesce", *args)


@function(
    "isNull(value: any) -> boolean",
    "Whether there is no value.",
    group=GROUP,
    example="data record(a = null), record(a = 1) | fields x = isNull(a)",
    gives=[{"x": True}, {"x": False}],
)
def _is_null(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.is_null(args[0])


@function(
    "isNotNull(value: any) -> boolean",
    "Whether there is a value.",
    group=GROUP,
    example="data record(a = null), record(a = 1) | fields x = isNotNull(a)",
    gives=[{"x": False}, {"x": True}],
)
def _is_not_null(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.no(d.is_null(args[0]))


function(
    "exists(value: any) -> boolean",
    "Whether there is a value: the same as `isNotNull`.",
    group=GROUP,
    example="data record(a = null), record(a = 1) | fields x = exists(a)",
    gives=[{"x": False}, {"x": True}],
)(_is_not_null)


@function(
    "isTrueOrNull(value: boolean) -> boolean",
    "Whether the value is not false.",
    group=GROUP,
    example="data record(a = true), record(a = false), record(a = null) | fields x = isTrueOrNull(a)",
    gives=[{"x": True}, {"x": False}, {"x": True}],
)
def _is_true_or_null(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.call("coalesce", args[0], d.true())


@function(
    "isFalseOrNull(value: boolean) -> boolean",
    "Whether the value is not true.",
    group=GROUP,
    example="data record(a = true), record(a = false), record(a = null) | fields x = isFalseOrNull(a)",
    gives=[{"x": False}, {"x": True}, {"x": True}],
)
def _is_false_or_null(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.no(d.is_true(args[0]))


def _without_keys(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    """The map without the given keys."""

    def kept(entry: exp.Expression) -> exp.Expression:
        return d.both(*(d.no(d.equal(d.member(entry.copy(), "key"), key)) for key in args[1:]))

    return d.call("map_from_entries", d.keep(d.call("map_entries", args[0]), kept))


FUNCTIONS["without keys"] = internal("without keys", _without_keys, MAP)
