"""Reads JSON objects along the text between their values, which is nearly always that of a line before.

The text from one value to the next is a *piece*: ``,"status":`` or ``},"msg":``. All pieces seen so far are a tree, in
which each line is a path. So a key costs a comparison of a few bytes, and the last node of the path says which shape a
line has.
"""

from typing import Final, NamedTuple

import numpy as np

from coprlake.intake.formats.json_scanning import (
    BOOLEAN,
    DEPTH,
    FLOAT,
    INTEGER,
    LAYOUT_BYTES,
    NESTED,
    STRING,
    TIME,
    Scanned,
    integer_of,
    number_kind,
    skipped,
    time_layout,
)
from coprlake.intake.formats.json_strictness import is_text_at, nested_stop, number_stop, string_stop
from coprlake.kernel import I32Array, I64Array, U8Array, cold_kernel, i64, kernel, long_kernel, word_of
from coprlake.text.byte_classes import (
    CLOSE_BRACE,
    COLON,
    COMMA,
    DASH,
    OPEN_BRACE,
    OPEN_BRACKET,
    QUOTE,
    is_digit,
)

END: Final = 255
"""The kind of a piece behind which there is no value."""
_NODES: Final = 1 << 12
_TEXT_BYTES: Final = 1 << 18
_MOST_SIBLINGS: Final = 48
_LONGEST_FLOAT: Final = 32
_OBJECT, _KEY, _NEXT = 0, 1, 2
_FALSE: Final = np.frombuffer(b"false", np.uint8)
_TRUE: Final = np.frombuffer(b"true", np.uint8)
_NULL: Final = np.frombuffer(b"null", np.uint8)


class Pieces(NamedTuple):
    """The tree; node 0 is its root, and has no piece."""

    texts: U8Array  # the bytes of all pieces
    starts: I32Array  # of the piece of each node
    ends: I32Array
    kinds: I64Array  # of the value behind it, with its layout from bit 8 on
    depths: I32Array  # how many objects are open there, but for the outermost
    parents: I32Array
    children: I32Array  # the first of each node, or -1
    siblings: I32Array  # the next of each node, or -1
    used: I64Array  # the number of nodes and of bytes


def no_pieces() -> Pieces:
    """A tree without pieces."""
    numbers = [np.full(_NODES, -1, np.int32) for _ in range(6)]
    starts, ends, depths, parents, children, siblings = numbers
    kinds = np.zeros(_NODES, np.int64)
    used = np.array([1, 0], np.int64)
    return Pieces(np.empty(_TEXT_BYTES, np.uint8), starts, ends, kinds, depths, parents, children, siblings, used)


def is_full(tree: Pieces) -> bool:
    """Whether hardly anything more can be learned."""
    return int(tree.used[0]) > _NODES - _MOST_SIBLINGS or int(tree.used[1]) > _TEXT_BYTES * 3 // 4


@kernel
def _scan_number(data: U8Array, at: int, end: int, place: int, out: Scanned) -> tuple[int, int]:
    kind, stop = number_stop(data, at, end)
    if stop < 0:
        return 0, -1
    if kind == INTEGER:
        if stop - at > 18 and number_kind(data, at, stop) != INTEGER:
            return 0, -1
        out.integers[place] = integer_of(data, at, stop)
    elif stop - at > _LONGEST_FLOAT or number_kind(data, at, stop) != FLOAT:
        return 0, -1
    return kind, stop


@kernel
def _scan_value(data: U8Array, at: int, end: int, depth: int, place: int, out: Scanned) -> tuple[int, int]:
    """Note the value at `at` under the number `place`; its kind with its layout, and where it ends, or -1."""
    byte = data[at]
    flags = 0
    if byte == QUOTE:
        kind = STRING
        stop, flags = string_stop(data, at, end)
        if stop - at > 20 and data[at + 5] == DASH:
            mark = 5 * place
            layout = out.shapes[mark + 1 : mark + 1 + LAYOUT_BYTES]
            if time_layout(data, at + 1, stop - 1, layout):
                out.marks[place] = mark
                kind = TIME
                for i in range(LAYOUT_BYTES):
                    kind |= i64(layout[i]) << (8 * i + 8)
    elif byte == DASH or is_digit(byte):
        kind, stop = _scan_number(data, at, end, place, out)
    elif byte == OPEN_BRACKET or (byte == OPEN_BRACE and depth >= DEPTH):
        kind = NESTED
        stop, flags = nested_stop(data, at, end)
    elif is_text_at(data, at, end, _TRUE):
        kind, stop = BOOLEAN, at + 4
        out.integers[place] = 1
    elif is_text_at(data, at, end, _FALSE):
        kind, stop = BOOLEAN, at + 5
        out.integers[place] = 0
    else:
        return 0, -1
    out.firsts[place] = at
    out.lasts[place] = stop
    out.kinds[place] = kind & 0xFF
    out.flags[place] = flags
    return kind, stop


@kernel
def _has_piece(data: U8Array, at: int, end: int, tree: Pieces, node: int) -> bool:
    """Whether the piece of the node is at `at`."""
    start, stop = i64(tree.starts[node]), i64(tree.ends[node])
    size = stop - start
    if at + size > end:
        return False
    if size < 8:
        for i in range(size):
            if data[at + i] != tree.texts[start + i]:
                return False
        return True
    last = stop - 8
    offset = at - start
    while start < last:
        if word_of(tree.texts, start) != word_of(data, start + offset):
            return False
        start += 8
    return bool(word_of(tree.texts, last) == word_of(data, last + offset))


@kernel
def _child(data: U8Array, at: int, end: int, tree: Pieces, node: int, place: int, out: Scanned) -> tuple[int, int]:
    """The child of the node whose piece and kind of value are at `at`, or -1, and where that value ends."""
    child = i64(tree.children[node])
    while child >= 0:
        if _has_piece(data, at, end, tree, child):
            text = tree.starts[child]
            first = at + i64(tree.ends[child]) - i64(text)
            if tree.kinds[child] == END:
                if first == end:
                    return child, end
            elif first < end:
                kind, stop = _scan_value(data, first, end, i64(tree.depths[child]), place, out)
                if stop >= 0:
                    while child >= 0 and not (tree.kinds[child] == kind and tree.starts[child] == text):
                        child = i64(tree.siblings[child])
                    return child, stop
        child = i64(tree.siblings[child])
    return -1, -1


@cold_kernel
def _piece_end(data: U8Array, at: int, end: int, depth: int) -> tuple[int, int]:
    """Where the piece at `at` ends, behind a value if `depth` is not -1; -1 if it is not JSON; and how deep it ends.

    If no value follows, it is -1 deep.
    """
    state = _NEXT
    if depth < 0:
        at = skipped(data, at, end)
        if at >= end or data[at] != OPEN_BRACE:
            return -1, 0
        at, depth, state = at + 1, 0, _OBJECT
    while True:
        at = skipped(data, at, end)
        if at >= end:
            return -1, 0
        byte = data[at]
        at += 1
        if state != _KEY and byte == CLOSE_BRACE:
            depth -= 1
            if depth < 0:
                return end if skipped(data, at, end) == end else -1, -1
            state = _NEXT
        elif state == _NEXT:
            if byte != COMMA:
                return -1, 0
            state = _KEY
        else:
            stop, _ = string_stop(data, at - 1, end) if byte == QUOTE else (-1, 0)
            at = skipped(data, stop, end) if stop >= 0 else end
            if at >= end or data[at] != COLON:
                return -1, 0
            at = skipped(data, at + 1, end)
            if at >= end:
                return -1, 0
            state = _NEXT
            if data[at] == OPEN_BRACE:
                closing = skipped(data, at + 1, end)
                if closing < end and data[closing] == CLOSE_BRACE:
                    at = closing + 1
                elif depth < DEPTH:
                    at, depth, state = at + 1, depth + 1, _OBJECT
                else:
                    return at, depth
            elif is_text_at(data, at, end, _NULL):
                at += 4
            else:
                return at, depth


@cold_kernel
def _learned(data: U8Array, at: int, end: int, tree: Pieces, node: int, place: int, out: Scanned) -> tuple[int, int]:
    """A new child of the node for what is at `at`, and where the value behind it ends.

    There is none, and -1 is returned, if it is not JSON or no piece that is kept: then the line is left to others.
    """
    first, depth = _piece_end(data, at, end, i64(tree.depths[node]))
    if first < 0:
        return -1, -1
    kind, stop = END, end
    if depth >= 0:
        kind, stop = _scan_value(data, first, end, depth, place, out)
    new, written, size = i64(tree.used[0]), i64(tree.used[1]), first - at
    if stop < 0 or new >= len(tree.starts) or written + size > len(tree.texts):
        return -1, -1
    start, last, count = -1, -1, 0
    child = i64(tree.children[node])
    while child >= 0:
        if i64(tree.ends[child]) - i64(tree.starts[child]) == size and _has_piece(data, at, end, tree, child):
            start = i64(tree.starts[child])
        last = child
        count += 1
        child = i64(tree.siblings[child])
    if count >= _MOST_SIBLINGS:
        return -1, -1
    if start < 0:
        start = written
        for i in range(size):
            tree.texts[start + i] = data[at + i]
        tree.used[1] = written + size
    tree.starts[new], tree.ends[new], tree.kinds[new], tree.depths[new] = start, start + size, kind, depth
    tree.parents[new], tree.children[new], tree.siblings[new] = node, -1, -1
    if last < 0:
        tree.children[node] = new
    else:
        tree.siblings[last] = new
    tree.used[0] = new + 1
    return new, stop


@long_kernel
def walk_lines(data: U8Array, starts: I64Array, ends: I64Array, tree: Pieces, codes: I32Array, out: Scanned) -> int:
    """The last node of each ``data[starts[i]:ends[i]]`` goes to `codes`, and its values to `out`.

    The node is -1, and the line has no values, if it is not a JSON object, or not one that this can read: with numbers
    that do not fit into 64 bits, half characters, or more different keys than are kept. Returns the number of values.
    `out.shapes` has the layouts of times. Cost: about 0.5 ns a byte.
    """
    places = 0
    for line in range(len(starts)):
        at, end = i64(starts[line]), i64(ends[line])
        out.place_starts[line] = places
        node, place = 0, places
        while node >= 0 and (node == 0 or tree.kinds[node] != END):
            child, stop = _child(data, at, end, tree, node, place, out)
            if child < 0:
                child, stop = _learned(data, at, end, tree, node, place, out)
            node = child
            at = stop
            place += 1
        codes[line] = node
        if node >= 0:
            places = place - 1
    out.place_starts[len(starts)] = places
    return places
