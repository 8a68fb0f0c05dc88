"""Merges small segments into large ones: sketches without reading the logs, data with stronger compression."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from coprlake.config import (
    BATCH_BYTES,
    FULL_SIGNATURE_BITS,
    MERGEABLE_BYTES,
    OPTIMIZED_LEVEL,
    OPTIMIZED_SEGMENT_BYTES,
    POSTING_LIMIT,
)
from coprlake.deprecation import Renamed
from coprlake.errors import FormatError
from coprlake.files import Folder
from coprlake.records import TIMESTAMP
from coprlake.segment.assigner import record_bytes
from coprlake.segment.batch_indexing import BatchIndexer, planned_kind, signature_bits
from coprlake.segment.data_file import DataFileWriter, removals_noticed, storage_schema, written_bytes
from coprlake.segment.mutable import SegmentReport
from coprlake.segment.sealed import SealedSegment
from coprlake.segment.searchable import ALWAYS, time_range
from coprlake.segment.sidecar import (
    UNINDEXED,
    Description,
    IndexPlan,
    encode_sidecar,
    joined_kinds,
    joined_values,
    sidecar_name,
)
from coprlake.sketch.merge import add_sealed
from coprlake.sketch.mutable import MutableSketch
from coprlake.sketch.sealing import encode
from coprlake.storage.log.actions import NewFile
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.storage.partitioning import fresh_name, log_text
from coprlake.storage.progress import Progress
from coprlake.storage.segmenter import remove_segment
from coprlake.storage.snapshot import Snapshot
from coprlake.summary import Report
from coprlake.tokens.profile import NOT_TOGETHER


@dataclass(repr=False)
class OptimizeReport(Report):
    """What `optimize` did."""

    always_shown = ("version", "segments_before", "segments_after")

    version: int | None = None
    segments_before: int = 0
    segments_after: int = 0
    merged: int = 0
    written: int = 0
    tokenized_again: int = 0
    data_bytes_before: int = 0
    data_bytes_after: int = 0
    index_bytes_before: int = 0
    index_bytes_after: int = 0
    conflicts: int = 0  # groups that somebody else changed meanwhile; they stay as they are
    seconds: float = 0.0
    segments: list[SegmentReport] = field(default_factory=list)

    sketch_bytes_before = Renamed("index_bytes_before")
    sketch_bytes_after = Renamed("index_bytes_after")


def estimated_raw_bytes(segment: SealedSegment) -> int:
    """The raw size of a segment; without a sidecar, eight times the size of its data file."""
    return segment.sidecar.description.raw_bytes if segment.sidecar else 8 * segment.entry.data_bytes


def groups_to_merge(segments: Sequence[SealedSegment], target_bytes: int, *, full: bool) -> list[list[SealedSegment]]:
    """Groups of consecutive segments of one partition that together have about the target size."""
    by_partition: dict[tuple[tuple[str, object], ...], list[SealedSegment]] = {}
    for segment in segments:
        if full or estimated_raw_bytes(segment) < target_bytes // 2:
            by_partition.setdefault(tuple(segment.entry.partition.items()), []).append(segment)
    groups = []
    for members in by_partition.values():
        group: list[SealedSegment] = []
        size = batches = 0
        for segment in sorted(members, key=lambda member: member.name):  # in the order of writing
            own = estimated_raw_bytes(segment)
            if group and (size + own > target_bytes or batches + segment.batch_count > POSTING_LIMIT):
                groups.append(group)
                group, size, batches = [], 0, 0
            group.append(segment)
            size += own
            batches += segment.batch_count
        groups.append(group)
    return [group for group in groups if len(group) > 1 or (full and group)]


def optimize(
    log: DeltaLog,
    snapshot: Snapshot,
    *,
    target_bytes: int = OPTIMIZED_SEGMENT_BYTES,
    level: int = OPTIMIZED_LEVEL,
    full: bool = False,
    plan: IndexPlan | None = None,
    progress: Progress | None = None,
) -> OptimizeReport:
    """Merge small segments of each partition; one commit per merged segment, so that a conflict loses little work.

    Args:
        log: the table's log.
        snapshot: its segments at the newest version.
        target_bytes: the raw size of a merged segment.
        level: zstd level of the new data files.
        full: rewrite every segment, even those that are large enough, and keep no whole fingerprints.
        plan: how to index segments that have to be tokenized again, because they keep no whole fingerprints or
            were indexed with other rules.
        progress: see `Progress`.

    Raises:
        ConflictError: another writer rewrote the same segments; earlier merges stay.
    """
    started = time.perf_counter()
    report = OptimizeReport(segments_before=len(snapshot.segments), segments_after=len(snapshot.segments))
    for group in groups_to_merge(snapshot.segments, target_bytes, full=full):
        merged = merge(log.folder, log.partition_by, group, level, plan or IndexPlan(), full=full, progress=progress)
        try:
            commit_merged(log, [(group, merged)], report)
        except BaseException:
            log.discard([merged.sealed.name])
            raise
    report.seconds = time.perf_counter() - started
    return report


Group: TypeAlias = Sequence[SealedSegment]


class Merged(NamedTuple):
    """A segment that is written but not committed."""

    sealed: SegmentReport
    tokenized_again: int


def merge(
    folder: Folder,
    partition_by: Sequence[str],
    group: Sequence[SealedSegment],
    level: int,
    plan: IndexPlan,
    *,
    full: bool,
    progress: Progress | None = None,
) -> Merged:
    """Write one segment from several of a partition; leaves nothing behind if that fails."""
    name = _name_beside(partition_by, group[0])
    merger = None
    try:
        merger = SegmentMerger(folder, name, group, level=level, full=full, plan=plan)
        return Merged(merger.run(progress), merger.tokenized_again)
    except BaseException:
        if merger is not None:
            merger.close()
        remove_segment(folder, name)
        raise


def commit_merged(log: DeltaLog, all_merged: Sequence[tuple[Group, Merged]], report: OptimizeReport) -> None:
    """Replace segments with the ones merged from them, in one commit.

    Raises:
        ConflictError: another writer changed some of them; the files of the new segments are not removed.
    """
    files = []
    for group, merged in all_merged:
        partition = {name: log_text(value) for name, value in group[0].entry.partition.items()}
        files.append(NewFile(merged.sealed, partition))
    gone = [segment for group, _ in all_merged for segment in group]
    note = {"operation": "optimize", "merged": len(gone)}
    report.version = log.commit(files, [segment.entry for segment in gone], note=note, data_change=False)
    report.merged += len(gone)
    report.written += len(files)
    report.segments_after -= len(gone) - len(files)
    report.tokenized_again += sum(merged.tokenized_again for _, merged in all_merged)
    report.data_bytes_before += sum(segment.entry.data_bytes for segment in gone)
    report.data_bytes_after += sum(file.report.data_bytes for file in files)
    report.index_bytes_before += sum(segment.sidecar.file_bytes for segment in gone if segment.sidecar)
    report.index_bytes_after += sum(file.report.index_bytes for file in files)
    report.segments += [file.report for file in files]


class SegmentMerger:
    """Writes one segment from several. Batches stay as they are, except that small neighbours become one."""

    def __init__(
        self,
        folder: Folder,
        name: str,
        segments: Sequence[SealedSegment],
        *,
        level: int,
        full: bool,
        plan: IndexPlan,
    ) -> None:
        self.name = name
        self.tokenized_again = 0
        self._folder = folder
        self._segments = segments
        self._full = full
        self._schema = _joint_schema(segments)
        self._writer = DataFileWriter(folder, self.name, self._schema, level)
        self._sketch = MutableSketch(None)
        self._plan = plan
        self._indexer = BatchIndexer(plan, segments[0].constants)
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._batch_count = 0
        self._row_count = 0
        self._raw_bytes = 0
        self._times: list[tuple[int, int]] = []
        self._described: list[Description] = []

    def run(self, progress: Progress | None = None) -> SegmentReport:
        """Merge, and write the data file and the sidecar."""
        started = time.perf_counter()
        for segment in self._segments:
            self._add(segment)
            if progress is not None:
                progress(segment.entry.data_bytes)
        self._flush()
        self._writer.close()
        with removals_noticed(self._folder, self.name):
            self._folder.sync(self.name)
        data_bytes = written_bytes(self._folder, self.name)
        merged = time.perf_counter()
        bits = signature_bits(self._plan.rules, mergeable=not self._full and self._raw_bytes < MERGEABLE_BYTES)
        pieces, sketch_report = encode(self._sketch, signature_bits=bits, rules=self._plan.rules)
        sidecar = encode_sidecar(pieces, self._description(data_bytes))
        with removals_noticed(self._folder, self.name):
            self._folder.write(sidecar_name(self.name), sidecar)
        parts = dict(sketch_report.bytes_by_part)
        parts["description"] = sum(map(len, sidecar)) - sum(map(len, pieces))
        return SegmentReport(
            name=self.name,
            row_count=self._row_count,
            batch_count=self._batch_count,
            raw_bytes=self._raw_bytes,
            data_bytes=data_bytes,
            first_time=min((first for first, _ in self._times), default=ALWAYS[0]),
            last_time=max((last for _, last in self._times), default=ALWAYS[1]),
            index_bytes_by_part=parts,
            seconds_by_phase={"merge": merged - started, "seal sketch": time.perf_counter() - merged},
        )

    def close(self) -> None:
        """Release the data file, complete or not."""
        self._writer.abandon()

    def _add(self, segment: SealedSegment) -> None:
        """Copy the batches of a segment, and merge its sketch if that is possible; otherwise tokenize them again."""
        mergeable = _is_mergeable(segment, self._plan)
        numbers = np.zeros(segment.batch_count, np.int64)
        for batch in range(segment.batch_count):
            records = segment.read(batch, self._schema.names)
            size = int(sum(int(record_bytes(part).sum()) for part in records.to_batches()))
            if self._waiting and self._waiting_bytes + size > BATCH_BYTES * 5 // 4:
                self._flush()
            numbers[batch] = self._batch_count  # the waiting batch gets this number
            if not mergeable:
                for fingerprints in self._indexer.tokens(records):
                    self._sketch.insert(fingerprints, self._batch_count)
            self._waiting.append(_padded(records, self._schema))
            self._waiting_bytes += size
        if mergeable:
            assert segment.sidecar is not None
            add_sealed(self._sketch, segment.sidecar.sketch, posting_map=numbers)
            self._described.append(segment.sidecar.description)
        else:
            self.tokenized_again += 1
        self._raw_bytes += estimated_raw_bytes(segment)

    def _flush(self) -> None:
        if not self._waiting:
            return
        batch = pa.concat_tables(self._waiting).combine_chunks()
        self._writer.write(batch)
        self._times.append(time_range(batch, TIMESTAMP))
        self._row_count += batch.num_rows
        self._batch_count += 1
        self._waiting, self._waiting_bytes = [], 0

    def _description(self, data_bytes: int) -> Description:
        """The description of what all merged indexes have in common."""
        described = self._described + ([self._indexer.describe(self.name, 0, 0, 0, 0)] if self.tokenized_again else [])
        return Description(
            self.name.rpartition("/")[2],
            data_bytes,
            self._row_count,
            self._batch_count,
            self._raw_bytes,
            joined_kinds(described),
            sorted({name for one in described for name in one.typed}),
            all(one.complete for one in described),
            values=joined_values(described),
        )


def _is_mergeable(segment: SealedSegment, plan: IndexPlan) -> bool:
    """Whether the sketch can be merged; a damaged one, or one of another plan, is rebuilt from the data."""
    if segment.sidecar is None or segment.sidecar.sketch.signature_bits != FULL_SIGNATURE_BITS:
        return False
    fields = segment.sidecar.description.fields
    if joined_values([segment.sidecar.description]) == NOT_TOGETHER:
        return False
    if any(kind != planned_kind(name, plan) for name, kind in fields.items() if kind != UNINDEXED):
        return False
    try:
        segment.sidecar.sketch.verify()
    except FormatError as error:
        segment.distrust(error)
        return False
    return True


def _name_beside(partition_by: Sequence[str], segment: SealedSegment) -> str:
    """A new name for a data file of the same partition."""
    partition = tuple(log_text(segment.entry.partition[name]) for name in partition_by)
    return fresh_name(partition_by, partition)


def _joint_schema(segments: Iterable[SealedSegment]) -> pa.Schema:
    """The columns of all segments, except those of the partition."""
    fields: dict[str, pa.Field] = {}
    for segment in segments:
        for one in storage_schema(segment.schema):
            if one.name not in segment.constants:
                fields.setdefault(one.name, one)
    return pa.schema(list(fields.values()))


def _padded(records: pa.Table, schema: pa.Schema) -> pa.Table:
    columns: Iterator[pa.ChunkedArray] = (
        records.column(one.name).cast(one.type)
        if one.name in records.schema.names
        else pa.chunked_array([pa.nulls(records.num_rows, one.type)])
        for one in schema
    )
    return pa.Table.from_arrays(list(columns), schema=schema)
