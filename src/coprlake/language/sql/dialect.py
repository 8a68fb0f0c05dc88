"""The words in which engines differ, and the pieces of SQL that everything is built of.

SQL is built as a tree, never as text. Function calls are spelled here with the engine's own names, so that nothing is
translated behind our back.
"""

from collections.abc import Callable, Sequence
from typing import Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from coprlake.language.functions.array_functions import ArrayFunction
from coprlake.language.sql.sql_text import rendered
from coprlake.language.types import Type, member_names

_CARRIED: Final = {
    "boolean": "BOOLEAN",
    "long": "BIGINT",
    "double": "DOUBLE",
    "timestamp": "BIGINT",
    "duration": "BIGINT",
}


def simple_type(name: str) -> exp.DataType:
    """A type of an engine by its name; a hundred times faster than to have the name parsed."""
    return exp.DataType(this=exp.DataType.Type[name])


class Dialect:
    """What is common to both engines."""

    name: str

    def __init__(self) -> None:
        self.array_functions: dict[str, ArrayFunction] = {}
        """What has to be known to the engine before it runs the query."""
        self._bound = 0

    def render(self, tree: exp.Expression, *, pretty: bool = False) -> str:
        """The text of the SQL."""
        raise NotImplementedError

    def pick(self, *, duckdb: str, spark: str) -> str:
        """The name of a function in this engine."""
        return duckdb if self.name == "duckdb" else spark

    @property
    def is_spark(self) -> bool:
        """Whether this is Spark."""
        return self.name == "spark"

    # Values

    def text(self, value: str) -> exp.Expression:
        """A text."""
        return exp.Literal.string(value)

    def long(self, value: int) -> exp.Expression:
        """A whole number of 64 bits."""
        if value == -(2**63):  # its positive is not a number of 64 bits
            return exp.Paren(this=exp.Sub(this=self.long(value + 1), expression=self.long(1)))
        number: exp.Expression = exp.Literal.number(abs(value))
        return exp.Cast(this=exp.Neg(this=number) if value < 0 else number, to=simple_type("BIGINT"))

    def double(self, value: float) -> exp.Expression:
        """A floating number, also one that is infinite or none."""
        return exp.Cast(this=exp.Literal.string(repr(value)), to=simple_type("DOUBLE"))

    def null(self, kind: Type) -> exp.Expression:
        """No value, of a type."""
        return self.cast(exp.Null(), kind)

    def true(self) -> exp.Expression:
        """True."""
        return exp.true()

    def false(self) -> exp.Expression:
        """False."""
        return exp.false()

    # Forms

    def call(self, name: str, *arguments: exp.Expression) -> exp.Expression:
        """A function of the engine."""
        return exp.Anonymous(this=name, expressions=list(arguments))

    def apply(self, function: ArrayFunction, *arguments: exp.Expression) -> exp.Expression:
        """One of our own functions."""
        self.array_functions[function.name] = function
        return self.call(function.name, *arguments)

    def case(self, *branches: tuple[exp.Expression, exp.Expression], default: exp.Expression) -> exp.Expression:
        """The value of the first condition that is true."""
        tree = exp.Case(default=default)
        for condition, value in branches:
            tree = tree.when(condition, value, copy=False)
        return tree

    def is_null(self, value: exp.Expression) -> exp.Expression:
        """Whether there is no value."""
        return exp.Paren(this=exp.Is(this=value, expression=exp.Null()))

    def is_true(self, value: exp.Expression) -> exp.Expression:
        """True if it is true, else false."""
        return self.call("coalesce", value, exp.false())

    def both(self, *parts: exp.Expression) -> exp.Expression:
        """All parts; a balanced tree, since engines do not like deep ones."""
        return self._balanced(exp.And, parts, exp.true())

    def either(self, *parts: exp.Expression) -> exp.Expression:
        """Some part."""
        return self._balanced(exp.Or, parts, exp.false())

    def _balanced(
        self, kind: type[exp.Expression], parts: Sequence[exp.Expression], none: exp.Expression
    ) -> exp.Expression:
        if not parts:
            return none
        if len(parts) == 1:
            return parts[0]
        middle = len(parts) // 2
        left, right = self._balanced(kind, parts[:middle], none), self._balanced(kind, parts[middle:], none)
        return exp.Paren(this=kind(this=left, expression=right))

    def no(self, value: exp.Expression) -> exp.Expression:
        """Not."""
        return exp.Not(this=exp.Paren(this=value))

    def binary(
        self, kind: type[exp.Expression] | type[exp.Binary], left: exp.Expression, right: exp.Expression
    ) -> exp.Expression:
        """Two operands, in parentheses."""
        return exp.Paren(this=kind(this=left, expression=right))

    def equal(self, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        """``=``."""
        return self.binary(exp.EQ, left, right)

    def plus(self, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        """``+``."""
        return self.binary(exp.Add, left, right)

    def minus(self, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        """``-``."""
        return self.binary(exp.Sub, left, right)

    def times(self, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        """``*``."""
        return self.binary(exp.Mul, left, right)

    def cast(self, value: exp.Expression, kind: Type) -> exp.Expression:
        """A value as another type, which it has to fit into."""
        return exp.Cast(this=value, to=self.data_type(kind))

    def try_cast(self, value: exp.Expression, kind: Type) -> exp.Expression:
        """A value as another type, or null."""
        return exp.TryCast(this=value, to=self.data_type(kind), safe=True)

    def floor_divide(self, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        """Whole numbers, rounded down; the divisor is positive."""
        is_behind = self.binary(exp.LT, self.call("mod", left, right), self.long(0))
        less = self.case((is_behind, self.long(1)), default=self.long(0))
        return self.minus(self.quotient(left.copy(), right.copy()), less)

    def quotient(self, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        """Whole numbers, rounded to zero; the divisor is not zero."""
        raise NotImplementedError

    def data_type(self, kind: Type) -> exp.DataType:
        """The type that carries values of a type."""
        if kind.kind == "array":
            assert kind.element
            return self._array_type(self.data_type(kind.element))
        if kind.kind == "record":
            members = [
                exp.ColumnDef(this=exp.to_identifier(name, quoted=True), kind=self.data_type(member))
                for name, member in zip(member_names(kind), (member for _, member in kind.members), strict=True)
            ]
            return exp.DataType(this=exp.DataType.Type.STRUCT, expressions=members, nested=True)
        if kind.kind == "map":
            text = simple_type("TEXT")
            return exp.DataType(this=exp.DataType.Type.MAP, expressions=[text, text.copy()], nested=True)
        return simple_type(_CARRIED.get(kind.kind, "TEXT"))

    def _array_type(self, element: exp.DataType) -> exp.DataType:
        return exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[element], nested=True)

    # Texts, arrays and records, where the engines use other words

    def matches(self, value: exp.Expression, pattern: str) -> exp.Expression:
        """Whether a regular expression of ours, in what RE2 and Java have in common, is found in a text."""
        return self.call(self.pick(duckdb="regexp_matches", spark="regexp_like"), value, self.text(pattern))

    def element(self, values: exp.Expression, index: exp.Expression) -> exp.Expression:
        """An element, counted from 1; null if there is none."""
        return self.call(self.pick(duckdb="list_extract", spark="try_element_at"), values, index)

    def entry(self, values: exp.Expression, key: exp.Expression) -> exp.Expression:
        """The value of a map for a key, or null."""
        raise NotImplementedError

    def size(self, values: exp.Expression) -> exp.Expression:
        """How many elements an array has."""
        name = self.pick(duckdb="len", spark="array_size")
        return exp.Cast(this=self.call(name, values), to=simple_type("BIGINT"))

    def member(self, value: exp.Expression, name: str) -> exp.Expression:
        """A member of a record, by the name that `member_names` gives it."""
        raise NotImplementedError

    def pack(self, names: Sequence[str], values: Sequence[exp.Expression]) -> exp.Expression:
        """A record of members with names that `member_names` gave."""
        raise NotImplementedError

    def list_of(self, values: Sequence[exp.Expression], element: Type) -> exp.Expression:
        """An array."""
        raise NotImplementedError

    def transform(self, values: exp.Expression, body: Callable[[exp.Expression], exp.Expression]) -> exp.Expression:
        """A function of each element."""
        return self._lambda(self.pick(duckdb="list_transform", spark="transform"), values, body)

    def keep(self, values: exp.Expression, body: Callable[[exp.Expression], exp.Expression]) -> exp.Expression:
        """The elements for which a condition is true."""
        return self._lambda(self.pick(duckdb="list_filter", spark="filter"), values, body)

    def bound_name(self) -> str:
        """A name for the variable of a lambda."""
        self._bound += 1
        return f"x{self._bound}"

    def _lambda(
        self, name: str, values: exp.Expression, body: Callable[[exp.Expression], exp.Expression]
    ) -> exp.Expression:
        bound = self.bound_name()
        variable = exp.to_identifier(bound)
        tree = exp.Lambda(this=body(exp.Column(this=exp.to_identifier(bound))), expressions=[variable])
        return self.call(name, values, tree)

    def range_to(self, count: exp.Expression) -> exp.Expression:
        """The whole numbers from 0 to before the count."""
        raise NotImplementedError


class _DuckGenerator(DuckDB.Generator):  # type: ignore[misc, valid-type]
    def lambda_sql(self, expression: exp.Lambda, arrow_sep: str = "->", wrap: bool = True) -> str:
        names = ", ".join(self.sql(name) for name in expression.expressions)
        return f"LAMBDA {names}: {self.sql(expression, 'this')}"

    def literal_sql(self, expression: exp.Literal) -> str:
        if not expression.is_string:
            return super().literal_sql(expression)
        pieces = ["'" + piece.replace("'", "''") + "'" for piece in str(expression.this).split("\0")]
        return pieces[0] if len(pieces) == 1 else f"({' || chr(0) || '.join(pieces)})"


class DuckDialect(Dialect):
    """DuckDB."""

    name = "duckdb"

    def render(self, tree: exp.Expression, *, pretty: bool = False) -> str:
        """The text of the SQL."""
        return rendered(_DuckGenerator(dialect="duckdb", identify=True, pretty=pretty, comments=False), tree)

    def quotient(self, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        """Whole numbers, rounded to zero."""
        return self.call("divide", left, right)

    def entry(self, values: exp.Expression, key: exp.Expression) -> exp.Expression:
        """The value of a map for a key, or null."""
        return self.call("map_extract_value", values, key)

    def member(self, value: exp.Expression, name: str) -> exp.Expression:
        """A member of a record."""
        return self.call("struct_extract", value, self.text(name))

    def pack(self, names: Sequence[str], values: Sequence[exp.Expression]) -> exp.Expression:
        """A record."""
        return exp.Struct(
            expressions=[
                exp.PropertyEQ(this=exp.to_identifier(name), expression=value)
                for name, value in zip(names, values, strict=True)
            ]
        )

    def list_of(self, values: Sequence[exp.Expression], element: Type) -> exp.Expression:
        """An array."""
        return exp.Cast(this=self.call("list_value", *values), to=self._array_type(self.data_type(element)))

    def range_to(self, count: exp.Expression) -> exp.Expression:
        """The whole numbers from 0."""
        return self.call("range", count)


class SparkDialect(Dialect):
    """Spark."""

    name = "spark"

    def render(self, tree: exp.Expression, *, pretty: bool = False) -> str:
        """The text of the SQL."""
        from coprlake.language.sql.spark_text import SparkGenerator  # loads sqlglot's Spark, which DuckDB does not need

        return rendered(SparkGenerator(dialect="spark", identify=True, pretty=pretty, comments=False), tree)

    def quotient(self, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        """Whole numbers, rounded to zero."""
        return exp.Paren(this=exp.IntDiv(this=left, expression=right))

    def entry(self, values: exp.Expression, key: exp.Expression) -> exp.Expression:
        """The value of a map for a key, or null."""
        return self.call("try_element_at", values, key)

    def member(self, value: exp.Expression, name: str) -> exp.Expression:
        """A member of a record."""
        return exp.Dot(this=exp.Paren(this=value), expression=exp.to_identifier(name, quoted=True))

    def pack(self, names: Sequence[str], values: Sequence[exp.Expression]) -> exp.Expression:
        """A record."""
        parts = [part for name, value in zip(names, values, strict=True) for part in (self.text(name), value)]
        return self.call("named_struct", *parts)

    def list_of(self, values: Sequence[exp.Expression], element: Type) -> exp.Expression:
        """An array."""
        return exp.Cast(this=self.call("array", *values), to=self._array_type(self.data_type(element)))

    def range_to(self, count: exp.Expression) -> exp.Expression:
        """The whole numbers from 0."""
        some = self.call("sequence", self.long(0), self.minus(count, self.long(1)))
        return self.case((self.binary(exp.GT, count, self.long(0)), some), default=self.list_of([], Type("long")))


DIALECTS: Final[dict[str, type[Dialect]]] = {"duckdb": DuckDialect, "spark": SparkDialect}
