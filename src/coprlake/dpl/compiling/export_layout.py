"""Where exports go: the columns of a pattern, and the tables that their rows belong to.

Table 0 has a row for each text. Each ARRAY and KVP has its own table, with a row for each repetition. A column is
filled from *sites*: the places in the pattern that export it.
"""

from dataclasses import dataclass, field

from coprlake.dpl.compiling import exports
from coprlake.dpl.compiling.exports import ExportType
from coprlake.dpl.syntax.tree import (
    Address,
    Array,
    Boolean,
    Enumeration,
    Group,
    Integer,
    Json,
    Moment,
    Node,
    Pairs,
    Real,
    Sequence,
)
from coprlake.errors import PatternError

KEY, VALUE = "key", "value"
"""The columns of a KVP table."""


@dataclass
class Column:
    """A value that a pattern exports.

    Attributes:
        number: identifies it in sites.
        table: the table that it belongs to.
        children: the fields of a record, the elements of an array (named ``""``), the keys and values of a map.
        opened: for an array or map, the table of its elements and the column whose events open a row of it.
    """

    number: int
    name: str
    type: ExportType
    table: int
    children: dict[str, "Column"] = field(default_factory=dict)
    opened: tuple[int, int] | None = None


def type_of(node: Node) -> ExportType:
    """The type of what a node exports."""
    matcher = node.matcher
    if isinstance(matcher, Integer | Enumeration):
        return exports.LONG
    if isinstance(matcher, Real):
        return exports.DOUBLE
    if isinstance(matcher, Boolean):
        return exports.BOOLEAN
    if isinstance(matcher, Address):
        return exports.IP
    if isinstance(matcher, Moment):
        return exports.TIMESTAMP
    if isinstance(matcher, Json):
        return exports.JSON if matcher.members is None else _record([matcher.members], node)
    if isinstance(matcher, Group) and matcher.is_record:
        return _record(matcher.alternatives, node)
    if isinstance(matcher, Array):
        return ExportType("array", element_of(matcher, node))
    return exports.MAP if isinstance(matcher, Pairs) else exports.STRING


def _record(alternatives: "list[Sequence] | tuple[Sequence, ...]", node: Node) -> ExportType:
    fields = named_types(alternatives)
    if not fields:
        raise PatternError("a record needs at least one export in it", node.offset)
    return ExportType("record", fields=tuple(fields.items()))


def element_of(matcher: Array, node: Node) -> ExportType:
    """The type of the only export of the body, or a record of all of them."""
    fields = named_types([matcher.body])
    if not fields:
        raise PatternError("the body of ARRAY needs an export", node.offset)
    return next(iter(fields.values())) if len(fields) == 1 else ExportType("record", fields=tuple(fields.items()))


def named_types(alternatives: "list[Sequence] | tuple[Sequence, ...]") -> dict[str, ExportType]:
    """The names and types that alternatives export into their scope, in order of first appearance."""
    out: dict[str, ExportType] = {}
    for sequence in alternatives:
        here: dict[str, ExportType] = {}
        for node in sequence:
            for name, kind in _exports_of(node).items():
                if name in here:
                    raise PatternError(f"{name} is exported twice; only alternatives may share a name", node.offset)
                if name in out and out[name] != kind:
                    raise PatternError(f"{name} is exported as {out[name]} and as {kind}", node.offset)
                here[name] = kind
        out |= here
    return out


def _exports_of(node: Node) -> dict[str, ExportType]:
    matcher = node.matcher
    inner: dict[str, ExportType] = {}
    if isinstance(matcher, Group) and not matcher.is_record:
        inner = named_types(matcher.alternatives)
    elif isinstance(matcher, Json) and matcher.flat and matcher.members:
        inner = named_types([matcher.members])
    elif isinstance(matcher, Pairs):
        _check_pairs(matcher, node)
    elif isinstance(matcher, Array):
        element_of(matcher, node)
    elif isinstance(matcher, Group):
        named_types(matcher.alternatives)
    if node.look and inner:
        raise PatternError("a lookaround exports nothing; remove the exports in it", node.offset)
    if node.export is None:
        return inner
    if isinstance(matcher, Json) and matcher.flat:
        raise PatternError("with flat=true only the members are exported, not the object", node.offset)
    if node.export in inner:
        raise PatternError(f"{node.export} is exported twice; only alternatives may share a name", node.offset)
    return {node.export: type_of(node), **inner}


def _check_pairs(matcher: Pairs, node: Node) -> None:
    names = named_types([matcher.body])
    values = [name for name in names if name.startswith(VALUE)]
    others = [name for name in names if name not in (KEY, *values)]
    if KEY not in names or not values or others:
        raise PatternError("KVP needs exports named key and value, and no others", node.offset)


class Layout:
    """Numbers columns and tables."""

    def __init__(self) -> None:
        self.column_count = 0
        self.table_count = 1

    def _number(self) -> int:
        self.column_count += 1
        return self.column_count - 1

    def column(self, name: str, kind: ExportType, table: int) -> Column:
        """A new column and its children."""
        made = Column(self._number(), name, kind, table)
        if kind.kind == "record":
            made.children = {field: self.column(field, of, table) for field, of in kind.fields}
        elif kind.kind in ("array", "map"):
            inner = self.table_count
            self.table_count += 1
            made.opened = (inner, self._number())
            parts = {"": kind.of} if kind.of else {KEY: exports.STRING, VALUE: exports.STRING}
            made.children = {part: self.column(part, of, inner) for part, of in parts.items()}
        return made

    def scope(self, alternatives: "list[Sequence] | tuple[Sequence, ...]", table: int) -> dict[str, Column]:
        """New columns for the exports of alternatives, by name."""
        return {name: self.column(name, kind, table) for name, kind in named_types(alternatives).items()}


def scope_within(column: Column, matcher: Array | Pairs | Group | Json) -> dict[str, Column]:
    """The columns of the exports in the body of an array, map or record, by name."""
    if isinstance(matcher, Pairs):
        names = named_types([matcher.body])
        return {name: column.children[KEY if name == KEY else VALUE] for name in names}
    if isinstance(matcher, Array):
        element = column.children[""]
        names = named_types([matcher.body])
        return {next(iter(names)): element} if len(names) == 1 else element.children
    return column.children
