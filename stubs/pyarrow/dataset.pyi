"""What we use of `pyarrow.dataset`."""

from collections.abc import Iterator, Sequence
from typing import Any

from pyarrow.fs import FileSystem
from pyarrow.lib import RecordBatch, Schema, Table, _Path

class Dataset:
    @property
    def schema(self) -> Schema: ...
    def count_rows(self, filter: Any = None) -> int: ...
    def to_batches(
        self, columns: Sequence[str] | None = None, filter: Any = None, batch_size: int = 131072
    ) -> Iterator[RecordBatch]: ...
    def to_table(self, columns: Sequence[str] | None = None, filter: Any = None, batch_size: int = 131072) -> Table: ...

def dataset(
    source: _Path | Sequence[_Path] | Table | RecordBatch,
    schema: Schema | None = None,
    format: str | None = None,
    filesystem: FileSystem | str | None = None,
    partitioning: str | Sequence[str] | None = None,
    partition_base_dir: str | None = None,
    exclude_invalid_files: bool | None = None,
    ignore_prefixes: Sequence[str] | None = None,
) -> Dataset: ...
