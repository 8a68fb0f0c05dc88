"""The machine that runs patterns over texts: one kernel, one pass.

It keeps a stack of frames. What may fail without failing the whole (an alternative, a repetition, the search of LD)
leaves a frame with the place to go back to; a failure takes frames off until one knows how to go on. What was exported
since is dropped with it. Nothing is ever tried twice in two ways: a matcher that matched stays matched.
"""

from typing import Final, NamedTuple

import numpy as np

from coprlake.dpl.compiling import opcodes as op
from coprlake.dpl.compiling.program import Code
from coprlake.dpl.running.characters import after_least, chars_at, literal_at, rest_at
from coprlake.dpl.running.json_spans import json_at, member_at
from coprlake.dpl.running.leaves import COST, VALUE, Work, leaf_at
from coprlake.dpl.running.numerals import integer_at, no_address_up_to
from coprlake.kernel import I32Array, I64Array, U8Array, i64, kernel, long_kernel
from coprlake.text.arrow_strings import Strings
from coprlake.text.utf8 import char_before, end_of_chars, next_char

FIRST, ALL = 0, 1
"""Only a match at the beginning of a text; all matches, one behind the other."""
MATCH: Final = -1
"""The site of a match itself: what it exports comes behind it."""

INEXACT: Final = np.iinfo(np.int64).min + 1
"""The value of a number that has to be read again, digit by digit: no usual float has these bits."""

_NONE, _OVERFLOW = -1, -2
_KIND, _ADDRESS, _PLACE, _COUNT, _END, _X, _Y = range(7)
"""The columns of a frame: what it is, its instruction (or where to go on), and place, exports and end when it began."""
_CHOICE, _CALL, _REPEAT, _MARK, _BEHIND, _SCAN, _OBJECT = range(7)
_BEHIND_BYTES: Final = 64
_BYTES_A_STEP: Final = 16
"""How many bytes LD looks at in the time of a step."""


class Events(NamedTuple):
    """What was exported, in order: the text, the site, the place, and the value of what is no text."""

    rows: I64Array
    sites: I32Array
    starts: I64Array
    stops: I64Array
    values: I64Array


@kernel
def _push(stack: I64Array, depth: int, kind: int, address: int, place: int, count: int, end: int) -> int:
    top = depth * op.FRAME_WIDTH
    stack[top + _KIND] = kind
    stack[top + _ADDRESS] = address
    stack[top + _PLACE] = place
    stack[top + _COUNT] = count
    stack[top + _END] = end
    return depth + 1


@kernel
def _put(events: Events, count: int, row: int, site: int, start: int, stop: int, value: int) -> int:
    events.rows[count] = row
    events.sites[count] = site
    events.starts[count] = start
    events.stops[count] = stop
    events.values[count] = value
    return count + 1


@kernel
def _candidate(code: Code, table: int, data: U8Array, at: int, limit: int, end: int) -> int:
    """The first place from `at` to `limit` where the table lets a match begin, in the line if it says so, or -1."""
    while at < limit and code.tables[table, data[at]] == 0:
        at += 1
    flags = code.tables[table, data[at]] if at < end else code.tables[table, op.TABLE_WIDTH - 1]
    return at if flags & op.MAY_MATCH else _NONE


@kernel
def _next_candidate(code: Code, table: int, data: U8Array, at: int, limit: int, end: int) -> int:
    """The same behind a candidate at `at`."""
    if at >= limit or code.tables[table, data[at]] & op.LINE_END:
        return _NONE
    return _candidate(code, table, data, at + 1, limit, end)


@kernel
def _leaf_at(code: Code, pc: int, data: U8Array, start: int, at: int, end: int, work: Work) -> int:
    """As `leaf_at`, with the frequent kinds at hand: a call of it costs as much as they do."""
    rows = code.rows
    kind = rows[pc, op.KIND]
    if kind == op.LITERAL:
        return literal_at(code, pc, data, at, end)
    if kind == op.CHARS:
        return chars_at(code, pc, data, at, end)
    if kind == op.REST:
        return rest_at(data, at, end, i64(rows[pc, op.A]), i64(rows[pc, op.B]), i64(rows[pc, op.C]))
    if kind == op.INTEGER:
        return integer_at(data, at, end, i64(rows[pc, op.A]), i64(rows[pc, op.B]), work.out)
    return leaf_at(code, pc, data, start, at, end, work)


@kernel
def _scan_leaf(
    code: Code, pc: int, data: U8Array, start: int, at: int, end: int, work: Work, fuel: int
) -> tuple[int, int]:
    """Where LD or DATA ends: at the first place where the leaf it looks for matches, or -1; and the fuel left."""
    rows = code.rows
    place = after_least(data, at, end, i64(rows[pc, op.A]), i64(rows[pc, op.D]))
    if place < 0:
        return _NONE, fuel
    limit = end_of_chars(data, at, end, i64(rows[pc, op.B]))
    fuel -= (limit - at) // _BYTES_A_STEP
    table, probe = i64(rows[pc, op.C]), i64(rows[pc, op.E])
    is_literal = rows[probe, op.KIND] == op.LITERAL
    is_address = rows[probe, op.KIND] == op.ADDRESS
    place = _candidate(code, table, data, place, limit, end)
    while place >= 0 and fuel > 0:
        work.out[COST] = 0
        if is_literal:
            stop = literal_at(code, probe, data, place, end)
        else:
            ruled_out = no_address_up_to(data, place, end) if is_address else place - 1
            if ruled_out >= place:
                stop = _NONE
                place = min(limit, ruled_out)
            else:
                stop = leaf_at(code, probe, data, start, place, end, work)
        fuel -= 1 + max(0, i64(work.out[COST]))
        if stop >= 0:
            return place, fuel
        place = _next_candidate(code, table, data, place, limit, end)
    return _NONE, fuel


State = tuple[int, int, int, int, int]
"""The next instruction or -1, the place, the exports so far, the end of the text, and the depth of the stack."""


@kernel
def _go_back(code: Code, data: U8Array, start: int, depth: int, stack: I64Array) -> State:
    """After a failure: where the machine goes on."""
    rows = code.rows
    while depth > 0:
        top = (depth - 1) * op.FRAME_WIDTH
        kind, address, place = stack[top + _KIND], i64(stack[top + _ADDRESS]), i64(stack[top + _PLACE])
        count, end = i64(stack[top + _COUNT]), i64(stack[top + _END])
        if kind == _CHOICE:
            return address, place, count, end, depth - 1
        if kind == _REPEAT and stack[top + _X] >= rows[address, op.A]:
            return i64(rows[address, op.C]), place, count, end, depth - 1
        if kind == _SCAN:
            at = _next_candidate(code, i64(rows[address, op.C]), data, i64(stack[top + _X]), i64(stack[top + _Y]), end)
            if at >= 0:
                stack[top + _X] = at
                return address + 1, at, count, end, depth
        elif kind == _BEHIND:
            at = i64(stack[top + _X])
            if at > start:
                at = char_before(data, at, start)
                if place - at <= _BEHIND_BYTES:
                    stack[top + _X] = at
                    return address + 1, at, count, place, depth
        depth -= 1
    return _NONE, 0, 0, 0, 0


Line = tuple[int, int, int]
"""The number of a text, and where it begins and ends."""


@kernel
def _run(
    code: Code, data: U8Array, line: Line, at: int, work: Work, events: Events, count: int, fuel: int
) -> tuple[int, int, int]:
    """Where the match that begins at `at` ends, `_NONE`, or `_OVERFLOW` if there was no room for what it exports.

    Also how many exports there are then, and how much fuel is left.
    """
    rows, stack, out = code.rows, work.stack, work.out
    row, start, end = line
    pc, depth = i64(0), i64(0)  # literals would have all kernels compiled for them as well
    room = len(events.rows)
    while fuel > 0 and depth < op.MOST_FRAMES - 1:
        fuel -= 1
        code_here = rows[pc, op.OP]
        site = i64(rows[pc, op.SITE])
        if site >= 0 and count >= room:
            return _OVERFLOW, count, fuel
        top = (depth - 1) * op.FRAME_WIDTH
        failed = False
        if code_here == op.LEAF:
            out[COST] = 0
            stop = _leaf_at(code, pc, data, start, at, end, work)
            cost = i64(out[COST])
            fuel -= max(0, cost)
            if stop >= 0:
                if site >= 0:
                    inset = 1 if rows[pc, op.KIND] == op.QUOTED else 0
                    value = i64(out[VALUE]) if cost >= 0 else INEXACT
                    count = _put(events, count, row, site, at + inset, stop - inset, value)
                at = stop
            failed = stop < 0 and rows[pc, op.OPTIONAL] == 0
            pc += 1
        elif code_here == op.SCAN_LEAF:
            stop, fuel = _scan_leaf(code, pc, data, start, at, end, work, fuel)
            if stop >= 0:
                if site >= 0:
                    count = _put(events, count, row, site, at, stop, 0)
                at = stop
            failed = stop < 0 and rows[pc, op.OPTIONAL] == 0
            pc += 1
        elif code_here == op.END:
            return at, count, fuel
        elif code_here == op.CHOICE:
            depth = _push(stack, depth, _CHOICE, i64(rows[pc, op.A]), at, count, end)
            pc += 1
        elif code_here == op.COMMIT:
            depth -= 1
            pc = i64(rows[pc, op.A])
        elif code_here == op.REPEAT:
            depth = _push(stack, depth, _REPEAT, pc, at, count, end)
            stack[top + op.FRAME_WIDTH + _X] = 0
            pc += 1
        elif code_here == op.REPEAT_END:
            begin = i64(stack[top + _ADDRESS])
            stack[top + _X] += 1
            pc += 1
            if at == stack[top + _PLACE]:  # it could go on for ever: that is enough, and counts for nothing
                count = i64(stack[top + _COUNT])
                depth -= 1
            elif stack[top + _X] >= rows[begin, op.B]:
                depth -= 1
            else:
                stack[top + _PLACE] = at
                stack[top + _COUNT] = count
                pc = begin + 1
        elif code_here == op.SCAN:
            place = after_least(data, at, end, i64(rows[pc, op.A]), i64(rows[pc, op.D]))
            limit = end_of_chars(data, at, end, i64(rows[pc, op.B]))
            fuel -= (limit - at) // _BYTES_A_STEP
            if place >= 0:
                place = _candidate(code, i64(rows[pc, op.C]), data, place, limit, end)
            failed = place < 0
            if not failed:
                depth = _push(stack, depth, _SCAN, pc, at, count, end)
                stack[top + op.FRAME_WIDTH + _X] = place
                stack[top + op.FRAME_WIDTH + _Y] = limit
                at = place
                pc += 1
        elif code_here == op.SCAN_END:
            depth -= 1
            count, end = i64(stack[top + _COUNT]), i64(stack[top + _END])
            at = i64(stack[top + _X])
            begin = i64(stack[top + _ADDRESS])
            site = i64(rows[begin, op.SITE])
            if site >= 0:
                count = _put(events, count, row, site, i64(stack[top + _PLACE]), at, 0)
            pc += 1
        elif code_here == op.CALL:
            depth = _push(stack, depth, _CALL, pc + 1, at, count, end)
            pc = i64(rows[pc, op.A])
        elif code_here == op.RETURN:
            depth -= 1
            pc = i64(stack[top + _ADDRESS])
        elif code_here == op.MARK:
            depth = _push(stack, depth, _MARK, pc, at, count, end)
            pc += 1
        elif code_here == op.MARK_END:
            depth -= 1
            count = _put(events, count, row, site, i64(stack[top + _PLACE]), at, 0)
            pc += 1
        elif code_here == op.EMIT:
            count = _put(events, count, row, site, at, at, 0)
            pc += 1
        elif code_here == op.LOOK_END:
            depth -= 1
            at, count = i64(stack[top + _PLACE]), i64(stack[top + _COUNT])
            pc += 1
        elif code_here == op.FAIL_TWICE:
            depth -= 1
            failed = True
        elif code_here == op.BEHIND:
            depth = _push(stack, depth, _BEHIND, pc, at, count, end)
            stack[top + op.FRAME_WIDTH + _X] = at
            end = at
            pc += 1
        elif code_here == op.BEHIND_END:
            failed = at != stack[top + _PLACE]
            if not failed:
                depth -= 1
                count, end = i64(stack[top + _COUNT]), i64(stack[top + _END])
                pc += 1
        elif code_here == op.OBJECT:
            stop = json_at(data, at, end, i64(rows[pc, op.A]), i64(rows[pc, op.B]), out)
            fuel -= i64(out[COST])
            failed = stop < 0
            if not failed:
                depth = _push(stack, depth, _OBJECT, pc, at, count, end)
                stack[top + op.FRAME_WIDTH + _X] = stop
                pc += 1
        elif code_here == op.MEMBER:
            begin, stop = i64(stack[top + _PLACE]), i64(stack[top + _X])
            fuel -= stop - begin
            place, behind = member_at(code, pc, data, begin, stop, out)
            if place < 0:
                pc = i64(rows[pc, op.C])
            else:
                depth = _push(stack, depth, _CHOICE, i64(rows[pc, op.C]), at, count, end)
                inset = 1 if rows[pc, op.D] != 0 and data[place] == 34 else 0
                at, end = place + inset, behind - inset
                pc += 1
        elif code_here == op.MEMBER_END:
            failed = at != end
            if not failed:
                depth -= 1
                at, end = i64(stack[top + _PLACE]), i64(stack[top + _END])
                pc += 1
        else:  # OBJECT_END
            depth -= 1
            at = i64(stack[top + _X])
            if site >= 0:
                count = _put(events, count, row, site, i64(stack[top + _PLACE]), at, 0)
            pc += 1
        if failed:
            pc, at, count, end, depth = _go_back(code, data, start, depth, stack)
            if pc < 0:
                return _NONE, count, fuel
    return _NONE, count, fuel


@long_kernel
def run_texts(
    code: Code, texts: Strings, mode: int, from_row: int, count: int, work: Work, events: Events, matched: U8Array
) -> tuple[int, int]:
    """Run a program over all texts from `from_row` on; how far it got, and how many events there are.

    If it stops early, the events lacked room for that text: call it again from
    there with more. The last table of the program is that of what a match may begin with; in the mode `ALL` empty
    matches do not count.
    """
    data, starts, valid = texts.data, texts.starts, texts.valid
    last_table = len(code.tables) - 1
    for row in range(from_row, len(starts) - 1):
        if len(valid) > 0 and valid[row] == 0:
            continue
        start, end = i64(starts[row]), i64(starts[row + 1])
        fuel = op.FUEL + 64 * (end - start)
        at, before = start, count
        while True:
            found = count
            if mode == ALL:
                while at < end and code.tables[last_table, data[at]] == 0:
                    at += 1
                if at >= end or fuel <= 0:
                    break
                if count >= len(events.rows):
                    return row, before
                found = _put(events, count, row, MATCH, at, at, 0)
            stop, found, fuel = _run(code, data, (row, start, end), at, work, events, found, fuel)
            if stop == _OVERFLOW:
                return row, before
            if stop > at or (stop == at and mode == FIRST):
                matched[row] = 1
                if mode == ALL:
                    events.stops[count] = stop
                count = found
            if mode == FIRST:
                break
            at = stop if stop > at else next_char(data, at, end)
    return len(starts) - 1, count
