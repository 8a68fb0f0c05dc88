"""The runs to record: every way to change a table, on a small scale, with marks that say what must hold at each step.

``python -m coprlake.testing.torture.power_loss.crash_jobs FOLDER SEED`` creates a folder for each job, with a table and
a file of marks. A mark has `may`, the records that the table may hold from now on: a list of alternatives, each the
numbers of records, or None for no table. While a step runs there are two, before and after; once it has returned, which
is its acknowledgement, there is one.
"""

import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from coprlake.predicate.predicates import OneOf
from coprlake.segment.mutable import SegmentOptions
from coprlake.spark.jobs.joining import Part, join
from coprlake.storage.log.delta_log import DeltaLog, Transaction
from coprlake.storage.segmenter import Segmenter
from coprlake.storage.vacuuming import VacuumReport
from coprlake.table import Table, create_table, open_table
from coprlake.testing.chosen_faults import record
from coprlake.testing.torture.power_loss.recording import MARKS

TABLE: Final = "in/table"
"""The path of a job's table; its parent folder is new as well."""
APPLICATION: Final = "stream-of-crash-states"
WIDE: Final = 1000
"""Records from this number on have an extra column."""
SMALL: Final = SegmentOptions(batch_bytes=200, slot_count=2)


def record_of(number: int) -> dict[str, Any]:
    """The record with this number."""
    extra = {f"column{number // 100 % 5}": number} if number >= WIDE else {}
    return record(number) | extra


LONG_AGO_NS: Final = 1_700_000_000_000_000_000
"""The modification time of data files in a state to check."""


class Marker:
    """Writes marks that say what must hold.

    Args:
        folder: the folder of the job.
    """

    def __init__(self, folder: Path) -> None:
        self._table = folder / TABLE
        self._descriptor = os.open(folder / MARKS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.present: list[int] = []

    def say(self, *may: Sequence[int] | None, **more: Any) -> None:
        """Mark that the table holds one of these alternatives from now on."""
        said = {"may": [None if each is None else sorted(each) for each in may]} | more
        os.write(self._descriptor, json.dumps(said).encode() + b"\n")
        if len(may) == 1 and may[0] is not None:
            self.present = sorted(may[0])

    def step(self, after: Sequence[int], do: Callable[[], object], **more: Any) -> None:
        """Run a step that leads to these records, with marks before and after."""
        self.say(self.present, after, **more)
        found = do()
        self.say(after, **more, **self._done(found))

    def _done(self, found: object) -> dict[str, Any]:
        """What else is acknowledged: the files that a vacuum removed, or the version."""
        if isinstance(found, VacuumReport):
            return {"gone": found.data_files}
        return {"version": open_table(self._table).version}


class Job:
    """The context of a job: a folder, a marker, and random choices by the seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.path = folder / TABLE
        self.chance = random.Random(f"{seed} {folder.name}")
        self.mark = Marker(folder)
        self.segment_bytes = self.chance.choice([300, 1 << 20])
        self._next = 0

    def numbers(self, count: int, wide: int = 0) -> list[int]:
        """The numbers of `count` unused records."""
        start = self._next + wide
        self._next += count
        return list(range(start, start + count))

    def make(self, commits: int = 0, interval: int | None = None) -> Table:
        """Create the table that exists when the recording starts, with some commits."""
        self.path.parent.mkdir()
        partition = self.chance.choice([None, "day"])
        table = create_table(self.path, partition_by=partition)
        if interval is not None:
            DeltaTable(self.path).alter.set_table_properties({"delta.checkpointInterval": str(interval)})
        present: list[int] = []
        for _ in range(commits):
            present += self.append_to(table, self.numbers(self.chance.randint(2, 4)))
        self.mark.say(present, begin=True)
        return open_table(self.path)

    def append_to(self, table: Table, numbers: list[int]) -> list[int]:
        """Write records, perhaps in several segments."""
        with table.writer(options=SMALL, segment_bytes=self.segment_bytes, searchable=False) as writer:
            writer.append([record_of(number) for number in numbers])
        return numbers

    def append(self, table: Table, numbers: list[int]) -> None:
        """Append records as a step."""
        self.mark.step([*self.mark.present, *numbers], lambda: self.append_to(table, numbers))


def create(job: Job) -> None:
    """Create a table: it exists afterwards or it does not."""
    job.mark.say(None, begin=True)
    job.mark.say(None, [])
    table = create_table(job.path, partition_by=job.chance.choice([None, "day"]))
    job.mark.say([])
    job.append(table, job.numbers(2))
    create_table(job.path, exist_ok=True)
    job.append(table, job.numbers(2))


def append(job: Job) -> None:
    """Append often enough for two checkpoints, one or two segments at a time."""
    table = job.make(interval=job.chance.choice([2, 3]))
    for _ in range(6):
        job.append(table, job.numbers(job.chance.randint(1, 4)))


def add_columns(job: Job) -> None:
    """Append records with new columns: one commit for the columns, and one for the records."""
    table = job.make(commits=1, interval=4)
    for place in range(3):
        job.append(table, job.numbers(2, wide=WIDE + 100 * place))
        job.append(table, job.numbers(1))


def optimize(job: Job) -> None:
    """Merge: the same records in other files."""
    table = job.make(commits=4, interval=job.chance.choice([2, 10]))
    job.mark.step(job.mark.present, table.optimize)
    job.append(table, job.numbers(2))
    job.mark.step(job.mark.present, lambda: table.optimize(full=True))


def delete(job: Job) -> None:
    """Delete records, all of them or none."""
    job.segment_bytes = 1 << 20  # so that most files keep some records
    table = job.make(commits=4, interval=job.chance.choice([2, 10]))
    for divisor in (5, 3, 2):
        gone = [number for number in job.mark.present if number % divisor == 0]
        left = [number for number in job.mark.present if number % divisor != 0]
        doomed = OneOf("id", tuple(gone))
        job.mark.step(left, partial(table.delete, doomed))


def vacuum(job: Job) -> None:
    """Vacuum files that nothing needs, with commits before and after."""
    table = job.make(commits=3, interval=job.chance.choice([2, 10]))
    for _ in range(2):
        job.mark.step(job.mark.present, lambda: table.optimize(full=True))
        job.mark.step(job.mark.present, lambda: table.vacuum(retention_hours=0))
        job.append(table, job.numbers(2))


def index(job: Job) -> None:
    """Index a Delta table of another writer, then rebuild all sidecars."""
    for _ in range(2):
        numbers = job.numbers(3)
        write_deltalake(job.path, _foreign(numbers), mode="append")
        job.mark.present += numbers
    _index(job)


def index_folder(job: Job) -> None:
    """Like `index`, for a folder of Parquet files, which are never changed."""
    job.path.mkdir(parents=True)
    for place in range(2):
        numbers = job.numbers(3)
        file = job.path / f"part-{place}.parquet"
        pq.write_table(_foreign(numbers), file)
        os.utime(file, ns=(LONG_AGO_NS, LONG_AGO_NS))  # sidecars identify their data by time, which is not modelled
        job.mark.present += numbers
    _index(job, is_folder=True)


def _foreign(numbers: list[int]) -> pa.Table:
    rows = [record_of(number) for number in numbers]
    return pa.table({name: [row[name] for row in rows] for name in rows[0]})


def _index(job: Job, **more: Any) -> None:
    job.mark.say(job.mark.present, begin=True, has_sidecars=False, **more)
    table = open_table(job.path)
    table.index()
    job.mark.say(job.mark.present, **more)
    table.index(rebuild=True, grams=["source"])
    job.mark.say(job.mark.present, grams=["source"], **more)


def stream(job: Job) -> None:
    """Commit what tasks sealed under the number of a batch, as the driver of a stream does.

    Each mark names the batch that Spark would repeat after a crash.
    """
    job.make(interval=3)
    for batch in range(5):
        wide = WIDE + 100 * batch if batch == 2 else 0
        numbers = job.numbers(job.chance.randint(2, 4), wide)
        after = [*job.mark.present, *numbers]
        job.mark.step(after, partial(stream_batch, job.path, batch, numbers), batch=[batch, numbers])


def stream_batch(path: Path, batch: int, numbers: list[int]) -> None:
    """Write a batch of a stream, unless it is in the table already."""
    log = DeltaLog.open(open_table(path)._log.folder)
    last = log.transaction_version(APPLICATION)
    if last is not None and last >= batch:
        return
    parts = []
    for task in range(2):
        own = numbers[task::2]
        segmenter = Segmenter(log.shape, SMALL, 300)
        if own:
            segmenter.append(pa.RecordBatch.from_pylist([record_of(number) for number in own]))
        sealed = segmenter.seal()
        segmenter.hand_over()
        parts.append(Part(sealed.files, sealed.new_fields))
    join(log, parts, note={"operation": "stream"}, once=Transaction(APPLICATION, batch))


JOBS: Final[dict[str, Callable[[Job], None]]] = {
    job.__name__: job for job in (create, append, add_columns, optimize, delete, vacuum, index, index_folder, stream)
}


def main(folder: str, seed: str, *names: str) -> None:
    """Run jobs, by default all, each in its own folder."""
    for name in names or JOBS:
        JOBS[name](Job(Path(folder) / name, int(seed)))


if __name__ == "__main__":
    main(*sys.argv[1:])
