"""Passes a table to DuckDB: as Arrow data that we searched, or as Parquet files that DuckDB reads itself.

If pruning leaves little, or some records are not committed yet, we search and hand the candidates over. If it leaves
much, DuckDB reads the files that are left, and only the columns that the query needs.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from coprlake.files import Folder
from coprlake.language.functions.values.operators import from_text
from coprlake.language.plan import Column
from coprlake.language.pruning import Pruning
from coprlake.language.relabeling import carried
from coprlake.language.sql.dialect import DuckDialect, simple_type
from coprlake.language.sql.lowering import ScanNeeds
from coprlake.language.times import as_microseconds
from coprlake.language.types import LONG, STRING, carried_type, from_arrow
from coprlake.predicate.paths import is_list
from coprlake.predicate.predicates import EVERYTHING
from coprlake.query.duck import not_utf8
from coprlake.query.handover import Hold, Stream
from coprlake.query.limits import Deadline
from coprlake.query.options import SearchOptions
from coprlake.query.planning import FOREVER, View
from coprlake.query.report import SearchReport
from coprlake.query.resolving import timed
from coprlake.query.searching import Candidates
from coprlake.query.shares import Share, SharePlan, plan, read_share
from coprlake.records import ATTRIBUTES, TIMESTAMP, TIMESTAMP_TYPE, is_varying
from coprlake.segment.sealed import SealedSegment
from coprlake.segment.searchable import is_before
from coprlake.storage.partitioning import constants
from coprlake.summary import Report

LITTLE_BYTES: Final = 96 * 1024 * 1024
"""Up to this much compressed data we search ourselves; DuckDB's own reader reads more."""

_GLOB = re.compile(r"[*?\[\]]")


@dataclass(repr=False)
class ScanReport(Report):
    """How a table was read."""

    table: str
    way: str
    columns: list[str]
    predicate: str
    search: SearchReport
    files: int = 0
    ignored: list[str] = field(default_factory=list)


class TableScan:
    """The scan of one table for one query."""

    def __init__(self, uri: str, view: View, needs: ScanNeeds, pruning: Pruning, options: SearchOptions) -> None:
        self._uri = uri
        self._view = view
        self._needs = needs
        self._pruning = pruning
        self._schema = view.snapshot.schema
        for segment in view.uncommitted:
            new = [item for item in segment.schema if item.name not in self._schema.names]
            self._schema = pa.schema([*self._schema, *new])
        options = SearchOptions(
            since=FOREVER[0] if pruning.since is None else pruning.since,
            until=FOREVER[1] if pruning.until is None else max(pruning.until, FOREVER[0]),
            columns=tuple(self._read_columns()),
            use_sketches=options.use_sketches,
            strict=options.strict,
            threads=options.threads,
        )
        self._options = timed(options, self._schema)
        self._d = DuckDialect()

    def _read_columns(self) -> list[str]:
        """The columns of the table that the query needs; at least one, so that records can be counted."""
        scan = self._needs.scan
        own = {column: name for name, column in scan.columns.items()}
        names = [own[column] for column in self._needs.columns if column in own]
        if any(column not in own for column in self._needs.columns):
            names.append(ATTRIBUTES)
        return list(dict.fromkeys(names)) or [TIMESTAMP if TIMESTAMP in self._schema.names else self._schema.names[0]]

    def source(self, deadline: Deadline, hold: Hold) -> tuple[exp.Expression, dict[str, Any], ScanReport]:
        """The SQL source of the scan, the Arrow data that it refers to by name, and the report."""
        columns = self._read_columns()
        report = ScanReport(
            self._needs.scan.table,
            "",
            columns,
            str(self._pruning.necessary.predicate),
            SearchReport(),
            ignored=self._pruning.ignored,
        )
        if self._view.uncommitted:
            search = Candidates(lambda: self._view, self._pruning.necessary, self._options)
            report.way, report.search = "searched here, with records that are not committed yet", search.report
            schema = _plain_schema(pa.schema([self._schema.field(name) for name in columns]))
            return self._from_arrow(schema, lambda: self._checked(iter(search), deadline, hold), report, hold)
        shares = plan(self._view.snapshot, self._pruning.necessary, self._options)
        report.search = shares.report
        report.files = len(shares.pieces)
        if self._is_much(shares) and (groups := self._file_groups(shares, columns)) is not None:
            report.way = "Parquet files, read by DuckDB"
            return self._from_parquet(groups, columns), {}, report
        schema = pa.schema([self._schema.field(name) for name in columns])
        share = Share(self._uri, self._schema, schema, self._pruning.necessary, self._options, tuple(shares.pieces))
        report.way = "searched here, handed over as Arrow data"

        def read() -> Iterator[pa.RecordBatch]:
            return self._checked(read_share(share, shares.report), deadline, hold)

        return self._from_arrow(schema, read, report, hold)

    def _is_much(self, shares: SharePlan) -> bool:
        if self._pruning.necessary.predicate == EVERYTHING:
            return bool(shares.pieces)
        return shares.data_bytes > LITTLE_BYTES

    def _checked(self, batches: Iterator[pa.RecordBatch], deadline: Deadline, hold: Hold) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            deadline.check()
            hold.check(batch)
            yield batch

    # Arrow data

    def _from_arrow(
        self, schema: pa.Schema, read: Callable[[], Iterator[pa.RecordBatch]], report: ScanReport, hold: Hold
    ) -> tuple[exp.Expression, dict[str, Any], ScanReport]:
        own = self._needs.scan.columns
        kinds = {name: own[name].type for name in schema.names if name in own}
        places = {name: f"c{i}" for i, name in enumerate(kinds)}
        fields = pa.schema(
            [(places[name], carried_type(kind)) for name, kind in kinds.items()] or [("rows", pa.null())]
        )

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in read():
                columns = [_checked_text(name, carried(batch.column(name), kind)) for name, kind in kinds.items()]
                yield pa.record_batch(columns or [pa.nulls(batch.num_rows)], fields)  # rows that are only counted

        data = hold.handed_over(fields, batches)
        if isinstance(data, Stream):
            report.way += ", as a stream"
        name = f"arrow_{self._needs.view}"
        select = self._select({column: (places[column], None) for column in kinds})
        tree = select.from_(exp.Table(this=exp.to_identifier(name, quoted=True)), copy=False)
        return tree, {name: data}, report

    # Parquet files

    def _file_groups(self, shares: SharePlan, columns: list[str]) -> dict[Any, list[str]] | None:
        """Group the files by the types of their columns and the constants of their partition.

        None if DuckDB would not read them as we do.
        """
        folder = Folder.of(self._uri)
        if not folder.is_local:
            return None
        segments = {segment.name: segment for segment in self._view.snapshot.segments}
        groups: dict[Any, list[str]] = {}
        for piece in shares.pieces:
            segment = segments[piece.entry.name]
            path = f"{folder.root}/{segment.entry.name}"
            if _GLOB.search(path):
                return None
            kinds = self._kinds(segment, columns)
            if kinds is None:
                return None
            groups.setdefault(kinds, []).append(path)
        return groups

    def _kinds(self, segment: SealedSegment, columns: list[str]) -> tuple[Any, ...] | None:
        own = segment.footer.columns.to_arrow_schema()
        wanted = list(dict.fromkeys([*columns, *([self._options.time_column] if self._options.is_bounded else [])]))
        fixed: Mapping[str, pa.Scalar] = constants(segment.entry.partition, self._schema)
        lowered = [name.lower() for name in own.names]
        kinds: list[tuple[str, str, Any]] = []
        for name in wanted:
            if name in fixed:
                kinds.append((name, "constant", fixed[name].as_py()))
            elif name in own.names:
                if lowered.count(name.lower()) > 1 or not name:  # SQL has no empty names
                    return None
                kind = own.field(name).type
                if not _is_simple(kind) or not self._reads_alike(name, kind) or not _fits(segment, name, kind):
                    return None
                kinds.append((name, "column", kind))
            else:
                kinds.append((name, "missing", None))
        return tuple(kinds)

    def _reads_alike(self, name: str, kind: pa.DataType) -> bool:
        """Whether the column has the table's type in this file: a cast may lose what it has here."""
        field = self._schema.field(name)
        return not is_varying(field) or from_arrow(kind) == from_arrow(field.type)

    def _from_parquet(self, groups: dict[Any, list[str]], columns: list[str]) -> exp.Expression:
        parts: list[exp.Expression] = []
        for kinds, paths in groups.items():
            sources: dict[str, Any] = {}
            for name, what, value in kinds:
                if name not in columns:
                    continue
                sources[name] = (name, value) if what == "column" else (None, value)
            files = self._d.call("list_value", *(self._d.text(path) for path in paths))
            # partition values are constants here; DuckDB would read any folder a=b above the table as one
            by_name_only = exp.Kwarg(this=exp.var("hive_partitioning"), expression=exp.false())
            select = self._select(sources).from_(self._d.call("read_parquet", files, by_name_only), copy=False)
            condition = self._time_condition({name: (what, value) for name, what, value in kinds})
            parts.append(select if condition is None else select.where(condition, copy=False))
        return _union(parts)

    def _time_condition(self, kinds: dict[str, tuple[str, Any]]) -> exp.Expression | None:
        options = self._options
        if not options.is_bounded:
            return None
        what, kind_of_time = kinds.get(options.time_column, ("missing", None))
        if what == "constant" and kind_of_time is not None:  # the table is partitioned by the time
            moment = _moment(kind_of_time)
            return None if options.since <= moment and is_before(moment, options.until) else exp.false()
        if what != "column":
            return exp.false()
        d, conditions = self._d, []
        column = exp.Column(this=exp.to_identifier(options.time_column, quoted=True))
        for kind, moment, default in ((exp.GTE, options.since, FOREVER[0]), (exp.LT, options.until, FOREVER[1])):
            if moment != default:
                if kind_of_time == TIMESTAMP_TYPE:  # compared directly, so that the files' statistics are used
                    conditions.append(d.binary(kind, column.copy(), d.call("make_timestamptz", d.long(moment))))
                else:
                    conditions.append(d.binary(kind, self._microseconds(column.copy(), kind_of_time), d.long(moment)))
        return d.both(*conditions)

    # Columns

    def _select(self, sources: dict[str, tuple[str | None, Any]]) -> exp.Select:
        """Select the columns that the query needs. A source is a column and its type, or None and a constant."""
        scan = self._needs.scan
        own = {column: name for name, column in scan.columns.items()}
        keys = {column: name for name, column in scan.attributes.items()}
        outputs: list[exp.Expr] = []
        for column, name in self._needs.columns.items():
            field_name = own.get(column)
            if field_name is None:
                value = self._attribute(keys[column], sources)
            else:
                value = self._column(column, sources[field_name])
            outputs.append(exp.alias_(value, name, quoted=True))
        return exp.Select(expressions=outputs or [exp.alias_(exp.Literal.number(1), "nothing", quoted=True)])

    def _attribute(self, key: str, sources: dict[str, tuple[str | None, Any]]) -> exp.Expression:
        source, _ = sources[ATTRIBUTES]
        if source is None:
            return self._d.null(STRING)
        return self._d.entry(exp.Column(this=exp.to_identifier(source, quoted=True)), self._d.text(key))

    def _column(self, column: Column, source: tuple[str | None, Any]) -> exp.Expression:
        d, (name, kind) = self._d, source
        if name is None:
            return self._constant(column, kind)
        value: exp.Expression = exp.Column(this=exp.to_identifier(name, quoted=True))
        if kind is None or (kind == carried_type(column.type) and column.type.kind not in ("array", "record")):
            return value  # carried already
        if column.type.kind == "timestamp":
            return self._microseconds(value, kind)
        if column.type.kind in ("long", "double", "string", "array"):
            have = from_arrow(kind)
            if have != column.type and have is not None and have.is_text:
                return from_text(d, value, column.type)
            return d.cast(value, column.type)
        return value

    def _microseconds(self, value: exp.Expression, kind: pa.DataType) -> exp.Expression:
        """Convert a time of any type to microseconds; without a zone it is UTC."""
        d = self._d
        if pa.types.is_date(kind):
            return d.call("epoch_us", exp.Cast(this=value, to=simple_type("TIMESTAMP")))
        assert pa.types.is_timestamp(kind), kind
        if kind.unit == "ns":
            number = d.floor_divide(d.call("epoch_ns", value.copy()), d.long(1000))
        else:
            number = d.call("epoch_us", value.copy())
        # DuckDB treats the last number on either side as infinite, and returns no number for it
        factor = {"s": 10**6, "ms": 10**3}.get(kind.unit, 1)
        last = FOREVER[1] // factor * factor // (1000 if kind.unit == "ns" else 1)
        name = exp.Cast(this=value.copy(), to=simple_type("VARCHAR"))
        branches = (
            (d.equal(name, d.text("infinity")), d.long(last)),
            (d.equal(name.copy(), d.text("-infinity")), d.long(-last - (kind.unit == "ns"))),
        )
        return d.call("coalesce", number, d.case(*branches, default=d.null(LONG)))

    def _constant(self, column: Column, value: Any) -> exp.Expression:
        d = self._d
        if value is None:
            return d.null(column.type)
        if isinstance(value, date):
            return d.long(_moment(value))
        if isinstance(value, bool):
            return d.true() if value else d.false()
        if isinstance(value, int):
            return d.long(value)
        return d.double(value) if isinstance(value, float) else d.text(str(value))


def _checked_text(name: str, values: pa.Array) -> pa.Array:
    """Check that text is valid UTF-8: DuckDB rejects other text in files, but does not check Arrow data."""
    if pa.types.is_string(values.type) or pa.types.is_nested(values.type):
        try:
            values.validate(full=True)
        except pa.ArrowInvalid as error:
            raise not_utf8(f"column {name}: {error}") from error
    return values


def _moment(value: date) -> int:
    """Convert a time or day from a partition value to microseconds; without a zone it is UTC."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return as_microseconds(value)


def _is_simple(kind: pa.DataType) -> bool:
    """Whether DuckDB reads a column as we do: records would lose their member names, other types are unknown."""
    found = from_arrow(kind)
    if found is None or pa.types.is_duration(kind) or pa.types.is_uint64(kind):
        return False
    if found.kind == "array":  # DuckDB does not cast times to numbers, so not inside a list either
        if not is_list(kind):  # a dictionary of lists
            return False
        element = kind.value_type
        return _is_simple(element) and not pa.types.is_nested(element) and not pa.types.is_temporal(element)
    return found.kind != "record"


def _fits(segment: SealedSegment, name: str, kind: pa.DataType) -> bool:
    """Whether times fit into 64 bits as microseconds; DuckDB accepts no others.

    Times stored as INT96, as Spark does, have no statistics to check.
    """
    if not pa.types.is_timestamp(kind) or kind.unit == "us":
        return True
    column, chunks = segment.stored_column(name), segment.chunks(name)
    if column is None or chunks is None or column.physical_type == "INT96":
        return False
    if kind.unit == "ns":
        return True
    ends = chunks[chunks["has_range"] == 1]  # in milliseconds: Parquet has no seconds
    furthest = FOREVER[1] // 1000
    return bool(np.all(ends["minimum"] >= -furthest) and np.all(ends["maximum"] <= furthest))


def _union(parts: list[exp.Expression]) -> exp.Expression:
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return exp.Union(this=_union(parts[:middle]), expression=_union(parts[middle:]), distinct=False)


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema(
        [pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in schema]
    )
