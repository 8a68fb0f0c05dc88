"""Brings the records of each partition together, as packages of Arrow data with independent schemas.

A package is a few megabytes of compressed records of one partition, with the partition as its key. Spark moves packages
by key and splits skewed partitions: it sees few, large rows, and a schema that never changes, whatever the logs
contain.
"""

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from coprlake.ingestion import give_memory_back
from coprlake.intake.options import IntakeReport
from coprlake.intake.reading import Intake
from coprlake.records import DAY
from coprlake.spark.jobs.joining import Part
from coprlake.spark.jobs.task_progress import TaskProgress
from coprlake.spark.jobs.tasks import PartWriter, WriteTask, answer, answers
from coprlake.spark.runtime.builds import same_build
from coprlake.storage.conforming import tidy
from coprlake.storage.partitioning import split, with_day

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS: Final = "key string, raw_bytes long, data binary, report binary"
PACKAGE_BYTES: Final = 4 * 1024 * 1024
WAITING_BYTES: Final = 64 * 1024 * 1024
_SCHEMA: Final = pa.schema(
    [("key", pa.string()), ("raw_bytes", pa.int64()), ("data", pa.binary()), ("report", pa.binary())]
)
_COPY: Final = "__partition_"


class _Packer:
    """Collects the records of each partition until they fill a package."""

    def __init__(self) -> None:
        self._batches: dict[str, list[pa.RecordBatch]] = {}
        self._raw_bytes: dict[str, int] = {}

    def add(self, key: str, batch: pa.RecordBatch, raw_bytes: int) -> Iterator[pa.RecordBatch]:
        self._batches.setdefault(key, []).append(batch)
        self._raw_bytes[key] = self._raw_bytes.get(key, 0) + raw_bytes
        if self._raw_bytes[key] >= PACKAGE_BYTES:
            yield self._package(key)
        elif sum(self._raw_bytes.values()) > WAITING_BYTES:
            yield self._package(max(self._raw_bytes, key=lambda one: self._raw_bytes[one]))

    def flush(self) -> Iterator[pa.RecordBatch]:
        for key in list(self._batches):
            yield self._package(key)

    def _package(self, key: str) -> pa.RecordBatch:
        sink = pa.BufferOutputStream()
        by_schema: dict[pa.Schema, list[pa.RecordBatch]] = {}
        for batch in self._batches.pop(key):
            by_schema.setdefault(batch.schema, []).append(batch)
        options = pa.ipc.IpcWriteOptions(compression="lz4", emit_dictionary_deltas=True)
        for schema, batches in by_schema.items():
            with pa.ipc.new_stream(sink, schema, options=options) as writer:
                writer.write_table(pa.Table.from_batches(batches).unify_dictionaries().combine_chunks())
        return _row(key, self._raw_bytes.pop(key), sink.getvalue().to_pybytes(), None)


def _row(key: str, raw_bytes: int, data: bytes | None, report: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{"key": key, "raw_bytes": raw_bytes, "data": data, "report": report}], schema=_SCHEMA
    )


def packed(
    batches: Iterable[tuple[pa.RecordBatch, int]], partition_by: Sequence[str], intake: Intake
) -> Iterator[pa.RecordBatch]:
    """In a reading task: yield packages, and at the end what the intake tells."""
    packer = _Packer()
    for batch, raw_bytes in batches:
        records = tidy(batch)
        if DAY in partition_by:
            records = with_day(records)
        copies = [f"{_COPY}{name}" for name in partition_by]
        extended = records
        for name, copy in zip(partition_by, copies, strict=True):
            if name in records.schema.names:
                extended = extended.append_column(copy, records.column(name))
        for partition, part in split(extended, copies):
            yield from packer.add(json.dumps(partition), part, raw_bytes * part.num_rows // records.num_rows)
    yield from packer.flush()
    yield _row("", 0, None, pickle.dumps((intake.report, intake.contents, intake.ranges)))


def write(packages: "DataFrame", task: WriteTask, job: str, *, watched: bool) -> list[Part]:
    """On the driver: bring packages together by key, and run tasks that write them as segments."""

    def work(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = context.partitionId() if context else 0
        give_memory_back()
        progress = TaskProgress(task.shape.uri, job, number) if watched else None
        read = Part(read=IntakeReport())
        with PartWriter(task, progress) as writer:
            for row in rows:
                for place in range(row.num_rows):
                    _write_package(writer, row, place, read)
            part = writer.finish()
        part.read, part.contents, part.ranges = read.read, read.contents, read.ranges
        yield from answer(part)

    return list(answers(packages.hint("rebalance", "key").mapInArrow(same_build(work), "result binary")))


def _write_package(writer: PartWriter, row: pa.RecordBatch, place: int, read: Part) -> None:
    told = row.column("report")[place].as_py()
    if told is not None:
        report, contents, ranges = pickle.loads(told)
        assert read.read is not None
        read.read.merge(report)
        read.contents += contents
        read.ranges += ranges
        return
    raw_bytes = row.column("raw_bytes")[place].as_py()
    data = row.column("data")[place]
    assert isinstance(data, pa.BinaryScalar), data.type
    buffer = data.as_buffer()
    assert buffer is not None
    stream = pa.BufferReader(buffer)
    total = max(1, buffer.size)
    while stream.tell() < buffer.size:
        began = stream.tell()
        for batch in pa.ipc.open_stream(stream):
            share = raw_bytes * (stream.tell() - began) // total
            writer.append(batch, raw_bytes=share)
            began = stream.tell()
