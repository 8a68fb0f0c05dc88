"""The results of a search or a query."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from coprlake.extras import require
from coprlake.segment.python_values import rows_of


class Results(ABC):
    """Rows that are computed on demand. Each call computes them again."""

    @abstractmethod
    def _begin_results(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Start a run; return the columns of its result, and the rows, which are computed as they are read."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the result, with their types."""

    @property
    def columns(self) -> list[str]:
        """The names of the result's columns."""
        return list(self.schema.names)

    def count(self) -> int:
        """The number of rows."""
        return sum(batch.num_rows for batch in self.batches())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The result as Arrow record batches, while it is computed."""
        return self._begin_results()[1]

    def rows(self) -> Iterator[dict[str, Any]]:
        """The result row by row, as dicts; a time that no datetime can hold is in microseconds since 1970."""
        for batch in self.batches():
            yield from rows_of(batch)

    def arrow(self) -> pa.Table:
        """The whole result as an Arrow table."""
        schema, batches = self._begin_results()
        return pa.Table.from_batches(batches, schema)

    def pandas(self) -> Any:
        """The whole result as a pandas data frame.

        Raises:
            NotInstalledError: pandas is not installed.
        """
        require("pandas")
        return self.arrow().to_pandas()

    def polars(self) -> Any:
        """The whole result as a Polars data frame.

        Raises:
            NotInstalledError: Polars is not installed.
        """
        require("polars")
        import polars

        return polars.from_arrow(self.arrow())

    def reader(self) -> pa.RecordBatchReader:
        """The result as a stream of Arrow record batches, computed as it is read."""
        return pa.RecordBatchReader.from_batches(*self._begin_results())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The result for any library that accepts Arrow streams, such as Polars and DuckDB."""
        return self.reader().__arrow_c_stream__(requested_schema)
