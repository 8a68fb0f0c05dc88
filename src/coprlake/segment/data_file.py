"""The data file of a segment: plain Parquet, one row group a batch, in the encodings that pay."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from coprlake.errors import ConflictError, NotFoundError
from coprlake.files import Folder, storage_error
from coprlake.records import CONTENT
from coprlake.text.text_types import is_text

WHOLE_BATCH: Final = 1 << 30
"""More rows than a batch can have: a row group is never cut."""


def storage_schema(schema: pa.Schema) -> pa.Schema:
    """How records lie in the file: plain types, so that every engine reads them."""
    return pa.schema([(field.name, _plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    return _plain(kind.value_type) if pa.types.is_dictionary(kind) else kind


def writer_options(schema: pa.Schema, level: int) -> dict[str, Any]:
    """The settings of the Parquet writer.

    The content is plain: delta encodings by prefix would take 4 % less behind zstd, but plain pages are read faster by
    every engine, and can be searched before they are decoded. Times are delta-encoded by difference. What remains is
    mostly repetition, for which dictionaries are best. Statistics are kept of what can be compared usefully, which text
    cannot.
    """
    encodings: dict[str, str] = {}
    for field in schema:
        if field.name == CONTENT and is_text(field.type):
            encodings[field.name] = "PLAIN"
        elif pa.types.is_timestamp(field.type):
            encodings[field.name] = "DELTA_BINARY_PACKED"
    compared = [field.name for field in schema if not is_text(field.type) and not pa.types.is_nested(field.type)]
    return {
        "compression": "zstd",
        "compression_level": level,
        "use_dictionary": [path for path in _leaf_paths(schema) if path not in encodings],
        "column_encoding": encodings,
        "write_statistics": compared or False,
        "store_schema": False,  # Arrow's own schema in the footer costs every opening, and says nothing more
        "data_page_size": 1 << 24,
    }


def _leaf_paths(schema: pa.Schema) -> list[str]:
    """The columns of the file as Parquet names them: those of a map or struct have longer names."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema, store_schema=False).close()
    leaves = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    return [leaves.column(number).path for number in range(len(leaves))]


class DataFileWriter:
    """Writes batches as row groups."""

    def __init__(self, folder: Folder, name: str, schema: pa.Schema, level: int) -> None:
        self.schema = storage_schema(schema)
        self._path = folder.path(name)
        self._sink = folder.create(name)
        with self._storage_errors():
            self._writer = pq.ParquetWriter(self._sink, self.schema, **writer_options(self.schema, level))

    def write(self, batch: pa.Table) -> None:
        """Add one row group."""
        with self._storage_errors():
            self._writer.write_table(batch.cast(self.schema), row_group_size=WHOLE_BATCH)

    def close(self) -> None:
        """Write the footer; the file is complete then."""
        with self._storage_errors():
            self._writer.close()
            self._sink.close()

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise storage_error(self._path, error) from error

    def abandon(self) -> None:
        """Let go of the file, complete or not."""
        with suppress(OSError, pa.ArrowException):
            self._writer.close()
        self._writer.is_open = False  # or else it tries again, and complains, when it is collected
        with suppress(OSError, pa.ArrowException):
            self._sink.close()


def written_bytes(folder: Folder, name: str) -> int:
    """The size of a data file that was just written.

    Raises:
        ConflictError: somebody removed it meanwhile.
    """
    entry = folder.entry(name)
    if entry is None:
        raise _removed(folder, name)
    return entry.size_bytes


@contextmanager
def removals_noticed(folder: Folder, name: str) -> Iterator[None]:
    """Make a `ConflictError` of the error for a file that is gone: whoever is inside has just written it.

    Args:
        folder: the table's.
        name: of the data file that is written, with its sidecar.
    """
    try:
        yield
    except NotFoundError as error:
        raise _removed(folder, name) from error


def _removed(folder: Folder, name: str) -> ConflictError:
    return ConflictError(
        f"{folder.path(name)}: the file was removed while it was written, perhaps by a vacuum; nothing was "
        "committed, try again"
    )
