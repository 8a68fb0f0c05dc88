"""A search in shares finds what a search finds: each batch is in one share, and each share knows all it needs."""

import math
import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from coprlake.errors import CorruptSidecarError, FormatError
from coprlake.predicate.build import contains, equals
from coprlake.predicate.narrowing.claims import Exact
from coprlake.predicate.predicates import EVERYTHING, NOTHING, Predicate
from coprlake.query.options import SearchOptions
from coprlake.query.planning import FOREVER
from coprlake.query.report import SearchReport
from coprlake.query.shares import FilePiece, Share, SharePlan, divide, plan, read_share
from coprlake.query.time_bounds import microseconds
from coprlake.records import CONTENT, DAY, SOURCE, TIMESTAMP
from coprlake.segment.mutable import SegmentOptions
from coprlake.segment.sealed import SegmentEntry
from coprlake.segment.sidecar import Sidecar, encode_sidecar, sidecar_name
from coprlake.table import Table, create_table, open_table
from coprlake.testing.conformance import expected_rows, plain
from coprlake.testing.predicate_strategies import Row, predicates, rows, texts_in
from coprlake.testing.store_variants import ID, SMALL, START, VARIANTS, Stored, numbered

GENERATE = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking would store thousands of tables
MOMENTS = st.none() | st.sampled_from([row[TIMESTAMP] for row in numbered([{TIMESTAMP: None}] * 4)])
UNCOMMITTED = {
    "in_open_batches",
    "in_open_and_closed_batches",
    "in_closed_batches_of_spilled_sketches",
    "sealed_and_not_committed",
    "partly_committed",
    "grown_while_open",
    "after_everything",
}
"""Variants whose rows are partly in a writer's memory, which no other process can read."""
COMMITTED = [name for name in VARIANTS if name not in UNCOMMITTED]


def options_of(since: datetime | None = None, until: datetime | None = None, **others: Any) -> SearchOptions:
    return SearchOptions(since=microseconds(since, FOREVER[0]), until=microseconds(until, FOREVER[1]), **others)


def shares_of(
    table: Table, predicate: Predicate, options: SearchOptions, share_bytes: int
) -> tuple[SharePlan, list[Share]]:
    snapshot = table.snapshot()
    sought = Exact(predicate)
    found = plan(snapshot, sought.necessary, options)
    schema = pa.schema([field for field in snapshot.schema if field.name != DAY])
    whole = Share(table.uri, snapshot.schema, schema, sought, options)
    return found, [replace(whole, pieces=pieces) for pieces in divide(found.pieces, share_bytes)]


def rows_of(shares: Sequence[Share]) -> list[Row]:
    """What processes that get nothing but their share would find."""
    sent = [pickle.loads(pickle.dumps(share)) for share in shares]
    return [row for share in sent for batch in read_share(share) for row in batch.to_pylist()]


def ids(shares: Sequence[Share]) -> list[int]:
    return sorted(row[ID] for row in rows_of(shares))


@pytest.mark.parametrize("variant", COMMITTED)
@settings(max_examples=5, phases=GENERATE)
@given(st.lists(rows(), max_size=9), st.data())
def test_shares_hold_what_the_naive_filter_finds(variant: str, some_rows: list[Row], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder, VARIANTS[variant](Path(folder, "table"), numbered(some_rows)) as stored:
        for predicate in data.draw(st.lists(predicates(texts_in(some_rows)), min_size=4, max_size=6)):
            check_shares(stored, predicate, data.draw(MOMENTS), data.draw(MOMENTS), data)


def check_shares(
    stored: Stored, predicate: Predicate, since: datetime | None, until: datetime | None, data: st.DataObject
) -> None:
    expected = Counter(map(plain, expected_rows(stored, predicate, since, until)))
    options = options_of(since, until, use_sketches=data.draw(st.booleans()))
    share_bytes = data.draw(st.sampled_from([700, 3000, 1 << 30]))
    found, shares = shares_of(stored.table, predicate, options, share_bytes)
    assert Counter(map(plain, rows_of(shares))) == expected
    check_cover(found, shares)
    limited = [replace(share, options=replace(options, limit=1)) for share in shares]
    own = [len(rows_of([share])) for share in shares]
    assert [len(rows_of([share])) for share in limited] == [min(1, count) for count in own]


def check_cover(found: SharePlan, shares: Sequence[Share]) -> None:
    """Each batch of each piece is in just one share."""
    batches = Counter((piece.entry.name, batch) for piece in found.pieces for batch in piece.batches or ())
    assert batches == Counter(
        (p.entry.name, batch) for share in shares for p in share.pieces for batch in p.batches or ()
    )
    assert set(batches.values()) <= {1}
    for piece in found.pieces:
        parts = [p.part for share in shares for p in share.pieces if p.entry == piece.entry]
        assert parts == [(number, len(parts)) for number in range(len(parts))]
    assert found.data_bytes == sum(piece.data_bytes for piece in found.pieces)


# --- groups by size ---


def entry(name: str, data_bytes: int) -> SegmentEntry:
    return SegmentEntry(f"{name}.parquet", data_bytes)


@st.composite
def some_pieces(draw: st.DrawFn) -> list[FilePiece]:
    """Files of all sizes: with few or many batches, or with a number of batches that nobody knows."""
    pieces = []
    for number in range(draw(st.integers(0, 12))):
        size = draw(st.sampled_from([1, 10, 100, 1000, 10_000]))
        count = draw(st.integers(1, 40))
        batches = tuple(sorted(draw(st.sets(st.integers(0, count - 1), min_size=1))))
        known = draw(st.booleans())
        share = math.ceil(size * len(batches) / count) if known else size
        pieces.append(
            FilePiece(entry(str(number), size), batches if known else None, count if known else 0, data_bytes=share)
        )
    return pieces


@settings(max_examples=100)
@given(some_pieces(), st.sampled_from([1, 7, 100, 2500, 1 << 30]))
def test_groups_are_of_about_the_same_size(pieces: list[FilePiece], share_bytes: int) -> None:
    groups = divide(pieces, share_bytes)
    total = sum(piece.data_bytes for piece in pieces)
    even = math.ceil(total / max(1, math.ceil(total / share_bytes)))
    assert all(groups)
    for group in groups:
        size = sum(part.data_bytes for part in group)
        is_one_batch = len(group) == 1 and group[0].batches is not None and len(group[0].batches) == 1
        assert size <= 1.5 * even + 1 or is_one_batch, (size, even)
    assert len(groups) <= 2 * math.ceil(total / share_bytes) + 1
    found = SharePlan(pieces, total)
    whole = Share("", pa.schema([]), pa.schema([]), Exact(), SearchOptions())
    check_cover(found, [replace(whole, pieces=group) for group in groups])
    assert [part.entry for group in groups for part in group] == sorted(
        (part.entry for group in groups for part in group), key=lambda one: int(one.name.partition(".")[0])
    )


def test_nothing_left_makes_no_share(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    assert shares_of(table, EVERYTHING, options_of(), 100)[1] == []
    table.append([{CONTENT: "a", ID: 1}])
    assert shares_of(table, NOTHING, options_of(), 100)[1] == []
    assert ids(shares_of(table, EVERYTHING, options_of(), 100)[1]) == [1]


def test_a_needle_in_hundreds_of_segments_is_one_share(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=SOURCE)
    words = "the quick brown fox jumps over the lazy dog " * 20
    lines = [
        {ID: number, SOURCE: f"host-{number % 200}", CONTENT: f"{words} line {number}" + " rareword" * (number == 777)}
        for number in range(1000)
    ]
    table.append(lines)
    assert len(table.snapshot().segments) == 200
    share_bytes = table.info().data_bytes // 20
    found, shares = shares_of(table, contains("rareword"), options_of(), share_bytes)
    assert len(shares) == 1
    assert len(found.pieces) <= 2
    assert ids(shares) == [777]
    assert found.report.segments_pruned_by_sketch >= 198
    assert 0 < found.data_bytes <= found.table_bytes // 50
    assert 10 <= len(shares_of(table, EVERYTHING, options_of(), share_bytes)[1]) <= 40


def test_no_data_file_is_opened_to_plan(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    with table.writer(options=SMALL) as writer:
        writer.append([{ID: number, CONTENT: f"word{number}"} for number in range(30)])
    for file in tmp_path.rglob("*.parquet"):
        file.write_bytes(bytes(file.stat().st_size))
    fresh = open_table(tmp_path / "table")
    found, shares = shares_of(fresh, contains("word7"), options_of(until=START + timedelta(days=10_000)), 100)
    assert found.pieces
    with pytest.raises(FormatError, match="data file"):
        rows_of(shares)


# --- what the planner does not know ---


def put_sidecar_of_other_batches(table: Table, other: Table) -> None:
    """The sidecar says that it belongs to this data file, but its batches are those of the other table's."""
    (segment,), (stranger,) = table.snapshot().segments, other.snapshot().segments
    raw = Path(other.uri, sidecar_name(stranger.name)).read_bytes()
    with Sidecar(raw, "other") as sidecar:
        sketch, described = raw[: sidecar.sketch.words.nbytes], sidecar.description
    lie = replace(described, data_name=segment.name.rpartition("/")[2], data_bytes=segment.entry.data_bytes)
    Path(table.uri, sidecar_name(segment.name)).write_bytes(b"".join(encode_sidecar([sketch], lie)))


@pytest.mark.parametrize("share_bytes", [900, 1 << 20])
@pytest.mark.parametrize("stale_batch_bytes", [1, 200, 1 << 20])
def test_a_sidecar_with_another_number_of_batches_rules_nothing_out(
    tmp_path: Path, stale_batch_bytes: int, share_bytes: int
) -> None:
    lines = [{ID: number, CONTENT: f"line {number} word{number % 5}"} for number in range(40)]
    tables = []
    for name, batch_bytes in (("table", 40), ("other", stale_batch_bytes)):
        table = create_table(tmp_path / name, partition_by=None)
        with table.writer(options=SegmentOptions(batch_bytes=batch_bytes, slot_count=2)) as writer:
            writer.append(lines)
        tables.append(table)
    put_sidecar_of_other_batches(*tables)
    table = open_table(tmp_path / "table")
    for sought in ("", "word3", "line 3"):
        predicate = contains(sought) if sought else EVERYTHING
        expected = [line[ID] for line in lines if sought in str(line[CONTENT])]
        for bounds in ({}, {"since": START - timedelta(days=10_000)}):
            _, shares = shares_of(table, predicate, options_of(**bounds), share_bytes)
            assert ids(shares) == expected
    segment = table.snapshot().segments[0]
    assert segment.sidecar is not None
    with pytest.raises(CorruptSidecarError):
        segment.sidecar.check_batch_count(pq.read_metadata(Path(table.uri, segment.name)).num_row_groups)


@pytest.mark.parametrize("group_rows", [1, 3, 100])
@pytest.mark.parametrize("share_bytes", [500, 1 << 30])
def test_files_without_sidecars_are_cut_by_their_row_groups(tmp_path: Path, group_rows: int, share_bytes: int) -> None:
    for number in range(3):
        lines = pa.table({ID: range(10 * number, 10 * number + 10), CONTENT: [f"line {n}" for n in range(10)]})
        pq.write_table(lines, tmp_path / f"{number}.parquet", row_group_size=group_rows)
    table = open_table(tmp_path)
    found, shares = shares_of(table, EVERYTHING, options_of(), share_bytes)
    assert ids(shares) == list(range(30))
    assert ids(shares_of(table, contains("line 7"), options_of(), share_bytes)[1]) == [7, 17, 27]
    assert found.report.segments_without_sketch == 3
    table.index()
    _, shares = shares_of(table, contains("line 7"), options_of(), share_bytes)
    assert ids(shares) == [7, 17, 27]


def test_files_with_and_without_sidecars_are_searched_together(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    table.append([{ID: number, CONTENT: f"word{number}"} for number in range(10)])
    write_deltalake(
        table.uri,
        pa.table({ID: range(10, 20), CONTENT: [f"word{number}" for number in range(10, 20)]}),
        mode="append",
        schema_mode="merge",
    )
    found, shares = shares_of(table, contains("word1"), options_of(), 1 << 20)
    assert ids(shares) == [1, *range(10, 20)]
    assert found.report.segments_without_sketch == 1
    found, shares = shares_of(table, contains("word3"), options_of(), 1 << 20)
    assert ids(shares) == [3]
    found, shares = shares_of(table, contains("word13"), options_of(), 1 << 20)
    assert ids(shares) == [13]
    assert [len(share.pieces) for share in shares] == [1]


# --- time and limits ---


def test_batches_outside_of_the_time_are_not_opened(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    with table.writer(options=SMALL) as writer:
        writer.append(
            [{ID: n, TIMESTAMP: START + timedelta(minutes=n), CONTENT: f"line number {n}"} for n in range(60)]
        )
    since, until = START + timedelta(minutes=20), START + timedelta(minutes=25)
    for since_or_none, until_or_none, expected in (
        (since, until, range(20, 25)),
        (since, None, range(20, 60)),
        (None, until, range(25)),
        (until, since, range(0)),
    ):
        _, shares = shares_of(table, EVERYTHING, options_of(since_or_none, until_or_none), 1 << 20)
        report = SearchReport(predicate=EVERYTHING)
        found = [row[ID] for share in shares for batch in read_share(share, report) for row in batch.to_pylist()]
        assert sorted(found) == list(expected)
        assert report.batches_opened <= len(expected) // 2 + 2


@pytest.mark.parametrize("limit", [0, 1, 3, 7, 100])
def test_a_share_gives_no_more_than_the_limit(tmp_path: Path, limit: int) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    with table.writer(options=SMALL) as writer:
        writer.append([{ID: n, CONTENT: f"line number {n}"} for n in range(20)])
    (share,) = shares_of(table, EVERYTHING, options_of(limit=limit), 1 << 20)[1]
    report = SearchReport(predicate=EVERYTHING)
    assert sum(batch.num_rows for batch in read_share(share, report)) == min(limit, 20)
    assert report.batches_opened <= limit + 1


def test_partition_values_travel_with_the_share(tmp_path: Path) -> None:
    values = ["web-1", "web 1/ä%20", "", None]
    table = create_table(tmp_path / "table", partition_by=[SOURCE, DAY])
    table.append([{ID: n, SOURCE: value, CONTENT: "x", TIMESTAMP: START} for n, value in enumerate(values)])
    _, shares = shares_of(table, EVERYTHING, options_of(), 500)
    assert {row[ID]: row[SOURCE] for row in rows_of(shares)} == {0: "web-1", 1: "web 1/ä%20", 2: None, 3: None}
    assert ids(shares_of(table, equals(SOURCE, "web 1/ä%20"), options_of(), 500)[1]) == [1]
    assert len(shares_of(table, equals(SOURCE, "web-1"), options_of(), 500)[0].pieces) == 1
