"""Compile the tree of a pattern into a program for the machine.

A sequence is compiled matcher by matcher. LD looks for the next non-optional matcher alone: a leaf is tried directly,
anything else becomes a subroutine that exports nothing. Subroutines and tables are shared, so that the size of the
program is proportional to that of the pattern.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from coprlake.dpl.compiling import firsts
from coprlake.dpl.compiling import opcodes as op
from coprlake.dpl.compiling.export_layout import Column, Layout, scope_within
from coprlake.dpl.syntax import time_formats as formats
from coprlake.dpl.syntax.tree import (
    Address,
    Anchor,
    Array,
    Boolean,
    Card,
    Chars,
    Data,
    Enumeration,
    Group,
    Integer,
    Json,
    Literal,
    Moment,
    Node,
    Pairs,
    Quoted,
    Real,
    Sequence,
    Uuid,
    may_be_absent,
    repeats,
)
from coprlake.errors import PatternError
from coprlake.kernel import I64Array, I64Matrix, U8Array, U8Matrix

_MOST_ROWS: Final = 200_000
_DATES: Final = frozenset({formats.MONTH, formats.MONTH_NAME, formats.MONTH_FULL_NAME, formats.DAY})
_SIMPLE: Final = (Literal, Chars, Integer, Real, Boolean, Address, Moment, Quoted, Anchor, Enumeration, Uuid, Card)

ExportScope = dict[str, Column] | None
"""The columns of exports by name; None where nothing is exported."""


class Code(NamedTuple):
    """A program in the form that kernels read."""

    rows: I64Matrix  # see `opcodes`
    pool: U8Array  # the bytes of literals, names and other constants
    tables: U8Matrix  # see `firsts`; the last is that of the whole pattern
    ranges: I64Array  # characters beyond ASCII: first and last of each range


class Site(NamedTuple):
    """A place in a pattern that exports."""

    column: int
    decoding: int
    zone: str | None


@dataclass(frozen=True, eq=False)
class Follow:
    """The next node that must match, and what follows it."""

    node: Node
    then: "Follow | None"


class PatternProgram(NamedTuple):
    """A compiled pattern."""

    code: Code
    sites: tuple[Site, ...]
    columns: tuple[Column, ...]
    may_be_empty: bool


def _is_leaf(node: Node) -> bool:
    """Whether a single instruction matches the node."""
    matcher = node.matcher
    plain_json = isinstance(matcher, Json) and matcher.members is None
    return not node.look and (isinstance(matcher, (*_SIMPLE, Data)) or plain_json)


class _Compiler:
    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.pool = bytearray()
        self.tables: dict[bytes, int] = {}
        self.ranges: list[int] = []
        self.sites: list[Site] = []
        self.late: list[Callable[[], None]] = []  # emit or complete rows after the code
        self.follows: dict[tuple[Sequence, Follow | None], list[Follow | None]] = {}
        self.routines: dict[tuple[Node, Follow | None], list[list[int]]] = {}
        self.queue: list[tuple[Follow, list[list[int]]]] = []

    def emit(self, code: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, *, site: int = -1) -> list[int]:
        """Append a row and return it, so that it can be completed later."""
        row = [code, site, 0, 0, a, b, c, d, 0]
        self.rows.append(row)
        if len(self.rows) > _MOST_ROWS:
            raise PatternError("the pattern is too large", 0)
        return row

    def here(self) -> int:
        """The index of the next row."""
        return len(self.rows)

    def text(self, data: bytes) -> int:
        """The offset of `data` in the pool; appended if it is not there yet."""
        place = self.pool.find(data)
        if place < 0:
            place = len(self.pool)
            self.pool += data
        return place

    def table(self, table: bytearray) -> int:
        """The number of a table; added if it is new."""
        return self.tables.setdefault(bytes(table), len(self.tables))

    def site(self, node: Node, scope: ExportScope) -> int:
        """The number of a new site for the export of a node, or -1 if it exports nothing."""
        if scope is None or node.export not in scope:
            return -1
        matcher = node.matcher
        decoding, zone = op.AS_IS, None
        if isinstance(matcher, Quoted):
            decoding = op.UNESCAPED
            if matcher.doubled:
                decoding = op.SINGLE_DOUBLED if matcher.quotes == "'" else op.DOUBLE_DOUBLED
        elif isinstance(matcher, Address):
            decoding = op.LOWER
        elif isinstance(matcher, Moment) and not formats.has_zone(matcher.fields):
            zone = matcher.zone
        return self.new_site(scope[node.export].number, decoding, zone)

    def new_site(self, column: int, decoding: int = op.AS_IS, zone: str | None = None) -> int:
        """Add a site and return its number."""
        self.sites.append(Site(column, decoding, zone))
        return len(self.sites) - 1

    def group(self, alternatives: tuple[Sequence, ...], scope: ExportScope, follow: Follow | None) -> None:
        """Compile alternatives, of which the leftmost match wins."""
        commits = []
        for sequence in alternatives[:-1]:
            choice = self.emit(op.CHOICE)
            self.sequence(sequence, scope, follow)
            commits.append(self.emit(op.COMMIT))
            choice[op.A] = self.here()
        self.sequence(alternatives[-1], scope, follow)
        for commit in commits:
            commit[op.A] = self.here()

    def sequence(self, sequence: Sequence, scope: ExportScope, follow: Follow | None) -> None:
        """Compile the nodes of a sequence in order."""
        for node, behind in zip(sequence, self._follows(sequence, follow), strict=True):
            self.node(node, scope, behind)

    def _follows(self, sequence: Sequence, follow: Follow | None) -> list[Follow | None]:
        """What must match after each node. The same arguments give the same objects, which key subroutines."""
        key = (sequence, follow)
        if key not in self.follows:
            out: list[Follow | None] = []
            for node in reversed(sequence):
                out.append(follow)
                if not may_be_absent(node):
                    follow = Follow(node, follow)
            self.follows[key] = out[::-1]
        return self.follows[key]

    def node(self, node: Node, scope: ExportScope, follow: Follow | None) -> None:
        """Compile a node with its lookaround, quantifier and export."""
        if node.look:
            self._look(node)
        elif isinstance(node.matcher, Data):
            self._data(node, scope, follow)
        elif _is_leaf(node):
            self.leaf(node, self.emit(op.LEAF, site=self.site(node, scope)))
        else:
            is_record = isinstance(node.matcher, Json) or (isinstance(node.matcher, Group) and node.matcher.is_record)
            absent = node.optional or (is_record and node.least == 0)
            choice = self.emit(op.CHOICE) if absent else None
            self._composite(node, scope, follow)
            if choice:
                commit = self.emit(op.COMMIT)
                choice[op.A] = commit[op.A] = self.here()

    def _composite(self, node: Node, scope: ExportScope, follow: Follow | None) -> None:
        matcher = node.matcher
        column = scope[node.export] if scope is not None and node.export in scope else None
        if isinstance(matcher, Json):
            self._object(node, matcher, scope if matcher.flat else (column.children if column else None))
            self.rows[-1][op.SITE] = -1 if column is None else self.new_site(column.number)
            return
        if isinstance(matcher, Group):
            inner = (column.children if column else None) if matcher.is_record else scope
        else:
            assert isinstance(matcher, Array | Pairs)
            inner = scope_within(column, matcher) if column else None
        if column:
            self.emit(op.MARK)
        if isinstance(matcher, Group) and (matcher.is_record or (node.least, node.most) == (1, 1)):
            self.group(matcher.alternatives, inner, follow)
        else:
            repeat = self.emit(op.REPEAT, node.least, node.most)
            if column and column.opened:
                self.emit(op.EMIT, site=self.new_site(column.opened[1]))
            behind = None if repeats(node) else follow
            if isinstance(matcher, Group):
                self.group(matcher.alternatives, inner, behind)
            else:
                self.sequence(matcher.body, inner, behind)
            self.emit(op.REPEAT_END)
            repeat[op.C] = self.here()
        if column:
            self.emit(op.MARK_END, site=self.new_site(column.number))

    def _object(self, node: Node, matcher: Json, scope: ExportScope) -> None:
        start = self.emit(op.OBJECT)
        start[op.A], start[op.B] = op.FORMS["object"], matcher.most_bytes
        for member in matcher.members or ():
            assert member.export is not None
            name = member.export.encode()
            row = self.emit(op.MEMBER, self.text(name), len(name))
            whole = isinstance(member.matcher, Json | Quoted)
            row[op.D] = 0 if whole else 1  # other matchers match the text between the quotes of a string
            self.node(member, scope, None)
            self.emit(op.MEMBER_END)
            row[op.C] = self.here()
        self.emit(op.OBJECT_END)

    def _look(self, node: Node) -> None:
        negative = node.look.startswith("!")
        seen = replace(node, look="")
        frame = self.emit(op.CHOICE if negative else op.MARK) if negative or ">" in node.look else None
        if "<" in node.look:
            self.emit(op.BEHIND)
        self.node(seen, None, None)
        if "<" in node.look:
            self.emit(op.BEHIND_END)
        if negative:
            self.emit(op.FAIL_TWICE)
            assert frame
            frame[op.A] = self.here()
        elif frame:
            self.emit(op.LOOK_END)

    def _data(self, node: Node, scope: ExportScope, follow: Follow | None) -> None:
        assert isinstance(node.matcher, Data)
        site = self.site(node, scope)
        if follow is None:
            self.leaf(node, self.emit(op.LEAF, site=site))
            return
        over_lines = node.matcher.over_lines
        table = firsts.of_node(follow.node)
        if not over_lines:
            table[ord("\n")] |= op.LINE_END
        simple = _is_leaf(follow.node)
        choice = self.emit(op.CHOICE) if node.optional and not simple else None
        row = self.emit(op.SCAN, node.least, node.most, self.table(table), int(over_lines), site=site)
        if simple:
            row[op.OP], row[op.OPTIONAL] = op.SCAN_LEAF, int(node.optional)
            self.late.append(lambda: self._probe(follow.node, row))
            return
        self._routine(follow).append(self.emit(op.CALL))
        self.emit(op.SCAN_END)
        if choice:
            commit = self.emit(op.COMMIT)
            choice[op.A] = commit[op.A] = self.here()

    def _probe(self, node: Node, row: list[int]) -> None:
        row[op.E] = self.here()
        self.leaf(node, self.emit(op.LEAF))

    def _routine(self, follow: Follow) -> list[list[int]]:
        """The CALL rows of the subroutine for `follow`; their targets are set once it is placed."""
        key = (follow.node, follow.then)
        if key not in self.routines:
            self.routines[key] = []
            self.queue.append((follow, self.routines[key]))
        return self.routines[key]

    def finish(self) -> None:
        """Append the subroutines, leaves and fields that the code refers to."""
        while self.queue or self.late:
            if self.queue:
                follow, calls = self.queue.pop()
                start = self.here()
                self.node(follow.node, None, follow.then)
                self.emit(op.RETURN)
                self.late.append(lambda calls=calls, start=start: _set_targets(calls, start))  # type: ignore[misc]
            else:
                self.late.pop(0)()

    def leaf(self, node: Node, row: list[int]) -> None:
        """Fill in the row of a leaf."""
        matcher = node.matcher
        counted = isinstance(matcher, Literal | Chars | Data)
        row[op.OPTIONAL] = int(node.optional or (node.least == 0 and not counted))
        if isinstance(matcher, Literal):
            data = matcher.text.encode()
            row[op.KIND :] = [op.LITERAL, self.text(data), len(data), node.least, node.most, 0]
        elif isinstance(matcher, Chars):
            begin = len(self.ranges) // 2
            for low, high in matcher.ranges:
                if high > 127:
                    self.ranges += [max(low, 128), high]
            table = self.table(firsts.of_chars(matcher))
            row[op.KIND :] = [op.CHARS, table, node.least, node.most, begin, len(self.ranges) // 2]
        elif isinstance(matcher, Data):
            row[op.KIND :] = [op.REST, node.least, node.most, int(matcher.over_lines), 0, 0]
        elif isinstance(matcher, Integer):
            kind = op.HEX if matcher.hex_digits else op.INTEGER
            row[op.KIND :] = [kind, matcher.low, matcher.high, matcher.hex_digits, 0, 0]
        elif isinstance(matcher, Real):
            point = ord("," if matcher.comma else ".")
            row[op.KIND :] = [op.REAL, _bits(matcher.low), _bits(matcher.high), point, 0, 0]
        elif isinstance(matcher, Moment):
            kinds = {field.kind for field in matcher.fields}
            row[op.KIND :] = [op.MOMENT, 0, len(matcher.fields), int(bool(kinds & _DATES)), 0, 0]
            self.late.append(lambda: self._fields(matcher, row))
        elif isinstance(matcher, Quoted):
            quotes = matcher.quotes.encode()
            row[op.KIND :] = [op.QUOTED, quotes[0], quotes[-1], int(matcher.doubled), 0, 0]
        elif isinstance(matcher, Enumeration):
            row[op.KIND :] = [op.ENUM, 0, len(matcher.entries), int(matcher.fold), 0, 0]
            self.late.append(lambda: self._entries(matcher, row))
        elif isinstance(matcher, Json):
            row[op.KIND :] = [op.JSON, op.FORMS[matcher.form], matcher.most_bytes, 0, 0, 0]
        elif isinstance(matcher, Address):
            row[op.KIND :] = [op.ADDRESS, int(matcher.v4), int(matcher.v6), 0, 0, 0]
        elif isinstance(matcher, Anchor):
            row[op.KIND :] = [op.ANCHOR, op.PLACES[matcher.place], 0, 0, 0, 0]
        else:
            leaves: dict[type, int] = {Boolean: op.BOOLEAN, Uuid: op.UUID, Card: op.CARD}
            row[op.KIND] = leaves[type(matcher)]

    def _fields(self, matcher: Moment, row: list[int]) -> None:
        row[op.A] = self.here()
        for field in matcher.fields:
            text = field.text.encode()
            made = self.emit(-1, field.least, field.most, self.text(text), len(text))
            made[op.KIND] = field.kind

    def _entries(self, matcher: Enumeration, row: list[int]) -> None:
        row[op.A] = self.here()
        for text, number in matcher.entries:
            data = text.encode().lower() if matcher.fold else text.encode()
            self.emit(-1, self.text(data), len(data), number)


def _set_targets(calls: list[list[int]], start: int) -> None:
    for call in calls:
        call[op.A] = start


def _bits(number: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def compile_tree(tree: Group) -> PatternProgram:
    """Compile the tree of a pattern."""
    layout = Layout()
    scope = layout.scope(tree.alternatives, 0)
    compiler = _Compiler()
    compiler.group(tree.alternatives, scope, None)
    compiler.emit(op.END)
    compiler.finish()
    starts = firsts.of_node(Node(tree, 0))
    tables = np.frombuffer(b"".join([*compiler.tables, bytes(starts)]), np.uint8).reshape(-1, op.TABLE_WIDTH)
    code = Code(
        np.array(compiler.rows, np.int64),
        np.frombuffer(bytes(compiler.pool) or b"\0", np.uint8),
        tables,
        np.array(compiler.ranges or [0, 0], np.int64),
    )
    return PatternProgram(code, tuple(compiler.sites), tuple(scope.values()), starts[-1] != 0)
