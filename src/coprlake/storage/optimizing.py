"""Merges small segments into large ones, in order of time, and says which ones there are to merge."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from coprlake.config import OPTIMIZED_LEVEL, OPTIMIZED_SEGMENT_BYTES
from coprlake.deprecation import Renamed
from coprlake.errors import ConflictError
from coprlake.segment.mutable import SegmentReport
from coprlake.segment.sealed import SealedSegment
from coprlake.segment.sidecar import IndexPlan
from coprlake.storage.log.actions import NewFile
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.storage.merging import (
    Group,
    Merged,
    estimated_raw_bytes,
    layout_of,
    merge,
    opened_merged,
    packed,
)
from coprlake.storage.partitioning import log_text
from coprlake.storage.progress import Progress
from coprlake.storage.snapshot import Snapshot
from coprlake.summary import Report

COMMIT_BYTES = 256 * 1024 * 1024
COMMIT_SECONDS = 30
"""Merged segments are committed together until they have so much raw text, or took so long: a commit costs as much as
merging several small segments, and a conflict or a crash should lose little work."""


@dataclass(repr=False)
class OptimizeReport(Report):
    """What `optimize` did."""

    always_shown = ("version", "segments_before", "segments_after")

    version: int | None = None
    segments_before: int = 0
    segments_after: int = 0
    merged: int = 0
    written: int = 0
    tokenized_again: int = 0
    data_bytes_before: int = 0
    data_bytes_after: int = 0
    index_bytes_before: int = 0
    index_bytes_after: int = 0
    conflicts: int = 0  # groups that somebody else changed meanwhile; they stay as they are
    seconds: float = 0.0
    segments: list[SegmentReport] = field(default_factory=list)

    sketch_bytes_before = Renamed("index_bytes_before")
    sketch_bytes_after = Renamed("index_bytes_after")

    def add(self, gone: Sequence[SealedSegment], merged: Sequence[Merged]) -> None:
        """Count segments that were replaced with others."""
        self.merged += len(gone)
        self.written += len(merged)
        self.segments_after -= len(gone) - len(merged)
        self.tokenized_again += sum(one.tokenized_again for one in merged)
        self.data_bytes_before += sum(segment.entry.data_bytes for segment in gone)
        self.data_bytes_after += sum(one.sealed.data_bytes for one in merged)
        self.index_bytes_before += sum(segment.sidecar.file_bytes for segment in gone if segment.sidecar)
        self.index_bytes_after += sum(one.sealed.index_bytes for one in merged)
        self.segments += [one.sealed for one in merged]

    def followed_by(self, other: "OptimizeReport") -> "OptimizeReport":
        """Both reports as one, where `other` began with what this one left."""
        self.version = self.version if other.version is None else other.version
        self.segments_after = other.segments_after
        for name in ("merged", "written", "tokenized_again", "conflicts", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("data_bytes", "index_bytes"):
            gained = getattr(other, f"{name}_after") - getattr(other, f"{name}_before")
            setattr(self, f"{name}_after", getattr(self, f"{name}_after") + gained)
        self.segments += other.segments
        return self


def groups_to_merge(
    segments: Iterable[SealedSegment], target_bytes: int = OPTIMIZED_SEGMENT_BYTES, *, full: bool = False
) -> list[list[SealedSegment]]:
    """Groups of segments of one partition, next to each other in time, that together have about the target size.

    Without partitions, what is left has at most one segment smaller than half the target: a group ends when the next
    small segment would make it too large.

    Args:
        segments: those of a table.
        target_bytes: the raw size of a merged segment; segments of half of it are large enough.
        full: take every segment, also those that are large enough.
    """
    by_partition: dict[tuple[tuple[str, object], ...], list[SealedSegment]] = {}
    for segment in segments:
        if full or estimated_raw_bytes(segment) < target_bytes // 2:
            by_partition.setdefault(tuple(segment.entry.partition.items()), []).append(segment)
    groups = [group for members in by_partition.values() for group in packed(members, target_bytes)]
    return [group for group in groups if full or len(group) > 1]


class MergePlan:
    """What is left to merge while segments of a table are replaced with merged ones.

    A merged segment has fewer batches than its parts, so it may fit to another one where they did not: `groups` is
    asked until it has none. Segments that others append meanwhile are left for the next time.

    Args:
        segments: those of the table.
        target_bytes: see `groups_to_merge`.
        full: rewrite every segment once.
    """

    def __init__(self, segments: Iterable[SealedSegment], target_bytes: int, *, full: bool) -> None:
        self._segments = {segment.name: segment for segment in segments}
        self._target_bytes = target_bytes
        self._full = full

    def groups(self) -> list[list[SealedSegment]]:
        """The groups to merge next."""
        found = groups_to_merge(self._segments.values(), self._target_bytes, full=self._full)
        self._full = False
        return found

    def drop(self, group: Group) -> None:
        """Forget segments that are not in the table any more, or that somebody else has changed."""
        for segment in group:
            self._segments.pop(segment.name, None)

    def replace(self, group: Group, segment: SealedSegment) -> None:
        """Note that a group has become one segment."""
        self.drop(group)
        self._segments[segment.name] = segment


def optimize(
    log: DeltaLog,
    snapshot: Snapshot,
    *,
    target_bytes: int = OPTIMIZED_SEGMENT_BYTES,
    level: int = OPTIMIZED_LEVEL,
    full: bool = False,
    plan: IndexPlan | None = None,
    progress: Progress | None = None,
) -> OptimizeReport:
    """Merge small segments of each partition, neighbours in time; afterwards `groups_to_merge` finds nothing.

    Segments that another writer changes meanwhile are left as they are and counted as conflicts.

    Args:
        log: the table's log.
        snapshot: its segments at the newest version.
        target_bytes: the raw size of a merged segment.
        level: zstd level of the new data files.
        full: rewrite every segment, even those that are large enough, and keep no whole fingerprints.
        plan: how to index segments that have to be tokenized again, because they keep no whole fingerprints or
            were indexed with other rules.
        progress: see `Progress`.
    """
    started = time.perf_counter()
    report = OptimizeReport(segments_before=len(snapshot.segments), segments_after=len(snapshot.segments))
    index_plan = plan or IndexPlan()

    def merged_one(group: Group) -> Merged:
        layout = layout_of(log.partition_by, group)
        return merge(log.folder, layout, group, level, index_plan, full=full, progress=progress)

    left = MergePlan(snapshot.segments, target_bytes, full=full)
    while groups := left.groups():
        _merge_all(log, groups, merged_one, left, report)
    report.seconds = time.perf_counter() - started
    return report


def _merge_all(
    log: DeltaLog,
    groups: Sequence[Group],
    merged_one: Callable[[Group], Merged],
    left: MergePlan,
    report: OptimizeReport,
) -> None:
    """Merge all groups, with a commit now and then."""
    waiting: list[tuple[Group, Merged]] = []
    size, began = 0, time.monotonic()
    try:
        for group in groups:
            merged = merged_one(group)
            waiting.append((group, merged))
            size += merged.sealed.raw_bytes
            if size >= COMMIT_BYTES or time.monotonic() - began >= COMMIT_SECONDS:
                due, waiting = waiting, []
                commit_groups(log, due, left, report)
                size, began = 0, time.monotonic()
    except BaseException:
        log.discard([merged.sealed.name for _, merged in waiting])
        raise
    if waiting:
        commit_groups(log, waiting, left, report)


def commit_groups(
    log: DeltaLog, all_merged: Sequence[tuple[Group, Merged]], left: MergePlan, report: OptimizeReport
) -> None:
    """Replace groups with the segments merged from them, all at once; one by one if others changed some of them.

    Groups that others changed are counted as conflicts. Removes the files that did not join the table.
    """
    try:
        _commit_merged(log, all_merged, left, report)
    except ConflictError:
        if len(all_merged) == 1:
            report.conflicts += 1
            left.drop(all_merged[0][0])
            log.discard([one.sealed.name for _, one in all_merged])
            return
        for number, pair in enumerate(all_merged):
            try:
                commit_groups(log, [pair], left, report)
            except BaseException:
                log.discard([one.sealed.name for _, one in all_merged[number + 1 :]])
                raise
    except BaseException:
        log.discard([one.sealed.name for _, one in all_merged])
        raise


def _commit_merged(
    log: DeltaLog, all_merged: Sequence[tuple[Group, Merged]], left: MergePlan, report: OptimizeReport
) -> None:
    files = []
    for group, merged in all_merged:
        partition = {name: log_text(value) for name, value in group[0].entry.partition.items()}
        files.append(NewFile(merged.sealed, partition))
    gone = [segment for group, _ in all_merged for segment in group]
    note = {"operation": "optimize", "merged": len(gone)}
    report.version = log.commit(files, [segment.entry for segment in gone], note=note, data_change=False)
    report.add(gone, [merged for _, merged in all_merged])
    for group, merged in all_merged:
        left.replace(group, opened_merged(log.folder, group, merged))
