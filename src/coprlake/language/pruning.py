"""What the records of each table have to fulfil to have a part in the result, as a predicate that COPR can prune by.

It is a necessary condition, never an exact one: the engine still decides. What is negated, computed, or compared with
another field says nothing, and is left out. So is every condition on a field that the predicate would look for in
another place than the query does: a predicate asks a column first and the attributes after, by the types of the data
file.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from coprlake.language import plan
from coprlake.language.functions.text.text_matching import patterns_of
from coprlake.language.functions.values import operators
from coprlake.language.plan import Apply, Column, Constant, Expr, InQuery, Lambda, Node, Ref, Scan
from coprlake.language.types import MAP
from coprlake.language.types import TIMESTAMP as TIME
from coprlake.predicate.narrowing.claims import Necessary
from coprlake.predicate.patterns.regex import for_whole_text
from coprlake.predicate.predicates import (
    ALL_FIELDS,
    EVERYTHING,
    And,
    Contains,
    Equals,
    OneOf,
    Or,
    Phrase,
    Predicate,
    Prefix,
    Regex,
    Suffix,
)
from coprlake.records import ATTRIBUTES, SCHEMA, TIMESTAMP

MOST_PARTS: Final = 5_000
"""A condition of more parts than this says nothing to the index."""
MOST_LEVELS: Final = 200
"""Nor does one that nests deeper than this."""


@dataclass
class Pruning:
    """What is known of the records of a table that matter.

    Attributes:
        necessary: they match it.
        since: they are of this time or later, in microseconds; None if any.
        until: they are before this time.
        ignored: conditions that say nothing to the index, as they are named in `explain`.
    """

    necessary: Necessary = field(default_factory=Necessary)
    since: int | None = None
    until: int | None = None
    ignored: list[str] = field(default_factory=list)


def pruning(node: Node) -> dict[Scan, Pruning]:
    """What is known of the records of each table of a plan."""
    found: dict[Scan, list[Pruning]] = {}
    pending: list[tuple[Node, list[Expr]]] = [(node, [])]
    while pending:
        part, conditions = pending.pop()
        if isinstance(part, Scan):
            found.setdefault(part, []).append(_of_scan(part, conditions))
        below = [(query, list[Expr]()) for query in plan.queries(part)] + _carried(part, conditions)
        pending += reversed(below)
    return {scan: _any(prunings) for scan, prunings in found.items()}


def _any(prunings: list[Pruning]) -> Pruning:
    """A table that is read several times has to give the records of each."""
    if len(prunings) == 1:
        return prunings[0]
    predicates = [one.necessary.predicate for one in prunings]
    everything = any(predicate == EVERYTHING for predicate in predicates)
    sinces, untils = [one.since for one in prunings], [one.until for one in prunings]
    return Pruning(
        Necessary(EVERYTHING if everything else Or(tuple(predicates))),
        None if None in sinces else min(since for since in sinces if since is not None),
        None if None in untils else max(until for until in untils if until is not None),
    )


def _carried(node: Node, conditions: list[Expr]) -> list[tuple[Node, list[Expr]]]:
    """The inputs of a node, each with those of the conditions on the node's columns that hold for its records too."""
    match node:
        case plan.Filter():
            return [(node.input, [*conditions, node.condition])]
        case plan.Project():
            return [(node.input, _substituted(conditions, node.columns))]
        case plan.Order():
            return [(node.input, conditions)]
        case plan.Aggregate():
            passing = [condition for condition in conditions if set(plan.columns_of(condition)) <= node.keys.keys()]
            return [(node.input, _substituted(passing, node.keys))]
        case plan.Expand():
            passing = [condition for condition in conditions if node.element not in plan.columns_of(condition)]
            return [(node.input, passing)]
        case plan.Union():
            left = {column: pair[0] for column, pair in node.columns.items()}
            right = {column: pair[1] for column, pair in node.columns.items()}
            return [(node.left, _substituted(conditions, left)), (node.right, _substituted(conditions, right))]
        case plan.Join():
            return [
                (node.left, conditions if node.kind != "outer" else []),
                (node.right, conditions if node.kind == "inner" else []),
            ]
        case _:
            return [(side, []) for side in plan.inputs(node)]


def _substituted(conditions: Iterable[Expr], columns: dict[Column, Expr]) -> list[Expr]:
    through = [substituted(condition, columns) for condition in conditions]
    return [condition for condition in through if _is_short(condition)]


def substituted(expression: Expr, columns: dict[Column, Expr]) -> Expr:
    """The expression with these columns replaced by what they are computed from."""
    if isinstance(expression, Ref):
        return columns.get(expression.column, expression)
    if isinstance(expression, Apply):
        arguments: list[Expr | None] = []
        for part in expression.arguments:  # a comprehension would nest twice as deep
            arguments.append(None if part is None else substituted(part, columns))  # noqa: PERF401
        return replace(expression, arguments=tuple(arguments))
    if isinstance(expression, Lambda):
        return replace(
            expression, array=substituted(expression.array, columns), body=substituted(expression.body, columns)
        )
    return expression


def _is_short(expression: Expr) -> bool:
    """A field that is computed from others twice doubles with each step; such a condition does not prune anyway."""
    pending, count = [(expression, 1)], 0
    while pending:
        part, depth = pending.pop()
        count += 1
        if count > MOST_PARTS or depth > MOST_LEVELS:
            return False
        pending += [(child, depth + 1) for child in plan.children(part)]
    return True


def _of_scan(scan: Scan, conditions: Sequence[Expr]) -> Pruning:
    reader = _Reader(scan)
    result = Pruning(since=scan.since, until=scan.until)
    parts: list[Predicate] = []
    for condition in _conjuncts(conditions):
        bounds = reader.bounds(condition)
        if bounds is not None:
            since, until = bounds
            result.since = since if result.since is None else max(result.since, since or result.since)
            result.until = until if result.until is None else min(result.until, until or result.until)
            continue
        predicate = reader.predicate(condition)
        if predicate is not None:
            parts.append(predicate)
        elif set(plan.columns_of(condition)) <= reader.columns:
            result.ignored.append(describe(condition))
    if parts:
        result.necessary = Necessary(parts[0] if len(parts) == 1 else And(tuple(parts)))
    return result


def _conjuncts(conditions: Iterable[Expr]) -> Iterable[Expr]:
    for condition in conditions:
        if isinstance(condition, Apply) and condition.function is operators.AND:
            yield from _conjuncts(part for part in condition.arguments if part is not None)
        elif isinstance(condition, Apply) and condition.function is operators.IS_TRUE and condition.arguments[0]:
            yield from _conjuncts([condition.arguments[0]])
        else:
            yield condition


_NO_NAMES: Final = frozenset({"", ALL_FIELDS})
"""Columns and keys may be called so, but a predicate on such a field is not about them."""

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


class _Reader:
    """Reads expressions over one table."""

    def __init__(self, scan: Scan) -> None:
        self._names = {column: name for name, column in scan.columns.items()}
        self._keys = {column: key for key, column in scan.attributes.items()}
        self._taken = scan.taken | scan.columns.keys() | set(SCHEMA.names)
        self._varying = scan.varying
        self._time = None if TIMESTAMP in scan.varying else scan.columns.get(TIMESTAMP)
        own = scan.columns.get(ATTRIBUTES)
        self._attributes = own if own is not None and own.type == MAP and ATTRIBUTES not in scan.varying else None
        self.columns = set(self._names) | set(self._keys)

    def field(self, value: Expr | None) -> str | None:
        """The field that an expression is just the text of, if a predicate on it looks for it where the query does."""
        if isinstance(value, Apply) and value.function is operators.FIELD:
            column, _ = value.arguments
            return self._column(column) if self._attributes is not None else None
        key = self._key(value)
        if key is None:
            return self._column(value)
        return None if key in self._taken or key in _NO_NAMES else key  # a column of that name would be asked first

    def _column(self, value: Expr | None) -> str | None:
        """A column of text, which is text in every data file."""
        if not isinstance(value, Ref) or not value.type.is_text:
            return None
        name = self._names.get(value.column)
        return None if name in self._varying or name in _NO_NAMES else name

    def _key(self, value: Expr | None) -> str | None:
        """The key, if an expression is just a value of the table's attributes."""
        if self._attributes is None:
            return None
        if isinstance(value, Apply) and value.function is operators.ENTRY:
            return _text(value.arguments[1]) if self._is_attributes(value.arguments[0]) else None
        return self._keys.get(value.column) if isinstance(value, Ref) else None

    def _is_attributes(self, value: Expr | None) -> bool:
        return self._attributes is not None and isinstance(value, Ref) and value.column is self._attributes

    def bounds(self, condition: Expr) -> tuple[int | None, int | None] | None:
        """The times that a comparison of the timestamp leaves: from, and before."""
        if not isinstance(condition, Apply) or condition.function.name not in _FLIPPED or self._time is None:
            return None
        if condition.function is not operators.COMPARISONS[condition.function.name]:
            return None
        left, right = condition.arguments
        sign = condition.function.name
        if isinstance(left, Constant):
            left, right, sign = right, left, _FLIPPED[sign]
        if not (isinstance(left, Ref) and left.column is self._time and isinstance(right, Constant)):
            return None
        if right.type != TIME or right.value is None:
            return None
        moment = int(right.value)
        since = moment + (sign == ">") if sign in (">", ">=", "==") else None
        until = moment + (sign in ("<=", "==")) if sign in ("<", "<=", "==") else None
        return since, until

    def predicate(self, condition: Expr | None) -> Predicate | None:
        """What a condition that is true says about its record; None for nothing."""
        if not isinstance(condition, Apply):
            return None
        function = condition.function
        if function is operators.IS_TRUE:
            return self.predicate(condition.arguments[0])
        if function is operators.AND:
            known = [part for part in map(self.predicate, condition.arguments) if part is not None]
            return None if not known else (known[0] if len(known) == 1 else And(tuple(known)))
        if function is operators.OR:
            parts = [self.predicate(part) for part in condition.arguments]
            return (
                None if any(part is None for part in parts) else Or(tuple(part for part in parts if part is not None))
            )
        return self._leaf(function.name, condition.arguments)

    def _leaf(self, name: str, arguments: Sequence[Expr | None]) -> Predicate | None:
        match name:
            case "==":
                return self._equal(arguments)
            case "contains":
                return self._part(Contains, arguments)
            case "startsWith":
                return self._part(Prefix, arguments)
            case "endsWith":
                return self._part(Suffix, arguments)
            case "matchesPhrase":
                return self._phrase(arguments)
            case "matchesValue":
                return self._value(arguments)
            case "in":
                return self._in(arguments)
            case "like":
                return self._like(arguments)
            case "matchesRegex":
                return self._regex(arguments)
            case "~" | "search term":
                return self._tilde(arguments)
            case "search anywhere":
                return self._anywhere(arguments)
            case _:
                return None

    def _equal(self, arguments: Sequence[Expr | None]) -> Predicate | None:
        left, right = arguments
        if isinstance(left, Constant):
            left, right = right, left
        name, text = self.field(left), _text(right)
        return None if name is None or text is None else Equals(name, text, case_sensitive=True)

    def _part(self, kind: type[Contains | Prefix | Suffix], arguments: Sequence[Expr | None]) -> Predicate | None:
        name, text = self.field(arguments[0]), _text(arguments[1])
        if name is None or text is None:
            return None
        return kind(text, name, case_sensitive=_flag(arguments[2], default=True))

    def _phrase(self, arguments: Sequence[Expr | None]) -> Predicate | None:
        name, text = self.field(arguments[0]), _text(arguments[1])
        if name is None or text is None:
            return None
        return Phrase(text, name, case_sensitive=_flag(arguments[2], default=False))

    def _value(self, arguments: Sequence[Expr | None]) -> Predicate | None:
        name = self.field(arguments[0])
        patterns = patterns_of(arguments[1:-1])
        if name is None or not patterns:
            return None
        exact = _flag(arguments[-1], default=False)
        parts = [_whole(pattern, name, exact) for pattern in patterns]
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _in(self, arguments: Sequence[Expr | None]) -> Predicate | None:
        name = self.field(arguments[0])
        values: list[str] = []
        for argument in arguments[1:]:
            inner = (
                argument.arguments
                if isinstance(argument, Apply) and argument.function is operators.LIST
                else [argument]
            )
            for value in inner:
                text = _text(value)
                if text is None:
                    return None
                values.append(text)
        return None if name is None or not values else OneOf(name, tuple(values), case_sensitive=True)

    def _like(self, arguments: Sequence[Expr | None]) -> Predicate | None:
        name, pattern = self.field(arguments[0]), _text(arguments[1])
        if name is None or pattern is None:
            return None
        pieces = pattern.replace("_", "%").split("%")
        if len(pieces) == 1:
            return Equals(name, pattern, case_sensitive=True)
        parts: list[Predicate] = [Contains(piece, name, case_sensitive=True) for piece in pieces[1:-1] if piece]
        if pieces[0]:
            parts.append(Prefix(pieces[0], name, case_sensitive=True))
        if pieces[-1]:
            parts.append(Suffix(pieces[-1], name, case_sensitive=True))
        return And(tuple(parts)) if parts else None

    def _regex(self, arguments: Sequence[Expr | None]) -> Predicate | None:
        name, pattern = self.field(arguments[0]), _text(arguments[1])
        if name is None or pattern is None:
            return None
        exact = _flag(arguments[2], default=True)
        return Regex(for_whole_text(pattern, case_sensitive=exact), name, case_sensitive=exact)

    def _tilde(self, arguments: Sequence[Expr | None]) -> Predicate | None:
        name, term = self.field(arguments[0]), _text(arguments[1])
        if name is None or term is None:
            return None
        return _term(term, name, _flag(arguments[2], default=False) if len(arguments) > 2 else False)

    def _anywhere(self, arguments: Sequence[Expr | None]) -> Predicate | None:
        """A predicate on all fields looks at columns of text and at the attributes; nothing else may be able to match.

        A number cannot if the term spells none. Arrays, records and other maps could.
        """
        term, exact = _text(arguments[0]), _flag(arguments[1], default=False)
        if term is None:
            return None
        is_word = not term.replace(".", "").replace("-", "").isdigit()
        for wrapped in arguments[2:]:
            inner = wrapped.arguments[0] if isinstance(wrapped, Apply) else None
            value = inner.arguments[0] if isinstance(inner, Apply) else None
            if value is None:
                return None
            is_number = _is_number(value) and is_word
            if not (self.field(value) or self._key(value) is not None or self._is_attributes(value) or is_number):
                return None
        return _term(term, ALL_FIELDS, exact)


def _is_number(value: Expr) -> bool:
    """Whether a value is a number, or else an attribute."""
    if isinstance(value, Apply) and value.function is operators.FIELD and isinstance(value.arguments[0], Apply):
        inner = value.arguments[0].arguments[0]
        return inner is not None and inner.type.is_number
    return value.type.is_number


def _text(value: Expr | None) -> str | None:
    """What a constant text is; an address is a text inside, too, but compares otherwise."""
    is_text = isinstance(value, Constant) and value.type.is_text and isinstance(value.value, str)
    return value.value if is_text and isinstance(value, Constant) else None


def _flag(value: Expr | None, *, default: bool) -> bool:
    return value.value if isinstance(value, Constant) and isinstance(value.value, bool) else default


def _whole(pattern: str, name: str, exact: bool) -> Predicate:
    left_open, right_open = pattern.startswith("*"), pattern.endswith("*") and len(pattern) > 1
    core = pattern[left_open : len(pattern) - right_open]
    if left_open and right_open:
        return Contains(core, name, case_sensitive=exact)
    if left_open:
        return Suffix(core, name, case_sensitive=exact)
    return Prefix(core, name, case_sensitive=exact) if right_open else Equals(name, core, case_sensitive=exact)


def _term(term: str, name: str, exact: bool) -> Predicate | None:
    core = term[term.startswith("*") : len(term) - (term.endswith("*") and len(term) > 1)]
    if "*" not in core:
        return Phrase(term, name, case_sensitive=exact)
    pieces = [piece for piece in term.split("*") if piece]
    return And(tuple(Contains(piece, name, case_sensitive=exact) for piece in pieces)) if pieces else None


def describe(expression: Expr) -> str:
    """An expression in a line, for `explain`."""
    if isinstance(expression, Ref):
        return expression.column.hint
    if isinstance(expression, Constant):
        return repr(expression.value) if isinstance(expression.value, str) else str(expression.value).lower()
    if isinstance(expression, Apply):
        parts = [describe(part) for part in expression.arguments if part is not None]
        name = expression.function.name
        if name in operators.COMPARISONS or name in ("and", "or", "xor", "+", "-", "*", "/", "%"):
            return f"({f' {name} '.join(parts)})"
        if name == "field":
            return parts[1]
        return parts[0] if name in ("is true", "from text", "cast") else f"{name}({', '.join(parts)})"
    if isinstance(expression, InQuery):
        return f"{describe(expression.operand)} in [...]"
    return "..."
