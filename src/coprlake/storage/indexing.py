"""Writes sidecars for data files without one: files of other writers, or whose sidecar was lost. Data never changes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from coprlake.config import MEMORY_LIMIT_BYTES, MERGEABLE_BYTES, POSTING_LIMIT, RuleSet
from coprlake.deprecation import Renamed
from coprlake.errors import FormatError
from coprlake.files import Folder
from coprlake.segment.assigner import record_bytes
from coprlake.segment.batch_indexing import BatchIndexer, signature_bits
from coprlake.segment.sealed import SealedSegment
from coprlake.segment.sidecar import IndexPlan, encode_sidecar, sidecar_name
from coprlake.sketch.sealing import encode
from coprlake.sketch.spilling import SketchWriter
from coprlake.storage.progress import Progress
from coprlake.summary import Report


@dataclass(repr=False)
class IndexReport(Report):
    """What `index` did."""

    always_shown = ("indexed", "skipped")

    indexed: int = 0
    skipped: int = 0
    raw_bytes: int = 0
    index_bytes: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    sketch_bytes = Renamed("index_bytes")

    def merge(self, other: "IndexReport") -> None:
        """Add the counts of another report."""
        self.indexed += other.indexed
        self.skipped += other.skipped
        self.raw_bytes += other.raw_bytes
        self.index_bytes += other.index_bytes
        self.problems += other.problems


def index(
    folder: Folder,
    segments: Sequence[SealedSegment],
    *,
    plan: IndexPlan | None = None,
    rules: RuleSet | None = None,
    rebuild: bool = False,
    progress: Progress | None = None,
) -> IndexReport:
    """Write the sidecars that are missing, damaged or of other data; with `rebuild`, all of them.

    With `rules`, which override the plan's, also rewrite sidecars with other rules.
    """
    plan = plan or IndexPlan()
    plan = plan._replace(rules=rules or plan.rules)
    started = time.perf_counter()
    report = IndexReport()
    for segment in segments:
        if _is_sound(segment, rules) and not rebuild:
            report.skipped += 1
        else:
            try:
                _index_segment(folder, segment, plan, report)
            except FormatError as error:
                report.problems.append(str(error))
        if progress is not None:
            progress(segment.entry.data_bytes)
    report.seconds = time.perf_counter() - started
    return report


def _is_sound(segment: SealedSegment, rules: RuleSet | None) -> bool:
    """Whether the sidecar is there, passes every check, and is of these rules if any are given."""
    try:
        _ = segment.footer  # this may find that the sidecar is of other data
        if segment.sidecar is not None:
            segment.sidecar.sketch.verify()
    except FormatError:
        return False
    if segment.sidecar is None:
        return False
    return rules is None or segment.sidecar.description.plan.rules == rules


def _index_segment(folder: Folder, segment: SealedSegment, plan: IndexPlan, report: IndexReport) -> None:
    batch_count = segment.footer.batch_count
    if batch_count > POSTING_LIMIT:
        report.problems.append(f"{segment.name}: has {batch_count} row groups; a sketch has {POSTING_LIMIT} at most")
        return
    indexer = BatchIndexer(plan, segment.constants)
    raw_bytes = 0
    stored = [name for name in segment.schema.names if name not in segment.constants]
    with SketchWriter(MEMORY_LIMIT_BYTES) as sketch:
        for batch in range(batch_count):
            records = segment.read(batch, stored)
            raw_bytes += sum(int(record_bytes(part).sum()) for part in records.to_batches())
            for fingerprints in indexer.tokens(records):
                sketch.insert(fingerprints, batch)
        bits = signature_bits(plan.rules, mergeable=raw_bytes < MERGEABLE_BYTES)
        pieces, _ = encode(sketch.merged(), signature_bits=bits, rules=plan.rules)
    entry = segment.entry
    description = indexer.describe(entry.name, entry.data_bytes, segment.footer.row_count, batch_count, raw_bytes)
    sidecar = encode_sidecar(pieces, replace(description, modified_ns=entry.modified_ns))
    folder.write(sidecar_name(segment.name), sidecar)
    report.indexed += 1
    report.raw_bytes += raw_bytes
    report.index_bytes += sum(map(len, sidecar))
