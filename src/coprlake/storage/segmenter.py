"""Writes records to segments: each goes to an open segment of its partition, which is sealed when large enough."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from coprlake.config import OPEN_SEGMENTS, RULES, SEGMENT_BYTES, WRITER_MEMORY_BYTES
from coprlake.errors import UsageError
from coprlake.files import Folder
from coprlake.records import DAY
from coprlake.segment.mutable import MutableSegment, SegmentOptions
from coprlake.segment.sealed import SealedSegment, SegmentEntry
from coprlake.segment.searchable import Searchable
from coprlake.segment.sidecar import IndexPlan, remove_segment
from coprlake.storage.conforming import conform, tidy
from coprlake.storage.log.actions import NewFile
from coprlake.storage.log.protocol import check_required, check_required_inside
from coprlake.storage.merging import Layout, groups_to_join, merge, opened_merged
from coprlake.storage.partitioning import Partition, constants, fresh_name, split, with_day
from coprlake.tokens.rules import rule_set


@dataclass(frozen=True)
class TableShape:
    """What a writer needs to know about a table; it can be sent to another machine.

    Attributes:
        uri: the folder.
        schema: the columns.
        partition_by: the columns whose values are in the log and not in the files.
    """

    uri: str
    schema: pa.Schema
    partition_by: tuple[str, ...] = ()


@dataclass
class Sealed:
    """Segments that are written and synced but not yet in any log, and the columns that they add."""

    files: list[NewFile] = field(default_factory=list)
    new_fields: dict[str, pa.Field] = field(default_factory=dict)


class Segmenter:
    """Takes records and seals segments, without access to the table's log. For one thread at a time.

    Args:
        shape: the shape of the table.
        options: how segments are written.
        segment_bytes: the raw size at which a segment is sealed.
    """

    def __init__(
        self, shape: TableShape, options: SegmentOptions | None = None, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self._folder = Folder.of(shape.uri)
        self._options = options or SegmentOptions()
        self._segment_bytes = segment_bytes
        self._partition_by = shape.partition_by
        self._schema = shape.schema
        self._open: dict[str, MutableSegment] = {}  # by name, the most recently used one last
        self._partitions: dict[str, Partition] = {}
        self._failure: BaseException | None = None
        self._sealed: list[tuple[NewFile, SealedSegment]] = []
        self._new_fields: dict[str, pa.Field] = {}

    @property
    def row_count(self) -> int:
        """The number of records taken but not handed over."""
        return sum(s.row_count for s in self._open.values()) + sum(f.report.row_count for f, _ in self._sealed)

    def append(self, batch: pa.RecordBatch, raw_bytes: int | None = None, *, as_stored: bool = False) -> None:
        """Take records.

        Args:
            batch: the records.
            raw_bytes: their size in their source; by default the size of their lines.
            as_stored: they come from the table and stay as they are, also without a time.
        """
        self.check()
        if batch.num_rows == 0:
            return
        records = batch if as_stored else tidy(batch)
        if DAY in self._partition_by:
            records = with_day(records)
        check_required_inside(records, self._schema)
        records, missing = conform(records, self._schema)
        check_required(records, self._schema)
        for new in missing:
            self._new_fields[new.name] = new
            self._schema = self._schema.append(new)
        try:
            for partition, part in split(records, self._partition_by):
                share = None if raw_bytes is None else raw_bytes * part.num_rows // records.num_rows
                self._append_part(partition, part, share)
        except BaseException as error:  # some records may be in: neither they nor a retry may be committed
            self._failure = error
            raise

    def searchables(self) -> list[Searchable]:
        """All segments that were not handed over, in their current state."""
        return [segment.view() for segment in self._open.values()] + [sealed for _, sealed in self._sealed]

    def seal(self) -> Sealed:
        """Seal all open segments; sealed segments stay here until they are handed over."""
        self.check()
        try:
            for name in list(self._open):
                self._seal(name)
            self._join_small()
        except BaseException as error:
            self._failure = error
            raise
        return self.sealed()

    def sealed(self) -> Sealed:
        """All segments that are sealed but not handed over."""
        return Sealed([file for file, _ in self._sealed], dict(self._new_fields))

    def hand_over(self) -> None:
        """Drop the sealed segments: the caller is responsible for them from now on."""
        self._sealed, self._new_fields = [], {}

    def abandon(self) -> list[str]:
        """Drop all segments; returns the names of sealed data files, which the caller has to remove."""
        for segment in self._open.values():
            segment.abandon()
        names = [sealed.name for _, sealed in self._sealed]
        for _, sealed in self._sealed:
            sealed.close()
        self._open, self._sealed = {}, []
        return names

    def remove(self) -> None:
        """Drop all segments and remove all files; only for segments that cannot be in any log."""
        for name in self.abandon():
            remove_segment(self._folder, name)

    def check(self) -> None:
        """Raise if an append or a seal has failed."""
        if self._failure is not None:
            raise UsageError(f"an append failed ({self._failure}); abandon the writer and start again")

    def _append_part(self, partition: Partition, part: pa.RecordBatch, raw_bytes: int | None) -> None:
        own = [self._open[name] for name in self._open if self._partitions[name] == partition]
        segment = best_fit(part.schema.names, own)
        if segment is None:
            segment = self._begin(partition, part.schema, own)
        self._open[segment.name] = self._open.pop(segment.name)
        segment.append(_padded(part, segment.schema), raw_bytes)
        if segment.raw_bytes >= self._segment_bytes or segment.is_full:
            self._seal(segment.name)
        elif len(self._open) > 1:
            self._make_room(0)

    def _begin(self, partition: Partition, schema: pa.Schema, own: list[MutableSegment]) -> MutableSegment:
        """Start a segment with the columns of the records, in the order of the table's.

        When records gain a column, the new segment replaces the most similar open one: that is sealed, and the new one
        has the columns of both.
        """
        fields = {field.name: field for field in schema}
        like = most_alike(schema.names, own)
        if like is not None:
            fields |= {field.name: field for field in like.schema if field.name not in fields}
            self._seal(like.name)
        self._make_room(1)
        name = fresh_name(self._partition_by, partition)
        values = constants(dict(zip(self._partition_by, partition, strict=True)), self._schema)
        columns = pa.schema([fields[column] for column in self._schema.names if column in fields])
        segment = MutableSegment(self._folder, name, columns, self._options, values)
        self._open[name], self._partitions[name] = segment, partition
        return segment

    def _make_room(self, count: int) -> None:
        """Seal the least recently used segments, then the largest, until there is room for `count` more."""
        while len(self._open) + count > OPEN_SEGMENTS:
            self._seal(next(iter(self._open)))
        while len(self._open) > 1 and sum(s.memory_bytes for s in self._open.values()) > WRITER_MEMORY_BYTES:
            self._seal(max(self._open, key=lambda name: self._open[name].memory_bytes))

    def _join_small(self) -> None:
        """Make one segment of small ones that differ in a few columns: records may gain columns again and again."""
        by_partition: dict[Partition, list[SealedSegment]] = {}
        for file, sealed in self._sealed:
            if file.report.raw_bytes < self._segment_bytes // 2:
                by_partition.setdefault(tuple(file.partition.values()), []).append(sealed)
        plan = IndexPlan(self._options.gram_fields, rule_set(self._options.rules or RULES))
        for partition, segments in by_partition.items():
            layout = Layout(self._partition_by, partition)
            for group in groups_to_join(segments, self._segment_bytes):
                merged = merge(self._folder, layout, group, self._options.level, plan, full=False)
                file = NewFile(merged.sealed, dict(zip(self._partition_by, partition, strict=True)))
                names = {segment.name for segment in group}
                joined = (file, opened_merged(self._folder, group, merged))
                self._sealed = [pair for pair in self._sealed if pair[1].name not in names] + [joined]
                for segment in group:
                    segment.close()
                    remove_segment(self._folder, segment.name)

    def _seal(self, name: str) -> None:
        report = self._open[name].seal()
        own = dict(zip(self._partition_by, self._partitions.pop(name), strict=True))
        entry = SegmentEntry(report.name, report.data_bytes, report.row_count, report.first_time, report.last_time, own)
        sealed = SealedSegment(self._folder, entry, constants(own, self._schema))
        self._sealed.append((NewFile(report, own), sealed))
        del self._open[name]


def best_fit(columns: Sequence[str], segments: Sequence[MutableSegment]) -> MutableSegment | None:
    """The segment with all of the columns and the fewest others; None if no segment fits closely enough.

    Logs of different shapes go to different segments: a missing column takes space in every batch.
    """
    most = len(columns) + max(4, len(columns) // 2)
    fitting = [s for s in segments if set(columns) <= set(s.schema.names) and len(s.schema.names) <= most]
    return min(fitting, key=lambda segment: len(segment.schema.names), default=None)


def most_alike(columns: Sequence[str], segments: Sequence[MutableSegment]) -> MutableSegment | None:
    """The segment with the most similar columns; None unless it shares more than two thirds of all columns of both."""

    def likeness(segment: MutableSegment) -> float:
        return len(set(columns) & set(segment.schema.names)) / len(set(columns) | set(segment.schema.names))

    nearest = max(segments, key=likeness, default=None)
    return nearest if nearest is not None and likeness(nearest) > 2 / 3 else None


def _padded(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with all columns of the segment, in its order and with its types."""
    if batch.schema == schema:
        return batch
    columns = []
    for wanted in schema:
        if wanted.name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, wanted.type))
            continue
        column = batch.column(wanted.name)
        columns.append(column if column.type == wanted.type else column.cast(wanted.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
