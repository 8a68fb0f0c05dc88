"""Kills Spark's processes in the middle of streams and jobs: Python workers, their daemon, executors, drivers.

All drivers share one table. A driver streams files from a folder, or ingests and merges; its workers are killed
repeatedly, and at the end the driver itself. After that the table has every batch that was reported, no record twice,
and none that was never written. A last driver adds what is left.
"""

import json
import random
import shutil
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

from coprlake.errors import CoprlakeError
from coprlake.spark.streams.streaming import StreamSettings
from coprlake.table import create_table, open_table
from coprlake.testing.chosen_faults import check_sound, ids, record
from coprlake.testing.streams import DriverError, SparkDriver, spark_home
from coprlake.testing.torture.deaths.jobs import ID
from coprlake.testing.torture.outcome import Budget, Failure, Outcome

LOCAL: Final = "local[2,4]"
CLUSTER: Final = "local-cluster[1,2,600]"
"""One executor with two cores, in its own process."""
FILE_ROWS: Final = 40
BATCH_FILES: Final = 4
LAST_BATCH_FILES: Final = 400
"""The last driver reads what has piled up: hundreds of small batches would look like a hanging stream."""
LIFE_KILLS: Final = 7
"""The number of kills per driver."""
BATCH_SECONDS: Final = 300.0
"""A stream or job that takes longer hangs. A batch takes seconds, or minutes on a busy machine."""
START_SECONDS: Final = 600.0
"""A driver that takes longer does not start."""
KEPT_SECONDS: Final = 45.0
"""The time reserved for the last driver."""


class SparkVictim:
    """The table, the folder that is streamed into it, and what must be in it.

    Args:
        folder: the working folder.
        seed: the random seed.
        outcome: counts the kills.
    """

    def __init__(self, folder: Path, seed: int, outcome: Outcome) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._folder, self._outcome = folder, outcome
        self._chance = random.Random(f"{seed} spark")
        self._table = folder / "table"
        self._logs = folder / "logs"
        self._logs.mkdir()
        create_table(self._table, schema=ID)
        self._sent = 0  # records of the stream: even numbers
        self._ingested = 0  # records of finished ingests: odd numbers
        self._reported = 0  # records of batches that drivers reported
        self._home = {"SPARK_HOME": str(spark_home(folder / "spark-home"))}
        self._drivers: list[SparkDriver] = []
        self.trail: list[str] = []

    # --- drivers ---

    def live(self, number: int, budget: Budget) -> None:
        """Run one driver and kill it in the end; streams, jobs and clusters take turns.

        Raises:
            AssertionError: the table is not what it should be.
            DriverError: a process other than the driver was killed, and the stream or job did not continue.
        """
        kind = ("stream", "jobs", "stream", "cluster")[number % 4]
        self.trail.append(f"life {number}: {kind}")
        driver = self._begin(CLUSTER if kind == "cluster" else LOCAL)
        if kind == "jobs":
            self._live_with_jobs(driver, budget)
        else:
            self._live_with_a_stream(driver, budget, has_executors=kind == "cluster")
        self._check(driver)

    def _live_with_a_stream(self, driver: SparkDriver, budget: Budget, *, has_executors: bool) -> None:
        driver.wait_until_ready(START_SECONDS)
        self._stream(driver)
        self._feed(2)
        driver.next_batch(BATCH_SECONDS)
        for number in range(LIFE_KILLS):
            if budget.is_spent:
                break
            self._feed(3)
            time.sleep(self._chance.uniform(0.0, 1.0))
            if not self._kill_one(driver, executor=has_executors and number % 3 == 0):
                continue
            driver.skip_batches()
            driver.next_batch(BATCH_SECONDS)  # the stream continues by itself
        self._feed(3)
        time.sleep(self._chance.uniform(0.0, 1.5))
        self._kill_driver(driver)

    def _live_with_jobs(self, driver: SparkDriver, budget: Budget) -> None:
        driver.wait_until_ready(START_SECONDS)
        for number in range(LIFE_KILLS):
            if budget.is_spent:
                break
            first, count = self._ingested, 400
            file = self._file(self._folder / f"ingest-{first}.ndjson", range(2 * first + 1, 2 * (first + count), 2))
            job = driver.begin("ingest", inputs=[str(file)], table=str(self._table))
            merging = driver.begin("optimize", table=str(self._table), rounds=1) if number % 3 == 2 else None
            deadline = time.monotonic() + self._chance.uniform(0.02, 0.8)
            while time.monotonic() < deadline and not driver.is_over(job):
                time.sleep(0.01)
            self._kill_one(driver, executor=False)
            assert driver.result(job, BATCH_SECONDS) == count
            self._ingested += count
            if merging is not None:
                driver.result(merging, BATCH_SECONDS)
        first, count = self._ingested, 400
        file = self._file(self._folder / f"ingest-{first}.ndjson", range(2 * first + 1, 2 * (first + count), 2))
        driver.begin("ingest", inputs=[str(file)], table=str(self._table))
        time.sleep(self._chance.uniform(0.1, 1.0))
        self._kill_driver(driver)
        there = [number for number in ids(open_table(self._table)) if number % 2 and number > 2 * first]
        assert len(there) in (0, count), f"{len(there)} of {count} records of an ingest whose driver was killed"
        self._ingested += len(there)

    def finish(self) -> None:
        """Let a last driver read the rest of the folder, and check that every record is there once."""
        driver = self._begin(LOCAL)
        driver.wait_until_ready(START_SECONDS)
        job = self._stream(driver, once=True)
        driver.result(job, BATCH_SECONDS)
        driver.stop()
        expected = [*range(0, 2 * self._sent, 2), *range(1, 2 * self._ingested, 2)]
        check_sound(self._table, sorted(expected))

    def close(self) -> None:
        """Leave no process behind."""
        for driver in self._drivers:
            driver.close()
        self._drivers = []

    # --- helpers ---

    def _begin(self, master: str) -> SparkDriver:
        self.close()  # workers of a driver that died alone have had time to do harm
        home = self._home if master == CLUSTER else {}
        driver = SparkDriver(self._folder / "driver.log", master=master, environment=home)
        self._drivers.append(driver)
        return driver

    def _stream(self, driver: SparkDriver, *, once: bool = False) -> int:
        settings = StreamSettings(
            checkpoint=str(self._folder / "checkpoint"),
            trigger_seconds=0,
            once=once,
            limit=LAST_BATCH_FILES if once else BATCH_FILES,
            segment_bytes=20_000,
        )
        return driver.begin("stream_folder", folder=str(self._logs), table=str(self._table), settings=settings)

    def _feed(self, batches: int) -> None:
        for _ in range(batches * BATCH_FILES):
            numbers = range(2 * self._sent, 2 * (self._sent + FILE_ROWS), 2)
            self._file(self._folder / f"{self._sent}.ndjson", numbers).rename(self._logs / f"{self._sent}.ndjson")
            self._sent += FILE_ROWS

    def _file(self, path: Path, numbers: range) -> Path:
        path.write_text("".join(json.dumps(record(number)) + "\n" for number in numbers))
        return path

    def _kill_one(self, driver: SparkDriver, *, executor: bool) -> bool:
        """Kill an executor, a worker or the daemon that forks workers; return whether there was one."""
        if executor:
            if not driver.kill_one(driver.executors(), self._chance):
                return False
            self._note("spark-executor")
            return True
        workers = sorted(driver.workers())
        if not workers:
            return False
        is_daemon = len(workers) == 1 or self._chance.random() < 0.15
        if not driver.kill_one(workers[:1] if is_daemon else workers[1:], self._chance):
            return False
        self._note("spark-daemon" if is_daemon else "spark-worker")
        return True

    def _kill_driver(self, driver: SparkDriver) -> None:
        alone = self._chance.random() < 0.5
        with suppress(DriverError):
            driver.is_over(0)
        driver.kill(alone=alone)
        self._note("spark-driver" if alone else "spark-machine")

    def _note(self, kind: str) -> None:
        self._outcome.count(kind)
        self.trail.append(kind)

    def _check(self, driver: SparkDriver) -> None:
        """Check that no record is duplicated, that all reported batches are there, and that the table is sound."""
        with suppress(DriverError):  # what it reported before it died
            while not driver.is_over(-1):
                driver.wait(0.01)
        table = open_table(self._table)
        present = Counter(ids(table))
        doubled = [number for number, count in present.items() if count > 1]
        assert not doubled, f"{len(doubled)} records doubled: {doubled[:10]}"
        strange = present.keys() - {*range(0, 2 * self._sent, 2), *range(1, 2 * self._ingested, 2)}
        assert not strange, f"{len(strange)} records that were never written: {sorted(strange)[:10]}"
        lost = set(range(1, 2 * self._ingested, 2)) - present.keys()
        assert not lost, f"{len(lost)} records of finished ingests lost: {sorted(lost)[:10]}"
        reported = sum(batch.row_count for each in self._drivers for batch in each.batches)
        streamed = sum(number % 2 == 0 for number in present)
        self._reported += reported
        assert streamed >= self._reported, f"{streamed} records of a stream that reported {self._reported}"
        report = table.verify()
        assert report.is_sound, report


def run(seed: int, seconds: float, folder: str | Path, cases: int | None = None) -> Outcome:
    """Kill until the time is up; a case is a Spark process that was killed."""
    outcome = Outcome()
    budget = Budget(outcome, max(0.0, seconds - KEPT_SECONDS), cases)
    folder = Path(folder)
    victim = SparkVictim(folder, seed, outcome)
    try:
        number = 0
        while not budget.is_spent:
            victim.live(number, budget)
            number += 1
        victim.finish()
    except (AssertionError, CoprlakeError, DriverError, OSError) as error:
        trail = "; ".join(victim.trail)
        outcome.failures.append(
            Failure(seed, f"spark_kills.run({seed}, ...): {trail}", f"{type(error).__name__}: {error}"[:3000])
        )
    finally:
        victim.close()
    return outcome
