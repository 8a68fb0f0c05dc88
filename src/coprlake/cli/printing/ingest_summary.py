"""The result of an ingest: a report for programs, and a summary for people."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from coprlake.cli.printing import figures
from coprlake.cli.printing.notices import note, warn_each

if TYPE_CHECKING:
    from coprlake.intake.options import IntakeReport
    from coprlake.storage.writer import WriteReport

_MANY_PARTITIONS = 10
_SMALL_PARTITION_BYTES = 16 << 20
"""So many partitions that are smaller than this on average are worth a warning."""
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass
class Ingested:
    """The report of an ingest.

    Attributes:
        engine: ``local``, or ``spark``.
        engine_reason: why this engine; None if the user named it.
        master: the master URL of Spark.
        seconds: the time of reading and writing.
        start_seconds: the time that Spark took to start.
        reading: the report on the files that were read.
        layout_warning: what is wrong with the partitions that the table was given, and what to do about it.
    """

    table: str
    version: int | None = None
    commits: int = 0
    segments: int = 0
    records: int = 0
    raw_bytes: int = 0
    data_bytes: int = 0
    index_bytes: int = 0
    engine: str = "local"
    engine_reason: str | None = None
    master: str | None = None
    seconds: float = 0.0
    start_seconds: float = 0.0
    is_dry_run: bool = False
    reading: dict[str, Any] = field(default_factory=dict)
    layout_warning: str | None = None

    def __post_init__(self) -> None:
        self._folders: set[str] = set()

    def add(self, report: "WriteReport") -> None:
        """Add the figures of a commit."""
        if report.version is None:
            return
        self.version = report.version
        self.commits += 1
        self.segments += len(report.segments)
        self._folders.update(segment.name.rpartition("/")[0] for segment in report.segments)
        self.records += report.row_count
        self.raw_bytes += report.raw_bytes
        self.data_bytes += report.data_bytes
        self.index_bytes += report.index_bytes

    def judge_layout(self) -> None:
        """Note what is wrong with the partitions, by what was written."""
        folders = self._folders - {""}
        if not folders:
            return
        empty = [
            name for name in _columns_of(folders) if all(f"{name}={_NO_VALUE}" in one.split("/") for one in folders)
        ]
        mean = self.raw_bytes // len(folders)
        if empty:
            self.layout_warning = (
                f"{self.table}: partitioned by {empty[0]}, but no record has a column {empty[0]}; "
                "`coprlake optimize --repartition none` changes the table"
            )
        elif len(folders) >= _MANY_PARTITIONS and mean < _SMALL_PARTITION_BYTES:
            self.layout_warning = (
                f"{self.table}: {len(folders):,} partitions of only {figures.size(mean)} of raw text each on average; "
                "such small ones make a large index and slow searches. Time is pruned without partitions: leave out "
                "--partition-by for new tables, and change this one with `coprlake optimize --repartition none`"
            )


def _columns_of(folders: set[str]) -> list[str]:
    return [part.partition("=")[0] for part in next(iter(folders)).split("/") if "=" in part]


def print_summary(ingested: Ingested, report: "IntakeReport", *, is_quiet: bool = False) -> None:
    """Print the warnings, and unless this is quiet the summary for people."""
    warn_each(report.warnings, report.warning_count, "--json lists the first hundred")
    warn_each([ingested.layout_warning] if ingested.layout_warning else [])
    if is_quiet:
        return
    files = figures.amount(report.files, "file")
    told = _known(report)
    if not report.records:
        note(told and f"nothing was added: {told}" if not report.files else f"no records in {files}; nothing was added")
        return
    if told:
        note(told)
    spent, raw = ingested.seconds, report.raw_bytes
    kinds = ", ".join(f"{count:,} {name}" for name, count in report.formats.most_common())
    rows = [
        ("read", f"{files} ({kinds})"),
        ("records", f"{report.records:,}"),
        ("raw text", f"{figures.size(raw):>9}"),
    ]
    if not ingested.is_dry_run:
        rows += [
            (name, figures.of_raw(size, raw))
            for name, size in (("data files", ingested.data_bytes), ("index", ingested.index_bytes))
        ]
    rows.append(("time", f"{figures.seconds(spent)}, {figures.rate(raw, spent)}"))
    rows.append(("engine", _engine(ingested)))
    click.echo(figures.pairs([*rows, *_oddities(report)]))
    if ingested.is_dry_run:
        note("this was a dry run: nothing was written")
    else:
        commits = "" if ingested.commits == 1 else f" in {ingested.commits:,} commits"
        segments = figures.amount(ingested.segments, "segment")
        note(f"added to {ingested.table}{commits}: {segments}, version {ingested.version}")


def _known(report: "IntakeReport") -> str:
    """What the table had already."""
    told = []
    if report.known:
        noun = "file was" if report.known == 1 else "files were"
        verb = "is" if report.known == 1 else "are"
        it = "it" if report.known == 1 else "them"
        told.append(f"{report.known:,} {noun} ingested before and {verb} skipped; --again ingests {it} all the same")
    if report.continued:
        noun = "file has" if report.continued == 1 else "files have"
        told.append(f"{report.continued:,} {noun} grown; only what is new was read")
    return "; ".join(told)


def _engine(ingested: Ingested) -> str:
    if ingested.engine == "local":
        return "local, in this process"
    return f"Spark on {ingested.master}, which took {figures.seconds(ingested.start_seconds)} to start"


def _oddities(report: "IntakeReport") -> list[tuple[str, str]]:
    return [
        (name, f"{count:,}{hint}")
        for name, count, hint in (
            ("without time", report.without_timestamp, ", stored with the time of ingest"),
            ("broken", report.broken, ", kept as plain text"),
            ("cut", report.split, " times, because a record was too long"),
            ("not text", report.replaced_lines, " lines with bytes that are invalid in the encoding"),
            ("binary", report.binary, " files passed over, because they are not text"),
            ("unreadable", report.unreadable, " files"),
            ("links", report.skipped_links, " not followed, because they lead out of their folder"),
        )
        if count
    ]
