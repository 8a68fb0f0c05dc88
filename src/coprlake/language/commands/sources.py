"""The commands that start a query."""

import json
from typing import Any

from coprlake.language import scope as scopes
from coprlake.language import syntax, times
from coprlake.language.binding.arithmetic import arithmetic
from coprlake.language.binding.converting import constant, unify
from coprlake.language.binding.known_values import listed
from coprlake.language.binding.session import QuerySession
from coprlake.language.commands.pipeline import Pipeline
from coprlake.language.commands.registry import command
from coprlake.language.functions.values import operators
from coprlake.language.plan import Apply, Column, Constant, Expr
from coprlake.language.scope import Scope
from coprlake.language.syntax import Argument, Command, Name
from coprlake.language.table_facts import LOGS
from coprlake.language.types import DURATION, STRING, TIMESTAMP, Type, array
from coprlake.text.nearest_words import hint


@command(
    "fetch",
    'fetch logs [, from:, to:] [, timeframe:] · fetch "path"',
    "Reads the records of a table: `logs` is the table being queried, a quoted path is "
    "another one, if the calling program allows it. Without `from:`, `to:` or `timeframe:` it "
    "reads all records; `from:` alone means until now. A bare duration is relative to now: "
    "`from:-2h`.",
    parameters=("from", "to", "timeframe", "bucket", "samplingRatio", "scanLimitGBytes"),
    example="fetch logs, from:-2h@h, to:now() | summarize count()",
    source=True,
)
def _fetch(pipeline: Pipeline, step: Command, _: Scope) -> Scope:
    plain, named = pipeline.split(step)
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
    if any(key in named for key in ("from", "to", "timeframe")):
        pipeline.timeframe = until_now(*time_range(pipeline, named), pipeline.session.now)
    since, until = pipeline.timeframe
    schema = pipeline.tables.schema(name, lambda problem: pipeline.fail(problem, target.span))
    return scopes.of_table(name, schema, since, until, pipeline.tables.mixed(name))


def until_now(since: int | None, until: int | None, now: int) -> tuple[int | None, int | None]:
    """The timeframe; one with a start but no end ends now."""
    return (since, max(since, now)) if since is not None and until is None else (since, until)


def _own_table(pipeline: Pipeline, target: Name) -> str:
    if target.text.lower() != LOGS:
        known = hint(target.text, [LOGS]) or "; the table is named logs; put a path in quotes"
        pipeline.fail(f"there is no table {target.text}{known}", target.span)
    return LOGS


def time_range(pipeline: Pipeline, named: dict[str, Argument]) -> tuple[int | None, int | None]:
    """The times of ``from:``, ``to:`` and ``timeframe:``, in microseconds."""
    if "timeframe" in named:
        argument = named["timeframe"]
        text = argument.value.value if isinstance(argument.value, syntax.Literal) else None
        found = times.parse_timeframe(text) if isinstance(text, str) else None
        if found is None or "from" in named or "to" in named:
            pipeline.fail(
                'timeframe must be like "2026-01-01T00:00:00Z/2026-01-02T00:00:00Z", without from and to',
                argument.span,
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
    found = pipeline.expressions(scope).bind(argument.value)
    if isinstance(found, Constant) and found.type == DURATION:  # relative to now
        now = Constant(pipeline.session.now, TIMESTAMP)
        found = arithmetic(pipeline.session, "+", now, found, argument.span)
    if isinstance(found, Constant) and isinstance(found.value, str):
        found = Constant(times.parse_time(found.value), TIMESTAMP)
    if not isinstance(found, Constant) or found.type != TIMESTAMP or found.value is None:
        pipeline.fail(f'{argument.name} must be a time: -2h, now()-1d@d, or "2026-01-31T12:00:00Z"', argument.span)
    assert isinstance(found, Constant)
    return int(found.value)


@command(
    "data",
    'data record(a = 1), … · data json:"…"',
    "Records written in the query itself.",
    parameters=("json",),
    example='data record(a = 1, b = "x"), record(a = 2)',
    gives=[{"a": 1, "b": "x"}, {"a": 2, "b": None}],
    source=True,
)
def _data(pipeline: Pipeline, step: Command, _: Scope) -> Scope:
    plain, named = pipeline.split(step)
    empty = Scope(scopes.of_values([], [], []).node)
    expressions = pipeline.expressions(empty)
    rows: list[dict[str, Expr]] = []
    if "json" in named:
        text = pipeline.constant(empty, named["json"], "string", "json")
        try:
            values = json.loads(text)
        except ValueError as error:
            pipeline.fail(f"this is not valid JSON: {error}", named["json"].span)
        values = values if isinstance(values, list) else [values]
        if not all(isinstance(value, dict) for value in values):
            pipeline.fail("json must be an object or an array of objects", named["json"].span)
        rows = [{str(k): _from_json(pipeline.session, v, step.span) for k, v in value.items()} for value in values]
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
        cells = [row.get(name, scopes.missing()) for row in rows]
        parts = unify(pipeline.session, cells, step.span, f"the values of {name}")
        columns.append(Column(name, parts[0].type))
        for row, part in zip(table, parts, strict=True):
            row.append(part)
    return scopes.of_values(names, columns, [tuple(row) for row in table])


def _from_json(session: QuerySession, value: Any, span: syntax.Span) -> Expr:
    if isinstance(value, list):
        return listed(session, [_from_json(session, part, span) for part in value], span)
    if isinstance(value, dict):
        members = {str(name): _from_json(session, part, span) for name, part in value.items()}
        kind = Type("record", members=tuple((name, part.type) for name, part in members.items()))
        return Apply(operators.RECORD, tuple(members.values()), kind)
    return constant(value)


@command(
    "describe",
    "describe logs",
    "Lists the fields of a table and their types.",
    example="describe logs | limit 1",
    source=True,
)
def _describe(pipeline: Pipeline, step: Command, _: Scope) -> Scope:
    plain, _named = pipeline.split(step)
    target = pipeline.only(step, plain)[0].value
    name = _own_table(pipeline, target) if isinstance(target, Name) else str(getattr(target, "value", ""))
    schema = pipeline.tables.schema(name, lambda problem: pipeline.fail(problem, target.span))
    fields = scopes.of_table(name, schema, None, None, pipeline.tables.mixed(name)).fields
    columns = [Column("field", STRING), Column("data_types", array(STRING))]
    rows: list[tuple[Expr, ...]] = []
    for field, value in fields.items():
        kinds = Apply(operators.LIST, (Constant(str(value.type), STRING),), array(STRING))
        rows.append((Constant(field, STRING), kinds))
    return scopes.of_values(["field", "data_types"], columns, rows)
