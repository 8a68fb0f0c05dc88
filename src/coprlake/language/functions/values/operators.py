"""Operators, and functions that the compiler inserts into a plan."""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from coprlake.language.functions.registry import Function, internal
from coprlake.language.plan import Apply
from coprlake.language.sql.dialect import Dialect, simple_type
from coprlake.language.types import BOOLEAN, DOUBLE, LONG, Type, member_names
from coprlake.predicate.values import NUMBER

FROM_TEXT: Final = frozenset({"string", "long", "double", "boolean"})
"""The kinds that a loose string can be read as."""

_WHOLE: Final = r"\A[+-]?[0-9]{1,19}\z"
_COMPARISONS: Final = {"==": exp.EQ, "!=": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE}

Sql = Sequence[exp.Expression]


def from_text(d: Dialect, text: exp.Expression, kind: Type) -> exp.Expression:
    """Read text as a number or boolean, or null. Engines only parse what both parse alike."""
    if kind.kind == "double":
        is_number = d.matches(text, rf"\A(?:{NUMBER})\z")
        return d.case((is_number, d.try_cast(text.copy(), DOUBLE)), default=d.null(DOUBLE))
    if kind.kind == "long":
        return d.case((d.matches(text, _WHOLE), d.try_cast(text.copy(), LONG)), default=d.null(LONG))
    if kind.kind == "boolean":
        is_true, is_false = (
            d.matches(text.copy(), rf"\A(?:{word})\z") for word in ("[tT][rR][uU][eE]", "[fF][aA][lL][sS][eE]")
        )
        return d.case((is_true, d.true()), (is_false, d.false()), default=d.null(BOOLEAN))
    return text


def _field(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.call("coalesce", args[0], from_text(d, args[1], node.type))


def _from_text(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return from_text(d, args[0], node.type)


def _cast(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    have = node.arguments[0]
    if have is not None and have.type.kind == "null":  # represented as a string, which Spark cannot cast to an array
        return d.null(node.type)
    return d.cast(args[0], node.type)


def _comparison(operator: str) -> Function:
    kind = _COMPARISONS[operator]
    return internal(operator, lambda d, node, args: d.binary(kind, args[0], args[1]))


def _loose_comparison(operator: str) -> Function:
    """Compare two loose strings: as numbers if both are, as text if neither is, otherwise null."""
    kind = _COMPARISONS[operator]

    def sql(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
        numbers = [from_text(d, side.copy(), DOUBLE) for side in args]
        both = d.both(*(d.no(d.is_null(number.copy())) for number in numbers))
        neither = d.both(*(d.is_null(number.copy()) for number in numbers))
        return d.case(
            (both, d.binary(kind, *numbers)), (neither, d.binary(kind, args[0], args[1])), default=d.null(BOOLEAN)
        )

    return internal(operator, sql)


def _number_comparison(operator: str) -> Function:
    """Compare a loose string with a long by the number that it spells: exactly, if that is a long too."""
    kind = _COMPARISONS[operator]

    def sql(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
        exact = d.binary(kind, from_text(d, args[0], LONG), args[1])
        nearest = d.binary(kind, from_text(d, args[0].copy(), DOUBLE), d.cast(args[1].copy(), DOUBLE))
        return d.call("coalesce", exact, nearest)

    return internal(operator, sql)


def _incomparable(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    unknown = d.either(d.is_null(args[0]), d.is_null(args[1]))
    return d.case((unknown, d.null(BOOLEAN)), default=args[2])


def _arithmetic(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    left, right = args
    sign = node.function.name
    if sign in "+-*":
        return d.binary({"+": exp.Add, "-": exp.Sub, "*": exp.Mul}[sign], left, right)
    zero = d.equal(right.copy(), d.double(0.0) if node.type == DOUBLE else d.long(0))
    if sign == "%":
        result = d.call("mod", left, right)
    else:
        result = d.binary(exp.Div, left, right) if node.type == DOUBLE else d.quotient(left, right)
    return d.case((zero, d.null(node.type)), default=result)


def _xor(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    result = args[0]
    for other in args[1:]:
        result = d.binary(exp.NEQ, result, other)
    return result


def _in(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return exp.Paren(this=exp.In(this=args[0], expressions=list(args[1:])))


def _record(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.pack(member_names(node.type), args)


def _list(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    assert node.type.element
    return d.list_of(args, node.type.element)


def _member(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    """A member of a record; the second argument is its position."""
    assert node.arguments[0] is not None
    number = int(getattr(node.arguments[1], "value"))  # noqa: B009
    return d.member(args[0], member_names(node.arguments[0].type)[number])


def _element(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    """An element of an array by index, from 0; a negative index counts from the end."""
    index = args[1]
    known = getattr(node.arguments[1], "value", 0)
    if isinstance(known, int) and abs(known) >= 2**31 - 1:
        return d.null(node.type)
    at = d.case(
        (d.binary(exp.GT, index, d.long(2**31 - 2)), exp.Null()),
        (d.binary(exp.LT, index.copy(), d.long(-(2**31))), exp.Null()),
        (d.binary(exp.LT, index.copy(), d.long(0)), index.copy()),
        default=d.plus(index.copy(), d.long(1)),
    )
    return d.element(args[0], exp.Cast(this=at, to=simple_type("INT")) if d.is_spark else at)


EQUAL: Final = _comparison("==")
UNEQUAL: Final = _comparison("!=")
COMPARISONS: Final = {"==": EQUAL, "!=": UNEQUAL, **{sign: _comparison(sign) for sign in ("<", "<=", ">", ">=")}}
LOOSE_COMPARISONS: Final = {sign: _loose_comparison(sign) for sign in ("<", "<=", ">", ">=")}
NUMBER_COMPARISONS: Final = {sign: _number_comparison(sign) for sign in _COMPARISONS}
ARITHMETIC: Final = {sign: internal(sign, _arithmetic) for sign in "+-*/%"}
AND: Final = internal("and", lambda d, node, args: d.both(*args))
OR: Final = internal("or", lambda d, node, args: d.either(*args))
XOR: Final = internal("xor", _xor)
NOT: Final = internal("not", lambda d, node, args: d.no(args[0]))
NEGATE: Final = internal("negate", lambda d, node, args: exp.Paren(this=exp.Neg(this=args[0])))
IS_TRUE: Final = internal("is true", lambda d, node, args: d.is_true(args[0]))
INCOMPARABLE: Final = internal("incomparable", _incomparable)
FIELD: Final = internal("field", _field)
FROM_LOOSE: Final = internal("from text", _from_text)
CAST: Final = internal("cast", _cast)
IN: Final = internal("one of", _in)
RECORD: Final = internal("record of", _record)
LIST: Final = internal("list of", _list)
MEMBER: Final = internal("member", _member)
ELEMENT: Final = internal("element", _element)
ENTRY: Final = internal("entry", lambda d, node, args: d.entry(args[0], args[1]))
FLOOR_DIVIDE: Final = internal("floor divide", lambda d, node, args: d.floor_divide(args[0], args[1]))
