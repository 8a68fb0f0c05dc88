"""A search: planned, run on several threads, and given out as it goes."""

import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from coprlake.errors import CoprlakeError, FormatError, UnreadableDataError, UsageError
from coprlake.predicate.finding import Mask
from coprlake.predicate.matching import Matcher
from coprlake.predicate.predicates import EVERYTHING, Predicate
from coprlake.predicate.screening import Screen, screen_of
from coprlake.query.context import MATCH, Context, Surroundings, with_context
from coprlake.query.ordering import ORDERS, Order, TimeSorter, Unit, units_by_time, units_in_any_order
from coprlake.query.planning import FOREVER, Planner, View
from coprlake.query.report import SearchReport
from coprlake.records import CONTENT, DAY, SOURCE, TIMESTAMP, TIMESTAMP_TYPE
from coprlake.segment.sealed import SealedSegment
from coprlake.segment.searchable import Searchable, has_times


@dataclass(slots=True)
class SearchOptions:
    """How a search is done.

    Attributes:
        since: records of this time and later, in microseconds since 1970.
        until: records before this time.
        columns: what to return of a record; None for all but the day.
        order: ``any`` is the fastest; ``newest`` and ``oldest`` sort by time, and still begin to give results early.
        limit: stop after so many matches.
        context: records of the same source to return before and after each match.
        threads: how many batches are worked on at a time; None for the number of cores.
        strict: whether a damaged segment ends the search; if not it is named in the report.
        use_sketches: False to scan everything that time and partition leave, which finds the same.
    """

    since: int = FOREVER[0]
    until: int = FOREVER[1]
    columns: tuple[str, ...] | None = None
    order: Order = "any"
    limit: int | None = None
    context: Context = field(default_factory=Context)
    threads: int | None = None
    strict: bool = False
    use_sketches: bool = True

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise UsageError(f"unknown order {self.order!r}; expected one of {', '.join(ORDERS)}")
        if self.limit is not None and self.limit < 0:
            raise UsageError(f"the limit is {self.limit}; expected 0 or more")
        if self.columns is not None and len(set(self.columns)) != len(self.columns):
            raise UsageError(f"a column is named twice: {', '.join(self.columns)}")
        if self.columns is not None and not self.columns:
            raise UsageError("no columns are named; leave them out to get all")
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"threads are {self.threads}; expected 1 or more")


@dataclass
class _Found:
    """What was found in one batch."""

    unit: Unit
    count: int
    records: pa.Table | None = None


class Search:
    """The results of a search: an iterable of Arrow record batches, or a number, or a data frame.

    Nothing is done before it is asked for. Each use searches anew; `report` tells about the last one.
    """

    def __init__(self, view: Callable[[], View], predicate: Predicate, options: SearchOptions) -> None:
        self._view = view
        self._predicate = predicate
        self._options = options
        self._matchers: dict[pa.Schema, Matcher] = {}
        self._numbers = itertools.count()
        self._is_bounded = (options.since, options.until) != FOREVER
        self.report = SearchReport()

    @cached_property
    def _screen(self) -> Screen | None:
        """Made when the first batch is opened: most searches open none."""
        return screen_of(self._predicate, CONTENT)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        return self._schema(self._view())

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The matching records, as they are found."""
        view = self._begin()
        return self._stream(view, self._schema(view))

    def count(self) -> int:
        """How many records match; `limit` does not count."""
        view = self._begin()
        quick = self._count_from_log(view)
        if quick is not None:
            return quick
        started = time.perf_counter()
        planner = self._planner(needs_times=False)
        segments = planner.segments(view)
        self.report.add_seconds("prune", time.perf_counter() - started)
        if not segments:
            return 0
        units = units_in_any_order(segments, lambda segment: self._plan(planner, segment))
        return sum(found.count for found in self._results(units, None))

    def to_arrow(self) -> pa.Table:
        """All results in memory."""
        view = self._begin()
        schema = self._schema(view)
        return pa.Table.from_batches(self._stream(view, schema), schema)

    def to_pandas(self) -> Any:
        """All results as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def reader(self) -> pa.RecordBatchReader:
        """A stream of results that every engine with Arrow can read, DuckDB and Polars among them."""
        view = self._begin()
        schema = self._schema(view)
        return pa.RecordBatchReader.from_batches(schema, self._stream(view, schema))

    def rows(self) -> Iterator[dict[str, Any]]:
        """The results one by one."""
        for batch in self:
            yield from batch.to_pylist()

    def explain(self) -> SearchReport:
        """Search, throw the results away, and tell what it took."""
        for _ in self:
            pass
        return self.report

    def _stream(self, view: View, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The results of one run."""
        sorts = self._options.order != "any" and TIMESTAMP not in schema.names
        wanted = pa.schema([*schema, (TIMESTAMP, TIMESTAMP_TYPE)]) if sorts else schema  # to sort by, not to return
        for table in self._limited(self._ordered(view, wanted)):
            yield from table.select(schema.names).to_batches()

    def _begin(self) -> View:
        self.report = SearchReport(predicate=self._predicate)
        return self._view()

    def _schema(self, view: View) -> pa.Schema:
        schema = view.snapshot.schema
        for segment in view.uncommitted:
            missing = [field for field in segment.schema if field.name not in schema.names]
            schema = pa.schema([*schema, *(pa.field(f.name, _plain(f.type)) for f in missing)])
        if self._options.columns is not None:
            unknown = [name for name in self._options.columns if name not in schema.names]
            if unknown:
                raise UsageError(f"there is no column {unknown[0]}; the table has {', '.join(schema.names)}")
            schema = pa.schema([schema.field(name) for name in self._options.columns])
        else:
            schema = pa.schema([field for field in schema if field.name != DAY])
        if not self._options.context:
            return schema
        taken = [field.name for field in MATCH if field.name in schema.names]
        if taken:
            raise UsageError(f"with a context the result has a column {taken[0]} of its own; name other columns")
        return pa.schema([*schema, *MATCH])

    def _planner(self, *, needs_times: bool) -> Planner:
        options = self._options
        return Planner(
            self._predicate,
            options.since,
            options.until,
            needs_times=needs_times,
            use_sketches=options.use_sketches,
            report=self.report,
        )

    def _plan(self, planner: Planner, segment: Searchable) -> Any:
        """The batches of a segment; one that cannot be read is named and left out."""
        try:
            with self.report.phase("prune"):
                return planner.batches(segment)
        except FormatError as error:
            self._refuse(error)
            return None

    def _ordered(self, view: View, schema: pa.Schema) -> Iterator[pa.Table]:
        """Results in the asked order, in tables of any size."""
        newest_first = self._options.order == "newest"
        in_order = self._options.order != "any" and has_times(view.snapshot.schema)
        is_sorted = in_order and not self._options.context  # what stands together stays together
        planner = self._planner(needs_times=in_order)
        with self.report.phase("prune"):
            segments = planner.segments(view)
        if not in_order:
            units = units_in_any_order(segments, lambda segment: self._plan(planner, segment))
            for found in self._results(units, schema):
                if found.records is not None:
                    yield found.records
            return
        units = units_by_time(segments, lambda segment: self._plan(planner, segment), newest_first=newest_first)
        sorter = TimeSorter(newest_first=newest_first)
        for found in self._results(units, schema):
            if not is_sorted:
                if found.records is not None:
                    yield found.records
                continue
            ready = sorter.ready(found.unit.bound)
            if ready is not None:
                yield ready
            if found.records is not None:
                sorter.add(found.records)
        ready = sorter.ready(None)
        if ready is not None:
            yield ready

    def _limited(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Stop when there are enough matches."""
        left = self._options.limit
        for table in tables if left != 0 else ():
            if left is not None:
                context = self._options.context
                table = _first_matches(table, left, context.after) if context else table.slice(0, left)
                left -= int(np.asarray(table.column("match")).sum()) if self._options.context else table.num_rows
            yield table
            if left is not None and left <= 0:
                self.report.stopped_early = True
                return

    def _results(self, units: Iterator[Unit], schema: pa.Schema | None) -> Iterator[_Found]:
        """What each unit holds, in the order of the units, several of them at a time."""
        threads = self._options.threads or os.cpu_count() or 1
        first = list(itertools.islice(units, 2))
        if threads == 1 or len(first) < 2:
            for unit in itertools.chain(first, units):
                yield from self._open(unit, schema)
            return
        waiting: deque[Future[list[_Found]]] = deque()
        with ThreadPoolExecutor(threads, "coprlake-search") as pool:
            try:
                for unit in itertools.chain(first, units):
                    waiting.append(pool.submit(self._open, unit, schema))
                    if len(waiting) > 2 * threads:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _open(self, unit: Unit, schema: pa.Schema | None) -> list[_Found]:
        """Search one batch: a list of one result, or of none if it cannot be read."""
        try:
            return [self._search_batch(unit, schema)]
        except FormatError as error:
            self._refuse(error)
            return []

    def _search_batch(self, unit: Unit, schema: pa.Schema | None) -> _Found:
        """Decide for every record of a batch; the columns that only the result needs are read when there is one."""
        segment, report = unit.segment, self.report
        if self._is_screened_out(unit):
            return _Found(unit, 0)
        matcher = self._matcher(segment.schema)
        bounded = self._is_bounded and not (
            self._options.since <= unit.first_time and unit.last_time < self._options.until
        )
        needed = list(dict.fromkeys([*matcher.columns, *([TIMESTAMP] if bounded else [])]))
        needed = needed or segment.schema.names[:1]  # a predicate that looks at nothing still needs to see the rows
        started = time.perf_counter()
        records = segment.read(unit.batch, needed)
        read = time.perf_counter()
        mask = matcher.mask(records)
        if bounded:
            mask = mask & self._time_mask(records)
        count = int(np.count_nonzero(mask))
        filtered = time.perf_counter()
        stored = segment.stored_bytes(unit.batch, needed)
        found = _Found(unit, count)
        if count and schema is not None:
            wanted = dict.fromkeys([*schema.names, SOURCE] if self._options.context else schema.names)
            more = [name for name in wanted if name in segment.schema.names and name not in needed]
            if more:
                rest = segment.read(unit.batch, more)
                stored += segment.stored_bytes(unit.batch, more)
                for name in rest.schema.names:
                    records = records.append_column(name, rest.column(name))
            if self._options.context:
                found.records = with_context(unit, records, mask, self._surroundings(matcher, records), schema)
            else:
                found.records = self._aligned(records.filter(pa.array(mask)), schema, segment.name)
        report.add_seconds("read", read - started)
        report.add_seconds("filter", filtered - read)
        if found.records is not None:
            report.add_seconds("fetch", time.perf_counter() - filtered)
        report.add(batches_opened=1, batches_for_nothing=int(count == 0), rows_matched=count, bytes_read=stored)
        return found

    def _surroundings(self, matcher: Matcher, records: pa.Table) -> Surroundings:
        def matches(others: pa.Table) -> Mask:
            mask = matcher.mask(others)
            return mask & self._time_mask(others) if self._is_bounded else mask

        columns = list(dict.fromkeys([*records.schema.names, *([TIMESTAMP] if self._is_bounded else [])]))
        return Surroundings(self._options.context, columns, matches, self._numbers)

    def _is_screened_out(self, unit: Unit) -> bool:
        """Whether the bytes of the batch tell that nothing in it matches.

        Only worth its time where most batches are opened for nothing: in a scan, or where the sketch does not help.
        """
        report = self.report
        wasteful = report.batches_for_nothing >= report.batches_opened // 2 and report.batches_pruned_by_sketch == 0
        if not (wasteful or report.batches_for_nothing > max(4, report.batches_opened // 2)):
            return False
        if self._screen is None or not isinstance(unit.segment, SealedSegment):
            return False
        started = time.perf_counter()
        page = unit.segment.page(unit.batch, CONTENT)
        read = time.perf_counter()
        if page is None or self._screen(page):
            report.add_seconds("screen", time.perf_counter() - started)
            return False
        report.add_seconds("read", read - started)
        report.add_seconds("filter", time.perf_counter() - read)
        stored = unit.segment.stored_bytes(unit.batch, (CONTENT,))
        report.add(batches_opened=1, batches_for_nothing=1, bytes_read=stored)
        return True

    def _time_mask(self, records: pa.Table) -> Mask:
        if not has_times(records.schema):
            return np.zeros(records.num_rows, bool)
        times = records.column(TIMESTAMP).cast(pa.timestamp("us")).cast(pa.int64())
        numbers = np.asarray(times.fill_null(FOREVER[0]))
        inside = (numbers >= self._options.since) & (numbers < self._options.until)
        return inside & ~np.asarray(times.is_null()) if times.null_count else inside

    def _aligned(self, records: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
        """The records with the columns of the result: nulls where the segment has none, and the result's types."""
        columns = []
        for wanted in schema:
            if wanted.name not in records.schema.names:
                columns.append(pa.nulls(records.num_rows, wanted.type))
                continue
            column = records.column(wanted.name)
            try:
                columns.append(column if column.type == wanted.type else column.cast(wanted.type))
            except pa.ArrowException:
                self._refuse(_other_type(name, wanted, column.type))
                columns.append(pa.nulls(records.num_rows, wanted.type))
        return pa.Table.from_arrays(columns, schema=schema)

    def _matcher(self, schema: pa.Schema) -> Matcher:
        matcher = self._matchers.get(schema)
        if matcher is None:
            matcher = self._matchers[schema] = Matcher(self._predicate, schema)
        return matcher

    def _count_from_log(self, view: View) -> int | None:
        """All records, when nothing is asked of them and the log knows their number."""
        options = self._options
        if self._predicate != EVERYTHING or (options.since, options.until) != FOREVER or view.uncommitted:
            return None
        counts = [segment.entry.row_count for segment in view.snapshot.segments]
        if any(count is None for count in counts):
            return None
        self.report.segments = len(counts)
        self.report.rows_matched = sum(count or 0 for count in counts)
        return self.report.rows_matched

    def _refuse(self, error: CoprlakeError) -> None:
        if self._options.strict:
            raise error
        self.report.problem(str(error))


def _other_type(name: str, wanted: pa.Field, found: pa.DataType) -> UnreadableDataError:
    return UnreadableDataError(
        name,
        section=f"column {wanted.name}",
        expected=f"values that become {wanted.type}",
        found=str(found),
        advice="the values are left out of the result; name other columns, or give the files one type",
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _first_matches(table: pa.Table, count: int, after: int) -> pa.Table:
    """The records up to the last of so many matches, with what follows it as its context."""
    places = np.flatnonzero(np.asarray(table.column("match")))
    if len(places) <= count:
        return table
    last = int(places[count - 1])
    groups = np.asarray(table.column("group"))
    end = last + 1
    while end < min(int(places[count]), last + 1 + after) and groups[end] == groups[last]:
        end += 1
    return table.slice(0, end)
