"""Ingestion in this process: raw logs into a table, in one commit or several."""

import ctypes
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from coprlake.config import SEGMENT_BYTES
from coprlake.deprecation import Renamed
from coprlake.intake.reading import Intake, IntakeReport
from coprlake.segment.assigner import as_one_chunk
from coprlake.storage.writer import WriteReport
from coprlake.summary import Report
from coprlake.table import Table

_M_MMAP_THRESHOLD = -3  # of glibc's malloc.h

COALESCED_BYTES = 2 * 1024 * 1024
"""Small files are combined into batches of about this size: an append of one record costs as much as one of
thousands."""


@dataclass(repr=False)
class IngestReport(Report):
    """What was read, and what was written."""

    read: IntakeReport
    written: list[WriteReport] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def version(self) -> int | None:
        """The version of the table that has all records; None if there were no records."""
        return self.written[-1].version if self.written else None

    @property
    def row_count(self) -> int:
        """The number of records in the table now."""
        return sum(report.row_count for report in self.written)

    @property
    def raw_bytes(self) -> int:
        """Of the logs, decompressed."""
        return sum(report.raw_bytes for report in self.written)

    @property
    def data_bytes(self) -> int:
        """Of the data files."""
        return sum(report.data_bytes for report in self.written)

    @property
    def index_bytes(self) -> int:
        """Of the sidecars."""
        return sum(report.index_bytes for report in self.written)

    sketch_bytes = Renamed("index_bytes")

    def _facts(self) -> Mapping[str, Any]:
        names = ("version", "row_count", "raw_bytes", "data_bytes", "index_bytes", "seconds")
        return {name: getattr(self, name) for name in names} | {"read": self.read}


class Appendable(Protocol):
    """Accepts records."""

    def append(self, batch: pa.RecordBatch, *, raw_bytes: int | None = None) -> Any:
        """Add a batch, with the number of raw bytes that it came from."""


class Gatherer:
    """Combines small batches of the same schema before they are appended."""

    def __init__(self, writer: Appendable) -> None:
        self._writer = writer
        self._waiting: dict[pa.Schema, list[pa.RecordBatch]] = {}
        self._raw_bytes: dict[pa.Schema, int] = {}

    def add(self, batch: pa.RecordBatch, raw_bytes: int) -> None:
        """Add a batch; the amount that waits for more of its schema is bounded."""
        if raw_bytes >= COALESCED_BYTES and batch.schema not in self._waiting:
            self._writer.append(batch, raw_bytes=raw_bytes)
            return
        self._waiting.setdefault(batch.schema, []).append(batch)
        self._raw_bytes[batch.schema] = self._raw_bytes.get(batch.schema, 0) + raw_bytes
        if self._raw_bytes[batch.schema] >= COALESCED_BYTES:
            self._append(batch.schema)
        elif sum(self._raw_bytes.values()) >= 4 * COALESCED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Append everything that is waiting."""
        for schema in list(self._waiting):
            self._append(schema)

    def _append(self, schema: pa.Schema) -> None:
        records = as_one_chunk(self._waiting.pop(schema))
        raw_bytes = self._raw_bytes.pop(schema)
        for batch in records.to_batches():
            self._writer.append(batch, raw_bytes=raw_bytes)
            raw_bytes = 0


def give_memory_back() -> None:
    """Let the C library return arrays of a megabyte and more at once instead of keeping them for later.

    By default it raises that limit to 32 MB as such arrays come and go, as those of a growing sketch do: 10 % more
    memory.
    """
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 1 << 20)


def measured(intake: Intake) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The batches of an intake, each with the raw bytes that were read for it."""
    done = 0
    for batch in intake:
        yield batch, intake.report.raw_bytes - done
        done = intake.report.raw_bytes


def ingest(
    table: Table,
    intake: Intake,
    *,
    segment_bytes: int = SEGMENT_BYTES,
    commit_bytes: int | None = None,
    progress: Callable[[IntakeReport], None] | None = None,
) -> IngestReport:
    """Append all records of the intake to the table; all of them or none, unless `commit_bytes` is given.

    Args:
        table: the table to append to.
        intake: the records.
        segment_bytes: raw size at which a segment is sealed.
        commit_bytes: commit after each so many raw bytes, so that a long ingest keeps what it committed if interrupted.
        progress: called after each batch.
    """
    give_memory_back()
    started = time.perf_counter()
    report = IngestReport(intake.report)
    with table.writer(searchable=False, segment_bytes=segment_bytes) as writer:
        gatherer = Gatherer(writer)
        committed = 0
        for batch, raw_bytes in measured(intake):
            gatherer.add(batch, raw_bytes)
            done = intake.report.raw_bytes
            if commit_bytes is not None and done - committed >= commit_bytes:
                gatherer.flush()
                report.written.append(writer.commit())
                committed = done
            if progress is not None:
                progress(intake.report)
        gatherer.flush()
        last = writer.close()
        if last.segments:
            report.written.append(last)
    report.seconds = time.perf_counter() - started
    return report
