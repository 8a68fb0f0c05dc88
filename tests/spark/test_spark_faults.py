"""Whoever dies in the middle of a Spark job, and whenever: afterwards every record is in the table exactly once."""

import json
import random
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from coprlake.errors import ConflictError
from coprlake.intake.options import ReadOptions
from coprlake.spark.runtime.jars import connector_jars
from coprlake.spark.streams.streaming import StreamSettings
from coprlake.table import create_table, open_table
from coprlake.testing.chosen_faults import check_sound, files_of, ids, record
from coprlake.testing.kafka import KafkaBroker
from coprlake.testing.streams import DriverError, SparkDriver, spark_home

pytestmark = pytest.mark.slow

CLUSTER = "local-cluster[1,2,600]"
"""One executor of two cores, in a process of its own."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_table(tmp_path / "table", schema=pa.schema([("id", pa.int64())]))
    return tmp_path / "table"


def line(number: int) -> bytes:
    return json.dumps(record(number)).encode()


class Feed:
    """A thread that keeps sending numbered records, up to a number that is raised from time to time."""

    def __init__(self, send: Callable[[range], object], chunk: int) -> None:
        self._send, self._chunk = send, chunk
        self._allowed = 0
        self._is_last = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def allow(self, number: int) -> None:
        self._allowed = number

    def finish(self, number: int) -> None:
        """Until so many are sent."""
        self.allow(number)
        self._is_last = True
        self._thread.join(120)
        assert not self._thread.is_alive()
        assert self._error is None, self._error

    def _run(self) -> None:
        sent = 0
        try:
            while not (self._is_last and sent == self._allowed):
                if sent < self._allowed:
                    chunk = range(sent, min(sent + self._chunk, self._allowed))
                    self._send(chunk)
                    sent = chunk.stop
                time.sleep(0.02)
        except BaseException as error:
            self._error = error


class Lives:
    """One stream in several drivers, one after the other; the workers of a dead one may live on for a while."""

    def __init__(self, folder: Path, job: str, arguments: dict[str, Any], *, kafka: bool) -> None:
        self._folder, self._job, self._arguments = folder, job, arguments
        self._jars = connector_jars() if kafka else []
        self._home = {"SPARK_HOME": str(spark_home(folder / "spark"))}
        self._drivers: list[SparkDriver] = []

    def begin(self, master: str = "local[2,4]", **arguments: Any) -> SparkDriver:
        """Start a driver, and the stream; returns after the first batch."""
        home = self._home if master == CLUSTER else {}
        driver = SparkDriver(self._folder / "driver.log", master=master, jars=self._jars, environment=home)
        self._drivers.append(driver)
        driver.begin(self._job, **self._arguments, **arguments)
        driver.next_batch()
        return driver

    def end(self) -> None:
        """Nobody lives on."""
        for driver in self._drivers:
            driver.close()


# --- deaths in the middle of a stream ---

TOTAL = 20_000


@pytest.mark.kafka
def test_ten_deaths_in_a_stream_of_kafka_cost_no_record_and_double_none(tmp_path: Path, path: Path) -> None:
    chance = random.Random(20)
    settings = StreamSettings(
        ReadOptions(format="ndjson"), str(tmp_path / "checkpoint"), trigger_seconds=0, limit=400, segment_bytes=200_000
    )
    deaths = ["driver"] * 3 + ["machine"] * 2 + ["worker"] * 2 + ["executor"] + ["broker"] * 2
    chance.shuffle(deaths)
    with KafkaBroker(tmp_path / "broker") as broker:
        broker.create_topic("logs", 2)
        where = {"servers": broker.address, "topics": "logs", "table": str(path)}
        feed = Feed(lambda numbers: broker.send("logs", map(line, numbers)), 100)
        lives = Lives(tmp_path, "stream_kafka", where | {"settings": settings}, kafka=True)
        try:
            driver: SparkDriver | None = None
            for number, death in enumerate(deaths):
                feed.allow((number + 1) * TOTAL // len(deaths))
                if driver is None:
                    coming = deaths[number : next_life(deaths, number)]
                    driver = lives.begin(CLUSTER if "executor" in coming else "local[2,4]")
                time.sleep(chance.uniform(0.5, 4))
                if death in ("driver", "machine"):
                    driver.kill(alone=death == "driver")
                    driver = None
                    continue
                if death == "broker":
                    broker.kill()
                    time.sleep(chance.uniform(0, 2))
                    broker.start()
                else:
                    killed = driver.kill_one(driver.executors() if death == "executor" else driver.workers(), chance)
                    assert killed, death
                driver.skip_batches()
                driver.next_batch()  # the stream goes on by itself
            feed.finish(TOTAL)
            driver = lives.begin()
            while len(ids(open_table(path))) < TOTAL:
                driver.next_batch()
        finally:
            lives.end()
    check_sound(path, list(range(TOTAL)))


def next_life(deaths: list[str], number: int) -> int:
    """Where the driver that begins here has died."""
    ends = [place for place in range(number, len(deaths)) if deaths[place] in ("driver", "machine")]
    return ends[0] + 1 if ends else len(deaths)


def test_deaths_in_a_stream_of_a_folder_cost_no_record_and_double_none(tmp_path: Path, path: Path) -> None:
    """At seeded moments, and at the worst: when a batch is in the table, and the checkpoint knows nothing of it."""
    chance = random.Random(21)
    total = 6_000
    (tmp_path / "logs").mkdir()
    settings = StreamSettings(checkpoint=str(tmp_path / "checkpoint"), trigger_seconds=0, limit=6, segment_bytes=50_000)
    arguments: dict[str, Any] = {"folder": str(tmp_path / "logs"), "table": str(path), "settings": settings}
    feed = Feed(lambda numbers: appear(tmp_path / "logs", numbers), 50)
    lives = Lives(tmp_path, "stream_folder", arguments, kafka=False)
    try:
        feed.allow(total // 2)
        dying = lives.begin(dies_after=2)
        with pytest.raises(DriverError, match="the driver is dead"):
            dying.result(1)
        assert [batch.number for batch in dying.batches] == [0, 1, 2]
        driver = lives.begin()
        again = driver.batches[0]
        assert (again.number, again.was_done, again.row_count) == (2, True, 0)
        driver.next_batch()
        time.sleep(chance.uniform(0, 2))
        assert driver.kill_one(driver.workers(), chance)
        driver.skip_batches()
        driver.next_batch()  # the stream goes on by itself
        time.sleep(chance.uniform(0.2, 2))
        driver.kill(alone=True)
        feed.finish(total)
        driver = lives.begin()
        while len(ids(open_table(path))) < total:
            driver.next_batch()
    finally:
        lives.end()
    check_sound(path, list(range(total)))


def appear(folder: Path, numbers: range) -> None:
    """A file with these records, all at once."""
    made = folder.parent / f"{folder.name}-{numbers.start}.ndjson"
    made.write_bytes(b"".join(line(number) + b"\n" for number in numbers))
    made.rename(folder / made.name)


# --- one driver for what follows ---


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkDriver]:
    with SparkDriver(tmp_path_factory.mktemp("driver") / "driver.log") as driver:
        driver.wait_until_ready()
        yield driver


@pytest.mark.parametrize("die", [False, True], ids=["errors", "deaths"])
def test_a_task_that_fails_twice_and_succeeds_writes_once(
    driver: SparkDriver, path: Path, tmp_path: Path, die: bool
) -> None:
    (tmp_path / "flags").mkdir()
    attempts = driver.run("write_flaky", table=str(path), count=600, flags=str(tmp_path / "flags"), fails=2, die=die)
    assert attempts == [3, 3]
    known = {segment.name for segment in open_table(path).snapshot().segments}
    left = {name for name in files_of(open_table(path)) if name.endswith(".parquet")} - known
    assert die or not left, "a task that fails takes its files with it"
    check_sound(path, list(range(600)))


def test_a_task_that_fails_for_good_leaves_the_table_as_it_was(driver: SparkDriver, path: Path, tmp_path: Path) -> None:
    (tmp_path / "flags").mkdir()
    with pytest.raises(DriverError, match=r"^the Spark job failed: ValueError: this task was told to fail$"):
        driver.run("write_flaky", table=str(path), count=600, flags=str(tmp_path / "flags"), fails=4, die=False)
    assert ids(open_table(path)) == []
    assert files_of(open_table(path)) == set()
    check_sound(path, [])


def log_file(folder: Path, count: int) -> Path:
    file = folder / "logs.ndjson"
    file.write_bytes(b"".join(line(number) + b"\n" for number in range(count)))
    return file


@contextmanager
def small_files(pids: list[int]) -> Iterator[None]:
    """Let processes, and those that they fork, write no file larger than 10 kB: their disk is full, for real."""

    def limit(pids: list[int], size: int) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))

    limit(pids, 10_000)
    try:
        yield
    finally:
        limit(pids, resource.RLIM_INFINITY)


def test_a_worker_without_room_is_replaced_by_one_with_room(driver: SparkDriver, path: Path, tmp_path: Path) -> None:
    file = log_file(tmp_path, 3000)
    assert driver.run("ingest", inputs=[str(file)], table=str(path)) == 3000
    daemon, *workers = sorted(driver.workers())
    with small_files(workers):
        assert driver.run("ingest", inputs=[str(file)], table=str(path)) == 3000
    assert set(driver.workers()) - {daemon, *workers}, "a new worker has done it"
    check_sound(path, sorted([*range(3000), *range(3000)]))


def test_a_disk_without_room_is_one_clear_line_and_costs_nothing(
    driver: SparkDriver, path: Path, tmp_path: Path
) -> None:
    file = log_file(tmp_path, 3000)
    assert driver.run("ingest", inputs=[str(file)], table=str(path)) == 3000
    with small_files(driver.workers()), pytest.raises(DriverError, match="File too large") as error:
        driver.run("ingest", inputs=[str(file)], table=str(path))
    for worker in sorted(driver.workers())[1:]:
        driver.kill_one([worker], random.Random(0))  # it has the limit from the process that it was forked from
    assert error.value.kind == "StorageError"
    assert "\n" not in str(error.value)
    assert ids(open_table(path)) == list(range(3000))
    names = {segment.name for segment in open_table(path).snapshot().segments}
    assert {name for name in files_of(open_table(path)) if name.endswith(".parquet")} == names, "nothing half is left"
    assert driver.run("ingest", inputs=[str(file)], table=str(path)) == 3000
    check_sound(path, sorted([*range(3000), *range(3000)]))


def test_two_streams_into_one_table_at_once(driver: SparkDriver, path: Path, tmp_path: Path) -> None:
    jobs = []
    for number in range(2):
        folder = tmp_path / f"logs{number}"
        folder.mkdir()
        for start in range(number * 1000, (number + 1) * 1000, 100):
            appear(folder, range(start, start + 100))
        settings = StreamSettings(checkpoint=str(tmp_path / f"checkpoint{number}"), once=True, limit=2)
        jobs.append(driver.begin("stream_folder", folder=str(folder), table=str(path), settings=settings))
    for job in jobs:
        driver.result(job)
    check_sound(path, list(range(2000)))


def test_segments_are_merged_while_a_stream_writes(driver: SparkDriver, path: Path, tmp_path: Path) -> None:
    """By Spark and by this process at the same time: who comes second gives up, and nothing is lost or doubled."""
    (tmp_path / "logs").mkdir()
    for start in range(0, 3000, 100):
        appear(tmp_path / "logs", range(start, start + 100))
    settings = StreamSettings(checkpoint=str(tmp_path / "checkpoint"), once=True, limit=2)
    before = len(driver.batches)
    stream = driver.begin("stream_folder", folder=str(tmp_path / "logs"), table=str(path), settings=settings)
    while len(driver.batches) < before + 3:
        driver.wait()
    merging = driver.begin("optimize", table=str(path), rounds=4)
    while not driver.is_over(stream):
        with suppress(ConflictError):
            open_table(path).optimize()
    driver.result(stream)
    merged, _ = driver.result(merging)
    assert len(driver.batches) - before == 15
    assert merged > 0
    check_sound(path, list(range(3000)))
