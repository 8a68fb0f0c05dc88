"""The logical plan: typed expressions over columns, and the table operations that use them.

A column is identified by object, not by name: a rename creates no new column in the engine, two field names may differ
only in case, and no name that a user chose reaches the engine's SQL.
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
    """A column of a node; its hint gives its name in SQL."""

    __slots__ = ("hint", "number", "type")

    def __init__(self, hint: str, type_: Type) -> None:
        self.hint = hint
        """The field's name when the column was created, to keep the SQL readable."""
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
        """The type of the column."""
        return self.column.type


@dataclass(frozen=True, slots=True)
class Constant:
    """A value: a string, number, boolean or null; times and durations are numbers."""

    value: Any
    type: Type


@dataclass(frozen=True, slots=True)
class Apply:
    """A function applied to expressions.

    Attributes:
        function: the function.
        arguments: its arguments; None for an omitted optional argument.
        type: the type of the result.
    """

    function: "Function"
    arguments: tuple["Expr | None", ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Bound:
    """The current element in the body of a `Lambda`."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Lambda:
    """An expression over each element of arrays: ``a[] > 2``.

    Attributes:
        array: the array.
        bound: the variable for an element.
        body: the expression to compute for each element.
        type: an array of the body's type.
    """

    array: "Expr"
    bound: Bound
    body: "Expr"
    type: Type


@dataclass(frozen=True, slots=True)
class InQuery:
    """Whether the value is in the first column of a query."""

    operand: "Expr"
    node: "Node"
    column: Column
    type: Type


Expr: TypeAlias = Ref | Constant | Apply | Bound | Lambda | InQuery


@dataclass(eq=False)
class Scan:
    """The records of a table.

    Attributes:
        table: ``logs``, or a path.
        columns: the fields of the table.
        attributes: the keys of its attributes that the query uses.
        taken: the names of all its columns, including those that the language cannot show.
        unshown: the columns that the language has no type for.
        varying: the columns whose type differs between data files.
        since: the earliest time, in microseconds.
        until: the end of the timeframe, exclusive.
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
    """Records given in the query itself."""

    columns: list[Column]
    rows: list[tuple["Expr", ...]]


@dataclass(eq=False)
class Filter:
    """The records for which the condition is true."""

    input: "Node"
    condition: Expr


@dataclass(eq=False)
class Project:
    """Computed columns in addition to those of the input."""

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
    """A key to sort by: an expression, and whether the greatest value comes first."""

    expression: Expr
    descends: bool = False


@dataclass(eq=False)
class Order:
    """Sorted records; the order lasts as long as later nodes preserve it."""

    input: "Node"
    keys: Sequence[Sort]


@dataclass(eq=False)
class Limit:
    """The first `count` records."""

    input: "Node"
    count: int


@dataclass(eq=False)
class Dedup:
    """The first record, by `order`, for each distinct value of the keys."""

    input: "Node"
    keys: Sequence[Expr]
    order: Sequence[Sort]


@dataclass(eq=False)
class Expand:
    """One record for each element of an array; one with null if there are no elements."""

    input: "Node"
    array: Expr
    element: Column
    limit: int | None = None


@dataclass(eq=False)
class Union:
    """The records of both sides; each column has one expression for each side."""

    left: "Node"
    right: "Node"
    columns: dict[Column, tuple[Expr, Expr]]


@dataclass(eq=False)
class Join:
    """Pairs of records with equal keys."""

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
        measures: the aggregations over the records of a slot.
        fills: the value of a slot without records, by measure.
        rates: the time, in nanoseconds, that a measure is scaled to instead of its slot.
        time: the time of a record, which determines its slot.
        bounds: the timeframe and interval; see `timeseries.py`.
        timeframe: the column for the start and end.
        interval: the column for the length of a slot.
        arrays: the array column of each measure.
        is_nonempty: whether to return a row even without records.
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
    """The start, end and length of slots, as far as they are known before the query runs.

    Attributes:
        since: the start; None to take it from the records.
        until: the end; None to take it from the records.
        interval: the length of a slot, in microseconds; None to choose one that gives about `bins` slots.
        bins: the approximate number of slots.
    """

    since: int | None
    until: int | None
    interval: int | None
    bins: int


Node: TypeAlias = Scan | Values | Filter | Project | Aggregate | Order | Limit | Dedup | Expand | Union | Join | Series


def inputs(node: Node) -> tuple[Node, ...]:
    """The input nodes of a node."""
    if isinstance(node, Union | Join):
        return node.left, node.right
    return () if isinstance(node, Scan | Values) else (node.input,)


def children(expression: Expr) -> Iterator[Expr]:
    """The direct operands of an expression."""
    if isinstance(expression, Apply):
        yield from (argument for argument in expression.arguments if argument is not None)
    elif isinstance(expression, Lambda):
        yield expression.array
        yield expression.body
    elif isinstance(expression, InQuery):
        yield expression.operand


def walk(expression: Expr) -> Iterator[Expr]:
    """An expression and all expressions in it, each before its parts."""
    pending = [expression]
    while pending:
        part = pending.pop()
        yield part
        pending += [*children(part)][::-1]


def columns_of(expression: Expr) -> Iterator[Column]:
    """The columns that an expression needs."""
    return (part.column for part in walk(expression) if isinstance(part, Ref))


def nodes(node: Node) -> Iterator[Node]:
    """A node and all nodes below it, each before its inputs."""
    pending = [node]
    while pending:
        part = pending.pop()
        yield part
        pending += inputs(part)[::-1]


def queries(node: Node) -> Iterator[Node]:
    """The queries in brackets in the expressions of a node."""
    for expression in expressions(node):
        for part in walk(expression):
            if isinstance(part, InQuery):
                yield part.node


def scans(node: Node) -> Iterator[Scan]:
    """All scans of a plan, including those in queries within conditions."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, Scan):
            yield part
        pending += [*inputs(part), *queries(part)][::-1]


def expressions(node: Node) -> Iterator[Expr]:
    """The expressions of a node, without those of its inputs."""
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
    """Move subqueries in expressions into a projection before the node: engines allow them in few places."""
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
