"""Batches of lines in zstd, as all stores of the paper but LogGrep have them (5): lines of a source go together.

A batch is the offsets of its lines and their bytes, compressed together, so that what is decompressed is an Arrow array
already. The post-filter is the same for all stores: the exact matcher of coprlake.
"""

import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.stores.base import Answer
from coprlake.predicate.deciding.matching import Matcher
from coprlake.predicate.predicates import Contains, Predicate, Term
from coprlake.segment.assigner import BatchAssigner
from coprlake.text.arrow_strings import bytes_of

LEVEL = 3
_SCHEMA = pa.schema([("content", pa.string())])


class BatchWriter:
    """Writes batches as they become full."""

    def __init__(self, path: Path, batch_bytes: int) -> None:
        self._assigner = BatchAssigner(batch_bytes)
        self._codec = pa.Codec("zstd", compression_level=LEVEL)
        self._path = path
        self._file = path.open("wb")
        self._ends: list[int] = [0]
        self._raw: list[int] = []
        self._lines: list[int] = []

    @property
    def batch_count(self) -> int:
        """Closed batches."""
        return len(self._lines)

    def add(self, content: pa.Array, source: pa.Array) -> Iterator[tuple[int, pa.Array]]:
        """Take lines; yields the number and the lines of each batch that became full."""
        batch = pa.record_batch([content, source], names=["content", "source"])
        for table in self._assigner.add(batch):
            yield self._write(table.column("content").combine_chunks())

    def rest(self) -> Iterator[tuple[int, pa.Array]]:
        """Close the open batches; yields the number and the lines of each."""
        for table in self._assigner.flush():
            yield self._write(table.column("content").combine_chunks())

    def _write(self, lines: pa.Array) -> tuple[int, pa.Array]:
        lines = lines.cast(pa.string())
        _, starts, data = lines.buffers()
        offsets = bytes_of(starts).view(np.int32)[lines.offset : lines.offset + len(lines) + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        text = memoryview(data)[first:last] if data is not None else b""
        raw = (offsets - first).astype(np.int32).tobytes() + bytes(text)
        packed = self._codec.compress(raw, asbytes=True)
        self._file.write(packed)
        self._ends.append(self._ends[-1] + len(packed))
        self._raw.append(len(raw))
        self._lines.append(len(lines))
        return len(self._lines) - 1, lines

    def close(self) -> None:
        """Have it all on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        np.savez(self._path.with_suffix(".npz"), ends=self._ends, raw=self._raw, lines=self._lines)


class BatchReader:
    """Reads batches by number, and filters their lines."""

    def __init__(self, path: Path) -> None:
        places = np.load(path.with_suffix(".npz"))
        self._ends, self._raw, self._lines = places["ends"], places["raw"], places["lines"]
        self._codec = pa.Codec("zstd")
        self._file = path.open("rb")
        empty = os.fstat(self._file.fileno()).st_size == 0
        self._map = None if empty else mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)

    @property
    def batch_count(self) -> int:
        """How many there are."""
        return len(self._lines)

    def lines(self, batch: int) -> pa.Array:
        """The lines of a batch."""
        assert self._map is not None
        packed = memoryview(self._map)[self._ends[batch] : self._ends[batch + 1]]
        raw = self._codec.decompress(pa.py_buffer(packed), int(self._raw[batch]))
        count = int(self._lines[batch])
        cut = 4 * (count + 1)
        return pa.StringArray.from_buffers(count, raw.slice(0, cut), raw.slice(cut))

    def filtered(self, predicate: Predicate, candidates: Iterable[int]) -> Answer:
        """The lines of these batches that match."""
        matcher = Matcher(predicate, _SCHEMA)
        found: list[pa.Array] = []
        opened = matching = 0
        for batch in candidates:
            opened += 1
            lines = self.lines(batch)
            mask = matcher.mask(pa.record_batch([lines], schema=_SCHEMA))
            if mask.any():
                matching += 1
                found.append(lines.filter(pa.array(mask)))
        merged = pa.concat_arrays(found) if found else pa.array([], pa.string())
        return Answer(merged, self.batch_count, opened, matching)

    def close(self) -> None:
        """Let go of the file."""
        if self._map is not None:
            self._map.close()
        self._file.close()


def term(text: str) -> Predicate:
    """The question of a term query."""
    return Term(text)


def contains(text: str) -> Predicate:
    """The question of a contains query."""
    return Contains(text)
