"""Finds the matching spans of a line, for coloured output."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute

from coprlake.predicate.narrowing.required import phrase_parts
from coprlake.predicate.patterns.regex import parse_pattern
from coprlake.predicate.patterns.regex_tree import BLANK, FOREIGN, MARK, WORD, class_bit
from coprlake.predicate.patterns.wildcards import Element, as_one_piece, as_regex, elements_of
from coprlake.predicate.predicates import (
    ALL_FIELDS,
    ANY_VALUE,
    And,
    Contains,
    Equals,
    Leaf,
    Not,
    OneOf,
    Or,
    Phrase,
    Predicate,
    Prefix,
    Regex,
    Suffix,
    Term,
    Wildcard,
)
from coprlake.predicate.values import text_of
from coprlake.records import CONTENT

_CLASSES: Final = {
    WORD: "[0-9A-Za-z]",
    MARK: r"[!-/:-@\[-`{-~]",
    BLANK: r"[\x00-\x20\x7f]",
    FOREIGN: r"[^\x00-\x7f]",
}
_PHRASE_WORD: Final = "[0-9A-Za-z_]"
_OPENING, _CLOSING = "\ue0f0", "\ue0f1"
"""Private-use characters: a log line that contains one is shown without colour."""


def highlights(predicate: Predicate, text: str) -> list[tuple[int, int]]:
    """The spans of characters that matched in a log line, sorted and not touching.

    Only conditions on the content count, and none that are negated. This decides nothing: a line may match without a
    span, and have spans without matching.
    """
    spans = sorted(span for leaf in _positive_leaves(predicate) for span in _spans(leaf, text) if span[0] < span[1])
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def text_leaves(predicate: Predicate) -> Iterator[Leaf]:
    """The conditions that look for a text, in any field; none that are negated."""
    if isinstance(predicate, And | Or):
        for part in predicate.parts:
            yield from text_leaves(part)
    elif isinstance(predicate, Contains | Term | Phrase | Prefix | Suffix | Wildcard | Regex):
        yield predicate


def matched_spans(leaves: Sequence[Leaf], texts: Sequence[str | None]) -> list[list[tuple[int, int]]]:
    """The spans that matched in each text, from left to right, each part of a text at most once."""
    found = []
    for text in texts:
        spans = sorted(
            {span for leaf in leaves for span in _spans(leaf, text or "") if span[0] < span[1]}, key=_longest
        )
        kept, end = [], 0
        for span in spans:
            if span[0] >= end:
                kept.append(span)
                end = span[1]
        found.append(kept)
    return found


def _longest(span: tuple[int, int]) -> tuple[int, int]:
    return span[0], -span[1]


def _positive_leaves(predicate: Predicate) -> Iterator[Leaf]:
    if isinstance(predicate, And | Or):
        for part in predicate.parts:
            yield from _positive_leaves(part)
    elif not isinstance(predicate, Not) and predicate.field in (CONTENT, ALL_FIELDS, ANY_VALUE):
        yield predicate


def _spans(leaf: Leaf, text: str) -> Iterator[tuple[int, int]]:
    if isinstance(leaf, Equals | OneOf):
        values = (leaf.value,) if isinstance(leaf, Equals) else leaf.values
        sources = [rf"\A{re.escape(text_of(value))}\Z" for value in values]
    elif isinstance(leaf, Regex):
        yield from _spans_of_regex(parse_pattern(leaf.text, case_sensitive=leaf.case_sensitive).source, text)
        return
    elif isinstance(leaf, Wildcard) and as_one_piece(leaf.text) is None:
        elements = elements_of(leaf.text)
        for start, end in _spans_of_regex(as_regex(leaf.text, case_sensitive=leaf.case_sensitive), text):
            yield start + _is_beside(elements[0], 0, text[start]), end - _is_beside(elements[-1], -1, text[end - 1])
        return
    else:
        sources = [_source(leaf)]
    flags = re.ASCII if getattr(leaf, "case_sensitive", True) else re.ASCII | re.IGNORECASE
    for source in sources:
        yield from (match.span() for match in re.finditer(source, text, flags))


def _is_beside(element: Element, edge: int, character: str) -> bool:
    """Whether the character at the edge of a match is the border of its first or last text, and not part of it."""
    return not element.is_sign and class_bit(element.text[edge]) != class_bit(character)


def _source(leaf: Leaf) -> str:
    """A Python pattern of literals and lookarounds only, which is fast on every line."""
    if isinstance(leaf, Contains):
        return re.escape(leaf.text)
    if isinstance(leaf, Prefix):
        return rf"\A{re.escape(leaf.text)}"
    if isinstance(leaf, Suffix):
        return rf"{re.escape(leaf.text)}\Z"
    if isinstance(leaf, Term):
        return _bordered(leaf.text, True, True)
    if isinstance(leaf, Wildcard) and (piece := as_one_piece(leaf.text)) is not None:
        return _bordered(piece.text, not piece.left_open, not piece.right_open)
    if isinstance(leaf, Phrase):
        core, left, right = phrase_parts(leaf.text)
        before = f"(?<!{_PHRASE_WORD})" if left and re.match(_PHRASE_WORD, core[0]) else ""
        after = f"(?!{_PHRASE_WORD})" if right and re.match(_PHRASE_WORD, core[-1]) else ""
        return before + re.escape(core) + after
    return ""


def _bordered(text: str, left: bool, right: bool) -> str:
    before = f"(?<!{_CLASSES[class_bit(text[0])]})" if left and text else ""
    after = f"(?!{_CLASSES[class_bit(text[-1])]})" if right and text else ""
    return before + re.escape(text) + after


def _spans_of_regex(source: str, text: str) -> Iterator[tuple[int, int]]:
    """Spans by RE2, which takes linear time for any pattern: it marks its matches, and the marks are read back."""
    if _OPENING in text or _CLOSING in text:
        return
    try:
        lines = pa.array([text])
    except UnicodeEncodeError:  # not valid UTF-8
        return
    marked = pa.compute.replace_substring_regex(lines, source, rf"{_OPENING}\0{_CLOSING}")[0].as_py()
    for number, match in enumerate(re.finditer(f"{_OPENING}([^{_CLOSING}]*){_CLOSING}", marked)):
        start = match.start() - 2 * number
        yield start, start + len(match.group(1))
