"""The writing task: takes records, seals segments and reports them to the driver."""

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
"""The result of a task: one row with a pickled object."""


@dataclass(frozen=True)
class WriteTask:
    """All that a task needs to know about the table."""

    shape: TableShape
    options: SegmentOptions
    segment_bytes: int = SEGMENT_BYTES

    @classmethod
    def of(cls, table: Table, *, segment_bytes: int = SEGMENT_BYTES) -> "WriteTask":
        """The settings for tasks that write to this table."""
        shape = table.shape
        options = SegmentOptions(searchable=False, gram_fields=table.gram_fields, rules=table.rules)
        return cls(shape, scratch_options(options, Folder.of(shape.uri)), segment_bytes)

    @property
    def folder(self) -> Folder:
        """The table's folder."""
        return Folder.of(self.shape.uri)


class PartWriter:
    """Takes records and seals segments; a context manager that removes its files on an error.

    Args:
        task: the table, and how to write to it.
        progress: called with the rows and bytes of each batch.
    """

    def __init__(self, task: WriteTask, progress: Callable[[int, int], None] | None = None) -> None:
        self._segmenter = Segmenter(task.shape, task.options, task.segment_bytes)
        self._progress = progress

    def __enter__(self) -> "PartWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            with suppress(Exception):  # the first error is the one to report
                self._segmenter.remove()

    def append(self, batch: pa.RecordBatch, *, raw_bytes: int | None = None) -> None:
        """Append records; `raw_bytes` is their size in the source, if known."""
        self._segmenter.append(batch, raw_bytes)
        if self._progress is not None:
            self._progress(batch.num_rows, batch.nbytes if raw_bytes is None else raw_bytes)

    def finish(self) -> Part:
        """Seal all segments; from now on the driver is responsible for them."""
        sealed = self._segmenter.seal()
        self._segmenter.hand_over()
        return Part(sealed.files, sealed.new_fields)


def answer(result: object) -> Iterator[pa.RecordBatch]:
    """Yield the result of a task as its only row."""
    yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(result)], pa.binary())], schema=RESULT)


def answers(frame: "DataFrame") -> list[Any]:
    """Run a job and return the results of its tasks."""
    with clear_errors():
        return [pickle.loads(row[0]) for row in frame.collect()]  # pickled by our own tasks
