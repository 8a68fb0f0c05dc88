"""Writing a DataFrame: tasks seal segments, the driver commits all of them in one step.

A task that fails removes what it wrote; one that is killed leaves files that no log lists, for `vacuum`. A batch of a
stream is a Delta transaction under the id of the query, so a batch that Spark repeats after a crash is recognized.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage

from coprlake import __version__
from coprlake.records import SCHEMA
from coprlake.spark.jobs.joining import Part, discard, join
from coprlake.spark.jobs.tasks import PartWriter, WriteTask
from coprlake.spark.runtime.builds import check_build
from coprlake.spark.source.open_tables import opened_or_created
from coprlake.spark.source.source_options import WriteSettings
from coprlake.spark.streams.checkpoints import application_of, sync_checkpoint
from coprlake.storage.log.delta_log import DeltaLog, Transaction

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # PySpark 4.0

    class DataSourceStreamArrowWriter(DataSourceStreamWriter, DataSourceArrowWriter):  # type: ignore[no-redef]
        """PySpark 4.0 lacks this class, but gives Arrow data to every writer that is a `DataSourceArrowWriter`."""


@dataclass
class PartMessage(WriterCommitMessage):
    """The message from a task to the driver."""

    part: Part


class _Sink:
    """Common to both kinds of write; it is sent to tasks."""

    def __init__(self, settings: WriteSettings, schema: pa.Schema) -> None:
        columns = [name.strip() for name in settings.partition_by.split(",") if name.strip()]
        grams = [name.strip() for name in settings.grams.split(",") if name.strip()]
        table = opened_or_created(settings.path, _own_columns(schema), columns, grams, settings.rules)
        self._build = __version__
        self._path = settings.path
        self._task = WriteTask.of(table, segment_bytes=settings.segment_bytes)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartMessage:
        """In a task: seal all records of a partition into segments."""
        check_build(self._build)
        with PartWriter(self._task) as writer:
            for batch in iterator:
                writer.append(batch)
            return PartMessage(writer.finish())

    def _parts(self, messages: Sequence[WriterCommitMessage | None]) -> list[Part]:
        return [message.part for message in messages if isinstance(message, PartMessage)]

    def _log(self) -> DeltaLog:
        return DeltaLog.open(self._task.folder)


def _own_columns(schema: pa.Schema) -> pa.Schema:
    """The columns that a new table needs besides those of every table; columns of type null have no type yet."""
    return pa.schema([one for one in schema if one.name.lower() not in SCHEMA.names and not pa.types.is_null(one.type)])


class BatchSink(_Sink, DataSourceArrowWriter):
    """The writer for ``df.write``: appends or overwrites."""

    def __init__(self, settings: WriteSettings, schema: pa.Schema, *, overwrite: bool) -> None:
        super().__init__(settings, schema)
        self._overwrite = overwrite

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit when all tasks are done."""
        note = {"operation": "overwrite" if self._overwrite else "append", "engine": "spark"}
        join(self._log(), self._parts(messages), note=note, replace=self._overwrite)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """A task failed for good: delete what the others wrote."""
        discard(self._log(), self._parts(messages))


class StreamSink(_Sink, DataSourceStreamArrowWriter):
    """The writer for ``df.writeStream``: commits each batch exactly once."""

    def __init__(self, settings: WriteSettings, schema: pa.Schema, checkpoint: str) -> None:
        super().__init__(settings, schema)
        self._checkpoint = checkpoint
        self._application = application_of(checkpoint, self._log(), settings.application)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit when all tasks of a batch are done."""
        if self._checkpoint:
            sync_checkpoint(self._checkpoint)
        note = {"operation": "append", "engine": "spark", "stream": self._application, "batch": batchId}
        join(self._log(), self._parts(messages), note=note, once=Transaction(self._application, batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """A task failed for good: delete what the others wrote."""
        discard(self._log(), self._parts(messages))
