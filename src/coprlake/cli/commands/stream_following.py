"""A running stream: reports its batches, merges small segments in the background, and stops on a signal."""

import json
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from coprlake.cli.printing import figures
from coprlake.cli.printing.harmless import harmless_json
from coprlake.cli.printing.notices import note, warn, warn_each

if TYPE_CHECKING:
    from types import FrameType

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from coprlake.spark.streams.streaming import BatchReport

    Events = queue.SimpleQueue[BatchReport | str]

_PATIENCE_SECONDS = 0.25
_POOL = "optimize"


@dataclass
class Follower:
    """Reports each batch: as JSON, on a status line of the terminal, or on a line of its own.

    Attributes:
        as_json: print JSON to stdout.
        is_quiet: print nothing.
    """

    as_json: bool
    is_quiet: bool
    batches: int = 0
    records: int = 0
    raw_bytes: int = 0
    is_live: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_live = sys.stderr.isatty() and not (self.as_json or self.is_quiet)

    def begin(self, text: str) -> None:
        """Show a status before the first batch."""
        if self.is_live:
            self._show(text)

    def take(self, batch: "BatchReport") -> None:
        """Report a batch that has been committed."""
        self.batches += 1
        self.records += batch.row_count
        self.raw_bytes += batch.raw_bytes
        if self.as_json:
            click.echo(harmless_json(json.dumps(_as_dict(batch), ensure_ascii=False)))
        elif not self.is_quiet:
            self.clear()
            warn_each(batch.read.warnings, batch.read.warning_count, "--json lists the first hundred")
            if self.is_live:
                self._show(self._status(batch))
            else:
                note(_line(batch))

    def clear(self) -> None:
        """Erase the status line."""
        if self.is_live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def summary(self, table: str, seconds: float, optimizer: "Optimizer") -> str:
        """Summarize the whole run."""
        batches = figures.amount(self.batches, "batch", "batches")
        records = figures.amount(self.records, "record")
        text = (
            f"added to {table}: {records}, {figures.size(self.raw_bytes)} in {batches} and {figures.seconds(seconds)}"
        )
        if optimizer.merged:
            text += f"; merged {figures.amount(optimizer.merged, 'small segment')} into {optimizer.written:,}"
        if optimizer.conflicts:
            text += f"; {figures.amount(optimizer.conflicts, 'merge')} abandoned, because another writer was first"
        return text

    def _status(self, batch: "BatchReport") -> str:
        rate = figures.rate(batch.raw_bytes, batch.seconds)
        return (
            f"batch {batch.number}  {self.records:,} records  {figures.size(self.raw_bytes)}  {rate}  "
            f"last batch took {figures.seconds(batch.seconds)}"
        )

    def _show(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _line(batch: "BatchReport") -> str:
    if batch.was_done:
        return f"batch {batch.number}: already in the table"
    records, segments = figures.amount(batch.row_count, "record"), figures.amount(batch.segments, "segment")
    rate = figures.rate(batch.raw_bytes, batch.seconds)
    spent = figures.seconds(batch.seconds)
    return f"batch {batch.number}: {records}, {figures.size(batch.raw_bytes)} in {spent}, {rate}; {segments}"


def _as_dict(batch: "BatchReport") -> dict[str, Any]:
    read = batch.read
    return {
        "batch": batch.number,
        "records": batch.row_count,
        "raw_bytes": batch.raw_bytes,
        "segments": batch.segments,
        "seconds": batch.seconds,
        "was_done": batch.was_done,
        "files": read.files,
        "without_timestamp": read.without_timestamp,
        "broken": read.broken,
        "unreadable": read.unreadable,
        "warnings": read.warnings,
    }


class Optimizer:
    """A context manager that merges small segments at intervals, in its own thread and scheduler pool.

    Args:
        spark: the stream's Spark session.
        table: the table to optimize.
        every: the interval; None for never.
        events: where to report a failed merge, which does not stop the stream.
    """

    def __init__(self, spark: "SparkSession", table: str, every: timedelta | None, events: "Events") -> None:
        self.merged = self.written = self.conflicts = 0
        self._spark = spark
        self._table = table
        self._pause_seconds = None if every is None else every.total_seconds()
        self._events = events
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="coprlake-optimize", daemon=True)

    def __enter__(self) -> "Optimizer":
        if self._pause_seconds is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, even in the middle of a merge, which then has no effect."""
        self._over.set()
        while self._thread.is_alive():
            with suppress(Exception):  # Java may have exited already
                self._spark.sparkContext.cancelAllJobs()
            self._thread.join(1)

    def _run(self) -> None:
        from coprlake.spark import optimize

        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", _POOL)
        while not self._over.wait(self._pause_seconds):
            try:
                report = optimize(self._spark, self._table)
            except Exception as error:  # a failed merge must not stop the stream
                if not self._over.is_set():
                    self._events.put(f"small segments could not be merged: {error}")
                continue
            self.merged += report.merged
            self.written += report.written
            self.conflicts += report.conflicts


def follow(query: "StreamingQuery", events: "Events", follower: Follower, optimizer: Optimizer) -> None:
    """Wait until the stream ends, or a signal stops it.

    Raises:
        PySparkException: the stream failed.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    with _signals() as stop:
        try:
            with optimizer:
                while not stop.is_set() and not query.awaitTermination(_PATIENCE_SECONDS):
                    _tell(events, follower)
                query.stop()
        except (PySparkException, Py4JError, OSError):
            if not stop.is_set():  # an interrupted batch is expected to fail; Java may have received the signal too
                raise
        finally:
            with suppress(Py4JError, OSError):
                query.stop()
            _tell(events, follower)
            follower.clear()


def _tell(events: "Events", follower: Follower) -> None:
    """Report what has happened since the last call."""
    while not events.empty():
        event = events.get()
        if isinstance(event, str):
            follower.clear()
            warn(event)
        else:
            follower.take(event)


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """Catch SIGINT and SIGTERM: they set the event that is returned."""
    stop = threading.Event()

    def handle(number: int, frame: "FrameType | None") -> None:
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
