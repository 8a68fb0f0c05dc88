"""A search on Spark with the interface that `coprlake search` needs: results, count and report."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions

from coprlake.cli.options.filters import SearchRequest
from coprlake.cli.printing import figures
from coprlake.predicate.narrowing.claims import Exact
from coprlake.query.report import SearchReport
from coprlake.query.resolving import time_column
from coprlake.spark.jobs.searching import SparkSearch, plan_search
from coprlake.spark.source.filter_expressions import named
from coprlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PACKED = "batch binary"
_PLACE = "coprlake_place"
"""The position of a record, which keeps records with equal times in the order of the log."""


class SparkResults:
    """The results of a search on Spark.

    All tasks run before the first record is returned. Their results wait on the executors' disks, not in memory, and
    are fetched one partition at a time.

    Args:
        spark: the Spark session.
        table: the table to search.
        asked: the filters.
        order: ``newest``, ``oldest`` or ``any``.
        limit: the most records to return.
        columns: the columns to return.
        strict: whether a damaged sidecar is an error.
    """

    def __init__(
        self,
        spark: "SparkSession",
        table: Table,
        asked: SearchRequest,
        *,
        order: str = "any",
        limit: int | None = None,
        columns: Sequence[str] | None = None,
        strict: bool = False,
    ) -> None:
        self._spark = spark
        self._time_column = time_column(table.schema)
        self._order = "any" if self._time_column is None else order
        self._limit = limit
        self._planned: SparkSearch[Exact] = plan_search(
            table,
            asked.predicate(table),
            since=asked.since,
            until=asked.until,
            columns=columns,
            limit=limit if self._order == "any" else None,
            strict=strict,
        )

    @property
    def report(self) -> SearchReport:
        """The report of the search: what was pruned, and by what."""
        return self._planned.report

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        return self._planned.schema

    @property
    def done_by(self) -> str:
        """What reads the remaining data, for the report."""
        if self._planned.goes_through_parquet:
            return "Spark's Parquet reader"
        return f"{figures.amount(len(self._planned.shares()), 'task')} of Spark"

    def distinct(self, column: str) -> Iterator[str | None]:
        """The values of a text column among the matching records, each once."""
        if not self._is_nothing:
            for row in self._planned.dataframe(self._spark).select(named(column)).distinct().toLocalIterator():
                yield row[0]

    def count(self) -> int:
        """Count the matching records."""
        return 0 if self._is_nothing else int(self._planned.dataframe(self._spark).count())

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the matching records."""
        if self._is_nothing:
            return
        found = self._planned.dataframe(self._spark)
        if self._limit is not None:
            yield from _fetched(self._sorted(found).limit(self._limit), self.schema)
            return
        kept = _placed(found).persist(StorageLevel.DISK_ONLY)
        try:
            if kept.count():  # on all cores; sorting or fetching it unpersisted would read everything again
                yield from _fetched(self._sorted(kept), self.schema)
        finally:
            kept.unpersist()

    @property
    def _is_nothing(self) -> bool:
        """Whether everything was ruled out, or the limit is 0."""
        return self._limit == 0 or not self._planned.plan.pieces

    def _sorted(self, frame: "DataFrame") -> "DataFrame":
        """Sort the records as requested, and drop our own column."""
        if self._order != "any":
            frame = frame if _PLACE in frame.columns else _placed(frame)
            time = named(str(self._time_column))
            by_time = time.desc_nulls_last() if self._order == "newest" else time.asc_nulls_last()
            frame = frame.orderBy(by_time, functions.col(_PLACE))
        return frame.drop(_PLACE)


def _placed(frame: "DataFrame") -> "DataFrame":
    return frame.withColumn(_PLACE, functions.monotonically_increasing_id())


def _fetched(frame: "DataFrame", schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Fetch the records as Arrow batches with the table's types, holding those of at most two tasks at a time."""
    names = frame.columns
    numbered = frame.toDF(*map(str, range(len(names))))  # PySpark would take a name with a dot for a path
    for row in numbered.mapInArrow(_packed, _PACKED).toLocalIterator(prefetchPartitions=True):
        with pa.ipc.open_stream(row[0]) as reader:
            yield from reader.read_all().rename_columns(names).select(schema.names).cast(schema).to_batches()


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: turn each batch into a row with its bytes."""
    for batch in batches:
        sink: Any = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["batch"])
