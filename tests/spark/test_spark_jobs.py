"""Jobs on Spark do what the in-process engine does: the same records, the same law, nothing lost and nothing twice."""

import gzip
import json
import os
import random
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession, functions

from coprlake import spark as lake
from coprlake.errors import CoprlakeError, NotFoundError, UsageError
from coprlake.ingestion import IngestReport
from coprlake.ingestion import ingest as ingest_in_process
from coprlake.intake.options import ReadOptions
from coprlake.intake.reading import Intake
from coprlake.predicate.build import at_least, contains, equals, exists
from coprlake.predicate.predicates import EVERYTHING, Predicate
from coprlake.spark.jobs import ingesting, optimizing, searching
from coprlake.spark.jobs import task_progress as watched
from coprlake.spark.jobs.task_progress import Done, TaskProgress
from coprlake.spark.streams.folder_stream import stream_folder
from coprlake.spark.streams.streaming import BatchReport, StreamSettings
from coprlake.table import Table, create_table, open_table
from coprlake.testing.conformance import check_law, expected_rows, plain
from coprlake.testing.predicate_strategies import Row, predicates, rows, texts_in
from coprlake.testing.store_variants import ID, SMALL, Stored, numbered, record_batch, several_segments
from tests.spark_sessions import QUIET, data_files, ids

pytestmark = [pytest.mark.slow, *QUIET]
START = datetime(2024, 6, 1, tzinfo=UTC)


@pytest.fixture
def small_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a few kilobytes are cut."""
    monkeypatch.setattr(ingesting, "SMALLEST_SPLIT_BYTES", 1)


def force_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark's own reader take what is left wherever it can."""
    for name, value in (("MUCH_BYTES", 0), ("HARDLY_HELPS", 0), ("MANY_MATCH", -1)):
        monkeypatch.setattr(searching, name, value)


def counted(table: Table, without: Sequence[str] = ()) -> Counter[str]:
    found = table.search().rows()
    return Counter(plain({name: value for name, value in row.items() if name not in without}) for row in found)


def ingest_both(
    spark: SparkSession,
    inputs: Sequence[Path],
    folder: Path,
    options: ReadOptions | None = None,
    *,
    schema: pa.Schema | None = None,
    partition_by: Any = "day",
    **more: Any,
) -> tuple[Table, Table, IngestReport]:
    """By tasks, and in this process."""
    by_spark = create_table(folder / "by_spark", schema=schema, partition_by=partition_by)
    in_process = create_table(folder / "in_process", schema=schema, partition_by=partition_by)
    options = options or ReadOptions()
    report = lake.ingest(spark, inputs, by_spark, options, **more)
    with Intake(inputs, options) as intake:
        ingest_in_process(in_process, intake)
    assert report.row_count == report.read.records == by_spark.search().count()
    return by_spark, in_process, report


# --- ingestion ---


def stamp(number: int) -> str:
    return (START + timedelta(seconds=37 * number)).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def text_log(count: int) -> str:
    lines = []
    for number in range(count):
        lines.append(
            f"{stamp(number)} {['INFO', 'WARN'][number % 2]} [worker-{number % 5}] ä {number:x} took {number} ms"
        )
        if number % 7 == 3:
            lines += ["java.lang.IllegalStateException: broken", f"\tat com.example.A.b(A.java:{number})"]
    return "\n".join(lines) + "\n"


def ndjson_log(count: int) -> str:
    rows = (
        {"time": stamp(n).replace(" ", "T") + "Z", "level": "info", "message": f"m {n}", "code": n}
        for n in range(count)
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


def csv_log(count: int) -> str:
    return "timestamp,level,message,user\n" + "".join(
        f'{stamp(n)},warn,"said ""{n}"",\nand more",u{n % 3}\n' for n in range(count)
    )


def syslog_log(count: int) -> str:
    return "".join(f"<34>1 {stamp(n).replace(' ', 'T')}Z host{n % 2} app {n} ID47 - failed {n}\n" for n in range(count))


def access_log(count: int) -> str:
    at = ((START + timedelta(seconds=n)).strftime("%d/%b/%Y:%H:%M:%S +0000") for n in range(count))
    return "".join(
        f'10.0.0.{n % 9} - - [{when}] "GET /x/{n} HTTP/1.1" 200 {n} "-" "curl/8"\n' for n, when in enumerate(at)
    )


FORMATS: dict[str, Callable[[int], str]] = {
    "text.log": text_log,
    "lines.ndjson": ndjson_log,
    "cells.csv": csv_log,
    "sys.log": syslog_log,
    "access.log": access_log,
}


def test_every_format_gives_the_records_of_the_in_process_engine(
    spark: SparkSession, tmp_path: Path, small_splits: None
) -> None:
    folder = tmp_path / "logs"
    (folder / "deep").mkdir(parents=True)
    for name, make in FORMATS.items():
        (folder / name).write_text(make(60))
    (folder / "deep" / "text.log.gz").write_bytes(gzip.compress(text_log(90).encode()))
    (folder / "deep" / "with space#%20.log").write_text(text_log(5))
    (folder / "deep" / "empty.log").write_text("")
    moments = pa.array([START + timedelta(days=n) for n in range(5)])
    pq.write_table(pa.table({"timestamp": moments, "message": [f"p {n}" for n in range(5)]}), folder / "p.parquet")
    by_spark, in_process, report = ingest_both(spark, [folder], tmp_path, segment_bytes=3000)
    assert counted(by_spark) == counted(in_process)
    assert report.read.formats == Counter(text=4, ndjson=1, csv=1, syslog=1, access=1, parquet=1)
    assert report.read.files == 9
    assert not report.read.warnings
    assert by_spark.search("worker-3").count() == in_process.search("worker-3").count() == 31
    assert by_spark.verify(deep=True).is_sound
    assert not (tmp_path / "by_spark/_coprlake/progress").exists()


def test_a_large_file_is_read_by_several_tasks(spark: SparkSession, tmp_path: Path, small_splits: None) -> None:
    (tmp_path / "a.log").write_text(text_log(3000))
    by_spark, in_process, report = ingest_both(spark, [tmp_path / "a.log"], tmp_path, segment_bytes=40_000)
    assert counted(by_spark) == counted(in_process)
    assert len(by_spark.snapshot().segments) >= 5
    assert len(DeltaTable(by_spark.uri).history()) == 2
    assert (report.read.files, report.read.lines) == (1, 3000 + 2 * len(range(3, 3000, 7)))
    assert report.read.raw_bytes == (tmp_path / "a.log").stat().st_size


def test_files_that_were_ingested_are_known_on_both_engines(
    spark: SparkSession, tmp_path: Path, small_splits: None
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.log").write_text(text_log(3000))
    (folder / "b.ndjson.gz").write_bytes(gzip.compress(ndjson_log(50).encode()))
    with zipfile.ZipFile(folder / "c.zip", "w") as archive:
        archive.writestr("one/x.log", text_log(20))
        archive.writestr("two/x.log", text_log(30))
    (folder / "core").write_bytes(bytes(100))
    by_spark, in_process, report = ingest_both(spark, [folder], tmp_path, segment_bytes=40_000)
    assert len(report.written[0].segments) > 2, "the log is read in ranges"
    assert counted(by_spark) == counted(in_process)
    assert report.read.binary == 1
    assert set(by_spark.ledger().contents) == set(in_process.ledger().contents)
    assert len(by_spark.ledger().contents) == 5
    for table in (by_spark, in_process):
        again = lake.ingest(spark, [folder], table)
        assert (again.row_count, again.read.known) == (0, 3)
        assert table.ingest(folder).row_count == 0
    (folder / "a.log").write_text(text_log(6000))
    grown = lake.ingest(spark, [folder], by_spark, segment_bytes=40_000)
    assert (grown.row_count, grown.read.continued, grown.read.known) == (3000, 1, 2)
    in_process.ingest(folder)
    assert counted(by_spark) == counted(in_process)
    assert set(by_spark.ledger().contents) == set(in_process.ledger().contents)
    assert lake.ingest(spark, [folder / "a.log"], by_spark, again=True).row_count == 6000
    with pytest.raises(UsageError, match="this is binary, not text"):
        lake.ingest(spark, [folder / "core"], by_spark)


@pytest.mark.parametrize("partition_by", ["userapp", ["day", "loglevel"], ["code"]])
def test_records_travel_to_their_partition(
    spark: SparkSession, tmp_path: Path, small_splits: None, partition_by: Any
) -> None:
    names = ["shop"] * 60 + ["web 1/ä", "", None, "x"]  # one has nearly everything
    for file in range(3):
        rows = (
            {
                "time": stamp(n),
                "level": f"l{n % 3}",
                "message": f"m {file}.{n}",
                "userapp": names[n % 64],
                "code": n % 2,
            }
            for n in range(320)
        )
        (tmp_path / f"{file}.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    inputs = [tmp_path / f"{file}.ndjson" for file in range(3)]
    schema = pa.schema([("userapp", pa.string()), ("code", pa.int64())])
    by_spark, in_process, report = ingest_both(
        spark, inputs, tmp_path, schema=schema, partition_by=partition_by, segment_bytes=12_000
    )
    assert counted(by_spark) == counted(in_process)
    assert report.read.files == 3
    by_partition = Counter(tuple(segment.entry.partition.values()) for segment in by_spark.snapshot().segments)
    assert set(by_partition) == {tuple(s.entry.partition.values()) for s in in_process.snapshot().segments}
    assert by_spark.search(equals("userapp", "web 1/ä")).count() == 15
    assert by_spark.verify(deep=True).is_sound
    if partition_by == "userapp":
        assert by_partition["shop",] > 1
        assert by_partition["web 1/ä",] == 1  # not one of each task that read


KINDS: dict[str, list[Any]] = {
    "a": [1, 2, 3],
    "b": ["text", "2", ""],
    "c": [1.5, 2.5, 1e300],
    "d": [True, False, None],
    "e": [2**62, -5, 0],
    "f": [{"x": 1}, [1, 2], "plain"],
    "g": ["2024-06-01T00:00:00Z", "2024-06-02T00:00:00Z", None],
}


@pytest.mark.parametrize("kinds", ["ba", "ac", "abcdefg", "gfedcba"])
def test_new_columns_of_different_types_lose_nothing(
    spark: SparkSession, tmp_path: Path, small_splits: None, kinds: str
) -> None:
    expected: dict[str, Any] = {}
    for place, kind in enumerate(kinds):
        rows = [
            {"time": stamp(n), "message": f"{kind}{n}", "k": value, f"only_{kind}": n}
            for n, value in enumerate(KINDS[kind])
        ]
        (tmp_path / f"{place}.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
        expected |= {f"{kind}{n}": value for n, value in enumerate(KINDS[kind]) if value is not None}
    table = create_table(tmp_path / "table")
    report = lake.ingest(spark, sorted(tmp_path.glob("*.ndjson")), table, segment_bytes=50)
    assert report.row_count == 3 * len(kinds)
    found = list(table.search().rows())
    assert len(found) == 3 * len(kinds)
    for row in found:
        value = expected.get(row["content"])
        own = dict(row["attributes"] or ())
        shown = row.get("k") if row.get("k") is not None else own.get("k")
        kept = {str(shown), str(shown).lower(), str(shown).partition(".")[0]}
        assert value is None or not_lost(value, kept, row, own), (value, row)
        assert row[f"only_{row['content'][0]}"] == int(row["content"][1])
    assert table.verify(deep=True).is_sound
    known = {segment.name for segment in table.snapshot().segments}
    assert {name for name in data_files(tmp_path / "table") if name.endswith(".parquet")} == known


def not_lost(value: Any, kept: set[str], row: dict[str, Any], attributes: dict[str, Any]) -> bool:
    """The value stands in its column or in an attribute, whatever type it got there; nested ones by their parts."""
    if isinstance(value, dict | list):
        texts = {name: str(one) for name, one in (row | attributes).items() if one is not None}
        return any(name.startswith("k") and "1" in text for name, text in texts.items())
    if isinstance(value, str) and value.startswith("2024"):
        return any(text.startswith(value[:10]) for text in kept)
    if isinstance(value, float) and kept & {"inf"}:
        return False
    try:
        return str(value) in kept or str(value).lower() in kept or any(float(text) == float(value) for text in kept)
    except ValueError:
        return False


def test_new_columns_that_differ_by_case_lose_nothing(spark: SparkSession, tmp_path: Path, small_splits: None) -> None:
    for place, name in enumerate(["userId", "userid", "USERID"]):
        (tmp_path / f"{place}.ndjson").write_text(json.dumps({"time": stamp(0), "message": name, name: place}) + "\n")
    table = create_table(tmp_path / "table")
    lake.ingest(spark, sorted(tmp_path.glob("*.ndjson")), table, segment_bytes=50)
    for place, name in enumerate(["userId", "userid", "USERID"]):
        assert [row["content"] for row in table.search(equals(name, place)).rows()] == [name]
    assert lake.search(spark, table, "user").count() == 3


def test_what_is_no_file_of_every_machine_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    for name in ("-", "/dev/stdin"):
        with pytest.raises(UsageError, match="in-process"):
            lake.ingest(spark, [name], table)
    with pytest.raises(NotFoundError):
        lake.ingest(spark, [tmp_path / "nothing.log"], table)
    (tmp_path / "app.log").write_text("one line\n")
    with pytest.raises(NotFoundError):
        lake.ingest(spark, [tmp_path / "app.log"], tmp_path / "no table")
    with pytest.raises(UsageError, match="Delta table"):
        lake.ingest(spark, [tmp_path], table)
    assert ingesting.ingest_files(spark, [], table).row_count == 0
    assert table.version == 0


def test_a_job_that_fails_commits_nothing_and_says_why(spark: SparkSession, tmp_path: Path, small_splits: None) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.log").write_text(text_log(20))
    table = create_table(tmp_path / "table", partition_by="source")
    inputs = [tmp_path / "a.log", tmp_path / "b.log"]
    lake.ingest(spark, inputs[:1], table)
    before = counted(table)
    blocked = tmp_path / "table" / f"source={str(tmp_path / 'b.log').replace('/', '%2F')}"
    blocked.write_text("a file where a folder should be")
    with pytest.raises(CoprlakeError) as caught:
        lake.ingest(spark, inputs, table, segment_bytes=100)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert counted(table) == before
    table.vacuum(retention_hours=0)
    known = {segment.name for segment in table.snapshot().segments}
    assert {name for name in data_files(tmp_path / "table") if name.endswith(".parquet")} == known
    blocked.unlink(missing_ok=True)
    assert lake.ingest(spark, inputs, table).row_count == 20, "the first file is known"


# --- progress ---


def test_progress_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "INTERVAL_SECONDS", 0.02)
    seen: list[Done] = []
    more = threading.Event()

    def note(done: Done) -> None:
        seen.append(done)
        more.set()

    create_table(tmp_path / "table")
    with watched.watching(str(tmp_path / "table"), "job", note):
        tasks = [TaskProgress(str(tmp_path / "table"), "job", number) for number in range(2)]
        for _ in range(8):
            for task in tasks:
                task(10, 1000)
            more.clear()
            assert more.wait(5)
    assert seen == sorted(seen)
    assert 0 < seen[-1].rows <= 160
    assert seen[-1].bytes == 100 * seen[-1].rows
    assert not (tmp_path / "table/_coprlake/progress/job").exists()


def test_progress_of_a_job(spark: SparkSession, tmp_path: Path) -> None:
    text = text_log(150_000) * 3
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(text.encode(), 1))  # one task, of more than a second
    seen: list[Done] = []
    report = lake.ingest(spark, [tmp_path / "a.log.gz"], create_table(tmp_path / "table"), progress=seen.append)
    assert seen == sorted(seen)
    assert 0 < seen[-1].rows <= report.row_count
    assert 0 < seen[-1].bytes <= report.read.raw_bytes
    assert not list((tmp_path / "table/_coprlake/progress").glob("*"))


# --- optimizing and indexing ---

FIXED = numbered(
    {
        "timestamp": None,
        "source": f"host-{number % 3}",
        "loglevel": ["INFO", None, "warn"][number % 3],
        "content": f"GET /index.html?id={number:04x} from 10.0.0.{number}",
        "attributes": [("region", "eu-1")] if number % 2 else None,
        "userapp": [None, "", "shop", "404"][number % 4],
        "status": [None, 200, 404][number % 3],
    }
    for number in range(30)
)
LAW: list[Predicate] = [
    EVERYTHING,
    contains("index"),
    contains("10.0.0.1"),
    contains("nowhere"),
    equals("region", "EU-1"),
    equals("userapp", "404"),
    ~exists("source"),
    at_least("status", 300) & contains("id=00"),
]


def check_all(table: Table, some_rows: list[Row]) -> None:
    for predicate in LAW:
        check_law(Stored(table, some_rows), predicate)
    assert table.verify(deep=True).is_sound


@pytest.mark.parametrize("full", [False, True])
def test_optimize_does_what_the_in_process_one_does(spark: SparkSession, tmp_path: Path, full: bool) -> None:
    reports = []
    for name in ("by_spark", "in_process"):
        table = several_segments(tmp_path / name, list(FIXED)).table
        optimize = (lambda one: lake.optimize(spark, one, full=full)) if name == "by_spark" else optimize_here(full)
        reports.append(optimize(table))
        check_all(table, list(FIXED))
        assert len(table.snapshot().segments) == 1
    figures = [
        (r.segments_before, r.segments_after, r.merged, r.written, r.tokenized_again, r.conflicts) for r in reports
    ]
    assert figures[0] == figures[1] == (15, 1, 15, 1, 0, 0)
    assert lake.optimize(spark, tmp_path / "by_spark").merged == 0


def optimize_here(full: bool) -> Callable[[Table], Any]:
    return lambda table: table.optimize(full=full)


def test_optimize_of_many_partitions(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizing, "TASK_GROUPS", 2)
    table = create_table(tmp_path / "table", partition_by=["source", "loglevel"])
    for part in (FIXED[:10], FIXED[10:20], FIXED[20:]):
        with table.writer(options=SMALL) as writer:
            writer.append(record_batch(part))
    seen: list[Done] = []
    report = lake.optimize(spark, table, progress=seen.append)
    assert (report.segments_before, report.segments_after, report.conflicts) == (9, 3, 0)
    assert len(table.snapshot().segments) == 3
    check_all(table, list(FIXED))


def test_optimize_while_others_write_and_delete(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table(tmp_path / "table", partition_by="source")
    for part in (FIXED[:15], FIXED[15:]):
        table.append(record_batch(part))
    merge = optimizing._merged
    extra = [row | {ID: 100 + row[ID]} for row in FIXED[:3]]

    def interrupted(*arguments: Any) -> Any:
        merged = merge(*arguments)
        other = open_table(tmp_path / "table")
        other.append(record_batch(extra))
        other.delete(equals(ID, 4))  # of host-1: the merged segment of that source is out of date
        return merged

    monkeypatch.setattr(optimizing, "_merged", interrupted)
    report = lake.optimize(spark, table)
    assert report.conflicts == 1
    assert report.written == 2
    check_all(table, [*(row for row in FIXED if row[ID] != 4), *extra])
    table.vacuum(retention_hours=0)
    check_all(open_table(tmp_path / "table"), [*(row for row in FIXED if row[ID] != 4), *extra])
    monkeypatch.undo()
    assert lake.optimize(spark, table).conflicts == 0
    check_all(table, [*(row for row in FIXED if row[ID] != 4), *extra])


def test_index_does_what_the_in_process_one_does(spark: SparkSession, tmp_path: Path) -> None:
    for place in range(4):
        part = pa.Table.from_pylist(FIXED[place::4], schema=record_batch(FIXED).schema)
        for name in ("by_spark", "in_process"):
            (tmp_path / name).mkdir(exist_ok=True)
            pq.write_table(part, tmp_path / name / f"{place}.parquet", row_group_size=2)
    seen: list[Done] = []
    report = lake.index(spark, tmp_path / "by_spark", grams=["userapp"], progress=seen.append)
    expected = open_table(tmp_path / "in_process").index(grams=["userapp"])
    assert (report.indexed, report.skipped) == (expected.indexed, expected.skipped) == (4, 0)
    check_all(open_table(tmp_path / "by_spark"), list(FIXED))
    again = lake.index(spark, tmp_path / "by_spark", grams=["userapp"])
    assert (again.indexed, again.skipped) == (0, 4)
    assert lake.index(spark, tmp_path / "by_spark", rebuild=True).indexed == 4
    empty = create_table(tmp_path / "empty")
    assert lake.index(spark, empty).indexed == 0
    for side in ("by_spark", "in_process"):
        sidecars = {str(p.relative_to(tmp_path / side)) for p in (tmp_path / side / "_coprlake").rglob("*.copr")}
        assert len(sidecars) == 4


# --- streams of files ---


def put(folder: Path, name: str, lines: Sequence[str], modified: datetime | None = None) -> None:
    """A file that appears at once, as it should."""
    waiting = folder.with_name(f"{folder.name}.waiting")
    waiting.write_text("".join(f"{line}\n" for line in lines))
    if modified is not None:
        os.utime(waiting, (modified.timestamp(), modified.timestamp()))
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    waiting.rename(folder / name)


def run_folder(spark: SparkSession, folder: Path, table: Table, **more: Any) -> list[BatchReport]:
    reports: list[BatchReport] = []
    query = stream_folder(spark, folder, table, StreamSettings(once=True, on_batch=reports.append, **more))
    assert query.awaitTermination(120)
    error = query.exception()
    if error is not None:
        raise error
    return reports


def contents(table: Table) -> list[str]:
    return sorted(row["content"] for row in table.search(columns=["content"]).rows())


ODD_NAMES = [
    "a.log",
    "deep/er/a.log",
    "with space.log",
    "per%20cent.log",
    "hash#1.log",
    "what?.log",
    "ä.log",
    "[b]{c}*.log",
]


def test_each_file_is_taken_once(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ODD_NAMES:
        put(folder, name, [f"{stamp(0)} {name} one", f"{stamp(1)} {name} two"])
    put(folder, "_hidden.log", [f"{stamp(0)} not yet"])
    table = create_table(tmp_path / "table")
    reports = run_folder(spark, folder, table, limit=5)
    assert [(report.number, report.was_done) for report in reports] == [(0, False), (1, False)]
    assert sum(report.row_count for report in reports) == 2 * len(ODD_NAMES)
    assert not [warning for report in reports for warning in report.read.warnings]
    assert sorted({row["source"] for row in table.search().rows()}) == sorted(ODD_NAMES)
    put(folder, "old.log", [f"{stamp(0)} from the archive"], datetime(2001, 1, 1, tzinfo=UTC))
    put(folder, "empty.log", [])
    put(folder, "ancient.log", [f"{stamp(0)} from the beginning"], datetime(1971, 1, 1, tzinfo=UTC))
    (report,) = run_folder(spark, folder, table)
    assert (report.number, report.row_count) == (2, 2)
    assert table.search("from the").count() == 2
    assert run_folder(spark, folder, table) == []
    table.vacuum(retention_hours=0)  # the checkpoint is beside the table, and stays
    put(folder, "nothing.log", [])
    (report,) = run_folder(spark, folder, table)
    assert (report.number, report.row_count) == (3, 0)
    put(folder, "last.log", [f"{stamp(0)} the last"])
    assert [report.row_count for report in run_folder(spark, folder, table)] == [1]
    assert table.search().count() == 2 * len(ODD_NAMES) + 3
    assert table.verify(deep=True).is_sound


def test_a_batch_that_spark_repeats_is_found_to_be_done(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    table = create_table(tmp_path / "table")
    checkpoint = tmp_path / "checkpoint"
    put(folder, "a.log", [f"{stamp(0)} one"])
    run_folder(spark, folder, table, checkpoint=str(checkpoint))
    for file in (checkpoint / "commits").glob("*0*"):  # as if it had crashed before it could note the commit
        file.unlink()
    files = data_files(tmp_path / "table")
    put(folder, "b.log", [f"{stamp(0)} two"])
    reports = run_folder(spark, folder, table, checkpoint=str(checkpoint))
    assert [(report.number, report.row_count, report.was_done) for report in reports] == [(0, 0, True), (1, 1, False)]
    assert len(contents(table)) == 2
    assert len(data_files(tmp_path / "table") - files) == 2
    with pytest.raises(UsageError, match="belongs to a stream into another table"):
        run_folder(spark, folder, create_table(tmp_path / "other"), checkpoint=str(checkpoint))


def test_columns_may_come_with_any_batch(spark: SparkSession, tmp_path: Path, small_splits: None) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    table = create_table(tmp_path / "table")
    rows: list[dict[str, Any]] = [{"a": 1}, {"a": "text", "b": 2.5}, {"b": 3, "c": True}, {"c": 7, "A": 9}]
    for place, row in enumerate(rows):
        put(folder, f"{place}.ndjson", [json.dumps({"time": stamp(place), "message": f"m{place}"} | row)])
        assert [report.row_count for report in run_folder(spark, folder, table)] == [1]
    for place, row in enumerate(rows):
        for name, value in row.items():
            assert f"m{place}" in {one["content"] for one in table.search(equals(name, str(value))).rows()}, (
                place,
                name,
            )
    assert contents(table) == ["m0", "m1", "m2", "m3"]


def test_two_folders_with_the_same_name(spark: SparkSession, tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    queries = []
    for side in ("a", "b"):
        (tmp_path / side / "logs").mkdir(parents=True)
        put(tmp_path / side / "logs", "x.log", [f"{stamp(0)} of {side}"])
        queries.append(stream_folder(spark, tmp_path / side / "logs", table, StreamSettings(trigger_seconds=0.1)))
    try:
        for query in queries:
            query.processAllAvailable()
    finally:
        for query in queries:
            query.stop()
    assert [line.rpartition(" ")[2] for line in contents(table)] == ["a", "b"]


def test_a_folder_to_watch_must_be_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        stream_folder(spark, tmp_path / "nothing", create_table(tmp_path / "table"))


def test_a_folder_whose_name_is_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "logs[1]"
    folder.mkdir()
    put(folder, "x.log", [f"{stamp(0)} found"])
    table = create_table(tmp_path / "table")
    assert [report.row_count for report in run_folder(spark, folder, table)] == [1]


# --- other engines ---


def test_other_engines_see_the_same(spark: SparkSession, tmp_path: Path, small_splits: None) -> None:
    path = tmp_path / "table"
    table = create_table(path)
    (tmp_path / "a.log").write_text(text_log(300))
    lake.ingest(spark, [tmp_path / "a.log"], table, segment_bytes=4000)
    (tmp_path / "in").mkdir()
    put(tmp_path / "in", "b.ndjson", ndjson_log(50).splitlines())
    run_folder(spark, tmp_path / "in", table)
    check_engines(spark, path)
    spark.range(0, 20).selectExpr("id AS code", "concat('by a data frame ', id) AS content").write.format(
        "coprlake"
    ).mode("append").save(str(path))
    lake.optimize(spark, table)
    check_engines(spark, path)
    table.delete(contains("took 1"))
    table.vacuum(retention_hours=0)
    check_engines(spark, path)
    write_deltalake(str(path), DeltaTable(str(path)).to_pyarrow_table().slice(0, 7), mode="append")
    assert table.index().indexed >= 1
    assert table.search().count() == check_engines(spark, path)


def check_engines(spark: SparkSession, path: Path) -> int:
    """The number of records, which all agree on."""
    delta = DeltaTable(str(path))
    files = delta.file_uris()
    expected = open_table(path).search().count()
    assert delta.to_pyarrow_table(columns=["content"]).num_rows == expected
    counts = [
        duckdb.execute(f"SELECT count(content) FROM read_parquet({files!r}, union_by_name=true)").fetchall()[0][0],
        spark.read.parquet(*[file.removeprefix("file://") for file in files]).count(),
        lake.search(spark, path).count(),
    ]
    assert counts == [expected] * 3
    return expected


def test_files_of_another_writer_are_searched_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    table.append(record_batch(FIXED[:15]))
    rest = pa.Table.from_batches([record_batch(FIXED[15:])])
    write_deltalake(table.uri, rest.drop_columns(["loglevel"]), mode="append", schema_mode="merge")
    for way in ("shares", "parquet", "indexed"):
        if way == "parquet":
            force_parquet(monkeypatch)
        if way == "indexed":
            monkeypatch.undo()
            assert lake.index(spark, table).indexed == 1
        assert ids(lake.search(spark, table, "index")) == list(range(30))
        assert ids(lake.search(spark, table, "10.0.0.1")) == [1, *range(10, 20)]
        assert ids(lake.search(spark, table, equals("region", "eu-1"))) == list(range(1, 30, 2))
        assert ids(lake.search(spark, table, ~exists("loglevel"))) == sorted({1, 4, 7, 10, 13, *range(15, 30)})


# --- searching ---

GENERATE = (Phase.explicit, Phase.generate)
MOMENTS = st.none() | st.sampled_from([row["timestamp"] for row in numbered([{"timestamp": None}] * 4)])
Question = tuple[Predicate, datetime | None, datetime | None]


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[Row], list[Question]]:
    """Rows, and many searches in them."""
    some_rows = draw(st.lists(rows(), min_size=5, max_size=20))
    asked = st.tuples(predicates(texts_in(some_rows)), MOMENTS, MOMENTS)
    return numbered(some_rows), draw(st.lists(asked, min_size=15, max_size=15))


@pytest.mark.parametrize("way", ["shares", "parquet"])
def test_search_equals_that_of_the_table(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "parquet":
        force_parquet(monkeypatch)
    ways: Counter[bool] = Counter()

    @settings(max_examples=2, phases=GENERATE)
    @given(questions())
    def check(drawn: tuple[list[Row], list[Question]]) -> None:
        some_rows, asked = drawn
        table = create_table(tmp_path_factory.mktemp("searched") / "table")
        for start in range(0, len(some_rows), 4):
            with table.writer(options=SMALL) as writer:
                writer.append(record_batch(some_rows[start : start + 4]))
        stored = Stored(table, some_rows)
        frames = []
        for place, (predicate, since, until) in enumerate(asked):
            planned = lake.plan_search(table, predicate, since=since, until=until, share_bytes=10_000)
            ways[planned.goes_through_parquet] += 1
            frames.append(
                planned.dataframe(spark).select(functions.lit(place).alias("place"), ID, "content", "userapp")
            )
        found = Counter(map(tuple, reduce(DataFrame.union, frames).collect()))
        expected = Counter(
            (place, row[ID], row["content"], row["userapp"])
            for place, (predicate, since, until) in enumerate(asked)
            for row in expected_rows(stored, predicate, since, until)
        )
        assert found == expected

    check()
    assert ways[False] == 30 if way == "shares" else ways[True] > 10


def test_columns_limit_and_errors(spark: SparkSession, tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by="day")
    table.append(record_batch(FIXED))
    assert lake.search(spark, table, "index", columns=[ID, "day"], limit=4).count() == 4
    assert lake.search(spark, table, "index", limit=0).count() == 0
    assert lake.search(spark, table, "index", columns=[ID]).columns == [ID]
    assert "day" not in lake.search(spark, table).columns
    assert ids(lake.search(spark, table, equals(ID, 7), use_sketches=False)) == [7]
    everything: Any = 5
    for wrong, message in (
        ({"columns": ["absent"]}, "no column absent"),
        ({"columns": []}, "no columns"),
        ({"columns": [ID, ID]}, "twice"),
        ({"limit": -1}, "limit"),
        ({"query": everything}, "expected a predicate"),
        ({"since": "soon"}, "ISO 8601"),
    ):
        with pytest.raises(UsageError, match=message):
            lake.search(spark, table, **wrong)
    with pytest.raises(NotFoundError):
        lake.search(spark, tmp_path / "nothing")


NAMES = ["http.status", "a`b", "x y", "ä", "quote\"'"]


@pytest.mark.parametrize("name", ["plain", "g[1]{a}"])
def test_names_of_columns_and_tables_may_have_any_sign(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    table = create_table(tmp_path / name)
    table.append([{"content": "x", ID: 1} | {column: place for place, column in enumerate(NAMES)}])
    for forced in (False, True):
        if forced:
            force_parquet(monkeypatch)
        for place, column in enumerate(NAMES):
            (row,) = lake.search(spark, table, equals(column, place), columns=[column, ID]).collect()
            assert tuple(row) == (place, 1)
    assert lake.plan_search(table, "x").goes_through_parquet == (name == "plain")


@pytest.mark.parametrize("values", [["a b", "c/d", "e%20f", "ä", "p=1", None], [1, 2, None], [True, False, None]])
@pytest.mark.parametrize("writer", ["own", "foreign"])
def test_partitions_of_any_value_are_searched_alike(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[Any], writer: str
) -> None:
    data = pa.table({"content": [f"c{n}" for n in range(len(values))], "p": pa.array(values)})
    if writer == "own":
        create_table(tmp_path / "table", schema=data.schema, partition_by="p").append(data)
    else:
        write_deltalake(str(tmp_path / "table"), data, partition_by=["p"])
    table = open_table(tmp_path / "table")
    force_parquet(monkeypatch)
    found = lake.search(spark, table, contains("c"), columns=["content", "p"]).orderBy("content").collect()
    assert [row["p"] for row in found] == values
    (row,) = lake.search(spark, table, equals("p", values[0])).collect()
    assert row["content"] == "c0"


@pytest.mark.parametrize("timestamp", [None, ["2024", "soon"], [5, 6]])
def test_a_range_of_time_is_refused_for_tables_without_times(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timestamp: list[Any] | None
) -> None:
    columns: dict[str, list[Any]] = {"content": ["a", "b"]} | ({} if timestamp is None else {"timestamp": timestamp})
    write_deltalake(str(tmp_path / "table"), pa.table(columns))
    for forced in (False, True):
        if forced:
            force_parquet(monkeypatch)
        assert lake.search(spark, tmp_path / "table", "a").count() == 1
        with pytest.raises(UsageError, match="time range"):
            lake.search(spark, tmp_path / "table", since="2020-01-01")


def test_a_data_file_that_is_gone_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    table.append(record_batch(FIXED))
    frame = lake.search(spark, table, "index")
    for file in (tmp_path / "table").glob("*.parquet"):
        file.unlink()
    with pytest.raises(Exception, match="no such file"):
        frame.collect()


def test_a_search_planned_before_a_commit_stays_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    table.append(record_batch(FIXED[:10]))
    before = lake.search(spark, table, "index")
    table.append(record_batch(FIXED[10:]))
    lake.optimize(spark, table)
    assert ids(before) == list(range(10))
    assert ids(lake.search(spark, table, "index")) == list(range(30))


# --- sessions ---


def test_a_session_in_another_thread_is_the_one_that_runs(spark: SparkSession) -> None:
    found: list[Any] = []

    def work() -> None:
        with lake.session("local[1]", quiet=True) as other:
            found.append(other.range(3).count())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(100)
    assert found == [3]
    assert spark.range(5).count() == 5


def test_seeded_searches_of_many_shares(spark: SparkSession, tmp_path: Path) -> None:
    """Rows enough for several tasks, of which each has several batches."""
    chosen = random.Random(5)
    words = [f"word{number}" for number in range(300)]
    lines = [{ID: n, "content": " ".join(chosen.choices(words, k=30)), "source": f"s{n % 4}"} for n in range(3000)]
    table = create_table(tmp_path / "table", partition_by="source")
    with table.writer(options=SMALL.__class__(batch_bytes=20_000)) as writer:
        writer.append(lines)
    for sought in ("word77", "word123 word", "nowhere"):
        planned = lake.plan_search(table, sought, share_bytes=20_000)
        expected = [line[ID] for line in lines if sought in str(line["content"])]
        assert ids(planned.dataframe(spark)) == expected
        assert (len(planned.shares()) > 3) == (sought != "nowhere")


def test_paths_are_those_of_the_program_wherever_java_was_started(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.log").write_text("2026-11-16 03:55:00 WARN refused\n")
    create_table("logs", partition_by=None)
    assert lake.ingest(spark, ["app.log"], "logs").row_count == 1
    [row] = lake.search(spark, "logs", "refused").collect()
    assert row["source"] == "app.log"
