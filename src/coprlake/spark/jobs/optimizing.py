"""Merges small segments into large ones in tasks; the driver commits each wave of tasks."""

import itertools
import time
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from coprlake.config import OPTIMIZED_LEVEL, OPTIMIZED_SEGMENT_BYTES
from coprlake.files import Folder
from coprlake.ingestion import give_memory_back
from coprlake.segment.sealed import SegmentEntry
from coprlake.segment.sidecar import IndexPlan, remove_segment
from coprlake.spark.jobs.spreading import parallelism, places, places_in
from coprlake.spark.jobs.task_progress import JobProgress, TaskProgress, watching
from coprlake.spark.jobs.tasks import answer, answers
from coprlake.spark.runtime.builds import same_build
from coprlake.spark.runtime.warming import warm_up_once
from coprlake.spark.source.open_tables import opened
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.storage.merging import Group, Merged, estimated_raw_bytes, layout_of, merge
from coprlake.storage.optimizing import MergePlan, OptimizeReport, commit_groups
from coprlake.storage.segmenter import TableShape
from coprlake.storage.snapshot import open_segments
from coprlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_BYTES: Final = 128 * 1024 * 1024
TASK_GROUPS: Final = 64
"""A task merges up to `TASK_BYTES` of raw text or `TASK_GROUPS` groups; a larger group gets its own task."""


def optimize(
    spark: "SparkSession",
    table: str | PathLike[str] | Table,
    *,
    target_bytes: int = OPTIMIZED_SEGMENT_BYTES,
    level: int = OPTIMIZED_LEVEL,
    full: bool = False,
    progress: JobProgress | None = None,
) -> OptimizeReport:
    """Merge small segments of each partition, neighbours in time.

    Segments that another writer changes meanwhile are left as they are and counted as conflicts, so a stream may write
    while this runs.

    Args:
        spark: the session.
        table: a path or an open table.
        target_bytes: raw size of a segment.
        level: zstd level of the new data files.
        full: rewrite every segment, even those that are large enough, and keep no whole fingerprints.
        progress: called periodically with what the tasks have done; bytes are those of data files.
    """
    started = time.perf_counter()
    warm_up_once()
    target = opened(table)
    snapshot, shape, plan = target.snapshot(), target.shape, target.index_plan
    left = MergePlan(snapshot.segments, target_bytes, full=full)
    count = len(snapshot.segments)
    report = OptimizeReport(segments_before=count, segments_after=count)
    job = uuid.uuid4().hex
    log = DeltaLog.open(Folder.of(shape.uri))
    wave, done = parallelism(spark), 0
    with watching(shape.uri, job, progress):
        while groups := left.groups():
            tasks = _tasks(groups)
            for first in range(0, len(tasks), wave):
                watch = (job, done + first) if progress is not None else None
                part = tasks[first : first + wave]
                merged = _merged(spark, part, shape, level, plan, full, watch)
                pairs = [zip(task, own, strict=True) for task, own in zip(part, merged, strict=True)]
                commit_groups(log, list(itertools.chain(*pairs)), left, report)
            done += len(tasks)
    report.seconds = time.perf_counter() - started
    return report


def _tasks(groups: Sequence[Group]) -> list[list[Group]]:
    """Assign groups to tasks: a large group by itself, small ones together."""
    tasks: list[list[Group]] = []
    room = 0
    for group in groups:
        size = sum(estimated_raw_bytes(segment) for segment in group)
        if not tasks or size > room or len(tasks[-1]) >= TASK_GROUPS:
            tasks.append([])
            room = TASK_BYTES
        tasks[-1].append(group)
        room -= size
    return tasks


def _merged(
    spark: "SparkSession",
    tasks: list[list[Group]],
    shape: TableShape,
    level: int,
    plan: IndexPlan,
    full: bool,
    watch: tuple[str, int] | None,
) -> list[list[Merged]]:
    """Run the tasks and return the merged segments of each."""
    entries: list[list[list[SegmentEntry]]] = [[[one.entry for one in group] for group in task] for task in tasks]

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        give_memory_back()
        folder = Folder.of(shape.uri)
        for place in places_in(batches):
            told = None if watch is None else partial(TaskProgress(shape.uri, watch[0], watch[1] + place), 0)
            done: list[Merged] = []
            try:
                for own in entries[place]:
                    group = open_segments(folder, own, shape.schema, {})
                    layout = layout_of(shape.partition_by, group)
                    done.append(merge(folder, layout, group, level, plan, full=full, progress=told))
            except BaseException:
                for merged in done:
                    remove_segment(folder, merged.sealed.name)
                raise
            yield from answer((place, done))

    found = dict(answers(places(spark, len(tasks)).mapInArrow(same_build(work), "result binary")))
    return [found[place] for place in range(len(tasks))]
