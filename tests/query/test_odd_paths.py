"""The names of the folders above a table say nothing about its records, whatever engine reads it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from coprlake import EVERYTHING, Table, contains, create_table, open_table
from coprlake import spark as lake
from coprlake.errors import UsageError
from coprlake.query import duck_scan
from coprlake.spark.jobs import searching
from tests.spark_sessions import QUIET, ids, load

pytestmark = QUIET

BEGIN = datetime(2026, 11, 16, tzinfo=UTC)
ROWS = [
    {
        "id": number,
        "timestamp": BEGIN + timedelta(days=number % 2),
        "source": ("web", "db")[number % 2],
        "loglevel": ("INFO", "ERROR")[number // 2 % 2],
        "content": f"record {number}",
    }
    for number in range(8)
]
GROUPS = [("db", "ERROR", 2), ("db", "INFO", 2), ("web", "ERROR", 2), ("web", "INFO", 2)]
COUNTS = "fetch logs | summarize n = count(), by:{source, loglevel} | sort source, loglevel"
FOUND = 'fetch logs | filter contains(content, "record") | summarize n = count(), by:{source, loglevel} | sort source'

FOLDERS = [
    "loglevel=FOO/source=BAR",
    "id=7/day=2020-01-01",
    "a b/c'd",
    "x[1]/y*z/q?",
    "käse=größe/日本",
    "{a,b}/#1",
    'quote"/a:b',
    "source=__HIVE_DEFAULT_PARTITION__",
    "timestamp=never",
]
REFUSED = {"p%3D1/50%": "percent sign", "back\\slash": "backslash"}


def _groups(rows: Any) -> list[tuple[str, str, int]]:
    return sorted((row["source"], row["loglevel"], row["n"]) for row in rows)


def _tables(plain_place: Path, folder: str) -> list[Table]:
    """The same records as a table of ours, as one of another writer, and as a folder of Parquet files."""
    place = plain_place / folder
    data = pa.Table.from_pylist(ROWS)
    own = create_table(place / "own")
    own.append(ROWS)
    # deltalake's own writer does not take every path
    write_deltalake(str(plain_place / "foreign"), data, partition_by=["loglevel"])
    (plain_place / "foreign").rename(place / "foreign")
    for name, rows in (("source=web", ROWS[::2]), ("source=db", ROWS[1::2])):
        (place / "folder" / name).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows).drop_columns(["source"]), place / "folder" / name / "part-0.parquet")
    return [own, open_table(place / "foreign"), open_table(place / "folder")]


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders_above_a_table_are_not_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    for table in _tables(tmp_path, folder):
        for little in (duck_scan.LITTLE_BYTES, 0):  # searched here, and read by DuckDB
            monkeypatch.setattr(duck_scan, "LITTLE_BYTES", little)
            assert _groups(table.query(COUNTS)) == GROUPS, table.uri
            assert _groups(table.query(FOUND)) == GROUPS, table.uri
            assert [row["id"] for row in table.query("fetch logs | fields id | sort id")] == list(range(8))
        assert table.search(contains("record")).count() == 8
        rows = table.search(EVERYTHING, columns=["id", "source", "loglevel"]).rows()
        assert {(row["id"], row["source"], row["loglevel"]) for row in rows} == {
            (row["id"], row["source"], row["loglevel"]) for row in ROWS
        }


@pytest.mark.parametrize("folder", REFUSED)
def test_a_path_that_the_log_would_misread_is_refused(tmp_path: Path, folder: str) -> None:
    with pytest.raises(UsageError, match=REFUSED[folder]):
        create_table(tmp_path / folder / "own")
    (tmp_path / folder / "files").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / folder / "files" / "part-0.parquet")
    assert _groups(open_table(tmp_path / folder / "files").query(COUNTS)) == GROUPS  # which has no log


def test_plain_paths_are_still_read_by_duckdb(tmp_path: Path) -> None:
    """Else the test above would say nothing about DuckDB's reader."""
    for table in _tables(tmp_path, FOLDERS[0]):
        query = table.query(COUNTS)
        assert _groups(query) == GROUPS
        assert [scan.way for scan in query.report.scans] == ["Parquet files, read by DuckDB"]


@pytest.mark.parametrize("folder", ["/".join([*FOLDERS[:3], FOLDERS[4]]), "{a}[b]*?/#:"])
def test_folders_above_a_table_are_not_partitions_for_spark(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
) -> None:
    table = _tables(tmp_path, folder)[0]
    assert ids(load(spark, table.uri).filter("source = 'web'")) == [0, 2, 4, 6]
    for much in (searching.MUCH_BYTES, 0):  # read by our tasks, and by Spark's own reader
        monkeypatch.setattr(searching, "MUCH_BYTES", much)
        found = lake.search(spark, table, contains("record", "content"), columns=["id", "source", "loglevel"]).collect()
        assert sorted(map(tuple, found)) == [(row["id"], row["source"], row["loglevel"]) for row in ROWS]
        assert _groups(lake.query(spark, table, COUNTS)) == GROUPS


def test_sparks_reader_reads_a_table_below_a_partition_of_somebody_else(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the test above would say nothing about Spark's reader."""
    monkeypatch.setattr(searching, "MUCH_BYTES", 0)
    table = _tables(tmp_path, FOLDERS[0])[0]
    assert lake.plan_search(table, contains("record", "content")).goes_through_parquet
