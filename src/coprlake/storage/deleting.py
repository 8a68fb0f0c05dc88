"""Deleting records: one commit drops whole files from the log and replaces others with copies without the records.

Searches no longer find deleted records once the commit is made. The bytes are gone when `vacuum` has removed the old
files; until then the table's earlier versions can still be read. The status of a deletion says how far it has come.
"""

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

import numpy as np
import pyarrow as pa

from coprlake.errors import ConflictError
from coprlake.files import Folder
from coprlake.predicate.deciding.finding import Mask
from coprlake.predicate.deciding.matching import Matcher
from coprlake.predicate.deciding.partitions import decide
from coprlake.predicate.narrowing.required import required_tokens
from coprlake.predicate.predicates import Predicate
from coprlake.records import TIMESTAMP
from coprlake.segment.mutable import MutableSegment, SegmentOptions
from coprlake.segment.sealed import SealedSegment
from coprlake.segment.searchable import ALWAYS, has_times, is_before, microseconds_of
from coprlake.sketch.algebra import ANYTHING, compile_expression
from coprlake.storage.log.actions import NewFile
from coprlake.storage.log.commits import NOTE
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.storage.partitioning import log_text
from coprlake.storage.progress import Progress
from coprlake.storage.snapshot import Snapshot
from coprlake.summary import Report

ATTEMPTS = 20
"""How often a deletion is tried; `optimize`, which it may conflict with, gives up at the first conflict."""


@dataclass(frozen=True)
class Doomed:
    """The records to delete: those that match the predicate, in a time range (microseconds, end excluded)."""

    predicate: Predicate
    since: int = ALWAYS[0]
    until: int = ALWAYS[1]
    time_column: str = TIMESTAMP

    def __str__(self) -> str:
        parts = [str(self.predicate)]
        if self.since != ALWAYS[0]:
            parts.append(f"since {np.datetime64(self.since, 'us')}Z")
        if self.until != ALWAYS[1]:
            parts.append(f"until {np.datetime64(self.until, 'us')}Z")
        return " ".join(parts)

    def is_whole(self, segment: SealedSegment) -> bool:
        """Whether all records of the segment are deleted, judging by the log."""
        entry = segment.entry
        known = self.time_column == TIMESTAMP and entry.has_all_times
        known = known and ALWAYS[0] < entry.first_time <= entry.latest_time < ALWAYS[1]
        unbounded = (self.since, self.until) == ALWAYS
        inside = unbounded or (known and self.since <= entry.first_time and entry.latest_time < self.until)
        return inside and decide(self.predicate, segment.constants) is True

    def may_touch(self, segment: SealedSegment) -> bool:
        """Whether some record of the segment may be deleted, judging by the log and the sketch."""
        entry = segment.entry
        by_log = self.time_column == TIMESTAMP  # the log says nothing about other columns
        if by_log and (entry.latest_time < self.since or not is_before(entry.first_time, self.until)):
            return False
        if decide(self.predicate, segment.constants) is False:
            return False
        expression = required_tokens(self.predicate, segment.profile).expression
        return expression == ANYTHING or len(segment.candidates(compile_expression(expression))) > 0

    def may_touch_batches(self, segment: SealedSegment) -> Mask:
        """Whether some record of each batch may be deleted, judging by the footer and the sketch."""
        first, last = segment.times(self.time_column)
        inside: Mask = (last >= self.since) & is_before(first, self.until)
        expression = required_tokens(self.predicate, segment.profile).expression
        if expression != ANYTHING:
            named = np.zeros(len(inside), bool)
            named[segment.candidates(compile_expression(expression))] = True
            inside &= named
        return inside

    def mask(self, matcher: Matcher, records: pa.Table) -> Mask:
        """Whether each record is deleted."""
        mask = matcher.mask(records)
        if (self.since, self.until) != ALWAYS:
            if not has_times(records.schema, self.time_column):
                return np.zeros(records.num_rows, bool)
            times = microseconds_of(records.column(self.time_column))
            numbers = np.asarray(times.fill_null(0))
            mask = mask & (numbers >= self.since) & is_before(numbers, self.until) & ~np.asarray(times.is_null())
        return mask


@dataclass(repr=False)
class DeleteReport(Report):
    """What `delete` did."""

    always_shown = ("version", "rows")

    version: int | None = None
    rows: int = 0
    files_dropped: int = 0
    files_rewritten: int = 0
    batches_read: int = 0  # to decide which of their records go
    bytes_before: int = 0
    bytes_after: int = 0


@dataclass(repr=False)
class DeletionStatus(Report):
    """How far a deletion is: ``hidden`` from every search, or ``erased`` from the disk as well."""

    always_shown = ("rows",)

    version: int
    time: datetime
    what: str
    rows: int
    state: Literal["hidden", "erased"]
    bytes_left: int = 0
    files_left: list[str] = field(default_factory=list)


def delete(
    log: DeltaLog,
    snapshot_of: Callable[[], Snapshot],
    doomed: Doomed,
    options: SegmentOptions,
    progress: Progress | None = None,
) -> DeleteReport:
    """Delete records; starts over if another writer changes the same files in the meantime.

    Args:
        log: the table's log.
        snapshot_of: gives the newest snapshot.
        doomed: the records to delete.
        options: how the remaining records are written.
        progress: see `Progress`.
    """
    for attempt in range(ATTEMPTS):
        snapshot = snapshot_of()
        try:
            return _delete_once(log, snapshot.segments, doomed, options, progress)
        except ConflictError:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _delete_once(
    log: DeltaLog,
    segments: Sequence[SealedSegment],
    doomed: Doomed,
    options: SegmentOptions,
    progress: Progress | None,
) -> DeleteReport:
    report = DeleteReport()
    removed: list[SealedSegment] = []
    added: list[NewFile] = []
    try:
        for segment in segments:
            if doomed.is_whole(segment):
                report.rows += segment.footer.row_count if segment.entry.row_count is None else segment.entry.row_count
                report.files_dropped += 1
                removed.append(segment)
            elif doomed.may_touch(segment):
                _rewrite(log.folder, segment, doomed, options, report, removed, added)
            if progress is not None:
                progress(segment.entry.data_bytes)
        if not removed:
            return report
        report.bytes_before = sum(segment.entry.data_bytes for segment in removed)
        report.bytes_after = sum(file.report.data_bytes for file in added)
        note = {
            "operation": "delete",
            "what": str(doomed),
            "rows": report.rows,
            "files": [segment.name for segment in removed],
        }
        report.version = log.commit(added, [segment.entry for segment in removed], note=note)
        return report
    except BaseException:
        log.discard([file.report.name for file in added])
        raise


def _rewrite(
    folder: Folder,
    segment: SealedSegment,
    doomed: Doomed,
    options: SegmentOptions,
    report: DeleteReport,
    removed: list[SealedSegment],
    added: list[NewFile],
) -> None:
    """Copy what remains of a segment; does nothing if none of its records is deleted."""
    matcher = Matcher(doomed.predicate, segment.schema)
    times = [doomed.time_column] if doomed.time_column in segment.schema.names else []
    needed = list(dict.fromkeys([*matcher.columns, *times]))
    needed = needed or segment.schema.names[:1]
    masks: list[Mask] = []
    for batch, may_touch in enumerate(doomed.may_touch_batches(segment).tolist()):
        if may_touch:
            masks.append(doomed.mask(matcher, segment.read(batch, needed)))
            report.batches_read += 1
        else:
            masks.append(np.zeros(segment.footer.rows_of(batch), bool))
    count = sum(int(mask.sum()) for mask in masks)
    if count == 0:
        return
    report.rows += count
    removed.append(segment)
    if count == sum(map(len, masks)):
        report.files_dropped += 1
        return
    stored = [name for name in segment.schema.names if name not in segment.constants]
    schema = pa.schema([segment.schema.field(name) for name in stored])
    folder_name, slash, own_name = segment.name.rpartition("/")
    name = f"{folder_name}{slash}{own_name[:16]}-{uuid.uuid4().hex}.parquet"  # keeps its place in name order
    copy = MutableSegment(folder, name, schema, options, segment.constants)
    try:
        for batch, mask in enumerate(masks):
            for part in segment.read(batch, stored).filter(pa.array(~mask)).cast(schema).to_batches():
                copy.append(part)
        sealed = copy.seal()
    except BaseException:
        copy.abandon()
        raise
    report.files_rewritten += 1
    partition = {name: log_text(value) for name, value in segment.entry.partition.items()}
    added.append(NewFile(sealed, partition))


def deletions(log: DeltaLog) -> list[DeletionStatus]:
    """All deletions that are still in the log, newest first, and how far each has come."""
    found = []
    for commit in log.history():
        note = json.loads(commit.get(NOTE) or "{}")
        if note.get("operation") != "delete":
            continue
        left = [entry for name in note["files"] if (entry := log.folder.entry(name)) is not None]
        found.append(
            DeletionStatus(
                version=commit["version"],
                time=datetime.fromtimestamp(commit["timestamp"] / 1000, UTC),
                what=note["what"],
                rows=note["rows"],
                state="hidden" if left else "erased",
                bytes_left=sum(entry.size_bytes for entry in left),
                files_left=[entry.name for entry in left],
            )
        )
    return found
