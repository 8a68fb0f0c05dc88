"""From a logical plan to the SQL of an engine.

It goes from the result back to the tables and asks each step only for the columns that the later ones need, so a query
that needs two columns reads two. Values of users become literals of the tree, their names never become anything.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from coprlake.language import plan
from coprlake.language.depth import Steps, run
from coprlake.language.functions.values.operators import AND
from coprlake.language.functions.values.value_order import NESTED, sort_keys, tie_keys
from coprlake.language.plan import Apply, Bound, Column, Constant, Expr, InQuery, Lambda, Ref
from coprlake.language.sql.dialect import DIALECTS, Dialect, simple_type
from coprlake.language.sql.iterating import iterated
from coprlake.language.sql.relation import Names, Relation, identifier, of_select, ordered
from coprlake.language.sql.series import lower_series
from coprlake.language.times import Months
from coprlake.language.types import LONG

_MANY_ROWS: Final = 16
_KINDS = {"inner": "INNER", "leftOuter": "LEFT", "outer": "FULL"}


@dataclass
class ScanNeeds:
    """What a query wants of one table.

    Attributes:
        scan: the table.
        view: the name under which the query reads it.
        columns: which columns, and their names in the view.
    """

    scan: plan.Scan
    view: str
    columns: dict[Column, str] = field(default_factory=dict)


@dataclass
class Lowered:
    """A query in the words of an engine."""

    tree: exp.Expression
    dialect: Dialect
    names: list[str]
    scans: list[ScanNeeds]

    def sql(self, *, pretty: bool = False) -> str:
        """The text."""
        return self.dialect.render(self.tree, pretty=pretty)


def lower(node: plan.Node, outputs: Sequence[Expr], engine: str) -> Lowered:
    """The SQL for these expressions over a plan."""
    lowering = Lowering(DIALECTS[engine]())
    columns = [Column(f"c{i}", value.type) for i, value in enumerate(outputs)]
    relation = lowering.with_ties_broken(
        lowering.node(plan.Project(node, dict(zip(columns, outputs, strict=True))), columns), columns
    )
    select, _ = relation.finished(lowering.names, columns, keeps_order=False, sorted_=True)
    names = [lowering.names.of(column) for column in columns]
    return Lowered(select, lowering.dialect, names, list(lowering.scans.values()))


class Lowering:
    """One translation."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.names = Names()
        self.scans: dict[plan.Scan, ScanNeeds] = {}
        self._bound: dict[str, list[exp.Expression]] = {}

    def node(self, node: plan.Node, needed: Iterable[Column]) -> Relation:
        """The rows of a node, with at least these columns."""
        return run(self._node(node, needed))

    def _node(self, node: plan.Node, needed: Iterable[Column]) -> Steps[Relation]:
        wanted = list(dict.fromkeys(needed))
        match node:
            case plan.Scan():
                return self._scan(node, wanted)
            case plan.Values():
                return self._values(node, wanted)
            case plan.Filter():
                return (yield self._filter(node, wanted))
            case plan.Project():
                return (yield self._project(node, wanted))
            case plan.Aggregate():
                return (yield self._aggregate(node, wanted))
            case plan.Order():
                return (yield self._order(node, wanted))
            case plan.Limit():
                return (yield self._limit(node, wanted))
            case plan.Dedup():
                return (yield self._dedup(node, wanted))
            case plan.Expand():
                return (yield self._expand(node, wanted))
            case plan.Union():
                return (yield self._union(node, wanted))
            case plan.Join():
                return (yield self._join(node, wanted))
            case plan.Series():
                return (yield self._series(node, wanted))

    def expression(self, value: Expr, relation: Relation) -> exp.Expression:
        """An expression at the level of a relation."""
        match value:
            case Ref():
                return relation.get(value.column)
            case Constant():
                return self.constant(value)
            case Bound():
                return self._bound[value.name][-1].copy()
            case Lambda():
                return self._lambda(value, relation)
            case InQuery():
                return self._in_query(value, relation)
            case Apply():
                arguments: list[exp.Expression | None] = []
                for part in value.arguments:  # a comprehension would nest twice as deep
                    arguments.append(None if part is None else self.expression(part, relation))  # noqa: PERF401
                return value.function.sql(self.dialect, value, arguments)

    def constant(self, value: Constant) -> exp.Expression:
        """A value as a literal of its type."""
        d, held = self.dialect, value.value
        if held is None:
            return d.null(value.type)
        if isinstance(held, Months):  # where the length of a month matters, it was dealt with before
            return d.long(held.count * 30 * 86_400 * 10**9)
        if isinstance(held, bool):
            return d.true() if held else d.false()
        if value.type.kind == "double":
            return d.double(float(held))
        return d.long(held) if isinstance(held, int) else d.text(str(held))

    def _lambda(self, value: Lambda, relation: Relation) -> exp.Expression:
        bound = self.dialect.bound_name()
        stack = self._bound.setdefault(value.bound.name, [])
        stack.append(exp.column(bound))
        body = self.expression(value.body, relation)
        stack.pop()
        return iterated(self.dialect, self.expression(value.array, relation), bound, body)

    def _in_query(self, value: InQuery, relation: Relation) -> exp.Expression:
        """Null for null: Spark would say false."""
        d, operand = self.dialect, self.expression(value.operand, relation)
        return d.case((d.is_null(operand), d.null(value.type)), default=self._among(value, relation))

    def _among(self, value: InQuery, relation: Relation) -> exp.Expression:
        inner = self.node(value.node, [value.column])
        select, _ = inner.finished(self.names, [value.column], keeps_order=False)
        operand = self.expression(value.operand, relation)
        return exp.Paren(this=exp.In(this=operand, query=exp.Subquery(this=select)))

    def _ready(self, node: plan.Node, expressions: Iterable[Expr], needed: Iterable[Column]) -> Steps[Relation]:
        """The rows of an input such that these expressions can be said at its level."""
        used = list(dict.fromkeys(column for value in expressions for column in plan.columns_of(value)))
        wanted = list(dict.fromkeys([*needed, *used]))
        relation: Relation = yield self._node(node, wanted)
        return relation if relation.is_plain(used) else relation.wrapped(self.names, wanted)

    def with_ties_broken(self, relation: Relation, columns: Sequence[Column]) -> Relation:
        """The same rows; those that are equal in what they are sorted by are sorted by these columns too.

        Without an order there is nothing to settle.
        """
        if not relation.order:
            return relation
        if not relation.is_plain(columns):
            relation = relation.wrapped(self.names, columns)
        relation.order = relation.order + self._ties(relation, columns, relation.order)
        return relation

    def _ties(
        self, relation: Relation, columns: Iterable[Column], order: Sequence[tuple[exp.Expression, bool]]
    ) -> list[tuple[exp.Expression, bool]]:
        """What to sort by where the order leaves it open; downwards if all of the order is.

        What engines compare by themselves comes first.
        """
        descends = bool(order) and all(down for _, down in order)
        known = {key for key, _ in order}
        found: list[tuple[exp.Expression, bool]] = []
        for column in sorted(columns, key=lambda column: column.type.kind in NESTED):
            keys = tie_keys(self.dialect, relation.get(column), column.type)
            found += [(key, descends) for key in keys if key not in known]
        return found

    # Nodes

    def _scan(self, node: plan.Scan, needed: list[Column]) -> Relation:
        needs = self.scans.get(node)
        if needs is None:
            needs = self.scans[node] = ScanNeeds(node, f"scan_{len(self.scans)}")
        for column in needed:
            needs.columns.setdefault(column, self.names.of(column))
        table = exp.Table(this=exp.to_identifier(needs.view, quoted=True))
        plain = {column: identifier(needs.columns[column]) for column in needed}
        return Relation(exp.Select().from_(table, copy=False), plain)

    def _values(self, node: plan.Values, needed: list[Column]) -> Relation:
        places = [node.columns.index(column) for column in needed]
        nothing = Relation(exp.Select(), {})
        parts: list[exp.Select] = []
        for row in node.rows:
            cells = [self.dialect.cast(self.expression(row[place], nothing), row[place].type) for place in places]
            parts.append(self._row(cells, needed))
        if len(parts) > _MANY_ROWS and all(isinstance(row[place], Constant) for row in node.rows for place in places):
            return self._inline(parts, needed)
        if not parts:
            empty = self._row([self.dialect.null(column.type) for column in needed], needed)
            parts = [empty.where(exp.false(), copy=False)]
        return of_select(self._united(parts), self.names, needed)

    def _inline(self, rows: list[exp.Select], columns: list[Column]) -> Relation:
        """Many rows of constants as VALUES, which engines plan faster than so many SELECTs."""
        cells = [exp.Tuple(expressions=[cell.this for cell in row.expressions]) for row in rows]
        names = [exp.to_identifier(self.names.of(column), quoted=True) for column in columns]
        alias = exp.TableAlias(this=exp.to_identifier(self.names.fresh("t"), quoted=True), columns=names)
        plain = {column: identifier(self.names.of(column)) for column in columns}
        return Relation(exp.Select().from_(exp.Values(expressions=cells, alias=alias), copy=False), plain)

    def _row(self, cells: list[exp.Expression], columns: list[Column]) -> exp.Select:
        named = [
            exp.alias_(cell, self.names.of(column), quoted=True) for cell, column in zip(cells, columns, strict=True)
        ]
        return exp.Select(expressions=named or [exp.alias_(exp.Literal.number(1), "nothing", quoted=True)])

    def _united(self, parts: Sequence[exp.Expression]) -> exp.Expression:
        if len(parts) == 1:
            return parts[0]
        middle = len(parts) // 2
        left, right = self._united(parts[:middle]), self._united(parts[middle:])
        return exp.Union(this=left, expression=right, distinct=False)

    def _filter(self, node: plan.Filter, needed: list[Column]) -> Steps[Relation]:
        relation: Relation = yield self._ready(node.input, [node.condition], needed)
        if relation.is_closed:
            columns = list(dict.fromkeys([*needed, *plan.columns_of(node.condition)]))
            relation = relation.wrapped(self.names, columns)
        condition = self._condition(node.condition, relation)
        relation.select = relation.select.where(condition, copy=False)
        return relation

    def _condition(self, condition: Expr, relation: Relation) -> exp.Expression:
        """Where null means false, a query in brackets is a plain IN, which engines plan as a join."""
        if isinstance(condition, InQuery):
            return self._among(condition, relation)
        if isinstance(condition, Apply) and condition.function is AND:
            parts = [self._condition(part, relation) for part in condition.arguments if part is not None]
            return self.dialect.both(*parts)
        return self.expression(condition, relation)

    def _project(self, node: plan.Project, needed: list[Column]) -> Steps[Relation]:
        made = {column: node.columns[column] for column in needed if column in node.columns}
        relation: Relation = yield self._ready(
            node.input, made.values(), [column for column in needed if column not in made]
        )
        if made and relation.is_closed:
            columns = [
                c
                for c in dict.fromkeys([*needed, *(c for e in made.values() for c in plan.columns_of(e))])
                if c not in made
            ]
            relation = relation.wrapped(self.names, columns)
        computed = {column: self.expression(value, relation) for column, value in made.items()}
        return Relation(relation.select, {**relation.columns, **computed}, relation.order, relation.is_closed)

    def _aggregate(self, node: plan.Aggregate, needed: list[Column]) -> Steps[Relation]:
        node = plan.lifted(node)
        measures = {column: value for column, value in node.measures.items() if column in needed}
        values = [*node.keys.values(), *measures.values()]
        relation: Relation = yield self._ready(node.input, values, [])
        if relation.is_closed:
            columns = list(dict.fromkeys(column for value in values for column in plan.columns_of(value)))
            relation = relation.wrapped(self.names, columns)
        projections = [
            exp.alias_(self.group_key(value, relation), self.names.of(column), quoted=True)
            for column, value in node.keys.items()
        ]
        projections += [
            exp.alias_(self.expression(value, relation), self.names.of(column), quoted=True)
            for column, value in measures.items()
        ]
        select = relation.select.select(
            *(projections or [exp.alias_(exp.Count(this=exp.Star()), self.names.fresh("rows"), quoted=True)]),
            append=False,
            copy=False,
        )
        keys = [self.group_key(value, relation) for value in node.keys.values()]
        keys = [key for key, value in zip(keys, node.keys.values(), strict=True) if not isinstance(value, Constant)]
        if node.keys and not keys:  # grouping by a constant: one group if there are rows, else none
            select = select.having(
                exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0)), copy=False
            )
        select = select.group_by(*keys, copy=False) if keys else select
        return of_select(select, self.names, [*node.keys, *measures])

    def group_key(self, value: Expr, relation: Relation) -> exp.Expression:
        """0.0 and -0.0 are one group, which is 0.0."""
        key = self.expression(value, relation)
        is_number = value.type.kind == "double" and not isinstance(value, Constant)
        return self.dialect.plus(key, self.dialect.double(0.0)) if is_number else key

    def _order(self, node: plan.Order, needed: list[Column]) -> Steps[Relation]:
        node = plan.lifted(node)
        relation: Relation = yield self._ready(node.input, [key.expression for key in node.keys], needed)
        relation.order = self._sort_keys(node.keys, relation)
        return relation

    def _sort_keys(self, keys: Iterable[plan.Sort], relation: Relation) -> list[tuple[exp.Expression, bool]]:
        return [
            (part, key.descends)
            for key in keys
            for part in sort_keys(self.dialect, self.expression(key.expression, relation), key.expression.type)
        ]

    def _limit(self, node: plan.Limit, needed: list[Column]) -> Steps[Relation]:
        """The first by the order. Without one: the first groups by their keys, the first as the table has them."""
        groups = list(_groups(node.input))
        columns = list(dict.fromkeys([*needed, *groups]))
        relation: Relation = yield self._node(node.input, columns)
        if relation.is_closed:
            relation = relation.wrapped(self.names, columns)
        if not relation.order and not _is_streamed(node.input):
            if not relation.is_plain(columns):
                relation = relation.wrapped(self.names, columns)
            relation.order = self._ties(relation, groups or columns, [])
        else:
            relation = self.with_ties_broken(relation, columns)
        relation.select = ordered(relation.select, relation.order).limit(node.count, copy=False)
        relation.is_closed = True
        return relation

    def _dedup(self, node: plan.Dedup, needed: list[Column]) -> Steps[Relation]:
        values = [*node.keys, *(key.expression for key in node.order)]
        relation: Relation = yield self._ready(node.input, values, needed)
        if relation.is_closed or not relation.is_plain(needed):
            columns = list(dict.fromkeys([*needed, *(c for value in values for c in plan.columns_of(value))]))
            relation = relation.wrapped(self.names, columns)
        keys = [self.expression(key, relation) for key in node.keys]
        by = self._sort_keys(node.order, relation)
        by += self._ties(relation, needed, by)
        order = [
            exp.Ordered(this=key, desc=descends, nulls_first=False)
            for key, descends in by or [(key.copy(), False) for key in keys]
        ]
        number = exp.Window(this=exp.RowNumber(), partition_by=keys, order=exp.Order(expressions=order), spec=None)
        place = Column("place", LONG)
        relation.columns[place] = number
        outer = relation.wrapped(self.names, [*needed, place])
        is_first = exp.EQ(this=outer.get(place), expression=exp.Literal.number(1))
        outer.select = outer.select.where(is_first, copy=False)
        return outer

    def _expand(self, node: plan.Expand, needed: list[Column]) -> Steps[Relation]:
        d = self.dialect
        others = [column for column in needed if column is not node.element]
        relation: Relation = yield self._ready(node.input, [node.array], others)
        if relation.is_closed:
            relation = relation.wrapped(self.names, list(dict.fromkeys([*others, *plan.columns_of(node.array)])))
        values = self.expression(node.array, relation)
        if node.limit is not None:
            name = d.pick(duckdb="list_slice", spark="slice")
            values = d.call(name, values, d.long(1), exp.Cast(this=d.long(node.limit), to=simple_type("INT")))
        single = d.list_of([d.null(node.element.type)], node.element.type)
        size = d.call("coalesce", d.size(values.copy()), d.long(0))
        filled = d.case((d.equal(size, d.long(0)), single), default=values)
        relation.columns[node.element] = d.call(d.pick(duckdb="unnest", spark="explode"), filled)
        return relation.wrapped(self.names, [*others, node.element])

    def _union(self, node: plan.Union, needed: list[Column]) -> Steps[Relation]:
        sides: list[exp.Expression] = []
        for place, part in enumerate((node.left, node.right)):
            values = [node.columns[column][place] for column in needed]
            relation: Relation = yield self._ready(part, values, [])
            if relation.is_closed:
                relation = relation.wrapped(
                    self.names, list(dict.fromkeys(c for v in values for c in plan.columns_of(v)))
                )
            cells = [self.expression(value, relation) for value in values]
            row = self._row(cells, needed)
            sides.append(relation.select.select(*row.expressions, append=False, copy=False))
        return of_select(self._united(sides), self.names, needed)

    def _join(self, node: plan.Join, needed: list[Column]) -> Steps[Relation]:
        left_has, right_has = set(_defined(node.left)), set(_defined(node.right))
        sides: list[Relation] = []
        for place, (part, has) in enumerate(((node.left, left_has), (node.right, right_has))):
            keys = [pair[place] for pair in node.pairs]
            wanted = [column for column in needed if column in has]
            wanted = list(dict.fromkeys([*wanted, *(c for key in keys for c in plan.columns_of(key))]))
            relation: Relation = yield self._node(part, wanted)
            sides.append(relation.wrapped(self.names, wanted, keeps_order=place == 0))
        left, right = sides
        conditions = [
            exp.EQ(this=self.expression(first, left), expression=self.expression(second, right))
            for first, second in node.pairs
        ]
        table = right.select.args.get("from_") or right.select.args["from"]
        join = exp.Join(this=table.this, on=exp.and_(*conditions), kind=None, side=None)
        join.set("side" if node.kind != "inner" else "kind", _KINDS[node.kind])
        left.select.append("joins", join)
        merged = Relation(left.select, {**left.columns, **right.columns}, left.order)
        return merged.wrapped(self.names, needed)

    def _series(self, node: plan.Series, needed: list[Column]) -> Steps[Relation]:
        relation: Relation = yield self._ready(node.input, plan.expressions(node), [])
        if relation.is_closed:
            columns = list(dict.fromkeys(c for value in plan.expressions(node) for c in plan.columns_of(value)))
            relation = relation.wrapped(self.names, columns)
        return lower_series(self, node, relation)


def _defined(node: plan.Node) -> Iterable[Column]:
    """The columns that a node has."""
    pending = [node]
    while pending:
        part = pending.pop()
        match part:
            case plan.Scan():
                yield from (*part.columns.values(), *part.attributes.values())
            case plan.Values() | plan.Union():
                yield from part.columns
            case plan.Aggregate():
                yield from (*part.keys, *part.measures)
            case plan.Series():
                yield from (*part.keys, part.timeframe, part.interval, *part.arrays.values())
            case plan.Project():
                yield from part.columns
                pending.append(part.input)
            case plan.Expand():
                yield part.element
                pending.append(part.input)
            case _:
                pending += plan.inputs(part)


def _groups(node: plan.Node) -> Iterable[Column]:
    """The columns that tell the rows of a node apart, if it makes groups."""
    while isinstance(node, plan.Project | plan.Filter):
        node = node.input
    return node.keys if isinstance(node, plan.Aggregate | plan.Series) else ()


def _is_streamed(node: plan.Node) -> bool:
    """Whether the rows come as they stand in tables or in the query, which an engine need not read to their end."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, plan.Filter | plan.Project | plan.Expand | plan.Union):
            pending += plan.inputs(part)
        elif not isinstance(part, plan.Scan | plan.Values | plan.Limit):
            return False
    return True
