"""Searches: options, results in every form, and reports that tell the truth."""

import gc
import resource
import threading
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coprlake.errors import UsageError
from coprlake.predicate.build import contains, equals, term
from coprlake.predicate.predicates import ALL_FIELDS, EVERYTHING
from coprlake.query.planning import View
from coprlake.query.time_bounds import microseconds
from coprlake.segment.mutable import SegmentOptions
from coprlake.table import Table, create_table, open_table

START = datetime(2024, 6, 1, tzinfo=UTC)
SMALL = SegmentOptions(batch_bytes=200, slot_count=2)


def line(number: int) -> dict[str, Any]:
    return {
        "timestamp": START + timedelta(hours=number),
        "source": f"host{number % 2}",
        "content": f"request {number:03d} took {number * 13} ms, code c{number % 5}",
        "id": number,
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Four days, two commits, shuffled in time."""
    table = create_table(tmp_path_factory.mktemp("search") / "table", partition_by="day")
    order = [(number * 37) % 96 for number in range(96)]
    for half in (order[:48], order[48:]):
        with table.writer(options=SMALL) as writer:
            writer.append([line(number) for number in half])
    return table


def ids(table: Table, *arguments: Any, **options: Any) -> list[int]:
    return [row["id"] for row in table.search(*arguments, **options).rows()]


def test_a_text_means_contains(table: Table) -> None:
    assert sorted(ids(table, "C3")) == sorted(ids(table, contains("c3"))) == list(range(3, 96, 5))


@pytest.mark.parametrize("threads", [None, 1, 4])
def test_orders(table: Table, threads: int | None) -> None:
    assert ids(table, order="oldest", threads=threads) == list(range(96))
    assert ids(table, order="newest", threads=threads) == list(range(95, -1, -1))
    assert ids(table, "c3", order="newest", limit=3, threads=threads) == [93, 88, 83]
    assert sorted(ids(table, order="any", threads=threads)) == list(range(96))


def test_an_order_without_its_column(table: Table) -> None:
    found = list(table.search("c3", columns=["id"], order="newest", limit=3).rows())
    assert found == [{"id": 93}, {"id": 88}, {"id": 83}]
    assert list(table.search("c3", columns=["id"], order="oldest", limit=1).rows()) == [{"id": 3}]


def test_an_order_with_missing_times_puts_them_last(tmp_path: Path) -> None:
    times = pa.array([None, START, None, START + timedelta(hours=1)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"timestamp": times, "id": [0, 1, 2, 3]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"timestamp": times.take([1]), "id": [4]}), tmp_path / "b.parquet")
    table = open_table(tmp_path)
    assert ids(table, order="newest")[0] == 3
    assert set(ids(table, order="newest")[3:]) == {0, 2}
    assert set(ids(table, order="oldest")[3:]) == {0, 2}
    assert sorted(ids(table)) == [0, 1, 2, 3, 4]
    assert table.search().count() == 5
    assert table.search(since=START).count() == 3
    assert table.search(until=START + timedelta(hours=1)).count() == 2


@pytest.mark.parametrize("limit", [0, 1, 5, 95, 96, 97, 10_000])
@pytest.mark.parametrize("order", ["any", "newest", "oldest"])
def test_limits(table: Table, limit: int, order: str) -> None:
    found = ids(table, order=order, limit=limit)
    assert len(found) == len(set(found)) == min(limit, 96)


def test_a_limit_stops_early(table: Table) -> None:
    search = table.search(limit=2, threads=1)
    assert len(list(search.rows())) == 2
    assert search.report.stopped_early
    assert search.report.batches_opened < table.search().explain().batches_opened
    assert search.count() == 96  # a limit does not count


MOMENTS: list[tuple[Any, int]] = [
    (START + timedelta(hours=30), 30),
    ((START + timedelta(hours=30)).replace(tzinfo=None), 30),
    ("2024-06-02T06:00:00Z", 30),
    ("2024-06-02 06:00", 30),
    ("2024-06-02T08:00:00+02:00", 30),
    (date(2024, 6, 2), 24),
    ("2024-06-02", 24),
    (microseconds(START, 0) + 30 * 3600 * 10**6, 30),
    (None, 0),
]


@pytest.mark.parametrize(("moment", "hour"), MOMENTS)
def test_times_of_all_kinds(table: Table, moment: Any, hour: int) -> None:
    assert sorted(ids(table, since=moment)) == list(range(hour, 96))
    if moment is not None:
        assert sorted(ids(table, until=moment)) == list(range(hour))
        assert table.search(since=moment, until=moment).count() == 0


def test_a_time_to_the_microsecond(table: Table) -> None:
    tick = timedelta(microseconds=1)
    moment = START + timedelta(hours=30)
    assert ids(table, since=moment, until=moment + tick) == [30]
    assert ids(table, since=moment - tick, until=moment) == []
    assert ids(table, since=moment + tick, until=moment + timedelta(hours=1)) == []


def test_a_time_so_long_ago(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    now = datetime.now(UTC)
    table.append([{"timestamp": now - timedelta(hours=hours), "id": hours} for hours in (0, 2, 30)])
    assert sorted(ids(table, since=timedelta(hours=3))) == [0, 2]
    assert sorted(ids(table, since=timedelta(hours=31), until=timedelta(hours=1))) == [2, 30]


@pytest.mark.parametrize("moment", ["yesterdai", "", 1.5, [], object()])
def test_what_is_no_time_is_refused(table: Table, moment: Any) -> None:
    with pytest.raises(UsageError, match="time"):
        table.search(since=moment)


def test_far_times_are_exact() -> None:
    moment = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert microseconds(moment, 0) == 253_402_300_799_999_999
    assert microseconds(datetime(1, 1, 1, 0, 0, 0, 1), 0) == -62_135_596_799_999_999


@pytest.mark.parametrize(
    "options",
    [
        {"order": "random"},
        {"limit": -1},
        {"threads": 0},
        {"columns": ["nothing"]},
        {"context": -1},
        {"context": (1, -1)},
    ],
)
def test_options_that_make_no_sense_are_refused(table: Table, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        list(table.search("c3", **options).rows())


@pytest.mark.parametrize("predicate", [5, None, b"x", ["x"]])
def test_what_is_no_predicate_is_refused(table: Table, predicate: Any) -> None:
    with pytest.raises(UsageError):
        list(table.search(predicate).rows())


def test_columns_are_chosen_and_in_order(table: Table) -> None:
    search = table.search("request 007", columns=["id", "source"])
    assert search.schema.names == ["id", "source"]
    assert list(search.rows()) == [{"id": 7, "source": "host1"}]
    assert list(table.search("request 007", columns=["day"]).rows()) == [{"day": date(2024, 6, 1)}]
    assert table.search().schema.names == ["timestamp", "source", "loglevel", "content", "attributes", "id"]


@pytest.mark.parametrize(("columns", "problem"), [([], "no columns"), (["id", "id"], "a column is named twice: id")])
def test_columns_that_make_no_table_are_refused(table: Table, columns: list[str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        table.search("c3", columns=columns).arrow()


def test_results_in_every_form(table: Table) -> None:
    search = table.search(contains("c3"), columns=["id", "content"])
    arrow = search.arrow()
    assert arrow.num_rows == 19
    assert search.count() == 19
    assert sorted(search.pandas()["id"]) == sorted(arrow.column("id").to_pylist())
    assert duckdb.from_arrow(search.reader()).aggregate("count(*), max(id)").fetchall() == [(19, 93)]
    assert sum(batch.num_rows for batch in search) == 19
    assert len(list(search.rows())) == 19
    assert all(batch.schema == search.schema for batch in search)


def test_a_search_runs_anew_each_time(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    search = table.search("x")
    assert search.count() == 0
    table.append(["x"])
    assert search.count() == 1
    assert len(list(search.rows())) == 1


def test_a_search_that_is_left_early_leaves_no_threads(table: Table) -> None:
    for _ in range(3):
        for _batch in table.search(threads=4):
            break
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("coprlake-search")]


def test_the_report_tells_what_was_pruned(table: Table) -> None:
    report = table.search(term("042")).explain()
    info = table.info()
    assert report.segments == info.segments
    assert report.segments_pruned_by_sketch > 0
    assert report.rows_matched == 1
    assert report.batches_opened >= 1
    assert report.batches_for_nothing == report.batches_opened - 1
    assert report.bytes_read > 0
    assert set(report.seconds) >= {"prune", "read", "filter", "fetch"}
    assert report.to_dict()["rows_matched"] == 1
    assert "042" in str(report.predicate)


def test_the_report_tells_what_time_and_partition_pruned(table: Table) -> None:
    report = table.search(since=START + timedelta(days=3)).explain()
    assert report.segments_pruned_by_time == report.segments * 3 // 4
    assert report.rows_matched == 24
    report = table.search(equals("day", date(2024, 6, 2))).explain()
    assert report.segments_pruned_by_partition == report.segments * 3 // 4
    assert report.rows_matched == 24


def test_the_figures_of_a_report_add_up(table: Table) -> None:
    for options in ({}, {"since": START + timedelta(hours=50)}, {"order": "newest"}):
        report = table.search(contains("c3"), **options).explain()
        pruned = report.batches_pruned_by_sketch + report.batches_pruned_by_time
        assert report.batches == report.batches_opened + pruned
        ruled_out = (
            report.segments_pruned_by_time + report.segments_pruned_by_partition + report.segments_pruned_by_sketch
        )
        assert 0 <= ruled_out <= report.segments


def test_the_report_says_why_nothing_was_pruned(table: Table) -> None:
    assert any("rules nothing out" in note for note in table.search(~contains("c3")).explain().notes)
    assert any("shorter" in note for note in table.search(contains("c")).explain().notes)


def test_a_search_for_what_is_not_there_opens_nothing(table: Table) -> None:
    report = table.search(contains("surely absent")).explain()
    assert report.batches_opened == 0
    assert report.segments_pruned_by_sketch == report.segments


def test_everything_is_counted_from_the_log(table: Table) -> None:
    search = table.search(EVERYTHING)
    assert search.count() == 96
    assert search.report.bytes_read == 0
    assert table.search("", threads=1).count() == 96


def test_a_search_reads_only_what_it_needs(table: Table) -> None:
    narrow = table.search(contains("request"), columns=["id"]).explain().bytes_read
    wide = table.search(contains("request")).explain().bytes_read
    counted = table.search(contains("request"))
    counted.count()
    assert counted.report.bytes_read < narrow < wide


def test_context_in_one_batch(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    table.append([{"source": f"s{n % 2}", "content": "hit" if n in (4, 10) else "no", "id": n} for n in range(16)])
    found = [(row["id"], row["match"]) for row in table.search("hit", context=1).rows()]
    assert found == [(2, False), (4, True), (6, False), (8, False), (10, True), (12, False)]
    found = [(row["id"], row["match"]) for row in table.search("hit", context=(0, 2)).rows()]
    assert found == [(4, True), (6, False), (8, False), (10, True), (12, False), (14, False)]
    groups = {row["group"] for row in table.search("hit", context=(3, 0)).rows()}
    assert len(groups) == 1  # they touch
    limited = list(table.search("hit", context=1, limit=1).rows())
    assert [row["id"] for row in limited] == [2, 4, 6]
    assert table.search("hit", context=1).count() == 2
    chosen = [row["id"] for row in table.search("hit", context=1, columns=["id"]).rows()]
    assert chosen == [2, 4, 6, 8, 10, 12]


def test_a_view_is_one_moment(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    with table.writer() as writer:
        writer.append([{"id": 1, "content": "x"}])
        batches = iter(table.search(columns=["id"]))
        first = next(batches).to_pylist()
        writer.append([{"id": 2, "content": "x"}])
        rest = [row for batch in batches for row in batch.to_pylist()]
    assert first + rest == [{"id": 1}]
    assert isinstance(table._view(), View)


def test_a_table_may_have_more_segments_than_a_process_may_have_open_files(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by="source")
    table.append([{"source": f"s{number}", "content": f"line needle{number}"} for number in range(150)])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    gc.collect()
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 70, hard))
    try:
        fresh = open_table(tmp_path / "table")
        assert len(fresh.snapshot().segments) == 150
        for threads in (1, 2):
            assert fresh.search(contains("line"), threads=threads).count() == 150
            assert fresh.search(contains("line"), threads=threads, order="newest").arrow().num_rows == 150
        assert fresh.search(term("needle77")).count() == 1
        assert fresh.verify(deep=True).is_sound
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_limit_with_a_context_takes_the_newest(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    rows = [line(0) | {"timestamp": START + timedelta(minutes=n), "id": n, "content": "x"} for n in range(90)]
    for number in (10, 40, 70):
        rows[number]["content"] = "boom"
    with table.writer(options=SMALL) as writer:
        writer.append(rows)
    for order, expected in (("newest", [70, 40, 10]), ("oldest", [10, 40, 70])):
        for limit in (1, 2, 3):
            found = list(table.search("boom", order=order, limit=limit, context=1).rows())  # type: ignore[arg-type]
            assert [row["id"] for row in found if row["match"]] == expected[:limit]
            assert len(found) == 3 * limit


def test_results_by_time_are_merged_in_reasonable_time(tmp_path: Path) -> None:
    """Batches that all overlap in time: each is sorted once."""
    times = [START + timedelta(seconds=(number * 7919) % 20_011) for number in range(20_000)]
    table = create_table(tmp_path / "table")
    with table.writer(options=SegmentOptions(batch_bytes=400)) as writer:
        writer.append(pa.table({"timestamp": times, "content": ["some line of text"] * len(times)}))
    found = table.search("line", order="newest", columns=["timestamp"]).arrow().column(0).to_pylist()
    assert found == sorted(times, reverse=True)
    assert table.search("line", order="oldest", limit=5).arrow().column("timestamp").to_pylist() == sorted(times)[:5]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([b"needle"], pa.large_binary()),
        pa.array([b"needle"], pa.binary(6)),
        pa.array([b"needle"], pa.binary()).dictionary_encode(),
        pa.array(["needle"], pa.large_string()),
        pa.array([["needle"]], pa.list_(pa.string())),
        pa.array([5], pa.int64()),
    ],
    ids=lambda values: str(values.type),
)
def test_sketches_and_scan_agree_on_all_fields_of_any_type(tmp_path: Path, values: pa.Array) -> None:
    pq.write_table(pa.table({"content": ["x"], "other": values}), tmp_path / "a.parquet")
    table = open_table(tmp_path)
    table.index()
    for field in (ALL_FIELDS, "*", "other"):
        search = contains("needle", field=field)
        assert table.search(search).count() == table.search(search, use_sketches=False).count()


def test_times_in_nanoseconds_can_be_searched(tmp_path: Path) -> None:
    times = pa.array([1_717_200_000_000_000_001, 1_717_200_000_000_000_999], pa.timestamp("ns"))
    pq.write_table(pa.table({"timestamp": times, "content": ["a", "b"]}), tmp_path / "a.parquet")
    table = open_table(tmp_path)
    assert table.search(order="newest").arrow().num_rows == 2
    assert table.search(since=1_717_200_000_000_000, context=1).arrow().num_rows >= 2


def test_a_predicate_has_no_truth(table: Table) -> None:
    with pytest.raises(UsageError, match="&"):
        table.search(contains("a") and contains("b"))


@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize("context", [(0, 1), (1, 0), (1, 1), (3, 2)])
def test_a_limit_with_context_keeps_the_first_matches_of_the_order(
    tmp_path: Path, order: Any, context: tuple[int, int]
) -> None:
    """Neighbouring matches share a group, in which records are in the order they came: newest first cuts its start."""
    table = create_table(tmp_path / "t")
    start, marks = datetime(2024, 6, 1, tzinfo=UTC), "..xx.x....xxx...x.x"
    rows = [
        {"timestamp": start + timedelta(seconds=n), "source": "a", "content": f"{m} {n}"} for n, m in enumerate(marks)
    ]
    table.append(rows)
    matches = [n for n, mark in enumerate(marks) if mark == "x"]
    for limit in range(1, len(matches) + 2):
        found = list(table.search("x", order=order, limit=limit, context=context).rows())
        numbers = [int(row["content"].split()[1]) for row in found]
        kept = [number for number, row in zip(numbers, found, strict=True) if row["match"]]
        assert sorted(kept) == (matches[-limit:] if order == "newest" else matches[:limit])
        around = {near for at in kept for near in range(at - context[0], at + context[1] + 1) if 0 <= near < len(marks)}
        dropped = set(matches) - set(kept)
        assert set(numbers) <= around
        assert {near for near in around if near not in dropped} - set(numbers) <= {
            near for near in around if any(min(near, at) < gone < max(near, at) for gone in dropped for at in kept)
        }


def test_what_is_no_predicate_and_no_query_is_refused(table: Table) -> None:
    with pytest.raises(UsageError, match=r"pass contains\(text\)"):
        table.delete("user5")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="expected the text of a query"):
        table.query(5)  # type: ignore[arg-type]
