"""Writes sidecars for a lake that another program wrote: each task indexes some of its data files, in place."""

import time
import uuid
from collections.abc import Iterable, Iterator
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from coprlake.config import RuleSet
from coprlake.files import Folder
from coprlake.ingestion import give_memory_back
from coprlake.segment.sealed import SegmentEntry
from coprlake.segment.sidecar import IndexPlan
from coprlake.spark.jobs.spreading import parallelism, places, places_in
from coprlake.spark.jobs.task_progress import JobProgress, TaskProgress, watching
from coprlake.spark.jobs.tasks import answer, answers
from coprlake.spark.runtime.builds import same_build
from coprlake.spark.runtime.warming import warm_up_once
from coprlake.spark.source.open_tables import opened
from coprlake.storage import indexing
from coprlake.storage.indexing import IndexReport
from coprlake.storage.snapshot import open_segments
from coprlake.table import Table
from coprlake.tokens.rules import rule_set

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_BYTES: Final = 64 * 1024 * 1024
"""Compressed size of the data files that one task indexes."""


def index(
    spark: "SparkSession",
    table: str | PathLike[str] | Table,
    *,
    grams: Iterable[str] = (),
    rules: RuleSet | str | None = None,
    rebuild: bool = False,
    progress: JobProgress | None = None,
) -> IndexReport:
    """Write the sidecars that are missing or damaged; the data is not touched.

    Args:
        spark: the session.
        table: a Delta table, or a folder of Parquet files.
        grams: fields to index for searches inside words; the content always is.
        rules: how text is split into tokens, by default the table's rules; sidecars with other rules are rewritten.
        rebuild: rewrite all sidecars.
        progress: called periodically with what the tasks have done; bytes are those of data files.
    """
    started = time.perf_counter()
    warm_up_once()
    target = opened(table)
    snapshot, uri = target.snapshot(), target.uri
    schema = snapshot.schema
    asked = None if rules is None else rule_set(rules)
    plan = IndexPlan(frozenset(grams) | target.gram_fields, target.rules)
    shares = _shares([segment.entry for segment in snapshot.segments], parallelism(spark))
    job, watched = uuid.uuid4().hex, progress is not None

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        give_memory_back()
        folder = Folder.of(uri)
        for place in places_in(batches):
            segments = open_segments(folder, shares[place], schema, {})
            told = TaskProgress(uri, job, place) if watched else None
            yield from answer(
                indexing.index(
                    folder,
                    segments,
                    plan=plan,
                    rules=asked,
                    rebuild=rebuild,
                    progress=None if told is None else partial(told, 0),
                )
            )

    report = IndexReport()
    if shares:
        with watching(uri, job, progress):
            for part in answers(places(spark, len(shares)).mapInArrow(same_build(work), "result binary")):
                report.merge(part)
    target.forget()  # open segments that had no sidecar before
    report.seconds = time.perf_counter() - started
    return report


def _shares(entries: list[SegmentEntry], at_a_time: int) -> list[list[SegmentEntry]]:
    """Split files into groups of about the same size, placing the largest first."""
    total = sum(entry.data_bytes for entry in entries)
    count = min(len(entries), max(at_a_time, -(-total // TASK_BYTES)))
    groups: list[list[SegmentEntry]] = [[] for _ in range(count)]
    sizes = [0] * count
    for entry in sorted(entries, key=lambda one: -one.data_bytes):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(entry)
        sizes[smallest] += entry.data_bytes
    return groups
