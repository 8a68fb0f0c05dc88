"""From what was written to a typed expression: names become columns, operators functions, and types are checked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NoReturn

from coprlake.errors import QueryError, UsageError
from coprlake.language import syntax, times
from coprlake.language.functions.catalog import FUNCTIONS
from coprlake.language.functions.registry import Function, Parameter, named_type
from coprlake.language.functions.values import operators
from coprlake.language.plan import Apply, Bound, Constant, Expr, InQuery, Lambda, Sort, walk
from coprlake.language.scope import Scope, missing
from coprlake.language.suggestions import hint, nearest
from coprlake.language.times import Months
from coprlake.language.types import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    LONG,
    LOOSE,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    array,
    common_type,
    record,
)
from coprlake.records import DAY

if TYPE_CHECKING:
    from coprlake.language.plan import Node

_ORDERED: Final = frozenset({"long", "double", "string", "timestamp", "duration", "boolean", "ip"})


@dataclass
class Session:
    """What a query knows besides its text.

    Attributes:
        text: the query.
        now: the time at its start, in microseconds.
        variables: the values of ``$names``.
        warnings: what the user should be told, though the query runs.
    """

    text: str
    now: int
    variables: Mapping[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def fail(self, problem: str, span: syntax.Span) -> NoReturn:
        """Refuse the query, and point at the place."""
        raise QueryError(problem, self.text, span.start, span.end)

    def warn(self, message: str) -> None:
        """Tell the user once."""
        if message not in self.warnings:
            self.warnings.append(message)


class Expressions:
    """Makes expressions in one place of a pipeline."""

    def __init__(
        self,
        session: Session,
        scope: Scope,
        subquery: "Callable[[syntax.Pipeline], Scope]",
        *,
        aggregates: "Callable[[Apply], Expr] | None" = None,
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
        found = self.bind(node)
        return self.expect(found, BOOLEAN, node.span, "a condition")

    def constant(self, node: syntax.Value, what: str) -> Any:
        """The value of an expression that is known before the query runs."""
        found = self.bind(node)
        if not isinstance(found, Constant):
            self.session.fail(f"{what} has to be a constant", node.span)
        return found.value

    def expect(self, found: Expr, kind: Type, span: syntax.Span, what: str) -> Expr:
        """The expression as a value of this type."""
        converted = self.convert(found, kind)
        if converted is None:
            advice = "; convert it by toString()" if kind == STRING else ""
            self.session.fail(f"{what}: expected {_a(kind)}, found {_a(found.type)}{advice}", span)
        return converted

    def convert(self, found: Expr, kind: Type) -> Expr | None:
        """The expression as another type, if values are taken for that without being asked to."""
        have = found.type
        if have == kind or (have.is_text and kind == STRING):
            return found
        if have.kind == "null":
            return Constant(None, kind) if isinstance(found, Constant) else Apply(operators.CAST, (found,), kind)
        if have == LONG and kind == DOUBLE:
            return Constant(float(found.value), DOUBLE) if isinstance(found, Constant) else _cast(found, DOUBLE)
        if have.is_loose and kind.kind in operators.FROM_TEXT:
            return Apply(operators.FROM_LOOSE, (found,), kind)
        if have.kind == kind.kind == "array" and have.element and have.element.kind in ("null", "long"):
            return _cast(found, kind)
        if have.kind == kind.kind == "record" and dict(have.members).keys() <= dict(kind.members).keys():
            return self._convert_record(found, kind)
        return None

    def _convert_record(self, found: Expr, kind: Type) -> Expr | None:
        have = [name for name, _ in found.type.members]
        members: list[Expr] = []
        for name, member in kind.members:
            value = missing() if name not in have else self._member_at(found, have.index(name))
            converted = self.convert(value, member)
            if converted is None:
                return None
            members.append(converted)
        return Apply(operators.RECORD, tuple(members), kind)

    def unify(self, found: Sequence[Expr], span: syntax.Span, what: str) -> list[Expr]:
        """The expressions as values of one type."""
        kind: Type | None = NULL
        for expression in found:
            kind = None if kind is None else common_type(kind, expression.type)
        if kind is None:
            kinds = " and ".join(dict.fromkeys(str(expression.type) for expression in found))
            self.session.fail(f"{what} have different types: {kinds}; convert them, as by toString()", span)
        return [self.expect(expression, kind, span, what) for expression in found]

    # Nodes

    def _bind(self, node: syntax.Value) -> Expr:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            self.session.fail("a query in brackets cannot stand here", node.span)
        return method(node)

    def _literal(self, node: syntax.Literal) -> Expr:
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and value > 2**63 - 1:
            self.session.fail("the number does not fit into 64 bits", node.span)
        return constant(value)

    def _duration(self, node: syntax.Duration) -> Expr:
        length = times.length(node.count, node.unit)
        if not isinstance(length, Months) and length >= 2**63:
            self.session.fail("the duration is too long: at most 292 years", node.span)
        return Constant(length, DURATION)

    def _name(self, node: syntax.Name) -> Expr:
        if node.text == DAY and DAY not in self.scope.fields and self.scope.scan is not None:
            self.session.fail(
                "the day of a record is timestamp@d; the column day is for the folders of a table", node.span
            )
        found = self.scope.find(node.text)
        if node.text not in self.scope.fields and found is not None:
            near = nearest(node.text, self.scope.fields, cutoff=0.8)
            if near is not None:
                self.session.warn(
                    f"{node.text} is no column, so it is looked for among the attributes; did you mean {near}?"
                )
        if found is None:
            near = self.scope.nearest(node.text)
            self.session.warn(
                f"there is no field {node.text}, so it is null" + (f"; did you mean {near}?" if near else "")
            )
            return missing()
        return found

    def _variable(self, node: syntax.Variable) -> Expr:
        if node.name not in self.session.variables:
            known = hint(node.name, self.session.variables)
            self.session.fail(f"the variable ${node.name} was not given a value{known}", node.span)
        value = self.session.variables[node.name]
        if isinstance(value, list | tuple):
            parts = self.unify([self._given(part, node) for part in value], node.span, "the elements")
            return Apply(operators.LIST, tuple(parts), array(parts[0].type if parts else NULL))
        return self._given(value, node)

    def _given(self, value: Any, node: syntax.Variable) -> Constant:
        """The value of a variable, or an element of it."""
        if isinstance(value, datetime):
            return Constant(times.as_microseconds(value), TIMESTAMP)
        if value is not None and not isinstance(value, str | int | float | bool):
            kind = type(value).__name__
            self.session.fail(f"the variable ${node.name} is a {kind}; give a text, number or time", node.span)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            self.session.fail(f"the variable ${node.name} does not fit into 64 bits", node.span)
        if isinstance(value, str) and any("\ud800" <= sign <= "\udfff" for sign in value):
            self.session.fail(f"the variable ${node.name} is no valid text: it has half of a character", node.span)
        return constant(value)

    def _minus(self, node: syntax.Minus) -> Expr:
        if isinstance(node.operand, syntax.Literal) and node.operand.value == 2**63:
            return Constant(-(2**63), LONG)
        operand = self._bind(node.operand)
        if operand.type.is_loose:
            operand = Apply(operators.FROM_LOOSE, (operand,), DOUBLE)
        if operand.type.kind == "null":
            return operand
        if not (operand.type.is_number or operand.type == DURATION):
            self.session.fail(f"- needs a number or duration, found {_a(operand.type)}", node.span)
        if isinstance(operand, Constant):
            value = operand.value
            return Constant(Months(-value.count) if isinstance(value, Months) else -value, operand.type)
        return Apply(operators.NEGATE, (operand,), operand.type)

    def _logic(self, node: syntax.Logic) -> Expr:
        function = {"and": operators.AND, "or": operators.OR, "xor": operators.XOR}[node.operator]
        parts = [
            self.expect(self._bind(part), BOOLEAN, part.span, f"what {node.operator} joins") for part in node.parts
        ]
        return Apply(function, tuple(parts), BOOLEAN)

    def _negation(self, node: syntax.Negation) -> Expr:
        operand = self.expect(self._bind(node.operand), BOOLEAN, node.operand.span, "what not negates")
        return Apply(operators.NOT, (operand,), BOOLEAN)

    def _binary(self, node: syntax.Binary) -> Expr:
        if node.operator == "~":
            if not isinstance(self._bind(node.right), Constant):
                self.session.fail(
                    "~ looks for a constant text; compare fields by ==, or use contains()", node.right.span
                )
            return self.invoke(FUNCTIONS["~"], [self._bind(node.left), self._bind(node.right)], node.span)
        aligned = node.right
        if node.operator in "+-" and isinstance(aligned, syntax.Align) and aligned.operand is not None:
            left = self._bind(node.left)
            if left.type == TIMESTAMP:  # now()-1d@d means (now()-1d)@d
                moved = self.arithmetic(node.operator, left, self._bind(aligned.operand), node.span)
                return self._aligned(moved, aligned)
        left, right = self._bind(node.left), self._bind(node.right)
        if node.operator in operators.COMPARISONS:
            left, right = self._as_time(left, right, node.left), self._as_time(right, left, node.right)
            found = self.compare(node.operator, left, right)
            if isinstance(found, Apply) and found.function is operators.INCOMPARABLE:
                self.session.warn(
                    f"{_a(left.type)} and {_a(right.type)} cannot be compared, so {node.operator} is constant"
                )
            return found
        return self.arithmetic("%" if node.operator == "mod" else node.operator, left, right, node.span)

    def _as_time(self, side: Expr, other: Expr, node: syntax.Expression) -> Expr:
        """A constant text that is compared with a time is one."""
        if other.type != TIMESTAMP or not isinstance(side, Constant) or not isinstance(side.value, str):
            return side
        moment = times.parse_time(side.value)
        if moment is None:
            self.session.fail("this is no time; write it in ISO format, as 2026-01-31T12:00:00Z", node.span)
        return Constant(moment, TIMESTAMP)

    def _align(self, node: syntax.Align) -> Expr:
        operand = Constant(self.session.now, TIMESTAMP) if node.operand is None else self._bind(node.operand)
        if operand.type == DURATION:  # -2h@h: so long ago, rounded
            operand = self.arithmetic("+", Constant(self.session.now, TIMESTAMP), operand, node.span)
        return self._aligned(operand, node)

    def _aligned(self, operand: Expr, node: syntax.Align) -> Expr:
        problem = times.check_alignment(node.count, node.unit)
        if problem:
            self.session.fail(problem, node.span)
        if operand.type.kind == "null":
            return Constant(None, TIMESTAMP)
        if operand.type != TIMESTAMP:
            self.session.fail(f"@{node.unit} rounds a time, found {_a(operand.type)}", node.span)
        if isinstance(operand, Constant):
            return Constant(times.align(operand.value, node.count, node.unit), TIMESTAMP)
        step = times.fixed_step(node.count, node.unit)
        if step is None:
            months = Constant(times.MONTHS[node.unit], LONG)
            return Apply(FUNCTIONS["round to months"], (operand, months), TIMESTAMP)
        return self.rounded(operand, *step)

    def rounded(self, operand: Expr, step: int, origin: int) -> Expr:
        """A time or number rounded down to a multiple of the step, counted from the origin."""
        kind = operand.type
        shifted = operand if origin == 0 else self._arithmetic("-", operand, Constant(origin, kind), kind)
        slot = Apply(operators.FLOOR_DIVIDE, (shifted, Constant(step, LONG)), LONG)
        start = self._arithmetic("*", slot, Constant(step, LONG), kind)
        return start if origin == 0 else self._arithmetic("+", start, Constant(origin, kind), kind)

    def _within(self, node: syntax.Within) -> Expr:
        operand = self._bind(node.operand)
        if isinstance(node.choices, syntax.Group):
            choices = [self._bind(argument.value) for argument in node.choices.arguments]
            return self.invoke(FUNCTIONS["in"], [operand, *choices], node.span)
        inner = self._subquery(node.choices.pipeline)
        if not inner.fields:
            self.session.fail("the query in brackets has no fields", node.choices.span)
        value = next(iter(inner.fields.values()))
        kind = common_type(operand.type, value.type)
        if kind is None:
            return self.compare("==", operand, Constant(None, value.type))
        left, right = self.convert(operand, kind), self.convert(value, kind)
        if left is None or right is None:
            return self.compare("==", operand, Constant(None, value.type))
        return in_query(left, inner.node, right)

    def _index(self, node: syntax.Index) -> Expr:
        operand = self._bind(node.operand)
        if node.key is None:
            return self._each(operand, node)
        kind = operand.type
        if kind.kind == "array":
            key = self.expect(self._bind(node.key), LONG, node.key.span, "the index of an array")
            assert kind.element
            return Apply(operators.ELEMENT, (operand, key), kind.element)
        name = node.key.text if isinstance(node.key, syntax.Name) else self.constant(node.key, "the name of a member")
        if kind.kind == "null":
            return operand
        if kind.kind == "record":
            return self._member(operand, str(name), node.span)
        if kind.kind == "map":
            return Apply(operators.ENTRY, (operand, Constant(str(name), STRING)), LOOSE)
        if kind.is_loose:
            path = f"$[{name}]" if isinstance(name, int) else str(name)
            function = FUNCTIONS["jsonpath" if isinstance(name, int) else "jsonfield"]
            return Apply(function, (operand, Constant(path, STRING)), LOOSE)
        return self.session.fail(f"{_a(kind)} has no members; [] follows an array or record", node.span)

    def _member(self, operand: Expr, name: str, span: syntax.Span) -> Expr:
        names = [member for member, _ in operand.type.members]
        if name not in names:
            self.session.warn(f"the record has no member {name}, so it is null{hint(name, names)}")
            return missing()
        return self._member_at(operand, names.index(name))

    def _member_at(self, operand: Expr, number: int) -> Expr:
        if isinstance(operand, Apply) and operand.function is operators.RECORD:
            part = operand.arguments[number]
            assert part is not None
            return part
        kind = operand.type.members[number][1]
        return Apply(operators.MEMBER, (operand, Constant(number, LONG)), kind)

    def _each(self, operand: Expr, node: syntax.Index) -> Expr:
        if operand.type.kind == "null":
            return operand
        if operand.type.kind != "array":
            self.session.fail(f"[] goes through the elements of an array, found {_a(operand.type)}", node.span)
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

    def _group(self, node: syntax.Group) -> Expr:
        parts = self.unify([self._bind(argument.value) for argument in node.arguments], node.span, "the elements")
        return Apply(operators.LIST, tuple(parts), array(parts[0].type if parts else NULL))

    # Operators

    def compare(self, operator: str, left: Expr, right: Expr) -> Expr:
        """A comparison; null if a side is null; what cannot be compared is not equal."""
        function = operators.COMPARISONS[operator]
        if NULL in (left.type, right.type):
            return Constant(None, BOOLEAN)
        if "map" in (left.type.kind, right.type.kind):
            raise QueryError("attributes cannot be compared as a whole; name one of them", self.session.text)
        if left.type.is_loose and right.type.is_loose and operator in operators.LOOSE_COMPARISONS:
            return Apply(operators.LOOSE_COMPARISONS[operator], (left, right), BOOLEAN)
        pair = self._comparable(operator, left, right)
        if pair is not None:
            return Apply(function, pair, BOOLEAN)
        answer = Constant({"==": False, "!=": True}.get(operator), BOOLEAN)
        return Apply(operators.INCOMPARABLE, (left, right, answer), BOOLEAN)

    def _comparable(self, operator: str, left: Expr, right: Expr) -> tuple[Expr, Expr] | None:
        if right.type.is_loose and not left.type.is_loose:
            swapped = self._comparable(operator, right, left)
            return None if swapped is None else (swapped[1], swapped[0])
        if left.type.is_loose and not right.type.is_text:
            return self._compare_loose(operator, left, right)
        if left.type.kind == "ip" or right.type.kind == "ip":
            return self._compare_ips(left, right)
        kind = common_type(left.type, right.type)
        if kind is None or (operator not in ("==", "!=") and kind.kind not in _ORDERED):
            return None
        first, second = self.convert(left, kind), self.convert(right, kind)
        return None if first is None or second is None else (first, second)

    def _compare_loose(self, operator: str, left: Expr, right: Expr) -> tuple[Expr, Expr] | None:
        """An attribute is a text: equal to 404 if it is ``404``, more than 404 by the number that it spells."""
        if isinstance(right, Constant) and operator in ("==", "!=") and right.type in (LONG, BOOLEAN):
            shown = str(right.value).lower() if right.type == BOOLEAN else str(right.value)
            return left, Constant(shown, STRING)
        if right.type.is_number:
            number = self.convert(right, DOUBLE)
            assert number is not None
            return Apply(operators.FROM_LOOSE, (left,), DOUBLE), number
        if right.type == BOOLEAN:
            return Apply(operators.FROM_LOOSE, (left,), BOOLEAN), right
        if right.type == TIMESTAMP:
            return Apply(FUNCTIONS["totimestamp"], (left,), TIMESTAMP), right
        if right.type.kind == "ip":
            return self._compare_ips(left, right)
        return None

    def _compare_ips(self, left: Expr, right: Expr) -> tuple[Expr, Expr] | None:
        sides: list[Expr] = []
        for side in (left, right):
            if side.type.kind != "ip" and not side.type.is_text:
                return None
            sides.append(Apply(FUNCTIONS["ip key"], (side,), STRING))
        return sides[0], sides[1]

    def arithmetic(self, operator: str, left: Expr, right: Expr, span: syntax.Span) -> Expr:
        """``+ - * / %``, by the table of types in the reference."""
        left, right = (self._as_number(side) for side in (left, right))
        kinds = (left.type.kind, right.type.kind)
        if "null" in kinds:
            other = right if kinds[0] == "null" else left
            return Constant(None, other.type)
        if kinds[0] in ("long", "double") and kinds[1] in ("long", "double"):
            kind = LONG if kinds == ("long", "long") else DOUBLE
            return self._numbers(operator, left, right, kind)
        if kinds == ("timestamp", "duration") and operator in "+-":
            return self._moved(left, right, 1 if operator == "+" else -1, span)
        if kinds == ("duration", "timestamp") and operator == "+":
            return self._moved(right, left, 1, span)
        if kinds == ("timestamp", "timestamp") and operator == "-":
            return self._scaled("*", self._arithmetic("-", left, right, DURATION), 1000)
        if "duration" in kinds and "timestamp" not in kinds:
            result = self._durations(operator, left, right, span)
            if result is not None:
                return result
        advice = "; join texts by concat()" if "string" in kinds and operator == "+" else ""
        return self.session.fail(f"{operator} cannot be used with {_a(left.type)} and {_a(right.type)}{advice}", span)

    def _as_number(self, side: Expr) -> Expr:
        return Apply(operators.FROM_LOOSE, (side,), DOUBLE) if side.type.is_loose else side

    def _numbers(self, operator: str, left: Expr, right: Expr, kind: Type) -> Expr:
        first, second = self.convert(left, kind), self.convert(right, kind)
        assert first is not None
        assert second is not None
        return self._arithmetic(operator, first, second, kind)

    def _arithmetic(self, operator: str, left: Expr, right: Expr, kind: Type) -> Expr:
        if isinstance(left, Constant) and isinstance(right, Constant):
            folded = _folded(operator, left.value, right.value, kind)
            if folded is not None:
                return Constant(folded, kind)
        return Apply(operators.ARITHMETIC[operator], (left, right), kind)

    def _moved(self, moment: Expr, duration: Expr, sign: int, span: syntax.Span) -> Expr:
        if isinstance(duration, Constant) and isinstance(moment, Constant) and moment.value is not None:
            try:
                moved = times.add(moment.value, duration.value, sign)
            except (ValueError, OverflowError):
                self.session.fail("the time is outside of the years 1 to 9999", span)
            return Constant(moved, TIMESTAMP)
        if isinstance(duration, Constant) and isinstance(duration.value, Months):
            months = Constant(sign * duration.value.count, LONG)
            return Apply(FUNCTIONS["add months"], (moment, months), TIMESTAMP)
        micros: Expr = Apply(operators.FLOOR_DIVIDE, (duration, Constant(1000, LONG)), LONG)
        if isinstance(duration, Constant):
            micros = Constant(duration.value // 1000, LONG)
        return Apply(operators.ARITHMETIC["+" if sign > 0 else "-"], (moment, micros), TIMESTAMP)

    def _durations(self, operator: str, left: Expr, right: Expr, span: syntax.Span) -> Expr | None:
        for side in (left, right):
            if isinstance(side, Constant) and isinstance(side.value, Months):
                self.session.fail("months, quarters and years have no fixed length; add them to a time", span)
        if left.type == right.type == DURATION:
            if operator in "+-%":
                return self._arithmetic(operator, left, right, DURATION)
            if operator == "/":
                return self._numbers("/", _cast(left, LONG), _cast(right, LONG), DOUBLE)
            return None
        if operator == "*":
            duration, factor = (left, right) if left.type == DURATION else (right, left)
            return self._product(duration, factor, "*")
        if operator == "/" and left.type == DURATION:
            return self._product(left, right, "/")
        return None

    def _product(self, duration: Expr, factor: Expr, operator: str) -> Expr:
        if factor.type == LONG:
            return self._arithmetic(operator, duration, factor, DURATION)
        product = self._numbers(operator, _cast(duration, LONG), factor, DOUBLE)
        return Apply(FUNCTIONS["tolong"], (product,), DURATION)

    def _scaled(self, operator: str, value: Expr, factor: int) -> Expr:
        return self._arithmetic(operator, value, Constant(factor, LONG), value.type)

    # Functions

    def _call(self, node: syntax.Call) -> Expr:
        name = node.name.lower()
        if name == "record":
            return self._record(node)
        if name == "now":
            if node.arguments:
                self.session.fail("now() takes no arguments", node.span)
            return Constant(self.session.now, TIMESTAMP)
        function = FUNCTIONS.get(name)
        if function is None or not function.group:
            known = (function.name for function in FUNCTIONS.values() if function.group)
            self.session.fail(f"there is no function {node.name}{hint(node.name, known)}", node.span)
        if function.is_aggregate and self._aggregates is None:
            self.session.fail(
                f"{function.name} works on many records: use it in summarize or makeTimeseries", node.span
            )
        arguments = self._arguments(function, node)
        if name == "totimestamp" and isinstance(arguments[0], Constant) and isinstance(arguments[0].value, str):
            moment = times.parse_time(arguments[0].value)
            if moment is None:
                self.session.warn(f"{arguments[0].value!r} is no time in ISO format, so toTimestamp gives null")
            return Constant(moment, TIMESTAMP)  # so that it can prune
        if not function.is_aggregate:
            return self.invoke(function, arguments, node.span)
        assert self._aggregates is not None
        if any(isinstance(part, Apply) and part.function.is_aggregate for a in arguments if a for part in walk(a)):
            self.session.fail(f"{function.name} cannot be used inside of another aggregation", node.span)
        if function.name in ("takeFirst", "takeLast", "collectArray"):
            arguments += self._order(function, node.span)
        applied = self.invoke(function, arguments, node.span)
        return self._aggregates(applied) if isinstance(applied, Apply) else applied

    def _order(self, function: Function, span: syntax.Span) -> list[Expr | None]:
        """What the records are sorted by: the direction of each key (a or d) as one text, then the keys."""
        order = self.scope.order
        if function.name == "collectArray":
            return [_directions(order), *(key.expression for key in order)]
        if not order:
            time = self.scope.find("timestamp")
            if time is None:
                self.session.fail(f"{function.name} needs an order; put a sort before summarize", span)
            return [_directions([Sort(time)]), time]
        if len({key.descends for key in order}) > 1:
            self.session.fail(f"{function.name} needs keys that are sorted in the same direction", span)
        return [_directions(order), *(key.expression for key in order)]

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

    def _arguments(self, function: Function, node: syntax.Call) -> list[Expr | None]:
        """The arguments in the order of the parameters; those of a variadic one stand in its place."""
        parameters = function.parameters
        given: dict[str, list[Expr]] = {}
        at = 0
        aggregates, self._aggregates = self._aggregates, None if function.is_aggregate else self._aggregates
        for argument in node.arguments:
            if argument.name is not None:
                parameter = next((p for p in parameters if p.name.lower() == argument.name.lower()), None)
                if parameter is None:
                    known = hint(argument.name, [p.name for p in parameters])
                    self.session.fail(f"{function.name} has no parameter {argument.name}{known}", argument.span)
            elif at >= len(parameters):
                self.session.fail(_too_many(function), argument.span)
            else:
                parameter = parameters[at]
                at += 0 if parameter.is_variadic else 1
            if parameter.name in given and not parameter.is_variadic:
                self.session.fail(f"{parameter.name} is given twice", argument.span)
            iterates = function.name.startswith("i") and function.group == "arrays" and function.name[1:2].isupper()
            value = self.bind(argument.value) if iterates else self._bind(argument.value)
            given.setdefault(parameter.name, []).append(self._fitting(function, parameter, value, argument.span))
        self._aggregates = aggregates
        result: list[Expr | None] = []
        for parameter in parameters:
            if parameter.name in given:
                result += given[parameter.name]
            elif parameter.is_variadic:
                if not parameter.is_optional:
                    self.session.fail(f"{function.name} needs {parameter.name}: {function.signature}", node.span)
            elif parameter.is_optional:
                default = parameter.default
                result.append(None if default is None else constant(default))
            else:
                self.session.fail(f"{function.name} needs {parameter.name}: {function.signature}", node.span)
        return result

    def _fitting(self, function: Function, parameter: Parameter, value: Expr, span: syntax.Span) -> Expr:
        if parameter.is_constant and not _is_constant(value):
            self.session.fail(f"{parameter.name} of {function.name} has to be a constant", span)
        if isinstance(value, Constant) and isinstance(value.value, Months) and function.name != "bin":
            self.session.fail("months, quarters and years have no fixed length; add them to a time", span)
        self._check(function, parameter, value, span)
        kinds = [kind for name in parameter.kinds for kind in (("long", "double") if name == "number" else (name,))]
        if "any" in kinds or "T" in kinds or value.type.kind in kinds:
            return value
        if value.type.kind == "null":
            return self.expect(value, named_type(kinds[0]), span, parameter.name)
        if value.type == LONG and "double" in kinds:
            return _cast(value, DOUBLE) if not isinstance(value, Constant) else Constant(float(value.value), DOUBLE)
        if value.type.is_loose:
            for kind in ("double", "long", "boolean"):
                if kind in kinds:
                    return Apply(operators.FROM_LOOSE, (value,), {"double": DOUBLE, "long": LONG}.get(kind, BOOLEAN))
            if "timestamp" in kinds:
                return Apply(FUNCTIONS["totimestamp"], (value,), TIMESTAMP)
        wanted = " or ".join(parameter.kinds)
        return self.session.fail(
            f"{parameter.name} of {function.name} has to be {wanted}, found {_a(value.type)}", span
        )

    def _check(self, function: Function, parameter: Parameter, value: Expr, span: syntax.Span) -> None:
        """Refuse a constant that makes no sense."""
        is_null = isinstance(value, Constant) and value.value is None
        if is_null and parameter.is_constant and "any" not in parameter.kinds and parameter.default is not None:
            self.session.fail(f"{parameter.name} of {function.name} cannot be null", span)
        check = function.checks.get(parameter.name)
        parts = value.arguments if isinstance(value, Apply) and value.function is operators.LIST else (value,)
        for part in parts if check else ():
            if check and isinstance(part, Constant) and part.value is not None:
                try:
                    check(part.value)
                except UsageError as error:
                    self.session.fail(str(error), span)

    def invoke(self, function: Function, arguments: Sequence[Expr | None], span: syntax.Span) -> Expr:
        """A function of these arguments."""
        kind = function.type_for(arguments)
        if kind is None:
            kinds = ", ".join(str(argument.type) for argument in arguments if argument is not None)
            self.session.fail(f"{function.name} cannot be used with {kinds}: {function.signature}", span)
        shared = [name for name in function.parameters if "T" in name.kinds]
        if shared and not callable(function.result):
            element = kind.element if function.result == "array<T>" and kind.element else kind
            arguments = [
                argument
                if argument is None or "T" not in parameter.kinds
                else self.expect(argument, element, span, f"{parameter.name} of {function.name}")
                for parameter, argument in zip(function._for_each(len(arguments)), arguments, strict=True)
            ]
        return Apply(function, tuple(arguments), kind)


def in_query(operand: Expr, node: "Node", value: Expr) -> InQuery:
    """Whether the operand is among the values of an expression over a query."""
    from coprlake.language.plan import Column, Filter, Project, Ref

    column = Column("value", value.type)
    there = Apply(FUNCTIONS["isnotnull"], (Ref(column),), BOOLEAN)
    return InQuery(operand, Filter(Project(node, {column: value}), there), column, BOOLEAN)


def constant(value: Any) -> Constant:
    """A value of Python."""
    if isinstance(value, bool):
        return Constant(value, BOOLEAN)
    if isinstance(value, int):
        return Constant(value, LONG)
    if isinstance(value, float):
        return Constant(value, DOUBLE)
    return Constant(value, NULL if value is None else STRING)


def _directions(order: Sequence[Sort]) -> Constant:
    return Constant("".join("d" if key.descends else "a" for key in order), STRING)


def _is_constant(value: Expr) -> bool:
    if isinstance(value, Apply) and value.function is operators.LIST:
        return all(isinstance(argument, Constant) for argument in value.arguments)
    return isinstance(value, Constant)


def _cast(value: Expr, kind: Type) -> Expr:
    if isinstance(value, Constant) and kind in (LONG, DURATION, TIMESTAMP):
        return Constant(value.value, kind)
    return Apply(operators.CAST, (value,), kind)


def _folded(operator: str, left: Any, right: Any, kind: Type) -> Any:
    """The result for constants, where it is sure to be what an engine would give."""
    if left is None or right is None or isinstance(left, Months) or isinstance(right, Months):
        return None
    if kind == DOUBLE or operator not in "+-*":
        return None
    result = {"+": left + right, "-": left - right, "*": left * right}[operator]
    return result if -(2**63) <= result < 2**63 else None


def _too_many(function: Function) -> str:
    return f"{function.name} takes fewer arguments: {function.signature}"


def _a(kind: Type) -> str:
    return {"null": "null", "array": f"an {kind}", "ip": "an address"}.get(kind.kind, f"a {kind}")
