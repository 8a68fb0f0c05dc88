"""Calls of functions: which argument is for which parameter, whether it fits, and the type of the result."""

from collections.abc import Callable, Sequence

from coprlake.errors import UsageError
from coprlake.language import syntax
from coprlake.language.binding.converting import a_kind, as_double, constant, expect
from coprlake.language.binding.session import QuerySession
from coprlake.language.functions.catalog import FUNCTIONS
from coprlake.language.functions.registry import Function, Parameter, named_type
from coprlake.language.functions.values import operators
from coprlake.language.plan import Apply, Constant, Expr, Sort
from coprlake.language.scope import Scope
from coprlake.language.syntax import Span
from coprlake.language.times import Months
from coprlake.language.types import BOOLEAN, DOUBLE, LONG, STRING, TIMESTAMP
from coprlake.text.nearest_words import hint


def function_of(session: QuerySession, node: syntax.Call) -> Function:
    """The function that a call names."""
    function = FUNCTIONS.get(node.name.lower())
    if function is None or not function.group:
        known = (function.name for function in FUNCTIONS.values() if function.group)
        session.fail(f"there is no function {node.name}{hint(node.name, known)}", node.span)
    return function


def arguments_of(
    session: QuerySession, function: Function, node: syntax.Call, bind: Callable[[syntax.Value], Expr]
) -> list[Expr | None]:
    """The arguments in the order of the parameters; those of a variadic parameter are all in its place."""
    given: dict[str, list[Expr]] = {}
    at = 0
    for argument in node.arguments:
        parameter = _parameter(session, function, argument, at)
        at += argument.name is None and not parameter.is_variadic
        if parameter.name in given and not parameter.is_variadic:
            session.fail(f"{parameter.name} is given twice", argument.span)
        value = _fitting(session, function, parameter, bind(argument.value), argument.span)
        given.setdefault(parameter.name, []).append(value)
    result: list[Expr | None] = []
    for parameter in function.parameters:
        if parameter.name in given:
            result += given[parameter.name]
        elif not parameter.is_optional:
            session.fail(f"{function.name} needs {parameter.name}: {function.signature}", node.span)
        elif not parameter.is_variadic:
            default = parameter.default
            result.append(None if default is None else constant(default))
    return result


def _parameter(session: QuerySession, function: Function, argument: syntax.Argument, at: int) -> Parameter:
    """The parameter that an argument is for: the one that it names, or the one at its place."""
    parameters = function.parameters
    if argument.name is None:
        if at >= len(parameters):
            session.fail(f"{function.name} takes fewer arguments: {function.signature}", argument.span)
        return parameters[at]
    named = next((p for p in parameters if p.name.lower() == argument.name.lower()), None)
    if named is None:
        known = hint(argument.name, [p.name for p in parameters])
        session.fail(f"{function.name} has no parameter {argument.name}{known}", argument.span)
    return named


def _fitting(session: QuerySession, function: Function, parameter: Parameter, value: Expr, span: Span) -> Expr:
    """The argument as a type that the parameter takes."""
    if parameter.is_constant and not _is_constant(value):
        session.fail(f"{parameter.name} of {function.name} has to be a constant", span)
    if isinstance(value, Constant) and isinstance(value.value, Months) and function.name != "bin":
        session.fail("months, quarters and years have no fixed length; add them to a time", span)
    _check(session, function, parameter, value, span)
    kinds = [kind for name in parameter.kinds for kind in (("long", "double") if name == "number" else (name,))]
    if "any" in kinds or "T" in kinds or value.type.kind in kinds:
        return value
    if value.type.kind == "null":
        return expect(session, value, named_type(kinds[0]), span, parameter.name)
    if value.type == LONG and "double" in kinds:
        return as_double(value)
    if value.type.is_loose:
        for kind in (DOUBLE, LONG, BOOLEAN):
            if kind.kind in kinds:
                return Apply(operators.FROM_LOOSE, (value,), kind)
        if "timestamp" in kinds:
            return Apply(FUNCTIONS["totimestamp"], (value,), TIMESTAMP)
    wanted = " or ".join(parameter.kinds)
    return session.fail(f"{parameter.name} of {function.name} has to be {wanted}, found {a_kind(value.type)}", span)


def _check(session: QuerySession, function: Function, parameter: Parameter, value: Expr, span: Span) -> None:
    """Reject a constant that makes no sense."""
    is_null = isinstance(value, Constant) and value.value is None
    if is_null and parameter.is_constant and "any" not in parameter.kinds and parameter.default is not None:
        session.fail(f"{parameter.name} of {function.name} cannot be null", span)
    check = function.checks.get(parameter.name)
    if check is None:
        return
    parts = value.arguments if isinstance(value, Apply) and value.function is operators.LIST else (value,)
    for part in parts:
        if isinstance(part, Constant) and part.value is not None:
            try:
                check(part.value)
            except UsageError as error:
                session.fail(str(error), span)


def invoke(session: QuerySession, function: Function, arguments: Sequence[Expr | None], span: Span) -> Expr:
    """A function of these arguments."""
    kind = function.type_for(arguments)
    if kind is None:
        kinds = ", ".join(str(argument.type) for argument in arguments if argument is not None)
        session.fail(f"{function.name} cannot be used with {kinds}: {function.signature}", span)
    shared = [name for name in function.parameters if "T" in name.kinds]
    if shared and not callable(function.result):
        element = kind.element if function.result == "array<T>" and kind.element else kind
        arguments = [
            argument
            if argument is None or "T" not in parameter.kinds
            else expect(session, argument, element, span, f"{parameter.name} of {function.name}")
            for parameter, argument in zip(function.for_each(len(arguments)), arguments, strict=True)
        ]
    return Apply(function, tuple(arguments), kind)


def order_of(session: QuerySession, function: Function, scope: Scope, span: Span) -> list[Expr | None]:
    """What an aggregation sorts the records by: the direction of each key (a or d) as one text, then the keys."""
    order = scope.order
    if function.name != "collectArray":
        if not order:
            time = scope.find("timestamp")
            if time is None:
                session.fail(f"{function.name} needs an order; put a sort before summarize", span)
            order = (Sort(time),)
        elif len({key.descends for key in order}) > 1:
            session.fail(f"{function.name} needs keys that are sorted in the same direction", span)
    directions = "".join("d" if key.descends else "a" for key in order)
    return [Constant(directions, STRING), *(key.expression for key in order)]


def _is_constant(value: Expr) -> bool:
    if isinstance(value, Apply) and value.function is operators.LIST:
        return all(isinstance(argument, Constant) for argument in value.arguments)
    return isinstance(value, Constant)
