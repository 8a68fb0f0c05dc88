"""What a text means for templates and columns: which lines of a group may contain it.

A text is cut as lines are: into tokens and what stands between. So each of its tokens lies inside one token of a line
that contains it, and is a whole one unless it is at an end of the text. What stands between tokens is in the template.
An *alignment* is a place in a template where the text fits if some variables have the right values: a variable for
each token of the text that meets a mark. All alignments together find every line that contains the text, and no
other; the exact matcher looks at the lines nevertheless, because of terms.
"""

import re
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.stores.dictionary.columns import DISTINCT, LEAST, MOST, folded
from benchmarks.stores.dictionary.decoding import ANYWHERE, Parts, find_alignments, match_columns, select_lines
from benchmarks.stores.dictionary.parsing import MARK
from benchmarks.stores.dictionary.reading import Group, OpenGroup
from coprlake.kernel import I64Array
from coprlake.predicate.deciding.finding import PREFIX, SUFFIX, WHOLE, Mask, new_needle
from coprlake.tokens.fingerprint import as_bytes

_PART: Final = re.compile(rb"([0-9A-Za-z\x80-\xff]+)|[^0-9A-Za-z\x80-\xff]+")
_DIGIT: Final = re.compile(rb"[0-9]")


def _edge(is_first: bool, is_last: bool) -> int:
    """Where in its token a piece stands."""
    if is_first:
        return ANYWHERE if is_last else SUFFIX
    return PREFIX if is_last else WHOLE


class Piece:
    """A token of the text, without case."""

    def __init__(self, text: bytes, edge: int) -> None:
        self.edge = edge
        self.needle = new_needle(text, case_sensitive=False)
        bits = 0
        for byte in set(text):
            bits |= 1 << folded(byte)
        self._masks = (np.uint64(bits & (2**64 - 1)), np.uint64(bits >> 64))

    def fits(self, group: Group) -> Mask:
        """For each column whether its stamp allows the piece."""
        size = len(self.needle.bytes)
        fits: Mask = group.fields[:, MOST] >= size
        if self.edge == WHOLE:
            fits &= group.fields[:, LEAST] <= size
        for mask, own in zip(group.masks, self._masks, strict=True):
            fits &= (mask & own) == own
        return fits


class Question:
    """A text to be contained."""

    def __init__(self, text: str) -> None:
        sought = as_bytes(text).lower()
        found = list(_PART.finditer(sought))
        self._in_templates = MARK not in sought
        self._pieces = [
            Piece(match.group(), _edge(match.start() == 0, match.end() == len(sought)))
            for match in found
            if match.group(1) is not None
        ]
        self._parts = Parts(
            np.frombuffer(sought, np.uint8),
            np.array([*(match.start() for match in found), len(sought)], np.int64),
            np.array([match.group(1) is not None for match in found], np.bool_),
            np.array([_DIGIT.search(match.group()) is not None for match in found], np.bool_),
        )

    def lines(self, opened: OpenGroup) -> list[pa.Array]:
        """Lines of the group, among them all that contain the text."""
        arrays = [opened.lines(self._selected(opened))] if self._in_templates else []
        return [*arrays, opened.others()]

    def _selected(self, opened: OpenGroup) -> Mask:
        """Which lines of templates contain the text; only for these columns are opened."""
        group = opened.group
        selected = np.zeros(group.line_count, np.bool_)
        templates, columns = self._alignments(group)
        if len(templates) == 0:
            return selected
        is_coded = group.fields[:, DISTINCT] > 0
        matching = np.zeros((len(self._pieces), int(group.first_values[-1])), np.bool_)
        for is_asked in (is_coded, ~is_coded):  # dictionaries first: they may rule out that data must be opened
            holds = self._match(opened, columns, is_asked, matching)
            templates, columns = templates[holds], columns[holds]
        opened.open_data(np.unique(columns[columns >= 0]))
        select_lines(opened.layout, group.shapes, templates, columns, matching, selected)
        return selected

    def _alignments(self, group: Group) -> tuple[I64Array, I64Array]:
        """The template of each alignment, and its columns by piece."""
        fits = np.zeros((len(self._pieces), len(group.fields)), np.bool_)
        for piece, row in zip(self._pieces, fits, strict=True):
            row[:] = piece.fits(group)
        shapes = group.shapes
        room = len(shapes.texts) + group.template_count + 1
        templates = np.empty(room, np.int64)
        columns = np.empty((room, len(self._pieces)), np.int64)
        count = find_alignments(group.folded_texts, shapes.text_starts, self._parts, fits, templates, columns)
        return templates[:count], columns[:count]

    def _match(self, opened: OpenGroup, columns: I64Array, is_asked: Mask, matching: Mask) -> Mask:
        """Match pieces with the values of the columns that are asked; which alignments may still hold."""
        holds = np.ones(len(columns), np.bool_)
        is_asked = np.append(is_asked, False)  # for -1: no column
        for number, piece in enumerate(self._pieces):
            own = columns[:, number]
            needs = (own >= 0) & is_asked[own]
            asked = np.unique(own[needs & holds])
            opened.open_dictionaries(asked)
            opened.open_data(asked[opened.group.fields[asked, DISTINCT] == 0])
            has = np.zeros(len(is_asked), np.bool_)
            match_columns(opened.layout, asked, piece.needle, piece.edge, matching[number], has)
            holds &= ~needs | has[own]
        return holds
