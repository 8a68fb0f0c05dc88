"""The commands that select and sort records."""

import json
from collections.abc import Callable, Iterator
from typing import Final

from coprlake.language import syntax
from coprlake.language.binding.calls import invoke
from coprlake.language.commands.pipeline import Pipeline, items, on, some, text_of
from coprlake.language.commands.registry import command
from coprlake.language.functions.catalog import FUNCTIONS
from coprlake.language.functions.values import operators
from coprlake.language.plan import (
    Apply,
    Column,
    Constant,
    Dedup,
    Expand,
    Expr,
    Filter,
    Limit,
    Node,
    Order,
    Ref,
    Scan,
    Sort,
    nodes,
)
from coprlake.language.scope import Scope
from coprlake.language.syntax import Argument, Command
from coprlake.language.types import BOOLEAN, STRING
from coprlake.language.types import TIMESTAMP as TIME
from coprlake.records import TIMESTAMP

_BEFORE_SEARCH: Final = frozenset(
    {"filter", "filterOut", "fieldsKeep", "fieldsRemove", "fieldsRename", "limit", "append", "fetch", "data", "search"}
)


@command(
    "filter",
    "filter CONDITION",
    "Keeps the records for which the condition is true, and drops those for which it is false or null.",
    example="data record(a = 1), record(a = 2), record(a = null) | filter a > 1",
    gives=[{"a": 2}],
)
def _filter(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    return _filtered(pipeline, step, scope, lambda condition: condition)


@command(
    "filterOut",
    "filterOut CONDITION",
    "Drops the records for which the condition is true. Records for which it is null are "
    "kept, so `filterOut x` is not the same as `filter not x`.",
    example="data record(a = 1), record(a = 2), record(a = null) | filterOut a > 1 | summarize n = count()",
    gives=[{"n": 2}],
)
def _filter_out(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    return _filtered(
        pipeline,
        step,
        scope,
        lambda condition: Apply(operators.NOT, (Apply(operators.IS_TRUE, (condition,), BOOLEAN),), BOOLEAN),
    )


def _filtered(pipeline: Pipeline, step: Command, scope: Scope, change: Callable[[Expr], Expr]) -> Scope:
    plain, _ = pipeline.split(step)
    if not plain:
        pipeline.fail(f'{step.name} needs a condition: {step.name} loglevel == "ERROR"', step.span)
    expressions = pipeline.expressions(scope)
    conditions: list[Expr] = []
    for argument in plain:
        if argument.alias is not None:
            pipeline.fail("use == to compare", argument.span)
        conditions.append(expressions.condition(argument.value))
    condition = conditions[0] if len(conditions) == 1 else Apply(operators.AND, tuple(conditions), BOOLEAN)
    return on(scope, Filter(scope.node, change(condition)))


@command(
    "search",
    'search "TERM" [, caseSensitive:false]',
    "Searches for terms in all fields, or in one field with `~`: whole words, ignoring case; "
    "`*` matches anything. Combine terms and comparisons with `and`, `or` and `not`. It must "
    "come before commands that change values.",
    parameters=("caseSensitive", "scope"),
    example='data record(a = "Connection refused"), record(a = "ok") | search "refused"',
    gives=[{"a": "Connection refused"}],
)
def _search(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    late = next((name for name in pipeline.seen if name not in _BEFORE_SEARCH), None)
    if late is not None:
        pipeline.fail(f"search must come before {late}: it searches the records as they are stored", step.name_span)
    plain, named = pipeline.split(step)
    exact = "caseSensitive" in named and pipeline.constant(scope, named["caseSensitive"], "boolean", "caseSensitive")
    if "scope" in named and pipeline.constant(scope, named["scope"], "string", "scope") == "names":
        pipeline.fail('scope:"names" is not supported; search looks at values', named["scope"].span)
    condition = _search_condition(pipeline, scope, pipeline.only(step, plain)[0].value, bool(exact))
    return on(scope, Filter(scope.node, condition))


def _search_condition(pipeline: Pipeline, scope: Scope, node: syntax.Value, exact: bool) -> Expr:
    if isinstance(node, syntax.Logic) and node.operator != "xor":
        function = operators.AND if node.operator == "and" else operators.OR
        parts = tuple(_search_condition(pipeline, scope, part, exact) for part in node.parts)
        return Apply(function, parts, BOOLEAN)
    if isinstance(node, syntax.Negation):
        inner = _search_condition(pipeline, scope, node.operand, exact)
        return Apply(operators.NOT, (Apply(operators.IS_TRUE, (inner,), BOOLEAN),), BOOLEAN)
    if isinstance(node, syntax.Literal | syntax.Variable):
        found = pipeline.expressions(scope).bind(node)
        term = found.value if isinstance(found, Constant) else None
        if not isinstance(term, str):
            term = json.dumps(term)
        return _anywhere(pipeline, scope, term, exact, node.span)
    if isinstance(node, syntax.Binary) and node.operator == "~" and exact:
        expressions = pipeline.expressions(scope)
        sides = [expressions.bind(node.left), expressions.bind(node.right), Constant(True, BOOLEAN)]
        return invoke(pipeline.session, FUNCTIONS["~"], sides, node.span)
    return pipeline.expressions(scope).condition(node)


def _unshown(node: Node) -> Iterator[str]:
    """The columns of the tables that the language cannot show."""
    for part in nodes(node):
        if isinstance(part, Scan):
            yield from part.unshown


def _anywhere(pipeline: Pipeline, scope: Scope, term: str, exact: bool, span: syntax.Span) -> Expr:
    """Whether the term is in any field."""
    if "**" in term or term.count("*") > 64:
        pipeline.fail("a term may have at most 64 *, and no two next to each other", span)
    unsearched = [] if "fieldsKeep" in pipeline.seen else list(dict.fromkeys(_unshown(scope.node)))
    if unsearched:
        pipeline.session.warn(
            f"search skips {', '.join(unsearched)}: the language has no type for this data; "
            "the command line's search --all-fields reads it"
        )
    sides: list[Expr] = []
    for value in scope.fields.values():
        if value.type.kind in ("string", "long", "double", "ip", "array", "record", "map"):
            wanted = [value, Constant(term, STRING), Constant(exact, BOOLEAN)]
            sides.append(invoke(pipeline.session, FUNCTIONS["search term"], wanted, span))
    wrapped = tuple(Apply(operators.IS_TRUE, (side,), BOOLEAN) for side in sides)
    marked = (Constant(term, STRING), Constant(exact, BOOLEAN))
    return Apply(FUNCTIONS["search anywhere"], (*marked, *wrapped), BOOLEAN)


@command(
    "sort",
    "sort EXPRESSION [asc|desc], … [, direction:]",
    "Sorts the records. Null comes last. Ties are sorted by the other fields of the result. "
    "Attributes and JSON members are sorted as numbers where they are numbers; other text "
    "follows.",
    parameters=("direction",),
    example="data record(a = 1), record(a = 3), record(a = 2) | sort a desc | limit 1",
    gives=[{"a": 3}],
)
def _sort(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, named = pipeline.split(step)
    default = _direction(pipeline, scope, named.get("direction"))
    found = some(pipeline, step, items(plain))
    keys = tuple(sort_key(pipeline, scope, argument, default) for argument in found)
    return Scope(Order(scope.node, keys), scope.fields, scope.scan, scope.hidden, keys)


def _direction(pipeline: Pipeline, scope: Scope, argument: Argument | None) -> bool:
    if argument is None:
        return False
    word = str(pipeline.constant(scope, argument, "string", "direction")).lower()
    if word not in ("asc", "ascending", "desc", "descending"):
        pipeline.fail('direction must be "ascending" or "descending"', argument.span)
    return word.startswith("desc")


def sort_key(pipeline: Pipeline, scope: Scope, argument: Argument, default: bool) -> Sort:
    """The sort key of an argument; `default` is whether it descends if it does not say."""
    value = pipeline.expressions(scope).bind(argument.value)
    if value.type.kind in ("map", "record", "array"):
        pipeline.fail(f"records cannot be sorted by {value.type}", argument.span)
    descends = default if argument.direction is None else argument.direction == "desc"
    return Sort(value, descends)


@command(
    "limit",
    "limit COUNT",
    "Keeps the first records in the order of the preceding `sort`; of groups without a "
    "`sort`, the first by their keys. Without a `sort`, the records of a table come in no "
    "particular order: which ones are kept may differ between engines and from run to run.",
    example="data record(a = 1), record(a = 2) | sort a | limit 1",
    gives=[{"a": 1}],
)
def _limit(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, _ = pipeline.split(step)
    argument = pipeline.only(step, plain)[0]
    count = pipeline.constant(scope, argument, "long", "limit")
    if count is None or count < 0:
        pipeline.fail("limit must be a number of records", argument.span)
    return on(scope, Limit(scope.node, count))


@command(
    "dedup",
    "dedup EXPRESSION, … [, sort:{EXPRESSION desc}]",
    "Keeps one record for each distinct value: the first by `sort:`, by a preceding `sort`, "
    "or by `timestamp`. Ties go to the record whose values are smallest in the fields that "
    "the rest of the query uses.",
    parameters=("sort",),
    example='data record(k = "a", v = 1), record(k = "a", v = 2) | dedup k, sort:{v desc}',
    gives=[{"k": "a", "v": 2}],
)
def _dedup(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, named = pipeline.split(step)
    keys = [pipeline.expressions(scope).bind(argument.value) for argument in some(pipeline, step, items(plain))]
    if any(key.type.kind == "map" for key in keys):
        pipeline.fail("dedup cannot compare all attributes; name one of them", step.span)
    order = first_by(scope)
    if "sort" in named:
        sorts = items([Argument(named["sort"].value, named["sort"].span, direction=named["sort"].direction)])
        order = tuple(sort_key(pipeline, scope, argument, False) for argument in sorts)
    return Scope(Dedup(scope.node, keys, order), scope.fields, scope.scan, scope.hidden)


def first_by(scope: Scope) -> tuple[Sort, ...]:
    """The keys that determine the first record: those of the preceding sort, or its timestamp."""
    time = scope.fields.get(TIMESTAMP)
    return scope.order or ((Sort(time),) if time is not None and time.type == TIME else ())


@command(
    "expand",
    "expand [NAME =] ARRAY [, limit:]",
    "Returns one record for each element of an array. A record whose array is empty or null stays, with null.",
    parameters=("limit",),
    example="data record(a = array(1, 2)) | expand a",
    gives=[{"a": 1}, {"a": 2}],
)
def _expand(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, named = pipeline.split(step)
    argument = pipeline.only(step, plain)[0]
    value = pipeline.expressions(scope).bind(argument.value)
    name = argument.alias.text if argument.alias else text_of(pipeline, argument)
    if value.type.kind != "array":
        if value.type.kind == "null":
            return scope
        pipeline.fail(f"expand takes an array, found {value.type}", argument.span)
    assert value.type.element
    element = Column(name, value.type.element)
    limit = pipeline.constant(scope, named["limit"], "long", "limit") if "limit" in named else None
    if limit is not None and not 0 < limit < 2**31:
        pipeline.fail("limit must be a number of elements", named["limit"].span)
    node = Expand(scope.node, value, element, limit)
    return Scope(node, {**scope.fields, name: Ref(element)}, scope.scan, scope.hidden | {name}, scope.order)
