"""Orders batches and results by time, without reading all of them first."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from coprlake.kernel import I64Array
from coprlake.query.planning import SegmentPlan
from coprlake.records import TIMESTAMP
from coprlake.segment.searchable import ALWAYS, Searchable, has_times, microseconds_of

Order: TypeAlias = Literal["any", "newest", "oldest"]
ORDERS: Final = ("any", "newest", "oldest")
LAST: Final = np.iinfo(np.int64).max
"""The place of records without a time."""


class Unit(NamedTuple):
    """One batch to open.

    Attributes:
        bound: no record of this batch, nor of any that follows, comes before this place in the requested order.
            Places are microseconds, with all bits inverted for newest first.
    """

    segment: Searchable
    batch: int
    bound: int
    first_time: int
    last_time: int


PlanOf: TypeAlias = Callable[[Searchable], SegmentPlan | None]


def units_in_any_order(segments: Iterable[Searchable], plan_of: PlanOf) -> Iterator[Unit]:
    """Yield batches segment by segment; each segment is planned when its turn comes."""
    for segment in segments:
        plan = plan_of(segment)
        if plan is None:
            continue
        first, last = (plan.first_times, plan.last_times) if plan.has_times else (None, None)
        for place, batch in enumerate(plan.batches.tolist()):
            own = ALWAYS if first is None or last is None else (int(first[place]), int(last[place]))
            yield Unit(segment, batch, 0, *own)


def units_by_time(segments: Iterable[Searchable], plan_of: PlanOf, *, newest_first: bool) -> Iterator[Unit]:
    """Yield batches by the earliest possible place of a result; a segment is planned when it may hold the next one."""
    waiting = sorted(((_segment_bound(s, newest_first), i, s) for i, s in enumerate(segments)), reverse=True)
    ready: list[tuple[int, int, int, Unit]] = []
    while waiting or ready:
        if waiting and (not ready or waiting[-1][0] <= ready[0][0]):
            _, number, segment = waiting.pop()
            plan = plan_of(segment)
            for place, batch in enumerate(plan.batches.tolist() if plan else ()):
                assert plan is not None
                first, last = int(plan.first_times[place]), int(plan.last_times[place])
                bound = _place(last, newest_first) if newest_first else _place(first, newest_first)
                heapq.heappush(ready, (bound, number, batch, Unit(segment, batch, bound, first, last)))
            continue
        yield heapq.heappop(ready)[3]


def _segment_bound(segment: Searchable, newest_first: bool) -> int:
    """The first place that a result of the segment can have; segments whose times the log lacks come first."""
    entry = getattr(segment, "entry", None)
    first, last = (entry.first_time, entry.latest_time) if entry else ALWAYS
    return _place(last if newest_first else first, newest_first)


def _place(time: int, newest_first: bool) -> int:
    return ~time if newest_first else time  # unlike -time, this always fits into 64 bits


def places_of(records: pa.Table, *, newest_first: bool, column: str = TIMESTAMP) -> I64Array:
    """The place of each record in the order; those without a time come last."""
    if not has_times(records.schema, column):
        return np.full(records.num_rows, LAST, np.int64)
    times = microseconds_of(records.column(column))
    places = np.asarray(times.fill_null(0))
    places = ~places if newest_first else places
    return np.where(np.asarray(times.is_null()), LAST, places) if times.null_count else places


class TimeSorter:
    """Takes results batch by batch and returns them in order as soon as nothing can come before them.

    Each batch is sorted once; waiting results are merged only as far as they can be returned.

    Args:
        limit: the maximum number of results; no more are kept of each batch.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._waiting: list[tuple[pa.Table, I64Array]] = []

    def add(self, records: pa.Table, places: I64Array) -> None:
        """Add the results of one batch, with their places in the order; equal places keep their order."""
        order = np.argsort(places, kind="stable")
        records = records.take(pa.array(order))
        if self._limit is not None:
            records, order = records.slice(0, self._limit), order[: self._limit]
        if records.num_rows:
            self._waiting.append((records, places[order]))

    def ready(self, bound: int | None) -> pa.Table | None:
        """Remove and return the results before `bound`, in order; all of them if it is None."""
        due, rest = [], []
        for records, places in self._waiting:
            count = len(places) if bound is None else int(np.searchsorted(places, bound, side="left"))
            if count:
                due.append((records.slice(0, count), places[:count]))
            if count < len(places):
                rest.append((records.slice(count), places[count:]) if count else (records, places))
        self._waiting = rest
        if not due:
            return None
        order = np.argsort(np.concatenate([places for _, places in due]), kind="stable")
        return pa.concat_tables([records for records, _ in due]).take(pa.array(order))
