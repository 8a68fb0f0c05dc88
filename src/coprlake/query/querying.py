"""A query of the language, run on DuckDB in this process."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from coprlake.errors import NotFoundError, QueryError, UsageError
from coprlake.language import plan
from coprlake.language.compiling import Compiled, compile_query
from coprlake.language.relabeling import relabeled
from coprlake.language.sql.lowering import Lowered
from coprlake.language.table_facts import LOGS
from coprlake.language.types import arrow_type, carried_type
from coprlake.query.doubts import doubts_about, known_fields, warn_caller
from coprlake.query.duck import Connection
from coprlake.query.duck_scan import ScanReport, TableScan
from coprlake.query.handover import Hold
from coprlake.query.limits import Deadline, Limits
from coprlake.query.options import SearchOptions
from coprlake.query.planning import View
from coprlake.query.resolving import no_time, time_column
from coprlake.query.results import Results
from coprlake.records import DAY, HIDDEN, TIMESTAMP, derived
from coprlake.storage.mixed_columns import mixed_columns
from coprlake.summary import Report, Summarized

_FEW_ROWS: Final = 10_000


@dataclass(repr=False)
class QueryReport(Report):
    """What a query did.

    Attributes:
        engine: where it ran.
        text: the query.
        sql: what the engine was told.
        scans: how each table was read.
        rows: of the result.
        warnings: what the user should know.
        is_cut: whether there were more rows than the limit.
        seconds: by phase: parse, plan, sql, prune, read, engine.
    """

    always_shown = ("rows",)

    engine: str
    text: str
    sql: str = ""
    scans: list[ScanReport] = field(default_factory=list)
    rows: int = 0
    warnings: list[str] = field(default_factory=list)
    is_cut: bool = False
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, phase: str, began: float) -> None:
        """Count the time since `began`."""
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - began


class Catalog:
    """The tables of a query: the one it is asked of, and those that it names by their paths."""

    def __init__(
        self, own: Callable[[], View], uri: str, open_other: Callable[[str], tuple[str, Callable[[], View]]]
    ) -> None:
        self._own = (uri, own)
        self._open_other = open_other
        self._tables: dict[str, tuple[str, Callable[[], View]]] = {}
        self._views: dict[str, View] = {}

    def schema(self, name: str, fail: Callable[[str], Any]) -> pa.Schema:
        """The columns of a table."""
        try:
            view = self.view(name)[1]
        except (NotFoundError, UsageError) as error:
            fail(str(error))
            raise
        schema = view.snapshot.schema
        for segment in view.uncommitted:
            new = [item for item in segment.schema if item.name not in schema.names]
            schema = pa.schema([*schema, *new])
        if _has_derived_day(schema, view):
            schema = schema.set(schema.get_field_index(DAY), derived(schema.field(DAY)))
        for hidden in HIDDEN.intersection(schema.names):
            schema = schema.set(schema.get_field_index(hidden), derived(schema.field(hidden)))
        return schema

    def keys(self, name: str) -> frozenset[str] | None:
        """The attributes that records of the table have; None if some records have no index that lists them."""
        known = known_fields(self.view(name)[1])
        return known.texts | known.others if known.is_complete else None

    def mixed(self, name: str) -> frozenset[str]:
        """The columns, not of text, for which some record of the table has an attribute instead."""
        snapshot, uncommitted = self.view(name)[1]
        return mixed_columns(snapshot, uncommitted, self.schema(name, lambda problem: None))

    def view(self, name: str) -> tuple[str, View]:
        """Where a table is, and its records; the same records however often it is asked."""
        if name not in self._views:
            self._tables[name] = self._own if name.lower() == LOGS else self._open_other(name)
            self._views[name] = self._tables[name][1]()
        return self._tables[name][0], self._views[name]


class Query(Summarized, Results):
    """A query that is understood, and its result when asked for it. Each call runs it again."""

    engine = "duckdb"

    def __init__(
        self,
        text: str,
        catalog: Callable[[], Catalog],
        *,
        limits: Limits | None = None,
        variables: Mapping[str, Any] | None = None,
        timeframe: tuple[int | None, int | None] = (None, None),
        now: int | None = None,
        options: SearchOptions | None = None,
    ) -> None:
        if limits is not None and not isinstance(limits, Limits):
            raise UsageError(f"expected limits such as Limits(rows=1000, seconds=10), found {limits!r}")
        if variables is not None and not isinstance(variables, Mapping):
            raise UsageError(f"expected variables as a dict of names and values, found {variables!r}")
        self._text = text
        self._catalog = catalog
        self._limits = limits or Limits()
        self._variables = variables or {}
        self._timeframe = timeframe
        self._now = now
        self._options = options or SearchOptions()
        self._first: tuple[Catalog, Compiled] | None = None
        self.compiled = self._compile()[1]
        self.report = self._new_report(self.compiled)
        warn_caller(self.report.warnings)

    def _facts(self) -> Mapping[str, Any]:
        return {"text": self._text, "columns": self.schema.names} | self._engine_and_warnings()

    def _details(self) -> Mapping[str, Any]:
        columns = {name: str(kind) for name, kind in zip(self.schema.names, self.schema.types, strict=True)}
        return {"text": self._text, "columns": columns} | self._engine_and_warnings()

    def _engine_and_warnings(self) -> dict[str, Any]:
        return {"engine": self.engine} | ({"warnings": list(self.warnings)} if self.warnings else {})

    def _compile(self) -> tuple[Catalog, Compiled]:
        catalog = self._catalog()
        compiled = compile_query(
            self._text, catalog, now=self._now, variables=self._variables, timeframe=self._timeframe
        )
        _check_times(catalog, compiled)
        _warn_of_levels(catalog, compiled)
        self._first = (catalog, compiled)
        return self._first

    def _take(self) -> tuple[Catalog, Compiled]:
        """What was compiled last, if it was not run yet; else compile again, since the table may have grown."""
        found, self._first = self._first or self._compile(), None
        self.compiled = found[1]
        return found

    def _new_report(self, compiled: Compiled) -> QueryReport:
        return QueryReport(self.engine, self._text, warnings=compiled.warnings, seconds=dict(compiled.seconds))

    @property
    def schema(self) -> pa.Schema:
        """Of the result."""
        return self.compiled.schema

    @property
    def warnings(self) -> list[str]:
        """What was odd about the query, though it ran."""
        return self.report.warnings

    def _begin_results(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        catalog, compiled = self._take()
        self.report = self._new_report(compiled)
        return compiled.schema, self._limited(catalog, compiled, self.report)

    def _limited(self, catalog: Catalog, compiled: Compiled, report: QueryReport) -> Iterator[pa.RecordBatch]:
        """The result up to the limit of rows."""
        deadline = Deadline(self._limits.seconds)
        left = self._limits.rows
        for batch in self._run(catalog, compiled, report, deadline):
            if left is not None and batch.num_rows > left:
                report.is_cut = True
                batch = batch.slice(0, left)
            report.rows += batch.num_rows
            if batch.num_rows:
                yield batch
            left = None if left is None else left - batch.num_rows
            if report.is_cut:
                break
        if report.is_cut:
            report.warnings.append(
                f"only the first {self._limits.rows:,} rows are returned; raise the limit of rows for more"
            )

    def _run(
        self, catalog: Catalog, compiled: Compiled, report: QueryReport, deadline: Deadline
    ) -> Iterator[pa.RecordBatch]:
        lowered = _timed(report, "sql", lambda: compiled.lowered("duckdb"))
        connection = Connection(self._limits, deadline, self._text)
        try:
            began = time.perf_counter()
            tree = self._with_tables(catalog, compiled, lowered, connection, report, deadline)
            report.sql = lowered.dialect.render(tree)
            connection.learn(lowered.dialect.array_functions)
            report.add("read", began)
            began = time.perf_counter()
            for batch in connection.run(report.sql, is_small=_is_small(compiled.node)):
                report.add("engine", began)
                yield as_result(batch, compiled)
                began = time.perf_counter()
            report.add("engine", began)
        finally:
            connection.close()

    def _with_tables(
        self,
        catalog: Catalog,
        compiled: Compiled,
        lowered: Lowered,
        connection: Connection,
        report: QueryReport,
        deadline: Deadline,
    ) -> exp.Expression:
        """The SQL with what each table is read from in its place."""
        sources: dict[str, exp.Expression] = {}
        hold = Hold(self._limits.memory_bytes)
        for needs in lowered.scans:
            uri, view = catalog.view(needs.scan.table)
            scan = TableScan(uri, view, needs, compiled.pruning_of(needs.scan), self._options)
            tree, data, how = scan.source(deadline, hold)
            sources[needs.view] = tree
            report.scans.append(how)
            for name, table in data.items():
                connection.register(name, table)

        def put(node: exp.Expression) -> exp.Expression:
            source = sources.get(node.name) if isinstance(node, exp.Table) else None
            if source is None:
                return node
            alias = exp.TableAlias(this=exp.to_identifier(node.name, quoted=True))
            return exp.Subquery(this=source.copy(), alias=alias)

        return lowered.tree.transform(put, copy=False) if sources else lowered.tree

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.rows()

    def explain(self) -> QueryReport:
        """Run the query, throw the result away, and tell what it took."""
        for _ in self.batches():
            pass
        return self.report


def as_result(batch: pa.RecordBatch, compiled: Compiled) -> pa.RecordBatch:
    """A batch of the engine under the names and types of the query."""
    columns = [
        relabeled(relabeled(column, carried_type(kind)), arrow_type(kind))
        for column, kind in zip(batch.columns, compiled.types.values(), strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=compiled.schema)


def _is_small(node: plan.Node) -> bool:
    """Whether the result is sure to be short, or usually is: groups, series, the first records."""
    while isinstance(node, plan.Project | plan.Order | plan.Filter):
        node = node.input
    if isinstance(node, plan.Limit):
        return node.count <= _FEW_ROWS
    return isinstance(node, plan.Aggregate | plan.Series | plan.Values)


def _has_derived_day(schema: pa.Schema, view: View) -> bool:
    """Whether the column `day` is the partition that we make of the timestamp, not one that somebody filled."""
    if DAY not in view.snapshot.partition_by or schema.names.count(DAY) != 1:
        return False
    is_dated = TIMESTAMP in schema.names and pa.types.is_timestamp(schema.field(TIMESTAMP).type)
    return bool(is_dated and pa.types.is_date32(schema.field(DAY).type))


def _check_times(catalog: Catalog, compiled: Compiled) -> None:
    """A range of time needs a column of times: without one it would leave nothing, and say nothing."""
    for scan in plan.scans(compiled.node):
        if scan.since is None and scan.until is None:
            continue
        schema = catalog.schema(scan.table, lambda problem: None)
        if time_column(schema) is None:
            raise QueryError(f"fetch {scan.table} is asked for a range of time, but {no_time(schema)}")


def _warn_of_levels(catalog: Catalog, compiled: Compiled) -> None:
    """Warn about levels that no record has and that are nearly the name of one."""
    for scan in plan.scans(compiled.node):
        view = catalog.view(scan.table)[1]
        sought = compiled.pruning_of(scan).necessary.predicate
        for doubt in doubts_about(sought, view, view.snapshot.schema):
            if doubt.about == "level" and doubt.nearest and doubt.text not in compiled.warnings:
                compiled.warnings.append(doubt.text)


def _timed(report: QueryReport, phase: str, work: Callable[[], Any]) -> Any:
    began = time.perf_counter()
    try:
        return work()
    except RecursionError as error:
        raise QueryError("the query nests too deep; split it into several steps", report.text) from error
    finally:
        report.add(phase, began)
