"""The mutable segment: takes records, finds them at once, and is sealed into a data file and its sidecar.

A batch is indexed and compressed when it is full, and never touched again, so sealing does not rebuild the sketch.
The few batches that are still open are in memory, and a search scans them. The assigner's slots and the sketch's limit
bound the memory, however long the segment grows.
"""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from coprlake.config import (
    BATCH_BYTES,
    DATA_LEVEL,
    MEMORY_LIMIT_BYTES,
    MERGEABLE_BYTES,
    POSTING_LIMIT,
    RULES,
    SLOT_COUNT,
    RuleSet,
)
from coprlake.deprecation import Renamed
from coprlake.errors import UsageError
from coprlake.files import Folder, storage_error
from coprlake.kernel import I64Array
from coprlake.records import TIMESTAMP
from coprlake.segment.assigner import BatchAssigner, record_bytes
from coprlake.segment.batch_indexing import BatchIndexer, signature_bits
from coprlake.segment.data_file import DataFileWriter, removals_noticed, written_bytes
from coprlake.segment.scratch import ScratchFile
from coprlake.segment.searchable import ALWAYS, time_range
from coprlake.segment.sidecar import IndexPlan, encode_sidecar, profile_of, sidecar_name
from coprlake.sketch.algebra import TokenProgram
from coprlake.sketch.sealing import encode
from coprlake.sketch.spilling import SketchWriter
from coprlake.summary import Report
from coprlake.tokens.profile import Profile
from coprlake.tokens.rules import rule_set


@dataclass(frozen=True)
class SegmentOptions:
    """How segments are written; the defaults are those of `coprlake.config`."""

    batch_bytes: int = BATCH_BYTES
    slot_count: int = SLOT_COUNT
    memory_limit_bytes: int = MEMORY_LIMIT_BYTES
    level: int = DATA_LEVEL
    gram_fields: frozenset[str] = frozenset()
    rules: RuleSet | str | None = None  # None: those of the table
    signature_bits: int | None = None  # None: whole fingerprints for a small segment, which can be merged
    searchable: bool = True  # False: records are found only after sealing, which saves a temporary file
    scratch_folder: str | None = None  # None: the system's temporary folder


@dataclass(repr=False)
class SegmentReport(Report):
    """What was sealed: the files, their sizes by part, and the seconds of each phase."""

    always_shown = ("row_count",)

    name: str
    row_count: int
    batch_count: int
    raw_bytes: int
    data_bytes: int
    first_time: int
    last_time: int
    index_bytes_by_part: dict[str, int] = field(default_factory=dict)
    seconds_by_phase: dict[str, float] = field(default_factory=dict)
    spill_count: int = 0

    sketch_bytes = Renamed("index_bytes")
    sketch_bytes_by_part = Renamed("index_bytes_by_part")

    @property
    def index_bytes(self) -> int:
        """The size of the sidecar."""
        return sum(self.index_bytes_by_part.values())


class MutableSegment:
    """One segment that is being written; several threads may append and search.

    Args:
        folder: the table's folder.
        name: the data file to write, relative to the folder.
        schema: the columns of every batch that is appended.
        options: see `SegmentOptions`.
        constants: the values of the partition columns, which all records share and which are not in the file.
    """

    def __init__(
        self,
        folder: Folder,
        name: str,
        schema: pa.Schema,
        options: SegmentOptions | None = None,
        constants: Mapping[str, pa.Scalar] | None = None,
    ) -> None:
        self.name = name
        self.schema = schema
        self.options = options or SegmentOptions()
        self.constants = dict(constants or {})
        self.raw_bytes = 0
        self.row_count = 0
        self._folder = folder
        self._rules = rule_set(self.options.rules or RULES)
        self._lock = threading.RLock()
        self._assigner = BatchAssigner(self.options.batch_bytes, self.options.slot_count)
        self._indexer = BatchIndexer(IndexPlan(self.options.gram_fields, self._rules), self.constants)
        self._sketch = SketchWriter(self.options.memory_limit_bytes, spill_folder=self._scratch_folder())
        self._scratch = ScratchFile(self._scratch_folder()) if self.options.searchable else None
        self._times: list[tuple[int, int]] = []
        self._seconds = {"assign": 0.0, "index": 0.0, "compress": 0.0}
        self._writer: DataFileWriter | None = None
        self._is_open = True

    @property
    def batch_count(self) -> int:
        """The number of closed batches."""
        return len(self._times)

    @property
    def memory_bytes(self) -> int:
        """The memory that the sketch and the open batches take."""
        return self._sketch.memory_bytes + self._assigner.open_bytes

    @property
    def is_full(self) -> bool:
        """Whether no more records should be added: postings have 16 bits."""
        return self.batch_count + 2 * self.options.slot_count >= POSTING_LIMIT

    def append(self, batch: pa.RecordBatch, raw_bytes: int | None = None) -> None:
        """Take records; the next search finds them.

        Args:
            batch: records of the segment's schema.
            raw_bytes: their size in their source; by default the size of their lines.
        """
        with self._lock:
            if not self._is_open:
                raise UsageError(f"{self.name}: the segment is sealed; start a new one")
            if batch.schema != self.schema:
                raise UsageError(f"{self.name}: the records have different columns than the segment; start a new one")
            self.raw_bytes += int(record_bytes(batch).sum()) if raw_bytes is None else raw_bytes
            self.row_count += batch.num_rows
            started = time.perf_counter()
            full = list(self._assigner.add(batch))
            self._seconds["assign"] += time.perf_counter() - started
            for closed in full:
                self._close_batch(closed)

    def view(self) -> "MutableView":
        """A view for searching all records added so far."""
        with self._lock:
            if self._scratch is None:
                raise UsageError(f"{self.name}: the segment was started with searchable=False")
            return MutableView(self, self._scratch, list(self._times), self._assigner.open_batches())

    def candidates(self, program: TokenProgram, batch_count: int) -> I64Array:
        """The closed batches below `batch_count` that the sketch does not rule out."""
        with self._lock:
            if not self._is_open:
                return np.arange(batch_count)
            found = self._sketch.run(program).astype(np.int64)
            return found[found < batch_count]

    def profile(self) -> Profile:
        """The fields in the sketch so far; open batches may have fields that are not in it yet."""
        with self._lock:
            indexer = self._indexer
            return profile_of(indexer.fields, indexer.typed, complete=False, any_value=indexer.any_value)

    def seal(self) -> SegmentReport:
        """Close all batches, and write the data file and the sidecar, both complete and synced.

        Raises:
            ConflictError: one of them was removed in the meantime.
        """
        with self._lock:
            if not self._is_open:
                raise UsageError(f"{self.name}: the segment is sealed already")
            self._is_open = False  # even if this fails: what was flushed is nowhere else
            try:
                for batch in self._assigner.flush():
                    self._close_batch(batch)
                with removals_noticed(self._folder, self.name):
                    return self._write_files()
            except BaseException:
                self._remove_files()
                raise
            finally:
                self._sketch.close()
                pa.default_memory_pool().release_unused()

    def abandon(self) -> None:
        """Remove all files written; the records are lost."""
        with self._lock:
            self._is_open = False
            self._sketch.close()
            self._remove_files()

    def _write_files(self) -> SegmentReport:
        started = time.perf_counter()
        data_bytes = self._finish_data()
        finished = time.perf_counter()
        small = self.raw_bytes < MERGEABLE_BYTES
        bits = self.options.signature_bits or signature_bits(self._rules, mergeable=small)
        pieces, sketch_report = encode(self._sketch.merged(), signature_bits=bits, rules=self._rules)
        description = self._indexer.describe(self.name, data_bytes, self.row_count, self.batch_count, self.raw_bytes)
        sidecar = encode_sidecar(pieces, description)
        self._folder.write(sidecar_name(self.name), sidecar)
        parts = dict(sketch_report.bytes_by_part)
        parts["description"] = sum(map(len, sidecar)) - sum(map(len, pieces))
        seconds = self._seconds | {"finish data": finished - started, "seal sketch": time.perf_counter() - finished}
        first = min((first for first, _ in self._times), default=ALWAYS[0])
        last = max((last for _, last in self._times), default=ALWAYS[1])
        return SegmentReport(
            self.name, self.row_count, self.batch_count, self.raw_bytes, data_bytes, first, last, parts, seconds,
            self._sketch.spill_count,
        )  # fmt: skip

    def _finish_data(self) -> int:
        self._open_writer().close()
        self._folder.sync(self.name)
        return written_bytes(self._folder, self.name)

    def _close_batch(self, batch: pa.Table) -> None:
        """Index a full batch, compress it, and keep it where a search can read it."""
        posting = self.batch_count
        started = time.perf_counter()
        for fingerprints in self._indexer.tokens(batch):
            self._sketch.insert(fingerprints, posting)
        indexed = time.perf_counter()
        self._open_writer().write(batch)
        if self._scratch is not None:
            try:
                self._scratch.append(batch)
            except OSError as error:
                raise storage_error("the temporary file of the segment", error) from error
        self._times.append(time_range(batch, TIMESTAMP))
        self._seconds["index"] += indexed - started
        self._seconds["compress"] += time.perf_counter() - indexed

    def _open_writer(self) -> DataFileWriter:
        if self._writer is None:
            self._writer = DataFileWriter(self._folder, self.name, self.schema, self.options.level)
        return self._writer

    def _scratch_folder(self) -> str | None:
        if self.options.scratch_folder is not None:
            try:
                os.makedirs(self.options.scratch_folder, exist_ok=True)  # noqa: PTH103
            except OSError as error:
                raise storage_error(self.options.scratch_folder, error) from error
        return self.options.scratch_folder

    def _remove_files(self) -> None:
        if self._writer is not None:
            self._writer.abandon()
        self._folder.remove(self.name)
        self._folder.remove(sidecar_name(self.name))


class MutableView:
    """The records of a mutable segment at one moment; the segment may grow or be sealed in the meantime."""

    def __init__(
        self,
        segment: MutableSegment,
        scratch: ScratchFile,
        times: list[tuple[int, int]],
        open_pieces: list[pa.RecordBatch],
    ) -> None:
        self.name = segment.name
        self.schema = segment.schema
        for column, value in segment.constants.items():
            self.schema = self.schema.append(pa.field(column, value.type))
        self.profile = segment.profile()
        self._segment = segment
        self._scratch = scratch
        self._closed_count = len(times)
        self._open = open_pieces
        self._times = times + [time_range(piece, TIMESTAMP) for piece in open_pieces]

    @property
    def batch_count(self) -> int:
        """The number of closed batches and pieces of open ones."""
        return len(self._times)

    def candidates(self, program: TokenProgram) -> I64Array:
        """The closed batches that the sketch does not rule out, and all open ones."""
        closed = self._segment.candidates(program, self._closed_count)
        return np.concatenate([closed, np.arange(self._closed_count, self.batch_count)])

    def times(self, column: str = TIMESTAMP) -> tuple[I64Array, I64Array]:
        """The first and last time of each batch; known only for the timestamp column."""
        if column != TIMESTAMP:
            return np.full(self.batch_count, ALWAYS[0]), np.full(self.batch_count, ALWAYS[1])
        both = np.array(self._times, np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def read(self, batch: int, columns: Sequence[str]) -> pa.Table:
        """The given columns of a batch, as far as it has them."""
        if batch < self._closed_count:
            records = self._scratch.read(batch)
        else:
            records = pa.Table.from_batches([self._open[batch - self._closed_count]])
        for name, value in self._segment.constants.items():
            records = records.append_column(name, pa.repeat(value, records.num_rows))
        return records.select([name for name in columns if name in records.schema.names])

    def stored_bytes(self, batch: int, columns: Sequence[str]) -> int:
        """The size of the batch in the temporary file, whatever the columns; 0 for a batch in memory."""
        return self._scratch.stored_bytes(batch) if batch < self._closed_count else 0
