"""The data source ``coprlake`` for ``spark.read``, ``df.write`` and ``df.writeStream``.

Spark creates these objects in Python processes beside the driver, asks them to plan, and sends the plan to tasks. So
planning prunes, once, and each task gets a `Share`.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from coprlake import __version__
from coprlake.errors import UsageError
from coprlake.predicate.narrowing.claims import Exact
from coprlake.query.resolving import resolved
from coprlake.query.shares import Share, divide, plan, read_share
from coprlake.records import HIDDEN
from coprlake.spark.runtime.builds import check_build
from coprlake.spark.source.column_types import arrow_schema, as_spark_batch, spark_schema
from coprlake.spark.source.open_tables import opened
from coprlake.spark.source.source_options import ReadSettings, read_settings, write_settings

if TYPE_CHECKING:
    from coprlake.spark.source.sink import BatchSink, StreamSink


class CoprlakeDataSource(DataSource):
    """The Spark data source for the format ``coprlake``."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        """The name for ``format(...)``."""
        return "coprlake"

    def schema(self) -> StructType:
        """The columns of the table."""
        schema = opened(read_settings(self.options).path).schema
        return spark_schema(pa.schema([field for field in schema if field.name not in HIDDEN]))

    def reader(self, schema: StructType) -> "CoprlakeReader":
        """The reader for ``spark.read``."""
        return CoprlakeReader(read_settings(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> "BatchSink":
        """The writer for ``df.write``."""
        from coprlake.spark.source.sink import BatchSink

        return BatchSink(write_settings(self.options), arrow_schema(schema), overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "StreamSink":  # noqa: N802 (Spark's name)
        """The writer for ``df.writeStream``."""
        from coprlake.spark.source.sink import StreamSink

        if overwrite:
            raise UsageError("a stream can only append to a table; use outputMode('append')")
        settings = write_settings(self.options)
        return StreamSink(settings, arrow_schema(schema), self.options.get("checkpointlocation", ""))


class SharePartition(InputPartition):
    """The work of one task."""

    def __init__(self, share: Share) -> None:
        super().__init__(share)
        self.share = share


class CoprlakeReader(DataSourceReader):
    """Plans a read.

    It accepts no filters: Spark 4.3 would reuse a plan that was pruned by a filter for other uses of the same DataFrame
    or view, and silently lose their records (docs/decisions/0011).
    """

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        self._build = __version__
        self._settings = settings
        self._schema = result_schema(opened(settings.path).schema, schema.names)
        self._sought = settings.sought()
        self._options = settings.search_options()

    def partitions(self) -> Sequence[InputPartition]:
        """Prune the table and split what is left into shares of about the same size; a single one if little is left."""
        table = opened(self._settings.path)
        sought = Exact(resolved(self._sought.predicate, table.schema))
        found = plan(table.snapshot(), sought.necessary, self._options)
        groups = divide(found.pieces, self._settings.share_bytes) or [()]
        whole = Share(table.uri, table.schema, self._schema, sought, self._options)
        return [SharePartition(replace(whole, pieces=pieces)) for pieces in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a task: read the matching records."""
        check_build(self._build)
        assert isinstance(partition, SharePartition)
        yield from map(as_spark_batch, read_share(partition.share))


def result_schema(table: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The schema of the named columns of a table.

    Raises:
        UsageError: a column does not exist.
    """
    unknown = [name for name in names if name not in table.names]
    if unknown:
        raise UsageError(f"there is no column {unknown[0]}; the table has {', '.join(table.names)}")
    return pa.schema([table.field(name) for name in names])
