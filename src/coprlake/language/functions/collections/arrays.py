"""Arrays. Indexes start at 0; sums, means and comparisons ignore null elements."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlglot import exp

from coprlake.errors import UsageError
from coprlake.language.functions.array_functions import array_function
from coprlake.language.functions.collections import lists
from coprlake.language.functions.registry import function
from coprlake.language.functions.text.text_matching import constant_at
from coprlake.language.functions.values.conversion import kind_at
from coprlake.language.functions.values.ranges import in_range_of, span
from coprlake.language.plan import Apply
from coprlake.language.sql.dialect import Dialect
from coprlake.language.types import BOOLEAN, DOUBLE, DURATION, LONG, NULL, Type, array, carried_type, common_type

GROUP: Final = "arrays"
_PLAIN: Final = frozenset({"null", "boolean", "long", "double", "string", "timestamp", "duration", "ip"})

Sql = Sequence[exp.Expression]
Lowering = Callable[[Dialect, Apply, Sql], exp.Expression]


def element_of(kind: Type | None) -> Type:
    """The element type of an array."""
    return (kind.element if kind is not None else None) or NULL


def _like_first(types: Sequence[Type | None]) -> Type | None:
    return types[0]


def _element(types: Sequence[Type | None]) -> Type | None:
    return element_of(types[0])


def _plain_element(types: Sequence[Type | None]) -> Type | None:
    found = element_of(types[0])
    return found if found.kind in _PLAIN else None


def _plain_like_first(types: Sequence[Type | None]) -> Type | None:
    return types[0] if element_of(types[0]).kind in _PLAIN else None


def _sum_type(types: Sequence[Type | None]) -> Type | None:
    return {"double": DOUBLE, "long": LONG, "null": LONG, "duration": DURATION}.get(element_of(types[0]).kind)


def _mean_type(types: Sequence[Type | None]) -> Type | None:
    return {"double": DOUBLE, "long": DOUBLE, "null": DOUBLE}.get(element_of(types[0]).kind)


def _of_lists(d: Dialect, node: Apply, value: exp.Expression, run: Any, **constants: Any) -> exp.Expression:
    return d.apply(array_function(run, (carried_type(kind_at(node, 0)),), carried_type(node.type), **constants), value)


@function(
    "array(values: T... = null) -> array<T>",
    "An array of the values, the same as `{...}`.",
    group=GROUP,
    example="data record(a = 1) | fields x = array(a, 2, 3)",
    gives=[{"x": [1, 2, 3]}],
)
def _array(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.list_of(args, element_of(node.type))


@function(
    "arraySize(array: array) -> long",
    "The number of elements, including null ones.",
    group=GROUP,
    example="data record(a = {5, 6, null}) | fields x = arraySize(a)",
    gives=[{"x": 3}],
)
def _array_size(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.size(args[0])


@function(
    "arraySum(array: array) -> number|duration",
    "The sum of the elements; 0 if there are none.",
    group=GROUP,
    example="data record(a = {2, 3, null}) | fields x = arraySum(a)",
    gives=[{"x": 5}],
    result=_sum_type,
)
def _array_sum(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    if element_of(kind_at(node, 0)) == NULL:
        return d.case((d.is_null(args[0]), d.null(LONG)), default=d.long(0))
    return _of_lists(d, node, args[0], lists.double_sums if node.type == DOUBLE else lists.long_sums)


@function(
    "arrayAvg(array: array) -> double",
    "The mean of the elements; 0 if there are none.",
    group=GROUP,
    example="data record(a = {2, 3, null}) | fields x = arrayAvg(a)",
    gives=[{"x": 2.5}],
    result=_mean_type,
)
def _array_avg(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    if element_of(kind_at(node, 0)) == NULL:
        return d.case((d.is_null(args[0]), d.null(DOUBLE)), default=d.double(0.0))
    return _of_lists(d, node, args[0], lists.means)


@function(
    "arrayMin(array: array) -> any",
    "The smallest element; null if there is none.",
    group=GROUP,
    example='data record(a = {3, 1, null}, b = {"b", "a"}) | fields x = arrayMin(a), y = arrayMin(b)',
    gives=[{"x": 1, "y": "a"}],
    result=_plain_element,
)
def _array_min(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return _of_lists(d, node, args[0], lists.extremes, greatest=False)


@function(
    "arrayMax(array: array) -> any",
    "The greatest element; null if there is none.",
    group=GROUP,
    example="data record(a = {3, 1, null}) | fields x = arrayMax(a)",
    gives=[{"x": 3}],
    result=_plain_element,
)
def _array_max(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return _of_lists(d, node, args[0], lists.extremes, greatest=True)


def _at(index: int) -> Lowering:
    return lambda d, node, args: d.element(
        args[0], exp.Literal.number(index) if index > 0 else exp.Neg(this=exp.Literal.number(-index))
    )


function(
    "arrayFirst(array: array) -> any",
    "The first element; null if there is none.",
    group=GROUP,
    example="data record(a = {3, 1, 2}) | fields x = arrayFirst(a)",
    gives=[{"x": 3}],
    result=_element,
)(_at(1))
function(
    "arrayLast(array: array) -> any",
    "The last element; null if there is none.",
    group=GROUP,
    example="data record(a = {3, 1, 2}) | fields x = arrayLast(a)",
    gives=[{"x": 2}],
    result=_element,
)(_at(-1))


@function(
    "arrayElement(array: array, index: long) -> any",
    "The element at an index, like `array[index]`; a negative index counts from the end.",
    group=GROUP,
    example="data record(a = {3, 1, 2}) | fields x = arrayElement(a, 1), y = arrayElement(a, -1), "
    "z = arrayElement(a, 9)",
    gives=[{"x": 1, "y": 2, "z": None}],
    result=_element,
)
def _array_element(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return in_range_of(d, args[1], d.size(args[0]), lambda at: d.element(args[0].copy(), at))


def _concat_type(types: Sequence[Type | None]) -> Type | None:
    shared: Type | None = NULL
    for kind in types:
        shared = None if shared is None else common_type(shared, element_of(kind))
    return None if shared is None else array(shared)


@function(
    "arrayConcat(arrays: array...) -> array<any>",
    "The elements of all arrays in one array. Null arrays are ignored; null if all are null.",
    group=GROUP,
    example="data record(a = {1, 2}, b = null, c = {3}) | fields x = arrayConcat(a, b, c)",
    gives=[{"x": [1, 2, 3]}],
    result=_concat_type,
)
def _array_concat(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    nothing = d.list_of([], element_of(node.type))
    parts = [d.call("coalesce", d.cast(value, node.type), nothing.copy()) for value in args]
    joined = parts[0]
    for part in parts[1:]:
        joined = d.call(d.pick(duckdb="list_concat", spark="concat"), joined, part)
    return d.case((d.both(*(d.is_null(value.copy()) for value in args)), d.null(node.type)), default=joined)


@function(
    "arrayDistinct(array: array) -> array<any>",
    "The array without repeated values; the first occurrence of each stays.",
    group=GROUP,
    example="data record(a = {2, 1, 2, null, null}) | fields x = arrayDistinct(a)",
    gives=[{"x": [2, 1, None]}],
    result=_plain_like_first,
)
def _array_distinct(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return _of_lists(d, node, args[0], lists.distinct)


def _index_type(types: Sequence[Type | None]) -> Type | None:
    return LONG if common_type(element_of(types[0]), types[1] or NULL) is not None else None


@function(
    "arrayIndexOf(array: array, value: any) -> long",
    "The index of the first occurrence of the value, starting at 0, or -1 if there is none; "
    "null if either argument is null.",
    group=GROUP,
    example="data record(a = {5, 6, 5}) | fields x = arrayIndexOf(a, 6), y = arrayIndexOf(a, 7)",
    gives=[{"x": 1, "y": -1}],
    result=_index_type,
)
def _array_index_of(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    kind = common_type(element_of(kind_at(node, 0)), kind_at(node, 1)) or NULL
    values, wanted = d.cast(args[0], array(kind)), d.cast(args[1], kind)
    found = d.call(d.pick(duckdb="list_position", spark="array_position"), values, wanted)
    index = d.minus(d.cast(d.call("coalesce", found, exp.Literal.number(0)), LONG), d.long(1))
    unknown = d.either(d.is_null(args[0].copy()), d.is_null(args[1].copy()))
    return d.case((unknown, d.null(LONG)), default=index)


@function(
    "arrayReverse(array: array) -> array<any>",
    "The elements in reverse order.",
    group=GROUP,
    example="data record(a = {1, 2, 3}) | fields x = arrayReverse(a)",
    gives=[{"x": [3, 2, 1]}],
    result=_like_first,
)
def _array_reverse(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.call(d.pick(duckdb="list_reverse", spark="reverse"), args[0])


def _check_direction(direction: str) -> None:
    if direction not in ("ascending", "descending"):
        raise UsageError(f"direction must be ascending or descending, found {direction!r}")


@function(
    'arraySort(array: array, direction: const string = "ascending") -> array<any>',
    "The elements in `ascending` or `descending` order; null comes last.",
    group=GROUP,
    example='data record(a = {2, null, 3, 1}) | fields x = arraySort(a), y = arraySort(a, direction: "descending")',
    gives=[{"x": [1, 2, 3, None], "y": [3, 2, 1, None]}],
    result=_plain_like_first,
    checks={"direction": _check_direction},
)
def _array_sort(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    descends = constant_at(node, 1) == "descending"
    if d.is_spark:
        return d.call("sort_array", args[0], d.false()) if descends else d.call("array_sort", args[0])
    return d.call("list_sort", args[0], d.text("DESC" if descends else "ASC"), d.text("NULLS LAST"))


@function(
    "arrayRemoveNulls(array: array) -> array<any>",
    "The array without its null elements.",
    group=GROUP,
    example="data record(a = {1, null, 2}) | fields x = arrayRemoveNulls(a)",
    gives=[{"x": [1, 2]}],
    result=_like_first,
)
def _array_remove_nulls(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.keep(args[0], lambda element: d.no(d.is_null(element)))


@function(
    "arraySlice(array: array, from: long = 0, to: long = null) -> array<any>",
    "The elements from index `from` up to, but not including, index `to`, or up to the end. "
    "Negative indexes count from the end.",
    group=GROUP,
    example="data record(a = {1, 2, 3, 4}) | fields x = arraySlice(a, from: 1, to: 3), y = arraySlice(a, from: -2)",
    gives=[{"x": [2, 3], "y": [3, 4]}],
    result=_like_first,
)
def _array_slice(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    begin, count = span(d, node, args, d.size(args[0]))
    if d.is_spark:
        return d.call("slice", args[0].copy(), begin, count)
    last = d.minus(d.plus(begin, count), d.long(1))
    unknown = d.is_null(last.copy())  # DuckDB ignores a bound that is null
    return d.case((unknown, d.null(node.type)), default=d.call("list_slice", args[0].copy(), begin.copy(), last))


def _flat_type(types: Sequence[Type | None]) -> Type | None:
    inner = element_of(types[0])
    return inner if inner.kind == "array" else types[0]


@function(
    "arrayFlatten(array: array) -> array<any>",
    "The elements of nested arrays in one array. Null arrays are ignored.",
    group=GROUP,
    example="data record(a = {{1, 2}, {3}}) | fields x = arrayFlatten(a)",
    gives=[{"x": [1, 2, 3]}],
    result=_flat_type,
)
def _array_flatten(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    if element_of(kind_at(node, 0)).kind != "array":
        return args[0]
    return d.call("flatten", d.keep(args[0], lambda element: d.no(d.is_null(element))))


@function(
    'arrayToString(array: array, delimiter: const string = ",") -> string',
    "The elements converted as by `toString` and joined with the delimiter. Null elements are ignored.",
    group=GROUP,
    example='data record(a = {1, null, 2}) | fields x = arrayToString(a), y = arrayToString(a, delimiter: " and ")',
    gives=[{"x": "1,2", "y": "1 and 2"}],
)
def _array_to_string(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    kind = element_of(kind_at(node, 0))
    return _of_lists(d, node, args[0], lists.joined, kind=kind, delimiter=str(constant_at(node, 1)))


# Functions of an expression for each element


def _truth_type(types: Sequence[Type | None]) -> Type | None:
    return BOOLEAN if element_of(types[0]).kind in ("boolean", "null") else None


@function(
    "iAny(condition: array) -> boolean",
    "Whether a condition on the elements, written with `[]`, is true for at least one element.",
    group=GROUP,
    example="data record(a = {1, 3}), record(a = {1, 2}) | fields x = iAny(a[] > 2)",
    gives=[{"x": True}, {"x": False}],
    result=_truth_type,
)
def _i_any(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    hits = d.keep(_truths(d, node, args), d.is_true)
    return d.binary(exp.GT, d.size(hits), d.long(0))


@function(
    "iAll(condition: array) -> boolean",
    "Whether a condition on the elements, written with `[]`, is true for every element.",
    group=GROUP,
    example="data record(a = {3, 4}), record(a = {1, 3}) | fields x = iAll(a[] > 2)",
    gives=[{"x": True}, {"x": False}],
    result=_truth_type,
)
def _i_all(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    misses = d.keep(_truths(d, node, args), lambda element: d.no(d.is_true(element)))
    return d.equal(d.size(misses), d.long(0))


def _truths(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return args[0] if element_of(kind_at(node, 0)) == BOOLEAN else d.cast(args[0], array(BOOLEAN))


@function(
    "iCollectArray(expression: array) -> array<any>",
    "An array of the results of an expression on the elements, written with `[]`.",
    group=GROUP,
    example="data record(a = {1, 2}) | fields x = iCollectArray(a[] * 10)",
    gives=[{"x": [10, 20]}],
    result=_like_first,
)
def _i_collect_array(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return args[0]
