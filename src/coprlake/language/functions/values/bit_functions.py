"""Bitwise functions of 64-bit integers."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from coprlake.language.functions.array_functions import array_function, call_together
from coprlake.language.functions.registry import function
from coprlake.language.functions.text.text_matching import constant_at
from coprlake.language.plan import Apply
from coprlake.language.sql.dialect import Dialect

GROUP: Final = "numbers"
_PAIR: Final = (pa.int64(), pa.int64())

Sql = Sequence[exp.Expression]


def _operator(kind: type[exp.Expression]) -> "Callable[[Dialect, Apply, Sql], exp.Expression]":
    return lambda d, node, args: d.binary(kind, args[0], args[1])


for _name, _doc, _kind, _gives in (
    ("And", "The bits set in both numbers.", exp.BitwiseAnd, 8),
    ("Or", "The bits set in either number.", exp.BitwiseOr, 14),
    ("Xor", "The bits set in exactly one of the numbers.", exp.BitwiseXor, 6),
):
    function(
        f"bitwise{_name}(value: long, other: long) -> long",
        _doc,
        group=GROUP,
        example=f"data record(a = 12, b = 10) | fields x = bitwise{_name}(a, b)",
        gives=[{"x": _gives}],
    )(_operator(_kind))


@function(
    "bitwiseNot(value: long) -> long",
    "All bits inverted.",
    group=GROUP,
    example="data record(a = 12) | fields x = bitwiseNot(a)",
    gives=[{"x": -13}],
)
def _not(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.minus(d.long(-1), args[0])


@function(
    "bitwiseCountOnes(value: long) -> long",
    "The number of bits set.",
    group=GROUP,
    example="data record(a = 12, b = -1) | fields x = bitwiseCountOnes(a), y = bitwiseCountOnes(b)",
    gives=[{"x": 2, "y": 64}],
)
def _count(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.apply(array_function(counted_bits, (pa.int64(),), pa.int64()), args[0])


def counted_bits(values: pa.Array) -> pa.Array:
    """The number of bits set in each value."""
    numbers, mask = _numbers(values)
    return pa.array(np.bitwise_count(numbers.view(np.uint64)).astype(np.int64), mask=mask)


@function(
    "bitwiseShiftLeft(value: long, count: long) -> long",
    "The bits shifted left; bits beyond the 64th are lost. Null for a negative count.",
    group=GROUP,
    example="data record(a = 5) | fields x = bitwiseShiftLeft(a, 2)",
    gives=[{"x": 20}],
)
def _shift_left(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return call_together(d, shifted_left, _PAIR, pa.int64(), *args)


@function(
    "bitwiseShiftRight(value: long, count: long, ignoreSign: const boolean = false) -> long",
    "The bits shifted right. The sign bit is repeated, or zeros are shifted in if the sign is "
    "ignored. Null for a negative count.",
    group=GROUP,
    example="data record(a = 20, b = -8) | fields x = bitwiseShiftRight(a, 2), y = bitwiseShiftRight(b, 1), "
    "z = bitwiseShiftRight(b, 62, ignoreSign: true)",
    gives=[{"x": 5, "y": -4, "z": 3}],
)
def _shift_right(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    is_signed = constant_at(node, 2) is not True
    return call_together(d, shifted_right, _PAIR, pa.int64(), *args[:2], is_signed=is_signed)


def _numbers(values: pa.Array) -> "tuple[np.ndarray, np.ndarray]":
    return (
        np.ascontiguousarray(values.fill_null(0).to_numpy(zero_copy_only=False), np.int64),
        values.is_null().to_numpy(zero_copy_only=False),
    )


def shifted_left(values: pa.Array, counts: pa.Array) -> pa.Array:
    """Each value shifted left."""
    numbers, mask = _numbers(values)
    moves, no_moves = _numbers(counts)
    moved = numbers.view(np.uint64) << np.clip(moves, 0, 63).astype(np.uint64)
    kept = np.where(moves < 64, moved, np.uint64(0)).view(np.int64)
    return pa.array(kept, mask=mask | no_moves | (moves < 0))


def shifted_right(values: pa.Array, counts: pa.Array, is_signed: bool = True) -> pa.Array:
    """Each value shifted right."""
    numbers, mask = _numbers(values)
    moves, no_moves = _numbers(counts)
    if is_signed:
        moved = numbers >> np.clip(moves, 0, 63)
    else:
        unsigned = numbers.view(np.uint64) >> np.clip(moves, 0, 63).astype(np.uint64)
        moved = np.where(moves < 64, unsigned, np.uint64(0)).view(np.int64)
    return pa.array(moved, mask=mask | no_moves | (moves < 0))
