"""Which fields there are at a place in a pipeline, and what each of them is."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from coprlake.language.functions.values import operators
from coprlake.language.plan import Apply, Column, Constant, Expr, Node, Ref, Scan, Sort, Values
from coprlake.language.suggestions import nearest
from coprlake.language.types import LOOSE, MAP, NULL, STRING, from_arrow
from coprlake.records import ATTRIBUTES, SCHEMA, is_derived, is_varying


@dataclass
class Scope:
    """What a command sees of the one before.

    Attributes:
        node: the records.
        fields: by name, in order.
        scan: the table whose attributes are fields too; None once the fields were chosen.
        hidden: attributes that were removed or renamed.
        order: how the records are sorted, if they are.
    """

    node: Node
    fields: dict[str, Expr] = field(default_factory=dict)
    scan: Scan | None = None
    hidden: frozenset[str] = frozenset()
    order: tuple[Sort, ...] = ()

    def find(self, name: str) -> Expr | None:
        """A field, or an attribute of the table; None if there is no such name."""
        found = self.fields.get(name)
        if found is not None:
            return found
        if name in self.hidden or name in SCHEMA.names:
            return None
        if self.scan is not None:
            return attribute(self.scan, name) if ATTRIBUTES in self.scan.columns else None
        among = self.fields.get(ATTRIBUTES)  # of records that came together from several tables
        if among is None or among.type != MAP:
            return None
        return Apply(operators.ENTRY, (among, Constant(name, STRING)), LOOSE)

    def nearest(self, name: str) -> str | None:
        """The field that was probably meant."""
        return nearest(name, self.fields)

    def closed(self, node: Node, fields: dict[str, Expr]) -> "Scope":
        """The same records with only these fields."""
        return Scope(node, fields, order=self.order)


def attribute(scan: Scan, name: str) -> Ref:
    """A value of the table's attributes: text that may be meant as anything."""
    column = scan.attributes.get(name)
    if column is None:
        column = scan.attributes[name] = Column(name, LOOSE)
    return Ref(column)


def of_table(table: str, schema: pa.Schema, since: int | None, until: int | None) -> Scope:
    """The fields of a table. A column of the table's own is also looked for among the attributes, as a search does."""
    varying = frozenset(item.name for item in schema if is_varying(item))
    unshown = tuple(item.name for item in schema if from_arrow(item.type) is None)
    scan = Scan(table, taken=frozenset(schema.names), unshown=unshown, varying=varying, since=since, until=until)
    for item in schema:
        kind = from_arrow(item.type)
        if kind is not None and not is_derived(item):
            scan.columns[item.name] = Column(item.name, kind)
    fields: dict[str, Expr] = {}
    has_map = ATTRIBUTES in scan.columns and scan.columns[ATTRIBUTES].type == MAP
    for name, column in scan.columns.items():
        fields[name] = Ref(column)
        if has_map and name not in SCHEMA.names and column.type.kind in operators.FROM_TEXT:
            fields[name] = Apply(operators.FIELD, (Ref(column), attribute(scan, name)), column.type)
    return Scope(scan, fields, scan=scan if has_map else None)


def of_values(names: Iterable[str], columns: list[Column], rows: list[tuple[Expr, ...]]) -> Scope:
    """The fields of records that stand in the query."""
    return Scope(Values(columns, rows), dict(zip(names, map(Ref, columns), strict=True)))


def missing() -> Expr:
    """The value of a field that is not there."""
    return Constant(None, NULL)
