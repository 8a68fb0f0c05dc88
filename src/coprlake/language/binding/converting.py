"""Which values are taken for another type without being asked to, and how."""

from collections.abc import Sequence
from typing import Any

from coprlake.language.binding.session import QuerySession
from coprlake.language.functions.values import operators
from coprlake.language.plan import Apply, Constant, Expr
from coprlake.language.scope import missing
from coprlake.language.syntax import Span
from coprlake.language.types import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    common_type,
)


def convert(found: Expr, kind: Type) -> Expr | None:
    """The expression as another type; None if values are not converted to it implicitly."""
    have = found.type
    if have == kind or (have.is_text and kind == STRING):
        return found
    if have.kind == "null":
        return Constant(None, kind) if isinstance(found, Constant) else Apply(operators.CAST, (found,), kind)
    if have == LONG and kind == DOUBLE:
        return as_double(found)
    if have.is_loose and kind.kind in operators.FROM_TEXT:
        return Apply(operators.FROM_LOOSE, (found,), kind)
    if have.kind == kind.kind == "array" and have.element and have.element.kind in ("null", "long"):
        return cast(found, kind)
    if have.kind == kind.kind == "record" and dict(have.members).keys() <= dict(kind.members).keys():
        return _convert_record(found, kind)
    return None


def _convert_record(found: Expr, kind: Type) -> Expr | None:
    have = [name for name, _ in found.type.members]
    members: list[Expr] = []
    for name, member in kind.members:
        value = missing() if name not in have else member_at(found, have.index(name))
        converted = convert(value, member)
        if converted is None:
            return None
        members.append(converted)
    return Apply(operators.RECORD, tuple(members), kind)


def expect(session: QuerySession, found: Expr, kind: Type, span: Span, what: str) -> Expr:
    """The expression as a value of this type; the query fails if it cannot be one."""
    converted = convert(found, kind)
    if converted is None:
        advice = "; convert it by toString()" if kind == STRING else ""
        session.fail(f"{what}: expected {a_kind(kind)}, found {a_kind(found.type)}{advice}", span)
    return converted


def unify(session: QuerySession, found: Sequence[Expr], span: Span, what: str) -> list[Expr]:
    """The expressions as values of one type."""
    kind: Type | None = NULL
    for expression in found:
        kind = None if kind is None else common_type(kind, expression.type)
    if kind is None:
        kinds = " and ".join(dict.fromkeys(str(expression.type) for expression in found))
        session.fail(f"{what} have different types: {kinds}; convert them, as by toString()", span)
    return [expect(session, expression, kind, span, what) for expression in found]


def constant(value: Any) -> Constant:
    """A value of Python."""
    if isinstance(value, bool):
        return Constant(value, BOOLEAN)
    if isinstance(value, int):
        return Constant(value, LONG)
    if isinstance(value, float):
        return Constant(value, DOUBLE)
    return Constant(value, NULL if value is None else STRING)


def as_double(found: Expr) -> Expr:
    """A whole number as a floating one."""
    return Constant(float(found.value), DOUBLE) if isinstance(found, Constant) else cast(found, DOUBLE)


def cast(value: Expr, kind: Type) -> Expr:
    """The value as another type that the engines carry alike."""
    if isinstance(value, Constant) and kind in (LONG, DURATION, TIMESTAMP):
        return Constant(value.value, kind)
    return Apply(operators.CAST, (value,), kind)


def member_at(operand: Expr, number: int) -> Expr:
    """A member of a record by its place."""
    if isinstance(operand, Apply) and operand.function is operators.RECORD:
        part = operand.arguments[number]
        assert part is not None
        return part
    kind = operand.type.members[number][1]
    return Apply(operators.MEMBER, (operand, Constant(number, LONG)), kind)


def a_kind(kind: Type) -> str:
    """A type with its article, for messages."""
    return {"null": "null", "array": f"an {kind}", "ip": "an address"}.get(kind.kind, f"a {kind}")
