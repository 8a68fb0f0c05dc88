"""Patterns with ``*`` and ``?``: their literal pieces, and their translation for RE2."""

import re
from typing import Final, NamedTuple

from coprlake.predicate.patterns.literals import AllOf, LiteralPiece
from coprlake.predicate.patterns.regex_tree import BLANK, FOREIGN, MARK, WORD, class_bit

_ELEMENT = re.compile(r"\\([*?\\])|([*?])|(.)", re.DOTALL)
_ANY_RUN: Final = r"[^\n\r]*"
_ANY_ONE: Final = r"[^\n\r]"
_CLASSES: Final = {
    WORD: "0-9A-Za-z",
    MARK: r"!-/:-@\[-`{-~",
    BLANK: r"\x00-\x20\x7f",
    FOREIGN: r"\x{80}-\x{10ffff}",
}
_IN_ONE_LINE: Final = {**_CLASSES, BLANK: r"\x00-\x09\x0b\x0c\x0e-\x20\x7f"}


class Element(NamedTuple):
    """A literal text, or one of the wildcards ``*`` and ``?``."""

    text: str
    is_sign: bool


def elements_of(pattern: str) -> tuple[Element, ...]:
    """The pattern split into texts and wildcards; no two texts and no two ``*`` are adjacent."""
    found: list[Element] = []
    for match in _ELEMENT.finditer(pattern):
        escaped, sign, plain = match.groups()
        element = Element(sign or escaped or plain, bool(sign))
        if not element.is_sign and found and not found[-1].is_sign:
            found[-1] = Element(found[-1].text + element.text, False)
        elif sign != "*" or not found or found[-1] != element:
            found.append(element)
    return tuple(found)


def pieces_of_wildcard(pattern: str) -> AllOf:
    """The texts that every match contains; only the ends of the pattern are closed, unless a wildcard is there."""
    elements = elements_of(pattern)
    last = len(elements) - 1
    return AllOf(
        tuple(LiteralPiece(text, i > 0, i < last) for i, (text, is_sign) in enumerate(elements) if not is_sign)
    )


def as_one_piece(pattern: str) -> LiteralPiece | None:
    """The whole pattern as one piece, if wildcards are only at its ends, as in most patterns."""
    elements = elements_of(pattern)
    texts = [element.text for element in elements if not element.is_sign]
    if len(texts) > 1 or Element("?", True) in elements:
        return None
    return LiteralPiece("".join(texts), elements[:1] == (Element("*", True),), elements[-1:] == (Element("*", True),))


def as_regex(pattern: str, *, case_sensitive: bool) -> str:
    """The equivalent pattern for RE2; a boundary is an end of the value or one character."""
    elements = elements_of(pattern)
    last = len(elements) - 1
    return "".join(_as_regex(element, i == 0, i == last, case_sensitive) for i, element in enumerate(elements))


def _as_regex(element: Element, is_first: bool, is_last: bool, case_sensitive: bool) -> str:
    if not element.is_sign:
        text = "".join(_literal(character, case_sensitive) for character in element.text)
        before = _border("^", class_bit(element.text[0])) if is_first else ""
        return before + text + (_border("$", class_bit(element.text[-1])) if is_last else "")
    if element.text == "*":
        return _ANY_RUN
    if not (is_first or is_last):
        return _ANY_ONE
    choices = [
        f"{_border('^', bit) if is_first else ''}[{members}]{_border('$', bit) if is_last else ''}"
        for bit, members in _IN_ONE_LINE.items()
    ]
    return f"(?:{'|'.join(choices)})"


def _border(end: str, bit: int) -> str:
    return f"(?:{end}|[^{_CLASSES[bit]}])"


def _literal(character: str, case_sensitive: bool) -> str:
    if character.isascii() and character.isalpha() and not case_sensitive:
        return f"[{character.lower()}{character.upper()}]"
    return re.escape(character) if character.isascii() else character
