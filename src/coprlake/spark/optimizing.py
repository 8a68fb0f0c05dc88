"""Small segments become large ones, a group of them a task; the driver commits wave by wave."""

import time
import uuid
from collections.abc import Iterator
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING

import pyarrow as pa

from coprlake.config import OPTIMIZED_LEVEL, OPTIMIZED_SEGMENT_BYTES
from coprlake.errors import ConflictError
from coprlake.files import Folder
from coprlake.ingestion import give_memory_back
from coprlake.segment.sealed import SealedSegment, SegmentEntry
from coprlake.spark.ingesting import places, places_in
from coprlake.spark.progress import JobProgress, TaskProgress, watching
from coprlake.spark.tables import opened
from coprlake.spark.tasks import answer, answers
from coprlake.store import Table
from coprlake.table.delta_log import DeltaLog
from coprlake.table.optimizing import Merged, OptimizeReport, commit_merged, groups_to_merge, merge
from coprlake.table.segmenter import TableShape
from coprlake.table.snapshot import open_segments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def optimize(
    spark: "SparkSession",
    table: str | PathLike[str] | Table,
    *,
    target_bytes: int = OPTIMIZED_SEGMENT_BYTES,
    level: int = OPTIMIZED_LEVEL,
    full: bool = False,
    progress: JobProgress | None = None,
) -> OptimizeReport:
    """Merge small segments of each partition.

    What somebody else changed meanwhile stays as it is and is counted: a stream may write while this runs.

    Args:
        spark: the session.
        table: a path, or a table that is open.
        target_bytes: raw size of a segment.
        level: zstd level of the new data files.
        full: rewrite every segment, also those that are large enough, and keep no whole fingerprints.
        progress: told now and then how far the tasks are; bytes are those of data files.
    """
    started = time.perf_counter()
    target = opened(table)
    snapshot, shape, grams = target.snapshot(), target.shape, target.gram_fields
    groups = groups_to_merge(snapshot.segments, target_bytes, full=full)
    count = len(snapshot.segments)
    report = OptimizeReport(segments_before=count, segments_after=count)
    job = uuid.uuid4().hex
    wave = max(1, spark.sparkContext.defaultParallelism)
    log = DeltaLog.open(Folder.of(shape.uri))
    with watching(shape.uri, job, progress):
        for first in range(0, len(groups), wave):
            part = groups[first : first + wave]
            watch = (job, first) if progress is not None else None
            for group, merged in zip(part, _merged(spark, part, shape, level, grams, full, watch), strict=True):
                try:
                    commit_merged(log, group, merged, report)
                except ConflictError:
                    report.conflicts += 1
    report.seconds = time.perf_counter() - started
    return report


def _merged(
    spark: "SparkSession",
    groups: list[list[SealedSegment]],
    shape: TableShape,
    level: int,
    grams: frozenset[str],
    full: bool,
    watch: tuple[str, int] | None,
) -> list[Merged]:
    """One task a group."""
    entries: list[list[SegmentEntry]] = [[segment.entry for segment in group] for group in groups]

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        give_memory_back()
        folder = Folder.of(shape.uri)
        for place in places_in(batches):
            group = open_segments(folder, entries[place], shape.schema, {})
            told = None if watch is None else TaskProgress(shape.uri, watch[0], watch[1] + place)
            tell = None if told is None else partial(told, 0)
            yield from answer((place, merge(folder, shape.partition_by, group, level, grams, full=full, progress=tell)))

    found = dict(answers(places(spark, len(groups)).mapInArrow(work, "result binary")))
    return [found[place] for place in range(len(groups))]
