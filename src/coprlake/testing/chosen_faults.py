"""Full disks and sudden deaths at a chosen moment: they must leave the table as it was before or after, never between.

There are two ways to interrupt a job. `failing` counts the file operations of a block of code and makes one of them
fail, with an error or with the death of the process. `Mortals` runs a job in its own process and kills it when its time
is up; processes are forked from one that has everything loaded, so a run costs milliseconds.
"""

import errno
import io
import multiprocessing
import os
import select
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, TypeAlias
from unittest.mock import patch

import pyarrow as pa

from coprlake import files
from coprlake.files import Folder
from coprlake.predicate.predicates import OneOf
from coprlake.segment.mutable import MutableSegment, SegmentOptions
from coprlake.storage.ledger import LEDGER_FOLDER
from coprlake.table import Table, create_table, open_table

SMALL: Final = SegmentOptions(batch_bytes=200, slot_count=2)
ROWS: Final = 12
"""The number of records in each commit of the job `ingest`."""


# --- one operation fails ---


class Points:
    """Counts operations, and makes operation number `at` fail.

    Args:
        at: the number of the operation, from 0; None to only count.
        fault: called instead of it.
        lasting: whether all later operations fail as well, as on a disk that stays full.
    """

    def __init__(self, at: int | None, fault: Callable[[], None], *, lasting: bool = False) -> None:
        self.names: list[str] = []
        self._at = at
        self._fault = fault
        self._lasting = lasting

    def pass_by(self, name: str) -> None:
        """Count an operation that is about to happen, or make it fail."""
        number = len(self.names)
        self.names.append(name)
        if self._at is not None and (number == self._at or (self._lasting and number > self._at)):
            self._fault()

    def end(self) -> None:
        """Let all further operations succeed."""
        self._at = None


def disk_full() -> None:
    """Raise the error of a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupt() -> None:
    """Raise what Ctrl-C raises."""
    raise KeyboardInterrupt


def sudden_death() -> None:
    """Kill this process: no handler runs, nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


class _Stream(io.RawIOBase):
    """A file whose writes are counted as points."""

    def __init__(self, sink: pa.NativeFile, points: Points) -> None:
        self._sink = sink
        self._points = points
        self._place = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def write(self, data: Any) -> int:
        self._points.pass_by("write to a file")
        self._sink.write(data)
        self._place += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._sink.close()
            super().close()


@contextmanager
def failing(at: int | None, fault: Callable[[], None] = disk_full, *, lasting: bool = False) -> Iterator[Points]:
    """Make operation `at` fail in this block: on the files of a table, or before or after a commit to its log."""
    points = Points(at, fault, lasting=lasting)
    create, place, sync = Folder.create, Folder.place, files.sync_path

    def faulty_create(self: Folder, name: str) -> pa.NativeFile:
        with files._storage_errors(self.path(name)):
            points.pass_by("create a file")
        return pa.PythonFile(_Stream(create(self, name), points), mode="w")

    def faulty_sync(path: str) -> None:
        points.pass_by("sync")
        sync(path)

    def faulty_place(self: Folder, name: str, data: bytes) -> bool:
        what = "adding columns" if b'"ADD COLUMN"' in data[:200] else "the commit"
        with files._storage_errors(self.path(name)):
            points.pass_by("add columns" if what == "adding columns" else "commit")
        placed = place(self, name, data)
        with files._storage_errors(self.path(name)):
            points.pass_by(f"return from {what}")
        return placed

    with (
        patch.object(Folder, "create", faulty_create),
        patch.object(Folder, "place", faulty_place),
        patch.object(files, "sync_path", faulty_sync),
    ):
        try:
            yield points
        finally:
            points.end()


# --- jobs to kill ---

Job: TypeAlias = Callable[[str, Callable[[str], None]], None]


def record(number: int) -> dict[str, Any]:
    """The record with this number, on one of three days and from one of four sources."""
    return {
        "timestamp": f"2024-06-0{1 + number % 3}T00:00:{number % 60:02d}Z",
        "source": f"host-{number % 4}",
        "content": f"record {number} says {number * 7919:08x} and a little more",
        "id": number,
    }


def ingest(path: str, report: Callable[[str], None]) -> None:
    """Commit `ROWS` records at a time, some with a new column; report before and after each commit."""
    table = open_table(path)
    first = 1 + max((row["id"] for row in table.search(columns=["id"]).rows()), default=-1)
    with table.writer(options=SMALL, segment_bytes=400) as writer:
        for round_number in range(1000):
            start = first + round_number * ROWS
            for number in range(start, start + ROWS, 4):
                extra = {f"column{number // ROWS % 5}": number}
                writer.append([record(each) | extra for each in range(number, number + 4)])
            report(f"before {start + ROWS}")
            writer.commit()
            report(f"after {start + ROWS}")


def optimize(path: str, report: Callable[[str], None]) -> None:
    """Merge repeatedly."""
    table = open_table(path)
    for number in range(1000):
        table.optimize(full=number % 2 == 1)
        report("round")


def delete(path: str, report: Callable[[str], None]) -> None:
    """Delete the records whose number is a multiple of 5, then of 3, then of 2; report before and after each."""
    table = open_table(path)
    numbers = sorted(row["id"] for row in table.search(columns=["id"]).rows())
    for divisor in (5, 3, 2):
        report(f"before {divisor}")
        table.delete(OneOf("id", tuple(number for number in numbers if number % divisor == 0)))
        report(f"after {divisor}")


JOBS: Final[dict[str, Job]] = {"ingest": ingest, "optimize": optimize, "delete": delete}


# --- a process for each run ---


def _warm_up() -> None:
    """Load and compile what the jobs need, except delta-rs, whose threads do not survive a fork."""
    with tempfile.TemporaryDirectory() as folder:
        batch = pa.RecordBatch.from_pylist([record(number) for number in range(20)])
        segment = MutableSegment(Folder.of(folder), "a.parquet", batch.schema, SMALL)
        segment.append(batch)
        segment.seal()


def _serve(connection: Connection) -> None:
    _warm_up()
    connection.send("ready")
    while True:
        order = connection.recv()
        if order is None:
            return
        connection.send(_one_life(*order))


def _one_life(job: str, path: str, at: int | None, seconds: float | None) -> tuple[list[str], int]:
    """Run a job; return what it reported and its exit code, negative for a signal."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            with failing(at, sudden_death):
                JOBS[job](path, lambda text: _tell(writing, text))
            status = 0
        except BaseException as error:  # a child must never return
            _tell(writing, f"error {type(error).__name__}: {error}")
        finally:
            os._exit(status)
    os.close(writing)
    told = b""
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not select.select([reading], [], [], left)[0]:
            os.kill(child, signal.SIGKILL)
            deadline = None
            continue
        piece = os.read(reading, 65536)
        if not piece:
            break
        told += piece
    os.close(reading)
    _, status = os.waitpid(child, 0)
    return told.decode().splitlines(), os.waitstatus_to_exitcode(status)


def _tell(descriptor: int, text: str) -> None:
    os.write(descriptor, text.replace("\n", " ").encode() + b"\n")


class Mortals:
    """Runs jobs in processes that die; a context manager."""

    def __enter__(self) -> "Mortals":
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        assert self._connection.recv() == "ready"
        return self

    def live(
        self, job: str, path: str | Path, *, at: int | None = None, seconds: float | None = None
    ) -> tuple[list[str], int]:
        """Run a job until operation `at`, or for `seconds`; return what it reported and its exit code."""
        self._connection.send((job, str(path), at, seconds))
        found: tuple[list[str], int] = self._connection.recv()
        return found

    def __exit__(self, *_: object) -> None:
        self._connection.send(None)
        self._process.join(10)
        self._connection.close()


# --- what must hold afterwards ---


def ids(table: Table) -> list[int]:
    """The numbers of all records, sorted, with duplicates."""
    search = table.search(columns=["id"], strict=True)
    return sorted(row["id"] for row in search.rows())


def new_table(path: str | Path, commits: int = 4) -> Table:
    """Create a table by day, with some commits of `ROWS` records."""
    table = create_table(path, partition_by="day")
    for number in range(commits):
        with table.writer(options=SMALL) as writer:
            writer.append([record(each) for each in range(number * ROWS, (number + 1) * ROWS)])
    return table


def files_of(table: Table) -> set[str]:
    """All files on disk except the log and the list of ingested files."""
    root = Path(table.uri)
    files = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return {name for name in files if not name.startswith(("_delta_log/", f"{LEDGER_FOLDER}/"))}


def check_sound(path: str | Path, expected: list[int]) -> None:
    """Check that the table opens, holds these records and is sound, and that `vacuum` removes all leftovers.

    Raises:
        AssertionError: one of these does not hold.
    """
    table = open_table(path)
    assert ids(table) == expected
    report = table.verify(deep=True)
    assert report.is_sound, report
    assert report.rows == len(expected)
    table.vacuum(retention_hours=0)
    again = open_table(path)
    assert ids(again) == expected
    assert again.verify(deep=True).is_sound
    names = {segment.name for segment in again.snapshot().segments}
    assert files_of(again) == names | {f"_coprlake/{name}.copr" for name in names}
