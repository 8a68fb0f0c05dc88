"""Predicates as text and back: ``contains("refused") & ~equals("loglevel", "debug")``.

The text is what one would write in Python with the functions of `build.py`, combined by ``& | ~`` or by ``and``,
``or``, ``not`` (which bind less, as in Python: ``not a & b`` is ``not (a & b)``). ``all_of(...)`` and ``any_of(...)``
take any number of predicates. Besides there are ``everything()`` and ``nothing()``. Values are texts, numbers,
``true``, ``false``, ``datetime("2026-11-16T03:55:00Z")``, ``date("2026-11-16")`` and ``float("inf")``.

Python parses the text, but nothing of it is ever run: what is not listed here is refused.
"""

import ast
import inspect
import json
import re
import warnings
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, Final, NoReturn, TypeAlias, TypeGuard, assert_never

from coprlake.errors import UsageError
from coprlake.predicate import build
from coprlake.predicate.predicates import (
    ANY_VALUE,
    EVERYTHING,
    NOTHING,
    And,
    Compare,
    Contains,
    Equals,
    Exists,
    Leaf,
    Not,
    OneOf,
    Or,
    Predicate,
    Value,
    shown_field,
)
from coprlake.text.nearest_words import nearest

Literal: TypeAlias = Value | tuple[Any, ...] | None

_MOST_CHARACTERS: Final = 4_000_000
_MOST_NESTED: Final = 60
_MOST_CHAINED: Final = 20
"""More parts than these are written as a call: Python nests what is chained."""
_MOST_DIGITS: Final = 100
_SHOWN_CHARACTERS: Final = 60

_LEAVES: Final[dict[str, Callable[..., Leaf]]] = {
    name: getattr(build, name)
    for name in (
        *("contains", "term", "phrase", "prefix", "suffix", "wildcard", "regex", "equals", "one_of", "exists"),
        *("compare", "less_than", "at_most", "more_than", "at_least"),
    )
}
_SHOWN_DEFAULTS: Final[dict[object, object]] = {ANY_VALUE: shown_field(ANY_VALUE)}
_COMBINATIONS: Final[dict[str, Callable[..., Predicate]]] = {"all_of": build.all_of, "any_of": build.any_of}
_CONSTANTS: Final[dict[str, Predicate]] = {"everything": EVERYTHING, "nothing": NOTHING}
_NAMES: Final = (*_LEAVES, *_COMBINATIONS, *_CONSTANTS)
_WORDS: Final[dict[str, Literal]] = {"true": True, "false": False, "null": None}
_READERS: Final[dict[str, Callable[[str], Value]]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "float": float,
}
_BEGINS_AN_EXPRESSION = re.compile(rf"(?:[\s(~]|not(?=[\s(~]))*(?:{'|'.join(_NAMES)})\(")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_MORE_WORDS = re.compile(r"\. .*| \(detected at .*\)")
_ADVICE: Final = "predicates are combined by &, | and ~"
_SURPLUS: Final = "a closing bracket too many"
_WRAPPED: Final = ("_(", "\n)")  # so that lines may end anywhere, and a bracket too many is found


def parse_query(text: str) -> Predicate:
    """What a user asks for: an expression, if the text begins like one, or else that the content contains the text."""
    if not _BEGINS_AN_EXPRESSION.match(text):
        return Contains(text)
    try:
        return parse_expression(text)
    except UsageError as error:
        shown = f"contains({_text(text)})" if len(text) <= _SHOWN_CHARACTERS else 'contains("...")'
        raise UsageError(f"{error}\nto look for the text itself, write {shown}") from error


def parse_expression(text: str) -> Predicate:
    """The predicate that the text means.

    Raises:
        UsageError: it is no expression; the message says where.
    """
    return _Parser(text).parse()


def expression_of(predicate: Predicate) -> str:
    """The predicate as text, from which `parse_expression` makes the same predicate.

    Raises:
        UsageError: it is nested too deeply.
    """
    return _written(predicate, 0)


class _Parser:
    """Turns the syntax tree of one text into a predicate."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n").replace("\r", "\n")  # as Python does
        self._lines = self._text.split("\n")

    def parse(self) -> Predicate:
        return self._predicate(self._tree(), 0)

    def _tree(self) -> ast.expr:
        text = self._text
        if len(text) > _MOST_CHARACTERS:
            raise UsageError(f"an expression of {len(text)} characters; at most {_MOST_CHARACTERS} are allowed")
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*invalid.* escape")  # regex("\\d") is fine
                body = ast.parse(text.join(_WRAPPED), mode="eval").body
        except SyntaxError as error:
            self._fail_to_parse(error)
        except (RecursionError, MemoryError) as error:
            raise UsageError("the expression is nested too deeply; use all_of(...) and any_of(...)") from error
        except ValueError as error:  # lone surrogates, in Python 3.11 also NUL
            raise UsageError(f"the expression is no text: {error}") from error
        wrapper = next(filter(_is_wrapper, ast.walk(body)))
        if wrapper is not body:
            self._fail(self._place(wrapper.end_lineno or 1, (wrapper.end_col_offset or 1) - 1), _SURPLUS)
        if len(wrapper.args) != 1 or wrapper.keywords:
            self._fail(0, f"expected one predicate, found {len(wrapper.args) or 'none'}; {_ADVICE}")
        return wrapper.args[0]

    def _predicate(self, node: ast.expr, nested: int) -> Predicate:
        if nested > _MOST_NESTED:
            self._fail(node, f"nested too deeply; at most {_MOST_NESTED} levels are allowed")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
            parts = [self._predicate(part, nested + 1) for part in _chain(node, type(node.op))]
            return _joined(And if isinstance(node.op, ast.BitAnd) else Or, parts)
        if isinstance(node, ast.BoolOp):
            parts = [self._predicate(part, nested + 1) for part in node.values]
            return _joined(And if isinstance(node.op, ast.And) else Or, parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
            return ~self._predicate(node.operand, nested + 1)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node, node.func.id, nested)
        return self._fail(node, f'expected a predicate such as contains("text"), found {self._source(node)}')

    def _call(self, node: ast.Call, name: str, nested: int) -> Predicate:
        if name in _COMBINATIONS and not node.keywords:
            return _COMBINATIONS[name](*(self._predicate(part, nested + 1) for part in node.args))
        if name in _CONSTANTS and not node.args and not node.keywords:
            return _CONSTANTS[name]
        if name in _LEAVES:
            return self._leaf(node, _LEAVES[name])
        if name in _COMBINATIONS or name in _CONSTANTS:
            return self._fail(node, f"{name} takes {'no arguments' if name in _CONSTANTS else 'only predicates'}")
        near = nearest(name, _NAMES)
        advice = f"did you mean {near}?" if near else f"expected one of {', '.join(_NAMES)}"
        return self._fail(node, f"there is no predicate {name}; {advice}")

    def _leaf(self, node: ast.Call, function: Callable[..., Leaf]) -> Predicate:
        values = [self._literal(argument) for argument in node.args]
        named: dict[str, Literal] = {}
        for keyword in node.keywords:
            value = self._literal(keyword.value)
            if keyword.arg == "case_sensitive" and not isinstance(value, bool):
                self._fail(keyword.value, f"expected true or false, found {self._source(keyword.value)}")
            named[keyword.arg or "**"] = value
        try:
            bound = inspect.signature(function).bind(*values, **named)
        except TypeError as error:
            self._fail(node, f"{error}; expected {_signature(function)}")
        many = bound.arguments.get("values", ())
        if not isinstance(many, tuple | str):
            self._fail(node, f"expected a list of values, found {many!r}; expected {_signature(function)}")
        try:
            return function(*bound.args, **bound.kwargs)
        except UsageError as error:
            self._fail(node, str(error))

    def _literal(self, node: ast.expr) -> Literal:
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return tuple(self._literal(element) for element in node.elts)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | None):
            return node.value
        if isinstance(node, ast.Name) and node.id in _WORDS:
            return _WORDS[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            number = node.operand.value if isinstance(node.operand, ast.Constant) else None
            if isinstance(number, int | float) and not isinstance(number, bool):
                return -number if isinstance(node.op, ast.USub) else number
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _READERS:
            return self._read(node, node.func.id)
        return self._no_value(node)

    def _read(self, node: ast.Call, name: str) -> Value:
        text = node.args[0].value if len(node.args) == 1 and isinstance(node.args[0], ast.Constant) else None
        try:
            if isinstance(text, str) and not node.keywords:
                return _READERS[name](text)
        except ValueError:
            pass
        example = {"date": "2026-11-16", "datetime": "2026-11-16T03:55:00Z", "float": "inf"}[name]
        return self._fail(node, f'expected {name}("{example}") or the like, found {self._source(node)}')

    def _no_value(self, node: ast.expr) -> NoReturn:
        self._fail(node, f'expected a text such as "text", a number, a time or true, found {self._source(node)}')

    def _source(self, node: ast.expr) -> str:
        """What stands in the text for a node, or its begin."""
        begin = self._place(node.lineno, node.col_offset)
        shown = self._text[begin : self._place(node.end_lineno or 1, node.end_col_offset or 0)]
        return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}..."

    def _place(self, line_number: int, offset_bytes: int) -> int:
        """Where in the text a place of the tree is: that counts lines, and bytes in them."""
        lines = self._lines[: line_number - 1]
        if line_number == 1:
            offset_bytes -= len(_WRAPPED[0])
        line = self._lines[line_number - 1] if line_number <= len(self._lines) else ""
        return sum(map(len, lines)) + len(lines) + len(line.encode()[:offset_bytes].decode(errors="ignore"))

    def _fail_to_parse(self, error: SyntaxError) -> NoReturn:
        line_number, offset = error.lineno or 1, error.offset or 1  # both from 1, and in characters
        before = sum(len(line) + 1 for line in self._lines[: line_number - 1])
        place = before + offset - 1 - (len(_WRAPPED[0]) if line_number == 1 else 0)
        if place < 0 and "never closed" in error.msg:  # a bracket of the text was closed by the one behind it
            self._fail(len(self._text.rstrip()), "expected a closing bracket")
        if place > len(self._text):
            is_surplus = "unmatched" in error.msg
            place = self._text.rfind(")") if is_surplus else len(self._text.rstrip())
            self._fail(place, _SURPLUS if is_surplus else "the expression is not complete")
        message = _MORE_WORDS.sub("", error.msg)
        self._fail(max(place, 0), f"{message}; {_ADVICE}" if message == "invalid syntax" else message)

    def _fail(self, at: ast.expr | int, message: str) -> NoReturn:
        place = at if isinstance(at, int) else self._place(at.lineno, at.col_offset)
        begin = self._text.rfind("\n", 0, place) + 1
        line = self._text[begin:].partition("\n")[0]
        first = max(0, place - begin - _SHOWN_CHARACTERS // 2)
        shown = line[first : first + _SHOWN_CHARACTERS]
        caret = " " * (place - begin - first) + "^"
        raise UsageError(f"{message} (at character {place + 1} of the expression)\n  {shown}\n  {caret}")


def _is_wrapper(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (node.lineno, node.col_offset) == (1, 0)


def _chain(node: ast.expr, operator: type[ast.operator]) -> list[ast.expr]:
    """The parts of ``a & b & c``, which Python has as ``(a & b) & c``."""
    parts: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, operator):
        parts.append(node.right)
        node = node.left
    return [node, *reversed(parts)]


def _joined(kind: type[And] | type[Or], parts: list[Predicate]) -> Predicate:
    """What ``&`` or ``|`` between the parts would make."""
    return kind(tuple(one for part in parts for one in (part.parts if isinstance(part, kind) else (part,))))


def _signature(function: Callable[..., Leaf]) -> str:
    """How a function is called, without types."""
    parameters = inspect.signature(function).parameters.values()
    plain = [
        parameter.replace(
            annotation=inspect.Parameter.empty, default=_SHOWN_DEFAULTS.get(parameter.default, parameter.default)
        )
        for parameter in parameters
    ]
    return f"{function.__name__}{inspect.Signature(plain)}"


def _written(predicate: Predicate, nested: int) -> str:
    if nested > _MOST_NESTED:
        raise UsageError(f"the predicate is nested too deeply; at most {_MOST_NESTED} levels can be written")
    if isinstance(predicate, Not):
        part = _written(predicate.part, nested + 1)
        return f"~({part})" if _is_chained(predicate.part) else f"~{part}"
    if not isinstance(predicate, And | Or):
        return _written_leaf(predicate)
    if not predicate.parts:
        return "everything()" if isinstance(predicate, And) else "nothing()"
    parts = [_written(part, nested + 1) for part in predicate.parts]
    if not _is_chained(predicate):
        return f"{'all_of' if isinstance(predicate, And) else 'any_of'}({', '.join(parts)})"
    bracketed = [f"({text})" if _is_chained(part) else text for text, part in zip(parts, predicate.parts, strict=True)]
    return (" & " if isinstance(predicate, And) else " | ").join(bracketed)


def _is_chained(predicate: Predicate) -> bool:
    """Whether it is written with ``&`` or ``|``, which join what is of their own kind."""
    if not isinstance(predicate, And | Or) or not 2 <= len(predicate.parts) <= _MOST_CHAINED:
        return False
    return not any(isinstance(part, type(predicate)) for part in predicate.parts)


def _written_leaf(predicate: Leaf) -> str:
    if isinstance(predicate, Exists):
        return f"exists({_text(predicate.field)})"
    if isinstance(predicate, Compare):
        return f'compare({_text(predicate.field)}, "{predicate.operator}", {_value(predicate.value)})'
    cased = ", case_sensitive=True" if predicate.case_sensitive else ""
    if isinstance(predicate, Equals):
        return f"equals({_text(predicate.field)}, {_value(predicate.value)}{cased})"
    if isinstance(predicate, OneOf):
        return f"one_of({_text(predicate.field)}, [{', '.join(map(_value, predicate.values))}]{cased})"
    field = "" if predicate.field == ANY_VALUE else f", field={_text(predicate.field)}"
    return f"{type(predicate).__name__.lower()}({_text(predicate.text)}{field}{cased})"


def _value(value: Value) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, datetime):
        return f'datetime("{re.sub("[+]00:00$", "Z", value.isoformat())}")'
    if isinstance(value, date):
        return f'date("{value.isoformat()}")'
    if isinstance(value, int):
        return int.__repr__(value) if abs(value) < 10**_MOST_DIGITS else hex(value)
    if isinstance(value, float):
        text = float.__repr__(value)
        return text if text.strip("-")[0].isdigit() else f'float("{text}")'
    assert_never(value)


def _text(text: str) -> str:
    """In double quotes, with escapes that JSON and Python have alike, and such for what is no character."""
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))
