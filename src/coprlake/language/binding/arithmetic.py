"""``+ - * / %``, the negative, and rounding: of numbers, times and durations."""

from typing import Any

from coprlake.language import syntax, times
from coprlake.language.binding.converting import a_kind, cast, convert
from coprlake.language.binding.session import QuerySession
from coprlake.language.functions.catalog import FUNCTIONS
from coprlake.language.functions.values import operators
from coprlake.language.plan import Apply, Constant, Expr
from coprlake.language.syntax import Span
from coprlake.language.times import Months
from coprlake.language.types import DOUBLE, DURATION, LONG, TIMESTAMP, Type


def arithmetic(session: QuerySession, operator: str, left: Expr, right: Expr, span: Span) -> Expr:
    """``+ - * / %``, by the table of types in the reference."""
    left, right = as_number(left), as_number(right)
    kinds = (left.type.kind, right.type.kind)
    if "null" in kinds:
        other = right if kinds[0] == "null" else left
        return Constant(None, other.type)
    if kinds[0] in ("long", "double") and kinds[1] in ("long", "double"):
        return _numbers(operator, left, right, LONG if kinds == ("long", "long") else DOUBLE)
    if kinds == ("timestamp", "duration") and operator in "+-":
        return _moved(session, left, right, 1 if operator == "+" else -1, span)
    if kinds == ("duration", "timestamp") and operator == "+":
        return _moved(session, right, left, 1, span)
    if kinds == ("timestamp", "timestamp") and operator == "-":
        return _scaled("*", _applied("-", left, right, DURATION), 1000)
    if "duration" in kinds and "timestamp" not in kinds:
        result = _durations(session, operator, left, right, span)
        if result is not None:
            return result
    advice = "; join texts by concat()" if "string" in kinds and operator == "+" else ""
    return session.fail(f"{operator} cannot be used with {a_kind(left.type)} and {a_kind(right.type)}{advice}", span)


def negated(session: QuerySession, operand: Expr, span: Span) -> Expr:
    """The negative of a number or duration."""
    operand = as_number(operand)
    if operand.type.kind == "null":
        return operand
    if not (operand.type.is_number or operand.type == DURATION):
        session.fail(f"- needs a number or duration, found {a_kind(operand.type)}", span)
    if isinstance(operand, Constant):
        value = operand.value
        return Constant(Months(-value.count) if isinstance(value, Months) else -value, operand.type)
    return Apply(operators.NEGATE, (operand,), operand.type)


def aligned(session: QuerySession, operand: Expr, node: syntax.Align) -> Expr:
    """A time rounded down to the unit of `node`."""
    problem = times.check_alignment(node.count, node.unit)
    if problem:
        session.fail(problem, node.span)
    if operand.type.kind == "null":
        return Constant(None, TIMESTAMP)
    if operand.type != TIMESTAMP:
        session.fail(f"@{node.unit} rounds a time, found {a_kind(operand.type)}", node.span)
    if isinstance(operand, Constant):
        return Constant(times.align(operand.value, node.count, node.unit), TIMESTAMP)
    step = times.fixed_step(node.count, node.unit)
    if step is None:
        months = Constant(times.MONTHS[node.unit], LONG)
        return Apply(FUNCTIONS["round to months"], (operand, months), TIMESTAMP)
    return _rounded(operand, *step)


def as_number(side: Expr) -> Expr:
    """An attribute as the number that it spells; anything else as it is."""
    return Apply(operators.FROM_LOOSE, (side,), DOUBLE) if side.type.is_loose else side


def _rounded(operand: Expr, step: int, origin: int) -> Expr:
    """A time rounded down to a multiple of the step, counted from the origin."""
    kind = operand.type
    shifted = operand if origin == 0 else _applied("-", operand, Constant(origin, kind), kind)
    slot = Apply(operators.FLOOR_DIVIDE, (shifted, Constant(step, LONG)), LONG)
    start = _applied("*", slot, Constant(step, LONG), kind)
    return start if origin == 0 else _applied("+", start, Constant(origin, kind), kind)


def _numbers(operator: str, left: Expr, right: Expr, kind: Type) -> Expr:
    first, second = convert(left, kind), convert(right, kind)
    assert first is not None
    assert second is not None
    return _applied(operator, first, second, kind)


def _applied(operator: str, left: Expr, right: Expr, kind: Type) -> Expr:
    if isinstance(left, Constant) and isinstance(right, Constant):
        folded = _folded(operator, left.value, right.value, kind)
        if folded is not None:
            return Constant(folded, kind)
    return Apply(operators.ARITHMETIC[operator], (left, right), kind)


def _moved(session: QuerySession, moment: Expr, duration: Expr, sign: int, span: Span) -> Expr:
    if isinstance(duration, Constant) and isinstance(moment, Constant) and moment.value is not None:
        try:
            moved = times.add(moment.value, duration.value, sign)
        except (ValueError, OverflowError):
            session.fail("the time is outside of the years 1 to 9999", span)
        return Constant(moved, TIMESTAMP)
    if isinstance(duration, Constant) and isinstance(duration.value, Months):
        months = Constant(sign * duration.value.count, LONG)
        return Apply(FUNCTIONS["add months"], (moment, months), TIMESTAMP)
    micros: Expr = Apply(operators.FLOOR_DIVIDE, (duration, Constant(1000, LONG)), LONG)
    if isinstance(duration, Constant):
        micros = Constant(duration.value // 1000, LONG)
    return Apply(operators.ARITHMETIC["+" if sign > 0 else "-"], (moment, micros), TIMESTAMP)


def _durations(session: QuerySession, operator: str, left: Expr, right: Expr, span: Span) -> Expr | None:
    for side in (left, right):
        if isinstance(side, Constant) and isinstance(side.value, Months):
            session.fail("months, quarters and years have no fixed length; add them to a time", span)
    if left.type == right.type == DURATION:
        if operator in "+-%":
            return _applied(operator, left, right, DURATION)
        if operator == "/":
            return _numbers("/", cast(left, LONG), cast(right, LONG), DOUBLE)
        return None
    if operator == "*":
        duration, factor = (left, right) if left.type == DURATION else (right, left)
        return _product(duration, factor, "*")
    if operator == "/" and left.type == DURATION:
        return _product(left, right, "/")
    return None


def _product(duration: Expr, factor: Expr, operator: str) -> Expr:
    if factor.type == LONG:
        return _applied(operator, duration, factor, DURATION)
    product = _numbers(operator, cast(duration, LONG), factor, DOUBLE)
    return Apply(FUNCTIONS["tolong"], (product,), DURATION)


def _scaled(operator: str, value: Expr, factor: int) -> Expr:
    return _applied(operator, value, Constant(factor, LONG), value.type)


def _folded(operator: str, left: Any, right: Any, kind: Type) -> Any:
    """The result for constants, where it is sure to be what an engine would give."""
    if left is None or right is None or isinstance(left, Months) or isinstance(right, Months):
        return None
    if kind == DOUBLE or operator not in "+-*":
        return None
    result = {"+": left + right, "-": left - right, "*": left * right}[operator]
    return result if -(2**63) <= result < 2**63 else None
