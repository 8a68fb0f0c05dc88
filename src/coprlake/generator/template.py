"""Parses the templates of the application files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coprlake.generator.clock import Columns, TimeStyle
from coprlake.generator.field_values import KINDS, Lifetime, Values

_PLACE = re.compile(r"<(=?[^<>\s=][^<>]*)>")


@dataclass(frozen=True)
class Field:
    """One ``<...>`` of a template.

    ``<kind>`` and ``<kind:argument>`` name a kind of ``KINDS``; ``<a|b|c>`` picks one of the words, the first most
    often; ``<time>`` and ``<seq>`` come from the line's place in its source. A leading ``=`` makes a value hold for
    the whole episode. Equal text in the lines of an episode is the same value if its scope is the episode.
    """

    text: str

    @cached_property
    def scope(self) -> Lifetime:
        """How long a value of this field holds."""
        if self.text.startswith("="):
            return Lifetime.EPISODE
        if "|" in self.text:
            return Lifetime.LINE
        return Lifetime.ROW if self._kind in ("time", "seq") else KINDS[self._kind].scope

    @property
    def _kind(self) -> str:
        return self.text.lstrip("=").partition(":")[0]

    @property
    def argument(self) -> str:
        """The text after the colon."""
        return self.text.lstrip("=").partition(":")[2]

    def pattern(self, style: TimeStyle) -> str:
        """The percent pattern that takes this field's columns."""
        if "|" in self.text:
            return "%s"
        if self._kind == "time":
            return style.pattern
        return "%d" if self._kind == "seq" else KINDS[self._kind].pattern(self.argument)

    def draw(self, values: Values, count: int) -> Columns:
        """Columns of ``count`` fresh values; not for fields of scope ROW."""
        if "|" not in self.text:
            return KINDS[self._kind].draw(values, self.argument, count)
        words = self.text.lstrip("=").split("|")
        weights = 1.0 / np.arange(1, len(words) + 1) ** 1.8
        picks = values.rng.choice(len(words), count, p=weights / weights.sum())
        return [[words[pick] for pick in picks.tolist()]]


@dataclass(frozen=True)
class Line:
    """One line of a flow: a percent pattern, its fields in order, and whether episodes may omit it."""

    pattern: str
    fields: tuple[Field, ...]
    optional: bool


@dataclass(frozen=True)
class Application:
    """A kind of program that writes logs.

    ``text`` holds its flows, separated by empty lines, the most frequent first. A flow is what one activity writes,
    line by line; ``prefix`` precedes every line except those that start with ``!`` (such as frames of a stack trace);
    a line that starts with ``?`` appears in about half of the episodes. ``time`` is the time format; the lines of an
    episode are about ``pace_ms`` apart.
    """

    name: str
    time: str
    prefix: str
    text: str
    pace_ms: float = 8.0

    @cached_property
    def style(self) -> TimeStyle:
        """The format of ``<time>``."""
        return TimeStyle(self.time)

    @cached_property
    def flows(self) -> tuple[tuple[Line, ...], ...]:
        """The compiled flows; the first line of a flow is never optional."""
        paragraphs = re.split(r"\n\s*\n", self.text.strip("\n"))
        return tuple(tuple(self._line(row) for row in paragraph.split("\n")) for paragraph in paragraphs)

    def _line(self, row: str) -> Line:
        optional, bare = row.startswith("?"), row.lstrip("?").startswith("!")
        text = row.lstrip("?").removeprefix("!")
        whole = text if bare else self.prefix + text
        fields = tuple(Field(match[1]) for match in _PLACE.finditer(whole))
        literals = [part.replace("%", "%%") for part in _PLACE.split(whole)[::2]]
        patterns = [field.pattern(self.style) for field in fields] + [""]
        pattern = "".join(literal + piece for literal, piece in zip(literals, patterns, strict=True))
        return Line(pattern, fields, optional)
