"""On Spark as in this process: nested text, names in another case, times in another column, and links."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coprlake.errors import UsageError
from coprlake.predicate.build import contains, equals
from coprlake.predicate.predicates import ALL_FIELDS, Predicate
from coprlake.spark.jobs.ingesting import ingest
from coprlake.spark.jobs.searching import search
from coprlake.spark.source.filter_expressions import column_of
from coprlake.spark.streams.folder_stream import stream_folder
from coprlake.spark.streams.streaming import BatchReport, StreamSettings
from coprlake.table import create_table, open_table

HOURS = [datetime(2024, 6, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(20)]
RECORDS = pa.table(
    {
        "id": list(range(20)),
        "When": pa.array(HOURS, pa.timestamp("us", "UTC")),
        "Level": ["ERROR", "info"] * 10,
        "request": pa.array([{"host": f"host{n}", "size": n} for n in range(20)]),
        "tags": pa.array([[("k", f"tag{n}")] for n in range(20)], pa.map_(pa.string(), pa.string())),
    }
)
PREDICATES: list[Predicate] = [
    contains("host7", ALL_FIELDS),
    equals("request.host", "host7"),
    equals("tags[k]", "tag7"),
    equals("request.size", 7),
    contains("tag1", "tags"),
    ~contains("host1", ALL_FIELDS),
]


def test_spark_finds_the_same(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(RECORDS, tmp_path / "a.parquet", row_group_size=5)
    table = open_table(tmp_path)

    def found(query: Predicate, since: datetime | None = None) -> list[int]:
        return sorted(row["id"] for row in search(spark, table, query, columns=["id"], since=since).collect())

    for predicate in [*PREDICATES, equals("level", "error")]:
        expected = sorted(row["id"] for row in table.search(predicate).rows())
        assert expected
        assert found(predicate) == expected, str(predicate)
    assert found(equals("LEVEL", "info"), since=HOURS[15]) == [15, 17, 19]
    with pytest.raises(UsageError, match="no field levle"):
        found(equals("levle", "x"))


@pytest.mark.usefixtures("spark")
def test_nested_columns_have_no_expression_of_sparks() -> None:
    for predicate in PREDICATES:
        assert column_of(predicate, RECORDS.schema) is None
    assert column_of(equals("Level", "x"), RECORDS.schema) is not None


def test_links_out_of_a_folder_are_not_followed(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (tmp_path / "secret.log").write_text("2026-11-16T03:55:00Z INFO secret\n")
    (folder / "own.log").write_text("2026-11-16T03:55:00Z INFO own\n")
    (folder / "link.log").symlink_to(tmp_path / "secret.log")
    table = create_table(tmp_path / "t")
    report = ingest(spark, [folder], table)
    assert (report.read.skipped_links, report.row_count) == (1, 1)
    assert ingest(spark, [folder], create_table(tmp_path / "u"), follow_links=True).row_count == 2
    for follow, expected in ((False, (1, 1)), (True, (0, 2))):
        reports: list[BatchReport] = []
        settings = StreamSettings(once=True, on_batch=reports.append, follow_links=follow)
        query = stream_folder(spark, folder, create_table(tmp_path / f"stream{follow}"), settings)
        assert query.awaitTermination(120)
        skipped, rows = sum(one.read.skipped_links for one in reports), sum(one.row_count for one in reports)
        assert (skipped, rows) == expected
