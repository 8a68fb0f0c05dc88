"""Tables that somebody else wrote: found as they are, indexed beside, never changed."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from coprlake.errors import UsageError
from coprlake.predicate.build import at_least, contains, equals
from coprlake.table import Table, create_table, open_table

START = datetime(2024, 6, 1, tzinfo=UTC)


def rows(first: int = 0, count: int = 10) -> pa.Table:
    return pa.table(
        {
            "timestamp": pa.array(
                [START + timedelta(hours=n) for n in range(first, first + count)], pa.timestamp("us", "UTC")
            ),
            "content": [f"line {n} word{n}" for n in range(first, first + count)],
            "id": list(range(first, first + count)),
        }
    )


def ids(table: Table, *arguments: Any, **options: Any) -> list[int]:
    return sorted(row["id"] for row in table.search(*arguments, columns=["id"], **options).rows())


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and "_coprlake" not in p.parts
    }


@pytest.mark.parametrize(
    "name", ["a.parquet", "sub/folder/a.parquet", "with space.parquet", "per%20cent.parquet", "ä.parquet"]
)
def test_a_folder_of_parquet_files_is_a_table(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(), tmp_path / name, row_group_size=3)
    before = files(tmp_path)
    table = open_table(tmp_path)
    assert ids(table, "word7") == [7]
    assert table.search().count() == 10
    assert table.index().indexed == 1
    search = table.search("word7")
    assert search.count() == 1
    assert search.report.problems == []
    assert search.report.batches_opened == 1
    assert table.info().rows == 10
    assert table.verify(deep=True).is_sound
    assert files(tmp_path) == before
    assert (tmp_path / "_coprlake" / f"{name}.copr").is_file()


def test_names_of_folders_are_columns(tmp_path: Path) -> None:
    for year, app in ((2023, "a b"), (2024, "x")):
        place = tmp_path / f"year={year}" / f"app={app.replace(' ', '%20')}"
        place.mkdir(parents=True)
        pq.write_table(rows(year, 2), place / "part.parquet")
    place = tmp_path / "year=2025" / "app=__HIVE_DEFAULT_PARTITION__"
    place.mkdir(parents=True)
    pq.write_table(rows(2025, 1), place / "part.parquet")
    table = open_table(tmp_path)
    assert table.partition_by == ["year", "app"]
    for _ in range(2):
        assert ids(table, equals("app", "a b")) == [2023, 2024]
        assert ids(table, equals("year", "2024")) == [2024, 2025]
        assert ids(table, at_least("year", 2024)) == [2024, 2025, 2025]
        assert ids(table, ~equals("app", "x")) == [2023, 2024, 2025]
        table.index()


def test_a_partition_column_that_is_also_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "id=7").mkdir()
    pq.write_table(rows(7, 1), tmp_path / "id=7" / "a.parquet")
    table = open_table(tmp_path)
    assert ids(table) == [7]
    assert ids(table, equals("id", 7)) == [7]
    assert ids(table, equals("id", 8)) == []


def test_hidden_files_are_left_aside(tmp_path: Path) -> None:
    pq.write_table(rows(), tmp_path / "a.parquet")
    for name in ("_temporary/b.parquet", ".hidden.parquet", "_c.parquet", "readme.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(rows(100), tmp_path / name)
    assert ids(open_table(tmp_path)) == list(range(10))


def test_files_with_other_columns_and_types(tmp_path: Path) -> None:
    pq.write_table(rows(0, 2), tmp_path / "a.parquet")
    other = rows(2, 2).drop_columns(["timestamp"]).append_column("extra", pa.array(["x", "y"]))
    pq.write_table(other, tmp_path / "b.parquet")
    pq.write_table(rows(4, 2).set_column(2, "id", pa.array([4, 5], pa.int16())), tmp_path / "c.parquet")
    table = open_table(tmp_path)
    for _ in range(2):
        assert ids(table) == [0, 1, 2, 3, 4, 5]
        assert ids(table, equals("extra", "y")) == [3]
        assert ids(table, since=START + timedelta(hours=1)) == [1, 4, 5]
        assert len(list(table.search(order="newest").rows())) == 6
        table.index()


def test_a_value_of_another_type_than_its_column_is_null(tmp_path: Path) -> None:
    pq.write_table(pa.table({"content": ["a"], "k": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"content": ["b"], "k": ["text"]}), tmp_path / "b.parquet")
    table = open_table(tmp_path)
    assert table.search("b").count() == 1
    rows = sorted(table.search().rows(), key=lambda row: row["content"])
    assert rows == [{"content": "a", "k": 1}, {"content": "b", "k": None}]


def test_a_folder_without_times_and_content(tmp_path: Path) -> None:
    pq.write_table(pa.table({"name": ["one", "two", None], "n": [1, 2, 3]}), tmp_path / "a.parquet")
    table = open_table(tmp_path)
    for _ in range(2):
        assert table.search().count() == 3
        assert [row["n"] for row in table.search(equals("name", "two")).rows()] == [2]
        assert [row["n"] for row in table.search(contains("one", "*")).rows()] == [1]
        assert [row["n"] for row in table.search("two").rows()] == [2]
        with pytest.raises(UsageError, match="no column content"):
            table.search(contains("x", "content")).count()
        assert len(list(table.search(order="newest", limit=2).rows())) == 2
        with pytest.raises(UsageError, match="no column timestamp"):
            table.search(since=START).count()
        assert len(list(table.search(equals("n", 2), context=1).rows())) == 3
        table.index()


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.binary()]
)
def test_text_of_all_types(tmp_path: Path, kind: pa.DataType) -> None:
    content = pa.array(["hello world", None, "other"], pa.string())
    pq.write_table(pa.table({"content": content.cast(kind), "id": [0, 1, 2]}), tmp_path / "a.parquet")
    found = open_table(tmp_path)
    for _ in range(2):
        assert ids(found, contains("WORLD")) == [0]
        assert ids(found) == [0, 1, 2]
        found.index()


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ms"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()]
)
def test_times_of_all_types(tmp_path: Path, kind: pa.DataType) -> None:
    times = pa.array([datetime(2024, 6, day) for day in (1, 2, 3)], pa.timestamp("us")).cast(kind)
    pq.write_table(pa.table({"timestamp": times, "id": [0, 1, 2]}), tmp_path / "a.parquet", row_group_size=1)
    table = open_table(tmp_path)
    for _ in range(2):
        assert ids(table, since=datetime(2024, 6, 2)) == [1, 2]
        assert ids(table, until=date(2024, 6, 2)) == [0]
        assert [row["id"] for row in table.search(order="newest").rows()] == [2, 1, 0]
        table.index()


def test_times_that_are_numbers_are_no_times(tmp_path: Path) -> None:
    pq.write_table(pa.table({"timestamp": [5, 6], "id": [0, 1]}), tmp_path / "a.parquet")
    table = open_table(tmp_path)
    assert ids(table) == [0, 1]
    assert len(list(table.search(order="newest").rows())) == 2


def test_files_by_duckdb_and_pandas(tmp_path: Path) -> None:
    duckdb.from_arrow(rows()).write_parquet(f"{tmp_path}/duck.parquet", compression="zstd")
    frame: pd.DataFrame = rows(10).to_pandas().set_index("id", drop=False).rename_axis("index")
    frame.to_parquet(tmp_path / "pandas.parquet")
    table = open_table(tmp_path)
    table.index()
    assert ids(table, contains("word")) == list(range(20))
    assert ids(table, contains("word13")) == [13]
    assert table.verify(deep=True).is_sound


# --- Delta tables ---


def test_a_delta_table_of_another_writer(tmp_path: Path) -> None:
    for first in (0, 10):
        write_deltalake(str(tmp_path), rows(first), mode="append")
    table = open_table(tmp_path)
    before = files(tmp_path)
    assert ids(table, "word13") == [13]
    assert table.index().indexed == 2
    assert files(tmp_path) == before
    assert ids(table, "word13") == [13]
    assert table.search("word13").explain().segments_pruned_by_sketch == 1
    table.append([{"id": 100, "content": "by us"}])
    assert ids(table) == [*range(20), 100]
    table.optimize()
    table.delete(equals("id", 5))
    assert ids(open_table(tmp_path)) == [number for number in [*range(20), 100] if number != 5]
    assert sorted(DeltaTable(str(tmp_path)).to_pyarrow_table().column("id").to_pylist()) == ids(table)
    assert table.verify(deep=True).is_sound


@pytest.mark.parametrize(
    "values", [["a b", "c/d", "e%20f", "ä", None], [1, 2, 3, 4, None], [True, False, True, False, None]]
)
def test_a_delta_table_with_partitions_of_another_writer(tmp_path: Path, values: list[Any]) -> None:
    data = rows(0, 5).append_column("p", pa.array(values))
    write_deltalake(str(tmp_path), data, partition_by=["p"])
    table = open_table(tmp_path)
    for _ in range(2):
        for number, value in enumerate(values[:4]):
            assert number in ids(table, equals("p", value))
        assert [row["p"] for row in sorted(table.search().rows(), key=lambda row: row["id"])] == values
        table.index()
    table.append(data)
    table.optimize()
    assert ids(table) == sorted([*range(5)] * 2)
    table.delete(equals("p", values[0]))
    assert all(row["p"] != values[0] for row in table.search().rows())
    assert 4 in ids(table)
    assert DeltaTable(str(tmp_path)).to_pyarrow_table().num_rows == table.search().count()


def test_missing_times_in_a_delta_table_are_kept_by_a_delete_by_time(tmp_path: Path) -> None:
    data = rows(0, 3).set_column(0, "timestamp", pa.array([START, None, START], pa.timestamp("us", "UTC")))
    write_deltalake(str(tmp_path), data)
    table = open_table(tmp_path)
    assert ids(table) == [0, 1, 2]
    table.delete(until=START + timedelta(days=1))
    assert ids(table) == [1]


def truncate_statistics(path: Path) -> None:
    """As Spark writes them: times cut to milliseconds."""
    for file in sorted((path / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            if "add" in action:
                stats = json.loads(action["add"]["stats"])
                for side in ("minValues", "maxValues"):
                    moment = datetime.fromisoformat(stats[side]["timestamp"])
                    stats[side]["timestamp"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
                action["add"]["stats"] = json.dumps(stats)
        file.write_text("\n".join(map(json.dumps, actions)) + "\n")


def test_statistics_in_milliseconds_hide_no_record(tmp_path: Path) -> None:
    times = [START + timedelta(microseconds=us) for us in (1100, 1500, 1900)]
    data = rows(0, 3).set_column(0, "timestamp", pa.array(times, pa.timestamp("us", "UTC")))
    write_deltalake(str(tmp_path), data)
    truncate_statistics(tmp_path)
    table = open_table(tmp_path)
    assert ids(table, since=times[1]) == [1, 2]
    assert ids(table, until=times[1]) == [0]
    table.delete(until=times[1])
    assert ids(table) == [1, 2]


def test_a_delta_table_without_statistics(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), rows())
    for file in (tmp_path / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            action.get("add", {}).pop("stats", None)
        file.write_text("\n".join(map(json.dumps, actions)) + "\n")
    table = open_table(tmp_path)
    for _ in range(2):
        assert table.search().count() == 10
        assert ids(table, since=START + timedelta(hours=8)) == [8, 9]
        assert table.info().segments == 1
        table.index()
    assert table.info().rows == 10
    assert table.delete(until=START + timedelta(hours=5)).rows == 5
    assert ids(table) == [5, 6, 7, 8, 9]


def test_another_writer_may_append_to_our_table(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None, schema=pa.schema([("id", pa.int64())]))
    table.append(rows().to_pylist())
    write_deltalake(str(tmp_path / "table"), rows(10), mode="append", schema_mode="merge")
    assert ids(table) == list(range(20))
    assert ids(table, "word15") == [15]
    assert table.index().indexed == 1
    assert ids(table, "word15") == [15]


def test_another_engine_may_delete_from_our_table(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    table.append(rows().to_pylist())
    DeltaTable(str(tmp_path / "table")).delete("id < 5")
    assert ids(table) == [5, 6, 7, 8, 9]
    assert ids(table, "word7") == [7]
    DeltaTable(str(tmp_path / "table")).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    table.index()
    assert ids(table, "word7") == [7]
    table.vacuum(retention_hours=0)
    assert table.verify(deep=True).is_sound


@pytest.mark.slow
def test_many_commits_make_checkpoints(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    for number in range(103):
        table.append([{"id": number, "content": "x"}])
    assert ids(open_table(tmp_path / "table")) == list(range(103))
    DeltaTable(str(tmp_path / "table")).create_checkpoint()
    assert ids(open_table(tmp_path / "table")) == list(range(103))
    assert ids(table) == list(range(103))


def test_values_that_do_not_fit_are_kept_in_a_table_without_attributes(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"source": [1, 2], "id": [0, 1], "content": ["a", "b"]}))
    table = open_table(tmp_path)
    table.append([{"id": 2, "content": "c", "extra": 1}, {"id": 3, "content": "d", "extra": 2}])
    table.append([{"id": 4, "content": "e", "extra": "no number"}])
    assert ids(table) == [0, 1, 2, 3, 4]
    assert ids(table, equals("extra", "no number")) == [4]
    table.optimize()
    assert ids(table, equals("extra", "no number")) == [4]


def test_a_delete_by_time_spares_records_without_a_time(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [0, 1], "content": ["a", "b"]}))
    table = open_table(tmp_path)
    with pytest.raises(UsageError, match="no column timestamp"):
        table.delete(until=START)
    table.append([{"id": 2, "content": "c", "timestamp": START}])
    assert table.delete(until=START + timedelta(hours=1)).rows == 1
    assert ids(table) == [0, 1]
    assert table.delete(equals("id", 1)).rows == 1
    assert ids(table) == [0]


def test_a_timestamp_of_text_is_no_time(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"timestamp": ["2024-06-01", "soon"], "id": [0, 1], "content": ["a", "b"]}))
    table = open_table(tmp_path)
    assert ids(table) == [0, 1]
    assert len(list(table.search(order="newest").rows())) == 2
    with pytest.raises(UsageError, match="timestamp is string"):
        table.search(since=START + timedelta(days=1)).count()
    with pytest.raises(UsageError, match="timestamp is string"):
        table.delete(until=START + timedelta(days=-1))
    assert ids(table) == [0, 1]
