"""Writes one segment from several: batches in order of time, sketches without tokenizing again if possible."""

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from coprlake.config import BATCH_BYTES, FULL_SIGNATURE_BITS, MERGEABLE_BYTES, POSTING_LIMIT
from coprlake.errors import ConflictError, FormatError
from coprlake.files import Folder
from coprlake.kernel import I64Array
from coprlake.records import TIMESTAMP
from coprlake.segment.assigner import record_bytes
from coprlake.segment.batch_indexing import BatchIndexer, planned_kind, signature_bits
from coprlake.segment.data_file import DataFileWriter, removals_noticed, storage_schema, written_bytes
from coprlake.segment.mutable import SegmentReport
from coprlake.segment.sealed import SealedSegment, SegmentEntry
from coprlake.segment.searchable import ALWAYS, time_range
from coprlake.segment.sidecar import (
    UNINDEXED,
    Description,
    IndexPlan,
    are_all_in_content,
    encode_sidecar,
    joined_any_value,
    joined_kinds,
    remove_segment,
    sidecar_name,
)
from coprlake.sketch.merge import add_sealed
from coprlake.sketch.mutable import MutableSketch
from coprlake.sketch.sealing import encode
from coprlake.storage.partitioning import Partition, fresh_name, log_text
from coprlake.storage.progress import Progress
from coprlake.tokens.profile import NOT_TOGETHER

Group: TypeAlias = Sequence[SealedSegment]

_NULL_COLUMN_BYTES: Final = 100
"""What a column without values takes in a row group: its page, and its place in the footer."""


class Merged(NamedTuple):
    """A segment that is written but not committed."""

    sealed: SegmentReport
    tokenized_again: int


class Layout(NamedTuple):
    """Where a merged segment goes, and which columns its file does not have.

    Attributes:
        partition_by: the partition columns of the table that it joins.
        partition: its values of these.
        dropped: columns of its sources that it loses.
    """

    partition_by: tuple[str, ...] = ()
    partition: Partition = ()
    dropped: frozenset[str] = frozenset()


def estimated_raw_bytes(segment: SealedSegment) -> int:
    """The raw size of a segment; without a sidecar, eight times the size of its data file."""
    return segment.sidecar.description.raw_bytes if segment.sidecar else 8 * segment.entry.data_bytes


def time_order(segment: SealedSegment) -> tuple[int, str]:
    """Sorts segments by their first time, then by arrival; those whose times are not known come last."""
    first = segment.entry.first_time
    return ALWAYS[1] if first == ALWAYS[0] else first, segment.name.rpartition("/")[2]


def layout_of(partition_by: Sequence[str], group: Group) -> Layout:
    """The partition of some segments, all of the same one.

    Raises:
        ConflictError: the table is partitioned by other columns meanwhile.
    """
    values = group[0].entry.partition
    if set(values) != set(partition_by):
        raise ConflictError("somebody else has changed the partitions of the table meanwhile; try again")
    return Layout(tuple(partition_by), tuple(log_text(values[name]) for name in partition_by))


def merge(
    folder: Folder,
    layout: Layout,
    group: Group,
    level: int,
    plan: IndexPlan,
    *,
    full: bool,
    progress: Progress | None = None,
) -> Merged:
    """Write one segment from several; leaves nothing behind if that fails."""
    name = fresh_name(layout.partition_by, layout.partition)
    merger = None
    try:
        merger = SegmentMerger(folder, name, group, level=level, full=full, plan=plan, layout=layout)
        return Merged(merger.run(progress), merger.tokenized_again)
    except BaseException:
        if merger is not None:
            merger.close()
        remove_segment(folder, name)
        raise


def opened_merged(folder: Folder, group: Group, merged: Merged) -> SealedSegment:
    """The segment that was merged from a group of one partition, as if the log had it."""
    sealed = merged.sealed
    entry = SegmentEntry(
        sealed.name, sealed.data_bytes, sealed.row_count, sealed.first_time, sealed.last_time, group[0].entry.partition
    )
    return SealedSegment(folder, entry, group[0].constants)


def packed(segments: Iterable[SealedSegment], target_bytes: int) -> list[list[SealedSegment]]:
    """All segments in order of time, in groups of about the target size."""
    groups: list[list[SealedSegment]] = []
    size = batches = 0
    for segment in sorted(segments, key=time_order):
        own = estimated_raw_bytes(segment)
        if not groups or size + own > target_bytes or batches + segment.batch_count > POSTING_LIMIT:
            groups.append([])
            size = batches = 0
        groups[-1].append(segment)
        size += own
        batches += segment.batch_count
    return groups


def groups_to_join(segments: Sequence[SealedSegment], target_bytes: int) -> list[list[SealedSegment]]:
    """Groups of a writer's small segments that are cheaper as one, although their columns differ.

    A column that a batch does not have takes `_NULL_COLUMN_BYTES` in it. A segment has costs of its own, and its sketch
    has to learn common words: about 32 KiB, and 0.3 % of its raw text. Two small segments are left as they are: it
    would take longer than it saves.
    """
    raw = {segment.name: estimated_raw_bytes(segment) for segment in segments}
    if len(segments) < 2 or (len(segments) == 2 and sum(raw.values()) < MERGEABLE_BYTES):
        return []
    groups: list[list[SealedSegment]] = []
    columns: list[set[str]] = []
    for segment in sorted(segments, key=lambda one: raw[one.name], reverse=True):
        own = set(segment.schema.names)
        saved = max(32 << 10, raw[segment.name] * 3 // 1000)
        for group, known in zip(groups, columns, strict=True):
            batches = sum(one.batch_count for one in group)
            added = len(own - known) * batches + len(known - own) * segment.batch_count
            fits = sum(raw[one.name] for one in group) + raw[segment.name] <= target_bytes
            if fits and added * _NULL_COLUMN_BYTES <= saved and batches + segment.batch_count <= POSTING_LIMIT:
                group.append(segment)
                known |= own
                break
        else:
            groups.append([segment])
            columns.append(own)
    return [sorted(group, key=time_order) for group in groups if len(group) > 1]


class SegmentMerger:
    """Writes one segment from several. Batches are sorted by time; small neighbours become one."""

    def __init__(
        self,
        folder: Folder,
        name: str,
        segments: Group,
        *,
        level: int,
        full: bool,
        plan: IndexPlan,
        layout: Layout,
    ) -> None:
        self.name = name
        self.tokenized_again = 0
        self._folder = folder
        self._segments = segments
        self._full = full
        self._dropped = layout.dropped
        self._schema = _joint_schema(segments, layout.dropped.union(layout.partition_by))
        self._writer = DataFileWriter(folder, self.name, self._schema, level)
        self._sketch = MutableSketch(None)
        self._plan = plan
        constants = segments[0].constants
        self._indexer = BatchIndexer(plan, {name: constants[name] for name in layout.partition_by})
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
        self._copy(progress)
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

    def _copy(self, progress: Progress | None) -> None:
        """Copy all batches in order of time, and merge the sketches that can be; tokenize the others again."""
        mergeable = [_is_mergeable(segment, self._plan) for segment in self._segments]
        numbers = [np.zeros(segment.batch_count, np.int64) for segment in self._segments]
        left = [segment.batch_count for segment in self._segments]
        for place, batch in batches_by_time(self._segments):
            segment = self._segments[place]
            numbers[place][batch] = self._take(segment.read(batch, self._schema.names), indexed=mergeable[place])
            left[place] -= 1
            if progress is not None and not left[place]:
                progress(segment.entry.data_bytes)
        for segment, own_numbers, can_merge in zip(self._segments, numbers, mergeable, strict=True):
            self._raw_bytes += estimated_raw_bytes(segment)
            if can_merge:
                assert segment.sidecar is not None
                add_sealed(self._sketch, segment.sidecar.sketch, posting_map=own_numbers, is_verified=True)
                self._described.append(segment.sidecar.description)
            else:
                self.tokenized_again += 1

    def _take(self, records: pa.Table, *, indexed: bool) -> int:
        """Add the records of a batch to the one that waits, and return the number that it will have."""
        size = int(sum(int(record_bytes(part).sum()) for part in records.to_batches()))
        if self._waiting and self._waiting_bytes + size > BATCH_BYTES * 5 // 4:
            self._flush()
        if not indexed:
            for fingerprints in self._indexer.tokens(records):
                self._sketch.insert(fingerprints, self._batch_count)
        self._waiting.append(_padded(records, self._schema))
        self._waiting_bytes += size
        return self._batch_count

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
            sorted({name for one in described for name in one.typed} - self._dropped),
            all(one.complete for one in described),
            any_value=joined_any_value(described),
            all_in_content=are_all_in_content(described),
        )


def batches_by_time(segments: Group) -> Iterator[tuple[int, int]]:
    """The place of a segment and the number of a batch, for all batches of all segments in order of their times."""
    places: list[I64Array] = []
    batches: list[I64Array] = []
    firsts: list[I64Array] = []
    for place, segment in enumerate(segments):
        first, _ = segment.times()
        places.append(np.full(len(first), place))
        batches.append(np.arange(len(first)))
        firsts.append(np.where(first == ALWAYS[0], ALWAYS[1], first))  # what has no known time comes last
    if not segments:
        return
    order = np.argsort(np.concatenate(firsts), kind="stable")
    yield from zip(np.concatenate(places)[order].tolist(), np.concatenate(batches)[order].tolist(), strict=True)


def _is_mergeable(segment: SealedSegment, plan: IndexPlan) -> bool:
    """Whether the sketch can be merged; a damaged one, or one of another plan, is rebuilt from the data."""
    if segment.sidecar is None or segment.sidecar.sketch.signature_bits != FULL_SIGNATURE_BITS:
        return False
    fields = segment.sidecar.description.fields
    if joined_any_value([segment.sidecar.description]) == NOT_TOGETHER:
        return False
    if any(kind != planned_kind(name, plan) for name, kind in fields.items() if kind != UNINDEXED):
        return False
    try:
        segment.sidecar.sketch.verify()
    except FormatError as error:
        segment.distrust(error)
        return False
    return True


def _joint_schema(segments: Iterable[SealedSegment], without: Collection[str]) -> pa.Schema:
    """The columns of all segments, except some."""
    fields: dict[str, pa.Field] = {}
    for segment in segments:
        for one in storage_schema(segment.schema):
            if one.name not in without:
                fields.setdefault(one.name, one)
    return pa.schema(list(fields.values()))


def _padded(records: pa.Table, schema: pa.Schema) -> pa.Table:
    if records.schema == schema:
        return records
    columns: Iterator[pa.ChunkedArray] = (
        records.column(one.name).cast(one.type)
        if one.name in records.schema.names
        else pa.chunked_array([pa.nulls(records.num_rows, one.type)])
        for one in schema
    )
    return pa.Table.from_arrays(list(columns), schema=schema)
