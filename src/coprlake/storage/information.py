"""The contents and sizes of a table."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from coprlake.config import OPTIMIZED_SEGMENT_BYTES
from coprlake.records import HIDDEN
from coprlake.segment.python_values import datetime_of
from coprlake.segment.sealed import SealedSegment
from coprlake.segment.searchable import ALWAYS
from coprlake.storage.snapshot import Snapshot
from coprlake.summary import Report


@dataclass(repr=False)
class TableInfo(Report):
    """Sizes and counts of a table at one version."""

    always_shown = ("version", "segments", "rows")

    uri: str
    version: int
    partition_by: list[str]
    columns: dict[str, str]
    rules: str
    segments: int = 0
    batches: int = 0
    rows: int = 0
    raw_bytes: int = 0
    data_bytes: int = 0
    index_bytes: int = 0
    index_bytes_by_part: dict[str, int] = field(default_factory=dict)
    tokens: int = 0
    mergeable_segments: int = 0  # those that `optimize` replaces with fewer
    segments_unpartitioned: int = 0  # about how many `optimize --repartition none` leaves
    segments_by_rules: dict[str, int] = field(default_factory=dict)
    first_time: datetime | None = None
    last_time: datetime | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def data_percent(self) -> float:
        """The size of the data files in percent of the raw size."""
        return 100 * self.data_bytes / self.raw_bytes if self.raw_bytes else 0.0

    @property
    def index_percent(self) -> float:
        """The size of the index in percent of the raw size."""
        return 100 * self.index_bytes / self.raw_bytes if self.raw_bytes else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The values as plain data for JSON."""
        values = asdict(self) | {"data_percent": self.data_percent, "index_percent": self.index_percent}
        for name in ("first_time", "last_time"):
            values[name] = values[name] and values[name].isoformat()
        return values


def describe(info: TableInfo, segments: Sequence[SealedSegment]) -> TableInfo:
    """Fill in the sizes and counts; for a segment without a sidecar, only its data file counts."""
    from coprlake.storage.merging import packed  # a search does not need it

    times = []
    for segment in segments:
        info.segments += 1
        info.data_bytes += segment.entry.data_bytes
        info.rows += segment.entry.row_count or 0
        times.append((segment.entry.first_time, segment.entry.last_time))
        if segment.sidecar is None:
            info.problems.append(str(segment.sidecar_problem))
            continue
        described = segment.sidecar.description
        info.batches += described.batch_count
        info.raw_bytes += described.raw_bytes
        info.rows += described.row_count if segment.entry.row_count is None else 0
        info.tokens += segment.sidecar.sketch.token_count
        rules = described.plan.rules
        info.segments_by_rules[rules] = info.segments_by_rules.get(rules, 0) + 1
        info.index_bytes += segment.sidecar.file_bytes
        parts = segment.sidecar.sketch.bytes_by_part()
        parts["description"] = segment.sidecar.file_bytes - sum(parts.values())
        for part, size in parts.items():
            info.index_bytes_by_part[part] = info.index_bytes_by_part.get(part, 0) + size
    info.mergeable_segments = len(mergeable_names(segments))
    info.segments_unpartitioned = len(packed(segments, OPTIMIZED_SEGMENT_BYTES))
    known = [pair for pair in times if pair[0] <= pair[1] and pair != ALWAYS]
    if known:
        info.first_time = datetime_of(min(first for first, _ in known))
        info.last_time = datetime_of(max(last for _, last in known))
    return info


def mergeable_names(segments: Sequence[SealedSegment]) -> set[str]:
    """The data files that `optimize`, with its defaults, replaces with fewer ones."""
    from coprlake.storage.optimizing import groups_to_merge

    return {segment.name for group in groups_to_merge(segments) for segment in group}


def known_facts(uri: str, snapshot: Snapshot) -> dict[str, Any]:
    """What a table can say of itself without reading anything: no rows if the log does not know their number."""
    counts = [segment.entry.row_count for segment in snapshot.segments]
    known = [count for count in counts if count is not None]
    return {
        "uri": uri,
        "version": snapshot.version,
        "segments": len(counts),
        **({"rows": sum(known)} if len(known) == len(counts) else {}),
        "data_bytes": sum(segment.entry.data_bytes for segment in snapshot.segments),
    }


def known_details(uri: str, snapshot: Snapshot) -> dict[str, Any]:
    """The same with the partitions and the columns but for hidden ones."""
    columns = {field.name: str(field.type) for field in snapshot.schema if field.name not in HIDDEN}
    return known_facts(uri, snapshot) | {"partition_by": list(snapshot.partition_by), "columns": columns}
