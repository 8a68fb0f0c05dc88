"""Numbers. A function without a finite result, such as the root of -1, returns null."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from coprlake.errors import UsageError
from coprlake.language.functions.array_functions import array_function, by_distinct, call_together
from coprlake.language.functions.registry import function
from coprlake.language.functions.text.text_matching import constant_at
from coprlake.language.functions.values.conversion import kind_at
from coprlake.language.plan import Apply
from coprlake.language.sql.dialect import Dialect
from coprlake.language.types import DOUBLE, LONG, Type

GROUP: Final = "numbers"
_LEAST: Final = -(2**63)
_WHOLE_ABOVE: Final = float(2**52)
_HUGE: Final = 1e300
_MOST_DECIMALS: Final = 18
_HEX = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,16})")

Sql = Sequence[exp.Expression]


def _same_type(types: Sequence[Type | None]) -> Type | None:
    return DOUBLE if types[0] == DOUBLE else LONG


def _finite(values: pa.Array) -> pa.Array:
    """Replace values that are not finite by null, and -0.0 by 0.0."""
    return pc.if_else(pc.is_finite(values), pc.add(values, 0.0), pa.scalar(None, pa.float64()))


@function(
    "abs(value: number) -> number",
    "The absolute value.",
    group=GROUP,
    example="data record(a = -3, b = 2.5) | fields x = abs(a), y = abs(b)",
    gives=[{"x": 3, "y": 2.5}],
    result=_same_type,
)
def _abs(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    if node.type == DOUBLE:
        return d.call("abs", args[0])
    least = d.equal(args[0], d.long(_LEAST))
    return d.case((least, d.null(LONG)), default=d.call("abs", args[0].copy()))


def whole(d: Dialect, name: str, value: exp.Expression) -> exp.Expression:
    """`floor` or `ceil` of a double as a double, never -0.0; Spark's own return longs."""
    has_fraction = d.binary(exp.LT, d.call("abs", value), d.double(_WHOLE_ABOVE))
    rounded = d.plus(d.cast(d.call(name, value.copy()), DOUBLE), d.double(0.0))
    return d.case((has_fraction, rounded), default=value.copy())


def _whole(name: str) -> "Callable[[Dialect, Apply, Sql], exp.Expression]":
    return lambda d, node, args: args[0] if node.type == LONG else whole(d, name, args[0])


function(
    "ceil(value: number) -> number",
    "The number rounded up to an integer, of the same type.",
    group=GROUP,
    example="data record(a = 2.1, b = -2.1, c = 7) | fields x = ceil(a), y = ceil(b), z = ceil(c)",
    gives=[{"x": 3.0, "y": -2.0, "z": 7}],
    result=_same_type,
)(_whole("ceil"))
function(
    "floor(value: number) -> number",
    "The number rounded down to an integer, of the same type.",
    group=GROUP,
    example="data record(a = 2.9, b = -2.1, c = 7) | fields x = floor(a), y = floor(b), z = floor(c)",
    gives=[{"x": 2.0, "y": -3.0, "z": 7}],
    result=_same_type,
)(_whole("floor"))


def _check_decimals(decimals: int) -> None:
    if abs(decimals) > _MOST_DECIMALS:
        raise UsageError(f"decimals must be from -{_MOST_DECIMALS} to {_MOST_DECIMALS}, found {decimals}")


@function(
    "round(value: number, decimals: const long = 0) -> number",
    "The number rounded to `decimals` digits after the decimal point, or before it if "
    "negative. Halves are rounded away from zero.",
    group=GROUP,
    example="data record(a = 2.5, b = -2.5, c = 1234) | fields x = round(a), y = round(b), z = round(c, decimals: -2)",
    gives=[{"x": 3.0, "y": -3.0, "z": 1200}],
    result=_same_type,
    checks={"decimals": _check_decimals},
)
def _round(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    decimals = constant_at(node, 1)
    assert isinstance(decimals, int)
    if node.type == DOUBLE:
        return d.apply(array_function(rounded_doubles, (pa.float64(),), pa.float64(), decimals=decimals), args[0])
    if decimals >= 0:
        return args[0]
    return d.apply(array_function(rounded_longs, (pa.int64(),), pa.int64(), digits=-decimals), args[0])


def rounded_doubles(values: pa.Array, decimals: int = 0) -> pa.Array:
    """Doubles rounded to a number of decimals, halves away from zero."""
    has_digits = pc.less(pc.abs(values), _WHOLE_ABOVE if decimals >= 0 else _HUGE)  # Arrow rejects others
    rounded = pc.round(pc.if_else(has_digits, values, 0.0), decimals, round_mode="half_towards_infinity")
    return pc.add(pc.if_else(has_digits, rounded, values), 0.0)


def rounded_longs(values: pa.Array, digits: int = 1) -> pa.Array:
    """Longs rounded to a power of ten, halves away from zero; null if the result does not fit."""
    step = 10**digits
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    size = np.where(numbers < 0, -numbers.astype(np.uint64), numbers.astype(np.uint64))
    wanted = (size + np.uint64(step // 2)) // np.uint64(step) * np.uint64(step)
    fits = wanted < np.uint64(2**63)
    rounded = np.where(fits, wanted, np.uint64(0)).astype(np.int64)
    mask = values.is_null().to_numpy(zero_copy_only=False) | ~fits
    return pa.array(np.where(numbers < 0, -rounded, rounded), mask=mask)


# Functions of one or two doubles: those of the engines differ in the last digit, so we use Arrow's or NumPy's


def computed(values: pa.Array, name: str = "exp") -> pa.Array:
    """Apply an Arrow function; null where the result is not finite."""
    return _finite(pc.call_function(name, [values]))


def computed_pairs(lefts: pa.Array, rights: pa.Array, name: str = "power") -> pa.Array:
    """Apply an Arrow function of two arguments; null where the result is not finite."""
    return _finite(pc.call_function(name, [lefts, rights]))


def cube_roots(values: pa.Array) -> pa.Array:
    """The cube root of each value. Whole roots are exact, which those of the C library are not."""
    numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False)
    roots = np.cbrt(numbers)
    whole = np.rint(roots)
    with np.errstate(over="ignore", invalid="ignore"):
        roots = np.where(whole * whole * whole == numbers, whole, roots)
    return _finite(pa.array(roots, mask=values.is_null().to_numpy(zero_copy_only=False)))


def _arrow(name: str, arrow: str, doc: str, example: str, gives: Any) -> None:
    def sql(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
        return d.apply(array_function(computed, (pa.float64(),), pa.float64(), name=arrow), args[0])

    _shown = f"data record(a = {example}) | fields x = {name}(a)"
    function(f"{name}(value: double) -> double", doc, group=GROUP, example=_shown, gives=[{"x": gives}])(sql)


_arrow("sqrt", "sqrt", "The square root; null for a negative number.", "6.25", 2.5)
_arrow("exp", "exp", "e raised to the power of the number.", "0", 1.0)
_arrow("log", "ln", "The natural logarithm; null for 0 and less.", "1", 0.0)
_arrow("log10", "log10", "The logarithm to base 10; null for 0 and less.", "1000", 3.0)
_arrow("log1p", "log1p", "The natural logarithm of the number plus 1, accurate for small numbers.", "0", 0.0)
_arrow("sin", "sin", "The sine of an angle in radians.", "0", 0.0)
_arrow("cos", "cos", "The cosine of an angle in radians.", "0", 1.0)
_arrow("tan", "tan", "The tangent of an angle in radians.", "0", 0.0)
_arrow("asin", "asin", "The arc sine, in radians; null outside -1 to 1.", "0", 0.0)
_arrow("acos", "acos", "The arc cosine, in radians; null outside -1 to 1.", "1", 0.0)
_arrow("atan", "atan", "The arc tangent, in radians.", "0", 0.0)


@function(
    "cbrt(value: double) -> double",
    "The cube root.",
    group=GROUP,
    example="data record(a = -27) | fields x = cbrt(a)",
    gives=[{"x": -3.0}],
)
def _cbrt(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.apply(array_function(cube_roots, (pa.float64(),), pa.float64()), args[0])


def _arrow_pair(name: str) -> "Callable[[Dialect, Apply, Sql], exp.Expression]":
    def sql(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
        return call_together(d, computed_pairs, (pa.float64(), pa.float64()), pa.float64(), *args, name=name)

    return sql


function(
    "power(base: double, exponent: double) -> double",
    "The base raised to the exponent.",
    group=GROUP,
    example="data record(a = 2) | fields x = power(a, 10), y = power(a, -1)",
    gives=[{"x": 1024.0, "y": 0.5}],
)(_arrow_pair("power"))
function(
    "atan2(y: double, x: double) -> double",
    "The angle of the point (x, y), in radians. The first argument is y.",
    group=GROUP,
    example="data record(a = 0) | fields x = atan2(a, 1)",
    gives=[{"x": 0.0}],
)(_arrow_pair("atan2"))


def _sign(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    zero = d.double(0.0) if kind_at(node, 0) == DOUBLE else d.long(0)
    below, above = d.binary(exp.LT, args[0], zero), d.binary(exp.GT, args[0].copy(), zero.copy())
    none = d.is_null(args[0].copy())
    return d.case((none, d.null(LONG)), (below, d.long(-1)), (above, d.long(1)), default=d.long(0))


for _name, _more in (("signum", ""), ("sign", " The same as `signum`.")):
    function(
        f"{_name}(value: number) -> long",
        f"-1 for a negative number, 0 for 0, 1 for a positive one.{_more}",
        group=GROUP,
        example=f"data record(a = -2.5), record(a = 0) | fields x = {_name}(a)",
        gives=[{"x": -1}, {"x": 0}],
    )(_sign)


def _factor(factor: float) -> "Callable[[Dialect, Apply, Sql], exp.Expression]":
    return lambda d, node, args: d.times(args[0], d.double(factor))


function(
    "degreeToRadian(value: double) -> double",
    "Converts degrees to radians.",
    group=GROUP,
    example="data record(a = 180) | fields x = degreeToRadian(a) == pi()",
    gives=[{"x": True}],
)(_factor(math.pi / 180))
function(
    "radianToDegree(value: double) -> double",
    "Converts radians to degrees.",
    group=GROUP,
    example="data record(a = 0.0) | fields x = radianToDegree(pi()), y = radianToDegree(a)",
    gives=[{"x": 180.0, "y": 0.0}],
)(_factor(180 / math.pi))
function(
    "pi() -> double",
    "The number pi.",
    group=GROUP,
    example="data record() | fields x = pi()",
    gives=[{"x": math.pi}],
)(lambda d, node, args: d.double(math.pi))
function(
    "e() -> double",
    "Euler's number, the base of the natural logarithm.",
    group=GROUP,
    example="data record() | fields x = e()",
    gives=[{"x": math.e}],
)(lambda d, node, args: d.double(math.e))


# Hexadecimal digits


@function(
    "hexStringToNumber(text: string) -> long",
    "The integer of up to 16 hexadecimal digits, with or without `0x`. All 64 bits count, so "
    "`ffffffffffffffff` is -1. Otherwise null.",
    group=GROUP,
    example='data record(a = "ff", b = "0x1F", c = "xyz") | fields x = hexStringToNumber(a), y = hexStringToNumber(b), '
    "z = hexStringToNumber(c)",
    gives=[{"x": 255, "y": 31, "z": None}],
)
def _hex_to_number(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.apply(array_function(hex_numbers, (pa.string(),), pa.int64()), args[0])


def hex_numbers(texts: pa.Array) -> pa.Array:
    """The numbers that hexadecimal digits spell; null if not valid."""
    return by_distinct(texts, pa.int64(), _hex_number)


def _hex_number(text: str) -> int | None:
    found = _HEX.fullmatch(text)
    number = int(found[1], 16) if found else None
    return number if number is None or number < 2**63 else number - 2**64


@function(
    "numberToHexString(value: long) -> string",
    "The number in lower-case hexadecimal digits; a negative number as its 64 bits.",
    group=GROUP,
    example="data record(a = 255, b = -1) | fields x = numberToHexString(a), y = numberToHexString(b)",
    gives=[{"x": "ff", "y": "ffffffffffffffff"}],
)
def _number_to_hex(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.call("lower", d.call("hex", args[0]))
