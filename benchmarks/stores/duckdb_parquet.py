"""Lines as plain Parquet, as a lake has them without an index: for the engines that scan it."""

import os
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.stores.base import Setting, Sizes, Store
from benchmarks.stores.batches import LEVEL
from coprlake.predicate.deciding.matching import Matcher
from coprlake.predicate.predicates import Predicate

ROW_GROUP_ROWS: Final = 122_880
"""DuckDB's own default, by its documentation."""
SORTED_BYTES: Final = 256 << 20
"""So much raw text is sorted together."""
SETTINGS: Final = (
    f"Parquet with zstd level {LEVEL} as the other stores, sorted by source, row groups of {ROW_GROUP_ROWS:,} rows "
    "(DuckDB's default); no index"
)
_SCHEMA: Final = pa.schema([("source", pa.string()), ("content", pa.string())])
_CONTENT: Final = pa.schema([_SCHEMA.field("content")])


class ParquetStore(Store):
    """One file of Parquet."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.data: Path = self.folder / "lines.parquet"
        self._file = self.data.open("wb")
        self._writer = pq.ParquetWriter(
            self._file, _SCHEMA, compression="zstd", compression_level=LEVEL, use_dictionary=["source"]
        )
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0

    def ingest(self, content: pa.Array, source: pa.Array) -> None:
        """Collect, and write what is enough to be sorted."""
        batch = pa.record_batch([source, content], schema=_SCHEMA)
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= SORTED_BYTES:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting)
            self._writer.write_table(table.take(_order(table["source"])), row_group_size=ROW_GROUP_ROWS)
        self._waiting, self._waiting_bytes = [], 0

    def finish_index(self) -> None:
        """There is none."""
        return

    def finish_data(self) -> None:
        """Write the rest."""
        self._write()
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def sizes(self) -> Sizes:
        """All of it is data."""
        return Sizes(self.data.stat().st_size, 0)


def _order(sources: pa.ChunkedArray) -> pa.Array:
    """Rows by source, those of one source as they came: by numbers, as there are few sources and many lines."""
    coded = sources.combine_chunks().dictionary_encode()
    rank = np.asarray(pc.rank(coded.dictionary))
    return pa.array(np.argsort(rank[np.asarray(coded.indices)], kind="stable"))


def exactly(predicate: Predicate, lines: pa.ChunkedArray) -> pa.Array:
    """Of what an engine returned, the lines that match."""
    content = lines.cast(pa.string()).combine_chunks()
    if isinstance(content, pa.ChunkedArray):
        content = pa.concat_arrays(content.chunks) if content.num_chunks else pa.array([], pa.string())
    if len(content) == 0:
        return content
    mask = Matcher(predicate, _CONTENT).mask(pa.record_batch([content], schema=_CONTENT))
    return content.filter(pa.array(mask))
