"""Streams Kafka messages into a table, each exactly once."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from coprlake.errors import UsageError
from coprlake.files import Folder
from coprlake.ingestion import Gatherer, IngestReport, give_memory_back
from coprlake.intake.messages import MessageReader
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.spark.jobs.ingesting import settle
from coprlake.spark.jobs.joining import Part
from coprlake.spark.jobs.tasks import PartWriter, WriteTask, answer, answers
from coprlake.spark.runtime.builds import same_build
from coprlake.spark.runtime.warming import warm_up_once
from coprlake.spark.source.open_tables import opened
from coprlake.spark.streams.streaming import StreamSettings, default_checkpoint, start
from coprlake.storage.log.delta_log import Transaction
from coprlake.storage.vacuuming import STREAMS_FOLDER
from coprlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_ORIGIN: Final = ".origin"
"""Suffix of the file beside a checkpoint that lists its servers and topics."""


def stream_kafka(
    spark: "SparkSession",
    servers: str,
    topics: str,
    table: str | PathLike[str] | Table,
    settings: StreamSettings | None = None,
    kafka_options: Mapping[str, str] | None = None,
) -> "StreamingQuery":
    """Append every message of some Kafka topics, from the first on, each as a record.

    Args:
        spark: a session with the connector on its class path; see `coprlake.spark.runtime.jars`.
        servers: ``host:port``, comma-separated.
        topics: names, comma-separated.
        table: an existing table.
        settings: see `StreamSettings`.
        kafka_options: options of Spark's Kafka source, such as ``startingOffsets`` or ``kafka.security.protocol``.
    """
    settings = settings or StreamSettings()
    MessageReader(settings.options, IntakeReport())  # rejects formats that only files have
    warm_up_once()
    target = opened(table)
    given = {"kafka.bootstrap.servers": servers, "subscribe": topics, "startingOffsets": "earliest"}
    if settings.limit:
        given["maxOffsetsPerTrigger"] = str(settings.limit)
    reader = spark.readStream.format("kafka")
    for key, value in (given | dict(kafka_options or {})).items():
        reader = reader.option(key, value)
    messages = reader.load().select("value", "timestamp", "topic")
    if settings.checkpoint is None:
        settings = replace(settings, checkpoint=kafka_checkpoint(target, _names(servers), _names(topics)))

    def write(batch: "DataFrame", once: Transaction) -> IngestReport:
        return _write_messages(batch, target, settings, once, f"{servers} {topics}")

    return start(messages, target, f"kafka-{topics}", f"{servers} {topics}", settings, write)


def _names(text: str) -> set[str]:
    return {name.strip() for name in text.split(",") if name.strip()}


def kafka_checkpoint(table: Table, servers: set[str], topics: set[str]) -> str:
    """The default checkpoint of a stream of these topics; it stays the same when servers come or go.

    Raises:
        UsageError: another stream into this table has some of the topics, so their messages would be read twice.
    """
    return checkpoint_in(Folder.of(table.uri), servers, topics)


def checkpoint_in(folder: Folder, servers: set[str], topics: set[str]) -> str:
    """Like `kafka_checkpoint`, for the table in this folder; returns a full URI with the table's scheme."""
    for entry in folder.list(STREAMS_FOLDER):
        if not entry.name.endswith(_ORIGIN):
            continue
        origin = json.loads(folder.read(entry.name))
        checkpoint = f"{folder.uri.rstrip('/')}/{entry.name.removesuffix(_ORIGIN)}"
        if not servers & set(origin["servers"]) or not topics & set(origin["topics"]):
            continue
        if topics != set(origin["topics"]):
            both = ", ".join(sorted(topics & set(origin["topics"])))
            raise UsageError(
                f"{both}: another stream into this table has these topics already; to continue it with the topics "
                f"given, name {checkpoint} as the checkpoint; name another one to read all messages again"
            )
        _remember(folder, entry.name, servers | set(origin["servers"]), topics)
        return checkpoint
    checkpoint = default_checkpoint(folder.uri, "kafka", f"{sorted(servers)} {sorted(topics)}")
    _remember(folder, f"{STREAMS_FOLDER}/{checkpoint.rpartition('/')[2]}{_ORIGIN}", servers, topics)
    return checkpoint


def _remember(folder: Folder, name: str, servers: set[str], topics: set[str]) -> None:
    folder.write(name, [json.dumps({"servers": sorted(servers), "topics": sorted(topics)}).encode()])


def _write_messages(
    batch: "DataFrame", table: Table, settings: StreamSettings, once: Transaction, name: str
) -> IngestReport:
    started = time.perf_counter()
    options = settings.options

    def run(task: WriteTask, _: Sequence[int]) -> list[Part]:
        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from answer(write_messages(task, batches, options))

        return list(answers(batch.mapInArrow(same_build(work), "result binary")))

    note = {"operation": "ingest", "stream": name}
    parts, written = settle(table, run, 0, settings.segment_bytes, once, note)
    report = IngestReport(IntakeReport(), [written])
    for part in parts:
        if part.read is not None:
            report.read.merge(part.read)
    report.seconds = time.perf_counter() - started
    return report


def write_messages(task: WriteTask, batches: Iterator[pa.RecordBatch], options: ReadOptions) -> Part:
    """In a task: write messages as sealed segments."""
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
