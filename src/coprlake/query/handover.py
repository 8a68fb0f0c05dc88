"""Hands records that we searched over to DuckDB: as a table if they are few, otherwise as a stream.

With a memory limit, at most a part of it is used to hold records. What does not fit is read batch by batch while DuckDB
scans it, and again for each further scan. Without a limit everything is held, since a query may scan it several times.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

from coprlake.errors import QueryLimitError

HELD_PART: Final = 4
"""A query holds Arrow data in at most 1/HELD_PART of its memory; the rest is the engine's."""


class Hold:
    """The budget for Arrow data that one query may hold.

    Args:
        memory_bytes: the memory limit of the query; None for no limit.
    """

    def __init__(self, memory_bytes: int | None) -> None:
        self.memory_bytes = memory_bytes
        self._left = None if memory_bytes is None else memory_bytes // HELD_PART

    def handed_over(self, schema: pa.Schema, read: Callable[[], Iterator[pa.RecordBatch]]) -> "pa.Table | Stream":
        """The batches, as a table if they fit into the budget, otherwise as a stream.

        Args:
            schema: the schema of the batches.
            read: starts reading them.
        """
        batches = read()
        if self._left is None:
            return pa.Table.from_batches(batches, schema)
        kept: list[pa.RecordBatch] = []
        for batch in batches:
            kept.append(batch)
            self._left -= batch.nbytes
            if self._left < 0:
                self._left = 0
                return Stream(schema, read, itertools.chain(kept, batches))
        return pa.Table.from_batches(kept, schema)

    def check(self, batch: pa.RecordBatch) -> None:
        """Raise if this batch alone exceeds the limit."""
        if self.memory_bytes is not None and batch.nbytes > self.memory_bytes:
            raise too_large(self.memory_bytes)


class Stream:
    """Arrow batches for DuckDB, read again for each scan.

    Args:
        schema: the schema of the batches.
        read: starts reading.
        begun: an iterator that has been started already, for the first scan.
    """

    def __init__(
        self,
        schema: pa.Schema,
        read: Callable[[], Iterator[pa.RecordBatch]],
        begun: Iterator[pa.RecordBatch] | None = None,
    ) -> None:
        self._schema = schema
        self._read = read
        self._begun = [] if begun is None else [begun]
        self.failure: Exception | None = None
        """The error that ended a scan; DuckDB passes on only its text."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Start a scan."""
        reader = pa.RecordBatchReader.from_batches(self._schema, self._watched())
        return reader.__arrow_c_stream__(requested_schema)

    def _watched(self) -> Iterator[pa.RecordBatch]:
        try:
            begun = self._begun.pop()  # one thread gets it
        except IndexError:
            begun = self._read()
        try:
            yield from begun
        except Exception as error:
            self.failure = error
            raise


def too_large(memory_bytes: int | None) -> QueryLimitError:
    """The error for exceeding the memory limit."""
    allowed = "" if memory_bytes is None else f" than {memory_bytes / 2**20:,.0f} MiB"
    return QueryLimitError(
        f"the query needs more memory{allowed}; narrow its time or filters, group by fewer values, or raise the limit"
    )
