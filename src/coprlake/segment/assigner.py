"""The batch assigner (paper 3): which open batch a record joins.

Records of one source go to one open batch, because neighbouring records of a source compress well and share tokens.
Sources share a fixed number of slots, so open batches stay bounded however many sources there are. A full batch leaves
its slot for good, and the slot starts a new one, so a batch never changes after it was indexed.
"""

import zlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.config import BATCH_BYTES, SLOT_COUNT
from coprlake.kernel import I64Array
from coprlake.records import CONTENT, SOURCE


def record_bytes(batch: pa.RecordBatch) -> I64Array:
    """The raw size of each record: its line and a line end; for records without lines, their strings."""
    if CONTENT in batch.schema.names and _has_lengths(batch.schema.field(CONTENT).type):
        return np.asarray(_lengths(batch.column(CONTENT))) + 1
    sizes = np.ones(batch.num_rows, np.int64)
    for column in batch.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            sizes += np.asarray(_lengths(column))
    return sizes


def _has_lengths(kind: pa.DataType) -> bool:
    """Whether a content column has lines: another writer's table can have any type there."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _lengths(strings: pa.Array) -> pa.Array:
    if isinstance(strings, pa.DictionaryArray):
        strings = strings.dictionary_decode()
    return pc.binary_length(strings).fill_null(0).cast(pa.int64())


class BatchAssigner:
    """Splits a stream of records into batches of about `batch_bytes`."""

    def __init__(self, batch_bytes: int = BATCH_BYTES, slot_count: int = SLOT_COUNT) -> None:
        self._batch_bytes = batch_bytes
        self._slot_count = slot_count
        self._pieces: list[list[pa.RecordBatch]] = [[] for _ in range(slot_count)]
        self._sizes = [0] * slot_count

    @property
    def open_bytes(self) -> int:
        """The raw bytes in open batches."""
        return sum(self._sizes)

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        """Take records of one schema; yields the batches that they fill."""
        for slot, part in self._parts_by_slot(batch):
            yield from self._fill(slot, part)

    def open_batches(self) -> list[pa.RecordBatch]:
        """The records that are not in a full batch yet."""
        return [piece for pieces in self._pieces for piece in pieces]

    def flush(self) -> Iterator[pa.Table]:
        """Close all open batches; what is left in several slots may share a batch."""
        rest: list[pa.RecordBatch] = []
        size = 0
        for slot in range(self._slot_count):
            if rest and size + self._sizes[slot] > self._batch_bytes:
                yield as_one_chunk(rest)
                rest, size = [], 0
            rest += self._pieces[slot]
            size += self._sizes[slot]
            self._pieces[slot], self._sizes[slot] = [], 0
        if rest:
            yield as_one_chunk(rest)

    def _parts_by_slot(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The records of each slot, in order."""
        if batch.num_rows == 0:
            return
        slots = self._slots(batch)
        if isinstance(slots, int):
            yield slots, batch
            return
        order = np.argsort(slots, kind="stable")
        ordered = batch.take(pa.array(order))
        found, starts = np.unique(slots[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        for slot, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True):
            yield slot, ordered.slice(start, end - start)

    def _slots(self, batch: pa.RecordBatch) -> int | I64Array:
        """The slot of each record, or one number if all share a slot."""
        if SOURCE not in batch.schema.names:
            return 0
        sources = batch.column(SOURCE)
        if not isinstance(sources, pa.DictionaryArray):
            sources = pc.dictionary_encode(sources)
        names = sources.dictionary
        by_name = [self._slot_of(name) for name in names.to_pylist()] + [self._slot_of(None)]
        if len(set(by_name)) == 1 or (len(names) == 1 and sources.null_count == 0):
            return by_name[0]
        indices = np.asarray(sources.indices.cast(pa.int64()).fill_null(len(names)))
        slots = np.array(by_name, np.int64)[indices]
        return int(slots[0]) if (slots == slots[0]).all() else slots

    def _slot_of(self, source: str | None) -> int:
        """The slot by hash: no need to remember sources, and a source that returns finds its batch."""
        return zlib.crc32((source or "").encode("utf-8", "surrogatepass")) % self._slot_count

    def _fill(self, slot: int, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        ends = np.cumsum(record_bytes(batch))
        first, done = 0, 0
        while first < batch.num_rows:
            room = self._batch_bytes - self._sizes[slot]
            last = min(int(np.searchsorted(ends, done + room)) + 1, batch.num_rows)
            piece = batch.slice(first, last - first)
            self._sizes[slot] += int(ends[last - 1]) - done
            first, done = last, int(ends[last - 1])
            is_full = self._sizes[slot] >= self._batch_bytes
            self._pieces[slot].append(piece if is_full else _own_copy(piece))
            if is_full:
                full = self._pieces[slot]
                self._pieces[slot], self._sizes[slot] = [], 0
                yield as_one_chunk(full)


def _own_copy(piece: pa.RecordBatch) -> pa.RecordBatch:
    """A copy if the slice is small: a slice keeps its whole parent in memory, and this one may wait for long."""
    if piece.get_total_buffer_size() < 2 * piece.nbytes:
        return piece
    return piece.take(pa.array(np.arange(piece.num_rows)))


def as_one_chunk(pieces: list[pa.RecordBatch]) -> pa.Table:
    """The records of several pieces, each column in one array."""
    if len(pieces) == 1:
        return pa.Table.from_batches(pieces)
    return pa.Table.from_batches(pieces).unify_dictionaries().combine_chunks()
