"""Batches and results in the order of time, without reading all of them first."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.query.planning import SegmentPlan
from coprlake.records import TIMESTAMP
from coprlake.segment.searchable import ALWAYS, Searchable

Order: TypeAlias = Literal["any", "newest", "oldest"]
ORDERS: Final = ("any", "newest", "oldest")


class Unit(NamedTuple):
    """One batch to open.

    Attributes:
        bound: no record of this batch, nor of any that follows, comes before this place in the asked order. Places
            are microseconds, negated for newest first.
    """

    segment: Searchable
    batch: int
    bound: int
    first_time: int
    last_time: int


PlanOf: TypeAlias = Callable[[Searchable], SegmentPlan | None]


def units_in_any_order(segments: Iterable[Searchable], plan_of: PlanOf) -> Iterator[Unit]:
    """Segment by segment: each is planned when its turn comes."""
    for segment in segments:
        plan = plan_of(segment)
        if plan is None:
            continue
        first, last = (plan.first_times, plan.last_times) if plan.has_times else (None, None)
        for place, batch in enumerate(plan.batches.tolist()):
            own = ALWAYS if first is None or last is None else (int(first[place]), int(last[place]))
            yield Unit(segment, batch, 0, *own)


def units_by_time(segments: Iterable[Searchable], plan_of: PlanOf, *, newest_first: bool) -> Iterator[Unit]:
    """By the time at which a batch can have its first result; a segment is planned when it may hold the next."""
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
    """Where the segment's first result can be; what the log does not know comes first."""
    entry = getattr(segment, "entry", None)
    first, last = (entry.first_time, entry.latest_time) if entry else ALWAYS
    return _place(last if newest_first else first, newest_first)


def _place(time: int, newest_first: bool) -> int:
    return -time if newest_first else time


class TimeSorter:
    """Takes results batch by batch, gives them back in order as soon as nothing can come before them."""

    def __init__(self, *, newest_first: bool) -> None:
        self._newest_first = newest_first
        self._waiting: list[pa.Table] = []

    def add(self, records: pa.Table) -> None:
        """Take the results of one batch."""
        self._waiting.append(records)

    def ready(self, bound: int | None) -> pa.Table | None:
        """The results that come before `bound`, in order; all of them for None."""
        if not self._waiting:
            return None
        records = pa.concat_tables(self._waiting)
        times = records.column(TIMESTAMP).cast(pa.timestamp("us")).cast(pa.int64())
        direction = "descending" if self._newest_first else "ascending"
        order = pc.sort_indices(times, sort_keys=[("", direction)])  # missing times come last
        if bound is None:
            self._waiting = []
            return records.take(order)
        sign = -1 if self._newest_first else 1
        places = np.asarray(times.take(order).drop_null()) * sign
        count = int(np.searchsorted(places, bound, side="left"))
        if count == 0:
            self._waiting = [records]
            return None
        self._waiting = [records.take(order[count:])]
        return records.take(order[:count])
