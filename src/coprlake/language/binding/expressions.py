"""From what was written to a typed expression: names become columns, operators functions, and types are checked."""

from collections.abc import Callable
from typing import Any

from coprlake.language import syntax, times
from coprlake.language.binding import known_values
from coprlake.language.binding.arithmetic import aligned, arithmetic, negated
from coprlake.language.binding.calls import arguments_of, function_of, invoke, order_of
from coprlake.language.binding.comparisons import as_time, compare
from coprlake.language.binding.converting import a_kind, convert, expect, member_at
from coprlake.language.binding.session import QuerySession
from coprlake.language.binding.unknown_names import warn_unknown
from coprlake.language.functions.catalog import FUNCTIONS
from coprlake.language.functions.registry import Function
from coprlake.language.functions.values import operators
from coprlake.language.plan import (
    Apply,
    Bound,
    Column,
    Constant,
    Expr,
    Filter,
    InQuery,
    Lambda,
    Node,
    Project,
    Ref,
    walk,
)
from coprlake.language.scope import Scope, missing
from coprlake.language.types import BOOLEAN, DURATION, LONG, LOOSE, STRING, TIMESTAMP, array, common_type, record
from coprlake.records import DAY
from coprlake.text.nearest_words import hint

_LOGIC = {"and": operators.AND, "or": operators.OR, "xor": operators.XOR}


class Expressions:
    """Makes expressions in one place of a pipeline."""

    def __init__(
        self,
        session: QuerySession,
        scope: Scope,
        subquery: Callable[[syntax.Pipeline], Scope],
        *,
        aggregates: Callable[[Apply], Expr] | None = None,
    ) -> None:
        self.session = session
        self.scope = scope
        self._subquery = subquery
        self._aggregates = aggregates
        self._arrays: list[tuple[Expr, Bound]] | None = None

    # Entry points

    def bind(self, node: syntax.Value) -> Expr:
        """An expression; one with ``a[]`` in it gives an array."""
        arrays, self._arrays = self._arrays, []
        try:
            body = self._bind(node)
            return self._iterated(body, node.span) if self._arrays else body
        finally:
            self._arrays = arrays

    def condition(self, node: syntax.Value) -> Expr:
        """An expression that is true, false or null."""
        return expect(self.session, self.bind(node), BOOLEAN, node.span, "a condition")

    def constant(self, node: syntax.Value, what: str) -> Any:
        """The value of an expression that is known before the query runs."""
        found = self.bind(node)
        if not isinstance(found, Constant):
            self.session.fail(f"{what} has to be a constant", node.span)
        return found.value

    # Nodes

    def _bind(self, node: syntax.Value) -> Expr:
        match node:
            case syntax.Literal():
                return known_values.literal(self.session, node)
            case syntax.Duration():
                return known_values.duration(self.session, node)
            case syntax.Variable():
                return known_values.variable(self.session, node)
            case syntax.Name():
                return self._name(node)
            case syntax.Minus():
                return self._minus(node)
            case syntax.Binary():
                return self._binary(node)
            case syntax.Align():
                return self._align(node)
            case syntax.Logic():
                return self._logic(node)
            case syntax.Negation():
                operand = expect(self.session, self._bind(node.operand), BOOLEAN, node.operand.span, "what not negates")
                return Apply(operators.NOT, (operand,), BOOLEAN)
            case syntax.Within():
                return self._within(node)
            case syntax.Index():
                return self._index(node)
            case syntax.Call():
                return self._call(node)
            case syntax.Group():
                elements = [self._bind(argument.value) for argument in node.arguments]
                return known_values.listed(self.session, elements, node.span)
            case syntax.Block():
                return self.session.fail("a query in brackets cannot stand here", node.span)

    def _name(self, node: syntax.Name) -> Expr:
        if node.text == DAY and DAY not in self.scope.fields and self.scope.scan is not None:
            self.session.fail(
                "the day of a record is timestamp@d; the column day is for the folders of a table", node.span
            )
        warn_unknown(self.session, self.scope, node.text)
        return self.scope.find(node.text) or missing()

    # Operators

    def _minus(self, node: syntax.Minus) -> Expr:
        if isinstance(node.operand, syntax.Literal) and node.operand.value == 2**63:
            return Constant(-(2**63), LONG)
        return negated(self.session, self._bind(node.operand), node.span)

    def _logic(self, node: syntax.Logic) -> Expr:
        parts: list[Expr] = []
        for part in node.parts:
            found = self._bind(part)
            parts.append(expect(self.session, found, BOOLEAN, part.span, f"what {node.operator} joins"))
        return Apply(_LOGIC[node.operator], tuple(parts), BOOLEAN)

    def _binary(self, node: syntax.Binary) -> Expr:
        if node.operator == "~":
            return self._search(node)
        shifted = node.right
        if node.operator in "+-" and isinstance(shifted, syntax.Align) and shifted.operand is not None:
            left = self._bind(node.left)
            if left.type == TIMESTAMP:  # now()-1d@d means (now()-1d)@d
                moved = arithmetic(self.session, node.operator, left, self._bind(shifted.operand), node.span)
                return aligned(self.session, moved, shifted)
        left, right = self._bind(node.left), self._bind(node.right)
        if node.operator in operators.COMPARISONS:
            return self._comparison(node, left, right)
        operator = "%" if node.operator == "mod" else node.operator
        return arithmetic(self.session, operator, left, right, node.span)

    def _search(self, node: syntax.Binary) -> Expr:
        if not isinstance(self._bind(node.right), Constant):
            self.session.fail("~ looks for a constant text; compare fields by ==, or use contains()", node.right.span)
        sides = [self._bind(node.left), self._bind(node.right)]
        return invoke(self.session, FUNCTIONS["~"], sides, node.span)

    def _comparison(self, node: syntax.Binary, left: Expr, right: Expr) -> Expr:
        left, right = as_time(self.session, left, right, node.left), as_time(self.session, right, left, node.right)
        found = compare(self.session, node.operator, left, right)
        if isinstance(found, Apply) and found.function is operators.INCOMPARABLE:
            self.session.warn(
                f"{a_kind(left.type)} and {a_kind(right.type)} cannot be compared, so {node.operator} is constant"
            )
        return found

    def _align(self, node: syntax.Align) -> Expr:
        operand = Constant(self.session.now, TIMESTAMP) if node.operand is None else self._bind(node.operand)
        if operand.type == DURATION:  # -2h@h: two hours ago, rounded
            operand = arithmetic(self.session, "+", Constant(self.session.now, TIMESTAMP), operand, node.span)
        return aligned(self.session, operand, node)

    def _within(self, node: syntax.Within) -> Expr:
        operand = self._bind(node.operand)
        if isinstance(node.choices, syntax.Group):
            choices = [self._bind(argument.value) for argument in node.choices.arguments]
            return invoke(self.session, FUNCTIONS["in"], [operand, *choices], node.span)
        inner = self._subquery(node.choices.pipeline)
        if not inner.fields:
            self.session.fail("the query in brackets has no fields", node.choices.span)
        value = next(iter(inner.fields.values()))
        kind = common_type(operand.type, value.type)
        left, right = (None, None) if kind is None else (convert(operand, kind), convert(value, kind))
        if left is None or right is None:
            return compare(self.session, "==", operand, Constant(None, value.type))
        return _in_query(left, inner.node, right)

    # Parts of values

    def _index(self, node: syntax.Index) -> Expr:
        operand = self._bind(node.operand)
        if node.key is None:
            return self._each(operand, node)
        kind = operand.type
        if kind.kind == "array":
            key = expect(self.session, self._bind(node.key), LONG, node.key.span, "the index of an array")
            assert kind.element
            return Apply(operators.ELEMENT, (operand, key), kind.element)
        name = node.key.text if isinstance(node.key, syntax.Name) else self.constant(node.key, "the name of a member")
        if kind.kind == "null":
            return operand
        if kind.kind == "record":
            return self._member(operand, str(name))
        if kind.kind == "map":
            return Apply(operators.ENTRY, (operand, Constant(str(name), STRING)), LOOSE)
        if kind.is_loose:
            path = f"$[{name}]" if isinstance(name, int) else str(name)
            function = FUNCTIONS["jsonpath" if isinstance(name, int) else "jsonfield"]
            return Apply(function, (operand, Constant(path, STRING)), LOOSE)
        return self.session.fail(f"{a_kind(kind)} has no members; [] follows an array or record", node.span)

    def _member(self, operand: Expr, name: str) -> Expr:
        names = [member for member, _ in operand.type.members]
        if name not in names:
            self.session.warn(f"the record has no member {name}, so it is null{hint(name, names)}")
            return missing()
        return member_at(operand, names.index(name))

    def _each(self, operand: Expr, node: syntax.Index) -> Expr:
        if operand.type.kind == "null":
            return operand
        if operand.type.kind != "array":
            self.session.fail(f"[] goes through the elements of an array, found {a_kind(operand.type)}", node.span)
        assert self._arrays is not None
        assert operand.type.element
        for known, bound in self._arrays:
            if known == operand:
                return bound
        bound = Bound(f"e{len(self._arrays)}", operand.type.element)
        self._arrays.append((operand, bound))
        return bound

    def _iterated(self, body: Expr, span: syntax.Span) -> Expr:
        assert self._arrays
        if len(self._arrays) > 1:
            self.session.fail("only one array at a time can be gone through by []", span)
        if any(isinstance(part, InQuery) for part in walk(body)):
            self.session.fail("a query in brackets cannot be asked for each element; expand the array first", span)
        operand, bound = self._arrays[0]
        return Lambda(operand, bound, body, array(body.type))

    # Functions

    def _call(self, node: syntax.Call) -> Expr:
        name = node.name.lower()
        if name == "record":
            return self._record(node)
        if name == "now":
            if node.arguments:
                self.session.fail("now() takes no arguments", node.span)
            return Constant(self.session.now, TIMESTAMP)
        function = function_of(self.session, node)
        if function.is_aggregate:
            return self._aggregate(function, node)
        iterates = function.name.startswith("i") and function.group == "arrays" and function.name[1:2].isupper()
        arguments = arguments_of(self.session, function, node, self.bind if iterates else self._bind)
        if name == "totimestamp" and isinstance(arguments[0], Constant) and isinstance(arguments[0].value, str):
            moment = times.parse_time(arguments[0].value)
            if moment is None:
                self.session.warn(f"{arguments[0].value!r} is no time in ISO format, so toTimestamp gives null")
            return Constant(moment, TIMESTAMP)  # so that it can prune
        return invoke(self.session, function, arguments, node.span)

    def _aggregate(self, function: Function, node: syntax.Call) -> Expr:
        if self._aggregates is None:
            self.session.fail(
                f"{function.name} works on many records: use it in summarize or makeTimeseries", node.span
            )
        aggregates, self._aggregates = self._aggregates, None
        arguments = arguments_of(self.session, function, node, self._bind)
        self._aggregates = aggregates
        if any(isinstance(part, Apply) and part.function.is_aggregate for a in arguments if a for part in walk(a)):
            self.session.fail(f"{function.name} cannot be used inside another aggregation", node.span)
        if function.name in ("takeFirst", "takeLast", "collectArray"):
            arguments += order_of(self.session, function, self.scope, node.span)
        applied = invoke(self.session, function, arguments, node.span)
        return aggregates(applied) if isinstance(applied, Apply) else applied

    def _record(self, node: syntax.Call) -> Expr:
        members: dict[str, Expr] = {}
        for argument in node.arguments:
            alias = argument.alias.text if argument.alias else None
            if alias is None and isinstance(argument.value, syntax.Name):
                alias = argument.value.text
            if alias is None:
                self.session.fail("a member of a record needs a name: record(a = 1)", argument.span)
            members[alias] = self._bind(argument.value)
        kind = record(tuple((name, member.type) for name, member in members.items()))
        return Apply(operators.RECORD, tuple(members.values()), kind)


def _in_query(operand: Expr, node: Node, value: Expr) -> InQuery:
    """Whether the operand is among the values of an expression over a query."""
    column = Column("value", value.type)
    there = Apply(FUNCTIONS["isnotnull"], (Ref(column),), BOOLEAN)
    return InQuery(operand, Filter(Project(node, {column: value}), there), column, BOOLEAN)
