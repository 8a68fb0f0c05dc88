r"""The literal pieces that every match of a regular expression contains.

The text between two pieces is unknown, but often not entirely: next to ``\s`` or ``^`` a word is whole, and a whole
word rules out far more than its grams. So the characters that can be next to each piece are tracked, as a set of
classes; an end is closed if the class of its own character is not in the set.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, TypeAlias

from coprlake.predicate.patterns.regex_tree import (
    ANY_CLASS,
    BLANK,
    MARK,
    WORD,
    Anchor,
    Char,
    Chars,
    Choice,
    Group,
    Node,
    Repeat,
    Sequence,
    class_bit,
)

_MOST_STRINGS: Final = 16
_MOST_CHARACTERS: Final = 256
_MOST_PIECES: Final = 64

Side: TypeAlias = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class LiteralPiece:
    """A text that must occur, in any case of its ASCII letters; an open end may lie within a run of its class."""

    text: str
    left_open: bool
    right_open: bool


@dataclass(frozen=True, slots=True)
class AllOf:
    """All parts must occur; without parts, anything will do."""

    parts: tuple["Requirement", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of the parts must occur."""

    parts: tuple["Requirement", ...]


Requirement: TypeAlias = LiteralPiece | AllOf | AnyOf

NO_REQUIREMENT: Final = AllOf(())


def required_literals(tree: Node | None) -> Requirement:
    """What every text that the pattern matches contains; `NO_REQUIREMENT` if nothing is known."""
    if tree is None:
        return NO_REQUIREMENT
    requirement = _required(tree, ANY_CLASS, ANY_CLASS)
    return requirement if len(list(pieces_of(requirement))) <= _MOST_PIECES else NO_REQUIREMENT


def pieces_of(requirement: Requirement) -> Iterable[LiteralPiece]:
    """All pieces of the requirement."""
    if isinstance(requirement, LiteralPiece):
        yield requirement
    else:
        for part in requirement.parts:
            yield from pieces_of(part)


def literals_to_look_for(requirement: Requirement) -> tuple[str, ...]:
    """A few texts, as long as possible, such that every match contains one of them; empty if nothing is known."""
    if isinstance(requirement, LiteralPiece):
        return (requirement.text,)
    choices = [literals_to_look_for(part) for part in requirement.parts]
    if isinstance(requirement, AnyOf):
        return tuple(dict.fromkeys(text for texts in choices for text in texts)) if all(choices) else ()
    return max(choices, key=lambda texts: (min(map(len, texts), default=0), -len(texts)), default=())


def _required(node: Node, before: int, after: int) -> Requirement:
    """What a match of the node contains if characters of these classes can be next to it."""
    if isinstance(node, Group):
        return _required(node.part, before, after)
    if isinstance(node, Chars) and not node.members:
        return NO_REQUIREMENT
    if isinstance(node, Repeat) and _strings(node) is None:
        if node.least == 0:
            return NO_REQUIREMENT
        return _required(node.part, before | _beside(node.part, 0, "before"), after | _beside(node.part, 0, "after"))
    if isinstance(node, Choice) and _strings(node) is None:
        return _any_of([_required(part, before, after) for part in node.parts])
    return _required_in_sequence(node.parts if isinstance(node, Sequence) else (node,), before, after)


def _required_in_sequence(parts: tuple[Node, ...], before: int, after: int) -> Requirement:
    """Runs of parts with few possible strings make pieces; other parts state their own requirements."""
    befores, afters = [before], [after]
    for part in parts:
        befores.append(_beside(part, befores[-1], "before"))
    for part in reversed(parts):
        afters.append(_beside(part, afters[-1], "after"))
    afters.reverse()
    found: list[Requirement] = []
    run: tuple[str, ...] = ("",)
    start = 0
    for i, part in enumerate(parts):
        strings = _strings(part)
        joined = None if strings is None else _products(run, strings)
        if joined is not None:
            run = joined
            continue
        found.append(_pieces(run, parts, start, i, befores, afters))
        run, start = ("",) if strings is None else strings, i if strings is not None else i + 1
        if strings is None:
            found.append(_required(part, befores[i], afters[i + 1]))
    found.append(_pieces(run, parts, start, len(parts), befores, afters))
    return _all_of(found)


def _pieces(
    strings: tuple[str, ...], parts: tuple[Node, ...], start: int, end: int, befores: list[int], afters: list[int]
) -> Requirement:
    """The pieces that ``parts[start:end]`` make, whose possible strings are given."""
    while start < end and isinstance(parts[start], Anchor):
        start += 1
    while end > start and isinstance(parts[end - 1], Anchor):
        end -= 1
    if "" in strings:
        return NO_REQUIREMENT
    at_left = start > 0 and _is_border(parts[start - 1])
    at_right = end < len(parts) and _is_border(parts[end])
    return _any_of(
        [
            LiteralPiece(text, _is_open(text[0], befores[start], at_left), _is_open(text[-1], afters[end], at_right))
            for text in strings
        ]
    )


def _is_border(node: Node) -> bool:
    return isinstance(node, Anchor) and node.kind == "border"


def _is_open(character: str, beside: int, has_border: bool) -> bool:
    r"""Whether a character of its own class can be next to a character, given the classes there and any ``\b``."""
    if has_border:
        is_word = character == "_" or class_bit(character) == WORD
        beside &= ~WORD if is_word else WORD | MARK  # next to another character there must be one of [0-9A-Za-z_]
    return beside & class_bit(character) != 0


def _beside(node: Node, outer: int, side: Side) -> int:
    """The classes that can come before what follows the node (or after what precedes it).

    `outer` is the same for the node itself. The start and the end of the text belong to no class.
    """
    if isinstance(node, Char):
        return class_bit(node.text)
    if isinstance(node, Chars):
        return node.classes
    if isinstance(node, Anchor):
        if node.kind == ("start" if side == "before" else "end"):
            return 0
        return BLANK if node.kind == ("line start" if side == "before" else "line end") else outer
    if isinstance(node, Sequence):
        for part in node.parts if side == "before" else reversed(node.parts):
            outer = _beside(part, outer, side)
        return outer
    if isinstance(node, Choice):
        classes = 0
        for part in node.parts:
            classes |= _beside(part, outer, side)
        return classes
    if isinstance(node, Group):
        return _beside(node.part, outer, side)
    around = _beside(node.part, outer | _beside(node.part, 0, side), side)
    return around | outer if node.least == 0 else around


def _strings(node: Node) -> tuple[str, ...] | None:
    """All strings that the node can match, if they are few."""
    if isinstance(node, Char):
        return (node.text,)
    if isinstance(node, Chars):
        return node.members or None
    if isinstance(node, Anchor):
        return ("",)
    if isinstance(node, Group):
        return _strings(node.part)
    if isinstance(node, Repeat):
        return _repeated_strings(node)
    found: tuple[str, ...] | None = ("",) if isinstance(node, Sequence) else ()
    for part in node.parts:
        strings = _strings(part)
        if found is None or strings is None:
            return None
        found = _products(found, strings) if isinstance(node, Sequence) else _few((*found, *strings))
    return found


def _repeated_strings(node: Repeat) -> tuple[str, ...] | None:
    strings = _strings(node.part)
    if strings is None or node.most is None or node.most > _MOST_CHARACTERS:
        return None
    power: tuple[str, ...] | None = ("",)
    found: tuple[str, ...] | None = power if node.least == 0 else ()
    for count in range(1, node.most + 1):
        power = None if power is None else _products(power, strings)
        if power is None or found is None:
            return None
        found = _few((*found, *power)) if count >= node.least else found
    return found


def _products(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...] | None:
    if len(left) * len(right) > _MOST_STRINGS:
        return None
    return _few(a + b for a, b in product(left, right))


def _few(strings: Iterable[str]) -> tuple[str, ...] | None:
    found = tuple(dict.fromkeys(strings))
    return found if len(found) <= _MOST_STRINGS and all(len(text) <= _MOST_CHARACTERS for text in found) else None


def _all_of(parts: list[Requirement]) -> Requirement:
    known = tuple(part for part in parts if part != NO_REQUIREMENT)
    return known[0] if len(known) == 1 else AllOf(known)


def _any_of(parts: list[Requirement]) -> Requirement:
    if NO_REQUIREMENT in parts:
        return NO_REQUIREMENT
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))
