"""The part of the demo that runs on Spark: logs stream in while somebody searches, small segments are merged."""

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as Grid

from coprlake import spark as lake
from coprlake.errors import CoprlakeError
from coprlake.intake.reading import ReadOptions
from coprlake.predicate.narrowing.claims import Exact
from coprlake.predicate.predicates import Predicate, Term
from coprlake.spark.jobs.searching import SparkSearch
from coprlake.spark.streams.streaming import BatchReport, StreamSettings
from coprlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TICK_SECONDS = 0.5
PATIENCE_SECONDS = 120.0
WORD = Term("timeout")


@dataclass
class Streamed:
    """What came in."""

    rows: int = 0
    raw_bytes: int = 0
    seconds: float = 0.0
    batches: list[BatchReport] = field(default_factory=list)


def stream_in(spark: "SparkSession", logs: Path, inbox: Path, table: Table, console: Console) -> Streamed:
    """Move files into a folder that a stream watches, and search the table meanwhile.

    Args:
        spark: the session.
        logs: files that were written elsewhere.
        inbox: the folder that is watched; files appear in it by a rename.
        table: where to.
        console: shows each search.
    """
    files = sorted(logs.glob("*.log"))
    inbox.mkdir()
    done = Streamed()
    settings = StreamSettings(options=ReadOptions(format="text"), trigger_seconds=1, on_batch=done.batches.append)
    grid = Grid(title="A search while logs stream in", title_justify="left")
    for name in ("seconds", "files sent", "records in the table", f"{WORD}", "search took"):
        grid.add_column(name, justify="right")
    started = time.perf_counter()
    query = lake.stream_folder(spark, inbox, table, settings)
    feeder = threading.Thread(target=_feed, args=(files, inbox), daemon=True)
    feeder.start()
    try:
        taken = last = 0
        while taken < len(files):
            time.sleep(TICK_SECONDS)
            _check(query, time.perf_counter() - started)
            taken = sum(batch.read.files for batch in done.batches)
            if taken != last:
                grid.add_row(*_glance(table, time.perf_counter() - started, len(list(inbox.iterdir()))))
                last = taken
    finally:
        query.stop()
        feeder.join()
    done.seconds = time.perf_counter() - started
    done.rows = sum(batch.row_count for batch in done.batches)
    done.raw_bytes = sum(batch.raw_bytes for batch in done.batches)
    console.print(grid)
    return done


def _feed(files: list[Path], inbox: Path) -> None:
    for file in files:
        file.rename(inbox / file.name)
        time.sleep(0.4)


def _check(query: object, seconds: float) -> None:
    problem = query.exception()  # type: ignore[attr-defined]
    if problem is not None:
        raise CoprlakeError(f"the stream ended: {problem}")
    if seconds > PATIENCE_SECONDS:
        raise CoprlakeError(f"the stream did not take all files within {PATIENCE_SECONDS:.0f} s")


def _glance(table: Table, seconds: float, sent: int) -> list[str]:
    began = time.perf_counter()
    found = table.search(WORD).count()
    took = time.perf_counter() - began
    return [f"{seconds:.1f}", f"{sent}", f"{table.search().count():,}", f"{found:,}", f"{took * 1e3:.1f} ms"]


def merge(spark: "SparkSession", table: Table, console: Console) -> None:
    """Make large segments of those that the stream wrote."""
    report = lake.optimize(spark, table, full=True)
    console.print(
        f"optimize on Spark: {report.segments_before} segments became {report.segments_after} in "
        f"{report.seconds:.1f} s; data {report.data_bytes_before / 1e6:.1f} -> {report.data_bytes_after / 1e6:.1f} MB, "
        f"index {report.index_bytes_before / 1e6:.2f} -> {report.index_bytes_after / 1e6:.2f} MB\n"
    )


def needle(spark: "SparkSession", table: Table, predicate: Predicate) -> tuple[SparkSearch[Exact], int, float]:
    """The needle by `coprlake.spark.search`: how it was planned, how many lines, and seconds; warm."""
    for _ in range(2):
        began = time.perf_counter()
        planned = lake.plan_search(table, predicate, columns=["timestamp", "source", "content"])
        lines = len(planned.dataframe(spark).collect())
        seconds = time.perf_counter() - began
    return planned, lines, seconds
