"""A power loss while Spark streams: every line of every file is in the table once, before and after a new start."""

import random
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coprlake.testing.torture.crash_states import materialise, scratch_folder
from coprlake.testing.torture.power_loss.crash_checks import CrashError
from coprlake.testing.torture.power_loss.crash_model import Crash, Disk, Loss, Sync, crashes, everything_lost
from coprlake.testing.torture.power_loss.crash_stream import JOB, check_restart
from coprlake.testing.torture.power_loss.recording import missing_strace, record
from tests.spark_sessions import QUIET

SEED = 13
STATES = 10

pytestmark = [*QUIET, pytest.mark.skipif(missing_strace() is not None, reason=str(missing_strace()))]


class Stream:
    """A recorded stream; its states are put where it was recorded, because Spark knows files by their paths."""

    def __init__(self, root: Path, trace: Path) -> None:
        command = [sys.executable, "-m", "coprlake.testing.torture.power_loss.crash_stream", str(root)]
        self.disk = Disk(record(command, root, trace, seconds=300)[JOB])
        self._folder = root / JOB
        self.first_batch, _, self.last_batch = self.disk.marks[-3:]

    def restart(self, spark: SparkSession, disk: Disk, crash: Crash) -> bool:
        shutil.rmtree(self._folder, ignore_errors=True)
        materialise(disk.tree(crash), self._folder)
        try:
            return check_restart(spark, self._folder, disk.said(crash.length)["may"][0])
        except CrashError as error:
            raise CrashError(f"seed {SEED}: {error}\n  case: {disk.describe(crash)}") from error


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    with scratch_folder(tmp_path_factory.mktemp("crash")) as folder:
        root = folder / "root"
        root.mkdir()
        yield Stream(root, folder / "trace")


def test_what_a_batch_brought_is_there_once_after_the_stream_starts_again(stream: Stream, spark: SparkSession) -> None:
    disk = stream.disk
    for length in (stream.first_batch, stream.last_batch):
        assert stream.restart(spark, disk, everything_lost(disk, length)), (
            "an unsynced checkpoint of a done batch is no matter"
        )
    torn = [node for node, _ in everything_lost(disk, stream.last_batch).data]
    assert torn
    for kind in ("none", "zeros"):
        crash = Crash(stream.last_batch, data=tuple((node, Loss(kind)) for node in torn))
        assert stream.restart(spark, disk, crash), "that a batch was completed is known to the table, too"
    chance = random.Random(SEED)
    lengths = range(disk.first, len(disk.operations) + 1)
    found = [crash for length in lengths for crash in crashes(disk, length, chance)]
    assert sum(stream.restart(spark, disk, crash) for crash in chance.sample(found, STATES)) > 0


def test_a_checkpoint_that_is_not_synced_before_the_commit_doubles_records(stream: Stream, spark: SparkSession) -> None:
    """The harness itself: without our syncs of Spark's checkpoint, the loss of it is noticed."""
    careless = Disk(
        [
            replace(each, started=0)
            if isinstance(each, Sync) and each.text.startswith(("sync checkpoint", "sync ."))
            else each
            for each in stream.disk.operations
        ]
    )
    with pytest.raises(CrashError, match="expected exactly"):
        stream.restart(spark, careless, everything_lost(careless, stream.last_batch))
