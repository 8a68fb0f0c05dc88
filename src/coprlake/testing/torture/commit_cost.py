"""The cost of durability: the time of a commit with and without its syncs."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pyarrow as pa

from coprlake import files
from coprlake.files import Folder
from coprlake.segment.mutable import MutableSegment, SegmentOptions
from coprlake.storage.log.actions import NewFile
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.table import create_table

_ROUNDS: Final = 4


def commit_milliseconds(folder: str | os.PathLike[str] | None = None, commits: int = 400) -> dict[str, float]:
    """Measure commits of one small segment each, including checkpoints.

    Args:
        folder: a folder on the disk to measure; by default that for temporary files.
        commits: the number of commits with syncs, and again without.

    Returns:
        ``p50`` and ``p99``: milliseconds per commit; ``without_p50`` and ``without_p99``: without syncs;
        ``added_p50`` and ``added_p99``: the time that a commit spends in its syncs.
    """
    seconds: dict[bool, list[float]] = {True: [], False: []}
    added: list[float] = []
    with tempfile.TemporaryDirectory(dir=folder) as own:
        logs = {synced: DeltaLog.open(Folder.of(_new_table(Path(own, str(synced))))) for synced in (True, False)}
        for _ in range(_ROUNDS):  # alternating: the machine may be busier in one half of the run
            for synced, log in logs.items():
                new = [_segment(log.folder) for _ in range(commits // _ROUNDS)]
                os.sync()
                with _timed_syncs(synced) as spent:
                    for file in new:
                        before, started = sum(spent), time.perf_counter()
                        log.commit([file], note={"operation": "append"})
                        seconds[synced].append(time.perf_counter() - started)
                        if synced:
                            added.append(sum(spent) - before)
    figures = {"": seconds[True], "without_": seconds[False], "added_": added}
    return {
        f"{name}p{percent}": round(_percentile(values, percent) * 1000, 3)
        for name, values in figures.items()
        for percent in (50, 99)
    }


def _new_table(path: Path) -> str:
    return create_table(path, partition_by=None).uri


def _segment(folder: Folder) -> NewFile:
    batch = pa.RecordBatch.from_pylist([{"content": f"line {number}"} for number in range(10)])
    segment = MutableSegment(folder, f"{time.time_ns():016x}.parquet", batch.schema, SegmentOptions(searchable=False))
    segment.append(batch)
    return NewFile(segment.seal(), {})


@contextmanager
def _timed_syncs(synced: bool) -> Iterator[list[float]]:
    """Record the time of each sync, or skip all syncs."""
    sync, spent = files.sync_path, [0.0]

    def timed(path: str) -> None:
        started = time.perf_counter()
        if synced:
            sync(path)
        spent.append(time.perf_counter() - started)

    with patch.object(files, "sync_path", timed):
        yield spent


def _percentile(values: list[float], percent: int) -> float:
    """The value that `percent` percent of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, -(-len(ordered) * percent // 100) - 1)]
