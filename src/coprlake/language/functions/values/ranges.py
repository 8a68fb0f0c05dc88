"""Indexes into strings and arrays: from 0, negative ones from the end, limited to the valid range."""

from collections.abc import Callable, Sequence

from sqlglot import exp

from coprlake.language.functions.text.text_matching import constant_at
from coprlake.language.plan import Apply
from coprlake.language.sql.dialect import Dialect, simple_type

Sql = Sequence["exp.Expression | None"]


def span(d: Dialect, node: Apply, args: Sql, length: exp.Expression) -> tuple[exp.Expression, exp.Expression]:
    """The second and third argument, `from` and `to`, as a start counted from 1 and a count for the engine.

    Null if either is null. The `least` and `greatest` of engines skip null, so we do not use them.
    """
    begin = _place(d, constant_at(node, 1), args[1], length)
    end = length.copy() if args[2] is None else _place(d, constant_at(node, 2), args[2], length)
    is_some, is_none = d.binary(exp.GT, end, begin), d.binary(exp.LTE, end.copy(), begin.copy())
    count = d.case((is_some, d.minus(end.copy(), begin.copy())), (is_none, d.long(0)), default=exp.Null())
    return _number(d, d.plus(begin.copy(), d.long(1))), _number(d, count)


def _place(d: Dialect, known: object, index: exp.Expression | None, length: exp.Expression) -> exp.Expression:
    """The index, limited to the range from 0 to the length."""
    if known == 0:
        return d.long(0)
    assert index is not None
    is_inside = (d.binary(exp.LT, index, length), index.copy())
    if isinstance(known, int) and known > 0:
        return d.case(is_inside, default=length.copy())
    from_end = d.plus(length.copy(), index.copy())
    is_before = (d.binary(exp.LT, from_end, d.long(0)), d.long(0))
    if isinstance(known, int):
        return d.case(is_before, default=from_end.copy())
    is_negative = d.binary(exp.LT, index.copy(), d.long(0))
    return d.case(
        (d.is_null(index.copy()), exp.Null()),
        (is_negative, d.case(is_before, default=from_end.copy())),
        is_inside,
        default=length.copy(),
    )


def in_range_of(
    d: Dialect, index: exp.Expression, length: exp.Expression, at: Callable[[exp.Expression], exp.Expression]
) -> exp.Expression:
    """The value of `at` for an index, passed counted from 1; null if the index is out of range."""
    is_after = d.both(d.binary(exp.GTE, index, d.long(0)), d.binary(exp.LT, index.copy(), length))
    is_before = d.both(
        d.binary(exp.LT, index.copy(), d.long(0)),
        d.binary(exp.GTE, d.plus(length.copy(), index.copy()), d.long(0)),
    )
    place = d.case((is_after, index.copy()), (is_before, d.plus(length.copy(), index.copy())), default=exp.Null())
    return at(_number(d, d.plus(place, d.long(1))))


def _number(d: Dialect, number: exp.Expression) -> exp.Expression:
    """Cast to the type that the engine counts in; the number is known to fit."""
    return exp.Cast(this=number, to=simple_type("INT" if d.is_spark else "BIGINT"))
