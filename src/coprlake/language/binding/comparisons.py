"""Comparisons: what can be compared with what, and as which type."""

from typing import Final

from coprlake.errors import QueryError
from coprlake.language import syntax, times
from coprlake.language.binding.converting import convert
from coprlake.language.binding.session import QuerySession
from coprlake.language.functions.catalog import FUNCTIONS
from coprlake.language.functions.values import operators
from coprlake.language.plan import Apply, Constant, Expr
from coprlake.language.types import BOOLEAN, DOUBLE, LONG, NULL, STRING, TIMESTAMP, common_type
from coprlake.predicate.values import spellings

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDERED: Final = frozenset({"long", "double", "string", "timestamp", "duration", "boolean", "ip"})


def compare(session: QuerySession, operator: str, left: Expr, right: Expr) -> Expr:
    """A comparison; null if a side is null; values that cannot be compared are not equal."""
    function = operators.COMPARISONS[operator]
    if NULL in (left.type, right.type):
        return Constant(None, BOOLEAN)
    if "map" in (left.type.kind, right.type.kind):
        raise QueryError("attributes cannot be compared as a whole; name one of them", session.text)
    if left.type.is_loose and right.type.is_loose and operator in operators.LOOSE_COMPARISONS:
        return Apply(operators.LOOSE_COMPARISONS[operator], (left, right), BOOLEAN)
    found = _compare_with_long(operator, left, right)
    if found is not None:
        return found
    pair = _comparable(operator, left, right)
    if pair is not None:
        return Apply(function, pair, BOOLEAN)
    answer = Constant({"==": False, "!=": True}.get(operator), BOOLEAN)
    return Apply(operators.INCOMPARABLE, (left, right, answer), BOOLEAN)


def as_time(session: QuerySession, side: Expr, other: Expr, node: syntax.Expression) -> Expr:
    """A constant text that is compared with a time is a time too."""
    if other.type != TIMESTAMP or not isinstance(side, Constant) or not isinstance(side.value, str):
        return side
    moment = times.parse_time(side.value)
    if moment is None:
        session.fail("this is no time; write it in ISO format, as 2026-01-31T12:00:00Z", node.span)
    return Constant(moment, TIMESTAMP)


def _comparable(operator: str, left: Expr, right: Expr) -> tuple[Expr, Expr] | None:
    if right.type.is_loose and not left.type.is_loose:
        swapped = _comparable(operator, right, left)
        return None if swapped is None else (swapped[1], swapped[0])
    if left.type.is_loose and not right.type.is_text:
        return _compare_loose(operator, left, right)
    if left.type.kind == "ip" or right.type.kind == "ip":
        return _compare_ips(left, right)
    kind = common_type(left.type, right.type)
    if kind is None or (operator not in ("==", "!=") and kind.kind not in _ORDERED):
        return None
    first, second = convert(left, kind), convert(right, kind)
    return None if first is None or second is None else (first, second)


def _compare_with_long(operator: str, left: Expr, right: Expr) -> Expr | None:
    """An attribute is a text: equal to 404 if it is ``404`` or ``404.0``, more than 404 by the number it spells."""
    if right.type.is_loose and left.type == LONG:
        return _compare_with_long(_FLIPPED.get(operator, operator), right, left)
    if not left.type.is_loose or right.type != LONG:
        return None
    if isinstance(right, Constant) and right.value is not None and operator in ("==", "!="):
        texts = (Constant(text, STRING) for text in spellings(right.value))
        equal = Apply(FUNCTIONS["in"], (left, *texts), BOOLEAN)  # which prunes
        return equal if operator == "==" else Apply(operators.NOT, (equal,), BOOLEAN)
    return Apply(operators.NUMBER_COMPARISONS[operator], (left, right), BOOLEAN)


def _compare_loose(operator: str, left: Expr, right: Expr) -> tuple[Expr, Expr] | None:
    if isinstance(right, Constant) and operator in ("==", "!=") and right.type == BOOLEAN:
        return left, Constant(str(right.value).lower(), STRING)
    if right.type.is_number:
        number = convert(right, DOUBLE)
        assert number is not None
        return Apply(operators.FROM_LOOSE, (left,), DOUBLE), number
    if right.type == BOOLEAN:
        return Apply(operators.FROM_LOOSE, (left,), BOOLEAN), right
    if right.type == TIMESTAMP:
        return Apply(FUNCTIONS["totimestamp"], (left,), TIMESTAMP), right
    if right.type.kind == "ip":
        return _compare_ips(left, right)
    return None


def _compare_ips(left: Expr, right: Expr) -> tuple[Expr, Expr] | None:
    sides: list[Expr] = []
    for side in (left, right):
        if side.type.kind != "ip" and not side.type.is_text:
            return None
        sides.append(Apply(FUNCTIONS["ip key"], (side,), STRING))
    return sides[0], sides[1]
