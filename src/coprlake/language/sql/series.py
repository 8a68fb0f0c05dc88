"""The SQL of `makeTimeseries`: group by slot, then one array of slots a group.

Where the timeframe is not known before the records are, its begin, end and interval are computed from them in the same
query.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from coprlake.language.plan import Column, Series
from coprlake.language.slots import DAY, MOST_SLOTS, STEPS, slots
from coprlake.language.sql.dialect import Dialect, simple_type
from coprlake.language.sql.relation import Relation, identifier, of_select
from coprlake.language.types import LONG, TIMEFRAME, array

if TYPE_CHECKING:
    from coprlake.language.sql.lowering import Lowering

_BOUNDS: Final = ("series_start", "series_interval", "series_slots")


def lower_series(lowering: "Lowering", node: Series, relation: Relation) -> Relation:
    """The rows of a `Series`."""
    d, names = lowering.dialect, lowering.names
    time = lowering.expression(node.time, relation)
    known = slots(node.bounds)
    if known is not None:
        start, interval, count = (d.long(number) for number in known)
    else:
        bounds = _measured_bounds(d, node, relation, time)
        alias = names.fresh("bounds")
        table = exp.Subquery(this=bounds, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        relation.select = relation.select.join(table, join_type="cross", copy=False)
        start, interval, count = (identifier(name) for name in _BOUNDS)
    slot = d.quotient(d.minus(time.copy(), start), interval)  # what is before the begin is left out below
    given = [
        d.binary(kind, time.copy(), d.long(bound))
        for kind, bound in ((exp.GTE, node.bounds.since), (exp.LT, node.bounds.until))
        if bound is not None
    ]
    inside = d.both(
        *given,
        exp.Not(this=d.is_null(time.copy())),
        d.binary(exp.GTE, time.copy(), start.copy()),
        d.binary(exp.LT, slot.copy(), count.copy()),
    )
    slot_name, columns = names.fresh("slot"), dict(node.keys)
    bound_names = [names.fresh(name) for name in _BOUNDS]
    keys = [lowering.group_key(value, relation) for value in columns.values()]
    measures = [
        _rated(d, node, column, lowering.expression(value, relation), interval)
        for column, value in node.measures.items()
    ]
    grouped = relation.select.where(inside, copy=False).select(
        *(exp.alias_(key, names.of(column), quoted=True) for key, column in zip(keys, columns, strict=True)),
        exp.alias_(slot, slot_name, quoted=True),
        *(
            exp.alias_(value.copy(), name, quoted=True)
            for value, name in zip((start, interval, count), bound_names, strict=True)
        ),
        *(
            exp.alias_(value, names.of(column), quoted=True)
            for value, column in zip(measures, node.measures, strict=True)
        ),
        append=False,
        copy=False,
    )
    groups = [key.copy() for key, value in zip(keys, columns.values(), strict=True) if not isinstance(key, exp.Literal)]
    per_group = [*groups, slot.copy()]
    if known is None:
        per_group += [start.copy(), interval.copy(), count.copy()]
    grouped = grouped.group_by(*per_group, copy=False)
    return _arrays(lowering, node, grouped, slot_name, bound_names, known)


def _rated(d: Dialect, node: Series, column: Column, value: exp.Expression, interval: exp.Expression) -> exp.Expression:
    """A measure for a unit of time instead of for a slot."""
    rate = node.rates.get(column)
    if rate is None:
        return value
    double = simple_type("DOUBLE")
    length = d.times(exp.Cast(this=interval.copy(), to=double), d.double(1000.0))
    return d.binary(exp.Div, d.times(exp.Cast(this=value, to=double), d.double(float(rate))), length)


def _measured_bounds(d: Dialect, node: Series, relation: Relation, time: exp.Expression) -> exp.Expression:
    """The begin, interval and number of slots by the records themselves."""
    bounds = node.bounds
    inner = relation.select.copy().select(
        exp.alias_(d.call("min", time.copy()) if bounds.since is None else d.long(bounds.since), "first", quoted=True),
        exp.alias_(
            d.plus(d.call("max", time.copy()), d.long(1)) if bounds.until is None else d.long(bounds.until),
            "last",
            quoted=True,
        ),
        append=False,
        copy=False,
    )
    first, last, step = identifier("first"), identifier("last"), identifier(_BOUNDS[1])
    span = d.minus(last, first)
    ideal = d.floor_divide(d.plus(span, d.long(bounds.bins - 1)), d.long(bounds.bins))
    levels = _level(inner, [exp.alias_(ideal, "ideal", quoted=True)], keep=("first", "last"))
    levels = _level(
        levels, [exp.alias_(_interval(d, bounds.interval), _BOUNDS[1], quoted=True)], keep=("first", "last")
    )
    start = d.times(d.floor_divide(first.copy(), step), step.copy())
    levels = _level(levels, [exp.alias_(start, _BOUNDS[0], quoted=True)], keep=("last", _BOUNDS[1]))
    behind = d.plus(d.minus(last.copy(), identifier(_BOUNDS[0])), d.minus(step.copy(), d.long(1)))
    count = exp.alias_(d.floor_divide(behind, step.copy()), "counted", quoted=True)
    levels = _level(levels, [count], keep=_BOUNDS[:2])
    failing = d.call(
        d.pick(duckdb="error", spark="raise_error"), d.text(f"more than {MOST_SLOTS} slots; raise the interval")
    )
    counted = identifier("counted")
    checked = d.case(
        (d.binary(exp.GT, counted, d.long(MOST_SLOTS)), exp.Cast(this=failing, to=simple_type("BIGINT"))),
        default=counted.copy(),
    )
    return _level(levels, [exp.alias_(checked, _BOUNDS[2], quoted=True)], keep=_BOUNDS[:2])


def _level(inner: exp.Expression, new: "list[exp.Expr]", keep: Iterable[str]) -> exp.Select:
    """One level further out, so that what is computed twice is a name the second time."""
    return exp.Select(expressions=[*map(identifier, keep), *new]).from_(_named(inner, "b"), copy=False)


def _interval(d: Dialect, given: int | None) -> exp.Expression:
    if given is not None:
        return d.long(given)
    ideal = identifier("ideal")
    days = d.floor_divide(d.plus(ideal, d.long(DAY - 1)), d.long(DAY))
    branches = [(d.binary(exp.LTE, ideal.copy(), d.long(step)), d.long(step)) for step in STEPS]
    return d.case(*branches, default=d.times(days, d.long(DAY)))


def _named(select: exp.Expression, alias: str) -> exp.Subquery:
    return exp.Subquery(this=select, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))


def _arrays(
    lowering: "Lowering",
    node: Series,
    grouped: exp.Select,
    slot_name: str,
    bound_names: list[str],
    known: tuple[int, int, int] | None,
) -> Relation:
    d, names = lowering.dialect, lowering.names
    collect = d.pick(duckdb="list", spark="collect_list")
    start, interval, count = (d.call("min", identifier(name)) for name in bound_names)
    if known is not None:
        start, interval, count = (d.long(number) for number in known)
    outputs: list[exp.Expr] = [
        exp.alias_(identifier(names.of(column)), names.of(column), quoted=True) for column in node.keys
    ]
    end = d.plus(start.copy(), d.times(interval.copy(), count.copy()))
    outputs.append(
        exp.alias_(d.pack([n for n, _ in TIMEFRAME.members], [start, end]), names.of(node.timeframe), quoted=True)
    )
    outputs.append(exp.alias_(d.times(interval.copy(), d.long(1000)), names.of(node.interval), quoted=True))
    finals: dict[Column, tuple[str, str]] = {}
    counts = names.fresh("series_slots")
    outputs.append(exp.alias_(count.copy(), counts, quoted=True))
    for measure, result in node.arrays.items():
        entries = names.fresh("entries")
        pair = d.pack(["key", "value"], [identifier(slot_name), identifier(names.of(measure))])
        outputs.append(exp.alias_(d.call("map_from_entries", d.call(collect, pair)), entries, quoted=True))
        finals[result] = (entries, counts)
    select = exp.Select(expressions=outputs).from_(_named(grouped, names.fresh("t")), copy=False)
    if node.keys:
        select = select.group_by(*(identifier(names.of(column)) for column in node.keys), copy=False)
    elif not (node.is_nonempty and known is not None):
        select = select.having(exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0)), copy=False)
    plain = [*node.keys, node.timeframe, node.interval]
    relation = of_select(select, names, plain)
    for measure, result in node.arrays.items():
        entries, counts = finals[result]
        fill = node.fills.get(measure)

        def value(
            index: exp.Expression, entries: str = entries, fill: object = fill, result: Column = result
        ) -> exp.Expression:
            found = d.entry(identifier(entries), index)
            if fill is None:
                return found
            return d.call("coalesce", found, lowering.expression(fill, relation))  # type: ignore[arg-type]

        relation.columns[result] = d.transform(d.range_to(identifier(counts)), value)
        assert result.type == array(result.type.element or LONG)
    return relation
