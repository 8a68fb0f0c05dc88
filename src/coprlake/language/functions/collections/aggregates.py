"""Functions over many records. Nulls are ignored; without values the result is null, or 0 for a count."""

from collections.abc import Callable, Sequence
from typing import Final

from sqlglot import exp

from coprlake.errors import UsageError
from coprlake.language.functions.registry import FUNCTIONS, function, internal
from coprlake.language.functions.values.value_order import NESTED, sort_keys, tie_keys
from coprlake.language.plan import Apply, Constant
from coprlake.language.sql.dialect import Dialect
from coprlake.language.types import DOUBLE, DURATION, LONG, TIMESTAMP, Type, array, tight

GROUP: Final = "aggregations"
_DATA: Final = 'data record(a = 1, b = "x"), record(a = 2, b = "y"), record(a = 6, b = "x"), record(b = "z") | '

Sql = Sequence[exp.Expression]
Lowering = Callable[[Dialect, Apply, Sql], exp.Expression]


def _like_first(types: Sequence[Type | None]) -> Type | None:
    return types[0]


def _sum_type(types: Sequence[Type | None]) -> Type | None:
    first = types[0]
    return first if first in (LONG, DOUBLE, DURATION) else DOUBLE


def _mean_type(types: Sequence[Type | None]) -> Type | None:
    return types[0] if types[0] in (DURATION, TIMESTAMP) else DOUBLE


def _rounded(d: Dialect, node: Apply, value: exp.Expression) -> exp.Expression:
    """A mean in the result type; means of times and durations are rounded."""
    return value if node.type == DOUBLE else d.cast(d.call("round", value), node.type)


def _as_double(d: Dialect, value: exp.Expression) -> exp.Expression:
    return d.cast(value, DOUBLE)


@function(
    "count() -> long",
    "The number of records.",
    group=GROUP,
    aggregate=True,
    example=_DATA + "summarize count()",
    gives=[{"count()": 4}],
)
def _count(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return exp.Count(this=exp.Star())


@function(
    "countIf(condition: boolean) -> long",
    "The number of records for which the condition is true.",
    group=GROUP,
    aggregate=True,
    example=_DATA + 'summarize n = countIf(b == "x")',
    gives=[{"n": 2}],
)
def _count_if(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.call("count", d.case((args[0], d.long(1)), default=exp.Null()))


def _count_distinct(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return exp.Count(this=exp.Distinct(expressions=[args[0]]))


for _name, _more in (
    ("countDistinct", ""),
    ("countDistinctExact", " The same as `countDistinct`."),
    ("countDistinctApprox", " The result is exact here, too."),
):
    function(
        f"{_name}(value: any) -> long",
        f"The number of distinct values.{_more}",
        group=GROUP,
        aggregate=True,
        example=_DATA + f"summarize n = {_name}(b)",
        gives=[{"n": 3}],
    )(_count_distinct)


@function(
    "sum(value: number|duration) -> number|duration",
    "The sum.",
    group=GROUP,
    aggregate=True,
    result=_sum_type,
    example=_DATA + "summarize sum(a), by:{b} | sort b",
    gives=[{"b": "x", "sum(a)": 7}, {"b": "y", "sum(a)": 2}, {"b": "z", "sum(a)": None}],
)
def _sum(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.cast(d.call("sum", args[0]), node.type)


@function(
    "avg(value: number|duration|timestamp) -> double|duration|timestamp",
    "The mean.",
    group=GROUP,
    aggregate=True,
    result=_mean_type,
    example=_DATA + "summarize x = avg(a)",
    gives=[{"x": 3.0}],
)
def _avg(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return _rounded(d, node, d.call("avg", _as_double(d, args[0])))


def _extreme(least: bool) -> "Lowering":
    """The least or greatest value in the order of `sort`; of loose strings only the numbers count, if there are any."""

    def sql(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
        value, kind = args[0], node.type
        plain, by = ("min" if least else "max"), _by(d, least)
        if kind.is_loose:
            number, text = sort_keys(d, value, kind)
            is_number = exp.Where(this=d.no(d.is_null(number.copy())))
            found = exp.Filter(this=d.call(by, value.copy(), d.pack(["n", "t"], [number, text])), expression=is_number)
            return d.call("coalesce", found, d.call(plain, value.copy()))
        if kind.kind in NESTED:
            return d.call(by, value, *sort_keys(d, value, kind))
        if kind.kind == "double":  # 0.0 and -0.0 are equal, so an engine may return either
            return d.call(plain, d.plus(value, d.double(0.0)))
        return d.call(plain, value)

    return sql


def _by(d: Dialect, least: bool) -> str:
    """The aggregation that returns a value from the record where another value is least or greatest."""
    return d.pick(duckdb="arg_min", spark="min_by") if least else d.pick(duckdb="arg_max", spark="max_by")


function(
    "min(value: any) -> any",
    "The smallest value: of numbers, times or text.",
    group=GROUP,
    aggregate=True,
    result=_like_first,
    example=_DATA + "summarize min(a), min(b)",
    gives=[{"min(a)": 1, "min(b)": "x"}],
)(_extreme(True))
function(
    "max(value: any) -> any",
    "The greatest value.",
    group=GROUP,
    aggregate=True,
    result=_like_first,
    example=_DATA + "summarize max(a), max(b)",
    gives=[{"max(a)": 6, "max(b)": "z"}],
)(_extreme(False))


def _quantile(d: Dialect, value: exp.Expression, share: float) -> exp.Expression:
    name = d.pick(duckdb="quantile_cont", spark="percentile")
    return d.call(name, _as_double(d, value), d.double(share))


@function(
    "median(value: number|duration|timestamp) -> double|duration|timestamp",
    "The middle value, or the mean of the two in the middle.",
    group=GROUP,
    aggregate=True,
    result=_mean_type,
    example=_DATA + "summarize x = median(a)",
    gives=[{"x": 2.0}],
)
def _median(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return _rounded(d, node, _quantile(d, args[0], 0.5))


def _check_percentile(percentile: float) -> None:
    if not 0 <= percentile <= 100:
        raise UsageError(f"a percentile must be from 0 to 100, found {percentile}")


@function(
    "percentile(value: number|duration|timestamp, percentile: const number) -> double|duration|timestamp",
    "The value below which the given percentage of the values lies, interpolated between the two nearest.",
    group=GROUP,
    aggregate=True,
    result=_mean_type,
    example=_DATA + "summarize x = percentile(a, 75)",
    gives=[{"x": 4.0}],
    checks={"percentile": _check_percentile},
)
def _percentile(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    share = node.arguments[1]
    assert isinstance(share, Constant)
    return _rounded(d, node, _quantile(d, args[0], float(share.value) / 100))


@function(
    "percentiles(value: number, percentiles: const array) -> array<double>",
    "Several percentiles at once, as an array in the given order.",
    group=GROUP,
    aggregate=True,
    example=_DATA + "summarize x = percentiles(a, {50, 75})",
    gives=[{"x": [2.0, 4.0]}],
    checks={"percentiles": _check_percentile},
)
def _percentiles(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    wanted = node.arguments[1]
    assert isinstance(wanted, Apply)
    shares = [float(part.value) / 100 for part in wanted.arguments if isinstance(part, Constant)]
    found = d.list_of([_quantile(d, args[0].copy(), share) for share in shares], DOUBLE)
    none = d.equal(d.call("count", args[0].copy()), d.long(0))
    return d.case((none, d.null(node.type)), default=found)


@function(
    "stddev(value: number) -> double",
    "The sample standard deviation; null for a single value.",
    group=GROUP,
    aggregate=True,
    example=_DATA + "summarize x = round(stddev(a), decimals: 3)",
    gives=[{"x": 2.646}],
)
def _stddev(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.call("stddev_samp", _as_double(d, args[0]))


@function(
    "variance(value: number) -> double",
    "The sample variance; null for a single value.",
    group=GROUP,
    aggregate=True,
    example=_DATA + "summarize x = variance(a)",
    gives=[{"x": 7.0}],
)
def _variance(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.call("var_samp", _as_double(d, args[0]))


@function(
    "correlation(value: number, other: number) -> double",
    "The Pearson correlation of two values, from -1 to 1; null if one of them is constant.",
    group=GROUP,
    aggregate=True,
    example="data record(a = 1, b = 2), record(a = 2, b = 4), record(a = 3, b = 6) | summarize x = correlation(a, b)",
    gives=[{"x": 1.0}],
)
def _correlation(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    found = d.call("corr", _as_double(d, args[0]), _as_double(d, args[1]))
    is_number = d.binary(exp.LTE, d.call("abs", found), d.double(2.0))  # NaN is greater than any number
    return d.case((is_number, found.copy()), default=d.null(DOUBLE))


def _array_type(types: Sequence[Type | None]) -> Type | None:
    return array(tight(types[0])) if types[0] is not None else None


def _there(d: Dialect, value: exp.Expression) -> exp.Where:
    return exp.Where(this=d.no(d.is_null(value.copy())))


def _or_nothing(d: Dialect, found: exp.Expression, kind: Type) -> exp.Expression:
    return found if d.is_spark else d.call("coalesce", found, exp.Cast(this=d.call("list_value"), to=d.data_type(kind)))


@function(
    "collectArray(value: any) -> array<any>",
    "All values, in the order of the preceding `sort`, or in ascending order.",
    group=GROUP,
    aggregate=True,
    result=_array_type,
    example=_DATA + "summarize x = collectArray(a)",
    gives=[{"x": [1, 2, 6]}],
)
def _collect_array(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    value, kind = args[0], node.arguments[0].type  # type: ignore[union-attr]
    keys = _sorted_by(d, node, args)
    down = bool(keys) and all(descends for _, descends in keys)
    keys += [(key, down) for key in tie_keys(d, value, tight(kind))]
    if not keys:  # the field is always null
        listed = d.call(d.pick(duckdb="list", spark="collect_list"), value.copy())
        return _or_nothing(d, exp.Filter(this=listed, expression=_there(d, value)), node.type)
    if not d.is_spark:
        order = [exp.Ordered(this=key, desc=descends, nulls_first=False) for key, descends in keys]
        listed = d.call("list", exp.Order(this=value, expressions=order))
        return _or_nothing(d, exp.Filter(this=listed, expression=_there(d, value)), node.type)
    names = [f"k{i}" for i in range(len(keys))]
    packed = d.pack([*names, "v"], [*(key for key, _ in keys), value])
    listed = exp.Filter(this=d.call("collect_list", packed), expression=_there(d, value))
    sorted_ = d.call("array_sort", listed, _comparator(d, list(zip(names, (down for _, down in keys), strict=True))))
    return d.transform(sorted_, lambda one: d.member(one, "v"))


def _comparator(d: Dialect, keys: list[tuple[str, bool]]) -> exp.Lambda:
    """A comparator for Spark's `array_sort`: by these members, nulls last."""
    left, right = exp.column("left"), exp.column("right")
    branches: list[tuple[exp.Expression, exp.Expression]] = []
    before, behind = exp.Neg(this=exp.Literal.number(1)), exp.Literal.number(1)
    for name, descends in keys:
        first, second = (d.member(side.copy(), name) for side in (left, right))
        only_first, only_second = (
            d.both(d.no(d.is_null(one.copy())), d.is_null(other.copy()))
            for one, other in ((first, second), (second, first))
        )
        less, more = (d.binary(kind, first.copy(), second.copy()) for kind in (exp.LT, exp.GT))
        if descends:
            less, more = more, less
        branches += [(only_first, before), (only_second, behind), (less, before), (more, behind)]
    body = d.case(*((condition, value.copy()) for condition, value in branches), default=exp.Literal.number(0))
    return exp.Lambda(this=body, expressions=[exp.to_identifier("left"), exp.to_identifier("right")])


def _sorted_by(d: Dialect, node: Apply, args: Sql) -> list[tuple[exp.Expression, bool]]:
    """The keys of the preceding sort, and whether each descends.

    The second argument has the directions, the following ones are the keys.
    """
    directions = node.arguments[1]
    assert isinstance(directions, Constant)
    found: list[tuple[exp.Expression, bool]] = []
    for direction, key, value in zip(directions.value, node.arguments[2:], args[2:], strict=True):
        assert key is not None
        found += [(part, direction == "d") for part in sort_keys(d, value, key.type)]
    return found


@function(
    "collectDistinct(value: any) -> array<any>",
    "All distinct values, in ascending order.",
    group=GROUP,
    aggregate=True,
    result=_array_type,
    example=_DATA + "summarize x = collectDistinct(b)",
    gives=[{"x": ["x", "y", "z"]}],
)
def _collect_distinct(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    value, kind = args[0], tight(node.arguments[0].type)  # type: ignore[union-attr]
    is_nested = kind.kind in NESTED
    listed = d.pack(["k", "v"], [*sort_keys(d, value, kind), value]) if is_nested else value.copy()
    found = exp.Filter(this=d.call(d.pick(duckdb="list", spark="collect_list"), listed), expression=_there(d, value))
    distinct = d.call(d.pick(duckdb="list_distinct", spark="array_distinct"), found)
    sorted_ = d.call(d.pick(duckdb="list_sort", spark="array_sort"), distinct)
    return _or_nothing(d, d.transform(sorted_, lambda one: d.member(one, "v")) if is_nested else sorted_, node.type)


function(
    "takeAny(value: any) -> any",
    "Any value. Here it is always the smallest, so the result is repeatable.",
    group=GROUP,
    aggregate=True,
    result=_like_first,
    example=_DATA + "summarize x = takeAny(b)",
    gives=[{"x": "x"}],
)(_extreme(True))
function(
    "takeMin(value: any) -> any",
    "The smallest value.",
    group=GROUP,
    aggregate=True,
    result=_like_first,
    example=_DATA + "summarize x = takeMin(b)",
    gives=[{"x": "x"}],
)(_extreme(True))
function(
    "takeMax(value: any) -> any",
    "The greatest value.",
    group=GROUP,
    aggregate=True,
    result=_like_first,
    example=_DATA + "summarize x = takeMax(b)",
    gives=[{"x": "z"}],
)(_extreme(False))


def _taken(first: bool) -> "Lowering":
    """The first or last value by the keys of `_sorted_by`; ties are broken by the value, in the same direction."""

    def sql(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
        value, kind = args[0], node.type
        keys = _sorted_by(d, node, args)
        descends = any(down for _, down in keys)
        members: list[exp.Expression] = []
        for key, _ in keys:  # engines order nulls in records differently, so they get their own key
            is_null = d.is_null(key.copy())
            members += [d.no(is_null) if descends else is_null, key.copy()]
        members += tie_keys(d, value, kind)
        record = d.pack([f"k{i}" for i in range(len(members))], members)
        some_key = d.either(*(d.no(d.is_null(key.copy())) for key, _ in keys))
        there = exp.Where(this=d.both(d.no(d.is_null(value.copy())), some_key))
        return exp.Filter(this=d.call(_by(d, first != descends), value, record), expression=there)

    return sql


_ORDERED_DATA: Final = "data record(a = 2, b = 10), record(a = 3, b = 30), record(a = 1, b = 20) | "
function(
    "takeFirst(value: any) -> any",
    "The value of the first record in the order of the preceding `sort`, or by `timestamp` "
    "without one. Records without a value or without a sort key are skipped.",
    group=GROUP,
    aggregate=True,
    result=_like_first,
    example=_ORDERED_DATA + "sort a desc | summarize x = takeFirst(b)",
    gives=[{"x": 30}],
)(_taken(True))
function(
    "takeLast(value: any) -> any",
    "The value of the last record in the order of the preceding `sort`, or by `timestamp` "
    "without one; see `takeFirst`.",
    group=GROUP,
    aggregate=True,
    result=_like_first,
    example=_ORDERED_DATA + "sort a | summarize x = takeLast(b)",
    gives=[{"x": 30}],
)(_taken(False))


def _most_frequent(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    """Records of a value and its count, those with the greatest counts first, up to a limit."""
    most = node.arguments[1]
    assert isinstance(most, Constant)
    if d.is_spark:
        ordered = d.call("collect_list", d.pack(["n", "r"], [exp.Neg(this=d.member(args[0], "count")), args[0].copy()]))
        firsts = d.call(
            "slice", d.call("array_sort", ordered), exp.Literal.number(1), exp.Literal.number(int(most.value))
        )
    else:
        pair = d.pack(["n", "r"], [exp.Neg(this=d.member(args[0], "count")), args[0].copy()])
        firsts = d.call("list_slice", d.call("list_sort", d.call("list", pair)), d.long(1), d.long(int(most.value)))
    return d.transform(firsts, lambda one: d.member(one, "r"))


FUNCTIONS["most frequent"] = internal("most frequent", _most_frequent)
