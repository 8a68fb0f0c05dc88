"""Ingests raw logs on Spark: each task reads files, or a split of one, and seals segments; the driver commits once.

The parsing code is that of the in-process engine. Records move between machines only if the table is partitioned by
something other than the day or the source; see `shuffling`.
"""

import functools
import math
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from coprlake.config import SEGMENT_BYTES
from coprlake.errors import ConflictError, UsageError
from coprlake.ingestion import Gatherer, IngestReport, give_memory_back, measured
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.intake.reading import Intake, list_inputs, refuse_binary
from coprlake.intake.sources.inputs import InputFile, Walk, is_one_file
from coprlake.intake.sources.splitting import plan_splits
from coprlake.records import DAY, SOURCE
from coprlake.spark.jobs import shuffling
from coprlake.spark.jobs.joining import ColumnTypesError, Part, contents_of, discard, join
from coprlake.spark.jobs.spreading import parallelism, places, places_in
from coprlake.spark.jobs.task_progress import JobProgress, TaskProgress, watching
from coprlake.spark.jobs.tasks import PartWriter, WriteTask, answer, answers
from coprlake.spark.runtime.builds import same_build
from coprlake.spark.runtime.warming import warm_up_once
from coprlake.spark.source.open_tables import opened
from coprlake.storage.known_files import without_known
from coprlake.storage.ledger import Ledger
from coprlake.storage.log.delta_log import DeltaLog, Transaction
from coprlake.storage.writer import WriteReport
from coprlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALLEST_SPLIT_BYTES: Final = 16 * 1024 * 1024
ATTEMPTS: Final = 3
_DEFAULTS: Final = ReadOptions()

RunParts = Callable[[WriteTask, Sequence[int]], list[Part]]


@dataclass(frozen=True)
class Job:
    """Settings shared by all tasks of an ingestion.

    Attributes:
        options: how to read raw logs.
        name: the id of the job, under which progress is recorded.
        watched: whether tasks report progress.
        strict: whether an unreadable file fails the job; streams need this, as they never retry a file.
    """

    options: ReadOptions
    name: str
    watched: bool
    strict: bool


def ingest(
    spark: "SparkSession",
    inputs: Sequence[str | PathLike[str]],
    table: str | PathLike[str] | Table,
    options: ReadOptions = _DEFAULTS,
    *,
    recursive: bool = True,
    follow_links: bool = False,
    segment_bytes: int = SEGMENT_BYTES,
    shuffle: bool | None = None,
    progress: JobProgress | None = None,
    again: bool = False,
) -> IngestReport:
    """Append all records of some files to a table, in one commit.

    Files that were ingested before are passed over, and of those that have grown since only what is new is read.

    Args:
        spark: the session.
        inputs: files, folders or globs that every executor can read.
        table: an existing table.
        options: how to read them.
        recursive: also read files in subfolders.
        follow_links: also follow symbolic links that point outside a folder.
        segment_bytes: raw size at which a segment is sealed.
        shuffle: whether to bring the records of each partition together first; None does so if the table is
            partitioned by more than the day and the source.
        progress: called periodically with what the tasks have done.
        again: also ingest files that were ingested before.
    """
    walk = Walk(recursive, follow_links)
    files = list_inputs(inputs, walk)
    if is_one_file(inputs) and files[0].size:
        refuse_binary(files[0], options)
    known = IntakeReport()
    target = opened(table)
    ledger = target.ledger()
    files = files if again else without_known(files, ledger, options, known)
    report = ingest_files(
        spark,
        files,
        target,
        options,
        segment_bytes=segment_bytes,
        shuffle=shuffle,
        progress=progress,
        ledger=ledger,
        again=again,
    )
    report.read.merge(known)
    report.read.passed_over(walk.skipped, walk.links)
    return report


def ingest_files(
    spark: "SparkSession",
    files: Sequence[InputFile],
    table: str | PathLike[str] | Table,
    options: ReadOptions = _DEFAULTS,
    *,
    segment_bytes: int = SEGMENT_BYTES,
    shuffle: bool | None = None,
    progress: JobProgress | None = None,
    once: Transaction | None = None,
    note: dict[str, Any] | None = None,
    ledger: Ledger | None = None,
    again: bool = False,
) -> IngestReport:
    """Like `ingest`, for files that are already listed, without those that are known.

    `once` makes it a transaction that is committed only once; otherwise the files are added to the `ledger`.
    """
    stream = next((file.path for file in files if file.size is None), None)
    if stream is not None:
        raise UsageError(
            f"{stream}: a pipe cannot be read by Spark's tasks; use the in-process engine (--engine local)"
        )
    started = time.perf_counter()
    target = opened(table)
    warm_up_once()
    here = Path.cwd()  # tasks run in the folder where Java was started
    files = [replace(file, path=str(here / file.path)) for file in files]
    ledger = None if once is not None else ledger or target.ledger()
    total = sum(file.length or 0 for file in files)
    split_bytes = min(segment_bytes, max(SMALLEST_SPLIT_BYTES, math.ceil(total / parallelism(spark))))
    groups = plan_splits(files, options, split_bytes)
    job = Job(options, uuid.uuid4().hex, progress is not None, once is not None)
    if shuffle is None:
        shuffle = len(groups) > 1 and needs_shuffle(target.partition_by)
    work = _shuffled(spark, groups, job) if shuffle else _direct(spark, groups, job)
    count = 0 if shuffle else len(groups)
    note = {"operation": "ingest"} | (note or {})
    with watching(target.uri, job.name, progress):
        parts, written = settle(target, work, count, segment_bytes, once, note, ledger=ledger, again=again)
    report = IngestReport(IntakeReport(), [written] if written.version is not None else [])
    for part in parts:
        if part.read is not None:
            report.read.merge(part.read)
    report.seconds = time.perf_counter() - started
    return report


def needs_shuffle(partition_by: Sequence[str]) -> bool:
    """Whether each file may hold records of many partitions; by day or source, a file holds few."""
    return not set(partition_by) <= {DAY, SOURCE}


def settle(
    table: Table,
    run: RunParts,
    count: int,
    segment_bytes: int,
    once: Transaction | None,
    note: dict[str, Any],
    *,
    ledger: Ledger | None = None,
    again: bool = False,
) -> tuple[list[Part], WriteReport]:
    """Run all tasks and commit; tasks that disagree on the type of a new column run again once it is settled.

    Args:
        table: the target.
        run: runs the tasks with the given numbers and returns their parts; runs all tasks if `count` is 0.
        count: the number of tasks; 0 if parts have no numbers.
        segment_bytes: raw size at which a segment is sealed.
        once: a transaction; see `DeltaLog.commit`.
        note: for the history.
        ledger: the list of ingested files, which gets those that the tasks have read.
        again: whether it is fine that somebody else has ingested the same meanwhile.
    """
    note = note | {"engine": "spark"}
    log = DeltaLog.open(WriteTask.of(table).folder)
    numbers = list(range(count))
    parts: list[Part] = [Part()] * count
    try:
        for _ in range(ATTEMPTS):
            found = run(WriteTask.of(table, segment_bytes=segment_bytes), numbers)
            if count:
                for number, part in zip(numbers, found, strict=True):
                    parts[number] = part
            else:
                parts = found
            try:
                if ledger is None or not any(part.files for part in parts):
                    return parts, join(log, parts, note=note, once=once)
                commit = functools.partial(_join, log, parts, note)
                return parts, ledger.record(contents_of(parts), commit, again=again)
            except ColumnTypesError as error:
                numbers = error.losers if count else []
                discard(log, [parts[number] for number in numbers] if count else parts)
                parts = [Part() if number in numbers else part for number, part in enumerate(parts)] if count else []
                log.add_columns(list(error.fields.values()))
        raise ConflictError(f"{table.uri}: tasks kept finding different column types; nothing was committed; try again")
    except BaseException:
        discard(log, parts)
        raise


def _join(log: DeltaLog, parts: Sequence[Part], note: dict[str, Any], once: Transaction | None) -> WriteReport:
    return join(log, parts, note=note, once=once)


def _direct(spark: "SparkSession", groups: list[list[InputFile]], job: Job) -> RunParts:
    """One task per group reads its files and writes segments."""

    def run(task: WriteTask, numbers: Sequence[int]) -> list[Part]:
        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for place in places_in(batches):
                yield from answer((place, read_group(task, groups[numbers[place]], job, numbers[place])))

        found = dict(answers(places(spark, len(numbers)).mapInArrow(same_build(work), "result binary")))
        return [found[place] for place in range(len(numbers))]

    return run


def _shuffled(spark: "SparkSession", groups: list[list[InputFile]], job: Job) -> RunParts:
    """One task per group reads; then the records of each partition are brought together and written."""

    def run(task: WriteTask, _: Sequence[int]) -> list[Part]:
        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for place in places_in(batches):
                with Intake.of(groups[place], job.options, strict=job.strict) as intake:
                    yield from shuffling.packed(measured(intake), task.shape.partition_by, intake)

        packages = places(spark, len(groups)).mapInArrow(same_build(read), shuffling.COLUMNS)
        return shuffling.write(packages, task, job.name, watched=job.watched)

    return run


def read_group(task: WriteTask, files: Sequence[InputFile], job: Job, number: int) -> Part:
    """In a task: read all records of some files and seal them into segments."""
    give_memory_back()
    progress = TaskProgress(task.shape.uri, job.name, number) if job.watched else None
    with Intake.of(files, job.options, strict=job.strict) as intake, PartWriter(task, progress) as writer:
        gatherer = Gatherer(writer)
        for batch, raw_bytes in measured(intake):
            gatherer.add(batch, raw_bytes)
        gatherer.flush()
        part = writer.finish()
    part.read, part.contents, part.ranges = intake.report, intake.contents, intake.ranges
    return part
