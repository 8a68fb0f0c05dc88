"""``coprlake ingest``: read logs into a table."""

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coprlake.cli.options.engine import Engine, engine_options
from coprlake.cli.options.engine_choice import Work
from coprlake.cli.options.filters import is_local_table
from coprlake.cli.options.input_options import follow_option, reading_options
from coprlake.cli.options.target import Target, into_option, target_options
from coprlake.cli.printing.figures import parse_size
from coprlake.cli.printing.ingest_summary import Ingested, print_summary
from coprlake.cli.printing.json_reports import echo_json
from coprlake.cli.printing.notices import color_option, note
from coprlake.cli.printing.progress_bar import Advance, job_bar, progress_bar
from coprlake.errors import UsageError

if TYPE_CHECKING:
    from coprlake.intake.options import IntakeReport, ReadOptions
    from coprlake.intake.reading import Intake
    from coprlake.intake.sources.inputs import InputFile
    from coprlake.storage.ledger import Ledger

_STREAMS = ("/dev/", "/proc/")
_NOT_AS_LONG_AS_ITS_TEXT = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".lz4", ".zip", ".parquet")


@click.command(
    short_help="Read logs into a table.",
    epilog="Exit codes: 0 if everything was read; 1 if a file could not be read to its end (what was read is in the "
    "table); 2 after an error (nothing was added, except what --commit-every had committed before).",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILES...")
@into_option
@reading_options
@target_options
@follow_option
@click.option(
    "--commit-every",
    type=parse_size,
    metavar="SIZE",
    help="Commit after each SIZE of raw text, instead of once at the end. Local engine only.",
)
@click.option("--again", is_flag=True, help="Also read files that were ingested into the table before.")
@click.option("--dry-run", is_flag=True, help="Read and report, but write nothing. Local engine only.")
@engine_options(weighs=True)
@click.option("-q", "--quiet", is_flag=True, help="Print only warnings and errors, and the report if --json is given.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@color_option
@click.pass_context
def ingest(
    ctx: click.Context,
    files: tuple[str, ...],
    target: Target,
    reading: "ReadOptions",
    engine: Engine,
    follow_links: bool,
    commit_every: int | None,
    again: bool,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Read logs into a table: files, folders, globs, or - for standard input.

    Plain text, JSON lines, CSV, syslog, access logs and Parquet are detected automatically, compressed or not.
    Timestamps and log levels are recognised in each line. Either all records are added to the table or none are.

    Archives (.zip, .tar and compressed .tar) are read member by member; files that are not text are passed over and
    named. A file that was ingested before is passed over, too, also if it was renamed or compressed since; of one that
    has grown only the new part is read.

    Spark reads on all cores, or on all machines of a cluster, which must all have access to the files and the table.
    This process starts at once, and is faster for less than about a gigabyte; it always reads standard input and pipes.
    By default the faster of the two is chosen, and a line on stderr says which and why.
    """
    from coprlake.intake.reading import Intake

    _check_order(files, target)
    target.check()
    ingested = Ingested(target.uri, is_dry_run=dry_run)
    with Intake(files, reading, follow_links=follow_links, stdin=sys.stdin.buffer) as intake:
        _refuse_own_files(intake, target)
        ledger = _left_out(intake, target, again=again)
        work = Work.of_files(intake.files)
        engine = engine.weighed(work, _local_only(intake.files, commit_every, dry_run))
        ingested.engine_reason = engine.reason
        if engine.reason and not quiet and intake.total_bytes != 0:
            what = "" if intake.total_bytes is None else f" {work}"
            note(f"reading{what} {'on Spark' if engine.is_spark else 'in this process'}, {engine.reason}")
        with _told_what_is_left(target, commit_every):
            if engine.is_spark and intake.total_bytes:
                _run_on_spark(intake, target, reading, engine, ingested, ledger, again)
            else:  # nothing to read, so no need for Spark
                _run(intake, target, commit_every, ingested, ledger, again)
    ingested.judge_layout()
    ingested.reading = asdict(intake.report) | {"formats": dict(intake.report.formats)}
    if as_json:
        echo_json(ingested)
    else:
        print_summary(ingested, intake.report, is_quiet=quiet)
    ctx.exit(1 if intake.report.unreadable else 0)


def _check_order(files: Sequence[str], target: Target) -> None:
    """Reject a table that is named where the logs should be, and the other way round."""
    if len(files) == 1 and Path(target.uri).is_file() and (is_local_table(files[0]) or not Path(files[0]).exists()):
        right = shlex.join(["coprlake", "ingest", target.uri, "--into", files[0]])
        raise UsageError(f"{target.uri} is a file, and {files[0]} is not; --into names the table: {right}")


def _refuse_own_files(intake: "Intake", target: Target) -> None:
    """Reject files that belong to the target table."""
    own = next((file.path for file in intake.files if target.holds(file.path)), None)
    if own is not None:
        raise UsageError(
            f"{own}: this file belongs to the table that you write to; name the logs, or put the table elsewhere"
        )


def _local_only(files: "Sequence[InputFile]", commit_every: int | None, dry_run: bool) -> list[str]:
    """List the options and inputs that Spark does not support."""
    found = ["--commit-every"] if commit_every is not None else []
    found += ["--dry-run"] if dry_run else []
    for file in files:
        if file.path == "-":
            found.append("standard input")
        elif file.size is None or file.path.startswith(_STREAMS):
            found.append(file.path)
    return found


def _left_out(intake: "Intake", target: Target, *, again: bool) -> "Ledger | None":
    """Take out of the intake what the table has; return the list of what it has, None for a new table."""
    from coprlake.ingestion import leave_out_known

    if target.version() is None:
        return None
    ledger = target.open().ledger()
    leave_out_known(intake, ledger, again=again)
    return ledger


def _run(
    intake: "Intake",
    target: Target,
    commit_bytes: int | None,
    ingested: Ingested,
    ledger: "Ledger | None",
    again: bool,
) -> None:
    """Read everything, and write it unless this is a dry run."""
    started = time.perf_counter()
    with progress_bar("ingesting", intake.total_bytes) as advance:
        if ingested.is_dry_run:
            progress = _progress(advance)
            for _ in intake:
                progress(intake.report)
        else:
            from coprlake.ingestion import ingest_intake

            first = intake.first()
            if first is not None:  # no table is created for empty input
                target.check_columns(first.schema.names, is_all=len(intake.files) == 1)
                written = ingest_intake(
                    target.open(),
                    intake,
                    segment_bytes=target.segment_bytes,
                    commit_bytes=commit_bytes,
                    progress=_progress(advance),
                    again=again,
                    ledger=ledger,
                )
                for report in written.written:
                    ingested.add(report)
    ingested.seconds = time.perf_counter() - started


def _progress(advance: Advance) -> Callable[["IntakeReport"], None]:
    """Make a function that advances the progress bar by what has been read since its last call."""
    done = 0

    def progress(report: "IntakeReport") -> None:
        nonlocal done
        advance(report.bytes_read - done)
        done = report.bytes_read

    return progress


def _run_on_spark(
    intake: "Intake",
    target: Target,
    reading: "ReadOptions",
    engine: Engine,
    ingested: Ingested,
    ledger: "Ledger | None",
    again: bool,
) -> None:
    """Let Spark's tasks read and write everything; creates the table only once Spark has started."""
    from coprlake.spark.jobs.ingesting import ingest_files

    started = time.perf_counter()
    files = [replace(file, path=str(Path(file.path).absolute())) for file in intake.files]
    with engine.session() as spark:
        ingested.engine, ingested.master = engine.name, spark.sparkContext.master
        ingested.start_seconds = time.perf_counter() - started
        with job_bar("ingesting", _text_bytes(files)) as progress:
            done = ingest_files(
                spark,
                files,
                target.open(),
                reading,
                segment_bytes=target.segment_bytes,
                progress=progress,
                ledger=ledger,
                again=again,
            )
    ingested.seconds = done.seconds
    intake.report.merge(done.read)
    for report in done.written:
        ingested.add(report)


def _text_bytes(files: "Sequence[InputFile]") -> int | None:
    """Return the size of all text; None if a file's size does not tell, as with compressed ones."""
    if any(file.path.lower().endswith(_NOT_AS_LONG_AS_ITS_TEXT) for file in files):
        return None
    return sum(file.length or 0 for file in files)


@contextmanager
def _told_what_is_left(target: Target, commit_bytes: int | None) -> Iterator[None]:
    """After an error or Ctrl-C, say what has been added to the table."""
    before = target.version() if commit_bytes is not None else None
    try:
        yield
    except BaseException:
        after = target.version() if commit_bytes is not None else None
        if after is not None and after > (before or 0):
            note(f"{target.uri} keeps what was committed before, up to version {after}; the rest was not added")
        else:
            note(f"nothing was added to {target.uri}")
        raise
