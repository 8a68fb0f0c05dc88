"""The commands: each takes the scope of the one before it and gives the scope for the next."""

import fnmatch
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from coprlake.errors import PatternError, UsageError
from coprlake.language import scope as scopes
from coprlake.language import syntax, times
from coprlake.language.expressions import Expressions, Session, constant
from coprlake.language.functions import operators
from coprlake.language.functions.catalog import FUNCTIONS
from coprlake.language.functions.parsing import parse_function
from coprlake.language.plan import (
    Aggregate,
    Apply,
    Column,
    Constant,
    Dedup,
    Expand,
    Expr,
    Filter,
    Join,
    Limit,
    Node,
    Order,
    Project,
    Ref,
    Sort,
    Union,
)
from coprlake.language.scope import Scope
from coprlake.language.suggestions import hint
from coprlake.language.syntax import Argument, Block, Command, Group, Name
from coprlake.language.tables import LOGS, Tables
from coprlake.language.timeseries import make_timeseries
from coprlake.language.types import BOOLEAN, DURATION, LONG, MAP, NULL, STRING, TIMESTAMP, Type, array, common_type
from coprlake.records import ATTRIBUTES

Handler = Callable[["Pipeline", Command, Scope | None], Scope]
COMMANDS: Final[dict[str, tuple[str, Handler]]] = {}
"""The name as it is written, and what does it, by the name in lower case."""

_SOURCES: Final = frozenset({"fetch", "data", "describe"})
_BEFORE_SEARCH: Final = frozenset(
    {"filter", "filterout", "fieldskeep", "fieldsremove", "fieldsrename", "limit", "append", "fetch", "data", "search"}
)


def command(name: str) -> Callable[[Handler], Handler]:
    """Put a command into the language."""

    def put(handler: Handler) -> Handler:
        COMMANDS[name.lower()] = (name, handler)
        return handler

    return put


class Pipeline:
    """Goes through the commands of a query, or of a query in it."""

    def __init__(
        self, session: Session, tables: Tables, timeframe: tuple[int | None, int | None] = (None, None)
    ) -> None:
        self.session = session
        self.tables = tables
        self.timeframe = timeframe
        """The time that the query is about, unless `fetch` says otherwise."""
        self.seen: list[str] = []

    def run(self, pipeline: syntax.Pipeline) -> Scope:
        """The scope at the end."""
        scope: Scope | None = None
        for step in pipeline.commands:
            name = step.name.lower()
            if name not in COMMANDS:
                known = (spelled for spelled, _ in COMMANDS.values())
                self.fail(f"there is no command {step.name}{hint(step.name, known)}", step.name_span)
            if scope is None and name not in _SOURCES:
                self.fail(f"{step.name} needs records to work on; begin with fetch logs |", step.name_span)
            if scope is not None and name in _SOURCES:
                self.fail(
                    f"{step.name} can only stand at the begin of a query; to join records use append", step.name_span
                )
            scope = COMMANDS[name][1](self, step, scope)
            self.seen.append(name)
        assert scope is not None
        return scope

    def fail(self, problem: str, span: syntax.Span) -> Any:
        """Refuse the query."""
        self.session.fail(problem, span)

    def inner(self, pipeline: syntax.Pipeline) -> Scope:
        """A query in brackets."""
        return Pipeline(self.session, self.tables, self.timeframe).run(pipeline)

    def expressions(self, scope: Scope, aggregates: Callable[[Apply], Expr] | None = None) -> Expressions:
        """For expressions over a scope."""
        return Expressions(self.session, scope, self.inner, aggregates=aggregates)

    def split(self, step: Command, *names: str) -> tuple[list[Argument], dict[str, Argument]]:
        """The arguments of a command: those in a row, and those with one of these names."""
        plain = [argument for argument in step.arguments if argument.name is None]
        named: dict[str, Argument] = {}
        known = {name.lower(): name for name in names}
        for argument in step.arguments:
            if argument.name is None:
                continue
            name = known.get(argument.name.lower())
            if name is None:
                self.fail(f"{step.name} has no parameter {argument.name}{hint(argument.name, names)}", argument.span)
            if name in named:
                self.fail(f"{argument.name} is given twice", argument.span)
            assert name
            named[name] = argument
        return plain, named

    def constant(self, scope: Scope, argument: Argument, kinds: str, what: str) -> Any:
        """The value of an argument that has to be a constant of one of these kinds."""
        bare = argument.value
        if isinstance(bare, Name) and "string" in kinds and bare.text not in scope.fields:
            return bare.text  # kind:inner, as well as kind:"inner"
        found = self.expressions(scope).bind(bare)
        if not isinstance(found, Constant) or found.type.kind not in kinds.split("|"):
            self.fail(f"{what} has to be a constant {kinds.replace('|', ' or ')}", argument.span)
        assert isinstance(found, Constant)
        return found.value

    def only(self, step: Command, plain: list[Argument], count: int = 1) -> list[Argument]:
        """Exactly so many arguments."""
        if len(plain) != count:
            what = "one argument" if count == 1 else f"{count} arguments"
            self.fail(f"{step.name} takes {what}, found {len(plain)}", step.span)
        return plain


def text_of(pipeline: Pipeline, argument: Argument) -> str:
    """The name of a column without one: the expression as it was written, without line breaks."""
    span = argument.value.span
    return " ".join(pipeline.session.text[span.start : span.end].split())


def items(arguments: Sequence[Argument]) -> list[Argument]:
    """The arguments, with those of groups among them."""
    found: list[Argument] = []
    for argument in arguments:
        if isinstance(argument.value, Group) and argument.alias is None:
            found += items(argument.value.arguments)
        else:
            found.append(argument)
    return found


def is_missing(step: Scope | None) -> Scope:
    """The scope, which is there for all commands but the first."""
    assert step is not None
    return step


# Sources


@command("fetch")
def _fetch(pipeline: Pipeline, step: Command, _: Scope | None) -> Scope:
    plain, named = pipeline.split(
        step, "from", "to", "timeframe", "bucket", "samplingRatio", "scanLimitGBytes", "timeframeField"
    )
    target = pipeline.only(step, plain)[0].value
    if isinstance(target, Name):
        name = _own_table(pipeline, target)
    elif isinstance(target, syntax.Literal) and isinstance(target.value, str):
        name = target.value
    else:
        pipeline.fail('fetch takes logs, or the path of a table in quotes: fetch "s3://bucket/logs"', target.span)
    for ignored in ("bucket", "samplingRatio", "scanLimitGBytes", "timeframeField"):
        if ignored in named:
            pipeline.fail(f"{ignored} is not supported here; leave it out", named[ignored].span)
    since, until = pipeline.timeframe
    if any(key in named for key in ("from", "to", "timeframe")):
        since, until = time_range(pipeline, named)
    pipeline.timeframe = (since, until)
    schema = pipeline.tables.schema(name, lambda problem: pipeline.fail(problem, target.span))
    return scopes.of_table(name, schema, since, until)


def _own_table(pipeline: Pipeline, target: Name) -> str:
    if target.text.lower() != LOGS:
        known = hint(target.text, [LOGS])
        pipeline.fail(f'there is no table {target.text}{known or "; this one is logs"}; a path goes in quotes', target.span)
    return LOGS


def time_range(pipeline: Pipeline, named: dict[str, Argument]) -> tuple[int | None, int | None]:
    """The times of ``from:``, ``to:`` and ``timeframe:``, in microseconds."""
    if "timeframe" in named:
        argument = named["timeframe"]
        text = argument.value.value if isinstance(argument.value, syntax.Literal) else None
        found = times.parse_timeframe(text) if isinstance(text, str) else None
        if found is None or "from" in named or "to" in named:
            pipeline.fail(
                'a timeframe is "2026-01-01T00:00:00Z/2026-01-02T00:00:00Z", without from and to', argument.span
            )
        assert found
        return found
    ends: dict[str, int | None] = {"from": None, "to": None}
    for key in ends:
        if key in named:
            ends[key] = _moment(pipeline, named[key])
    if ends["from"] is not None and ends["to"] is not None and ends["from"] > ends["to"]:
        pipeline.fail("from is later than to", named["from"].span)
    return ends["from"], ends["to"]


def _moment(pipeline: Pipeline, argument: Argument) -> int:
    scope = Scope(scopes.of_values([], [], []).node)
    expressions = pipeline.expressions(scope)
    found = expressions.bind(argument.value)
    if isinstance(found, Constant) and found.type == DURATION:  # so long before now
        found = expressions.arithmetic("+", Constant(pipeline.session.now, TIMESTAMP), found, argument.span)
    if isinstance(found, Constant) and isinstance(found.value, str):
        found = Constant(times.parse_time(found.value), TIMESTAMP)
    if not isinstance(found, Constant) or found.type != TIMESTAMP or found.value is None:
        pipeline.fail(f'{argument.name} is a time: -2h, now()-1d@d, or "2026-01-31T12:00:00Z"', argument.span)
    assert isinstance(found, Constant)
    return int(found.value)


@command("data")
def _data(pipeline: Pipeline, step: Command, _: Scope | None) -> Scope:
    plain, named = pipeline.split(step, "json")
    empty = Scope(scopes.of_values([], [], []).node)
    expressions = pipeline.expressions(empty)
    rows: list[dict[str, Expr]] = []
    if "json" in named:
        text = pipeline.constant(empty, named["json"], "string", "json")
        try:
            values = json.loads(text)
        except ValueError as error:
            pipeline.fail(f"this is not JSON: {error}", named["json"].span)
        values = values if isinstance(values, list) else [values]
        if not all(isinstance(value, dict) for value in values):
            pipeline.fail("json has to be an object, or an array of objects", named["json"].span)
        rows = [{str(k): _from_json(expressions, v, step.span) for k, v in value.items()} for value in values]
    for argument in plain:
        found = expressions.bind(argument.value)
        if not isinstance(found, Apply) or found.function is not operators.RECORD:
            pipeline.fail("data takes records: data record(a = 1), record(a = 2)", argument.span)
        assert isinstance(found, Apply)
        names = [name for name, _ in found.type.members]
        rows.append({name: value for name, value in zip(names, found.arguments, strict=True) if value is not None})
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: list[Column] = []
    table: list[list[Expr]] = [[] for _ in rows]
    for name in names:
        parts = expressions.unify([row.get(name, scopes.missing()) for row in rows], step.span, f"the values of {name}")
        columns.append(Column(name, parts[0].type))
        for row, part in zip(table, parts, strict=True):
            row.append(part)
    return scopes.of_values(names, columns, [tuple(row) for row in table])


def _from_json(expressions: Expressions, value: Any, span: syntax.Span) -> Expr:
    if isinstance(value, list):
        parts = expressions.unify([_from_json(expressions, part, span) for part in value], span, "the elements")
        return Apply(operators.LIST, tuple(parts), array(parts[0].type if parts else NULL))
    if isinstance(value, dict):
        members = {str(name): _from_json(expressions, part, span) for name, part in value.items()}
        kind = Type("record", members=tuple((name, part.type) for name, part in members.items()))
        return Apply(operators.RECORD, tuple(members.values()), kind)
    return constant(value)


@command("describe")
def _describe(pipeline: Pipeline, step: Command, _: Scope | None) -> Scope:
    plain, _named = pipeline.split(step)
    target = pipeline.only(step, plain)[0].value
    name = _own_table(pipeline, target) if isinstance(target, Name) else str(getattr(target, "value", ""))
    schema = pipeline.tables.schema(name, lambda problem: pipeline.fail(problem, target.span))
    fields = scopes.of_table(name, schema, None, None).fields
    columns = [Column("field", STRING), Column("data_types", array(STRING))]
    rows: list[tuple[Expr, ...]] = []
    for field, value in fields.items():
        kinds = Apply(operators.LIST, (Constant(str(value.type), STRING),), array(STRING))
        rows.append((Constant(field, STRING), kinds))
    return scopes.of_values(["field", "data_types"], columns, rows)


# Records


@command("filter")
def _filter(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    return _filtered(pipeline, step, is_missing(scope), lambda condition: condition)


@command("filterOut")
def _filter_out(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    return _filtered(
        pipeline,
        step,
        is_missing(scope),
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
            pipeline.fail("to compare write ==", argument.span)
        conditions.append(expressions.condition(argument.value))
    condition = conditions[0] if len(conditions) == 1 else Apply(operators.AND, tuple(conditions), BOOLEAN)
    return _on(scope, Filter(scope.node, change(condition)))


@command("search")
def _search(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    late = next((name for name in pipeline.seen if name not in _BEFORE_SEARCH), None)
    if late is not None:
        spelled = COMMANDS[late][0]
        pipeline.fail(
            f"search has to stand before {spelled}: it looks into the records as they are stored", step.name_span
        )
    plain, named = pipeline.split(step, "caseSensitive", "scope")
    exact = "caseSensitive" in named and pipeline.constant(scope, named["caseSensitive"], "boolean", "caseSensitive")
    if "scope" in named and pipeline.constant(scope, named["scope"], "string", "scope") == "names":
        pipeline.fail('scope:"names" is not supported; search looks at values', named["scope"].span)
    condition = _search_condition(pipeline, scope, pipeline.only(step, plain)[0].value, bool(exact))
    return _on(scope, Filter(scope.node, condition))


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
        return expressions.invoke(FUNCTIONS["~"], sides, node.span)
    return pipeline.expressions(scope).condition(node)


def _anywhere(pipeline: Pipeline, scope: Scope, term: str, exact: bool, span: syntax.Span) -> Expr:
    """The term in any field."""
    if "**" in term or term.count("*") > 64:
        pipeline.fail("at most 64 * in a term, and no two beside each other", span)
    expressions = pipeline.expressions(scope)
    sides: list[Expr] = []
    for value in scope.fields.values():
        if value.type.kind in ("string", "long", "double", "ip", "array", "record", "map"):
            wanted = [value, Constant(term, STRING), Constant(exact, BOOLEAN)]
            sides.append(expressions.invoke(FUNCTIONS["search term"], wanted, span))
    wrapped = tuple(Apply(operators.IS_TRUE, (side,), BOOLEAN) for side in sides)
    marked = (Constant(term, STRING), Constant(exact, BOOLEAN))
    return Apply(FUNCTIONS["search anywhere"], (*marked, *wrapped), BOOLEAN)


def _on(scope: Scope, node: Node) -> Scope:
    """The same fields, of other records."""
    return Scope(node, scope.fields, scope.scan, scope.hidden, scope.order)


# Fields


def _computed(scope: Scope, name: str, value: Expr) -> Scope:
    """The scope with one field more, or another."""
    if isinstance(value, Ref | Constant):
        node, expression = scope.node, value
    else:
        column = Column(name, value.type)
        node, expression = Project(scope.node, {column: value}), Ref(column)
    return Scope(node, {**scope.fields, name: expression}, scope.scan, scope.hidden | {name}, scope.order)


@command("fieldsAdd")
def _fields_add(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, _ = pipeline.split(step)
    for argument in _some(pipeline, step, items(plain)):
        name = argument.alias.text if argument.alias else text_of(pipeline, argument)
        if argument.alias is None and isinstance(argument.value, Name):
            name = argument.value.text
        scope = _computed(scope, name, pipeline.expressions(scope).bind(argument.value))
    return scope


def _some(pipeline: Pipeline, step: Command, found: list[Argument]) -> list[Argument]:
    if not found:
        pipeline.fail(f"{step.name} needs at least one field", step.span)
    return found


@command("fields")
def _fields(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, _ = pipeline.split(step)
    chosen: dict[str, Expr] = {}
    for argument in _some(pipeline, step, items(plain)):
        name = argument.alias.text if argument.alias else text_of(pipeline, argument)
        if argument.alias is None and isinstance(argument.value, Name):
            name = argument.value.text
        value = pipeline.expressions(scope).bind(argument.value)
        hidden = scope.fields.get(name)
        scope = _computed(scope, name, value)
        chosen[name] = scope.fields[name]
        if hidden is not None and argument.alias is not None:  # fields a = b, b = a takes both as they were
            scope.fields[name] = hidden
    return scope.closed(scope.node, chosen)


def _patterns(pipeline: Pipeline, scope: Scope, arguments: list[Argument]) -> list[str]:
    """The names that match: a name, or in quotes a pattern with ``*``."""
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


@command("fieldsKeep")
def _fields_keep(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, _ = pipeline.split(step)
    wanted = _patterns(pipeline, scope, _some(pipeline, step, plain))
    kept = {name: value for name in dict.fromkeys(wanted) if (value := scope.find(name)) is not None}
    ordered = [name for name in scope.fields if name in kept] + [name for name in kept if name not in scope.fields]
    return scope.closed(scope.node, {name: kept[name] for name in ordered})


@command("fieldsRemove")
def _fields_remove(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, _ = pipeline.split(step)
    gone = _patterns(pipeline, scope, _some(pipeline, step, plain))
    for name in gone:
        if scope.find(name) is None:
            near = scope.nearest(name)
            pipeline.session.warn(f"there is no field {name} to remove" + (f"; did you mean {near}?" if near else ""))
    return _without(scope, gone)


def _without(scope: Scope, gone: list[str]) -> Scope:
    """The fields but these; attributes of these names are taken out of the map."""
    scan = None if ATTRIBUTES in gone else scope.scan
    keys = [name for name in gone if name not in scope.fields and scan is not None and name not in scope.hidden]
    fields = {name: value for name, value in scope.fields.items() if name not in gone}
    result = Scope(scope.node, fields, scan, scope.hidden | set(gone), scope.order)
    if keys and ATTRIBUTES in fields and fields[ATTRIBUTES].type == MAP:
        names = tuple(Constant(key, STRING) for key in keys)
        less = Apply(FUNCTIONS["without keys"], (fields[ATTRIBUTES], *names), MAP)
        result = _computed(result, ATTRIBUTES, less)
    return result


@command("fieldsRename")
def _fields_rename(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, _ = pipeline.split(step)
    renamed: dict[str, str] = {}
    for argument in _some(pipeline, step, items(plain)):
        if argument.alias is None or not isinstance(argument.value, Name):
            pipeline.fail("write the new name first: fieldsRename new = old", argument.span)
        assert argument.alias
        assert isinstance(argument.value, Name)
        if scope.find(argument.value.text) is None:
            known = hint(argument.value.text, scope.fields)
            pipeline.session.warn(f"there is no field {argument.value.text} to rename{known}")
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


@command("fieldsFlatten")
def _fields_flatten(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, named = pipeline.split(step, "prefix", "depth")
    argument = pipeline.only(step, plain)[0]
    value = pipeline.expressions(scope).bind(argument.value)
    if value.type.kind not in ("record", "null"):
        pipeline.fail(f"fieldsFlatten takes a record, found {value.type}", argument.span)
    name = text_of(pipeline, argument)
    prefix = pipeline.constant(scope, named["prefix"], "string", "prefix") if "prefix" in named else f"{name}."
    expressions = pipeline.expressions(scope)
    for number, (member, _) in enumerate(value.type.members):
        scope = _computed(scope, f"{prefix}{member}", expressions._member_at(value, number))
    return scope


@command("parse")
def _parse(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, named = pipeline.split(step, "preserveFieldsOnFailure", "parsingPrerequisite")
    subject, pattern = pipeline.only(step, plain, 2)
    expressions = pipeline.expressions(scope)
    value = expressions.expect(expressions.bind(subject.value), STRING, subject.span, "what is parsed")
    text = pipeline.constant(scope, pattern, "string", "the pattern of parse")
    try:
        function = parse_function(text)
    except PatternError as error:
        pipeline.fail(
            f"the pattern cannot be read: {error.problem}, at character {error.offset + 1} of it", pattern.span
        )
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
                converted = expressions.convert(before, shared) if shared else None
                if converted is not None and shared is not None:
                    sides = (expressions.convert(part, shared), converted)
                    part = Apply(FUNCTIONS["coalesce"], sides, shared)
        column = Column(name, part.type)
        columns[column] = part
        fields[name] = Ref(column)
    return Scope(Project(node, columns), fields, scope.scan, scope.hidden | set(fields), scope.order)


# Groups


@command("summarize")
def _summarize(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, named = pipeline.split(step, "by")
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
    for argument in _some(pipeline, step, items(plain)) if not keys else items(plain):
        name = argument.alias.text if argument.alias else text_of(pipeline, argument)
        found = pipeline.expressions(scope, measure).bind(argument.value)
        loose = set(columns_outside(found, measures))
        if loose:
            pipeline.fail(
                "a field that is not in by: can only be used inside of an aggregation, as max(x)", argument.span
            )
        results[name] = found
    columns = {name: Column(name, value.type) for name, value in keys.items()}
    node: Node = Aggregate(scope.node, {columns[name]: value for name, value in keys.items()}, measures)
    fields: dict[str, Expr] = {name: Ref(column) for name, column in columns.items()}
    result = Scope(node, fields)
    for name, value in results.items():
        result = _computed(result, name, value)
    return Scope(result.node, {**fields, **{name: result.fields[name] for name in results}})


def columns_outside(expression: Expr, measures: dict[Column, Expr]) -> list[Column]:
    """Columns that an expression over aggregations uses beside them."""
    from coprlake.language.plan import columns_of

    return [column for column in columns_of(expression) if column not in measures]


def group_keys(pipeline: Pipeline, scope: Scope, named: dict[str, Argument]) -> dict[str, Expr]:
    """The groups of ``by:``."""
    keys: dict[str, Expr] = {}
    if "by" not in named:
        return keys
    for argument in items([Argument(named["by"].value, named["by"].span)]):
        name = argument.alias.text if argument.alias else text_of(pipeline, argument)
        if argument.alias is None and isinstance(argument.value, Name):
            name = argument.value.text
        keys[name] = pipeline.expressions(scope).bind(argument.value)
    return keys


@command("makeTimeseries")
def _make_timeseries(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    return make_timeseries(pipeline, step, is_missing(scope))


@command("fieldsSummary")
def _fields_summary(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    """For each field how many records have it, and its most frequent values: a union of one small table a field."""
    scope = is_missing(scope)
    plain, named = pipeline.split(step, "topValues")
    top = pipeline.constant(scope, named["topValues"], "long", "topValues") if "topValues" in named else 20
    expressions = pipeline.expressions(scope)
    result: Scope | None = None
    for argument in _some(pipeline, step, items(plain)):
        name = argument.alias.text if argument.alias else text_of(pipeline, argument)
        value = expressions.bind(argument.value)
        part = _summary_of(pipeline, scope, name, value, top, argument.span)
        result = part if result is None else _united(pipeline, result, part, argument.span)
    assert result
    return result


def _summary_of(pipeline: Pipeline, scope: Scope, name: str, value: Expr, top: int, span: syntax.Span) -> Scope:
    expressions = pipeline.expressions(scope)
    text = expressions.invoke(FUNCTIONS["tostring"], [value], span)
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
        "values": Ref(values),
    }
    made = Scope(node, {})
    for field, expression in fields.items():
        made = _computed(made, field, expression)
    return Scope(made.node, made.fields)


# Order


@command("sort")
def _sort(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, named = pipeline.split(step, "direction")
    default = _direction(pipeline, scope, named.get("direction"))
    found = _some(pipeline, step, items(plain))
    keys = tuple(_sort_key(pipeline, scope, argument, default) for argument in found)
    return Scope(Order(scope.node, keys), scope.fields, scope.scan, scope.hidden, keys)


def _direction(pipeline: Pipeline, scope: Scope, argument: Argument | None) -> bool:
    if argument is None:
        return False
    word = str(pipeline.constant(scope, argument, "string", "direction")).lower()
    if word not in ("asc", "ascending", "desc", "descending"):
        pipeline.fail('direction is "ascending" or "descending"', argument.span)
    return word.startswith("desc")


def _sort_key(pipeline: Pipeline, scope: Scope, argument: Argument, default: bool) -> Sort:
    value = pipeline.expressions(scope).bind(argument.value)
    if value.type.kind in ("map", "record", "array"):
        pipeline.fail(f"records cannot be sorted by {value.type}", argument.span)
    descends = default if argument.direction is None else argument.direction == "desc"
    return Sort(value, descends)


@command("limit")
def _limit(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, _ = pipeline.split(step)
    argument = pipeline.only(step, plain)[0]
    count = pipeline.constant(scope, argument, "long", "limit")
    if count is None or count < 0:
        pipeline.fail("limit takes a number of records", argument.span)
    return _on(scope, Limit(scope.node, count))


@command("dedup")
def _dedup(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, named = pipeline.split(step, "sort")
    keys = [pipeline.expressions(scope).bind(argument.value) for argument in _some(pipeline, step, items(plain))]
    order: tuple[Sort, ...] = scope.order
    if "sort" in named:
        sorts = items([Argument(named["sort"].value, named["sort"].span, direction=named["sort"].direction)])
        order = tuple(_sort_key(pipeline, scope, argument, False) for argument in sorts)
    return Scope(Dedup(scope.node, keys, order), scope.fields, scope.scan, scope.hidden)


@command("expand")
def _expand(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, named = pipeline.split(step, "limit")
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
    node = Expand(scope.node, value, element, limit)
    return Scope(node, {**scope.fields, name: Ref(element)}, scope.scan, scope.hidden | {name}, scope.order)


# Several tables


def _block(pipeline: Pipeline, step: Command, plain: list[Argument]) -> Scope:
    argument = pipeline.only(step, plain)[0]
    if not isinstance(argument.value, Block):
        pipeline.fail(f"{step.name} takes a query in brackets: {step.name} [fetch logs | limit 5]", argument.span)
    assert isinstance(argument.value, Block)
    return pipeline.inner(argument.value.pipeline)


@command("append")
def _append(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    plain, _ = pipeline.split(step)
    return _united(pipeline, is_missing(scope), _block(pipeline, step, plain), step.span)


def _united(pipeline: Pipeline, left: Scope, right: Scope, span: syntax.Span) -> Scope:
    columns: dict[Column, tuple[Expr, Expr]] = {}
    fields: dict[str, Expr] = {}
    expressions = pipeline.expressions(left)
    for name in dict.fromkeys([*left.fields, *right.fields]):
        pair = [side.fields.get(name) or scopes.missing() for side in (left, right)]
        first, second = expressions.unify(pair, span, f"the values of {name}")
        column = Column(name, first.type)
        columns[column] = (first, second)
        fields[name] = Ref(column)
    return Scope(Union(left.node, right.node, columns), fields)


@command("join")
def _join(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, named = pipeline.split(step, "on", "kind", "prefix")
    right = _block(pipeline, step, plain)
    if "on" not in named:
        pipeline.fail("join needs on:{field}, or on:{left[a] == right[b]}", step.span)
    kind = pipeline.constant(scope, named["kind"], "string", "kind") if "kind" in named else "inner"
    if kind not in ("inner", "leftOuter", "outer"):
        pipeline.fail("kind is inner, leftOuter or outer", named["kind"].span)
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
        first, second = pipeline.expressions(scope).unify([left_key, right_key], argument.span, "the joined fields")
        pairs.append((first, second))
    node = Join(scope.node, right.node, kind, pairs)
    fields = {**scope.fields, **{f"{prefix}{name}": value for name, value in right.fields.items()}}
    return Scope(node, fields)


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


@command("lookup")
def _lookup(pipeline: Pipeline, step: Command, scope: Scope | None) -> Scope:
    scope = is_missing(scope)
    plain, named = pipeline.split(step, "sourceField", "lookupField", "prefix", "fields")
    right = _block(pipeline, step, plain)
    for name in ("sourceField", "lookupField"):
        if name not in named:
            pipeline.fail(f"lookup needs {name}", step.span)
    prefix = pipeline.constant(scope, named["prefix"], "string", "prefix") if "prefix" in named else "lookup."
    source = pipeline.expressions(scope).bind(named["sourceField"].value)
    key = pipeline.expressions(right).bind(named["lookupField"].value)
    first, second = pipeline.expressions(scope).unify([source, key], step.span, "sourceField and lookupField")
    once = Dedup(right.node, [second], right.order)
    chosen = dict(right.fields)
    if "fields" in named:
        chosen = {}
        for argument in items([Argument(named["fields"].value, named["fields"].span)]):
            name = argument.alias.text if argument.alias else text_of(pipeline, argument)
            chosen[name] = pipeline.expressions(right).bind(argument.value)
    columns = {Column(name, value.type): value for name, value in chosen.items()}
    node = Join(scope.node, Project(once, {**columns}), "leftOuter", [(first, second)])
    found = {f"{prefix}{name}": Ref(column) for name, column in zip(chosen, columns, strict=True)}
    return Scope(node, {**scope.fields, **found}, order=scope.order)
