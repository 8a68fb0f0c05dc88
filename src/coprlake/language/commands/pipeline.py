"""Plans a pipeline, and the functions that commands share."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from coprlake.language import syntax
from coprlake.language.binding.expressions import Expressions
from coprlake.language.binding.session import QuerySession
from coprlake.language.commands.registry import COMMANDS
from coprlake.language.plan import Apply, Column, Constant, Expr, Node, Project, Ref, Values
from coprlake.language.scope import Scope
from coprlake.language.syntax import Argument, Command, Group, Name
from coprlake.language.table_facts import Tables
from coprlake.text.nearest_words import hint


class Pipeline:
    """Plans the commands of a query or of a subquery."""

    def __init__(
        self, session: QuerySession, tables: Tables, timeframe: tuple[int | None, int | None] = (None, None)
    ) -> None:
        self.session = session
        self.tables = tables
        self.timeframe = timeframe
        """The timeframe of this pipeline: the given one, or that of its `fetch`."""
        self._given_timeframe = timeframe
        self.seen: list[str] = []

    def run(self, pipeline: syntax.Pipeline) -> Scope:
        """Plan all commands and return the scope after the last."""
        scope = Scope(Values([], []))
        for place, step in enumerate(pipeline.commands):
            info = COMMANDS.get(step.name.lower())
            if info is None:
                known = (other.name for other in COMMANDS.values())
                self.fail(f"there is no command {step.name}{hint(step.name, known)}", step.name_span)
            if place == 0 and not info.is_source:
                self.fail(f"{step.name} needs records to work on; start with fetch logs |", step.name_span)
            if place > 0 and info.is_source:
                self.fail(
                    f"{step.name} can only be the first command of a query; use append to add more records",
                    step.name_span,
                )
            scope = info.handler(self, step, scope)
            self.seen.append(info.name)
        return scope

    def fail(self, problem: str, span: syntax.Span) -> NoReturn:
        """Reject the query."""
        self.session.fail(problem, span)

    def inner(self, pipeline: syntax.Pipeline) -> Scope:
        """Plan a query in brackets."""
        return Pipeline(self.session, self.tables, self._given_timeframe).run(pipeline)

    def expressions(self, scope: Scope, aggregates: Callable[[Apply], Expr] | None = None) -> Expressions:
        """A binder for expressions over a scope."""
        return Expressions(self.session, scope, self.inner, aggregates=aggregates)

    def split(self, step: Command) -> tuple[list[Argument], dict[str, Argument]]:
        """The positional and the named arguments of a command."""
        names = COMMANDS[step.name.lower()].parameters
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
            named[name] = argument
        return plain, named

    def constant(self, scope: Scope, argument: Argument, kinds: str, what: str) -> Any:
        """The value of an argument that must be a constant of one of these kinds."""
        bare = argument.value
        if isinstance(bare, Name) and "string" in kinds and bare.text not in scope.fields:
            return bare.text  # kind:inner, as well as kind:"inner"
        found = self.expressions(scope).bind(bare)
        if not isinstance(found, Constant) or found.type.kind not in kinds.split("|"):
            self.fail(f"{what} must be a constant {kinds.replace('|', ' or ')}", argument.span)
        return found.value

    def only(self, step: Command, plain: list[Argument], count: int = 1) -> list[Argument]:
        """The arguments, after checking that there are exactly `count`."""
        if len(plain) != count:
            what = "one argument" if count == 1 else f"{count} arguments"
            self.fail(f"{step.name} takes {what}, found {len(plain)}", step.span)
        return plain


def text_of(pipeline: Pipeline, argument: Argument) -> str:
    """The name of an unnamed column: the expression as written, on one line."""
    span = argument.value.span
    return " ".join(pipeline.session.text[span.start : span.end].split())


def items(arguments: Sequence[Argument]) -> list[Argument]:
    """The arguments, with groups flattened."""
    found: list[Argument] = []
    for argument in arguments:
        if isinstance(argument.value, Group) and argument.alias is None:
            found += items(argument.value.arguments)
        else:
            found.append(argument)
    return found


def some(pipeline: Pipeline, step: Command, found: list[Argument]) -> list[Argument]:
    """The arguments, after checking that there is at least one."""
    if not found:
        pipeline.fail(f"{step.name} needs at least one field", step.span)
    return found


def on(scope: Scope, node: Node) -> Scope:
    """The scope with another node."""
    return Scope(node, scope.fields, scope.scan, scope.hidden, scope.order)


def computed(scope: Scope, name: str, value: Expr) -> Scope:
    """The scope with a field added or replaced."""
    if isinstance(value, Ref | Constant):
        node, expression = scope.node, value
    else:
        column = Column(name, value.type)
        node, expression = Project(scope.node, {column: value}), Ref(column)
    return Scope(node, {**scope.fields, name: expression}, scope.scan, scope.hidden | {name}, scope.order)


def group_keys(pipeline: Pipeline, scope: Scope, named: dict[str, Argument]) -> dict[str, Expr]:
    """The keys of ``by:``, by name."""
    keys: dict[str, Expr] = {}
    if "by" not in named:
        return keys
    for argument in items([Argument(named["by"].value, named["by"].span)]):
        name = argument.alias.text if argument.alias else text_of(pipeline, argument)
        if argument.alias is None and isinstance(argument.value, Name):
            name = argument.value.text
        value = pipeline.expressions(scope).bind(argument.value)
        if value.type.kind == "map":
            pipeline.fail("records cannot be grouped by all attributes; name one of them", argument.span)
        keys[name] = value
    return keys
