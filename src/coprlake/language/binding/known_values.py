"""Values that are known before the query runs: literals, durations and ``$variables``."""

from datetime import datetime
from typing import Any

from coprlake.language import syntax, times
from coprlake.language.binding.converting import constant, unify
from coprlake.language.binding.session import QuerySession
from coprlake.language.functions.values import operators
from coprlake.language.plan import Apply, Constant, Expr
from coprlake.language.times import Months
from coprlake.language.types import DURATION, NULL, TIMESTAMP, array
from coprlake.text.nearest_words import hint


def literal(session: QuerySession, node: syntax.Literal) -> Constant:
    """A text, number, truth value or null."""
    value = node.value
    if isinstance(value, int) and not isinstance(value, bool) and value > 2**63 - 1:
        session.fail("the number does not fit into 64 bits", node.span)
    return constant(value)


def duration(session: QuerySession, node: syntax.Duration) -> Constant:
    """A length of time."""
    length = times.length(node.count, node.unit)
    if not isinstance(length, Months) and length >= 2**63:
        session.fail("the duration is too long: at most 292 years", node.span)
    return Constant(length, DURATION)


def variable(session: QuerySession, node: syntax.Variable) -> Expr:
    """The value that came with the query; a list becomes an array."""
    if node.name not in session.variables:
        known = hint(node.name, session.variables)
        session.fail(f"the variable ${node.name} was not given a value{known}", node.span)
    value = session.variables[node.name]
    if isinstance(value, list | tuple):
        return listed(session, [_given(session, part, node) for part in value], node.span)
    return _given(session, value, node)


def listed(session: QuerySession, elements: list[Expr], span: syntax.Span) -> Expr:
    """An array of these elements."""
    parts = unify(session, elements, span, "the elements")
    return Apply(operators.LIST, tuple(parts), array(parts[0].type if parts else NULL))


def _given(session: QuerySession, value: Any, node: syntax.Variable) -> Expr:
    """The value of a variable, or an element of it."""
    if isinstance(value, datetime):
        return Constant(times.as_microseconds(value), TIMESTAMP)
    if value is not None and not isinstance(value, str | int | float | bool):
        kind = type(value).__name__
        session.fail(f"the variable ${node.name} is a {kind}; give a text, number or time", node.span)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        session.fail(f"the variable ${node.name} does not fit into 64 bits", node.span)
    if isinstance(value, str) and any("\ud800" <= sign <= "\udfff" for sign in value):
        session.fail(f"the variable ${node.name} is no valid text: it has half of a character", node.span)
    return constant(value)
