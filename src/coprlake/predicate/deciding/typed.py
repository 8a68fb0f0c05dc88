"""Comparison of typed columns: numbers, booleans, times and dates.

Whole numbers, times and dates are integers of some unit. The other side of the comparison is an exact fraction of that
unit, rounded to the side that keeps the answer right: no value is converted, so none can overflow.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from coprlake.predicate.predicates import Operator, Value
from coprlake.predicate.values import float_of, microseconds_of, number_of, truth_of

Mask = npt.NDArray[np.bool_]
Relation: TypeAlias = Operator | Literal["=="]

_UNITS_A_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MICROSECONDS_A_DAY: Final = 86_400 * 10**6
_DECIMAL_RELATIONS: Final = {
    "==": pa.compute.equal,
    "<": pa.compute.less,
    "<=": pa.compute.less_equal,
    ">": pa.compute.greater,
    ">=": pa.compute.greater_equal,
}


def relates(column: pa.Array, relation: Relation, values: Sequence[Value]) -> Mask:
    """Whether the value of each row compares as asked with at least one of these values.

    Values that cannot be compared with this type of column are ignored, and a null never compares.
    """
    if pa.types.is_decimal(column.type):
        return _relates_decimals(column, relation, values)
    numbers = _numbers(column)
    sought = [number for value in values if (number := _comparable(column.type, value)) is not None]
    if numbers is None or not sought:
        return np.zeros(len(column), np.bool_)
    if numbers.dtype.kind == "f":
        found = _relates_floats(numbers, relation, [float_of(number) for number in sought])
    else:
        found = _relates_integers(numbers, relation, sought)
    return found & valid_rows(column) if column.null_count else found


def valid_rows(column: pa.Array) -> Mask:
    """Whether each row has a value."""
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _numbers(column: pa.Array) -> npt.NDArray[Any] | None:
    """The column as numbers of its unit, undefined where null; None for types without an order here."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        column = column.view(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.view(pa.int32())
    elif pa.types.is_floating(kind):
        column = column.cast(pa.float64())
    elif not pa.types.is_integer(kind):
        return None
    return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False))


def _comparable(kind: pa.DataType, value: Value) -> int | float | Fraction | None:
    """The value in the unit of the column; None if they cannot be compared."""
    if pa.types.is_boolean(kind):
        truth = truth_of(value)
        return None if truth is None else int(truth)
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return number_of(value)
    moment = microseconds_of(value)
    if moment is None:
        return None
    if pa.types.is_date32(kind):
        return Fraction(moment, _MICROSECONDS_A_DAY)
    unit = kind.unit if pa.types.is_timestamp(kind) else "ms"
    return Fraction(moment * _UNITS_A_SECOND[unit], 10**6)


def _relates_decimals(column: pa.Array, relation: Relation, values: Sequence[Value]) -> Mask:
    """Compare decimals exactly, as whole numbers of their last place: a float cannot hold what a decimal can.

    A float in a query means the decimal number that it is written as.
    """
    found = np.zeros(len(column), np.bool_)
    kind = column.type
    assert pa.types.is_decimal(kind), kind
    for value in values:
        number = number_of(value)
        if number is None or number != number:
            continue
        if not _is_finite(number):
            found |= np.full(len(column), relation in (("<", "<=") if number > 0 else (">", ">=")))
            continue
        exact = Fraction(_written(value, number)) if isinstance(number, float) else Fraction(number)
        found |= _relates_decimal(column, relation, exact * Fraction(10) ** kind.scale)
    return found & valid_rows(column) if column.null_count else found


def _written(value: Value, number: float) -> str:
    """The number as written in the query; with an exponent, which may be huge, the nearest float."""
    return value if isinstance(value, str) and "e" not in value.lower() else repr(number)


def _relates_decimal(column: pa.Array, relation: Relation, places: Fraction) -> Mask:
    if relation == "==" and places.denominator != 1:
        return np.zeros(len(column), np.bool_)
    kind = column.type
    assert pa.types.is_decimal(kind), kind
    bound = math.ceil(places) if relation in ("<", ">=") else math.floor(places)
    if abs(bound) >= 10**kind.precision:  # beyond every value
        return np.full(len(column), relation in (("<", "<=") if bound > 0 else (">", ">=")))
    scalar = pa.scalar(Decimal(f"{bound}E{-kind.scale}"), kind)
    answers = _DECIMAL_RELATIONS[relation](column, scalar)
    return np.asarray(answers.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


def _relates_floats(numbers: npt.NDArray[Any], relation: Relation, sought: list[float]) -> Mask:
    if relation == "==":
        return np.isin(numbers, sought)
    return _related(numbers, relation, np.float64(sought[0]))


def _related(numbers: npt.NDArray[Any], relation: Relation, bound: Any) -> Mask:
    if relation == "<":
        return np.asarray(numbers < bound)
    if relation == "<=":
        return np.asarray(numbers <= bound)
    return np.asarray(numbers > bound if relation == ">" else numbers >= bound)


def _is_finite(number: int | float | Fraction) -> bool:
    """`math.isfinite`, also for integers too large for a float."""
    return not isinstance(number, float) or math.isfinite(number)


def _relates_integers(numbers: npt.NDArray[Any], relation: Relation, sought: list[int | float | Fraction]) -> Mask:
    limits = np.iinfo(numbers.dtype)
    if relation == "==":
        whole = [math.floor(number) for number in sought if _is_finite(number) and number == math.floor(number)]
        fitting = [number for number in whole if limits.min <= number <= limits.max]
        return np.isin(numbers, np.array(fitting, numbers.dtype))
    (number,) = sought
    if number != number:  # only NaN
        return np.zeros(len(numbers), np.bool_)
    if number > limits.max:
        return np.full(len(numbers), relation in ("<", "<="))
    if number < limits.min:
        return np.full(len(numbers), relation in (">", ">="))
    # an integer is less than 2.5 if it is less than 3, and more if it is more than 2
    bound = math.ceil(number) if relation in ("<", ">=") else math.floor(number)
    return _related(numbers, relation, numbers.dtype.type(bound))
