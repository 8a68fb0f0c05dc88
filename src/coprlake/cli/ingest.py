"""``coprlake ingest``: read logs into a table."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from coprlake.cli import figures
from coprlake.cli.figures import parse_size
from coprlake.cli.filters import TABLE_VARIABLE
from coprlake.cli.messages import color_option, note, warn_each
from coprlake.cli.progress import Advance, progress_bar
from coprlake.cli.reports import echo_json
from coprlake.config import SEGMENT_BYTES
from coprlake.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from coprlake.intake.options import IntakeReport
    from coprlake.intake.reading import Intake
    from coprlake.store import Table
    from coprlake.table.writer import WriteReport

_FORMATS = ("auto", "text", "ndjson", "csv", "syslog", "access", "parquet")
_NO_PARTITIONS = "none"


@dataclass(frozen=True)
class _Target:
    """The table to be, and how it is written."""

    uri: str
    partition_by: tuple[str, ...]
    grams: tuple[str, ...]
    segment_bytes: int
    commit_bytes: int | None

    def open(self) -> "Table":
        """The table; made if it is not there."""
        from coprlake.store import create_table, open_table, table_exists

        if not table_exists(self.uri):
            columns = [name for name in self.partition_by if name != _NO_PARTITIONS]
            if self.partition_by:
                return create_table(self.uri, partition_by=columns, grams=self.grams)
            return create_table(self.uri, grams=self.grams)
        return open_table(self.uri)

    def version(self) -> int | None:
        """The newest version; None without a table."""
        from coprlake.store import open_table, table_exists

        return open_table(self.uri).version if table_exists(self.uri) else None

    def check(self) -> None:
        """Refuse what cannot be done before anything is read.

        Raises:
            UsageError: the options contradict the table that is there, or it is no table.
        """
        from coprlake.files import Folder
        from coprlake.store import open_table, table_exists

        folder = Folder.of(self.uri)
        if folder.entry("") is not None:
            raise UsageError(f"{self.uri}: expected the folder of a table, found a file; name another with --into")
        if not table_exists(self.uri):
            if folder.is_local and folder.exists() and any(Path(folder.root).iterdir()):
                raise UsageError(f"{self.uri}: this folder has other files and is no table; name a new one with --into")
            return
        table = open_table(self.uri)
        wanted = [name for name in self.partition_by if name != _NO_PARTITIONS]
        if self.partition_by and wanted != table.partition_by:
            have = ", ".join(table.partition_by) or "nothing"
            raise UsageError(
                f"{self.uri}: the table is partitioned by {have}, which cannot be changed; leave out --partition-by"
            )
        missing = sorted(set(self.grams) - table.gram_fields)
        if missing:
            raise UsageError(
                f"{self.uri}: the table was made without --grams {missing[0]}, which cannot be changed; "
                f"leave it out, and run `coprlake index --rebuild --grams {missing[0]}` after the ingest"
            )


@dataclass
class _Ingested:
    """What became of the records."""

    table: str
    version: int | None = None
    commits: int = 0
    segments: int = 0
    records: int = 0
    raw_bytes: int = 0
    data_bytes: int = 0
    index_bytes: int = 0
    seconds: float = 0.0
    is_dry_run: bool = False
    reading: dict[str, Any] = field(default_factory=dict)

    def add(self, report: "WriteReport") -> None:
        """Count a commit."""
        if report.version is None:
            return
        self.version = report.version
        self.commits += 1
        self.segments += len(report.segments)
        self.records += report.row_count
        self.raw_bytes += report.raw_bytes
        self.data_bytes += report.data_bytes
        self.index_bytes += report.sketch_bytes


@click.command(
    short_help="Read logs into a table.",
    epilog="Exits with 0 when all was read, 1 if a file could not be read to its end (what was read is in the table), "
    "2 after an error (nothing is, unless --commit-every committed before).",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILES...")
@click.option(
    "--into",
    "table",
    required=True,
    envvar=TABLE_VARIABLE,
    show_envvar=True,
    metavar="TABLE",
    type=click.Path(),
    help="The table; made if it is not there.",
)
@click.option(
    "--format",
    "format",
    type=click.Choice(_FORMATS),
    default="auto",
    show_default=True,
    help="Of the files; auto looks at the beginning of each.",
)
@click.option("--zone", default="UTC", show_default=True, help="Of timestamps that name none: Europe/Vienna, +02:00.")
@click.option(
    "--year",
    type=click.IntRange(1970, 2200),
    metavar="YEAR",
    help="Of timestamps that have none; by default that of the file.",
)
@click.option("--source", metavar="NAME", help="The source of all records; by default the path of the file.")
@click.option(
    "--multiline", metavar="REGEX", help="A record begins with a line that has this; empty to make each line a record."
)
@click.option("--encoding", default="utf-8", show_default=True, help="Of text.")
@click.option("--content-key", metavar="KEY", help="The key or column that is the log line.")
@click.option("--timestamp-key", metavar="KEY", help="... that is the time.")
@click.option("--level-key", metavar="KEY", help="... that is the level.")
@click.option("--source-key", metavar="KEY", help="... that is the source.")
@click.option("--attributes", is_flag=True, help="Put all other keys into one map instead of typed columns.")
@click.option(
    "--partition-by",
    multiple=True,
    metavar="COLUMN",
    help="How a new table is partitioned: by day unless this names other columns, or none.",
)
@click.option(
    "--grams",
    multiple=True,
    metavar="FIELD",
    help="A field of a new table, besides the content, that can be searched inside of words.",
)
@click.option(
    "--segment-size",
    type=parse_size,
    metavar="SIZE",
    default=SEGMENT_BYTES,
    show_default=f"{SEGMENT_BYTES >> 20}MiB",
    help="Raw text of a segment.",
)
@click.option(
    "--commit-every",
    type=parse_size,
    metavar="SIZE",
    help="Commit after so much raw text, not once at the end.",
)
@click.option("--dry-run", is_flag=True, help="Read and report, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@color_option
@click.pass_context
def ingest(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    table: str,
    partition_by: tuple[str, ...],
    grams: tuple[str, ...],
    segment_size: int,
    commit_every: int | None,
    dry_run: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Read logs into a table: files, folders, globs, or - for standard input.

    Plain text, JSON lines, CSV, syslog, access logs and Parquet are told apart by themselves, compressed or not; times
    and levels are found in each line. All of it becomes part of the table in one step, or nothing does.
    """
    from coprlake.intake.options import ReadOptions
    from coprlake.intake.reading import Intake

    if _NO_PARTITIONS in partition_by and len(partition_by) > 1:
        raise click.UsageError("--partition-by none and other columns contradict each other")
    target = _Target(table, partition_by, grams, segment_size, commit_every)
    target.check()
    started = time.perf_counter()
    ingested = _Ingested(table, is_dry_run=dry_run)
    with Intake(files, ReadOptions(**reading), stdin=sys.stdin.buffer) as intake:
        _refuse_own_files(intake, table)
        with _told_what_is_left(target), progress_bar("ingesting", intake.total_bytes) as advance:
            _run(intake, target, ingested, advance)
    ingested.seconds = time.perf_counter() - started
    ingested.reading = asdict(intake.report) | {"formats": dict(intake.report.formats)}
    if as_json:
        echo_json(ingested)
    else:
        _print_summary(ingested, intake)
    ctx.exit(1 if intake.report.unreadable else 0)


def _refuse_own_files(intake: "Intake", table: str) -> None:
    """A table is not ingested into itself."""
    if "://" in table:
        return
    root = Path(table).resolve()
    own = next((file.path for file in intake.files if Path(file.path).resolve().is_relative_to(root)), None)
    if own is not None:
        raise UsageError(f"{own} is a file of the table itself; name the logs, or put the table elsewhere")


class _Begun:
    """An intake whose first batch was read already: a table is made when there is something to put into it."""

    def __init__(self, intake: "Intake") -> None:
        self.report = intake.report
        self._batches = iter(intake)
        self.first = next(self._batches, None)

    def __iter__(self) -> "Iterator[pa.RecordBatch]":
        if self.first is not None:
            yield self.first
            yield from self._batches


def _run(intake: "Intake", target: _Target, ingested: _Ingested, advance: Advance) -> None:
    """Read all, and write it unless this is a dry run."""
    from coprlake.ingestion import ingest as ingest_all

    done = 0

    def progress(report: "IntakeReport") -> None:
        nonlocal done
        advance(report.bytes_read - done)
        done = report.bytes_read

    if ingested.is_dry_run:
        for _ in intake:
            progress(intake.report)
        return
    begun = _Begun(intake)
    if begun.first is None:
        return
    written = ingest_all(
        target.open(),
        cast("Intake", begun),
        segment_bytes=target.segment_bytes,
        commit_bytes=target.commit_bytes,
        progress=progress,
    )
    for report in written.written:
        ingested.add(report)


@contextmanager
def _told_what_is_left(target: _Target) -> Iterator[None]:
    """After an error or Ctrl-C say what is in the table."""
    before = target.version() if target.commit_bytes is not None else None
    try:
        yield
    except BaseException:
        after = target.version() if target.commit_bytes is not None else None
        if after is not None and after > (before or 0):
            note(f"what was committed before that stays in {target.uri}, version {after}; the rest was not added")
        else:
            note(f"nothing was added to {target.uri}")
        raise


def _print_summary(ingested: _Ingested, intake: "Intake") -> None:
    report = intake.report
    warn_each(report.warnings, report.warning_count, "--json lists the first hundred")
    files = figures.amount(report.files, "file")
    if not report.records:
        note(f"no records in {files}; nothing was added")
        return
    spent, raw = ingested.seconds, report.raw_bytes
    kinds = ", ".join(f"{count:,} {name}" for name, count in report.formats.most_common())
    rows = [
        ("read", f"{files} ({kinds})"),
        ("records", f"{report.records:,}"),
        ("raw text", f"{figures.size(raw):>9}"),
    ]
    if not ingested.is_dry_run:
        rows += [
            (
                "data files",
                f"{figures.size(ingested.data_bytes):>9}  {figures.percent(ingested.data_bytes, raw):>7} of raw",
            ),
            (
                "index",
                f"{figures.size(ingested.index_bytes):>9}  {figures.percent(ingested.index_bytes, raw):>7} of raw",
            ),
        ]
    rows.append(("time", f"{figures.seconds(spent)}, {figures.rate(raw, spent)}"))
    rows += [
        (name, f"{count:,}{hint}")
        for name, count, hint in (
            ("without time", report.without_timestamp, ", which got the time of reading"),
            ("broken", report.broken, ", kept as plain text"),
            ("cut", report.split, " times, because records were too long"),
            ("not text", report.replaced_lines, " lines with bytes that are not in the encoding"),
            ("unreadable", report.unreadable, " files"),
        )
        if count
    ]
    click.echo(figures.pairs(rows))
    if ingested.is_dry_run:
        note("this was a dry run: nothing was written")
    else:
        commits = "" if ingested.commits == 1 else f" in {ingested.commits:,} commits"
        segments = figures.amount(ingested.segments, "segment")
        note(f"added to {ingested.table}{commits}: {segments}, version {ingested.version}")
