"""`optimize --repartition` changes the layout of a table in one commit, and no record."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coprlake import contains, equals
from coprlake.errors import ConflictError, UsageError
from coprlake.storage import repartitioning
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.storage.repartitioning import Repartitioner
from coprlake.table import Table, create_table, open_table
from tests.storage.test_optimizing import SMALL, START, record, rows_of, tables


def foreign_rows(table: Table) -> list[dict[str, Any]]:
    """What delta-rs reads."""
    found = DeltaTable(table.uri).to_pyarrow_table()
    names = [name for name in table.schema.names if name != "day"]
    return sorted(found.select(names).to_pylist(), key=lambda row: row["id"])


def files(table: Table) -> set[str]:
    return {path.name for path in Path(table.uri).rglob("*.parquet") if "_delta_log" not in path.parts}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.lists(st.sampled_from(["none", "day"]), min_size=1, max_size=3))
def test_records_stay_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    made: tuple[list[list[dict[str, Any]]], str | None, int],
    layouts: list[Any],
) -> None:
    commits, partition_by, target = made
    table = create_table(tmp_path_factory.mktemp("t") / "table", partition_by=partition_by)
    for commit in commits:
        with table.writer(options=SMALL) as writer:
            writer.append(commit)
    before = rows_of(table)
    for layout in layouts:
        table.optimize(repartition=layout, target_bytes=target)
        table = open_table(table.uri)
        assert table.partition_by == ([] if layout == "none" else ["day"])
        assert ("day" in table.schema.names) == (layout == "day")
        assert rows_of(table) == before
        assert [row["id"] for row in foreign_rows(table)] == [row["id"] for row in before]
        assert table.verify(deep=True).is_sound
        for row in before:
            found = table.search(contains(row["content"])).rows()
            assert row["id"] in [one["id"] for one in found]
        if layout == "day":
            for row in table.search(columns=["timestamp", "day"]).rows():
                assert row["day"] == (row["timestamp"] and row["timestamp"].date())


def by_day(path: Path) -> Table:
    table = create_table(path, partition_by="day")
    for number in range(4):
        table.append([record(number * 5 + each, number + each * 24) for each in range(5)])
    return table


def test_one_commit_changes_the_layout(tmp_path: Path) -> None:
    table = by_day(tmp_path / "table")
    before, version = rows_of(table), table.version
    report = table.optimize(repartition="none")
    assert (report.segments_before, report.segments_after, report.tokenized_again) == (20, 1, 0)
    assert report.version == version + 1
    assert table.partition_by == []
    assert "day" not in table.schema.names
    assert rows_of(table) == before
    delta = DeltaTable(table.uri)
    assert delta.metadata().partition_columns == []
    assert [row["id"] for row in foreign_rows(table)] == list(range(20))
    assert DeltaTable(table.uri, version=version).metadata().partition_columns == ["day"]
    table.append([record(20, 3)])  # it stays usable
    assert table.optimize(repartition="none").merged == 2, "what has this layout is only merged"
    assert len(rows_of(table)) == 21
    with pytest.raises(UsageError, match="none or day"):
        table.optimize(repartition="week")  # type: ignore[arg-type]


def test_other_partition_columns_become_columns_of_the_files(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=["day", "source"])
    for number in range(12):
        table.append([record(number, number * 10)])
    table.append([record(12, 5, source=None)])
    before = rows_of(table)
    table.optimize(repartition="none")
    assert rows_of(table) == before
    assert table.search(equals("source", "host1")).count() == 4
    assert table.search(contains("host1", "source")).count() == 4
    found = DeltaTable(table.uri).to_pyarrow_table()
    assert sorted(filter(None, found.column("source").to_pylist())) == sorted(f"host{n % 3}" for n in range(12))


def test_a_day_that_is_not_of_the_timestamp_is_kept(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by="day")
    own = date(1999, 1, 1)
    for number in range(3):
        table.append([record(number, number, day=own), record(number + 3, None, day=own)])
    table.optimize(repartition="none")
    assert table.partition_by == []
    assert [row["day"] for row in table.search(columns=["day"]).rows()] == [own] * 6
    assert table.search(equals("day", own)).count() == 6
    table.optimize(repartition="day")
    assert table.partition_by == ["day"]
    assert [row["day"] for row in table.search(columns=["day"]).rows()] == [own] * 6


def test_a_text_called_day_is_no_partition(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    table.append([record(0, 0, day="monday")])
    with pytest.raises(UsageError, match="a column day of its own"):
        table.optimize(repartition="day")


def test_a_writer_of_the_old_layout_cannot_commit(tmp_path: Path) -> None:
    table = by_day(tmp_path / "table")
    writer = table.writer(searchable=False)
    writer.append([record(20, 0)])
    open_table(table.uri).optimize(repartition="none")
    with pytest.raises(ConflictError, match="partitioned by nothing now"):
        writer.commit()
    writer.abandon()
    assert [row["id"] for row in foreign_rows(table)] == list(range(20))
    assert open_table(table.uri).verify(deep=True).is_sound


@pytest.mark.parametrize("layout", ["none", "day"])
def test_what_others_do_meanwhile_is_taken_into_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: Any
) -> None:
    table = by_day(tmp_path / "table")
    if layout == "day":
        table.optimize(repartition="none")
        table.append([record(20, 30)])
    rewrite = Repartitioner._rewrite
    turns: list[int] = []

    def meet_others(self: Repartitioner, *arguments: Any) -> None:
        rewrite(self, *arguments)
        turns.append(len(turns))
        if len(turns) == 1:
            open_table(table.uri).append([record(100, 200)])
        elif len(turns) == 2:
            open_table(table.uri).delete(equals("id", 7))

    monkeypatch.setattr(Repartitioner, "_rewrite", meet_others)
    table.optimize(repartition=layout)
    assert len(turns) == 3
    expected = {*range(20 + (layout == "day")), 100} - {7}
    assert {row["id"] for row in rows_of(table)} == expected
    assert {row["id"] for row in foreign_rows(table)} == expected
    assert open_table(table.uri).verify(deep=True).is_sound
    table.vacuum(retention_hours=0)
    assert files(table) == {Path(segment.name).name for segment in table.snapshot().segments}


@pytest.mark.parametrize("layout", ["none", "day"])
def test_a_failure_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: Any) -> None:
    table = by_day(tmp_path / "table")
    if layout == "day":
        table.optimize(repartition="none")
        table.vacuum(retention_hours=0)
    before, present, version = rows_of(table), files(table), table.version

    def fail(*_: Any, **__: Any) -> int:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(DeltaLog, "commit", fail)
    with pytest.raises(OSError, match="no space"):
        table.optimize(repartition=layout)
    monkeypatch.undo()
    assert files(table) == present
    table = open_table(table.uri)
    assert (table.version, rows_of(table)) == (version, before)


def test_others_who_never_stop_give_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = by_day(tmp_path / "table")
    monkeypatch.setattr(repartitioning, "ATTEMPTS", 2)
    rewrite = Repartitioner._rewrite

    def meet_others(self: Repartitioner, *arguments: Any) -> None:
        rewrite(self, *arguments)
        open_table(table.uri).append([record(0, 0)])

    monkeypatch.setattr(Repartitioner, "_rewrite", meet_others)
    present = files(table)
    with pytest.raises(ConflictError):
        table.optimize(repartition="none")
    assert len(files(table) - present) == 2, "only what was appended"
    assert table.partition_by == ["day"]


def test_times_outside_of_dates_have_no_day(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by="day")
    far = pa.array([0, 1 << 62], pa.int64()).cast(pa.timestamp("us", "UTC"))
    table.append(pa.table({"timestamp": far, "content": ["a", "b"], "id": [0, 1]}))
    table.optimize(repartition="none")
    assert "day" not in table.schema.names
    assert table.search().count() == 2
    assert table.search(until=datetime(1971, 1, 1, tzinfo=UTC)).count() == 1
    table.optimize(repartition="day")
    days = {row["content"]: row["day"] for row in table.search(columns=["content", "day"]).rows()}
    assert days == {"a": date(1970, 1, 1), "b": None}


def test_records_of_others_without_a_time_stay_without_one(tmp_path: Path) -> None:
    times = pa.array([0, None, 1], pa.int64()).cast(pa.timestamp("us", "UTC"))
    data = pa.table({"timestamp": times, "content": ["a", "b", "c"], "id": pa.array([0, 1, 2], pa.int64())})
    write_deltalake(str(tmp_path / "table"), data)
    table = open_table(tmp_path / "table")
    before = rows_of(table)
    for layout, days in (("day", [date(1970, 1, 1), None, date(1970, 1, 1)]), ("none", None)):
        table.optimize(repartition=layout)  # type: ignore[arg-type]
        assert rows_of(table) == before
        if days is not None:
            found = sorted(table.search(columns=["id", "day"]).rows(), key=lambda row: row["id"])
            assert [row["day"] for row in found] == days
    assert "day" not in table.schema.names


def test_a_search_by_time_needs_no_partitions(tmp_path: Path) -> None:
    table = by_day(tmp_path / "table")
    day = START + timedelta(days=2)
    expected = sorted(row["id"] for row in table.search(since=day, until=day + timedelta(days=1)).rows())
    table.optimize(repartition="none")
    assert sorted(row["id"] for row in table.search(since=day, until=day + timedelta(days=1)).rows()) == expected
