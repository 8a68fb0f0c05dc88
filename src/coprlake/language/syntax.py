"""The syntax tree of a query.

Every node has its span in the text, so that later errors can point to it.
"""

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import NamedTuple, TypeAlias

Scalar: TypeAlias = str | int | float | bool | None


class Span(NamedTuple):
    """A range of characters, without `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, number, boolean or null."""

    value: Scalar
    span: Span


@dataclass(frozen=True, slots=True)
class Duration:
    """A count and a unit: ``2h``."""

    count: int
    unit: str
    span: Span


@dataclass(frozen=True, slots=True)
class Name:
    """A field, or a bare word such as the ``logs`` of ``fetch logs``."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Variable:
    """``$name``: a value that is passed along with the query."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Minus:
    """The negative of a number or duration."""

    operand: "Expression"
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands and the operator between them: arithmetic, comparison, or ``~``."""

    operator: str
    left: "Expression"
    right: "Expression"
    span: Span


@dataclass(frozen=True, slots=True)
class Align:
    """A time rounded down to a unit: ``now()@d``; the default time is now."""

    operand: "Expression | None"
    count: int
    unit: str
    span: Span


@dataclass(frozen=True, slots=True)
class Logic:
    """Operands joined by ``and``, ``or`` or ``xor``."""

    operator: OneOf["and", "or", "xor"]
    parts: tuple["Expression", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Negation:
    """``not``."""

    operand: "Expression"
    span: Span


@dataclass(frozen=True, slots=True)
class Within:
    """``field in [query]`` or ``field in {a, b}``."""

    operand: "Expression"
    choices: "Block | Group"
    span: Span


@dataclass(frozen=True, slots=True)
class Index:
    """An element of an array or a member of a record; without a key, each element in turn."""

    operand: "Expression"
    key: "Expression | None"
    span: Span


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a command or function.

    Attributes:
        value: the expression, group or block.
        name: the name of a named argument, as in ``by:{source}``.
        alias: the field that the value is assigned to, as in ``n = count()``.
        direction: ``asc`` or ``desc``.
        span: its position in the text.
    """

    value: "Value"
    span: Span
    name: str | None = None
    alias: Name | None = None
    direction: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its arguments."""

    name: str
    arguments: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Group:
    """``{a, b}``."""

    arguments: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Block:
    """``[a query]``."""

    pipeline: "Pipeline"
    span: Span


@dataclass(frozen=True, slots=True)
class Command:
    """One step of a pipeline."""

    name: str
    arguments: tuple[Argument, ...]
    name_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands, each of which works on the output of the one before."""

    commands: tuple[Command, ...]
    span: Span


Expression: TypeAlias = (
    Literal | Duration | Name | Variable | Minus | Binary | Align | Logic | Negation | Within | Index | Call
)
Value: TypeAlias = Expression | Group | Block
