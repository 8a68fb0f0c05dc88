"""The fields at a point in a pipeline, and how to compute them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from coprlake.language.functions.catalog import FUNCTIONS
from coprlake.language.functions.values import operators
from coprlake.language.plan import Apply, Column, Constant, Expr, Node, Ref, Scan, Sort, Values
from coprlake.language.types import LOOSE, MAP, NULL, STRING, from_arrow
from coprlake.records import ATTRIBUTES, SCHEMA, is_derived, is_varying


@dataclass
class Scope:
    """The output of one command as the next one sees it.

    Attributes:
        node: the plan that gives the records.
        fields: the fields by name, in order.
        scan: the table whose attributes are also fields; None once fields have been selected.
        hidden: attributes that were removed, renamed or replaced.
        order: the sort keys, if the records are sorted.
    """

    node: Node
    fields: dict[str, Expr] = field(default_factory=dict)
    scan: Scan | None = None
    hidden: frozenset[str] = frozenset()
    order: tuple[Sort, ...] = ()

    def find(self, name: str) -> Expr | None:
        """A field, or an attribute of the table; None if the name is unknown."""
        found = self.fields.get(name)
        if found is not None:
            return found
        if name in self.hidden or name in SCHEMA.names:
            return None
        if self.scan is not None:
            return attribute(self.scan, name) if ATTRIBUTES in self.scan.columns else None
        among = self.fields.get(ATTRIBUTES)  # for records combined from several tables
        if among is None or among.type != MAP:
            return None
        return Apply(operators.ENTRY, (among, Constant(name, STRING)), LOOSE)

    def closed(self, node: Node, fields: dict[str, Expr]) -> "Scope":
        """A scope with only these fields."""
        return Scope(node, fields, order=self.order)


def attribute(scan: Scan, name: str) -> Ref:
    """An attribute of the table: a string whose type is left open."""
    column = scan.attributes.get(name)
    if column is None:
        column = scan.attributes[name] = Column(name, LOOSE)
    return Ref(column)


def of_table(
    table: str, schema: pa.Schema, since: int | None, until: int | None, mixed: frozenset[str] = frozenset()
) -> Scope:
    """The fields of a table. A column that is not in our schema is also looked up in the attributes, as in a search.

    The field is of the column's type, unless it is one of the `mixed`, which some records have as an attribute since
    the value does not fit the column. Such a field is text whose type is left open, as any attribute is.
    """
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
        if not has_map or name in SCHEMA.names:
            continue
        if name in mixed and not column.type.is_text:
            text = Apply(FUNCTIONS["tostring"], (Ref(column),), STRING)
            fields[name] = Apply(operators.FIELD, (text, attribute(scan, name)), LOOSE)
        elif column.type.kind in operators.FROM_TEXT:
            fields[name] = Apply(operators.FIELD, (Ref(column), attribute(scan, name)), column.type)
    return Scope(scan, fields, scan=scan if has_map else None)


def of_values(names: Iterable[str], columns: list[Column], rows: list[tuple[Expr, ...]]) -> Scope:
    """The fields of records given in the query itself."""
    return Scope(Values(columns, rows), dict(zip(names, map(Ref, columns), strict=True)))


def missing() -> Expr:
    """The value of a missing field: null."""
    return Constant(None, NULL)
