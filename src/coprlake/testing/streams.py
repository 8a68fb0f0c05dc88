"""Spark drivers in separate processes, to kill in the middle of a job: the driver, its Java, or its workers.

A running session cannot take new jars, and a test cannot outlive a driver that shares its session. So a `SparkDriver`
is a process that runs the `JOBS` below on demand. It starts a system session (`setsid`), to which everything belongs
that it starts: that is how Java, executors and workers are found, and why none is left behind.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from coprlake import spark as lake
from coprlake.errors import CoprlakeError
from coprlake.spark.runtime.failures import clear_errors
from coprlake.spark.runtime.sessions import DAEMON_MODULE
from coprlake.spark.streams.streaming import BatchReport, StreamSettings
from coprlake.testing.chosen_faults import record, sudden_death
from coprlake.testing.kafka import tied_to_us

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MASTER: Final = "local[2,4]"
"""Two tasks at a time, with four attempts each: without the second number, Spark gives up at the first failure."""

START_SECONDS: Final = 180
FAST_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m"
_CONFS: Final = {
    "spark.driver.extraJavaOptions": FAST_JAVA,
    "spark.executor.extraJavaOptions": FAST_JAVA,
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "600m",
}


class DriverError(CoprlakeError):
    """A job failed in a driver, or the driver died.

    Attributes:
        kind: the name of the error class in the driver.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


# --- in the driver ---


class Worker:
    """The context of a job: the session, and a callback to report batches."""

    def __init__(self, spark: "SparkSession", tell: Callable[[BatchReport], None]) -> None:
        self.spark = spark
        self.tell = tell
        self.over = threading.Event()

    def follow(self, query: "StreamingQuery") -> None:
        """Wait until a stream ends; stop it when the driver shuts down."""
        with clear_errors():
            while not query.awaitTermination(0.1):
                if self.over.is_set():
                    query.stop()


def stream_kafka(
    worker: Worker,
    servers: str,
    topics: str,
    table: str,
    settings: StreamSettings,
    options: Mapping[str, str] | None = None,
) -> None:
    """Stream messages into a table until stopped."""
    settings.on_batch = worker.tell
    worker.follow(lake.stream_kafka(worker.spark, servers, topics, table, settings, options))


def stream_folder(
    worker: Worker, folder: str, table: str, settings: StreamSettings, dies_after: int | None = None
) -> None:
    """Stream files that appear in a folder into a table until stopped.

    Args:
        worker: the context of the job.
        folder: the folder to watch.
        table: the target.
        settings: the settings of the stream.
        dies_after: the number of the batch after whose commit, but before the checkpoint, the driver dies.
    """

    def on_batch(report: BatchReport) -> None:
        worker.tell(report)
        if report.number == dies_after:
            sudden_death()

    settings.on_batch = on_batch
    worker.follow(lake.stream_folder(worker.spark, folder, table, settings))


def stop_streams(worker: Worker) -> None:
    """Stop all streams, wherever they are."""
    for query in worker.spark.streams.active:
        query.stop()


def ingest(worker: Worker, inputs: Sequence[str], table: str) -> int:
    """Ingest files into a table; return the number of records."""
    return lake.ingest(worker.spark, inputs, table, again=True).row_count


def optimize(worker: Worker, table: str, rounds: int) -> tuple[int, int]:
    """Merge repeatedly; return the number of merged segments, and of groups that another writer had changed."""
    merged = conflicts = 0
    for number in range(rounds):
        report = lake.optimize(worker.spark, table, full=number % 2 == 1)
        merged += report.merged
        conflicts += report.conflicts
    return merged, conflicts


def search(worker: Worker, table: str, query: str) -> list[tuple[Any, ...]]:
    """The time, source and content of all matching records, sorted."""
    return _rows(lake.search(worker.spark, table, query))


def read(worker: Worker, table: str, query: str) -> list[tuple[Any, ...]]:
    """Like `search`, through the data source."""
    lake.register(worker.spark)
    return _rows(worker.spark.read.format("coprlake").option("query", query).load(table))


def _rows(frame: "DataFrame") -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select("timestamp", "source", "content").collect())


def locate(worker: Worker, tasks: int) -> set[tuple[int, str, str]]:
    """Where tasks run: the pid of the daemon, the working folder, and the file that coprlake was loaded from."""
    import pyarrow as pa

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import coprlake

        time.sleep(1)  # so that no executor gets all tasks
        for _ in batches:
            found = {"daemon": [os.getppid()], "folder": [str(Path.cwd())], "file": [coprlake.__file__]}
            yield pa.RecordBatch.from_pydict(found)

    frame = worker.spark.range(0, tasks, 1, tasks).mapInArrow(work, "daemon long, folder string, file string")
    return {tuple(row) for row in frame.collect()}


def write_flaky(worker: Worker, table: str, count: int, flags: str, fails: int, die: bool) -> list[int]:
    """Write records with two tasks, each of which fails midway several times; return the attempts of each.

    Args:
        worker: the context of the job.
        table: the target.
        count: the number of records.
        flags: a folder in which tasks count their attempts.
        fails: the number of failures of each task.
        die: whether the Python worker is killed; otherwise it raises an error.
    """
    import pyarrow as pa

    def records(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        attempt = Path(flags) / f"{context.partitionId()}-{context.attemptNumber()}"
        attempt.touch()
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            for start in range(0, len(numbers), 100):
                rows = [record(number) for number in numbers[start : start + 100]]
                yield pa.RecordBatch.from_pylist(rows)
            if context.attemptNumber() < fails:
                if die:
                    sudden_death()
                raise ValueError("this task was told to fail")

    schema = "timestamp string, source string, content string, id long"
    frame = worker.spark.range(0, count, 1, 2).mapInArrow(records, schema)
    frame = frame.selectExpr("cast(timestamp as timestamp) timestamp", "source", "content", "id")
    writer = frame.write.format("coprlake").mode("append").option("segment_bytes", "4000")
    with clear_errors():
        writer.save(table)
    names = [path.name.partition("-")[0] for path in Path(flags).iterdir()]
    return [names.count(number) for number in ("0", "1")]


JOBS: Final[dict[str, Callable[..., Any]]] = {
    "stream_kafka": stream_kafka,
    "stream_folder": stream_folder,
    "stop_streams": stop_streams,
    "ingest": ingest,
    "optimize": optimize,
    "search": search,
    "read": read,
    "locate": locate,
    "write_flaky": write_flaky,
}


def serve(connection: Connection) -> None:
    """Run a session, and each requested job in a thread, until the other side closes the connection."""
    lock = threading.Lock()

    def send(*message: Any) -> None:
        with lock, suppress(OSError):
            connection.send(message)

    master, confs, jars = connection.recv()
    try:
        with lake.session(master, _CONFS | confs, jars=jars) as spark:
            worker = Worker(spark, lambda report: send("batch", 0, report))
            send("result", 0, None)
            threads = []
            for number, name, arguments in iter(connection.recv, None):
                thread = threading.Thread(target=_run, args=(worker, send, number, name, arguments), daemon=True)
                thread.start()
                threads.append(thread)
            worker.over.set()
            for thread in threads:
                thread.join(60)
    except EOFError:
        pass  # the other side is gone
    except Exception as error:
        send("error", 0, (type(error).__name__, str(error)))


def _run(worker: Worker, send: Callable[..., None], number: int, name: str, arguments: dict[str, Any]) -> None:
    worker.spark.createDataFrame([], "id long")  # makes this the session of the thread, for `write` to find the source
    try:
        send("result", number, JOBS[name](worker, **arguments))
    except Exception as error:
        send("error", number, (type(error).__name__, str(error)))


def main() -> None:
    """The driver's process: ``python -m coprlake.testing.streams DESCRIPTOR``."""
    with Connection(int(sys.argv[1])) as connection:
        serve(connection)


# --- in the test ---


class SparkDriver:
    """A driver in a separate process; a context manager that leaves no process behind.

    .. code-block:: python

        with SparkDriver(tmp_path / "driver.log", jars=connector_jars()) as driver:
            job = driver.begin("stream_kafka", servers=..., topics="logs", table=..., settings=StreamSettings())
            driver.next_batch()
            driver.kill()

    Args:
        log_file: Spark's log; appended to.
        master: where tasks run.
        confs: Spark's settings.
        jars: files for the class path.
        environment: environment variables of the process.

    Attributes:
        batches: the reports of streams so far.
    """

    def __init__(
        self,
        log_file: Path,
        *,
        master: str = MASTER,
        confs: Mapping[str, str] | None = None,
        jars: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.log_file = log_file
        self.batches: list[BatchReport] = []
        self._taken = 0
        self._results: dict[int, Any] = {}
        self._last = 0
        own, other = socket.socketpair()
        with own, other, log_file.open("ab") as log:
            self._process = subprocess.Popen(
                tied_to_us([sys.executable, "-m", "coprlake.testing.streams", str(other.fileno())]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=[other.fileno()],
                env={**os.environ, **(environment or {})},
            )
            self._connection = Connection(own.detach())
        self._connection.send((master, dict(confs or {}), [str(jar) for jar in jars]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        self.close()

    def wait_until_ready(self, seconds: float = START_SECONDS) -> None:
        """Wait until the session has started."""
        self.result(0, seconds)

    def begin(self, name: str, **arguments: Any) -> int:
        """Start a job and return its number."""
        self._last += 1
        self._connection.send((self._last, name, arguments))
        return self._last

    def run(self, name: str, **arguments: Any) -> Any:
        """Run a job and return its result."""
        return self.result(self.begin(name, **arguments))

    def result(self, number: int, seconds: float = START_SECONDS) -> Any:
        """Wait for the result of a job.

        Raises:
            DriverError: the job failed or took too long, or the driver died.
        """
        until = time.monotonic() + seconds
        while number not in self._results:
            self._receive(until)
        found = self._results[number]
        if isinstance(found, DriverError):
            raise found
        return found

    def is_over(self, number: int) -> bool:
        """Whether a job has finished or failed."""
        while self._connection.poll(0):
            self._receive(time.monotonic() + 1)
        return number in self._results

    def wait(self, seconds: float = START_SECONDS) -> None:
        """Wait for the next message of the driver."""
        self._receive(time.monotonic() + seconds)

    def next_batch(self, seconds: float = START_SECONDS) -> BatchReport:
        """Wait for the next batch of any stream."""
        until = time.monotonic() + seconds
        while len(self.batches) <= self._taken:
            failed = [found for found in self._results.values() if isinstance(found, DriverError)]
            if failed:
                raise failed[0]
            self._receive(until)
        self._taken += 1
        return self.batches[self._taken - 1]

    def skip_batches(self) -> None:
        """Make `next_batch` skip the batches that are done already."""
        self.is_over(0)
        self._taken = len(self.batches)

    def _receive(self, until: float) -> None:
        try:
            if not self._connection.poll(max(0.0, until - time.monotonic())):
                raise DriverError("TimeoutError", f"the driver does not answer; the end of its log:\n{self._log_end()}")
            kind, number, value = self._connection.recv()
        except (EOFError, OSError) as error:
            raise DriverError("EOFError", f"the driver is dead; the end of its log:\n{self._log_end()}") from error
        if kind == "batch":
            self.batches.append(value)
        else:
            self._results[number] = DriverError(*value) if kind == "error" else value

    def stop(self) -> None:
        """Stop the streams after their current batch, and the session."""
        with suppress(OSError):
            self._connection.send(None)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(90)

    def kill(self, *, alone: bool = False) -> None:
        """Kill the driver as a failing machine would; with `alone`, only the driver and its Java, not the workers."""
        self._kill([self._process.pid, *self.java()] if alone else [self._process.pid, *self.processes()])
        self._process.wait()
        while not alone and (left := self.processes()):
            self._kill(left)
            time.sleep(0.01)

    def close(self) -> None:
        """Kill all processes and close the connection."""
        self.kill()
        self._connection.close()

    def java(self) -> list[int]:
        """The pids of the driver's Java, without executors."""
        return [pid for pid, command in self.processes().items() if "SparkSubmit" in command]

    def executors(self) -> list[int]:
        """The pids of the Java processes in which tasks run, if these are not the driver's own."""
        return [pid for pid, command in self.processes().items() if "CoarseGrainedExecutorBackend" in command]

    def workers(self) -> list[int]:
        """The pids of the Python processes in which tasks run, and of those from which they are forked."""
        return [pid for pid, command in self.processes().items() if f"-m {DAEMON_MODULE}" in command]

    def kill_one(self, pids: Sequence[int], chance: random.Random) -> bool:
        """Kill one of the processes at random; return whether there was one."""
        if not pids:
            return False
        self._kill([chance.choice(sorted(pids))])
        return True

    def processes(self) -> dict[int, str]:
        """All live processes of the driver's session except itself, with their command lines."""
        return {pid: command for pid, command in processes_of(self._process.pid) if pid != self._process.pid}

    def _kill(self, pids: Iterable[int]) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _log_end(self) -> str:
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-30:])


def processes_of(session: int) -> Iterator[tuple[int, str]]:
    """The live processes of a system session, with their command lines."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):  # gone in the meantime
            state, *numbers = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(numbers[2]) == session and state != "Z":
                yield int(folder.name), (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def spark_home(folder: Path) -> Path:
    """Create a SPARK_HOME for ``local-cluster[...]`` with links to the package, so that nothing is written there."""
    import pyspark

    folder.mkdir()
    for name in ("bin", "jars", "python"):
        (folder / name).symlink_to(Path(pyspark.__file__).parent / name)
    return folder


if __name__ == "__main__":
    main()
