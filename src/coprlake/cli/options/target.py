"""The options of `ingest` and `stream` that name the table to write to, and say how to create it."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coprlake.cli.options.choices import NearestChoice
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
    """The table to write to, and how to create and write it."""

    uri: str
    partition_by: tuple[str, ...]
    grams: tuple[str, ...]
    rules: RuleSet | None
    segment_bytes: int

    def open(self) -> "Table":
        """Open the table; create it if it does not exist."""
        from coprlake.table import create_table, open_table, table_exists

        if not table_exists(self.uri):
            columns = [name for name in self.partition_by if name != _NO_PARTITIONS]
            rules = self.rules or RULES
            if self.partition_by:
                return create_table(self.uri, partition_by=columns, grams=self.grams, rules=rules)
            return create_table(self.uri, grams=self.grams, rules=rules)
        return open_table(self.uri)

    def check_columns(self, columns: Sequence[str], *, is_all: bool) -> None:
        """Reject a new table by a column that its records do not have.

        Args:
            columns: those of the first records.
            is_all: whether later records have the same columns, as those of one file; else nothing is certain.
        """
        from coprlake.records import DAY, SCHEMA
        from coprlake.table import table_exists

        known = dict.fromkeys([*columns, *SCHEMA.names, DAY])
        unknown = [name for name in self.partition_by if name not in known and name != _NO_PARTITIONS]
        if unknown and is_all and not table_exists(self.uri):
            raise UsageError(
                f"--partition-by {unknown[0]}: no record has such a column; there are {', '.join(sorted(known))}"
            )

    def version(self) -> int | None:
        """Return the newest version of the table; None if it does not exist."""
        from coprlake.table import open_table, table_exists

        return open_table(self.uri).version if table_exists(self.uri) else None

    def holds(self, path: str) -> bool:
        """Whether a path is inside the table's folder."""
        return "://" not in self.uri and Path(path).resolve().is_relative_to(Path(self.uri).resolve())

    def check(self) -> None:
        """Check the options against the table, before anything is read.

        Raises:
            UsageError: the options contradict an existing table, or the folder is not a table.
        """
        from coprlake.files import Folder
        from coprlake.table import open_table, table_exists

        folder = Folder.of(self.uri)
        if folder.entry("") is not None:
            raise UsageError(f"{self.uri}: expected the folder of a table, found a file; name another with --into")
        if not table_exists(self.uri):
            if folder.is_local and folder.exists() and any(Path(folder.root).iterdir()):
                raise UsageError(f"{self.uri}: not a table, and the folder is not empty; name a new folder with --into")
            return
        table = open_table(self.uri)
        warn_each([str(problem) for problem in table.snapshot().missing])
        wanted = [name for name in self.partition_by if name != _NO_PARTITIONS]
        if self.partition_by and wanted != table.partition_by:
            have = ", ".join(table.partition_by) or "nothing"
            raise UsageError(
                f"{self.uri}: the table is partitioned by {have}, which cannot be changed by an ingest; leave out "
                "--partition-by, or run `coprlake optimize --repartition none` (or day) first"
            )
        if self.rules not in (None, table.rules):
            raise UsageError(
                f"{self.uri}: the table indexes new segments with --rules {table.rules}, which cannot be changed; "
                f"leave out --rules. `coprlake index --rules {self.rules}` reindexes existing segments, until "
                "`optimize` merges them"
            )
        missing = sorted(set(self.grams) - table.gram_fields)
        if missing:
            raise UsageError(
                f"{self.uri}: the table was created without --grams {missing[0]}, which cannot be changed; "
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
    help="Table to write to; created if it does not exist.",
)


def rules_option(text: str) -> Callable[..., Any]:
    """Make the option --rules; `text` is the first sentence of its help."""
    return click.option(
        "--rules",
        type=NearestChoice([one.value for one in RuleSet]),
        callback=lambda _, __, name: None if name is None else RuleSet(name),
        help=f"{text} winnowed, the default, also finds parts of numbers and addresses; paper follows the COPR paper.",
    )


_OPTIONS = [
    click.option(
        "--partition-by",
        multiple=True,
        metavar="COLUMN",
        help="Column to partition a new table by, such as day. Defaults to none. Can be repeated.",
    ),
    click.option(
        "--grams",
        multiple=True,
        metavar="FIELD",
        help="Field of a new table, other than the content, to index for search inside words. Can be repeated.",
    ),
    rules_option("How a new table splits text into tokens."),
    click.option(
        "--segment-size",
        type=parse_size,
        metavar="SIZE",
        default=SEGMENT_BYTES,
        show_default=f"{SEGMENT_BYTES >> 20}MiB",
        help="Amount of raw text in a segment.",
    ),
]


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options to a command, passed to it together with `into_option` as one argument, `target`."""

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
