"""Changes the partitions of a table: all files are rewritten, and one commit replaces them and the layout."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.config import OPTIMIZED_LEVEL, OPTIMIZED_SEGMENT_BYTES, SEGMENT_BYTES
from coprlake.errors import ConflictError, UsageError
from coprlake.records import DAY, TIMESTAMP
from coprlake.segment.mutable import SegmentOptions
from coprlake.segment.sealed import SealedSegment
from coprlake.segment.sidecar import IndexPlan
from coprlake.storage.log.actions import NewFile
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.storage.log.layouts import NewLayout
from coprlake.storage.merging import (
    Group,
    Layout,
    Merged,
    batches_by_time,
    estimated_raw_bytes,
    merge,
    packed,
    time_order,
)
from coprlake.storage.optimizing import OptimizeReport, optimize
from coprlake.storage.partitioning import with_day
from coprlake.storage.progress import Progress
from coprlake.storage.segmenter import Segmenter, TableShape
from coprlake.storage.snapshot import Snapshot
from coprlake.storage.writer import scratch_options

Partitions: TypeAlias = Literal["none", "day"]
ATTEMPTS = 20
"""How often the commit is tried; each time, only what others changed is rewritten."""


@dataclass
class _Rewritten:
    """Some segments of the old layout, and those of the new one that have their records."""

    group: Group
    merged: list[tuple[Merged, dict[str, str | None]]]


def columns_of(partitions: str) -> tuple[str, ...]:
    """The partition columns that a layout's name means."""
    if partitions not in ("none", DAY):
        raise UsageError(f"expected none or {DAY}, found {partitions!r}; a table can be repartitioned to these")
    return () if partitions == "none" else (DAY,)


def optimize_or_repartition(
    log: DeltaLog,
    snapshot_of: Callable[[], Snapshot],
    partitions: Partitions | None,
    *,
    target_bytes: int,
    level: int,
    full: bool,
    plan: IndexPlan,
    progress: Progress | None,
) -> OptimizeReport:
    """Change the partitions of a table unless it has these, and merge what is small; see `optimize`."""
    if partitions is None or tuple(log.partition_by) == columns_of(partitions):
        return optimize(
            log, snapshot_of(), target_bytes=target_bytes, level=level, full=full, plan=plan, progress=progress
        )
    changing = Repartitioner(
        log, snapshot_of, partitions, target_bytes=target_bytes, level=level, plan=plan, progress=progress
    )
    report = changing.run()
    log.refresh()
    return report.followed_by(optimize(log, snapshot_of(), target_bytes=target_bytes, level=level, plan=plan))


class Repartitioner:
    """Rewrites a table for other partitions. What others append or delete meanwhile is taken into account.

    Args:
        log: the table's log.
        snapshot_of: gives the newest snapshot.
        partitions: ``none`` or ``day``.
        target_bytes: the raw size of a segment.
        level: zstd level of the new data files.
        plan: how records are indexed.
        progress: see `Progress`.
    """

    def __init__(
        self,
        log: DeltaLog,
        snapshot_of: Callable[[], Snapshot],
        partitions: Partitions,
        *,
        target_bytes: int = OPTIMIZED_SEGMENT_BYTES,
        level: int = OPTIMIZED_LEVEL,
        plan: IndexPlan | None = None,
        progress: Progress | None = None,
    ) -> None:
        if not log.folder.is_local:
            raise UsageError(
                f"{log.folder.uri}: a table in an object store cannot be repartitioned; copy it to a disk and back, or "
                "ingest its records into a new table"
            )
        log.check_writable("move")
        self._log = log
        self._snapshot_of = snapshot_of
        self._columns = columns_of(partitions)
        self._target_bytes = target_bytes
        self._level = level
        self._plan = plan or IndexPlan()
        self._progress = progress
        self._done: list[_Rewritten] = []
        self._dropped: frozenset[str] = frozenset()

    def run(self) -> OptimizeReport:
        """Rewrite and commit; leaves the table as it is, and no files, if that fails.

        Raises:
            ConflictError: others changed the table again and again.
        """
        started = time.perf_counter()
        try:
            for attempt in range(ATTEMPTS):
                snapshot = self._snapshot_of()
                try:
                    report = self._run_once(snapshot)
                    report.seconds = time.perf_counter() - started
                    return report
                except ConflictError:
                    if attempt == ATTEMPTS - 1:
                        raise
            raise AssertionError("unreachable")
        except BaseException:
            self._discard(self._done)
            raise

    def _run_once(self, snapshot: Snapshot) -> OptimizeReport:
        self._log.refresh()
        segments = {segment.name: segment for segment in snapshot.segments}
        count = len(segments)
        report = OptimizeReport(segments_before=count, segments_after=count)
        if sorted(self._log.partition_by) == sorted(self._columns):  # somebody else has done it
            self._discard(self._done)
            self._done = []
            return report
        dropped = self._dropped_columns(snapshot)
        stale = [one for one in self._done if any(old.name not in segments for old in one.group)]
        if dropped != self._dropped:  # what was written has other columns than the table will have
            stale, self._dropped = list(self._done), dropped
        self._done = [one for one in self._done if one not in stale]
        self._discard(stale)
        covered = {old.name for one in self._done for old in one.group}
        self._rewrite([segment for name, segment in segments.items() if name not in covered], snapshot)
        gone = [old for one in self._done for old in one.group]
        merged = [pair for one in self._done for pair in one.merged]
        files = [NewFile(one.sealed, partition) for one, partition in merged]
        note = {"operation": "repartition", "partition_by": list(self._columns), "merged": len(gone)}
        layout = NewLayout(self._columns, self._dropped)
        entries = [segment.entry for segment in gone]
        report.version = self._log.commit(files, entries, note=note, data_change=False, layout=layout)
        report.add(gone, [one for one, _ in merged])
        self._done = []
        return report

    def _dropped_columns(self, snapshot: Snapshot) -> frozenset[str]:
        """The day, if the table is no longer partitioned by it and it says no more than the timestamp."""
        schema = snapshot.schema
        if DAY in self._columns:
            if DAY in schema.names and not pa.types.is_date32(schema.field(DAY).type):
                kind = schema.field(DAY).type
                raise UsageError(f"{self._log.folder.uri}: the table has a column day of its own, of type {kind}")
            return frozenset()
        if DAY not in self._log.partition_by or not pa.types.is_date32(schema.field(DAY).type):
            return frozenset()
        return frozenset({DAY}) if all(map(_has_day_of_times, snapshot.segments)) else frozenset()

    def _rewrite(self, segments: Sequence[SealedSegment], snapshot: Snapshot) -> None:
        if not segments:
            return
        if self._columns:
            self._done.append(_Rewritten(segments, self._split(segments, snapshot.schema)))
            return
        layout = Layout(dropped=self._dropped)
        for group in packed(segments, self._target_bytes):
            merged = merge(
                self._log.folder, layout, group, self._level, self._plan, full=False, progress=self._progress
            )
            self._done.append(_Rewritten(group, [(merged, {})]))

    def _split(
        self, segments: Sequence[SealedSegment], schema: pa.Schema
    ) -> list[tuple[Merged, dict[str, str | None]]]:
        """Write the records of some segments by their partitions."""
        if DAY not in schema.names:
            schema = schema.append(pa.field(DAY, pa.date32()))
        shape = TableShape(self._log.folder.uri, schema, self._columns)
        own = SegmentOptions(
            level=self._level, searchable=False, gram_fields=self._plan.gram_fields, rules=self._plan.rules
        )
        options = scratch_options(own, self._log.folder)
        segmenter = Segmenter(shape, options, min(self._target_bytes, SEGMENT_BYTES))
        try:
            for segment in sorted(segments, key=time_order):
                raw, rows = estimated_raw_bytes(segment), max(segment.footer.row_count, 1)
                for _, batch in batches_by_time([segment]):
                    records = segment.read(batch, segment.schema.names).combine_chunks()
                    for part in records.to_batches():
                        segmenter.append(part, raw * part.num_rows // rows, as_stored=True)
                if self._progress is not None:
                    self._progress(segment.entry.data_bytes)
            sealed = segmenter.seal()
        except BaseException:
            segmenter.remove()
            raise
        segmenter.hand_over()
        return [
            (Merged(file.report, int(number == 0) * len(segments)), file.partition)
            for number, file in enumerate(sealed.files)
        ]

    def _discard(self, rewritten: Sequence[_Rewritten]) -> None:
        self._log.discard([merged.sealed.name for one in rewritten for merged, _ in one.merged])


def _has_day_of_times(segment: SealedSegment) -> bool:
    """Whether the day of a partition is that of each timestamp; another writer may have filled it otherwise."""
    own = segment.constants.get(DAY)
    if own is None or TIMESTAMP not in segment.schema.names:
        return False
    first, last = segment.times()
    inside = np.zeros(len(first), bool)
    if own.is_valid:
        start = (own.as_py() - date(1970, 1, 1)) // timedelta(microseconds=1)
        end = start + timedelta(days=1) // timedelta(microseconds=1)
        inside = (first >= start) & (last < end) & (first <= last)
    for batch in np.flatnonzero(~inside).tolist():
        for part in segment.read(batch, [TIMESTAMP]).to_batches():
            if not pa.types.is_timestamp(part.schema.field(TIMESTAMP).type):
                return False
            days = with_day(part).column(DAY)
            same = days.is_null() if not own.is_valid else pc.equal(days, own).fill_null(False)
            if not pc.all(same).as_py() and len(days):
                return False
    return True
