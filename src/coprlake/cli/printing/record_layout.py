"""Which columns of a record are printed, where and in which format, including the defaults."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coprlake.text.nearest_words import hint, nearest

if TYPE_CHECKING:
    from coprlake.table import Table

OUTPUTS = ("table", "lines", "json", "csv", "parquet")
FOR_PEOPLE = ("table", "lines")
SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".ndjson": "json", ".jsonl": "json"}
SUFFIXES |= {".txt": "lines", ".log": "lines"}


@dataclass(frozen=True)
class Shown:
    """The columns, the destination and the format of search results.

    Attributes:
        output: one of `OUTPUTS`.
        out: a file; None or ``-`` for standard output.
        columns: the columns to write.
        are_columns_chosen: whether the user named the columns.
        has_context: whether the results have the two columns that context adds.
        are_originals: whether records that came from JSON are written as they were.
    """

    output: str
    out: str | None
    columns: tuple[str, ...]
    are_columns_chosen: bool
    has_context: bool
    are_originals: bool = False

    @property
    def is_terminal(self) -> bool:
        """Whether the output goes to a terminal."""
        return self.out in (None, "-") and sys.stdout.isatty()


def output_for(out: str | None) -> str:
    """The format that the suffix of a file stands for; without a suffix, lines.

    Raises:
        click.UsageError: the suffix is not known.
    """
    suffix = Path(out or "-").suffix.lower()
    if not suffix or not _is_new_file(out):
        return SUFFIXES.get(suffix, "lines")
    if suffix not in SUFFIXES:
        meant = nearest(suffix, SUFFIXES)
        raise click.UsageError(
            f"--out {out}: {f'did you mean {meant}? ' if meant else ''}no format is known for {suffix}; the known "
            f"suffixes are {', '.join(SUFFIXES)}; for another, name the format with -o"
        )
    return SUFFIXES[suffix]


def _is_new_file(out: str | None) -> bool:
    """Whether the name is that of a file, rather than of a pipe or device that has its name already."""
    return out is not None and (Path(out).is_file() or not Path(out).exists())


def chosen_layout(
    table: "Table",
    output: str | None,
    out: str | None,
    columns: str | None,
    *,
    has_context: bool,
    is_raw: bool = False,
) -> Shown:
    """Choose the columns and the format if the command line does not."""
    from coprlake.cli.printing.search_output import SHOWN
    from coprlake.query.context import MATCH
    from coprlake.records import CONTENT, DAY, HIDDEN, JSON_SHAPE

    is_terminal = out in (None, "-") and sys.stdout.isatty()
    if output is None:
        output = "lines" if is_raw else "table" if is_terminal else output_for(out)
    if output == "parquet" and is_terminal:
        raise click.UsageError("a terminal cannot show Parquet; name a file with --out, or redirect the output")
    names = table.schema.names
    if columns is not None:
        chosen = [name.strip() for name in columns.split(",") if name.strip()]
        unknown = [name for name in chosen if name not in names]
        if unknown or not chosen:
            similar = hint(unknown[0], names) if unknown else ""
            raise click.UsageError(
                f"no column {unknown[0] if unknown else ''!r}{similar}; the table has "
                f"{', '.join(name for name in names if name not in HIDDEN)}"
            )
    elif output in FOR_PEOPLE and CONTENT in names:
        chosen = [name for name in SHOWN if name in names] if output == "table" else [CONTENT]
    else:
        chosen = [name for name in names if name not in (DAY, *HIDDEN)]
    if has_context and output not in FOR_PEOPLE:
        chosen += [field.name for field in MATCH]
    are_originals = (
        columns is None
        and JSON_SHAPE in names
        and ((output == "lines" and (is_raw or not is_terminal)) or (output == "json" and not has_context))
    )
    return Shown(output, out, tuple(dict.fromkeys(chosen)), columns is not None, has_context, are_originals)


def needed_columns(table: "Table", shown: Sequence[str], *, are_originals: bool = False) -> list[str]:
    """List the columns to read: those shown, the time for sorting, the source for context; all for originals."""
    from coprlake.query.resolving import time_column
    from coprlake.records import SOURCE, TIMESTAMP

    names = table.schema.names
    if are_originals:
        return list(names)
    own = time_column(table.schema) or TIMESTAMP
    return [name for name in dict.fromkeys([*shown, own, SOURCE]) if name in names]
