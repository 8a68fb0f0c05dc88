"""The tree of a regular expression, and the character classes in it."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from coprlake.tokens.required_tokens import symbol_class
from coprlake.tokens.rules import SYMBOLS

WORD, MARK, BLANK, FOREIGN = 1, 2, 4, 8
"""Bits for sets of character classes, as `tokens.rules` defines them."""
ANY_CLASS: Final = WORD | MARK | BLANK | FOREIGN

AnchorKind: TypeAlias = Literal["start", "line start", "end", "line end", "border", "other"]


@dataclass(frozen=True, slots=True)
class Char:
    """One character; `text` is lower case where case does not matter."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of several: `classes` are theirs; `members`, lower case, are all of them if they are few."""

    classes: int
    members: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Anchor:
    """Matches no character: an end, a word boundary, or flags for what follows."""

    kind: AnchorKind
    source: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """The parts in sequence."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the parts."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The part, repeated `least` to `most` times; None means no limit."""

    part: "Node"
    least: int
    most: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Group:
    """The part in parentheses."""

    part: "Node"
    opening: str


Node: TypeAlias = Char | Chars | Anchor | Sequence | Choice | Repeat | Group


def emitted(node: Node) -> str:
    """The tree as a pattern."""
    if isinstance(node, Sequence):
        return "".join(map(emitted, node.parts))
    if isinstance(node, Choice):
        return "|".join(map(emitted, node.parts))
    if isinstance(node, Group):
        return f"{node.opening}{emitted(node.part)})"
    if isinstance(node, Repeat):
        return emitted(node.part) + node.source
    return node.source


def class_bit(character: str) -> int:
    """The class of a character, as a bit."""
    return FOREIGN if character > "\x7f" else 1 << symbol_class(int(SYMBOLS[ord(character)]))
