"""Runs queries of the language on Spark: the driver compiles and prunes, Spark computes.

The plan is the same as for DuckDB, in Spark's SQL. Where the engines would differ, both call the same array functions,
on Spark in Python workers.
"""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from sqlglot import exp

from coprlake.errors import CoprlakeError, QueryLimitError, UsageError
from coprlake.language.compiling import Compiled
from coprlake.language.functions.array_functions import ArrayFunction
from coprlake.language.plan import Column
from coprlake.language.sql.dialect import SparkDialect
from coprlake.language.sql.lowering import Lowered, ScanNeeds
from coprlake.language.table_facts import LOGS
from coprlake.language.types import Type, from_arrow, member_names
from coprlake.query.duck import explained
from coprlake.query.duck_scan import ScanReport
from coprlake.query.fetching import Fetchable, Fetching
from coprlake.query.limits import Deadline, Limits
from coprlake.query.options import SearchOptions
from coprlake.query.planning import View
from coprlake.query.querying import Catalog, Query, QueryReport, as_result
from coprlake.query.time_bounds import Time, microseconds
from coprlake.records import ATTRIBUTES, TIMESTAMP
from coprlake.spark.jobs.searching import plan_candidates
from coprlake.spark.runtime.failures import explained as explained_failure
from coprlake.spark.source.filter_expressions import named
from coprlake.spark.source.open_tables import opened
from coprlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

_numbers = itertools.count()
_KNOWN: Final = "coprlake.array_functions"
_MICROSECONDS_A_DAY: Final = 86_400 * 10**6


class SparkQuery(Query):
    """A query on Spark. Its result is collected to the driver, or stays in Spark as a `dataframe`."""

    engine = "spark"

    def __init__(self, spark: "SparkSession", tables: Callable[[str], Table], text: str, **wishes: Any) -> None:
        self._spark = spark
        self._tables = tables
        super().__init__(text, lambda: Catalog(_view(tables(LOGS)), tables(LOGS).uri, self._other), **wishes)

    def _other(self, name: str) -> tuple[str, Callable[[], View]]:
        table = self._tables(name)
        return table.uri, _view(table)

    def dataframe(self) -> "DataFrame":
        """The result as a DataFrame, with the names and types of the query. Limits do not apply to it."""
        from pyspark.sql import functions as sql

        _, compiled = self._take()
        self.report = report = self._new_report(compiled)
        frame = self._frame(compiled, report)
        columns = [
            _shown(sql.col(name), kind).alias(shown)
            for name, (shown, kind) in zip(frame.columns, compiled.types.items(), strict=True)
        ]
        return frame.select(*columns)

    def _run(
        self, catalog: Catalog, compiled: Compiled, report: QueryReport, deadline: Deadline
    ) -> Iterator[pa.RecordBatch]:
        if self._limits.memory_bytes is not None or self._limits.threads is not None:
            report.warnings.append(
                "on Spark, memory and threads are set in its own configuration; these limits are ignored"
            )
        frame = self._frame(compiled, report)
        if self._limits.rows is not None:
            frame = frame.limit(self._limits.rows + 1)
        began = time.perf_counter()
        try:
            with self._guarded(deadline):
                table = frame.toArrow()
        finally:
            report.add("engine", began)
        for batch in table.to_batches():
            yield as_result(batch, compiled)

    def _frame(self, compiled: Compiled, report: QueryReport) -> "DataFrame":
        began = time.perf_counter()
        lowered: Lowered = compiled.lowered("spark")
        report.add("sql", began)
        began = time.perf_counter()
        views = {needs.view: f"coprlake_{needs.view}_{os.getpid()}_{next(_numbers)}" for needs in lowered.scans}
        with self._guarded(Deadline(None)):
            for needs in lowered.scans:
                self._scan(needs, compiled, report).createOrReplaceTempView(views[needs.view])
        self._learn(lowered.dialect.array_functions)
        report.add("read", began)

        def put(node: exp.Expression) -> exp.Expression:
            if isinstance(node, exp.Table) and node.name in views:
                return exp.Table(
                    this=exp.to_identifier(views[node.name], quoted=True),
                    alias=exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)),
                )
            return node

        report.sql = lowered.dialect.render(lowered.tree.transform(put, copy=False))
        try:
            with self._guarded(Deadline(None)):
                return self._spark.sql(report.sql)
        finally:  # the names are resolved by now
            for view in views.values():
                self._spark.catalog.dropTempView(view)

    def _scan(self, needs: ScanNeeds, compiled: Compiled, report: QueryReport) -> "DataFrame":
        """The candidate records of a table, with columns named and typed as in the query."""
        table = self._tables(needs.scan.table)
        pruning = compiled.pruning_of(needs.scan)
        own = {column: name for name, column in needs.scan.columns.items()}
        keys = {column: name for name, column in needs.scan.attributes.items()}
        columns = list(dict.fromkeys(own.get(column, ATTRIBUTES) for column in needs.columns))
        if not columns:
            columns = [TIMESTAMP if TIMESTAMP in table.schema.names else table.schema.names[0]]
        search = plan_candidates(
            table,
            pruning.necessary,
            since=pruning.since,
            until=pruning.until,
            columns=columns,
            use_sketches=self._options.use_sketches,
        )
        through = search.goes_through_parquet
        way = "Parquet files, read by Spark" if through else "searched by our tasks, handed over as Arrow data"
        report.scans.append(
            ScanReport(
                needs.scan.table,
                way,
                columns,
                str(pruning.necessary.predicate),
                search.report,
                len(search.plan.pieces),
                pruning.ignored,
            )
        )
        frame = search.dataframe(self._spark)
        outputs: list[SparkColumn] = []
        for column, name in needs.columns.items():
            if column in own:
                outputs.append(_carried(own[column], table.schema.field(own[column]).type, column).alias(name))
            else:
                outputs.append(_attribute(keys[column]).alias(name))
        return frame.select(*outputs) if outputs else frame

    def _learn(self, functions: Mapping[str, ArrayFunction]) -> None:
        """Register our array functions with the session."""
        if not functions:
            return
        arrow_udf = _arrow_udf(next(iter(functions)))
        from pyspark.sql.pandas.types import from_arrow_type

        known: set[str] = getattr(self._spark, "_coprlake_array_functions", set())
        for name, function in functions.items():
            if name not in known:
                function.run(pa.nulls(1, function.inputs[0]))  # compiles now, so that workers find it compiled
                self._spark.udf.register(name, arrow_udf(_for_spark(function), from_arrow_type(function.output)))
                known.add(name)
        self._spark._coprlake_array_functions = known

    @contextmanager
    def _guarded(self, deadline: Deadline) -> Iterator[None]:
        """Cancel the job when time is up, and translate Spark's errors into ours."""
        context = self._spark.sparkContext
        group = f"coprlake-query-{next(_numbers)}"
        left = deadline.left
        timer = None
        if left is not None:
            deadline.check()
            context.setJobGroup(group, "coprlake query", interruptOnCancel=True)
            timer = threading.Timer(left, lambda: context.cancelJobGroup(group))
            timer.daemon = True
            timer.start()
        try:
            yield
        except CoprlakeError:
            raise
        except Exception as error:
            raise self._explained(error, deadline) from error
        finally:
            if timer is not None:
                timer.cancel()
                context.setLocalProperty("spark.jobGroup.id", None)

    def _explained(self, error: Exception, deadline: Deadline) -> CoprlakeError:
        message = str(error)
        if deadline.left == 0.0:
            return deadline.error()
        if "OutOfMemory" in message or "java heap space" in message.lower():
            return QueryLimitError(
                "the query needs more memory than Spark has; narrow it, or raise spark.driver.memory"
            )
        marks = ("ARITHMETIC_OVERFLOW", "CAST_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "overflow")
        if any(mark in message for mark in marks):
            return explained("overflow", self._text, deadline)
        if "slots; raise the interval" in message:
            return explained(message, self._text, deadline)
        return explained_failure(error)


def _arrow_udf(name: str) -> Callable[..., Any]:
    """PySpark's way to register a function over Arrow arrays.

    Raises:
        UsageError: this PySpark has none.
    """
    import pyspark
    from pyspark.sql import functions

    if not hasattr(functions, "arrow_udf"):
        raise UsageError(
            f"on Spark this query needs PySpark 4.1 or newer, for {name}; found {pyspark.__version__}; "
            "run it on DuckDB (--engine duckdb), or upgrade"
        )
    return functions.arrow_udf


def _for_spark(function: ArrayFunction) -> Callable[[pa.Array], pa.Array]:
    """Wrap the function in one parameter: Spark inspects the signature and would also count bound parameters."""
    run = function.run
    return lambda column: run(column)


def _view(table: Table) -> Callable[[], View]:
    return lambda: View(table.snapshot())


def _carried(name: str, kind: pa.DataType, column: Column) -> "SparkColumn":
    from pyspark.sql import functions as sql

    value = named(name)
    if column.type.kind == "timestamp":
        if pa.types.is_date(kind):
            return sql.unix_date(value).cast("long") * _MICROSECONDS_A_DAY
        return sql.unix_micros(value.cast("timestamp"))
    if column.type.kind == "record":
        have = from_arrow(kind)
        assert have is not None
        return sql.expr(
            SparkDialect().render(exp.Cast(this=exp.column(name, quoted=True), to=SparkDialect().data_type(have)))
        )
    if column.type.kind in ("long", "double", "string"):
        return value.cast({"long": "bigint", "double": "double"}.get(column.type.kind, "string"))
    return value


def _attribute(key: str) -> "SparkColumn":
    from pyspark.sql import functions as sql

    return sql.try_element_at(named(ATTRIBUTES), sql.lit(key))


def _shown(value: "SparkColumn", kind: Type) -> "SparkColumn":
    """Convert a value from its internal type to the one users see."""
    from pyspark.sql import functions as sql

    if kind.kind == "timestamp":
        return sql.timestamp_micros(value)
    if kind.kind == "array" and kind.element is not None:
        element = kind.element
        return sql.transform(value, lambda one: _shown(one, element))
    if kind.kind == "record":
        members = [
            _shown(value[inner], member).alias(name)
            for inner, (name, member) in zip(member_names(kind), kind.members, strict=True)
        ]
        return sql.when(value.isNotNull(), sql.struct(*members))
    return value


def query(
    spark: "SparkSession",
    table: str | PathLike[str] | Table,
    text: str,
    *,
    since: Time = None,
    until: Time = None,
    variables: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    now: Time = None,
    tables: Fetchable = (),
    use_sketches: bool = True,
) -> SparkQuery:
    """Query a table in the query language, on Spark; the arguments are those of `Table.query`.

    Args:
        spark: the session.
        table: a path or an open table; the query calls it ``logs``.
        text: the query.
        since: only records from this time on, up to now if `until` is not given; a ``from:`` in the query wins.
        until: only records before this time, unless the query has a ``to:``.
        variables: values for ``$names`` in the query.
        limits: on time and rows; memory and threads are configured in Spark.
        now: the value of ``now()``.
        tables: other tables that the query may open with ``fetch "..."``, as for `Table.query`; none by default.
        use_sketches: False to prune only by time and partition; the result is the same.

    Raises:
        QueryError: the query is invalid; says where.
    """
    found = opened(table)
    fetching = Fetching(tables)
    others: dict[str, Table] = {}

    def by_name(name: str) -> Table:
        if name.lower() == LOGS:
            return found
        return others.setdefault(name, others.get(name) or opened(fetching.place(name)))

    return SparkQuery(
        spark,
        by_name,
        text,
        limits=limits,
        variables=variables,
        timeframe=(
            None if since is None else microseconds(since, 0),
            None if until is None else microseconds(until, 0),
        ),
        now=None if now is None else microseconds(now, 0),
        options=SearchOptions(use_sketches=use_sketches, strict=True),
    )
