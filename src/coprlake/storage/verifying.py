"""Checks that a table's files are complete, undamaged and consistent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from coprlake.errors import CoprlakeError
from coprlake.files import Folder
from coprlake.records import CONTENT
from coprlake.segment.batch_indexing import BatchIndexer
from coprlake.segment.sealed import SealedSegment
from coprlake.segment.sidecar import UNINDEXED
from coprlake.storage.log.log_checking import log_problems
from coprlake.storage.progress import Progress
from coprlake.summary import Report


@dataclass(repr=False)
class VerifyReport(Report):
    """What `verify` found: problems with data or the log cost records, problems with sidecars only time."""

    always_shown = ("segments", "rows")

    segments: int = 0
    rows: int = 0
    data_problems: list[str] = field(default_factory=list)
    sidecar_problems: list[str] = field(default_factory=list)
    log_problems: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.data_problems and not self.sidecar_problems and not self.log_problems

    def _facts(self) -> Mapping[str, Any]:
        return {"is_sound": self.is_sound} | dict(super()._facts())


def verify_log(uri: str | PathLike[str]) -> VerifyReport:
    """What is wrong with the log of a table; also of one that cannot be opened because of it."""
    return VerifyReport(log_problems=[str(problem) for problem in log_problems(Folder.of(uri))])


def verify(segments: Sequence[SealedSegment], *, deep: bool = False, progress: Progress | None = None) -> VerifyReport:
    """Check each data file against the log, and each sidecar against its checksums and its data file.

    Args:
        segments: the segments to check.
        deep: also read all data, and check that the sketch does not miss any token of any batch.
        progress: see `Progress`.
    """
    report = VerifyReport(len(segments))
    for segment in segments:
        _verify_data(segment, report, deep=deep)
        _verify_sidecar(segment, report, deep=deep)
        if progress is not None:
            progress(segment.entry.data_bytes)
    return report


def _verify_data(segment: SealedSegment, report: VerifyReport, *, deep: bool) -> None:
    try:
        rows = segment.footer.row_count
        report.rows += rows
        if segment.entry.row_count not in (None, rows):
            report.data_problems.append(f"{segment.name}: has {rows} records; the log says {segment.entry.row_count}")
        for batch in range(segment.footer.batch_count if deep else 0):
            segment.read(batch, segment.schema.names)
    except CoprlakeError as error:
        report.data_problems.append(str(error))


def _verify_sidecar(segment: SealedSegment, report: VerifyReport, *, deep: bool) -> None:
    if segment.sidecar is None:
        report.sidecar_problems.append(str(segment.sidecar_problem))
        return
    try:
        segment.sidecar.sketch.verify()
        described, rows = segment.sidecar.description, segment.footer.row_count
        if segment.sidecar is None:  # reading the footer found that it belongs to other data
            report.sidecar_problems.append(str(segment.sidecar_problem))
        elif described.row_count != rows:
            report.sidecar_problems.append(f"{segment.name}: has {rows} records, its sidecar {described.row_count}")
        elif deep:
            _verify_tokens(segment, report)
    except CoprlakeError as error:
        if str(error) not in report.data_problems:
            report.sidecar_problems.append(str(error))


def _verify_tokens(segment: SealedSegment, report: VerifyReport) -> None:
    """Check that the sketch has every batch for each of its tokens."""
    assert segment.sidecar is not None
    sketch = segment.sidecar.sketch
    indexer = BatchIndexer(segment.sidecar.description.plan, segment.constants)
    fields = segment.sidecar.description.fields
    stored = [
        name
        for name in segment.schema.names
        if name not in segment.constants and (name == CONTENT or fields.get(name) != UNINDEXED)
    ]
    lists: dict[int, set[int]] = {}
    for batch in range(segment.batch_count):
        for fingerprints in indexer.tokens(segment.read(batch, stored)):
            ids = sketch.list_ids(fingerprints)
            lost = int((ids < 0).sum())
            for list_id in np.unique(ids[ids >= 0]).tolist():
                if list_id not in lists:
                    lists[list_id] = set(sketch.decode(list_id).tolist())
                lost += batch not in lists[list_id]
            if lost:
                report.sidecar_problems.append(
                    f"{segment.name}: the sketch misses {lost} tokens of batch {batch}; run `coprlake index --rebuild`"
                )
                return
