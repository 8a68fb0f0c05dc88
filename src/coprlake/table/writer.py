"""Appending: records go to the open segment of their partition; a commit makes all of them part of the table."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from coprlake.config import OPEN_SEGMENTS, SEGMENT_BYTES, WRITER_MEMORY_BYTES
from coprlake.errors import UsageError
from coprlake.records import DAY
from coprlake.segment.mutable import MutableSegment, SegmentOptions, SegmentReport
from coprlake.segment.sealed import SealedSegment, SegmentEntry
from coprlake.segment.searchable import Searchable
from coprlake.table.actions import NewFile
from coprlake.table.conforming import arrow_batches, conform, tidy
from coprlake.table.delta_log import DeltaLog
from coprlake.table.partitioning import Partition, constants, fresh_name, split, with_day


@dataclass
class WriteReport:
    """What a writer committed."""

    version: int | None = None
    row_count: int = 0
    raw_bytes: int = 0
    data_bytes: int = 0
    sketch_bytes: int = 0
    segments: list[SegmentReport] = field(default_factory=list)

    def add(self, segment: SegmentReport) -> None:
        """Count a segment."""
        self.segments.append(segment)
        self.row_count += segment.row_count
        self.raw_bytes += segment.raw_bytes
        self.data_bytes += segment.data_bytes
        self.sketch_bytes += segment.sketch_bytes

    @property
    def seconds_by_phase(self) -> dict[str, float]:
        """The sum over all segments."""
        total: dict[str, float] = {}
        for segment in self.segments:
            for phase, seconds in segment.seconds_by_phase.items():
                total[phase] = total.get(phase, 0.0) + seconds
        return total


class TableWriter:
    """Takes records until it commits; what it has is found by searches of the same table object before that.

    It is a context manager: leaving it commits, leaving it by an exception abandons what was not committed.

    Args:
        log: the table's log.
        options: how segments are written.
        segment_bytes: a segment with so much raw text is sealed.
        guard: held while a commit is made, so that whoever holds it sees a record before or after it, once.
    """

    def __init__(
        self,
        log: DeltaLog,
        options: SegmentOptions | None = None,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        guard: "threading.RLock | None" = None,
    ) -> None:
        self._log = log
        self._options = options or SegmentOptions()
        self._segment_bytes = segment_bytes
        self._partition_by = log.partition_by
        self._schema = log.schema
        self._lock = threading.RLock()
        self._turn = threading.Lock()  # whoever waits for the other lock holds it: an appender cannot overtake a search
        self._guard = guard or threading.RLock()
        self._open: dict[str, MutableSegment] = {}  # by name; the one that was used last is the last
        self._partitions: dict[str, Partition] = {}
        self._failure: BaseException | None = None
        self._sealed: list[tuple[NewFile, SealedSegment]] = []
        self._new_fields: dict[str, pa.Field] = {}
        self._is_closed = False

    @property
    def uncommitted_rows(self) -> int:
        """Records that a commit would add."""
        with self._lock:
            return sum(s.row_count for s in self._open.values()) + sum(f.report.row_count for f, _ in self._sealed)

    def append(self, data: Any, *, raw_bytes: int | None = None) -> int:
        """Take records: Arrow data, a data frame, or an iterable of dicts or lines; returns how many.

        Args:
            data: the records; see `coprlake.table.conforming`.
            raw_bytes: what they took where they came from; by default the size of their lines.
        """
        count = 0
        for batch in arrow_batches(data):
            with self._in_turn():
                self._check_open()
                self._append_batch(batch, raw_bytes if count == 0 or raw_bytes is None else 0)
            count += batch.num_rows
        return count

    def searchables(self) -> list[Searchable]:
        """All that is not committed, as it is now."""
        with self._in_turn():
            return [segment.view() for segment in self._open.values()] + [sealed for _, sealed in self._sealed]

    def commit(self, **note: Any) -> WriteReport:
        """Seal what is open and make all of it part of the table, in one step."""
        with self._lock:
            self._check_open()
            try:
                for name in list(self._open):
                    self._seal(name)
            except BaseException as error:
                self._failure = error
                raise
        report = WriteReport()
        with self._guard, self._lock:  # always in this order: a search takes them so
            if not self._sealed:
                return report
            if self._new_fields:
                self._log.add_columns(list(self._new_fields.values()))
                self._new_fields = {}
            files = [file for file, _ in self._sealed]
            report.version = self._log.commit(files, note={"operation": "append"} | note)
            self._sealed = []
        for file in files:
            report.add(file.report)
        return report

    def abandon(self) -> None:
        """Forget what was not committed, and remove its files."""
        with self._lock:
            for segment in self._open.values():
                segment.abandon()
            for _, sealed in self._sealed:
                sealed.close()
            self._log.discard([sealed.name for _, sealed in self._sealed])
            self._open, self._sealed = {}, []
            self._is_closed = True

    def close(self) -> WriteReport:
        """Commit, and take no more."""
        report = WriteReport() if self._is_closed else self.commit()
        self._is_closed = True
        return report

    def __enter__(self) -> "TableWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abandon()
            return
        try:
            self.close()
        except BaseException:
            self.abandon()
            raise

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        with self._turn:
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    def _append_batch(self, batch: pa.RecordBatch, raw_bytes: int | None) -> None:
        if batch.num_rows == 0:
            return
        records = tidy(batch)
        if DAY in self._partition_by:
            records = with_day(records)
        records, missing = conform(records, self._schema)
        for new in missing:
            self._new_fields[new.name] = new
            self._schema = self._schema.append(new)
        try:
            for partition, part in split(records, self._partition_by):
                share = None if raw_bytes is None else raw_bytes * part.num_rows // records.num_rows
                self._append_part(partition, part, share)
        except (
            BaseException
        ) as error:  # a part of the records may be in: neither they nor a repetition may be committed
            self._failure = error
            raise

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
        """A new segment with the columns of the records, in the order of the table's.

        When records have grown by a column, the segment of their like takes their place: it is sealed, and the new one
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
        segment = MutableSegment(self._log.folder, name, columns, self._options, values)
        self._open[name], self._partitions[name] = segment, partition
        return segment

    def _make_room(self, count: int) -> None:
        """Seal what waited longest, or what is largest, to have room for so many more segments."""
        while len(self._open) + count > OPEN_SEGMENTS:
            self._seal(next(iter(self._open)))
        while len(self._open) > 1 and sum(s.memory_bytes for s in self._open.values()) > WRITER_MEMORY_BYTES:
            self._seal(max(self._open, key=lambda name: self._open[name].memory_bytes))

    def _seal(self, name: str) -> None:
        report = self._open[name].seal()
        own = dict(zip(self._partition_by, self._partitions.pop(name), strict=True))
        entry = SegmentEntry(report.name, report.data_bytes, report.row_count, report.first_time, report.last_time, own)
        sealed = SealedSegment(self._log.folder, entry, constants(own, self._schema))
        self._sealed.append((NewFile(report, own), sealed))
        del self._open[name]

    def _check_open(self) -> None:
        if self._is_closed:
            raise UsageError("the writer is closed; ask the table for a new one")
        if self._failure is not None:
            raise UsageError(f"an append failed ({self._failure}); abandon the writer and begin anew")


def best_fit(columns: Sequence[str], segments: Sequence[MutableSegment]) -> MutableSegment | None:
    """The segment that has all of the columns and the fewest others; None if each has too many others.

    Logs of different shapes go to different segments: a column that is missing costs in every batch.
    """
    most = len(columns) + max(4, len(columns) // 2)
    fitting = [s for s in segments if set(columns) <= set(s.schema.names) and len(s.schema.names) <= most]
    return min(fitting, key=lambda segment: len(segment.schema.names), default=None)


def most_alike(columns: Sequence[str], segments: Sequence[MutableSegment]) -> MutableSegment | None:
    """The segment that shares most of its columns; None if that is not even two thirds of both."""

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


def scratch_options(options: SegmentOptions, log: DeltaLog) -> SegmentOptions:
    """The options with temporary files beside the table, where there is room for them, if that is on this machine."""
    if options.scratch_folder is not None or not log.folder.is_local:
        return options
    return replace(options, scratch_folder=log.folder.path("_coprlake/scratch"))
