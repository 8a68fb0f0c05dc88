"""The logical plan: typed expressions over columns, and the operations on tables that they stand in.

A column is known by itself, not by its name: a rename makes no new column of the engine, two fields may differ in case
only, and no name that a user gave reaches an engine's SQL.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from coprlake.language.types import Type

if TYPE_CHECKING:
    from coprlake.language.functions.registry import Function


_numbers = itertools.count()


class Column:
    """A column of a node, and the name that it has in SQL."""

    __slots__ = ("hint", "number", "type")

    def __init__(self, hint: str, type_: Type) -> None:
        self.hint = hint
        """The field's name when the column was made, for people who read the SQL."""
        self.type = type_
        self.number = next(_numbers)

    def __repr__(self) -> str:
        return f"Column({self.hint!r}, {self.type})"


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of a column."""

    column: Column

    @property
    def type(self) -> Type:
        """Of the column."""
        return self.column.type


@dataclass(frozen=True, slots=True)
class Constant:
    """A value: text, number, truth, null, or times and durations as numbers."""

    value: Any
    type: Type


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of other expressions.

    Attributes:
        function: what is done.
        arguments: to what; None for an optional argument that was not given.
        type: of the result.
    """

    function: "Function"
    arguments: tuple["Expr | None", ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Bound:
    """The element that an expression over each element of an array stands for."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Lambda:
    """An expression over each element of arrays: ``a[] > 2``.

    Attributes:
        array: whose elements.
        bound: the name for one of them.
        body: what is computed of it.
        type: an array of what the body gives.
    """

    array: "Expr"
    bound: Bound
    body: "Expr"
    type: Type


@dataclass(frozen=True, slots=True)
class InQuery:
    """Whether the value is among the first column of a query."""

    operand: "Expr"
    node: "Node"
    column: Column
    type: Type


Expr: TypeAlias = Ref | Constant | Apply | Bound | Lambda | InQuery


@dataclass(eq=False)
class Scan:
    """The records of a table.

    Attributes:
        table: what was named: ``logs``, or a path.
        columns: the fields of the table.
        attributes: the keys of its attributes that were asked for.
        taken: the names of all its columns, also of those that the language cannot show.
        unshown: the columns that the language has no type for.
        varying: the columns that are not of one type in all data files.
        since: of this time and later, in microseconds.
        until: before this time.
    """

    table: str
    columns: dict[str, Column] = field(default_factory=dict)
    attributes: dict[str, Column] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()
    unshown: tuple[str, ...] = ()
    varying: frozenset[str] = frozenset()
    since: int | None = None
    until: int | None = None


@dataclass(eq=False)
class Values:
    """Records that stand in the query."""

    columns: list[Column]
    rows: list[tuple["Expr", ...]]


@dataclass(eq=False)
class Filter:
    """The records for which the condition is true."""

    input: "Node"
    condition: Expr


@dataclass(eq=False)
class Project:
    """Columns computed from those of the input; those of the input stay there to be used."""

    input: "Node"
    columns: dict[Column, Expr]


@dataclass(eq=False)
class Aggregate:
    """One record for each group."""

    input: "Node"
    keys: dict[Column, Expr]
    measures: dict[Column, Expr]


@dataclass(eq=False)
class Sort:
    """A key to sort by: an expression and whether the greatest comes first."""

    expression: Expr
    descends: bool = False


@dataclass(eq=False)
class Order:
    """The records in an order; it lasts as long as what follows keeps it."""

    input: "Node"
    keys: Sequence[Sort]


@dataclass(eq=False)
class Limit:
    """The first so many."""

    input: "Node"
    count: int


@dataclass(eq=False)
class Dedup:
    """One record for each distinct value of the keys, the first by the order."""

    input: "Node"
    keys: Sequence[Expr]
    order: Sequence[Sort]


@dataclass(eq=False)
class Expand:
    """One record for each element of an array; one with null where there is none."""

    input: "Node"
    array: Expr
    element: Column
    limit: int | None = None


@dataclass(eq=False)
class Union:
    """The records of both; each of the columns comes from a column of each side, or is null there."""

    left: "Node"
    right: "Node"
    columns: dict[Column, tuple[Expr, Expr]]


@dataclass(eq=False)
class Join:
    """Pairs of records for which the condition holds."""

    left: "Node"
    right: "Node"
    kind: str
    pairs: Sequence[tuple[Expr, Expr]]


@dataclass(eq=False)
class Series:
    """Groups with an array for each measure: a value for each slot of time.

    Attributes:
        input: the records.
        keys: the groups.
        measures: what is computed of the records of a slot.
        fills: the value of a slot without records, by measure.
        rates: the time, in nanoseconds, that a measure is given for instead of for its slot.
        time: which slot a record belongs to.
        bounds: the timeframe and interval; see `timeseries.py`.
        timeframe: the column that tells from when to when.
        interval: the column that tells how long a slot is.
        arrays: the column for each measure.
        is_nonempty: whether there is a row even without records.
    """

    input: "Node"
    keys: dict[Column, Expr]
    measures: dict[Column, Expr]
    fills: dict[Column, "Expr | None"]
    rates: dict[Column, int]
    time: Expr
    bounds: "SeriesBounds"
    timeframe: Column
    interval: Column
    arrays: dict[Column, Column]
    is_nonempty: bool = False


@dataclass(frozen=True)
class SeriesBounds:
    """When the slots begin and end, as far as that is known before the records are.

    Attributes:
        since: the begin; None for that of the records.
        until: the end; None for that of the records.
        interval: of a slot, in microseconds; None for the best of about `bins` slots.
        bins: about so many slots.
    """

    since: int | None
    until: int | None
    interval: int | None
    bins: int


Node: TypeAlias = Scan | Values | Filter | Project | Aggregate | Order | Limit | Dedup | Expand | Union | Join | Series


def inputs(node: Node) -> tuple[Node, ...]:
    """What a node works on."""
    if isinstance(node, Union | Join):
        return node.left, node.right
    return () if isinstance(node, Scan | Values) else (node.input,)


def children(expression: Expr) -> Iterator[Expr]:
    """What an expression is computed from."""
    if isinstance(expression, Apply):
        yield from (argument for argument in expression.arguments if argument is not None)
    elif isinstance(expression, Lambda):
        yield expression.array
        yield expression.body
    elif isinstance(expression, InQuery):
        yield expression.operand


def walk(expression: Expr) -> Iterator[Expr]:
    """An expression and all in it, each before its parts."""
    pending = [expression]
    while pending:
        part = pending.pop()
        yield part
        pending += [*children(part)][::-1]


def columns_of(expression: Expr) -> Iterator[Column]:
    """The columns that an expression needs."""
    return (part.column for part in walk(expression) if isinstance(part, Ref))


def nodes(node: Node) -> Iterator[Node]:
    """A node and all that it works on, each before its inputs."""
    pending = [node]
    while pending:
        part = pending.pop()
        yield part
        pending += inputs(part)[::-1]


def queries(node: Node) -> Iterator[Node]:
    """The queries in brackets that the expressions of a node ask."""
    for expression in expressions(node):
        for part in walk(expression):
            if isinstance(part, InQuery):
                yield part.node


def scans(node: Node) -> Iterator[Scan]:
    """All tables that a plan reads, including those of queries in conditions."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, Scan):
            yield part
        pending += [*inputs(part), *queries(part)][::-1]


def expressions(node: Node) -> Iterator[Expr]:
    """The expressions that stand in a node itself."""
    if isinstance(node, Filter):
        yield node.condition
    elif isinstance(node, Project):
        yield from node.columns.values()
    elif isinstance(node, Aggregate):
        yield from (*node.keys.values(), *node.measures.values())
    elif isinstance(node, Order):
        yield from (key.expression for key in node.keys)
    elif isinstance(node, Dedup):
        yield from (*node.keys, *(key.expression for key in node.order))
    elif isinstance(node, Expand):
        yield node.array
    elif isinstance(node, Union):
        yield from (side for pair in node.columns.values() for side in pair)
    elif isinstance(node, Join):
        yield from (side for pair in node.pairs for side in pair)
    elif isinstance(node, Series):
        yield from (*node.keys.values(), *node.measures.values(), node.time)
        yield from (fill for fill in node.fills.values() if fill is not None)


LiftedT = TypeVar("LiftedT", Aggregate, Order)


def lifted(node: LiftedT) -> LiftedT:
    """The node with queries in brackets computed before it: engines know them in few places only."""
    columns: dict[Column, Expr] = {}

    def lift(expression: Expr) -> Expr:
        if isinstance(expression, InQuery):
            column = Column("among", expression.type)
            columns[column] = expression
            return Ref(column)
        if isinstance(expression, Apply):
            return replace(expression, arguments=tuple(None if a is None else lift(a) for a in expression.arguments))
        return expression

    if not any(isinstance(part, InQuery) for expression in expressions(node) for part in walk(expression)):
        return node
    if isinstance(node, Order):
        keys = [Sort(lift(key.expression), key.descends) for key in node.keys]
        return Order(Project(node.input, columns), keys)
    groups = {column: lift(value) for column, value in node.keys.items()}
    measures = {column: lift(value) for column, value in node.measures.items()}
    return Aggregate(Project(node.input, columns), groups, measures)
