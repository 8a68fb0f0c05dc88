"""A search: planned, run on several threads, and given out as it goes."""

import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from coprlake.deprecation import Renamed
from coprlake.errors import FormatError, UsageError
from coprlake.predicate.narrowing.claims import Exact, Necessary
from coprlake.predicate.predicates import EVERYTHING, And, Equals, Not, OneOf, Or
from coprlake.query.context import MATCH, Context
from coprlake.query.doubts import Doubt, doubts_about, is_plain, warn_caller
from coprlake.query.opening import BatchMatches, BatchOpener
from coprlake.query.options import SearchOptions
from coprlake.query.ordering import Order, TimeSorter, Unit, units_by_time, units_in_any_order
from coprlake.query.planning import Planner, SegmentPlan, View
from coprlake.query.report import SearchReport
from coprlake.query.resolving import resolved, timed
from coprlake.query.results import Results
from coprlake.records import DAY, HIDDEN, TIMESTAMP_TYPE
from coprlake.segment.searchable import Searchable, has_times
from coprlake.summary import Summarized, text_of
from coprlake.text.nearest_words import hint


class Candidates:
    """The records that may belong to an answer: an iterable of Arrow record batches, for somebody who decides.

    Nothing is done before it is asked for. Each use searches again; `report` tells about the last one.
    """

    def __init__(self, view: Callable[[], View], sought: Necessary, options: SearchOptions) -> None:
        self._view = view
        self._sought = sought
        self._predicate = sought.predicate
        self._options = options
        self.report = SearchReport()

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        return self._schema(self._view())

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The matching records, as they are found."""
        view = self._begin()
        return self._stream(view, self._schema(view))

    def _stream(self, view: View, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The results of one run."""
        time_column = self._options.time_column
        sorts = self._options.order != "any" and time_column not in schema.names
        stored = view.snapshot.schema
        kind = stored.field(time_column).type if time_column in stored.names else TIMESTAMP_TYPE
        wanted = pa.schema([*schema, (time_column, kind)]) if sorts else schema  # to sort by, not to return
        for table in self._limited(self._ordered(view, wanted)):
            yield from table.select(schema.names).to_batches()

    def _begin(self) -> View:
        self.report = SearchReport(predicate=self._predicate)
        return self._view()

    def _schema(self, view: View) -> pa.Schema:
        schema = _all_columns(view)
        if self._options.columns is not None:
            unknown = [name for name in self._options.columns if name not in schema.names]
            if unknown:
                near = hint(unknown[0], schema.names)
                names = ", ".join(name for name in schema.names if name not in HIDDEN)
                raise UsageError(f"there is no column {unknown[0]}{near}; the table has {names}")
            schema = pa.schema([schema.field(name) for name in self._options.columns])
        else:
            schema = pa.schema([field for field in schema if field.name not in (DAY, *HIDDEN)])
        if not self._options.context:
            return schema
        taken = [field.name for field in MATCH if field.name in schema.names]
        if taken:
            raise UsageError(f"with a context the result has a column {taken[0]} of its own; name other columns")
        return pa.schema([*schema, *MATCH])

    def _planner(self, *, needs_times: bool) -> Planner:
        options = self._options
        return Planner(
            self._sought,
            options.since,
            options.until,
            needs_times=needs_times,
            use_sketches=options.use_sketches,
            strict=options.strict,
            report=self.report,
            time_column=options.time_column,
        )

    def _ordered(self, view: View, schema: pa.Schema) -> Iterator[pa.Table]:
        """Results in the asked order, in tables of any size."""
        newest_first = self._options.order == "newest"
        in_order = self._options.order != "any" and has_times(view.snapshot.schema, self._options.time_column)
        planner = self._planner(needs_times=in_order)
        opener = BatchOpener(self._predicate, self._options, self.report)
        with self.report.phase("prune"):
            segments = planner.segments(view)

        def plan_of(segment: Searchable) -> SegmentPlan | None:
            return _plan(planner, segment, opener)

        if in_order:
            units = units_by_time(segments, plan_of, newest_first=newest_first)
        else:
            units = units_in_any_order(segments, plan_of)
        sorter = TimeSorter(None if self._options.context else self._options.limit)
        for found in self._results(units, opener, schema):
            if not in_order:
                if found.records is not None:
                    yield found.records
                continue
            ready = sorter.ready(found.unit.bound)
            if ready is not None:
                yield ready
            if found.records is not None and found.places is not None:
                sorter.add(found.records, found.places)
        ready = sorter.ready(None)
        if ready is not None:
            yield ready

    def _limited(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Stop when there are enough matches."""
        left = self._options.limit
        for table in tables if left != 0 else ():
            if left is not None:
                context = self._options.context
                newest_first = self._options.order == "newest"
                table = _first_matches(table, left, context, newest_first) if context else table.slice(0, left)
                left -= int(np.asarray(table.column("match")).sum()) if self._options.context else table.num_rows
            yield table
            if left is not None and left <= 0:
                self.report.stopped_early = True
                return

    def _results(self, units: Iterator[Unit], opener: BatchOpener, schema: pa.Schema | None) -> Iterator[BatchMatches]:
        """What each unit holds, in the order of the units, several of them at a time."""
        threads = self._options.threads or os.cpu_count() or 1
        first = list(itertools.islice(units, 2))
        if threads == 1 or len(first) < 2:
            for unit in itertools.chain(first, units):
                yield from _open(unit, opener, schema)
            return
        waiting: deque[Future[list[BatchMatches]]] = deque()
        with ThreadPoolExecutor(threads, "coprlake-search") as pool:
            try:
                for unit in itertools.chain(first, units):
                    waiting.append(pool.submit(_open, unit, opener, schema))
                    if len(waiting) > 2 * threads:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()


class Search(Summarized, Candidates, Results):
    """The results of a search: an iterable of Arrow record batches, or a number, or a data frame.

    Nothing is done before it is asked for. Each use searches again; `report` tells about the last one.

    Args:
        view: what is searched, as it is when the search begins.
        sought: for what.
        options: how.
        resolves: whether fields and the column of the time are to be found as in `coprlake.query.resolving`; else they
            are as the table spells them.
    """

    def __init__(
        self, view: Callable[[], View], sought: Exact, options: SearchOptions, *, resolves: bool = False
    ) -> None:
        super().__init__(view, sought.necessary, options)
        self._exact = sought
        self._asked = sought.predicate
        self._resolves = resolves

    def _begin(self) -> View:
        view = self._view()
        if self._resolves and not self._is_spelled(view):
            columns = _all_columns(view)
            self._predicate = resolved(self._asked, columns)
            self._sought = Necessary(self._predicate)
            self._options = timed(self._options, columns)
        self.report = SearchReport(predicate=self._predicate)
        if self._resolves and (isinstance(self._asked, And | Or | Not) or not is_plain(self._asked)):
            self.report.warnings = [doubt.text for doubt in self._doubts(view)]
            warn_caller(self.report.warnings)
        return view

    def doubts(self) -> list[Doubt]:
        """What is odd about the search: fields that no record has, values of the wrong type, unknown levels."""
        return self._doubts(self._view())

    def _doubts(self, view: View) -> list[Doubt]:
        return doubts_about(self._asked, view, _all_columns(view))

    def _is_spelled(self, view: View) -> bool:
        """Whether it can be seen at once that there is nothing to resolve: the usual search of one column."""
        asked, options = self._asked, self._options
        if isinstance(asked, And | Or | Not | Equals | OneOf) or asked.field not in view.snapshot.column_names:
            return False
        return options.order == "any" and not options.context and not options.is_bounded  # no time matters

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
        opener = BatchOpener(self._predicate, self._options, self.report)
        units = units_in_any_order(segments, lambda segment: _plan(planner, segment, opener))
        return sum(found.count for found in self._results(units, opener, None))

    def on(self, view: View, *, order: Order, limit: int | None) -> "Search":
        """The same search of other segments."""
        options = replace(self._options, order=order, limit=limit)
        return Search(lambda: view, self._exact, options, resolves=self._resolves)

    def distinct(self, column: str) -> Iterator[str | None]:
        """The values of a text column among the matching records, each once, as soon as it is found.

        A batch whose values are all known by then is not searched.
        """
        known: set[str | None] = set()

        def has_only_known(segment: Searchable, batch: int) -> bool:
            if not known or column not in segment.schema.names:
                return False
            return known.issuperset(segment.read(batch, [column]).column(column).unique().to_pylist())

        options = replace(self._options, columns=(column,), order="any", limit=None, skips=has_only_known)
        found = Search(self._view, self._exact, options, resolves=self._resolves)
        try:
            for batch in found:
                for value in batch.column(column).unique().to_pylist():
                    if value not in known:
                        known.add(value)
                        yield value
        finally:
            self.report = found.report

    def lines(self) -> Iterator[str]:
        """The matching records as text: the content, and the whole line as JSON if a record came from JSON.

        That JSON means the same as what was read: the same keys in the same order, with the same values.
        """
        from coprlake.segment.original_lines import lines_of

        columns = tuple(_all_columns(self._view()).names)
        found = Search(self._view, Exact(self._asked), replace(self._options, columns=columns), resolves=self._resolves)
        for batch in found:
            yield from lines_of(batch)
        self.report = found.report

    def _facts(self) -> Mapping[str, Any]:
        return {"predicate": text_of(self._asked)} | self._options.differences()

    to_arrow = Renamed("arrow")
    to_pandas = Renamed("pandas")

    def _begin_results(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        view = self._begin()
        schema = self._schema(view)
        return schema, self._stream(view, schema)

    def explain(self) -> SearchReport:
        """Search, throw the results away, and tell what it took."""
        for _ in self:
            pass
        return self.report

    def _count_from_log(self, view: View) -> int | None:
        """All records, when nothing is asked of them and the log knows their number."""
        options = self._options
        if self._predicate != EVERYTHING or options.is_bounded or view.uncommitted or view.snapshot.missing:
            return None
        counts = [segment.entry.row_count for segment in view.snapshot.segments]
        if any(count is None for count in counts) or not all(segment.exists() for segment in view.snapshot.segments):
            return None
        self.report.segments = len(counts)
        self.report.rows_matched = sum(count or 0 for count in counts)
        return self.report.rows_matched


def _all_columns(view: View) -> pa.Schema:
    """The columns of the table, and those that records bring which are not committed."""
    schema = view.snapshot.schema
    for segment in view.uncommitted:
        missing = [field for field in segment.schema if field.name not in schema.names]
        schema = pa.schema([*schema, *(pa.field(f.name, _plain(f.type)) for f in missing)])
    return schema


def _plan(planner: Planner, segment: Searchable, opener: BatchOpener) -> SegmentPlan | None:
    """The batches of a segment; one that cannot be read is named and left out."""
    try:
        with opener.report.phase("prune"):
            return planner.batches(segment)
    except FormatError as error:
        opener.refuse(error)
        return None


def _open(unit: Unit, opener: BatchOpener, schema: pa.Schema | None) -> list[BatchMatches]:
    """Search one batch: a list of one result, or of none if it cannot be read."""
    try:
        return [opener.open(unit, schema)]
    except FormatError as error:
        opener.refuse(error)
        return []


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _first_matches(table: pa.Table, count: int, context: Context, newest_first: bool) -> pa.Table:
    """The first `count` matches with their context, from a table that has more.

    Records of a group are in the order in which they came, whatever the order of the groups: the newest matches of a
    group are its last ones.
    """
    places = np.flatnonzero(np.asarray(table.column("match")))
    if len(places) <= count:
        return table
    last = int(places[count - 1])
    groups = np.asarray(table.column("group"))
    if newest_first:
        own = np.flatnonzero(groups == groups[last])
        start, end = int(own[0]), int(own[-1]) + 1
        inside = places[(places >= start) & (places < end)]
        wanted = count - int(np.searchsorted(places, start))
        first = int(inside[-wanted]) - context.before
        after_others = int(inside[-wanted - 1]) + 1 if wanted < len(inside) else start
        first = max(first, after_others, start)
        return pa.concat_tables([table.slice(0, start), table.slice(first, end - first)])
    after, end = context.after, last + 1
    while end < min(int(places[count]), last + 1 + after) and groups[end] == groups[last]:
        end += 1
    return table.slice(0, end)
