"""The commands that bring in the records of another query."""

from coprlake.language import scope as scopes
from coprlake.language import syntax
from coprlake.language.binding.converting import unify
from coprlake.language.commands.pipeline import Pipeline, items, text_of
from coprlake.language.commands.record_commands import first_by
from coprlake.language.commands.registry import command
from coprlake.language.plan import Column, Dedup, Expr, Join, Project, Ref, Union
from coprlake.language.scope import Scope
from coprlake.language.syntax import Argument, Block, Command, Name
from coprlake.text.nearest_words import hint


def block(pipeline: Pipeline, step: Command, plain: list[Argument]) -> Scope:
    """Plan the query in brackets that is the only argument."""
    argument = pipeline.only(step, plain)[0]
    if not isinstance(argument.value, Block):
        pipeline.fail(f"{step.name} takes a query in brackets: {step.name} [fetch logs | limit 5]", argument.span)
    assert isinstance(argument.value, Block)
    return pipeline.inner(argument.value.pipeline)


@command(
    "append",
    "append [QUERY]",
    "Appends the records of another query. Fields are matched by name.",
    example="data record(a = 1) | append [data record(a = 2)]",
    gives=[{"a": 1}, {"a": 2}],
)
def _append(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, _ = pipeline.split(step)
    return united(pipeline, scope, block(pipeline, step, plain), step.span)


def united(pipeline: Pipeline, left: Scope, right: Scope, span: syntax.Span) -> Scope:
    """The records of both scopes, with the fields of both."""
    columns: dict[Column, tuple[Expr, Expr]] = {}
    fields: dict[str, Expr] = {}
    for name in dict.fromkeys([*left.fields, *right.fields]):
        pair = [side.fields.get(name) or scopes.missing() for side in (left, right)]
        first, second = unify(pipeline.session, pair, span, f"the values of {name}")
        column = Column(name, first.type)
        columns[column] = (first, second)
        fields[name] = Ref(column)
    return Scope(Union(left.node, right.node, columns), fields)


@command(
    "join",
    'join [QUERY], on:{FIELD, left[a] == right[b]} [, kind:inner|leftOuter|outer] [, prefix:"right."]',
    "Pairs records with equal values. The fields of the other side get a prefix.",
    parameters=("on", "kind", "prefix"),
    example='data record(id = 1, a = "x") | join [data record(id = 1, b = "y")], on:{id}',
    gives=[{"id": 1, "a": "x", "right.id": 1, "right.b": "y"}],
)
def _join(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, named = pipeline.split(step)
    right = block(pipeline, step, plain)
    if "on" not in named:
        pipeline.fail("join needs on:{field}, or on:{left[a] == right[b]}", step.span)
    kind = pipeline.constant(scope, named["kind"], "string", "kind") if "kind" in named else "inner"
    if kind not in ("inner", "leftOuter", "outer"):
        pipeline.fail("kind must be inner, leftOuter or outer", named["kind"].span)
    prefix = pipeline.constant(scope, named["prefix"], "string", "prefix") if "prefix" in named else "right."
    pairs: list[tuple[Expr, Expr]] = []
    for argument in items([Argument(named["on"].value, named["on"].span)]):
        names = _join_names(pipeline, argument)
        left_key, right_key = scope.find(names[0]), right.find(names[1])
        if left_key is None or right_key is None:
            side, gone = ("left", names[0]) if left_key is None else ("right", names[1])
            known = hint(gone, (scope if side == "left" else right).fields)
            pipeline.fail(f"the {side} side has no field {gone}{known}", argument.span)
        assert left_key is not None
        assert right_key is not None
        first, second = unify(pipeline.session, [left_key, right_key], argument.span, "the joined fields")
        pairs.append((first, second))
    node = Join(scope.node, right.node, kind, pairs)
    fields = {**scope.fields, **{f"{prefix}{name}": value for name, value in right.fields.items()}}
    return Scope(node, fields, scope.scan, scope.hidden)


def _join_names(pipeline: Pipeline, argument: Argument) -> tuple[str, str]:
    value = argument.value
    if isinstance(value, Name):
        return value.text, value.text
    if isinstance(value, syntax.Binary) and value.operator == "==":
        sides: dict[str, str] = {}
        for side in (value.left, value.right):
            if isinstance(side, syntax.Index) and isinstance(side.operand, Name) and side.key is not None:
                key = side.key.text if isinstance(side.key, Name) else getattr(side.key, "value", None)
                if isinstance(key, str):
                    sides[side.operand.text.lower()] = key
        if sides.keys() == {"left", "right"}:
            return sides["left"], sides["right"]
    pipeline.fail("on takes fields, or left[a] == right[b]", argument.span)
    raise AssertionError


@command(
    "lookup",
    'lookup [QUERY], sourceField:, lookupField: [, prefix:"lookup."] [, fields:{}]',
    "Adds the fields of the first record of another query with the same value, or null if "
    "there is none. `dedup` explains which record is the first.",
    parameters=("sourceField", "lookupField", "prefix", "fields"),
    example='data record(k = 1) | lookup [data record(id = 1, v = "x")], sourceField:k, lookupField:id, fields:{v}',
    gives=[{"k": 1, "lookup.v": "x"}],
)
def _lookup(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, named = pipeline.split(step)
    right = block(pipeline, step, plain)
    for name in ("sourceField", "lookupField"):
        if name not in named:
            pipeline.fail(f"lookup needs {name}", step.span)
    prefix = pipeline.constant(scope, named["prefix"], "string", "prefix") if "prefix" in named else "lookup."
    source = pipeline.expressions(scope).bind(named["sourceField"].value)
    key = pipeline.expressions(right).bind(named["lookupField"].value)
    first, second = unify(pipeline.session, [source, key], step.span, "sourceField and lookupField")
    once = Dedup(right.node, [second], first_by(right))
    chosen = dict(right.fields)
    if "fields" in named:
        chosen = {}
        for argument in items([Argument(named["fields"].value, named["fields"].span)]):
            name = argument.alias.text if argument.alias else text_of(pipeline, argument)
            chosen[name] = pipeline.expressions(right).bind(argument.value)
    columns = {Column(name, value.type): value for name, value in chosen.items()}
    node = Join(scope.node, Project(once, {**columns}), "leftOuter", [(first, second)])
    found = {f"{prefix}{name}": Ref(column) for name, column in zip(chosen, columns, strict=True)}
    return Scope(node, {**scope.fields, **found}, scope.scan, scope.hidden, scope.order)
