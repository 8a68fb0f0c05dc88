"""Everything that writes to or reads from a table, as jobs for a process that may die at any moment.

A job that changes records reports what it is about to do (`begin`) and its acknowledgement (`done`). An effect is
``["add", first, end]`` for records with these numbers, or ``["drop", divisor, rest]`` for those with this remainder.
"""

import io
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from typing import Any, Final, TypeAlias

import pyarrow as pa

from coprlake.errors import ConflictError, CoprlakeError
from coprlake.files import Folder
from coprlake.predicate.predicates import Contains, OneOf
from coprlake.segment.mutable import MutableSegment
from coprlake.spark.jobs.joining import Part, join
from coprlake.storage.conforming import arrow_batches
from coprlake.storage.log.delta_log import DeltaLog, Transaction
from coprlake.storage.segmenter import Segmenter
from coprlake.storage.writer import scratch_options
from coprlake.table import Table, create_table, open_table
from coprlake.testing.chosen_faults import SMALL, record
from coprlake.testing.torture.deaths.lives import World, describe

Effect: TypeAlias = list[Any]

SEGMENT_BYTES: Final = 400
"""A few records per segment, so that a small job has many files."""
ID: Final = pa.schema([("id", pa.int64())])
APPLICATION: Final = "torture"


def warm_up() -> None:
    """Load and compile what the jobs need, except delta-rs, whose threads do not survive a fork."""
    with tempfile.TemporaryDirectory() as folder:
        batch = pa.RecordBatch.from_pylist([record(number) for number in range(20)])
        segment = MutableSegment(Folder.of(folder), "a.parquet", batch.schema, SMALL)
        segment.append(batch)
        segment.seal()
    for module in (
        "coprlake.query.querying",
        "coprlake.cli.main",
        "coprlake.cli.commands.ingest",
        "coprlake.ingestion",
    ):
        import_module(module)


# --- effects on records ---


def applied(effect: Effect, ids: Counter[int]) -> Counter[int]:
    """The records after an effect is applied."""
    kind, *numbers = effect
    if kind == "add":
        return ids + Counter(range(*numbers))
    divisor, rest = numbers
    return Counter({number: count for number, count in ids.items() if number % divisor != rest})


def records(first: int, end: int, *, columns: bool = False) -> list[dict[str, Any]]:
    """The records with these numbers; with `columns`, each has an extra column."""
    extra = [{f"column{number % 7}": number} if columns else {} for number in range(first, end)]
    return [record(number) | more for number, more in zip(range(first, end), extra, strict=True)]


# --- jobs that write ---


def create(world: World, path: str, partition_by: Sequence[str]) -> None:
    """Create a table."""
    create_table(path, schema=ID, partition_by=list(partition_by), exist_ok=True)


def append(world: World, path: str, first: int, end: int, commits: int = 1, columns: bool = False) -> None:
    """Append records in one or more commits."""
    table = open_table(path)
    step = -(-(end - first) // commits)
    with table.writer(options=SMALL, segment_bytes=SEGMENT_BYTES) as writer:
        for start in range(first, end, step):
            effect = ["add", start, min(end, start + step)]
            writer.append(records(start, min(end, start + step), columns=columns))
            world.tell(begin=effect)
            writer.commit()
            world.tell(done=effect)


def stream_batch(world: World, path: str, number: int, first: int, end: int) -> None:
    """Write a batch of a stream as the driver does: a transaction with its number, which may be in the log already."""
    log = DeltaLog.open(Folder.of(path))
    segmenter = Segmenter(log.shape, scratch_options(SMALL, log.folder), SEGMENT_BYTES)
    for batch in arrow_batches(records(first, end)):
        segmenter.append(batch)
    sealed = segmenter.seal()
    effect = ["add", first, end]
    world.tell(begin=effect)
    note = {"operation": "stream"}
    report = join(log, [Part(sealed.files, sealed.new_fields)], note=note, once=Transaction(APPLICATION, number))
    if report.version is not None:
        world.tell(done=effect)
    else:
        world.tell(was_done=True)


def optimize(world: World, path: str, full: bool = False) -> None:
    """Merge segments; another process may be first."""
    try:
        open_table(path).optimize(full=full)
    except ConflictError as error:
        world.tell(conflict=str(error))


def delete(world: World, path: str, divisor: int, rest: int, end: int) -> None:
    """Delete the records with this remainder."""
    table = open_table(path)
    effect = ["drop", divisor, rest]
    world.tell(begin=effect)
    table.delete(OneOf("id", tuple(range(rest, max(end, rest + 1), divisor))))
    world.tell(done=effect)


def vacuum(world: World, path: str, hours: float = 0) -> None:
    """Remove what no version of the last `hours` needs."""
    report = open_table(path).vacuum(retention_hours=hours)
    world.tell(removed=len(report.data_files) + len(report.sidecars) + len(report.leftovers))


def index(world: World, path: str) -> None:
    """Rewrite all sidecars."""
    report = open_table(path).index(rebuild=True)
    if report.problems:
        raise CoprlakeError("; ".join(report.problems))


def program(world: World, arguments: Sequence[str], effect: Effect | None = None) -> None:
    """Run a command of the program."""
    if effect is not None:
        world.tell(begin=effect)
    cli = import_module("coprlake.cli.main").cli  # tests run the program; nothing here depends on its code
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    errors = io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        try:
            cli.main(list(arguments), prog_name="coprlake")
        except SystemExit as end:
            code = end.code or 0
    output.flush()
    sys.stdout.flush()
    text = output.buffer.getvalue().decode()
    world.tell(code=code, output=text[:20000], errors=errors.getvalue()[-4000:])
    if effect is not None and code == 0:
        world.tell(done=effect)


# --- jobs that read ---


def found(table: Table, *, use_sketches: bool = True, strict: bool = False) -> tuple[Counter[int], list[str]]:
    """The numbers of the records that a search finds, and the problems that it reports."""
    search = table.search(Contains("record"), columns=["id"], use_sketches=use_sketches, strict=strict)
    numbers = Counter(row["id"] for row in search.rows())
    return numbers, list(search.report.problems)


def search(world: World, path: str, use_sketches: bool = True, strict: bool = False) -> None:
    """Find all records."""
    numbers, problems = found(open_table(path), use_sketches=use_sketches, strict=strict)
    world.tell(ids=sorted(numbers.elements()), problems=problems)


def query(world: World, path: str) -> None:
    """Find all records with a query in DuckDB."""
    result = open_table(path).query('fetch logs | filter contains(content, "says") | fields id').arrow()
    world.tell(ids=sorted(result.column("id").to_pylist()), problems=[])


def verify(world: World, path: str) -> None:
    """Check everything."""
    report = open_table(path).verify(deep=True)
    problems = report.data_problems + report.sidecar_problems
    world.tell(rows=report.rows, problems=problems)


# --- a job that meets a fault and continues in the same process ---


def stubborn(world: World, path: str, first: int, end: int, later: Iterable[int]) -> None:
    """Append and commit with one writer; retry what fails once the fault has passed.

    Args:
        world: the context of the job.
        path: the table, which is opened before anything fails.
        first: the number of the first record.
        end: the number after the last one.
        later: the range of records to append afterwards, with a new writer of the same table object.
    """
    table = open_table(path)
    writer = table.writer(options=SMALL, segment_bytes=SEGMENT_BYTES)
    effect = ["add", first, end]
    world.arm()
    error: Exception | None = None
    is_in = False
    try:
        writer.append(records(first, end))
        is_in = True
        world.tell(begin=effect)
        writer.commit()
        world.tell(done=effect)
    except Exception as failure:
        error = failure
    world.disarm()
    if error is not None:
        world.tell(failed=describe(error))
        if is_in:
            try:
                writer.commit()
                world.tell(done=effect)
            except CoprlakeError as failure:
                world.tell(failed_again=describe(failure))
                writer.abandon()
        else:
            writer.abandon()
    again = ["add", *later]
    world.tell(begin=again)
    table.append(records(*later))
    world.tell(done=again)
    numbers, problems = found(table)
    world.tell(ids=sorted(numbers.elements()), problems=problems)
