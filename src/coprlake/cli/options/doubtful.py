"""Tells the user what is odd about the filters of a command, before it searches."""

from typing import TYPE_CHECKING

import click

from coprlake.cli.options.filters import PLAIN
from coprlake.cli.printing.notices import note, warn_each
from coprlake.config import LEVELS, OTHER_LEVEL_NAMES
from coprlake.text.nearest_words import hint

if TYPE_CHECKING:
    from coprlake.cli.options.filters import SearchRequest
    from coprlake.table import Table

_ERRORS = ("value", "level")


def check_filters(asked: "SearchRequest", table: "Table", *, is_strict: bool = False, is_quiet: bool = False) -> None:
    """Reject values of the wrong type and unknown levels, and warn about fields that no record has.

    Args:
        asked: the filters.
        table: the table that they will be used on.
        is_strict: whether a field that no record has, and a text that may be misread, is an error too.
        is_quiet: whether to print no warnings.

    Raises:
        click.UsageError: nothing sensible can come of it.
    """
    if is_strict and asked.kind == PLAIN:
        from coprlake.query.plain_search import plain_search

        for problem in (problem for text in asked.texts for problem in plain_search(text, table.fields).notes):
            raise click.UsageError(problem)
    doubts = asked.search(table).doubts()
    for doubt in doubts:
        if is_strict or doubt.about in _ERRORS:
            raise click.UsageError(doubt.text)
    if not is_quiet:
        warn_each([doubt.text for doubt in doubts])
        _tell_levels(asked, table)


def _tell_levels(asked: "SearchRequest", table: "Table") -> None:
    """Tell of misspelt levels if the table has no index that says whether they occur."""
    unknown = {level: hint(level, LEVELS) for level in asked.levels if level.upper() not in LEVELS}
    if any(unknown.values()) and not table.fields().complete:
        for level, known in unknown.items():
            if known and level.rstrip("+").upper() not in OTHER_LEVEL_NAMES:
                note(f"{level} is not a level that coprlake knows{known}")
