"""The commands that select, compute and rename fields."""

import fnmatch

from coprlake.errors import PatternError, UsageError
from coprlake.language import scope as scopes
from coprlake.language import syntax
from coprlake.language.binding.converting import convert, expect, member_at
from coprlake.language.binding.unknown_names import is_missing, near
from coprlake.language.commands.pipeline import Pipeline, computed, items, some, text_of
from coprlake.language.commands.registry import command
from coprlake.language.functions.catalog import FUNCTIONS
from coprlake.language.functions.text.pattern_arrays import parse_function
from coprlake.language.functions.values import operators
from coprlake.language.plan import Apply, Column, Constant, Expr, Node, Project, Ref
from coprlake.language.scope import Scope
from coprlake.language.syntax import Argument, Command, Name
from coprlake.language.types import LONG, MAP, STRING, common_type
from coprlake.records import ATTRIBUTES


@command(
    "fieldsAdd",
    "fieldsAdd NAME = EXPRESSION, …",
    "Adds or replaces fields. Each expression can use the fields before it.",
    example="data record(a = 1) | fieldsAdd b = a + 1, c = b * 10",
    gives=[{"a": 1, "b": 2, "c": 20}],
)
def _fields_add(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, _ = pipeline.split(step)
    for argument in some(pipeline, step, items(plain)):
        name = argument.alias.text if argument.alias else text_of(pipeline, argument)
        if argument.alias is None and isinstance(argument.value, Name):
            name = argument.value.text
        scope = computed(scope, name, pipeline.expressions(scope).bind(argument.value))
    return scope


@command(
    "fields",
    "fields NAME, NAME = EXPRESSION, …",
    "Keeps only these fields, in this order. A field that does not exist is null.",
    example="data record(a = 1, b = 2) | fields b, c = a + b, d",
    gives=[{"b": 2, "c": 3, "d": None}],
)
def _fields(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, _ = pipeline.split(step)
    values: dict[str, Expr] = {}  # computed from the old fields: fields a = b, b = a swaps them
    for argument in some(pipeline, step, items(plain)):
        name = argument.alias.text if argument.alias else text_of(pipeline, argument)
        if argument.alias is None and isinstance(argument.value, Name):
            name = argument.value.text
        values[name] = pipeline.expressions(scope).bind(argument.value)
    for name, value in values.items():
        scope = computed(scope, name, value)
    return scope.closed(scope.node, {name: scope.fields[name] for name in values})


def _patterns(pipeline: Pipeline, scope: Scope, arguments: list[Argument]) -> list[str]:
    """The fields that the arguments select: names, or quoted patterns with ``*``."""
    found: list[str] = []
    for argument in items(arguments):
        value = argument.value
        if isinstance(value, Name):
            found.append(value.text)
        elif isinstance(value, syntax.Literal) and isinstance(value.value, str):
            pattern = value.value.replace("[", "[[]")
            matching = [name for name in scope.fields if fnmatch.fnmatchcase(name, pattern)]
            found += matching if "*" in pattern else [value.value]
        else:
            pipeline.fail('name a field, or a pattern in quotes: "k8s.*"', argument.span)
    return found


@command(
    "fieldsKeep",
    'fieldsKeep NAME, "PATTERN", …',
    "Keeps only the fields with these names, or matching these patterns with `*`.",
    example='data record(k8s.pod = 1, k8s.node = 2, host = 3) | fieldsKeep "k8s.*"',
    gives=[{"k8s.pod": 1, "k8s.node": 2}],
)
def _fields_keep(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, _ = pipeline.split(step)
    wanted = _patterns(pipeline, scope, some(pipeline, step, plain))
    for name in wanted:
        if is_missing(pipeline.session, scope, name):
            pipeline.session.warn(f"there is no field {name} to keep{near(pipeline.session, scope, name)}")
    kept = {name: value for name in dict.fromkeys(wanted) if (value := scope.find(name)) is not None}
    ordered = [name for name in scope.fields if name in kept] + [name for name in kept if name not in scope.fields]
    return scope.closed(scope.node, {name: kept[name] for name in ordered})


@command(
    "fieldsRemove",
    'fieldsRemove NAME, "PATTERN", …',
    "Removes these fields, including keys of the attributes.",
    example="data record(a = 1, b = 2) | fieldsRemove a",
    gives=[{"b": 2}],
)
def _fields_remove(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, _ = pipeline.split(step)
    gone = _patterns(pipeline, scope, some(pipeline, step, plain))
    for name in gone:
        if scope.find(name) is None:  # an attribute need not be there to be removed
            pipeline.session.warn(f"there is no field {name} to remove{near(pipeline.session, scope, name)}")
    return _without(scope, gone)


def _without(scope: Scope, gone: list[str]) -> Scope:
    """The scope without these fields; attributes with these names are removed from the map."""
    scan = None if ATTRIBUTES in gone else scope.scan
    keys = [name for name in gone if name not in scope.fields and scan is not None and name not in scope.hidden]
    fields = {name: value for name, value in scope.fields.items() if name not in gone}
    result = Scope(scope.node, fields, scan, scope.hidden | set(gone), scope.order)
    if keys and ATTRIBUTES in fields and fields[ATTRIBUTES].type == MAP:
        names = tuple(Constant(key, STRING) for key in keys)
        less = Apply(FUNCTIONS["without keys"], (fields[ATTRIBUTES], *names), MAP)
        result = computed(result, ATTRIBUTES, less)
    return result


@command(
    "fieldsRename",
    "fieldsRename NEW = OLD, …",
    "Renames fields. An existing field with the new name is replaced.",
    example="data record(a = 1, b = 2) | fieldsRename c = a",
    gives=[{"c": 1, "b": 2}],
)
def _fields_rename(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, _ = pipeline.split(step)
    renamed: dict[str, str] = {}
    for argument in some(pipeline, step, items(plain)):
        if argument.alias is None or not isinstance(argument.value, Name):
            pipeline.fail("write the new name first: fieldsRename new = old", argument.span)
        assert argument.alias
        assert isinstance(argument.value, Name)
        old = argument.value.text
        if is_missing(pipeline.session, scope, old):
            pipeline.session.warn(f"there is no field {old} to rename{near(pipeline.session, scope, old)}")
        if argument.value.text in renamed:
            pipeline.fail(f"{argument.value.text} is renamed twice; add a second name with fieldsAdd", argument.span)
        renamed[argument.value.text] = argument.alias.text
    values = {old: scope.find(old) or scopes.missing() for old in renamed}
    fields: dict[str, Expr] = {}
    for name, value in scope.fields.items():
        if name in renamed:
            fields[renamed[name]] = value
        elif name not in renamed.values():
            fields[name] = value
    for old, new in renamed.items():
        fields.setdefault(new, values[old])
    moved = [old for old in renamed if old not in renamed.values()]
    result = Scope(scope.node, {**fields}, scope.scan, scope.hidden | set(renamed.values()), scope.order)
    return _without(result, [old for old in moved if old not in fields])


@command(
    "fieldsFlatten",
    "fieldsFlatten RECORD [, prefix:]",
    "Turns the members of a record into fields.",
    parameters=("prefix", "depth"),
    example='data record(r = record(x = 1)) | fieldsFlatten r, prefix:"" | fields x',
    gives=[{"x": 1}],
)
def _fields_flatten(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, named = pipeline.split(step)
    argument = pipeline.only(step, plain)[0]
    value = pipeline.expressions(scope).bind(argument.value)
    if value.type.kind not in ("record", "null"):
        pipeline.fail(f"fieldsFlatten takes a record, found {value.type}", argument.span)
    name = text_of(pipeline, argument)
    prefix = pipeline.constant(scope, named["prefix"], "string", "prefix") if "prefix" in named else f"{name}."
    for number, (member, _) in enumerate(value.type.members):
        scope = computed(scope, f"{prefix}{member}", member_at(value, number))
    return scope


@command(
    "parse",
    'parse TEXT, "PATTERN" [, preserveFieldsOnFailure:false] [, parsingPrerequisite:true]',
    "Extracts fields from text with a pattern (see [patterns](patterns.md)). If the text does "
    "not match, the fields are null and the record stays.",
    parameters=("preserveFieldsOnFailure", "parsingPrerequisite"),
    example='data record(a = "took 15 ms") | parse a, "\'took \' INT:ms" | fields ms',
    gives=[{"ms": 15}],
)
def _parse(pipeline: Pipeline, step: Command, scope: Scope) -> Scope:
    plain, named = pipeline.split(step)
    subject, pattern = pipeline.only(step, plain, 2)
    expressions = pipeline.expressions(scope)
    value = expect(pipeline.session, expressions.bind(subject.value), STRING, subject.span, "the parsed text")
    text = pipeline.constant(scope, pattern, "string", "the pattern of parse")
    try:
        function = parse_function(text)
    except PatternError as error:
        pipeline.fail(f"the pattern is not valid: {error.problem}, at character {error.offset + 1} of it", pattern.span)
    except UsageError as error:
        pipeline.fail(str(error), pattern.span)
    if "parsingPrerequisite" in named:
        wanted = expressions.condition(named["parsingPrerequisite"].value)
        value = Apply(FUNCTIONS["if"], (wanted, value, Constant(None, STRING)), STRING)
    preserves = "preserveFieldsOnFailure" in named and pipeline.constant(
        scope, named["preserveFieldsOnFailure"], "boolean", "preserveFieldsOnFailure"
    )
    kind = function.record
    parsed = Column("parsed", kind)
    node: Node = Project(scope.node, {parsed: Apply(function, (value,), kind)})
    fields = dict(scope.fields)
    columns: dict[Column, Expr] = {}
    for number, (name, member) in enumerate(kind.members):
        part: Expr = Apply(operators.MEMBER, (Ref(parsed), Constant(number, LONG)), member)
        before = fields.get(name)
        if before is not None:
            pipeline.session.warn(f"parse replaces the field {name}")
            if preserves:
                shared = common_type(before.type, member)
                converted = convert(before, shared) if shared else None
                if converted is not None and shared is not None:
                    sides = (convert(part, shared), converted)
                    part = Apply(FUNCTIONS["coalesce"], sides, shared)
        column = Column(name, part.type)
        columns[column] = part
        fields[name] = Ref(column)
    return Scope(Project(node, columns), fields, scope.scan, scope.hidden | set(fields), scope.order)
