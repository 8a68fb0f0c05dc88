"""The footer of a Parquet file: its columns and row groups, read once."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from coprlake.kernel import I64Array
from coprlake.records import INT96_UNIT
from coprlake.segment.column_chunks import column_chunks, compressed_sizes

_TAIL_BYTES: Final = 64 << 10
"""The number of bytes read from the end of the file at first; few footers are longer."""
_FRAME_BYTES: Final = 8
"""The footer's length and the magic number, which follow it."""


class Footer:
    """The footer of an open file.

    Arrow's own description (`FileMetaData`) stays private, because asking it about a column chunk may end the process
    (`coprlake.segment.column_chunks`).

    Args:
        source: the open file.
        size: its size in bytes.

    Raises:
        OSError, pa.ArrowException: it is not the footer of a Parquet file.
    """

    def __init__(self, source: pa.NativeFile, size: int) -> None:
        tail = source.read_at(min(size, _TAIL_BYTES), max(0, size - _TAIL_BYTES))
        footer_bytes = int.from_bytes(tail[-_FRAME_BYTES:-4], "little")
        missing = footer_bytes + _FRAME_BYTES - len(tail)
        if 0 < missing <= size - len(tail):
            tail = source.read_at(missing, size - len(tail) - missing) + tail
        file = pq.ParquetFile(
            pa.BufferReader(tail), coerce_int96_timestamp_unit=INT96_UNIT
        )  # raises if anything is wrong with it
        self._metadata = file.metadata
        self.schema: pa.Schema = file.schema_arrow
        own = tail[len(tail) - _FRAME_BYTES - footer_bytes : -_FRAME_BYTES]  # a copy: the tail need not stay
        self._bytes = np.frombuffer(own, np.uint8)
        self._chunks: dict[int, npt.NDArray[np.void]] = {}
        self._sizes: I64Array | None = None

    @property
    def row_count(self) -> int:
        """The number of rows in the file."""
        return int(self._metadata.num_rows)

    @property
    def batch_count(self) -> int:
        """The number of row groups in the file."""
        return int(self._metadata.num_row_groups)

    @property
    def columns(self) -> pq.ParquetSchema:
        """The columns as stored: each member of a nested column is a separate one."""
        return self._metadata.schema

    @property
    def for_arrow(self) -> pq.FileMetaData:
        """What Arrow needs to read the file."""
        return self._metadata

    def rows_of(self, batch: int) -> int:
        """The number of rows in a row group."""
        return int(self._metadata.row_group(batch).num_rows)

    def compressed_bytes(self, batch: int, places: Sequence[int]) -> int:
        """The compressed size of some columns in a row group."""
        if self._sizes is None:
            self._sizes = compressed_sizes(self._bytes, len(self.columns), self.batch_count)
        return int(self._sizes[batch, places].sum())

    def chunks(self, place: int) -> npt.NDArray[np.void]:
        """The chunks of the stored column at index `place`, by row group."""
        found = self._chunks.get(place)
        if found is None:
            found = self._chunks[place] = column_chunks(self._bytes, place, self.batch_count)
        return found
