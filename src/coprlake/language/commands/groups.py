"""The commands that combine many records into one."""

from coprlake.language import syntax
from coprlake.language.binding.calls import invoke
from coprlake.language.commands.combining import united
from coprlake.language.commands.pipeline import Pipeline, computed, group_keys, items, some, text_of
from coprlake.language.commands.registry import command
from coprlake.language.functions.catalog import FUNCTIONS
from coprlake.language.functions.values import operators
from coprlake.language.plan import Aggregate, Apply, Column, Constant, Expr, Filter, Node, Ref, columns_of
from coprlake.language.scope import Scope
from coprlake.language.syntax import Command
from coprlake.language.types import BOOLEAN, LONG, STRING, Type, array


@command(
    "summarize",
    "summarize [NAME =] AGGREGATION, … [, by:{[NAME =] EXPRESSION, …}]",
    "Returns one record for each group, or one for all records. Records without a value for "
    "the key form a group. With neither records nor groups there is one row: counts are 0, "
    "everything else is null.",
    parameters=("by",),
    example='data record(a = 1, b = "x"), record(a = 2, b = "x") | summarize n = count(), sum(a), by:{b}',
    gives=[{"b": "x", "n": 2, "sum(a)": 3}],
)
def _summarize(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, named = pipeline.split(step)
    keys = group_keys(pipeline, scope, named)
    measures: dict[Column, Expr] = {}

    def measure(applied: Apply) -> Expr:
        for column, known in measures.items():
            if known == applied:
                return Ref(column)
        column = Column(applied.function.name, applied.type)
        measures[column] = applied
        return Ref(column)

    results: dict[str, Expr] = {}
    for argument in some(pipeline, step, items(plain)) if not keys else items(plain):
        name = argument.alias.text if argument.alias else text_of(pipeline, argument)
        found = pipeline.expressions(scope, measure).bind(argument.value)
        loose = set(columns_outside(found, measures))
        if loose:
            pipeline.fail(
                "a field that is not in by: can only be used in an aggregation, such as max(x)", argument.span
            )
        if name in results or name in keys:
            pipeline.fail(f"{name} is given twice", argument.span)
        results[name] = found
    columns = {name: Column(name, value.type) for name, value in keys.items()}
    node: Node = Aggregate(scope.node, {columns[name]: value for name, value in keys.items()}, measures)
    fields: dict[str, Expr] = {name: Ref(column) for name, column in columns.items()}
    result = Scope(node, fields)
    for name, value in results.items():
        result = computed(result, name, value)
    return Scope(result.node, {**fields, **{name: result.fields[name] for name in results}})


def columns_outside(expression: Expr, measures: dict[Column, Expr]) -> list[Column]:
    """The columns that an expression uses outside its aggregations."""
    return [column for column in columns_of(expression) if column not in measures]


@command(
    "fieldsSummary",
    "fieldsSummary FIELD, … [, topValues:20]",
    "Shows for each field how many records have it, the number of distinct values, and the most frequent ones.",
    parameters=("topValues",),
    example='data record(a = "x"), record(a = "x"), record(a = "y") | fieldsSummary a, topValues: 1',
    gives=[{"field": "a", "rawCount": 3, "count": 2, "values": [{"value": "x", "count": 2}]}],
)
def _fields_summary(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    """A union of small tables, one for each field: the number of records that have it and its most frequent values."""
    plain, named = pipeline.split(step)
    top = pipeline.constant(scope, named["topValues"], "long", "topValues") if "topValues" in named else 20
    expressions = pipeline.expressions(scope)
    result: Scope | None = None
    for argument in some(pipeline, step, items(plain)):
        name = argument.alias.text if argument.alias else text_of(pipeline, argument)
        value = expressions.bind(argument.value)
        part = _summary_of(pipeline, scope, name, value, top, argument.span)
        result = part if result is None else united(pipeline, result, part, argument.span)
    assert result
    return result


def _summary_of(pipeline: Pipeline, scope: Scope, name: str, value: Expr, top: int, span: syntax.Span) -> Scope:
    text = invoke(pipeline.session, FUNCTIONS["tostring"], [value], span)
    shown, count = Column("value", STRING), Column("count", LONG)
    groups: Node = Aggregate(scope.node, {shown: text}, {count: Apply(FUNCTIONS["count"], (), LONG)})
    counted = Filter(groups, Apply(operators.NOT, (Apply(FUNCTIONS["isnull"], (Ref(shown),), BOOLEAN),), BOOLEAN))
    total, distinct = Column("rawCount", LONG), Column("count", LONG)
    kind = Type("record", members=(("value", STRING), ("count", LONG)))
    values = Column("values", array(kind))
    pair = Apply(operators.RECORD, (Ref(shown), Ref(count)), kind)
    measures: dict[Column, Expr] = {
        total: Apply(FUNCTIONS["sum"], (Ref(count),), LONG),
        distinct: Apply(FUNCTIONS["count"], (), LONG),
        values: Apply(FUNCTIONS["most frequent"], (pair, Constant(top, LONG)), array(kind)),
    }
    node: Node = Aggregate(counted, {}, measures)
    filled = Apply(FUNCTIONS["coalesce"], (Ref(total), Constant(0, LONG)), LONG)
    fields: dict[str, Expr] = {
        "field": Constant(name, STRING),
        "rawCount": filled,
        "count": Ref(distinct),
        "values": Apply(FUNCTIONS["coalesce"], (Ref(values), Apply(operators.LIST, (), array(kind))), array(kind)),
    }
    made = Scope(node, {})
    for field, expression in fields.items():
        made = computed(made, field, expression)
    return Scope(made.node, made.fields)
