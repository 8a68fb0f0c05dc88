"""The table that records go to: the options of `ingest` and `stream` that name it, and say how it is made."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coprlake.cli.options.filters import TABLE_VARIABLE
from coprlake.cli.printing.figures import parse_size
from coprlake.cli.printing.notices import warn_each
from coprlake.config import RULES, SEGMENT_BYTES, RuleSet
from coprlake.errors import UsageError

if TYPE_CHECKING:
    from coprlake.table import Table

_NO_PARTITIONS = "none"


@dataclass(frozen=True)
class Target:
    """The table to be, and how it is written."""

    uri: str
    partition_by: tuple[str, ...]
    grams: tuple[str, ...]
    rules: RuleSet | None
    segment_bytes: int

    def open(self) -> "Table":
        """The table; made if it is not there."""
        from coprlake.table import create_table, open_table, table_exists

        if not table_exists(self.uri):
            columns = [name for name in self.partition_by if name != _NO_PARTITIONS]
            rules = self.rules or RULES
            if self.partition_by:
                return create_table(self.uri, partition_by=columns, grams=self.grams, rules=rules)
            return create_table(self.uri, grams=self.grams, rules=rules)
        return open_table(self.uri)

    def version(self) -> int | None:
        """The newest version; None without a table."""
        from coprlake.table import open_table, table_exists

        return open_table(self.uri).version if table_exists(self.uri) else None

    def holds(self, path: str) -> bool:
        """Whether a path is inside of the table's folder."""
        return "://" not in self.uri and Path(path).resolve().is_relative_to(Path(self.uri).resolve())

    def check(self) -> None:
        """Refuse what cannot be done before anything is read.

        Raises:
            UsageError: the options contradict the table that is there, or it is no table.
        """
        from coprlake.files import Folder
        from coprlake.table import open_table, table_exists

        folder = Folder.of(self.uri)
        if folder.entry("") is not None:
            raise UsageError(f"{self.uri}: expected the folder of a table, found a file; name another with --into")
        if not table_exists(self.uri):
            if folder.is_local and folder.exists() and any(Path(folder.root).iterdir()):
                raise UsageError(f"{self.uri}: this folder has other files and is no table; name a new one with --into")
            return
        table = open_table(self.uri)
        warn_each([str(problem) for problem in table.snapshot().missing])
        wanted = [name for name in self.partition_by if name != _NO_PARTITIONS]
        if self.partition_by and wanted != table.partition_by:
            have = ", ".join(table.partition_by) or "nothing"
            raise UsageError(
                f"{self.uri}: the table is partitioned by {have}, which cannot be changed; leave out --partition-by"
            )
        if self.rules not in (None, table.rules):
            raise UsageError(
                f"{self.uri}: new segments of this table are indexed by --rules {table.rules}, which cannot be "
                f"changed; leave it out. `coprlake index --rules {self.rules}` indexes what is there by other rules, "
                "until `optimize` merges it"
            )
        missing = sorted(set(self.grams) - table.gram_fields)
        if missing:
            raise UsageError(
                f"{self.uri}: the table was made without --grams {missing[0]}, which cannot be changed; "
                f"leave it out, and run `coprlake index --rebuild --grams {missing[0]}` after the ingest"
            )


into_option = click.option(
    "--into",
    "table",
    required=True,
    envvar=TABLE_VARIABLE,
    show_envvar=True,
    metavar="TABLE",
    type=click.Path(),
    help="The table; made if it is not there.",
)


def rules_option(text: str) -> Callable[..., Any]:
    """Which of the rule sets."""
    return click.option(
        "--rules",
        type=click.Choice([one.value for one in RuleSet]),
        callback=lambda _, __, name: None if name is None else RuleSet(name),
        help=f"{text} winnowed, the default, finds parts of numbers and addresses; paper has the rules of the paper.",
    )


_OPTIONS = [
    click.option(
        "--partition-by",
        multiple=True,
        metavar="COLUMN",
        help="How a new table is partitioned: by day unless this names other columns, or none.",
    ),
    click.option(
        "--grams",
        multiple=True,
        metavar="FIELD",
        help="A field of a new table, besides the content, that can be searched inside of words.",
    ),
    rules_option("What is a token in a new table."),
    click.option(
        "--segment-size",
        type=parse_size,
        metavar="SIZE",
        default=SEGMENT_BYTES,
        show_default=f"{SEGMENT_BYTES >> 20}MiB",
        help="Raw text of a segment.",
    ),
]


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, and the function one argument for them and `into_option`: `target`."""

    @functools.wraps(function)
    def with_target(*arguments: Any, **given: Any) -> Any:
        table, partition_by, grams = given.pop("table"), given.pop("partition_by"), given.pop("grams")
        if _NO_PARTITIONS in partition_by and len(partition_by) > 1:
            raise click.UsageError("--partition-by none and other columns contradict each other")
        target = Target(table, partition_by, grams, given.pop("rules"), given.pop("segment_size"))
        return function(*arguments, target=target, **given)

    decorated: Callable[..., Any] = with_target
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
