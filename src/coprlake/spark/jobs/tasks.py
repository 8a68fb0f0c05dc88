"""What a task that writes does: records in, sealed segments out, and a word to the driver about them."""

import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coprlake.config import SEGMENT_BYTES
from coprlake.files import Folder
from coprlake.segment.mutable import SegmentOptions
from coprlake.spark.jobs.joining import Part
from coprlake.spark.runtime.failures import clear_errors
from coprlake.storage.segmenter import Segmenter, TableShape
from coprlake.storage.writer import scratch_options
from coprlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RESULT = pa.schema([("result", pa.binary())])
"""How a task answers: one row with an object."""


@dataclass(frozen=True)
class WriteTask:
    """All that a task has to know of the table."""

    shape: TableShape
    options: SegmentOptions
    segment_bytes: int = SEGMENT_BYTES

    @classmethod
    def of(cls, table: Table, *, segment_bytes: int = SEGMENT_BYTES) -> "WriteTask":
        """For tasks that write to this table."""
        shape = table.shape
        options = SegmentOptions(searchable=False, gram_fields=table.gram_fields, rules=table.rules)
        return cls(shape, scratch_options(options, Folder.of(shape.uri)), segment_bytes)

    @property
    def folder(self) -> Folder:
        """The table's."""
        return Folder.of(self.shape.uri)


class PartWriter:
    """Takes records and seals segments; a context manager, of which nothing stays behind if it is left by an error.

    Args:
        task: where to, and how.
        progress: told of records and bytes after each batch.
    """

    def __init__(self, task: WriteTask, progress: Callable[[int, int], None] | None = None) -> None:
        self._segmenter = Segmenter(task.shape, task.options, task.segment_bytes)
        self._progress = progress

    def __enter__(self) -> "PartWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            with suppress(Exception):  # the first error is the one to tell of
                self._segmenter.remove()

    def append(self, batch: pa.RecordBatch, *, raw_bytes: int | None = None) -> None:
        """Take records, and what they took where they came from if that is known."""
        self._segmenter.append(batch, raw_bytes)
        if self._progress is not None:
            self._progress(batch.num_rows, batch.nbytes if raw_bytes is None else raw_bytes)

    def finish(self) -> Part:
        """Seal everything; the driver answers for it from now on."""
        sealed = self._segmenter.seal()
        self._segmenter.hand_over()
        return Part(sealed.files, sealed.new_fields)


def answer(result: object) -> Iterator[pa.RecordBatch]:
    """The row with which a task ends."""
    yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(result)], pa.binary())], schema=RESULT)


def answers(frame: "DataFrame") -> list[Any]:
    """Run a job, and what its tasks answered."""
    with clear_errors():
        return [pickle.loads(row[0]) for row in frame.collect()]  # by our own tasks
