"""Kernels for the matchers of characters: literals, sets of characters, and the rest of a line or a text."""

from coprlake.dpl.compiling import opcodes as op
from coprlake.dpl.compiling.program import Code
from coprlake.kernel import U8Array, i64, kernel
from coprlake.text.byte_classes import NEWLINE
from coprlake.text.eight_bytes import line_end
from coprlake.text.utf8 import character_at, end_of_chars, next_char


@kernel
def after_least(data: U8Array, at: int, end: int, least: int, over_lines: int) -> int:
    """Where the first `least` characters end, or -1 if the line (the text, with `over_lines`) has not so many."""
    for _ in range(least):
        if at >= end or (over_lines == 0 and data[at] == NEWLINE):
            return -1
        at = next_char(data, at, end)
    return at


@kernel
def rest_at(data: U8Array, at: int, end: int, least: int, most: int, over_lines: int) -> int:
    """LD or DATA with nothing behind it: where it ends, or -1."""
    least_stop = after_least(data, at, end, least, over_lines)
    if least_stop < 0:
        return -1
    limit = end_of_chars(data, at, end, most)
    return limit if over_lines != 0 else line_end(data, least_stop, limit)


@kernel
def literal_at(code: Code, pc: int, data: U8Array, at: int, end: int) -> int:
    """A text, as often as it is there and allowed."""
    text, size = i64(code.rows[pc, op.A]), i64(code.rows[pc, op.B])
    least, most = i64(code.rows[pc, op.C]), i64(code.rows[pc, op.D])
    count = 0
    while count < most and at + size <= end:
        same = 0
        while same < size and data[at + same] == code.pool[text + same]:
            same += 1
        if same < size:
            break
        at += size
        count += 1
    return at if count >= least else -1


@kernel
def chars_at(code: Code, pc: int, data: U8Array, at: int, end: int) -> int:
    """Characters of a set, as many as there are and allowed."""
    table, least, most = i64(code.rows[pc, op.A]), i64(code.rows[pc, op.B]), i64(code.rows[pc, op.C])
    first, last = i64(code.rows[pc, op.D]), i64(code.rows[pc, op.E])
    count = 0
    while count < most and at < end and code.tables[table, data[at]] != 0:
        if data[at] >= 0x80:
            number = character_at(data, at, end)
            k = first
            while k < last and not code.ranges[2 * k] <= number <= code.ranges[2 * k + 1]:
                k += 1
            if k == last:
                break
            at = next_char(data, at, end)
        else:
            at += 1
        count += 1
    return at if count >= least else -1
