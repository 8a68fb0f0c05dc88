"""Streams into a table: files that appear in a folder, or messages of Kafka; each exactly once.

Spark remembers in the checkpoint which files or offsets a batch has, and repeats the batch after a crash with the same.
A batch is written by the same tasks as any ingestion and committed as a Delta transaction with the number of the batch:
one that is in the log is not written again.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlparse

import pyarrow as pa

from coprlake.config import SEGMENT_BYTES
from coprlake.errors import UsageError
from coprlake.files import Folder
from coprlake.ingestion import Gatherer, IngestReport, give_memory_back
from coprlake.intake.inputs import InputFile
from coprlake.intake.messages import MessageReader
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.spark.checkpoints import application_of
from coprlake.spark.ingesting import ingest_files, settle
from coprlake.spark.joining import Part
from coprlake.spark.tables import opened
from coprlake.spark.tasks import PartWriter, WriteTask, answer, answers
from coprlake.store import Table
from coprlake.table.delta_log import DeltaLog, Transaction
from coprlake.table.vacuuming import STREAMS_FOLDER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER_SECONDS: Final = 5.0
_FILE_COLUMNS: Final = "path string, modificationTime timestamp, length long, content binary"


@dataclass(frozen=True)
class BatchReport:
    """What a batch of a stream brought.

    Attributes:
        number: of the batch.
        read: what was found in the raw logs.
        row_count: records that joined the table.
        raw_bytes: of these.
        segments: that were written.
        seconds: that it took.
        was_done: it was in the table before; a crash had come between the commit and the checkpoint.
    """

    number: int
    read: IntakeReport
    row_count: int
    raw_bytes: int
    segments: int
    seconds: float
    was_done: bool = False


OnBatch = Callable[[BatchReport], None]


@dataclass
class StreamSettings:
    """How a stream works.

    Attributes:
        options: how to read raw logs.
        checkpoint: where Spark remembers how far it is; by default a folder of the table's, one for each input.
        trigger_seconds: between two batches; 0 for one after the other.
        once: take what is there, and end.
        segment_bytes: raw size at which a segment is sealed.
        on_batch: told of each batch.
        limit: files, or messages, of one batch at most.
    """

    options: ReadOptions = field(default_factory=ReadOptions)
    checkpoint: str | None = None
    trigger_seconds: float = TRIGGER_SECONDS
    once: bool = False
    segment_bytes: int = SEGMENT_BYTES
    on_batch: OnBatch | None = None
    limit: int | None = None


def stream_folder(
    spark: "SparkSession",
    folder: str | PathLike[str],
    table: str | PathLike[str] | Table,
    settings: StreamSettings | None = None,
) -> "StreamingQuery":
    """Append every file that appears in a folder; each is taken once, by its name.

    Files must appear by a rename from outside of the folder, or under a name that begins with a dot or an underscore:
    one that still grows is taken as it is at that moment.

    Args:
        spark: the session.
        folder: what to watch, and the folders below.
        table: where to; it must be there.
        settings: see there.
    """
    settings = settings or StreamSettings()
    target = opened(table)
    root = Path(folder).absolute()
    if not root.is_dir():
        raise UsageError(f"{folder}: there is no such folder to watch; make it first")
    reader = spark.readStream.format("binaryFile").schema(_FILE_COLUMNS).option("recursiveFileLookup", "true")
    reader = reader.option("maxFilesPerTrigger", str(settings.limit or 10_000))
    reader = reader.option("maxFileAge", "36500d")  # a file that was written long ago is as welcome as any
    files = reader.load(str(root)).select("path", "length", "modificationTime")

    def write(batch: "DataFrame", once: Transaction) -> IngestReport:
        found = [_input_file(row, root) for row in batch.collect()]
        return ingest_files(
            spark,  # not the session of the stream, whose queries cannot adapt to what they find
            sorted(found, key=lambda file: (file.modified or 0, file.path)),
            target,
            settings.options,
            segment_bytes=settings.segment_bytes,
            once=once,
            note={"stream": str(root)},
        )

    return _start(files, target, f"folder-{root.name}", str(root), settings, write)


def _input_file(row: Any, root: Path) -> InputFile:
    path = Path(unquote(urlparse(row["path"]).path))
    source = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
    return InputFile(str(path), source, row["length"], row["modificationTime"].timestamp())


def stream_kafka(
    spark: "SparkSession",
    servers: str,
    topics: str,
    table: str | PathLike[str] | Table,
    settings: StreamSettings | None = None,
    kafka_options: Mapping[str, str] | None = None,
) -> "StreamingQuery":
    """Append every message of some topics of Kafka: from the first on, each a record.

    Args:
        spark: a session that has the connector on its class path, see `coprlake.spark.jars`.
        servers: ``host:port``, with commas between.
        topics: names, with commas between.
        table: where to; it must be there.
        settings: see there.
        kafka_options: of Spark's Kafka source, such as ``startingOffsets`` or ``kafka.security.protocol``.
    """
    settings = settings or StreamSettings()
    target = opened(table)
    given = {"kafka.bootstrap.servers": servers, "subscribe": topics, "startingOffsets": "earliest"}
    if settings.limit:
        given["maxOffsetsPerTrigger"] = str(settings.limit)
    reader = spark.readStream.format("kafka")
    for key, value in (given | dict(kafka_options or {})).items():
        reader = reader.option(key, value)
    messages = reader.load().select("value", "timestamp", "topic")

    def write(batch: "DataFrame", once: Transaction) -> IngestReport:
        return _write_messages(batch, target, settings, once, f"{servers} {topics}")

    return _start(messages, target, f"kafka-{topics}", f"{servers} {topics}", settings, write)


def _write_messages(
    batch: "DataFrame", table: Table, settings: StreamSettings, once: Transaction, name: str
) -> IngestReport:
    started = time.perf_counter()
    options = settings.options

    def run(task: WriteTask, _: Sequence[int]) -> list[Part]:
        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from answer(write_messages(task, batches, options))

        return list(answers(batch.mapInArrow(work, "result binary")))

    note = {"operation": "ingest", "stream": name}
    parts, written = settle(table, run, 0, settings.segment_bytes, once, note)
    report = IngestReport(IntakeReport(), [written])
    for part in parts:
        if part.read is not None:
            report.read.merge(part.read)
    report.seconds = time.perf_counter() - started
    return report


def write_messages(task: WriteTask, batches: Iterator[pa.RecordBatch], options: ReadOptions) -> Part:
    """In a task: messages to sealed segments."""
    give_memory_back()
    report = IntakeReport()
    reader = MessageReader(options, report)
    with PartWriter(task) as writer:
        gatherer = Gatherer(writer)
        for batch in batches:
            before = report.raw_bytes
            for records in reader.read(batch.column("value"), batch.column("timestamp"), batch.column("topic")):
                gatherer.add(records, report.raw_bytes - before)
                before = report.raw_bytes
        gatherer.flush()
        part = writer.finish()
    part.read = report
    return part


def _start(
    frame: "DataFrame",
    table: Table,
    name: str,
    origin: str,
    settings: StreamSettings,
    write: Callable[["DataFrame", Transaction], IngestReport],
) -> "StreamingQuery":
    """Begin the query; each batch is one transaction."""
    checkpoint = settings.checkpoint or default_checkpoint(table, name, origin)
    folder = WriteTask.of(table).folder  # refuses tables that cannot be written to
    application = ""
    if Folder.of(checkpoint).exists("metadata"):
        application = application_of(checkpoint, DeltaLog.open(folder))

    def each(batch: "DataFrame", number: int) -> None:
        nonlocal application
        log = DeltaLog.open(folder)
        application = application or application_of(checkpoint, log)
        started = time.perf_counter()
        last = log.transaction_version(application)
        if last is not None and last >= number:
            report = IngestReport(IntakeReport())
        else:
            report = write(batch, Transaction(application, number))
        if settings.on_batch is not None:
            settings.on_batch(_batch_report(number, report, time.perf_counter() - started, last))

    writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", checkpoint).queryName(name)
    if settings.once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{settings.trigger_seconds} seconds")
    return writer.start()


def _batch_report(number: int, report: IngestReport, seconds: float, last: int | None) -> BatchReport:
    segments = sum(len(one.segments) for one in report.written)
    was_done = last is not None and last >= number
    return BatchReport(number, report.read, report.row_count, report.raw_bytes, segments, seconds, was_done)


def default_checkpoint(table: Table, name: str, origin: str) -> str:
    """The folder in which a stream from this origin keeps its place; a stream that is begun again goes on there."""
    kind = "".join(character if character.isalnum() or character in "-_." else "-" for character in name)
    return f"{table.uri}/{STREAMS_FOLDER}/{kind}-{hashlib.sha256(origin.encode()).hexdigest()[:12]}"
