"""One matcher at one place: the kernel that knows all kinds of leaves."""

from typing import NamedTuple

from coprlake.dpl.compiling import opcodes as op
from coprlake.dpl.compiling.program import Code
from coprlake.dpl.running.characters import chars_at, literal_at, rest_at
from coprlake.dpl.running.json_spans import json_at, quoted_at
from coprlake.dpl.running.numerals import (
    COST,
    VALUE,
    F64Array,
    boolean_at,
    card_at,
    hex_at,
    integer_at,
    ipv4_at,
    ipv6_at,
    real_at,
    uuid_at,
)
from coprlake.dpl.running.timestamp_fields import moment_at
from coprlake.kernel import I64Array, U8Array, cold_kernel, i64, kernel
from coprlake.text.byte_classes import CASE_BIT


class Work(NamedTuple):
    """What a machine needs besides its program: nothing in it lasts longer than one text."""

    stack: I64Array
    out: I64Array  # the value of the last leaf, and what it cost
    reals: F64Array  # the same memory
    bounds: F64Array  # the code, likewise: bounds of reals are kept as bits


@kernel
def _real_at(code: Code, pc: int, data: U8Array, at: int, end: int, work: Work) -> int:
    stop = real_at(data, at, end, i64(code.rows[pc, op.C]), work.out, work.reals)
    value = work.reals[VALUE]
    if stop < 0 or not work.bounds[pc * op.WIDTH + op.A] <= value <= work.bounds[pc * op.WIDTH + op.B]:
        return -1
    return stop


@kernel
def _enum_at(code: Code, pc: int, data: U8Array, at: int, end: int, out: I64Array) -> int:
    first, count, fold = i64(code.rows[pc, op.A]), i64(code.rows[pc, op.B]), i64(code.rows[pc, op.C])
    for row in range(first, first + count):
        text, size = i64(code.rows[row, op.A]), i64(code.rows[row, op.B])
        if at + size > end:
            continue
        same = 0
        while same < size:
            byte = i64(data[at + same])
            if fold != 0 and 65 <= byte <= 90:
                byte |= CASE_BIT
            if byte != code.pool[text + same]:
                break
            same += 1
        if same == size:
            out[VALUE] = code.rows[row, op.C]
            return at + size
    return -1


@kernel
def _anchor_at(place: int, start: int, at: int, end: int) -> int:
    holds = at == start if place == 0 else (at == end if place == 2 else start < at < end)
    return at if holds else -1


@cold_kernel
def leaf_at(code: Code, pc: int, data: U8Array, start: int, at: int, end: int, work: Work) -> int:
    """Where the match of the leaf at row `pc` that begins at `at` ends, or -1; the text is ``data[start:end]``.

    Leaves its value in ``work.out``.
    """
    rows, out = code.rows, work.out
    kind = rows[pc, op.KIND]
    if kind == op.LITERAL:
        return literal_at(code, pc, data, at, end)
    if kind == op.CHARS:
        return chars_at(code, pc, data, at, end)
    if kind == op.REST:
        return rest_at(data, at, end, i64(rows[pc, op.A]), i64(rows[pc, op.B]), i64(rows[pc, op.C]))
    if kind == op.INTEGER:
        return integer_at(data, at, end, i64(rows[pc, op.A]), i64(rows[pc, op.B]), out)
    if kind == op.ADDRESS:
        stop = ipv4_at(data, at, end) if rows[pc, op.A] != 0 else -1
        return ipv6_at(data, at, end) if stop < 0 and rows[pc, op.B] != 0 else stop
    if kind == op.MOMENT:
        return moment_at(code, pc, data, at, end, out)
    if kind == op.ANCHOR:
        return _anchor_at(i64(rows[pc, op.A]), start, at, end)
    if kind == op.QUOTED:
        return quoted_at(data, at, end, i64(rows[pc, op.A]), i64(rows[pc, op.B]), i64(rows[pc, op.C]), out)
    if kind == op.JSON:
        return json_at(data, at, end, i64(rows[pc, op.A]), i64(rows[pc, op.B]), out)
    if kind == op.REAL:
        return _real_at(code, pc, data, at, end, work)
    if kind == op.HEX:
        return hex_at(data, at, end, i64(rows[pc, op.A]), i64(rows[pc, op.B]), i64(rows[pc, op.C]), out)
    if kind == op.BOOLEAN:
        return boolean_at(data, at, end, out)
    if kind == op.ENUM:
        return _enum_at(code, pc, data, at, end, out)
    return uuid_at(data, at, end) if kind == op.UUID else card_at(data, at, end)


__all__ = ["COST", "VALUE", "Work", "leaf_at"]
