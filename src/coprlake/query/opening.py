"""Opens a batch: decides exactly which of its records match, and returns the requested columns."""

import itertools
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from coprlake.errors import CoprlakeError, UnreadableDataError
from coprlake.kernel import I64Array
from coprlake.predicate.deciding.finding import Mask
from coprlake.predicate.deciding.matching import Matcher
from coprlake.predicate.deciding.screening import Screen, screen_of
from coprlake.predicate.narrowing.places import Where, narrowed, where_values_are
from coprlake.predicate.predicates import ANY_VALUE, Predicate
from coprlake.query.context import Surroundings, with_context
from coprlake.query.options import SearchOptions
from coprlake.query.ordering import Unit, places_of
from coprlake.query.planning import FOREVER
from coprlake.query.report import SearchReport
from coprlake.records import CONTENT, SOURCE
from coprlake.segment.sealed import SealedSegment
from coprlake.segment.searchable import Searchable, has_times, is_before, microseconds_of


@dataclass
class BatchMatches:
    """The matches in one batch."""

    unit: Unit
    count: int
    records: pa.Table | None = None
    places: I64Array | None = None


class BatchOpener:
    """Opens batches for one run of a search; thread-safe."""

    def __init__(self, predicate: Predicate, options: SearchOptions, report: SearchReport) -> None:
        self.report = report
        self._predicate = predicate
        self._options = options
        self._matchers: dict[tuple[pa.Schema, Where], Matcher] = {}
        self._numbers = itertools.count()

    @cached_property
    def _screens(self) -> tuple[Screen | None, Screen | None]:
        """For segments where any value may be elsewhere, and for those where all values are in the content."""
        return screen_of(self._predicate, CONTENT), screen_of(self._predicate, CONTENT, ANY_VALUE)

    def _where(self, segment: Searchable) -> Where:
        """Where the values of this segment are that a plain search looks at."""
        if (
            not self._options.use_sketches
            or self._options.context
            or not isinstance(segment, SealedSegment)
            or segment.sidecar is None
        ):
            return "anywhere"
        return where_values_are(segment.profile)

    def refuse(self, error: CoprlakeError, *, costs_records: bool = True) -> None:
        """Record the error in the report, or raise it if the search is strict."""
        if self._options.strict:
            raise error
        self.report.problem(str(error))
        self.report.is_incomplete = self.report.is_incomplete or costs_records

    def open(self, unit: Unit, schema: pa.Schema | None) -> BatchMatches:
        """Find the matches of a batch; columns that only the result needs are read only if there is a match.

        Args:
            unit: the batch.
            schema: the columns of the result; None to only count matches.

        Raises:
            FormatError: the batch cannot be read.
        """
        segment, report, time_column = unit.segment, self.report, self._options.time_column
        skips = self._options.skips
        if (skips is not None and skips(segment, unit.batch)) or self._is_screened_out(unit):
            return BatchMatches(unit, 0)
        matcher = self._matcher(segment)
        bounded = self._options.is_bounded and not (
            self._options.since <= unit.first_time and unit.last_time < self._options.until
        )
        needed = list(dict.fromkeys([*matcher.columns, *([time_column] if bounded else [])]))
        needed = needed or segment.schema.names[:1]  # a predicate without fields still needs the number of rows
        started = time.perf_counter()
        records = segment.read(unit.batch, needed)
        read = time.perf_counter()
        mask = matcher.mask(records)
        if bounded:
            self._check_times(records, mask, segment.name)
            mask = mask & self._time_mask(records)
        count = int(np.count_nonzero(mask))
        filtered = time.perf_counter()
        stored = segment.stored_bytes(unit.batch, needed)
        found = BatchMatches(unit, count)
        if count and schema is not None:
            records, more_bytes = self._with_other_columns(unit, records, schema)
            stored += more_bytes
            if self._options.context:
                around = self._surroundings(matcher, records)
                records, found.places = with_context(unit, records, mask, around)
            else:
                records = records.filter(pa.array(mask))
                newest_first = self._options.order == "newest"
                found.places = places_of(records, newest_first=newest_first, column=time_column)
            found.records = self._aligned(records, schema, segment.name)
        report.add_seconds("read", read - started)
        report.add_seconds("filter", filtered - read)
        if found.records is not None:
            report.add_seconds("fetch", time.perf_counter() - filtered)
        report.add(batches_opened=1, batches_for_nothing=int(count == 0), rows_matched=count, bytes_read=stored)
        return found

    def _with_other_columns(self, unit: Unit, records: pa.Table, schema: pa.Schema) -> tuple[pa.Table, int]:
        """The records with the other columns of the result, and the bytes read for these."""
        segment = unit.segment
        wanted = dict.fromkeys(
            [*schema.names, SOURCE, self._options.time_column] if self._options.context else schema.names
        )
        more = [name for name in wanted if name in segment.schema.names and name not in records.schema.names]
        if not more:
            return records, 0
        rest = segment.read(unit.batch, more)
        for name in rest.schema.names:
            records = records.append_column(name, rest.column(name))
        return records, segment.stored_bytes(unit.batch, more)

    def _surroundings(self, matcher: Matcher, records: pa.Table) -> Surroundings:
        def matches(others: pa.Table) -> Mask:
            mask = matcher.mask(others)
            return mask & self._time_mask(others) if self._options.is_bounded else mask

        time_column = self._options.time_column
        columns = list(dict.fromkeys([*records.schema.names, *([time_column] if self._options.is_bounded else [])]))
        newest_first = self._options.order == "newest"
        return Surroundings(
            self._options.context,
            columns,
            matches,
            self._numbers,
            lambda others: places_of(others, newest_first=newest_first, column=time_column),
        )

    def _is_screened_out(self, unit: Unit) -> bool:
        """Whether the raw bytes of the batch show that nothing in it matches.

        This pays off only if most batches are opened for nothing: in a scan, or if the sketch does not help.
        """
        report = self.report
        wasteful = report.batches_for_nothing >= report.batches_opened // 2 and report.batches_pruned_by_sketch == 0
        if not (wasteful or report.batches_for_nothing > max(4, report.batches_opened // 2)):
            return False
        if not isinstance(unit.segment, SealedSegment):
            return False
        screen = self._screens[self._where(unit.segment) != "anywhere"]
        if screen is None:
            return False
        started = time.perf_counter()
        page = unit.segment.page(unit.batch, CONTENT)
        read = time.perf_counter()
        if page is None or screen(page):
            report.add_seconds("screen", time.perf_counter() - started)
            return False
        report.add_seconds("read", read - started)
        report.add_seconds("filter", time.perf_counter() - read)
        stored = unit.segment.stored_bytes(unit.batch, (CONTENT,))
        report.add(batches_opened=1, batches_for_nothing=1, bytes_read=stored)
        return True

    def _check_times(self, records: pa.Table, mask: Mask, name: str) -> None:
        """Report a file whose time column has no times, but text, say: its records cannot be bounded by time."""
        column = self._options.time_column
        if column not in records.schema.names or has_times(records.schema, column) or not mask.any():
            return
        kind = records.schema.field(column).type
        if not pa.types.is_null(kind):
            self.refuse(
                UnreadableDataError(
                    name,
                    section=f"column {column}",
                    expected="times",
                    found=str(kind),
                    advice="a time range leaves its records out; search without a range, or give the files one type",
                )
            )

    def _time_mask(self, records: pa.Table) -> Mask:
        if not has_times(records.schema, self._options.time_column):
            return np.zeros(records.num_rows, bool)
        times = microseconds_of(records.column(self._options.time_column))
        numbers = np.asarray(times.fill_null(FOREVER[0]))
        inside = (numbers >= self._options.since) & is_before(numbers, self._options.until)
        return inside & ~np.asarray(times.is_null()) if times.null_count else inside

    def _aligned(self, records: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
        """The records with the columns and types of the result; columns that the segment lacks are null."""
        columns: list[pa.Array | pa.ChunkedArray] = []
        for wanted in schema:
            if wanted.name not in records.schema.names:
                columns.append(pa.nulls(records.num_rows, wanted.type))
                continue
            column = records.column(wanted.name)
            try:
                columns.append(column if column.type == wanted.type else column.cast(wanted.type))
            except pa.ArrowException:
                self.refuse(_other_type(name, wanted, column.type), costs_records=False)
                columns.append(pa.nulls(records.num_rows, wanted.type))
        return pa.Table.from_arrays(columns, schema=schema)

    def _matcher(self, segment: Searchable) -> Matcher:
        key = segment.schema, self._where(segment)
        matcher = self._matchers.get(key)
        if matcher is None:
            matcher = self._matchers[key] = Matcher(narrowed(self._predicate, key[1]), segment.schema)
        return matcher


def _other_type(name: str, wanted: pa.Field, found: pa.DataType) -> UnreadableDataError:
    return UnreadableDataError(
        name,
        section=f"column {wanted.name}",
        expected=f"values that can be cast to {wanted.type}",
        found=str(found),
        advice="the values are left out of the result; name other columns, or give the files one type",
    )
