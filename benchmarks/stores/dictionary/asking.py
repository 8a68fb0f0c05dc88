"""What a text means for templates and columns: which lines of a group may contain it.

A text is cut as lines are: into tokens and what stands between. So each of its tokens lies inside one token of a line
that contains it, and is a whole one unless it is at an end of the text. What stands between tokens is in the template.
An *alignment* is a place in a template where the text fits if some variables have the right values: a variable for
each token of the text that meets a mark. All alignments together find every line that contains the text, and no
other; the exact matcher looks at the lines nevertheless, because of terms.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.stores.dictionary.columns import LEAST, MOST, folded
from benchmarks.stores.dictionary.groups import Group
from benchmarks.stores.dictionary.parsing import MARK
from coprlake.predicate.finding import PREFIX, SUFFIX, WHOLE, Mask, Needle, find_at_edges, find_rows, new_needle
from coprlake.tokens.fingerprint import as_bytes

ANYWHERE: Final = 3
"""Besides PREFIX, SUFFIX and WHOLE: where in its token a piece stands."""
_PIECE: Final = re.compile(rb"([0-9A-Za-z\x80-\xff]+)|([^0-9A-Za-z\x80-\xff]+)")
_DIGIT: Final = re.compile(rb"[0-9]")
_MARK: Final = bytes([MARK])


@dataclass(frozen=True)
class Piece:
    """A token of the text, without case."""

    text: bytes
    edge: int

    @cached_property
    def needle(self) -> Needle:
        """What to look for in values."""
        return new_needle(self.text, case_sensitive=False)

    @cached_property
    def mask(self) -> tuple[np.uint64, np.uint64]:
        """Its bytes, as stamps have them."""
        bits = 0
        for byte in set(self.text):
            bits |= 1 << folded(byte)
        return np.uint64(bits & (2**64 - 1)), np.uint64(bits >> 64)

    def fits(self, group: Group) -> Mask:
        """For each column whether its stamp allows the piece."""
        lower, upper = self.mask
        size = len(self.text)
        fits: Mask = group.fields[:, MOST] >= size
        fits &= (group.masks[0] & lower) == lower
        fits &= (group.masks[1] & upper) == upper
        if self.edge == WHOLE:
            fits &= group.fields[:, LEAST] <= size
        return fits

    def matching(self, group: Group, column: int) -> Mask:
        """For each value of the column whether it has the piece in its place."""
        data, starts = group.values(column)
        found = np.zeros(len(starts) - 1, np.bool_)
        if self.edge == ANYWHERE:
            find_rows(data, starts, self.needle, found)
        else:
            find_at_edges(data, starts, self.needle, self.edge, found)
        return found


class Need(NamedTuple):
    """That a column has a piece."""

    column: int
    piece: int


def _edge(is_first: bool, is_last: bool) -> int:
    if is_first:
        return ANYWHERE if is_last else SUFFIX
    return PREFIX if is_last else WHOLE


class Question:
    """A text to be contained."""

    def __init__(self, text: str) -> None:
        sought = as_bytes(text).lower()
        self._sought = sought
        self._pieces: list[Piece] = []
        self._in_templates = MARK not in sought
        parts = []
        for match in _PIECE.finditer(sought):
            literal = re.escape(match.group())
            if match.group(1) is None:
                parts.append(literal)
                continue
            self._pieces.append(Piece(match.group(), _edge(match.start() == 0, match.end() == len(sought))))
            has_digit = _DIGIT.search(match.group()) is not None  # then it is never static
            parts.append(b"(" + _MARK + b")" if has_digit else b"(?:" + literal + b"|(" + _MARK + b"))")
        self._pattern = re.compile(b"".join(parts))

    def lines(self, group: Group) -> Iterator[pa.Array]:
        """Lines of the group, among them all that contain the text."""
        if self._in_templates:
            asked = _Asked(group, self._pieces)
            for template, alignments in self._alignments(asked).items():
                rows = asked.rows(alignments)
                if rows is None or rows.any():
                    yield group.lines(template, rows)
        yield group.others()

    def _alignments(self, asked: "_Asked") -> dict[int, set[tuple[Need, ...]]]:
        """For each template that the text fits, what is needed of its columns: one of these."""
        if len(self._pieces) == 1 and self._pieces[0].text == self._sought:
            return self._alignments_of_token(asked)
        return self._alignments_of_text(asked)

    def _alignments_of_token(self, asked: "_Asked") -> dict[int, set[tuple[Need, ...]]]:
        """The short way for a text without anything between tokens."""
        group, found = asked.group, dict[int, set[tuple[Need, ...]]]()
        starts, texts = group.folded_starts, group.folded_texts
        place = texts.find(self._sought)
        while place >= 0:
            template = int(np.searchsorted(starts, place, "right")) - 1
            found[template] = {()}
            place = texts.find(self._sought, int(starts[template + 1]))
        columns = np.flatnonzero(asked.fits[0])
        templates = np.searchsorted(group.first_columns, columns, "right") - 1
        for column, template in zip(columns.tolist(), templates.tolist(), strict=True):
            found.setdefault(template, set()).add((Need(column, 0),))
        return found

    def _alignments_of_text(self, asked: "_Asked") -> dict[int, set[tuple[Need, ...]]]:
        group, found = asked.group, dict[int, set[tuple[Need, ...]]]()
        starts, texts, marks = group.folded_starts, group.folded_texts, group.marks
        match = self._pattern.search(texts)
        while match is not None and match.start() < len(texts):
            template = int(np.searchsorted(starts, match.start(), "right")) - 1
            after = match.start() + 1
            if match.end() < starts[template + 1]:  # it does not go over the line end into the next template
                places = [match.start(number + 1) for number in range(len(self._pieces))]
                needs = tuple(
                    Need(int(np.searchsorted(marks, place)), piece) for piece, place in enumerate(places) if place >= 0
                )
                if all(asked.fits[need.piece][need.column] for need in needs):
                    found.setdefault(template, set()).add(needs)
                    after = after if needs else int(starts[template + 1])
            match = self._pattern.search(texts, after)
        return found


class _Asked:
    """A group, and what is known of its columns so far."""

    def __init__(self, group: Group, pieces: list[Piece]) -> None:
        self.group = group
        self._pieces = pieces
        self.fits = [piece.fits(group) for piece in pieces]
        self._values: dict[Need, Mask] = {}

    def _matching(self, need: Need) -> Mask:
        if need not in self._values:
            self._values[need] = self._pieces[need.piece].matching(self.group, need.column)
        return self._values[need]

    def rows(self, alignments: set[tuple[Need, ...]]) -> Mask | None:
        """The rows of a template for which one of the alignments holds; None for all."""
        if () in alignments:
            return None
        found: Mask = np.zeros(1, np.bool_)
        for needs in alignments:
            by_cost = sorted(needs, key=lambda need: not self.group.has_dictionary(need.column))
            if all(self._matching(need).any() for need in by_cost):
                rows = [self._matching(need)[self.group.codes(need.column)] for need in by_cost]
                found = found | np.logical_and.reduce(rows)
        return found
