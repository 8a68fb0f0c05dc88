"""`optimize` sorts by time, merges all that is small, and leaves nothing for the next time."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coprlake import contains
from coprlake.segment.mutable import SegmentOptions
from coprlake.segment.sealed import SealedSegment
from coprlake.storage import merging
from coprlake.storage.merging import SegmentMerger, estimated_raw_bytes
from coprlake.storage.optimizing import groups_to_merge
from coprlake.table import Table, create_table, open_table

START = datetime(2012, 1, 1, tzinfo=UTC)
SMALL = SegmentOptions(batch_bytes=200, slot_count=2)


def record(number: int, hours: float | None = None, **more: Any) -> dict[str, Any]:
    moment = None if hours is None else START + timedelta(hours=hours)
    return {
        "timestamp": moment,
        "source": f"host{number % 3}",
        "content": f"line {number} of the log",
        "id": number,
    } | more


def rows_of(table: Table) -> list[dict[str, Any]]:
    columns = [name for name in table.schema.names if name != "day"]
    return sorted(table.search(columns=columns).rows(), key=lambda row: row["id"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[dict[str, Any]]], str | None, int]:
    """Commits of records with times of hours to years, in any order; a partition column; a target size."""
    number = 0
    commits = []
    for _ in range(draw(st.integers(1, 9))):
        commit = []
        start = draw(st.integers(0, 50_000))
        for _ in range(draw(st.integers(1, 12))):
            hours = draw(st.none() | st.integers(start, start + draw(st.sampled_from([1, 100, 20_000]))))
            kinds: list[dict[str, Any]] = [{}, {"user": f"u{number}"}, {"took": number, "path": "/a"}]
            more = draw(st.sampled_from(kinds))
            commit.append(record(number, hours, **more))
            number += 1
        commits.append(commit)
    return commits, draw(st.sampled_from([None, None, "day", "source"])), draw(st.sampled_from([100, 400, 1 << 30]))


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(tables(), st.booleans())
def test_nothing_is_left_for_the_next_time(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[list[list[dict[str, Any]]], str | None, int], full: bool
) -> None:
    commits, partition_by, target = made
    table = create_table(tmp_path_factory.mktemp("t") / "table", partition_by=partition_by)
    for commit in commits:
        with table.writer(options=SMALL) as writer:
            writer.append(commit)
    before = rows_of(table)
    promised = table.info().mergeable_segments
    report = table.optimize(target_bytes=target, full=full)
    table = open_table(table.uri)
    assert groups_to_merge(table.snapshot().segments, target) == []
    if target == 1 << 30:
        assert table.info().mergeable_segments == 0
        assert full or report.merged >= promised
    if partition_by is None:
        raw = sum(map(estimated_raw_bytes, table.snapshot().segments))
        assert len(table.snapshot().segments) <= 2 + raw // (target // 4)
    assert table.optimize(target_bytes=target).version is None
    assert rows_of(table) == before
    assert table.verify(deep=True).is_sound
    for number in range(sum(map(len, commits))):
        assert [row["id"] for row in table.search(contains(f"line {number} of")).rows()] == [number]


def test_batches_of_a_merged_segment_are_in_order_of_time(tmp_path: Path) -> None:
    """Segments that overlap in time, whose own batches are in no order, are interleaved."""
    table = create_table(tmp_path / "table")
    for first in (3, 1, 2, 0):
        with table.writer(options=SMALL) as writer:
            writer.append([record(hour * 4 + first, hour * 4 + first) for hour in reversed(range(80))])
    expected = rows_of(table)
    assert len(table.snapshot().segments) == 4
    assert table.optimize(full=True).segments_after == 1
    (segment,) = table.snapshot().segments
    assert segment.batch_count == 1, "batches this small become one"
    table = create_table(tmp_path / "large")
    text = "x" * 3000
    for first in (3, 1, 2, 0):
        with table.writer(options=SegmentOptions(batch_bytes=400_000, slot_count=2)) as writer:
            hours = [*range(500, 1000), *range(500)]  # the later half comes first
            writer.append([record(hour, hour * 4 + first, content=f"{text} {hour * 4 + first}") for hour in hours])
            writer.append([record(5, 0)])
    report = table.optimize()
    assert report.segments_after == 1
    (segment,) = table.snapshot().segments
    firsts = segment.times()[0].tolist()
    assert len(firsts) > 5
    assert firsts == sorted(firsts)
    moment = START + timedelta(hours=1234)
    found = table.search(since=moment, until=moment + timedelta(hours=1)).explain()
    assert found.rows_matched == 1
    assert found.batches_opened < segment.batch_count / 2
    assert len(expected) == 320


def test_neighbours_in_time_are_merged(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    for number in (7, 2, 5, 0, 6, 1, 4, 3):  # they arrive in no order
        table.append([record(number, number * 24 + hour) for hour in range(10)])
    size = estimated_raw_bytes(table.snapshot().segments[0])
    table.optimize(target_bytes=2 * size + 2)
    spans = sorted((segment.entry.first_time, segment.entry.last_time) for segment in table.snapshot().segments)
    assert len(spans) == 4
    assert all(earlier[1] < later[0] for earlier, later in pairwise(spans))


def test_many_small_groups_share_a_commit(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by="day")
    for _ in range(3):
        table.append([record(day, day * 24) for day in range(40)])
    before = table.version
    report = table.optimize()
    assert (report.segments_before, report.segments_after) == (120, 40)
    assert report.version == table.snapshot().version == before + 1
    log = Path(table.uri, "_delta_log", f"{report.version:020}.json").read_text().splitlines()
    assert sum("add" in json.loads(line) for line in log) == 40


def test_sketches_are_merged_without_reading_the_logs(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    for number in range(30):
        table.append([record(number, 30 - number)])
    report = table.optimize()
    assert (report.merged, report.written, report.tokenized_again) == (30, 1, 0)
    assert [table.search(contains(f"line {number} of")).count() for number in range(30)] == [1] * 30


def test_a_group_that_others_changed_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create_table(tmp_path / "table", partition_by="source")
    for number in range(6):
        table.append([record(number, number)])
    run = SegmentMerger.run
    met: list[str] = []

    def meet_a_delete(self: SegmentMerger, *arguments: Any) -> Any:
        if not met:
            met.append(self.name)
            open_table(table.uri).delete(until=START + timedelta(hours=1))
        return run(self, *arguments)

    monkeypatch.setattr(merging.SegmentMerger, "run", meet_a_delete)
    report = table.optimize()
    assert report.conflicts == 1
    assert report.written == 2
    assert [row["id"] for row in rows_of(table)] == [1, 2, 3, 4, 5]
    names = {segment.name for segment in table.snapshot().segments}
    left = {path.name for path in Path(table.uri).rglob("*.parquet")} - {Path(name).name for name in names}
    assert len(left) == 5, "the old segments of two groups and the deleted one; nothing of what was not committed"
    assert open_table(table.uri).verify(deep=True).is_sound


def test_info_promises_nothing_for_single_small_segments(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by="day")
    table.append([record(day, day * 24) for day in range(12)])
    info = table.info()
    assert (info.segments, info.mergeable_segments, info.segments_unpartitioned) == (12, 0, 1)
    assert table.optimize().version is None


def _names(segments: list[SealedSegment]) -> list[str]:
    return [segment.name for segment in segments]


def test_groups_are_the_same_whatever_the_order_of_the_segments(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    for number in (3, 0, 2, 1):
        table.append([record(number, number)])
    segments = list(table.snapshot().segments)
    (first,), (second,) = groups_to_merge(segments), groups_to_merge(segments[::-1])
    assert _names(first) == _names(second)
    assert [segment.entry.first_time for segment in first] == sorted(segment.entry.first_time for segment in first)
