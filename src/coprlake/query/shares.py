"""Splits a search into shares: the planner prunes once, then many processes each read their own share.

Only the planner uses the sketches; a reader of a share opens only data files. A share names the batches of each file,
so a needle in thousands of segments is one small share, and a scan has as many shares as its size requires.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from coprlake.errors import NotFoundError
from coprlake.files import Folder
from coprlake.kernel import I64Array
from coprlake.predicate.narrowing.claims import Exact, Necessary
from coprlake.query.opening import BatchOpener
from coprlake.query.options import SearchOptions
from coprlake.query.ordering import Unit
from coprlake.query.planning import FOREVER, Planner, View
from coprlake.query.report import SearchReport
from coprlake.segment.sealed import SealedSegment, SegmentEntry
from coprlake.segment.searchable import is_before
from coprlake.storage.partitioning import constants
from coprlake.storage.snapshot import Snapshot


@dataclass(frozen=True)
class FilePiece:
    """Batches of one data file.

    Attributes:
        entry: the file.
        batches: their numbers; None for all of them.
        batch_count: the number of batches in the file by its sidecar; if the file differs, `batches` is ignored.
        part: the number of this piece, and the number of pieces of the file.
        data_bytes: the approximate compressed size.
    """

    entry: SegmentEntry
    batches: tuple[int, ...] | None = None
    batch_count: int = 0
    part: tuple[int, int] = (0, 1)
    data_bytes: int = 0


@dataclass(frozen=True)
class Share:
    """The part of a search that one process reads; its matches are final if `sought` is exact."""

    uri: str
    table_schema: pa.Schema
    schema: pa.Schema
    sought: Exact | Necessary
    options: SearchOptions
    pieces: tuple[FilePiece, ...] = ()

    @property
    def data_bytes(self) -> int:
        """The approximate compressed size of its batches."""
        return sum(piece.data_bytes for piece in self.pieces)


@dataclass
class SharePlan:
    """What pruning leaves of a table.

    Attributes:
        pieces: the batches that may hold matches.
        data_bytes: their compressed size.
        table_bytes: the compressed size of the whole table.
        report: what was pruned, and by what.
    """

    pieces: list[FilePiece] = field(default_factory=list)
    data_bytes: int = 0
    table_bytes: int = 0
    report: SearchReport = field(default_factory=SearchReport)


def plan(snapshot: Snapshot, sought: Necessary, options: SearchOptions) -> SharePlan:
    """Prune a table by time and partition, then by sketches, without opening data files.

    Args:
        snapshot: the table.
        sought: the condition that every match meets.
        options: only the time range, `use_sketches` and `strict` matter here.
    """
    found = SharePlan(report=SearchReport(predicate=sought.predicate))
    report = found.report
    found.table_bytes = sum(segment.entry.data_bytes for segment in snapshot.segments)
    planner = Planner(
        sought,
        options.since,
        options.until,
        needs_times=False,
        use_sketches=options.use_sketches,
        strict=options.strict,
        report=report,
        time_column=options.time_column,
    )
    with report.phase("prune"):
        for segment in planner.segments(View(snapshot)):
            assert isinstance(segment, SealedSegment)
            piece = _piece(planner, segment)
            if piece is not None:
                found.pieces.append(piece)
                found.data_bytes += piece.data_bytes
    return found


def _piece(planner: Planner, segment: SealedSegment) -> FilePiece | None:
    entry = segment.entry
    if segment.sidecar is None:
        return FilePiece(entry, data_bytes=entry.data_bytes)
    if planner.takes_all(segment.profile):
        return FilePiece(entry, batch_count=segment.batch_count, data_bytes=entry.data_bytes)
    batches = planner.sketched_batches(segment)
    if not len(batches):
        return None
    share = math.ceil(entry.data_bytes * len(batches) / max(1, segment.batch_count))
    return FilePiece(entry, tuple(batches.tolist()), segment.batch_count, data_bytes=share)


def divide(pieces: Sequence[FilePiece], share_bytes: int) -> list[tuple[FilePiece, ...]]:
    """Group the pieces, in order, into shares of about `share_bytes`; large pieces are cut."""
    total = sum(piece.data_bytes for piece in pieces)
    count = max(1, math.ceil(total / share_bytes))
    even = max(1, math.ceil(total / count))
    groups: list[tuple[FilePiece, ...]] = []
    group: list[FilePiece] = []
    room = even
    for piece in pieces:
        for part in _cut(piece, even):
            if group and part.data_bytes > room + even // 4:
                groups.append(tuple(group))
                group, room = [], even
            group.append(part)
            room -= part.data_bytes
    if group:
        groups.append(tuple(group))
    return groups


def _cut(piece: FilePiece, target_bytes: int) -> list[FilePiece]:
    count = math.ceil(piece.data_bytes / max(1, target_bytes * 5 // 4))
    if count <= 1:
        return [piece]
    parts: list[tuple[int, ...] | None] = [None] * count
    if piece.batches is not None:
        parts = [tuple(part.tolist()) for part in np.array_split(np.array(piece.batches), count) if len(part)]
    share = piece.data_bytes // len(parts)
    return [
        replace(piece, batches=batches, part=(number, len(parts)), data_bytes=share)
        for number, batches in enumerate(parts)
    ]


def read_share(share: Share, report: SearchReport | None = None) -> Iterator[pa.RecordBatch]:
    """Read the matching records of a share.

    Raises:
        FormatError: a data file cannot be read; silently leaving records out would be worse.
    """
    folder = Folder.of(share.uri)
    report = report or SearchReport(predicate=share.sought.predicate)
    opener = BatchOpener(share.sought.predicate, share.options, report)
    left = share.options.limit
    for piece in share.pieces:
        segment = SealedSegment(folder, piece.entry, constants(piece.entry.partition, share.table_schema))
        segment.distrust(_NOT_ASKED)
        for unit in _units(segment, piece, share.options):
            records = opener.open(unit, share.schema).records
            for batch in records.to_batches() if records is not None else ():
                yield batch if left is None else batch.slice(0, left)
                left = None if left is None else left - batch.num_rows
                if left is not None and left <= 0:
                    return


_NOT_ASKED = NotFoundError("the planner has used the sidecar; it is not needed here")


def _units(segment: SealedSegment, piece: FilePiece, options: SearchOptions) -> Iterator[Unit]:
    """The batches to open, as units for the opener."""
    count = segment.footer.batch_count
    batches: I64Array
    if piece.batches is None or piece.batch_count != count:  # the sidecar belongs to other data: open all batches
        number, parts = piece.part
        batches = np.arange(count * number // parts, count * (number + 1) // parts)
    else:
        batches = np.array(piece.batches, np.int64)
    first, last = np.full(count, FOREVER[0]), np.full(count, FOREVER[1])
    if options.is_bounded:
        first, last = segment.times(options.time_column)
        batches = batches[(last[batches] >= options.since) & is_before(first[batches], options.until)]
    for batch in batches.tolist():
        yield Unit(segment, batch, 0, int(first[batch]), int(last[batch]))
