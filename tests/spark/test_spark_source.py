"""The data source ``coprlake``: what it reads is what is there, and what it writes is there once or not at all."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession, datasource, functions
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import DateType, LongType, MapType, StringType, TimestampType

from coprlake import spark as lake
from coprlake.errors import UsageError
from coprlake.predicate.build import contains, equals
from coprlake.records import SCHEMA
from coprlake.spark.source.sink import BatchSink, PartMessage, StreamSink
from coprlake.spark.source.source_options import WriteSettings, read_settings, write_settings
from coprlake.table import Table, create_table, open_table
from tests.spark_sessions import QUIET, data_files, ids, load

pytestmark = [pytest.mark.slow, *QUIET]
START = datetime(2024, 6, 1, tzinfo=UTC)
ROWS: list[dict[str, Any]] = [
    {
        "id": number,
        "timestamp": START + timedelta(hours=number),
        "source": f"host-{number % 3}",
        "loglevel": ["INFO", None, "WARN"][number % 3],
        "content": f"GET /index-{number:03} from 10.0.0.{number} took {number * 7} ms",
        "attributes": [("region", "eu-1"), ("status", "hidden")] if number % 2 else None,
        "status": [200, 404, None][number % 3],
        "userapp": [None, "shop", "Shop 100%"][number % 3],
    }
    for number in range(72)
]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table by day, with a commit a day."""
    path = tmp_path_factory.mktemp("logs") / "table"
    table = create_table(path, partition_by="day")
    for day in range(3):
        table.append(ROWS[24 * day : 24 * day + 24])
    return path


def numbers(test: Callable[[dict[str, Any]], Any]) -> list[int]:
    return [row["id"] for row in ROWS if test(row)]


# --- options ---


def test_options_have_types_and_any_case() -> None:
    settings = read_settings({"path": "t", "shareBytes": "12", "Use_Sketches": "FALSE"})
    assert (settings.share_bytes, settings.use_sketches) == (12, False)
    assert write_settings({"path": "t", "segment_bytes": "5", "checkpointLocation": "c"}).segment_bytes == 5
    for wrong, message in (
        ({"path": "t", "use_sketches": "yes"}, "true or false"),
        ({"path": "t", "PushDown": "True"}, "pushdown was removed.* option query"),
        ({"path": "t", "share_bytes": "many"}, "number of bytes"),
        ({"path": "t", "share_bytes": "0"}, "1 or more"),
        ({"path": "t", "qury": "x"}, "did you mean query"),
        ({"path": "t", "segment_bytes": "1"}, "no option segment_bytes"),
        ({"query": "x"}, "no table is named"),
    ):
        with pytest.raises(UsageError, match=message):
            read_settings(wrong)


def test_an_unknown_option_names_the_nearest_one(spark: SparkSession, logs: Path) -> None:
    with pytest.raises(PySparkException, match="did you mean since"):
        load(spark, logs, sinc="2024-06-01").count()
    with pytest.raises(PySparkException, match="did you mean partition_by"):
        load(spark, logs).write.format("coprlake").mode("append").option("partition", "x").save(str(logs))


# --- reading ---


def test_it_is_found_by_its_name(spark: SparkSession, logs: Path) -> None:
    frame = load(spark, logs)
    assert frame.count() == 72
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    assert kinds == {
        "timestamp": TimestampType(),
        "source": StringType(),
        "loglevel": StringType(),
        "content": StringType(),
        "attributes": MapType(StringType(), StringType()),
        "day": DateType(),
        "id": LongType(),
        "status": LongType(),
        "userapp": StringType(),
    }


def test_it_can_be_registered_and_named_in_sql(spark: SparkSession, logs: Path) -> None:
    session = spark.newSession()
    lake.register(session)
    assert load(session, logs).count() == 72
    session.sql(f"CREATE TEMPORARY VIEW logs USING coprlake OPTIONS (path '{logs}', query 'index-00')")
    assert session.sql("SELECT count(*), min(id), max(id) FROM logs").collect() == [(10, 0, 9)]


def test_every_value_comes_back(spark: SparkSession, logs: Path) -> None:
    found = {row["id"]: row for row in load(spark, logs).toArrow().to_pylist()}
    for row in ROWS:
        assert found[row["id"]] == row | {"day": row["timestamp"].date()}


def test_the_zone_of_the_session_does_not_matter(spark: SparkSession, logs: Path, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    frame = load(session, logs, since="2024-06-02", until="2024-06-03T00:00:00Z")
    assert ids(frame) == list(range(24, 48))
    by_day = frame.drop("day").write.format("coprlake").option("partition_by", "day")
    by_day.mode("append").save(str(tmp_path / "table"))
    for row in open_table(tmp_path / "table").search(columns=["id", "timestamp", "day"]).rows():
        assert row["timestamp"] == ROWS[row["id"]]["timestamp"]
        assert row["day"] == row["timestamp"].date()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("index-01", range(10, 20)),
        ('contains("index-01") & equals("status", 404)', (10, 13, 16, 19)),
        ('~contains("GET") | equals("region", "EU-1") & at_least("id", 68)', (69, 71)),
        ("nowhere to be found", ()),
        ('term("0.0', None),
    ],
)
def test_a_query_is_a_text_or_an_expression(spark: SparkSession, logs: Path, query: str, expected: Any) -> None:
    if expected is None:
        with pytest.raises(PySparkException, match="term"):
            load(spark, logs, query=query).count()
    else:
        assert ids(load(spark, logs, query=query)) == list(expected)


def test_a_range_of_time(spark: SparkSession, logs: Path) -> None:
    assert ids(load(spark, logs, since="2024-06-01T05:00:00Z", until="2024-06-01T08:00:00+01:00")) == [5, 6]
    assert ids(load(spark, logs, until="2024-06-01 02:00", query="index")) == [0, 1]
    with pytest.raises(PySparkException, match="ISO 8601"):
        load(spark, logs, since="once upon a time").count()


def test_only_the_columns_that_are_asked_for(spark: SparkSession, logs: Path) -> None:
    reader = spark.read.format("coprlake").option("query", "index-007")
    assert reader.schema("status long, id long").load(str(logs)).collect() == [(404, 7)]
    assert reader.schema("content string").load(str(logs)).count() == 1
    with pytest.raises(PySparkException, match="no column stat; the table has"):
        reader.schema("stat long").load(str(logs)).count()


def test_a_column_of_another_type_is_refused(spark: SparkSession, logs: Path) -> None:
    reader = spark.read.format("coprlake").option("query", "index-007").schema("status string, id int")
    with pytest.raises(PySparkException):
        reader.load(str(logs)).collect()


def test_a_table_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="no such folder"):
        load(spark, tmp_path / "nothing").count()
    assert not (tmp_path / "nothing").exists()


def test_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", schema=pa.schema([("id", pa.int64())]))
    assert ids(load(spark, tmp_path / "table")) == []
    assert ids(load(spark, tmp_path / "table", query="x").filter("id > 3")) == []
    table.append([{"id": 1, "content": "x"}])
    assert ids(load(spark, tmp_path / "table", query="x")) == [1]


def test_a_table_that_was_made_anew_in_its_place(spark: SparkSession, tmp_path: Path) -> None:
    """The processes that plan live on, and must not take it for the one that they knew."""
    for count in (3, 3, 6, 1):
        table = create_table(tmp_path / "table", partition_by=None)
        for number in range(count):
            table.append([{"id": number, "content": "x"}])
        assert ids(load(spark, tmp_path / "table")) == list(range(count))
        assert ids(lake.search(spark, tmp_path / "table")) == list(range(count))
        shutil.rmtree(tmp_path / "table")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        pytest.param(pa.timestamp("us"), [datetime(2024, 6, 1)], id="times without a zone"),
        pytest.param(pa.large_list(pa.int64()), [[1, 2]], id="large lists"),
        pytest.param(pa.timestamp("ns"), [datetime(2024, 6, 1)], id="nanoseconds, as pandas has them"),
        pytest.param(pa.timestamp("ms", "UTC"), [START], id="milliseconds"),
        pytest.param(pa.dictionary(pa.int8(), pa.string()), ["a"], id="dictionaries"),
        pytest.param(pa.large_string(), ["a"], id="large text"),
        pytest.param(pa.uint8(), [7], id="unsigned"),
        pytest.param(pa.uint64(), [2**64 - 1], id="large unsigned"),
    ],
)
def test_files_of_others_have_other_types(spark: SparkSession, tmp_path: Path, kind: pa.DataType, values: Any) -> None:
    pq.write_table(pa.table({"content": ["x"], "v": pa.array(values, kind)}), tmp_path / "a.parquet")
    for frame in (lake.search(spark, tmp_path, "x"), load(spark, tmp_path, query="x")):
        ((found,),) = frame.select("v").collect()
        assert found == (values[0].replace(tzinfo=None) if isinstance(values[0], datetime) else values[0])


# --- filters ---

FILTERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "content like '%index-017%'": lambda row: "index-017" in row["content"],
    "startswith(content, 'GET /index-05')": lambda row: row["content"].startswith("GET /index-05"),
    "endswith(content, ' 217 ms')": lambda row: row["content"].endswith(" 217 ms"),
    "contains(content, 'get')": lambda row: False,
    "source = 'host-1'": lambda row: row["source"] == "host-1",
    "userapp = 'Shop'": lambda row: False,
    "userapp in ('shop', 'no')": lambda row: row["userapp"] == "shop",
    "id in (3, 70, 1000)": lambda row: row["id"] in (3, 70),
    "status = 404 or status is null": lambda row: row["status"] != 200,
    "status is null": lambda row: row["status"] is None,
    "status = 'hidden'": lambda row: False,
    "loglevel is null": lambda row: row["loglevel"] is None,
    "userapp is not null": lambda row: row["userapp"] is not None,
    "not loglevel = 'INFO'": lambda row: row["loglevel"] not in (None, "INFO"),
    "timestamp >= '2024-06-03T22:00:00Z'": lambda row: row["id"] >= 70,
    "timestamp between '2024-06-02T06:00:00Z' and '2024-06-02T07:00:00Z'": lambda row: row["id"] in (30, 31),
    "day = date'2024-06-02'": lambda row: 24 <= row["id"] < 48,
    "day > date'2024-06-02' and content like '%index-05%'": lambda row: 50 <= row["id"] < 60,
    "attributes['region'] = 'eu-1' and id < 4": lambda row: row["id"] in (1, 3),
}


def test_filters_of_a_dataframe_mean_what_sql_says(spark: SparkSession, logs: Path) -> None:
    conditions = {text: text for text in FILTERS} | {"status = 'hidden'": "cast(status as string) = 'hidden'"}
    shown = [functions.expr(text).alias(f"f{place}") for place, text in enumerate(conditions.values())]
    found = load(spark, logs).select("id", *shown).collect()
    for place, test in enumerate(FILTERS.values()):
        assert sorted(row["id"] for row in found if row[f"f{place}"]) == numbers(test)


def test_a_view_answers_alike_before_and_after_a_query_with_a_filter(spark: SparkSession, logs: Path) -> None:
    """With the option ``pushdown`` of earlier versions, the second count was 2."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")  # as users' sessions may have it
    try:
        for options in ("", ", pushdown 'false'"):
            spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW again USING coprlake OPTIONS (path '{logs}'{options})")
            counts = [
                spark.sql(f"SELECT count(*) FROM again {condition}").first()[0]
                for condition in ("", "WHERE id > 69", "", "WHERE content LIKE '%index-05%'", "")
            ]
            assert counts == [72, 2, 72, 10, 72]
        with pytest.raises(PySparkException, match="pushdown was removed"):
            load(spark, logs, pushdown="true").count()
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_dataframe_can_be_used_again(spark: SparkSession, logs: Path) -> None:
    """The wrong results of decision 11, which must be right without the user's doing."""
    frame = load(spark, logs)
    few, more = frame.filter("id > 69"), frame.filter("id > 67")
    assert frame.count() == 72
    assert few.count() == 2
    assert frame.count() == 72
    assert few.union(frame).count() == 74
    assert few.union(more).count() == 6
    assert few.crossJoin(frame.select(functions.col("id").alias("other"))).count() == 144
    queried = load(spark, logs, query="index-00")
    assert queried.filter("id > 7").union(queried).count() == 12


def canary() -> type[DataSource]:
    """A source of ten numbers that leaves out what a filter does; made here so that it can be sent as it is."""

    class CanaryReader(DataSourceReader):
        def __init__(self) -> None:
            self.least = -1

        def pushFilters(self, filters: list[Any]) -> Iterator[Any]:  # noqa: N802
            for one in filters:
                if isinstance(one, datasource.GreaterThan):
                    self.least = max(self.least, one.value)
                else:
                    yield one

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(self.least)]

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            yield from ((number,) for number in range(10) if number > partition.value)

    class CanarySource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "canary"

        def schema(self) -> str:
            return "id long"

        def reader(self, schema: Any) -> CanaryReader:
            return CanaryReader()

    return CanarySource


@pytest.mark.skipif(not hasattr(datasource, "Filter"), reason="PySpark 4.0 passes no filters to data sources")
def test_spark_still_reuses_what_it_planned_with_a_filter(spark: SparkSession) -> None:
    """Why our reader takes no filters."""
    spark.dataSource.register(canary())
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("canary").load()
        few = frame.filter("id > 7")
        counts = [frame.count(), few.count(), frame.count(), few.union(frame).count()]
        frame = spark.read.format("canary").load()
        counts.append(frame.filter("id > 7").union(frame.filter("id > 3")).count())
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    message = "Spark keeps filtered reads apart now: filters may prune again, see docs/decisions/0011"
    assert counts != [10, 2, 10, 12, 8], message
    assert counts == [10, 2, 2, 4, 12], "Spark mixes up filtered reads in another way than decision 11 says"


# --- writing ---


def frame_of(spark: SparkSession, rows: list[tuple[Any, ...]], schema: str, partitions: int = 2) -> DataFrame:
    return spark.createDataFrame(rows, schema).repartition(partitions)


def write(frame: DataFrame, path: Path, mode: str = "append", **options: Any) -> None:
    writer = frame.write.format("coprlake").mode(mode)
    for name, value in options.items():
        writer = writer.option(name, str(value))
    writer.save(str(path))


def stored(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    rows = open_table(path).search(columns=list(columns) if columns else None).rows()
    return sorted((tuple(row.values()) for row in rows), key=repr)


def test_the_first_write_makes_the_table(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(
        spark, [(n, f"host-{n % 2}", f"line {n}") for n in range(6)], "id long, source string, content string"
    )
    write(frame, tmp_path / "table", partition_by="source, kind", grams="kind")
    table = open_table(tmp_path / "table")
    assert table.partition_by == ["source", "kind"]
    assert table.gram_fields == {"kind"}
    assert stored(tmp_path / "table", "id", "source", "content") == [
        (n, f"host-{n % 2}", f"line {n}") for n in range(6)
    ]
    write(frame, tmp_path / "flat", partition_by="")
    assert open_table(tmp_path / "flat").partition_by == []
    write(frame, tmp_path / "by default")
    assert open_table(tmp_path / "by default").partition_by == []
    write(frame, tmp_path / "daily", partition_by="day")
    assert open_table(tmp_path / "daily").partition_by == ["day"]
    assert table.verify(deep=True).is_sound
    assert len(table.search("line 4").explain().problems) == 0


def test_appending_and_overwriting(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    write(frame_of(spark, [(1, "a"), (2, "b")], "id long, content string"), path)
    write(frame_of(spark, [(3, "c")], "id long, content string"), path)
    assert stored(path, "id") == [(1,), (2,), (3,)]
    history = len(DeltaTable(str(path)).history())
    write(load(spark, path).filter("id > 1"), path, "overwrite")
    assert stored(path, "id") == [(2,), (3,)]
    assert len(DeltaTable(str(path)).history()) == history + 1
    write(frame_of(spark, [], "id long, content string"), path)
    assert stored(path, "id") == [(2,), (3,)]
    write(frame_of(spark, [], "id long, content string"), path, "overwrite")
    assert stored(path, "id") == []
    assert {row["id"] for row in DeltaTable(str(path)).to_pyarrow_table().to_pylist()} == set()


@pytest.mark.parametrize("mode", ["error", "ignore"])
def test_modes_that_spark_does_not_offer_here(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    frame = frame_of(spark, [(1, "a")], "id long, content string")
    with pytest.raises(AnalysisException, match=r"(?i)append"):
        write(frame, tmp_path / "table", mode)
    assert not (tmp_path / "table").exists()


def test_new_columns_join_the_table(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    write(frame_of(spark, [(1, "a")], "id long, content string"), path)
    write(
        frame_of(spark, [(2, "b", 2.5, [1]), (3, "c", None, None)], "id long, content string, x double, l array<int>"),
        path,
    )
    assert stored(path, "id", "x", "l") == [(1, None, None), (2, 2.5, [1]), (3, None, None)]
    assert ids(load(spark, path).filter("x is not null")) == [2]


def test_values_of_all_types(spark: SparkSession, tmp_path: Path) -> None:
    schema = (
        "id long, timestamp timestamp_ntz, at timestamp, local timestamp_ntz, d date, s string, b boolean, i int, "
        "f float, dec decimal(10,2), bin binary, m map<string,string>, st struct<a:int,b:string>, "
        "attributes map<string,string>"
    )
    moment = datetime(2024, 6, 1, 12, 30)
    plain = (1, moment, moment, moment, date(2024, 1, 2), "s", True, 5, 1.5)
    full = (*plain, Decimal(7), b"\x00", {"k": "v"}, (1, "x"), {"a": "b"})
    write(frame_of(spark, [full, (2, moment, *[None] * 12)], schema, 1), tmp_path / "table")
    rows = {row["id"]: row for row in open_table(tmp_path / "table").search().rows()}
    utc = moment.replace(tzinfo=UTC)
    assert [rows[1][name] for name in ("timestamp", "at", "local", "d", "s", "b", "i", "f")] == [
        *(utc, utc, utc, date(2024, 1, 2), "s", True, 5, 1.5)
    ]
    assert (rows[1]["dec"], rows[1]["bin"], dict(rows[1]["m"]), rows[1]["st"]) == (
        7,
        b"\x00",
        {"k": "v"},
        {"a": 1, "b": "x"},
    )
    assert dict(rows[1]["attributes"]) == {"a": "b"}
    assert {name for name, value in rows[2].items() if value is not None} == {"id", "timestamp"}
    assert load(spark, tmp_path / "table").orderBy("id").collect()[0]["st"] == (1, "x")


def test_values_of_another_type_become_attributes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    write(frame_of(spark, [(1, "a", 5)], "id long, content string, status long"), path)
    write(frame_of(spark, [(2, "b", "7"), (3, "c", "soon")], "id long, content string, status string", 1), path)
    found = {row["id"]: row for row in open_table(path).search().rows()}
    assert found[1]["status"] == 5
    assert [row["id"] for row in open_table(path).search(equals("status", "soon")).rows()] == [3]
    assert {dict(found[n]["attributes"] or {}).get("status") or str(found[n]["status"]) for n in (2, 3)} == {
        "7",
        "soon",
    }


def test_the_columns_of_every_table_keep_their_types(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(2).selectExpr(
        "id",
        "'2024-06-01T12:00:00Z' AS timestamp",
        "id AS loglevel",
        "map('a', id) AS attributes",
        "cast('bytes' AS binary) AS content",
        "null AS later",
    )
    write(frame, tmp_path / "table")
    table = open_table(tmp_path / "table")
    assert set(table.schema.names) == {*SCHEMA.names, "id"}
    assert all(table.schema.field(name).type == SCHEMA.field(name).type for name in SCHEMA.names)
    assert [row["timestamp"] for row in table.search(equals("a", 1)).rows()] == [START + timedelta(hours=12)]
    assert table.search("bytes", since=START, until=START + timedelta(days=1)).count() == 2
    write(spark.range(2, 3).selectExpr("id", "5 AS later", "'x' AS CONTENT"), tmp_path / "table")
    assert [row["id"] for row in table.search(equals("later", 5) & equals("CONTENT", "x")).rows()] == [2]
    write(spark.range(1).selectExpr("'x' AS CONTENT"), tmp_path / "other")
    assert open_table(tmp_path / "other").search(equals("CONTENT", "x")).count() == 1


def test_a_time_that_is_none_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="'soon' is not a valid timestamp"):
        write(spark.range(2).selectExpr("id", "'soon' AS timestamp"), tmp_path / "table")
    assert data_files(tmp_path / "table") == set()


def test_columns_that_differ_by_case_only(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    write(frame_of(spark, [(1, "a", 5)], "id long, content string, status long"), path)
    write(frame_of(spark, [(2, "b", 6)], "id long, content string, Status long"), path)
    assert [row["id"] for row in open_table(path).search(equals("Status", 6)).rows()] == [2]


# --- tasks that fail ---


def failing(frame: DataFrame, fails: Callable[[int, int], bool]) -> DataFrame:
    """The frame, of which tasks fail at their end if that is said of their partition and attempt."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            for start in range(0, batch.num_rows, 10):
                yield batch.slice(start, 10)
        if fails(context.partitionId(), context.attemptNumber()):
            time.sleep(1)  # what came before has been written
            raise ValueError("a task that fails on purpose")

    return frame.mapInArrow(work, frame.schema)


def some_lines(spark: SparkSession, count: int = 400, partitions: int = 2) -> DataFrame:
    return spark.range(0, count, 1, partitions).selectExpr("id", "concat('line number ', id) AS content")


def test_a_job_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    write(some_lines(spark, 10), path)
    before = data_files(path)
    version = open_table(path).version
    with pytest.raises(PySparkException, match="on purpose"):
        write(failing(some_lines(spark), lambda partition, _: partition == 1), path, segment_bytes=200)
    for _ in range(50):  # a killed process may still be tidying up
        if data_files(path) == before:
            break
        time.sleep(0.1)
    assert data_files(path) == before
    assert open_table(path).version == version
    assert ids(load(spark, path)) == list(range(10))


def test_a_task_that_succeeds_in_the_end_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    write(failing(some_lines(spark), lambda partition, attempt: attempt < partition * 2), path, segment_bytes=200)
    assert ids(load(spark, path)) == list(range(400))
    assert open_table(path).verify(deep=True).is_sound
    table = open_table(path)
    known = {segment.name for segment in table.snapshot().segments}
    left = {name for name in data_files(path) if name.endswith(".parquet")} - known
    assert not left


def records(first: int, count: int = 10) -> list[pa.RecordBatch]:
    return [pa.record_batch({"id": range(first, first + count), "content": [f"line {n}" for n in range(count)]})]


LINES = pa.schema([("id", pa.int64()), ("content", pa.string())])


def test_a_speculative_duplicate_is_not_seen(tmp_path: Path) -> None:
    path = tmp_path / "table"
    sink = BatchSink(WriteSettings(str(path)), LINES, overwrite=False)
    twins = [sink.write(iter(records(0))) for _ in range(2)]
    sink.commit([twins[1], sink.write(iter(records(10))), None])
    assert [n for (n,) in stored(path, "id")] == sorted(range(20), key=lambda n: repr((n,)))
    assert open_table(path).verify(deep=True).is_sound
    known = data_files(path)
    open_table(path).vacuum(retention_hours=0)
    assert len(known - data_files(path)) == 2  # the data file of the first twin, and its sidecar


def test_an_abort_removes_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "table"
    sink = BatchSink(WriteSettings(str(path)), LINES, overwrite=False)
    sink.abort([sink.write(iter(records(0))), None])
    assert data_files(path) == set()
    sink.commit([message := sink.write(iter(records(0)))])
    sink.abort([message])  # it has landed: what is in the log stays
    assert len(stored(path)) == 10


def test_a_write_whose_source_breaks_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "table"
    sink = BatchSink(WriteSettings(str(path), segment_bytes=10), LINES, overwrite=False)

    def breaks() -> Iterator[pa.RecordBatch]:
        yield from records(0)
        yield from records(10)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        sink.write(breaks())
    assert data_files(path) == set()


# --- streams ---


def stream_sink(path: Path) -> StreamSink:
    return StreamSink(WriteSettings(str(path), application="app"), LINES, "")


def test_a_batch_that_is_committed_again_adds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "table"
    sink = stream_sink(path)
    messages: list[Any] = [sink.write(iter(records(0)))]
    sink.commit(messages, 0)
    version = open_table(path).version
    sink.commit(messages, 0)  # the same files
    assert open_table(path).version == version
    assert len(stored(path)) == 10
    files = data_files(path)
    again = stream_sink(path)
    repeated = again.write(iter(records(0)))
    assert isinstance(repeated, PartMessage)
    again.commit([repeated], 0)  # files of a second run, after a crash
    assert len(stored(path)) == 10
    assert data_files(path) == files
    again.commit([again.write(iter(records(10)))], 1)
    again.commit([], 2)
    again.commit([], 2)
    assert len(stored(path)) == 20
    assert len(DeltaTable(str(path)).history()) == 4
    other = StreamSink(WriteSettings(str(path), application="other"), LINES, "")
    other.commit([other.write(iter(records(20)))], 0)
    assert len(stored(path)) == 30


def json_files(folder: Path, number: int, count: int = 5, **more: Any) -> None:
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"id": 100 * number + n, "content": f"line {n}"} | more) for n in range(count)]
    waiting = folder / f".{number}.json"
    waiting.write_text("\n".join(lines))
    waiting.rename(folder / f"{number}.json")


def run_stream(spark: SparkSession, folder: Path, table: Path, checkpoint: Path, **options: str) -> None:
    source = spark.readStream.schema("id long, content string").option("maxFilesPerTrigger", "1").json(str(folder))
    writer = source.writeStream.format("coprlake").option("checkpointLocation", str(checkpoint))
    for name, value in options.items():
        writer = writer.option(name, value)
    query = writer.trigger(availableNow=True).start(str(table))
    query.awaitTermination(120)
    assert not query.isActive
    error = query.exception()
    if error is not None:
        raise error


def test_a_stream_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    folder, table, checkpoint = tmp_path / "in", tmp_path / "table", tmp_path / "checkpoint"
    json_files(folder, 0)
    json_files(folder, 1)
    run_stream(spark, folder, table, checkpoint)
    assert len(stored(table)) == 10
    run_stream(spark, folder, table, checkpoint)
    assert len(stored(table)) == 10
    json_files(folder, 2)
    last = sorted((checkpoint / "commits").glob("[0-9]*"))[-1]
    for file in (last, last.with_name(f".{last.name}.crc")):  # as if it had crashed before it could note the commit
        file.unlink(missing_ok=True)
    run_stream(spark, folder, table, checkpoint)
    expected = [100 * number + n for number in range(3) for n in range(5)]
    assert sorted(n for (n,) in stored(table, "id")) == expected
    known = {segment.name for segment in open_table(table).snapshot().segments}
    assert {name for name in data_files(table) if name.endswith(".parquet")} == known


def test_the_checkpoint_of_another_table_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    json_files(tmp_path / "in", 0)
    run_stream(spark, tmp_path / "in", tmp_path / "first", tmp_path / "checkpoint")
    json_files(tmp_path / "in", 1)
    with pytest.raises(PySparkException, match="belongs to a stream into another table"):
        run_stream(spark, tmp_path / "in", tmp_path / "second", tmp_path / "checkpoint")
    assert stored(tmp_path / "second") == []
    run_stream(spark, tmp_path / "in", tmp_path / "first", tmp_path / "checkpoint")
    assert len(stored(tmp_path / "first")) == 10


def test_two_streams_into_one_table(spark: SparkSession, tmp_path: Path) -> None:
    queries = []
    for name in ("a", "b"):
        json_files(tmp_path / name, 0 if name == "a" else 1)
        source = spark.readStream.schema("id long, content string").json(str(tmp_path / name))
        writer = source.writeStream.format("coprlake").option(
            "checkpointLocation", str(tmp_path / f"{name}-checkpoint")
        )
        queries.append(writer.trigger(processingTime="100 milliseconds").start(str(tmp_path / "table")))
    try:
        for round_number in range(1, 3):
            json_files(tmp_path / "a", 2 * round_number)
            json_files(tmp_path / "b", 2 * round_number + 1)
            for query in queries:
                query.processAllAvailable()
    finally:
        for query in queries:
            query.stop()
    expected = [100 * number + n for number in range(6) for n in range(5)]
    assert sorted(n for (n,) in stored(tmp_path / "table", "id")) == expected
    assert ids(load(spark, tmp_path / "table", query="line 3")) == [100 * number + 3 for number in range(6)]


def test_a_stream_grows_the_table_that_another_has_made(spark: SparkSession, tmp_path: Path) -> None:
    json_files(tmp_path / "in", 0)
    table: Table = create_table(tmp_path / "table", partition_by=None)
    table.append([{"id": "text", "content": "x"}])
    run_stream(spark, tmp_path / "in", tmp_path / "table", tmp_path / "checkpoint")
    assert len(stored(tmp_path / "table")) == 6
    assert open_table(tmp_path / "table").search(contains("line")).count() == 5


PLAIN_SESSION = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("found", spark.read.format("coprlake").load(sys.argv[1]).count())
spark.stop()
"""


@pytest.mark.slow
def test_a_session_of_somebody_else_reads_a_table_without_any_setting(tmp_path: Path) -> None:
    create_table(tmp_path / "table").append([{"content": f"line {number}"} for number in range(7)])
    command = [sys.executable, "-c", PLAIN_SESSION, str(tmp_path / "table")]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False, env=environment)
    assert "found 7" in done.stdout, done.stderr[-2000:]
