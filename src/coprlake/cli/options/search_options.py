"""The options of `search` that say what to print, and how."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import click

from coprlake.cli.options.choices import NearestChoice
from coprlake.cli.printing.record_layout import OUTPUTS, output_for

_LAST = 10
"""How many records `--follow` shows first, as `tail -f` does."""


@dataclass(frozen=True)
class Printing:
    """What `search` prints, and how; the attributes are its options."""

    order: str
    limit: int | None
    after: int | None
    before: int | None
    around: int
    only_count: bool
    only_names: bool
    only_matching: bool
    quiet: bool
    follow: bool
    output: str | None
    as_json: bool
    raw: bool
    columns: str | None
    out: str | None
    utc: bool
    full: bool
    no_pager: bool
    strict: bool
    threads: int | None
    stats: bool

    @property
    def context(self) -> tuple[int, int]:
        """The number of records to show before and after each match."""
        return (self.around if self.before is None else self.before, self.around if self.after is None else self.after)

    @property
    def last(self) -> int:
        """How many records `--follow` shows first."""
        return _LAST if self.limit is None else self.limit

    def check(self, *, has_texts: bool, is_inverted: bool) -> None:
        """Refuse options that contradict each other.

        Raises:
            click.UsageError: two of them do.
        """
        if self.as_json and self.output not in (None, "json"):
            raise click.UsageError(f"--json and -o {self.output} contradict each other")
        if self.raw and (self.as_json or self.columns is not None or self.output not in (None, "lines")):
            raise click.UsageError("--raw and another output format or --columns contradict each other")
        formatted = self.output is not None or self.as_json or self.raw or self.columns is not None
        given = {
            "--count": self.only_count,
            "--files-with-matches": self.only_names,
            "--only-matching": self.only_matching,
            "--quiet": self.quiet,
            "--follow": self.follow,
            "--out": self.out is not None,
            "a context": any(self.context),
            "an output format or columns": formatted,
        }
        for one, others in _CONTRADICTIONS.items():
            for other in others:
                if given[one] and given[other]:
                    raise click.UsageError(f"{one} and {other} contradict each other")
        if self.only_matching and (is_inverted or not has_texts):
            raise click.UsageError("--only-matching needs a text to search for, and no --invert-match")
        if self.follow and self.output == "parquet":
            raise click.UsageError("--follow and -o parquet contradict each other")
        if self.out is not None and self.output is None and not self.as_json:
            output_for(self.out)


_CONTRADICTIONS = {
    "--out": ("--count", "--quiet"),
    "--files-with-matches": ("--count", "--only-matching", "--follow", "a context", "an output format or columns"),
    "--only-matching": ("--count", "--follow", "a context", "an output format or columns"),
    "--follow": ("--count", "--quiet", "--out", "a context"),
}


_OPTIONS = [
    click.option(
        "--order",
        type=NearestChoice(["newest", "oldest", "any"]),
        default="newest",
        show_default=True,
        help="Order of the results, by time; any is fastest.",
    ),
    click.option(
        "-n", "-m", "--limit", "--max-count", "limit", type=click.IntRange(0), metavar="N", help="Stop after N matches."
    ),
    click.option(
        "-A",
        "--after-context",
        "after",
        type=click.IntRange(0),
        metavar="N",
        help="Also show N records of the same source after each match.",
    ),
    click.option(
        "-B",
        "--before-context",
        "before",
        type=click.IntRange(0),
        metavar="N",
        help="Also show N records before each match.",
    ),
    click.option(
        "-C",
        "--context",
        "around",
        type=click.IntRange(0),
        default=0,
        metavar="N",
        help="Also show N records before and after each match.",
    ),
    click.option("-c", "--count", "only_count", is_flag=True, help="Print only the number of matching records."),
    click.option(
        "-l", "--files-with-matches", "only_names", is_flag=True, help="Print only the sources that have a match."
    ),
    click.option("--only-matching", is_flag=True, help="Print only the parts that match, each on a line of its own."),
    click.option("-q", "--quiet", is_flag=True, help="Print nothing; the exit code tells whether a record matches."),
    click.option(
        "--follow",
        is_flag=True,
        help=f"Show the last {_LAST} matches (-n for others), then new ones as they are committed, until Ctrl-C.",
    ),
    click.option(
        "-o",
        "--output",
        type=NearestChoice(OUTPUTS),
        help="Output format: aligned columns (table), only the log lines (lines), one JSON object per line (json), csv "
        "or parquet. Defaults to table on a terminal, and to lines otherwise.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Short for -o json."),
    click.option(
        "--raw",
        is_flag=True,
        help="Print the lines as they were read, on a terminal too; records from JSON as JSON, for jq.",
    ),
    click.option("--columns", metavar="A,B", help="Columns to print."),
    click.option(
        "--out",
        type=click.Path(),
        metavar="FILE",
        help="Write to FILE; its suffix determines the format unless -o is given.",
    ),
    click.option("--utc", is_flag=True, help="Show times in UTC on a terminal too, instead of in local time."),
    click.option("--full", is_flag=True, help="Show all lines of each record on a terminal."),
    click.option("--no-pager", is_flag=True, help="Do not use a pager on a terminal."),
    click.option(
        "--strict",
        is_flag=True,
        help="Fail if a file is missing or damaged, instead of warning and searching the rest.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(1),
        metavar="N",
        help="Batches to process in parallel. Defaults to one per core.",
    ),
    click.option("--stats", is_flag=True, help="Also print to stderr what `explain` prints."),
]


def printing_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, passed to it as one argument, `printing`."""

    @functools.wraps(function)
    def with_printing(**given: Any) -> Any:
        own = {field.name: given.pop(field.name) for field in fields(Printing)}
        return function(printing=Printing(**own), **given)

    decorated: Callable[..., Any] = with_printing
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
