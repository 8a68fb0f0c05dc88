"""Plans which segments and batches a search must open."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coprlake.errors import NotFoundError
from coprlake.kernel import I64Array
from coprlake.predicate.deciding.partitions import decide, fields_of
from coprlake.predicate.narrowing.claims import Necessary
from coprlake.predicate.narrowing.demand import ALWAYS_POSSIBLE, NEVER, NO_SKETCHES, Demand, demand_of
from coprlake.query.report import SearchReport
from coprlake.records import TIMESTAMP
from coprlake.segment.searchable import Searchable, is_before
from coprlake.sketch.algebra import TokenProgram
from coprlake.storage.snapshot import Snapshot
from coprlake.tokens.profile import Profile

FOREVER = (np.iinfo(np.int64).min, np.iinfo(np.int64).max)


class View(NamedTuple):
    """The data that a search covers: the segments of a version, and uncommitted ones of writers in this process."""

    snapshot: Snapshot
    uncommitted: Sequence[Searchable] = ()


@dataclass
class SegmentPlan:
    """The batches of one segment to open, with their times."""

    segment: Searchable
    batches: I64Array
    first_times: I64Array
    last_times: I64Array
    has_times: bool = True


class Planner:
    """Plans one search; programs are compiled once for all segments with the same profile.

    Args:
        sought: the condition that every match meets.
        since: microseconds; earlier records are left out.
        until: microseconds; records of this time and later are left out.
        needs_times: whether the plan needs the times of batches, for sorting; a time range needs them anyway.
        use_sketches: False to prune only by time and partition.
        strict: whether a damaged sidecar ends the search.
        time_column: the column that `since` and `until` refer to; the log has bounds only for the timestamp.
    """

    def __init__(
        self,
        sought: Necessary,
        since: int,
        until: int,
        *,
        needs_times: bool,
        use_sketches: bool,
        strict: bool,
        report: SearchReport,
        time_column: str = TIMESTAMP,
    ) -> None:
        self._predicate = sought.predicate
        self._since = since
        self._until = until
        self._is_bounded = (since, until) != FOREVER
        self._needs_times = needs_times or self._is_bounded
        self._use_sketches = use_sketches
        self._strict = strict
        self._time_column = time_column
        self._report = report
        self._planned: dict[Profile, Demand] = {}

    def segments(self, view: View) -> list[Searchable]:
        """The segments that may match, pruned by time, partition and sketch."""
        report = self._report
        snapshot = view.snapshot
        report.segments = len(snapshot.segments) + len(view.uncommitted)
        for problem in snapshot.missing:
            if self._strict:
                raise problem
            report.problem(str(problem))
            report.is_incomplete = True
        chosen = self._by_time(snapshot)
        chosen = self._by_partition(snapshot, chosen)
        if len(snapshot.segments) and (chosen is None or len(chosen)):
            found = snapshot.verdicts(chosen, self.program)
            if not any(found.tobytes()):  # CANNOT is 0; this is faster than NumPy
                report.segments_pruned_by_sketch += len(found)
                return list(view.uncommitted)
            left = np.flatnonzero(found)
            report.segments_pruned_by_sketch += len(found) - len(left)
            segments = [snapshot.segments[i] for i in (left if chosen is None else chosen[left]).tolist()]
        else:
            segments = []
        for segment in segments:
            if segment.sidecar is None:
                report.segments_without_sketch += 1
                if self._strict and not isinstance(segment.sidecar_problem, NotFoundError | None):
                    raise segment.sidecar_problem
                report.problem(str(segment.sidecar_problem))
        return [*segments, *view.uncommitted]

    def batches(self, segment: Searchable) -> SegmentPlan | None:
        """The batches of one segment that may match; None if there are none."""
        report = self._report
        batches = self.sketched_batches(segment)
        if not len(batches):
            return None
        if not self._needs_times:
            return SegmentPlan(segment, batches, batches, batches, has_times=False)
        first, last = segment.times(self._time_column)
        inside = (last[batches] >= self._since) & is_before(first[batches], self._until)
        report.add(batches_pruned_by_time=int(len(batches) - inside.sum()))
        batches = batches[inside]
        return SegmentPlan(segment, batches, first[batches], last[batches]) if len(batches) else None

    def sketched_batches(self, segment: Searchable) -> I64Array:
        """The batches of one segment that its sketch leaves, regardless of time."""
        demand = self._demand(segment.profile)
        if demand.kind == NEVER:
            batches = np.zeros(0, np.int64)
        elif demand.kind == ALWAYS_POSSIBLE:
            batches = np.arange(segment.batch_count)
        else:
            batches = segment.candidates(demand.program)
        count = segment.batch_count
        self._report.add(batches=count, batches_pruned_by_sketch=count - len(batches))
        return batches

    def takes_all(self, profile: Profile) -> bool:
        """Whether sketches with this profile rule nothing out."""
        return self._demand(profile).kind == ALWAYS_POSSIBLE

    def program(self, profile: Profile) -> TokenProgram:
        """The program to run on sketches with this profile."""
        return self._demand(profile).program

    def _demand(self, profile: Profile) -> Demand:
        demand = self._planned.get(profile)
        if demand is None:
            demand = demand_of(self._predicate, profile) if self._use_sketches else NO_SKETCHES
            for note in demand.notes:
                self._report.note(note)
            self._planned[profile] = demand
        return demand

    def _by_time(self, snapshot: Snapshot) -> I64Array | None:
        """The segments that may have records in the time range; None for all of them."""
        if not self._is_bounded or self._time_column != TIMESTAMP:
            return None
        inside = (snapshot.last_times >= self._since) & is_before(snapshot.first_times, self._until)
        self._report.segments_pruned_by_time += int(len(inside) - inside.sum())
        return np.flatnonzero(inside)

    def _by_partition(self, snapshot: Snapshot, chosen: I64Array | None) -> I64Array | None:
        """The chosen segments that their partition does not rule out."""
        field = getattr(self._predicate, "field", None)  # only leaves have one
        if field is None and fields_of(self._predicate).isdisjoint(snapshot.partition_by):
            return chosen
        if field is not None and field not in snapshot.partition_by:
            return chosen
        numbers = range(len(snapshot.segments)) if chosen is None else chosen.tolist()
        verdicts: dict[tuple[tuple[str, str | None], ...], bool] = {}
        left = []
        for number in numbers:
            segment = snapshot.segments[number]
            partition = tuple(segment.entry.partition.items())
            if partition not in verdicts:
                verdicts[partition] = decide(self._predicate, segment.constants) is not False
            if verdicts[partition]:
                left.append(number)
        self._report.segments_pruned_by_partition += len(numbers) - len(left)
        return chosen if len(left) == len(numbers) else np.array(left, np.int64)
