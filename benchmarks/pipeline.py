"""``python -m benchmarks.pipeline``: the same logs through the in-process engine and through Spark, then searched.

Ingestion runs in-process, on ``local[1]`` and on ``local[2]``, into tables that must hold the same records. A needle is
then looked for by `coprlake.spark.search`, through the data source, by a scan of all batches, and by Spark's own
Parquet reader with the same filter; a run in which these do not find the same lines fails. A folder that receives files
at a given pace shows whether a stream keeps up. Starting Spark and warming up stand outside of what is timed.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.store import peak_memory_bytes, warm_up, write_logs
from coprlake import spark as lake
from coprlake.errors import CoprlakeError
from coprlake.ingestion import ingest
from coprlake.intake.reading import Intake, ReadOptions
from coprlake.predicate.predicates import Contains
from coprlake.spark.streams.streaming import BatchReport, StreamSettings
from coprlake.table import Table, create_table, open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXT = ReadOptions(format="text")
NEEDLE = "xyneedlezq"
ROUNDS = 5
CONFS = {"spark.driver.memory": "2g"}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the result."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


@contextmanager
def warm_session(master: str, folder: Path) -> Iterator[tuple["SparkSession", float]]:
    """A session whose workers have done all kinds of work once, and how long its start took."""
    started = time.perf_counter()
    with lake.session(master, CONFS, quiet=True) as spark:
        spark.range(1).count()
        seconds = time.perf_counter() - started
        small = Path(tempfile.mkdtemp(prefix="warm-", dir=folder))
        lines = [f"2026-11-16T03:55:00Z INFO warm {i:04x} connection from 10.1.2.{i}" for i in range(20_000)]
        for number in range(4):
            (small / f"{number}.log").write_text("\n".join(lines))
        table = create_table(small / "table")
        lake.ingest(spark, [small / f"{number}.log" for number in range(4)], table, TEXT)
        for _ in range(2):
            lake.search(spark, table, Contains("absentneedle")).count()
            lake.search(spark, table, Contains("warm"), limit=5).count()
        yield spark, seconds


def plant_needle(logs: Path) -> None:
    """One line that no other is like, in the middle of the logs."""
    files = sorted(logs.glob("*.log"))
    with files[len(files) // 2].open("a") as file:
        file.write(f"2026-11-16 03:55:00.000 WARN the {NEEDLE} is here\n")


def without_needle(logs: Path) -> list[Path]:
    """All files but the one that has the needle."""
    return [path for path in sorted(logs.glob("*.log")) if NEEDLE not in path.read_text()]


def ingest_figures(logs: Path, folder: Path) -> dict[str, Any]:
    """Seconds of each engine; all tables must have the same records."""
    with tempfile.TemporaryDirectory(prefix="coprlake-warm-") as warm:
        warm_up(Path(warm))
    counts = {}
    library = create_table(folder / "library")
    seconds, report = timed(lambda: ingest(library, Intake([logs], TEXT)))
    figures: dict[str, Any] = {"library_seconds": seconds, "raw_bytes": report.raw_bytes, "rows": report.row_count}
    counts["library"] = report.row_count
    for cores in (1, 2):
        with warm_session(f"local[{cores}]", folder) as (spark, start):
            table = create_table(folder / f"local{cores}")
            seconds, report = timed(lambda: lake.ingest(spark, [logs], table, TEXT))  # noqa: B023
            figures[f"spark_local{cores}_seconds"] = seconds
            figures[f"session_start_{cores}_seconds"] = start
            counts[f"local{cores}"] = report.row_count
    if len(set(counts.values())) != 1:
        raise CoprlakeError(f"the engines do not agree on the number of records: {counts}")
    figures["session_start_seconds"] = figures.pop("session_start_2_seconds")
    del figures["session_start_1_seconds"]
    return figures


def best(work: Callable[[], "DataFrame"], rounds: int = ROUNDS) -> tuple[float, list[str]]:
    """The median time of planning and reading, and the lines."""
    seconds = []
    for _ in range(rounds):
        took, rows = timed(lambda: [row[0] for row in work().select("content").collect()])
        seconds.append(took)
    return statistics.median(seconds), sorted(rows)


def query_figures(spark: "SparkSession", table: Table, rounds: int = ROUNDS) -> dict[str, Any]:
    """The needle in four ways, which must find the same lines."""
    from pyspark.sql import functions as sql

    predicate = Contains(NEEDLE, case_sensitive=True)
    option = f'contains("{NEEDLE}", case_sensitive=True)'
    files = [f"{table.uri}/{segment.name}" for segment in table.snapshot().segments]

    def by_parquet() -> "DataFrame":
        frame = spark.read.option("basePath", table.uri).parquet(*files)
        return frame.filter(sql.col("content").contains(NEEDLE))

    ways: dict[str, Callable[[], DataFrame]] = {
        "needle_query_seconds": lambda: lake.search(spark, table, predicate),
        "data_source_query_seconds": lambda: spark.read.format("coprlake").option("query", option).load(table.uri),
        "full_scan_query_seconds": lambda: lake.search(spark, table, predicate, use_sketches=False),
        "spark_parquet_scan_seconds": by_parquet,
    }
    figures: dict[str, Any] = {}
    found = {}
    for name, work in ways.items():
        best(work, 1)
        figures[name], found[name] = best(work, rounds)
    if len({tuple(lines) for lines in found.values()}) != 1 or not all(found.values()):
        raise CoprlakeError(f"not all ways find the same lines: { {name: len(own) for name, own in found.items()} }")
    figures["needle_tasks"] = len(lake.plan_search(table, predicate).shares())
    figures["scan_tasks"] = len(lake.plan_search(table, predicate, use_sketches=False).shares())
    figures["segments"] = len(files)
    return figures


def stream_figures(
    spark: "SparkSession", logs: Path, folder: Path, seconds: float, megabytes_per_second: float
) -> dict[str, Any]:
    """Files come at a steady pace; how many records a second, and how long until they are in the table?"""
    inbox, staging = folder / "inbox", folder / "staging"
    inbox.mkdir()
    staging.mkdir()
    sent: dict[str, float] = {}
    ready: list[tuple[float, BatchReport]] = []
    done = threading.Event()

    def feed() -> None:
        files = sorted(logs.glob("*.log"))
        started, size, number = time.time(), 0, 0
        while time.time() - started < seconds:
            source = files[number % len(files)]
            wait = started + size / (megabytes_per_second * 1e6) - time.time()
            if wait > 0:
                time.sleep(wait)
            name = f"{number:06d}.log"
            shutil.copy(source, staging / name)
            (staging / name).rename(inbox / name)
            sent[name] = time.time()
            size += source.stat().st_size
            number += 1
        done.set()

    table = create_table(folder / "stream")
    settings = StreamSettings(options=TEXT, trigger_seconds=2, on_batch=lambda one: ready.append((time.time(), one)))
    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    time.sleep(0.5)
    query = lake.stream_folder(spark, inbox, table, settings)
    taken, batches, latencies, optimized = 0, 0, [], 0
    memory = []
    try:
        while not done.is_set() or taken < len(sent):
            time.sleep(0.2)
            if query.exception() is not None:
                raise CoprlakeError(f"the stream ended: {query.exception()}")
            while batches < len(ready):
                at, report = ready[batches]
                names = sorted(sent)[taken : taken + report.read.files]
                latencies += [at - sent[name] for name in names]
                taken += report.read.files
                batches += 1
                memory.append(peak_memory_bytes())
            if batches >= optimized + 10:
                optimized = batches
                lake.optimize(spark, table)
    finally:
        query.stop()
    rows = sum(report.row_count for _, report in ready)
    duration = ready[-1][0] - min(sent.values())
    half = len(latencies) // 2
    return {
        "stream_seconds": duration,
        "stream_records_per_second": rows / duration,
        "stream_megabytes_per_second": sum(report.raw_bytes for _, report in ready) / 1e6 / duration,
        "stream_latency_seconds": statistics.median(latencies),
        "stream_latency_first_half_seconds": statistics.median(latencies[:half]),
        "stream_latency_second_half_seconds": statistics.median(latencies[half:]),
        "stream_latency_most_seconds": max(latencies),
        "stream_batches": len(ready),
        "stream_segments": len(open_table(table.uri).snapshot().segments),
        "stream_driver_memory_bytes": [memory[0], memory[-1]],
        "stream_rows": rows,
    }


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """All figures."""
    with tempfile.TemporaryDirectory(prefix="coprlake-pipeline-") as name:
        folder = Path(name)
        logs = arguments.logs
        if logs is None:
            logs = folder / "logs"
            logs.mkdir()
            write_logs(arguments.megabytes, arguments.seed, logs)
            plant_needle(logs)
        figures = ingest_figures(logs, folder)
        figures["local1_over_library"] = figures["spark_local1_seconds"] / figures["library_seconds"]
        figures["local2_speedup"] = figures["spark_local1_seconds"] / figures["spark_local2_seconds"]
        with warm_session("local[2]", folder) as (spark, _):
            figures |= query_figures(spark, open_table(folder / "local2"))
            if arguments.copies > 1:
                large = create_table(folder / "large")
                lake.ingest(spark, [logs], large, TEXT)
                for _ in range(arguments.copies - 1):
                    lake.ingest(spark, without_needle(logs), large, TEXT)
                figures["larger"] = {"copies": arguments.copies} | query_figures(spark, large, 3)
            figures |= stream_figures(spark, logs, folder, arguments.stream_seconds, arguments.stream_megabytes)
    figures["needle_over_parquet"] = figures["spark_parquet_scan_seconds"] / figures["needle_query_seconds"]
    return figures


def main() -> None:
    """The entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--megabytes", type=float, default=400, help="size of the generated logs")
    parser.add_argument("--logs", type=Path, help="a folder of logs instead, with the needle in one of its lines")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--copies", type=int, default=5, help="how many times the logs are in the larger table")
    parser.add_argument("--stream-seconds", type=float, default=30)
    parser.add_argument("--stream-megabytes", type=float, default=20, help="a second")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    try:
        figures = run(arguments)
    except CoprlakeError as error:
        sys.exit(f"error: {error}")
    if arguments.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
