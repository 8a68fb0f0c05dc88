"""From the text of a query to its syntax tree.

No step here is recursive: ten thousand parentheses end in an error, not in a full stack.
"""

import re
from typing import Any, Final, Literal

from lark import Token, UnexpectedInput, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from coprlake.errors import QueryError
from coprlake.language import syntax
from coprlake.language.grammar_tables import parser
from coprlake.language.syntax import Argument, Expression, Span

MOST_CHARACTERS: Final = 200_000
MOST_DEPTH: Final = 100
"""So deep may parentheses, calls and operators nest; engines give up at a few hundred."""
MOST_COMMANDS: Final = 200

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ALIGNMENT = re.compile(r"@\s*([0-9]*)(.+)")
_DURATION = re.compile(r"([0-9]+)(.+)")
_HIGHEST: Final = 2**63 - 1

_WORDS: Final = {
    "NAME": "a name",
    "QUOTED_NAME": "a name in backticks",
    "COMPARE": "a comparison",
    "SEARCH": "`~`",
    "DIRECTION": "asc or desc",
    "PLUS": "`+`",
    "MINUS": "`-`",
    "FACTOR": "`*` or `/`",
    "KEY_MOD": "mod",
    "ALIGN": "`@`",
    "KEY_IN": "in",
    "VARIABLE": "$variable",
    "VBAR": "`|`",
    "COMMA": "`,`",
    "COLON": "`:`",
    "EQUAL": "`=`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "_AND": "and",
    "_OR": "or",
    "_XOR": "xor",
    "_NOT": "not",
    "$END": "the end of the query",
}
_BEGINS_VALUE: Final = frozenset({"INTEGER", "FLOAT", "STRING", "VARIABLE"})
_SQL: Final = re.compile(r"\s*(select|with|insert|update|delete|create|show|explain)\s", re.IGNORECASE)
NOT_SQL: Final = (
    "this looks like SQL; a query is a chain of commands, such as "
    "fetch logs | filter status >= 500 | summarize count(), by:{source} | sort source | limit 10"
)
"""The advice to somebody who tries SQL."""

_AFTER_VALUE: Final = frozenset({"COMPARE", "PLUS", "_AND"})


def parse(text: str) -> syntax.Pipeline:
    """Read a query.

    Raises:
        QueryError: it is not one; the message points at the first character that does not fit.
    """
    if len(text) > MOST_CHARACTERS:
        raise QueryError(f"the query has {len(text):,} characters; at most {MOST_CHARACTERS:,} are read")
    if not text.strip():
        raise QueryError("the query is empty; begin with fetch logs, or data record(a=1)")
    try:
        return _Builder().transform(parser().parse(text))
    except UnexpectedInput as error:
        raise _unexpected(text, error) from None
    except VisitError as error:
        if isinstance(error.orig_exc, _MistakeError):
            mistake = error.orig_exc
            raise QueryError(mistake.problem, text, *mistake.span) from None
        raise


def is_complete(text: str) -> bool:
    """False if the text only ends too early: with more behind it, it may become a query."""
    if len(text) > MOST_CHARACTERS or not text.strip():
        return True
    try:
        parser().parse(text)
    except UnexpectedInput as error:
        start, _ = _place(text, error)
        return not _is_at_end(text, start) and _unclosed(text, start) is None
    return True


class _MistakeError(Exception):
    def __init__(self, problem: str, span: Span) -> None:
        super().__init__(problem)
        self.problem = problem
        self.span = span


def _place(text: str, error: UnexpectedInput) -> Span:
    """Where the text stops being a query."""
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return Span(len(text.rstrip()), len(text.rstrip()))
    start = error.pos_in_stream if error.pos_in_stream is not None else len(text)
    end = error.token.end_pos if isinstance(error, UnexpectedToken) else None
    return Span(start, end or start + 1)


def _is_at_end(text: str, start: int) -> bool:
    return start >= len(text.rstrip())


def _unexpected(text: str, error: UnexpectedInput) -> QueryError:
    start, end = _place(text, error)
    expected: set[str] = set()
    if isinstance(error, UnexpectedToken):
        expected = set(error.expected)
    elif isinstance(error, UnexpectedCharacters):
        expected = set(error.allowed or ())
    found = "the query ends here" if _is_at_end(text, start) else f"unexpected `{_shown(text[start:end])}`"
    sql = _SQL.match(text)
    if sql:
        return QueryError(NOT_SQL, text, *sql.span(1))
    opening = _unclosed(text, start)
    if opening:
        return QueryError(opening[0], text, opening[1], opening[1] + 1)
    return QueryError(f"{found}; expected {_listed(expected)}", text, start, end)


def _shown(piece: str) -> str:
    return piece if len(piece) <= 40 else piece[:40] + "…"


def _unclosed(text: str, start: int) -> tuple[str, int] | None:
    """A string that is never closed is the usual reason for a quote that does not fit."""
    if start < len(text) and text[start] in "\"'`":
        return f"the text that begins with {text[start]} is not closed", start
    opened = text.rfind("/*", 0, start + 2)
    if opened >= 0 and "*/" not in text[opened:] and not text[opened + 2 : start].strip():
        return "the comment is not closed", opened
    return None


def _listed(expected: set[str]) -> str:
    words: list[str] = []
    if expected >= _BEGINS_VALUE:
        words.append("a value")
        expected = {name for name in expected if name in ("RPAR", "RBRACE", "VBAR", "$END", "RSQB")}
    elif expected >= _AFTER_VALUE:
        words.append("an operator")
        expected = {name for name in expected if name in ("COMMA", "VBAR", "RPAR", "RBRACE", "RSQB", "$END", "LPAR")}
    words += sorted({_WORDS[name] for name in expected if name in _WORDS})
    words = words or ["something else"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _span(meta: Meta) -> Span:
    return Span(meta.start_pos, meta.end_pos) if not meta.empty else Span(0, 0)


def _of(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def _unescaped(body: str) -> str:
    if "\\" not in body:
        return body

    def plain(found: re.Match[str]) -> str:
        sign = found[1]
        return chr(int(sign[1:], 16)) if len(sign) == 5 else _ESCAPES.get(sign, sign)

    text = _ESCAPE.sub(plain, body)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # two halves of a character are one


@v_args(meta=True)
class _Builder(Transformer_NonRecursive[Any, Any]):
    """Makes the nodes; knows how deep each of them is."""

    def _deep(self, node: Any, *children: Any) -> Any:
        depth = 1 + max((_depth(child) for child in children), default=0)
        if depth > MOST_DEPTH:
            raise _MistakeError(
                f"this nests more than {MOST_DEPTH} deep; split the query into several steps", node.span
            )
        return _Deep(node, depth)

    def start(self, _: Meta, children: list[Any]) -> syntax.Pipeline:
        return _bare(children[0])

    def pipeline(self, meta: Meta, children: list[Any]) -> Any:
        commands = tuple(_bare(child) for child in children)
        if len(commands) > MOST_COMMANDS:
            raise _MistakeError(f"the query has {len(commands)} commands; at most {MOST_COMMANDS}", _span(meta))
        return self._deep(syntax.Pipeline(commands, _span(meta)), *children)

    def command(self, meta: Meta, children: list[Any]) -> Any:
        name, arguments = children
        node = syntax.Command(str(name), tuple(map(_bare, arguments)), _of(name), _span(meta))
        return _Deep(node, max((_depth(argument) for argument in arguments), default=0))

    def arguments(self, _: Meta, children: list[Any]) -> list[Any]:
        return [_as_argument(child) for child in children]

    def named(self, meta: Meta, children: list[Any]) -> Any:
        name, value = children
        return _Deep(Argument(_bare(value), _span(meta), name=str(name)), _depth(value))

    def assigned(self, meta: Meta, children: list[Any]) -> Any:
        name, value = children
        return _Deep(Argument(_bare(value), _span(meta), alias=_bare(name)), _depth(value))

    def directed(self, meta: Meta, children: list[Any]) -> Any:
        value, direction = children
        return _Deep(Argument(_bare(value), _span(meta), direction=direction.lower()), _depth(value))

    def group(self, meta: Meta, children: list[Any]) -> Any:
        return self._deep(syntax.Group(tuple(map(_bare, children[0])), _span(meta)), *children[0])

    def block(self, meta: Meta, children: list[Any]) -> Any:
        return self._deep(syntax.Block(_bare(children[0]), _span(meta)), children[0])

    def or_test(self, meta: Meta, children: list[Any]) -> Any:
        return self._logic("or", meta, children)

    def xor_test(self, meta: Meta, children: list[Any]) -> Any:
        return self._logic("xor", meta, children)

    def and_test(self, meta: Meta, children: list[Any]) -> Any:
        return self._logic("and", meta, children)

    def _logic(self, operator: Literal["and", "or", "xor"], meta: Meta, children: list[Any]) -> Any:
        return self._deep(syntax.Logic(operator, tuple(map(_bare, children)), _span(meta)), *children)

    def negated(self, meta: Meta, children: list[Any]) -> Any:
        return self._deep(syntax.Negation(_bare(children[0]), _span(meta)), children[0])

    def within(self, meta: Meta, children: list[Any]) -> Any:
        operand, _, choices = children
        return self._deep(syntax.Within(_bare(operand), _bare(choices), _span(meta)), operand, choices)

    def binary(self, meta: Meta, children: list[Any]) -> Any:
        left, operator, right = children
        sign = {"<>": "!=", "–": "-", "−": "-"}.get(str(operator), str(operator).lower())
        return self._deep(syntax.Binary(sign, _bare(left), _bare(right), _span(meta)), left, right)

    def align(self, meta: Meta, children: list[Any]) -> Any:
        operand, token = children
        count, unit = _ALIGNMENT.fullmatch(token).groups()  # type: ignore[union-attr]
        return self._deep(syntax.Align(_bare(operand), int(count or 1), unit, _span(meta)), operand)

    def align_now(self, meta: Meta, children: list[Any]) -> Any:
        count, unit = _ALIGNMENT.fullmatch(children[0]).groups()  # type: ignore[union-attr]
        return syntax.Align(None, int(count or 1), unit, _span(meta))

    def minus(self, meta: Meta, children: list[Any]) -> Any:
        operand = children[1]
        return self._deep(syntax.Minus(_bare(operand), _span(meta)), operand)

    def plus(self, _: Meta, children: list[Any]) -> Any:
        return children[1]

    def index(self, meta: Meta, children: list[Any]) -> Any:
        operand, key = children
        return self._deep(syntax.Index(_bare(operand), _bare(key), _span(meta)), operand, key)

    def each(self, meta: Meta, children: list[Any]) -> Any:
        return self._deep(syntax.Index(_bare(children[0]), None, _span(meta)), children[0])

    def variable(self, _: Meta, children: list[Any]) -> Any:
        return syntax.Variable(str(children[0])[1:], _of(children[0]))

    def call(self, meta: Meta, children: list[Any]) -> Any:
        name, arguments = children
        return self._deep(syntax.Call(str(name), tuple(map(_bare, arguments)), _span(meta)), *arguments)

    def name(self, _: Meta, children: list[Any]) -> Any:
        token = children[0]
        text = _unescaped(token[1:-1]) if token.type == "QUOTED_NAME" else str(token)
        return syntax.Name(text, _of(token))

    def literal(self, _: Meta, children: list[Any]) -> Any:
        return _literal(children[0])


class _Deep:
    """A node with its depth, while the tree grows."""

    __slots__ = ("depth", "node")

    def __init__(self, node: Any, depth: int) -> None:
        self.node = node
        self.depth = depth


def _depth(child: Any) -> int:
    return child.depth if isinstance(child, _Deep) else 0


def _bare(child: Any) -> Any:
    return child.node if isinstance(child, _Deep) else child


def _as_argument(child: Any) -> Any:
    node = _bare(child)
    return child if isinstance(node, Argument) else _Deep(Argument(node, node.span), _depth(child))


def _literal(token: Token) -> Expression:
    span, text = _of(token), str(token)
    if token.type == "LONG_STRING":
        return syntax.Literal(text[3:-3], span)
    if token.type in ("STRING", "SINGLE_STRING"):
        return syntax.Literal(_unescaped(text[1:-1]), span)
    if token.type == "DURATION":
        count, unit = _DURATION.fullmatch(text).groups()  # type: ignore[union-attr]
        if int(count) > _HIGHEST:
            raise _MistakeError("the number does not fit into 64 bits", span)
        return syntax.Duration(int(count), unit, span)
    if token.type == "FLOAT":
        return syntax.Literal(float(text), span)
    if token.type in ("INTEGER", "HEX"):
        if len(text) > 40:
            raise _MistakeError("the number does not fit into 64 bits", span)
        number = int(text, 0) if token.type == "HEX" else int(text)
        if token.type == "HEX" and number < 2**64:
            number -= 2**64 * (number > _HIGHEST)
        if number > _HIGHEST + 1:  # one more than the highest is there for its negative
            raise _MistakeError("the number does not fit into 64 bits", span)
        return syntax.Literal(number, span)
    return syntax.Literal({"TRUE": True, "FALSE": False, "NULL": None}[token.type], span)
