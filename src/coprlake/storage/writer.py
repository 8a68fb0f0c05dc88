"""Appends records: segments are written as records arrive; a commit makes all of them part of the table."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from coprlake.config import SEGMENT_BYTES
from coprlake.deprecation import Renamed
from coprlake.errors import UsageError
from coprlake.files import Folder
from coprlake.segment.mutable import SegmentOptions, SegmentReport
from coprlake.segment.searchable import Searchable
from coprlake.storage.conforming import arrow_batches
from coprlake.storage.log.delta_log import DeltaLog, Transaction
from coprlake.storage.segmenter import Segmenter
from coprlake.summary import Report


@dataclass(repr=False)
class WriteReport(Report):
    """What a writer committed."""

    always_shown = ("version", "row_count")

    version: int | None = None
    row_count: int = 0
    raw_bytes: int = 0
    data_bytes: int = 0
    index_bytes: int = 0
    segments: list[SegmentReport] = field(default_factory=list)

    sketch_bytes = Renamed("index_bytes")

    def add(self, segment: SegmentReport) -> None:
        """Add the counts of a segment."""
        self.segments.append(segment)
        self.row_count += segment.row_count
        self.raw_bytes += segment.raw_bytes
        self.data_bytes += segment.data_bytes
        self.index_bytes += segment.index_bytes

    @property
    def seconds_by_phase(self) -> dict[str, float]:
        """The seconds of each phase, summed over all segments."""
        total: dict[str, float] = {}
        for segment in self.segments:
            for phase, seconds in segment.seconds_by_phase.items():
                total[phase] = total.get(phase, 0.0) + seconds
        return total


class TableWriter:
    """Takes records and commits them; searches of the same table object find them even before the commit.

    It is a context manager: leaving it commits; leaving it with an exception abandons what was not committed.

    Args:
        log: the table's log.
        options: how segments are written.
        segment_bytes: the raw size at which a segment is sealed.
        guard: held during a commit, so that a search that holds it sees each record exactly once.
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
        self._segmenter = Segmenter(log.shape, options, segment_bytes)
        self._lock = threading.RLock()
        self._turn = threading.Lock()  # held while waiting for `_lock`, so that an appender cannot overtake a search
        self._guard = guard or threading.RLock()
        self._is_closed = False

    @property
    def uncommitted_rows(self) -> int:
        """The number of records that a commit would add."""
        with self._lock:
            return self._segmenter.row_count

    def append(self, data: Any, *, raw_bytes: int | None = None) -> int:
        """Take records: Arrow data, a data frame, or an iterable of dicts or lines; returns how many.

        Args:
            data: the records; see `coprlake.storage.conforming`.
            raw_bytes: their size in their source; by default the size of their lines.
        """
        count = 0
        for batch in arrow_batches(data):
            with self._in_turn():
                self._check_open()
                self._segmenter.append(batch, raw_bytes if count == 0 or raw_bytes is None else 0)
            count += batch.num_rows
        return count

    def searchables(self) -> list[Searchable]:
        """All segments that are not committed, in their current state."""
        with self._in_turn():
            return self._segmenter.searchables()

    def commit(self, *, once: Transaction | None = None, **note: Any) -> WriteReport:
        """Seal all open segments and make them part of the table, in one step; see `DeltaLog.commit` for `once`."""
        with self._lock:
            self._check_open()
            self._segmenter.seal()
        report = WriteReport()
        with self._guard, self._lock:  # always in this order, as a search takes them
            sealed = self._segmenter.sealed()
            if not sealed.files:
                return report
            if sealed.new_fields:
                self._log.add_columns(list(sealed.new_fields.values()))
            report.version = self._log.commit(sealed.files, note={"operation": "append"} | note, once=once)
            self._segmenter.hand_over()
        for file in sealed.files:
            report.add(file.report)
        return report

    def abandon(self) -> None:
        """Drop what was not committed, and remove its files."""
        with self._lock:
            self._log.discard(self._segmenter.abandon())
            self._is_closed = True

    def close(self) -> WriteReport:
        """Commit, and take no more records."""
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

    def _check_open(self) -> None:
        if self._is_closed:
            raise UsageError("the writer is closed; get a new one from the table")
        self._segmenter.check()


def scratch_options(options: SegmentOptions, folder: Folder) -> SegmentOptions:
    """The options with temporary files in the folder of a local table, where there is room for them."""
    if options.scratch_folder is not None or not folder.is_local:
        return options
    return replace(options, scratch_folder=folder.path("_coprlake/scratch"))
