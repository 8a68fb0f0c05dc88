"""Searches on Spark: the driver prunes, tasks read what is left, and the result is a DataFrame.

If little is left, one task opens a few batches. If much is left, much of it matches and the predicate can be expressed
exactly in Spark SQL, then Spark's Parquet reader reads the files, and the records need not pass through Python.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Generic, TypedDict, TypeVar, Unpack

import pyarrow as pa

from coprlake.errors import UsageError
from coprlake.predicate.expression import parse_query
from coprlake.predicate.narrowing.claims import Exact, Necessary
from coprlake.predicate.predicates import EVERYTHING, Combinable, Predicate
from coprlake.query.options import SearchOptions
from coprlake.query.planning import FOREVER
from coprlake.query.report import SearchReport
from coprlake.query.resolving import resolved, timed
from coprlake.query.shares import Share, SharePlan, divide, plan, read_share
from coprlake.query.time_bounds import Time, microseconds
from coprlake.records import DAY, HIDDEN, TIMESTAMP
from coprlake.segment.sealed import SegmentEntry
from coprlake.spark.jobs.spreading import places, places_in
from coprlake.spark.runtime.builds import same_build
from coprlake.spark.source.column_types import as_spark_batch, spark_schema
from coprlake.spark.source.data_source import result_schema
from coprlake.spark.source.filter_expressions import column_of, named
from coprlake.spark.source.open_tables import opened
from coprlake.spark.source.source_options import SHARE_BYTES
from coprlake.storage.partitioning import NO_VALUE, log_text
from coprlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

HARDLY_HELPS: Final = 0.5
"""If more than this share of a table's bytes is left, pruning has hardly helped."""

MANY_MATCH: Final = 0.1
"""If more than this share of the records match, most of the work is handing them over."""

SAMPLES: Final = 4

MUCH_BYTES: Final = 64 * 1024 * 1024
"""Tasks in Python, which start faster, read less compressed data than this."""

Claim = TypeVar("Claim", Exact, Necessary)

_PATTERN_SIGN = re.compile(r"[*?{}\[\]\\]")
_PLAIN_PATH = re.compile("[A-Za-z0-9=._/-]*")


@dataclass
class SparkSearch(Generic[Claim]):
    """A planned search: `report` says what was pruned, `dataframe` reads the rest.

    Attributes:
        table: the table to search.
        sought: the predicate. If it is exact, the DataFrame is the answer; if it is necessary, it holds candidates.
        options: the options of the search.
        schema: the columns of the result.
        plan: what is left after pruning.
        share_bytes: compressed data that one task reads.
    """

    table: Table
    sought: Claim
    options: SearchOptions
    schema: pa.Schema
    plan: SharePlan
    share_bytes: int = SHARE_BYTES

    @property
    def report(self) -> SearchReport:
        """What was pruned, and by what."""
        return self.plan.report

    @cached_property
    def goes_through_parquet(self) -> bool:
        """Whether Spark's own Parquet reader will read what is left."""
        left = self.plan.data_bytes
        if not self.plan.pieces or left < MUCH_BYTES or left < HARDLY_HELPS * self.plan.table_bytes:
            return False
        if not (self._paths_are_plain() and self._columns_match()) or self._condition() is None:
            return False
        return self._matching_part() > MANY_MATCH

    def dataframe(self, spark: "SparkSession") -> "DataFrame":
        """The matching records."""
        frame = self._by_parquet(spark) if self.goes_through_parquet else self._by_shares(spark)
        return frame if self.options.limit is None else frame.limit(self.options.limit)

    def shares(self) -> list[Share]:
        """The work of each task."""
        # a query fails on what a task cannot read; a search, whose caller gets no report either, leaves it out
        options = replace(self.options, strict=True) if isinstance(self.sought, Necessary) else self.options
        whole = Share(self.table.uri, self.table.schema, self.schema, self.sought, options)
        return [replace(whole, pieces=pieces) for pieces in divide(self.plan.pieces, self.share_bytes)]

    def _by_shares(self, spark: "SparkSession") -> "DataFrame":
        shares = self.shares()
        if not shares:
            return _nothing(spark, spark_schema(self.schema))

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for place in places_in(batches):
                yield from map(as_spark_batch, read_share(shares[place]))

        return places(spark, len(shares)).mapInArrow(same_build(read), spark_schema(self.schema))

    def _by_parquet(self, spark: "SparkSession") -> "DataFrame":
        condition = self._condition()
        files = [f"{self.table.uri}/{piece.entry.name}" for piece in self.plan.pieces]
        columns = spark_schema(self.table.schema)
        frame = spark.read.schema(columns).option("basePath", self.table.uri).parquet(*files)
        return frame.filter(condition).select(*map(named, self.schema.names))

    def _condition(self) -> Any:
        """The predicate in Spark SQL, None if that would not mean exactly the same."""
        from pyspark.sql import functions as sql

        condition = column_of(self.sought.predicate, self.table.schema, is_filter=True)
        if condition is None:
            return None
        since, until = self.options.since, self.options.until
        if self.options.is_bounded and not (self.options.time_column == TIMESTAMP and _has_moments(self.table.schema)):
            return None
        parts = [condition]
        if since != FOREVER[0]:
            parts.append(sql.unix_micros(sql.col(TIMESTAMP)) >= since)
        if until != FOREVER[1]:
            parts.append(sql.unix_micros(sql.col(TIMESTAMP)) < until)
        return reduce(lambda first, second: first & second, parts)

    def _columns_match(self) -> bool:
        """Whether every file has the table's types; files of other writers may need a cast that Spark refuses."""
        return all(piece.entry.modified_ns == 0 for piece in self.plan.pieces)

    def _matching_part(self) -> float:
        """Estimate the share of matching records from a few batches.

        A search that opens everything and returns little is several times faster in Python, which evaluates whole
        batches; one that returns much is faster if its records need not leave Java.
        """
        if self.sought.predicate == EVERYTHING:
            return 1.0
        pieces = [piece for piece in self.plan.pieces if piece.batch_count]
        sample = [pieces[number * len(pieces) // SAMPLES] for number in range(SAMPLES)] if pieces else []
        some = tuple(replace(piece, batches=None, part=(0, piece.batch_count)) for piece in sample)
        share = Share(self.table.uri, self.table.schema, self.schema, self.sought, self.options, some)
        found = sum(batch.num_rows for batch in read_share(share))
        rows = sum((piece.entry.row_count or 0) / piece.batch_count for piece in sample)
        return found / max(1.0, rows)

    def _paths_are_plain(self) -> bool:
        """Whether Spark reads the paths as we do: it treats some characters as patterns, and folder names as values.

        A Delta table need not keep its partition values there, and Spark decodes quoted characters as Latin-1.
        """
        if _PATTERN_SIGN.search(self.table.uri):
            return False
        return all(_is_plain_place(piece.entry) for piece in self.plan.pieces)


def _is_plain_place(entry: SegmentEntry) -> bool:
    folders = [f"{name}={log_text(value) or NO_VALUE}" for name, value in entry.partition.items()]
    return entry.name.split("/")[:-1] == folders and _PLAIN_PATH.fullmatch(entry.name) is not None


def _has_moments(schema: pa.Schema) -> bool:
    kind = schema.field(TIMESTAMP).type if TIMESTAMP in schema.names else None
    return kind is not None and pa.types.is_timestamp(kind) and kind.tz is not None


class Wishes(TypedDict, total=False):
    """The options of a search besides the query; see `plan_search`."""

    since: Time
    until: Time
    columns: Sequence[str] | None
    limit: int | None
    strict: bool
    use_sketches: bool
    share_bytes: int


def search(
    spark: "SparkSession",
    table: str | PathLike[str] | Table,
    query: Predicate | str = EVERYTHING,
    **wishes: Unpack[Wishes],
) -> "DataFrame":
    """Search a table and return the matching records as a DataFrame.

    The table is pruned now, on the driver; records are read when the DataFrame is evaluated, in no particular order.

    Args:
        spark: the session.
        table: a path or an open table.
        query: a predicate; or text that the content contains; or an expression such as ``term("refused") &
            ~equals("loglevel", "debug")``.
        wishes: see `plan_search`.

    Raises:
        NotFoundError: the table does not exist.
        UsageError: the query is not valid, or a column does not exist.
    """
    return plan_search(table, query, **wishes).dataframe(spark)


def _nothing(spark: "SparkSession", schema: "StructType") -> "DataFrame":
    """An empty DataFrame; ``createDataFrame([], schema)`` would start Python processes."""
    from pyspark.sql import functions as sql

    return spark.range(0).select(*(sql.lit(None).cast(field.dataType).alias(field.name) for field in schema))


def plan_search(
    table: str | PathLike[str] | Table,
    query: Predicate | str = EVERYTHING,
    *,
    since: Time = None,
    until: Time = None,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    strict: bool = False,
    use_sketches: bool = True,
    share_bytes: int = SHARE_BYTES,
) -> SparkSearch[Exact]:
    """Prune a table for a search, on the driver; `search` does this and reads what is left.

    Args:
        table: a path or an open table.
        query: as for `search`.
        since: only records from this time on.
        until: only records before this time.
        columns: the columns to return; by default all except the day.
        limit: the maximum number of records.
        strict: whether a damaged sidecar is an error; otherwise its data file is scanned.
        use_sketches: False to scan; the result is the same.
        share_bytes: compressed data that one task reads.
    """
    if isinstance(query, str):
        query = parse_query(query) if query else EVERYTHING
    elif not isinstance(query, Combinable):
        raise UsageError(f"expected a predicate or text to search for, found {query!r}")
    return _planned(
        table,
        Exact(query),
        _options(since, until, columns, limit, strict=strict, use_sketches=use_sketches),
        share_bytes,
    )


def plan_candidates(
    table: Table,
    sought: Necessary,
    *,
    since: int | None,
    until: int | None,
    columns: Sequence[str],
    use_sketches: bool,
) -> SparkSearch[Necessary]:
    """Prune a table for a caller that filters exactly itself: the DataFrame holds all records that may match."""
    return _planned(table, sought, _options(since, until, columns, None, strict=False, use_sketches=use_sketches))


def _options(
    since: Time, until: Time, columns: Sequence[str] | None, limit: int | None, *, strict: bool, use_sketches: bool
) -> SearchOptions:
    return SearchOptions(
        since=microseconds(since, FOREVER[0]),
        until=microseconds(until, FOREVER[1]),
        columns=None if columns is None else tuple(columns),
        limit=limit,
        threads=1,
        strict=strict,
        use_sketches=use_sketches,
    )


def _planned(
    table: str | PathLike[str] | Table, sought: Claim, options: SearchOptions, share_bytes: int = SHARE_BYTES
) -> SparkSearch[Claim]:
    found = opened(table)
    snapshot = found.snapshot()
    if isinstance(sought, Exact):  # a query of the language has resolved its names already
        sought = Exact(resolved(sought.predicate, snapshot.schema))
    options = timed(options, snapshot.schema)
    columns = options.columns
    names = [name for name in snapshot.schema.names if name not in (DAY, *HIDDEN)] if columns is None else list(columns)
    schema = result_schema(snapshot.schema, names)
    necessary = sought.necessary if isinstance(sought, Exact) else sought
    return SparkSearch(found, sought, options, schema, plan(snapshot, necessary, options), share_bytes)
