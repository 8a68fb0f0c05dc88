"""Streams into a table: each batch exactly once, from any source.

Spark records in the checkpoint which files or offsets a batch has, and repeats exactly that batch after a crash.
A batch is written by the same tasks as any ingestion and committed as a Delta transaction with the number of the batch:
a batch that is in the log is not written again.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coprlake.config import SEGMENT_BYTES
from coprlake.errors import UsageError
from coprlake.files import Folder
from coprlake.ingestion import IngestReport
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.spark.jobs.tasks import WriteTask
from coprlake.spark.streams.checkpoint_repair import mend_checkpoint
from coprlake.spark.streams.checkpoints import application_of, sync_checkpoint
from coprlake.storage.log.delta_log import DeltaLog, Transaction
from coprlake.storage.vacuuming import STREAMS_FOLDER
from coprlake.summary import Report
from coprlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER_SECONDS: Final = 5.0


@dataclass(frozen=True, repr=False)
class BatchReport(Report):
    """What a batch of a stream brought.

    Attributes:
        number: the number of the batch.
        read: the intake report.
        row_count: the number of records added to the table.
        raw_bytes: their raw size.
        segments: the number of segments written.
        seconds: the time it took.
        was_done: the batch was in the table already: a crash came between the commit and the checkpoint.
    """

    always_shown = ("number", "row_count")

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
        checkpoint: the folder where Spark records its progress; by default one per input, inside the table.
        trigger_seconds: the time between batches; 0 for no pause.
        once: read what is available, then stop.
        segment_bytes: raw size at which a segment is sealed.
        on_batch: called with the report of each batch.
        limit: the maximum number of files or messages in a batch.
        follow_links: also follow symbolic links that point outside a folder.
    """

    options: ReadOptions = field(default_factory=ReadOptions)
    checkpoint: str | None = None
    trigger_seconds: float = TRIGGER_SECONDS
    once: bool = False
    segment_bytes: int = SEGMENT_BYTES
    on_batch: OnBatch | None = None
    limit: int | None = None
    follow_links: bool = False


def start(
    frame: "DataFrame",
    table: Table,
    name: str,
    origin: str,
    settings: StreamSettings,
    write: Callable[["DataFrame", Transaction], IngestReport],
) -> "StreamingQuery":
    """Start the query; each batch is one transaction.

    Raises:
        UsageError: this is Spark Connect, or the checkpoint belongs to another table.
    """
    from pyspark.sql.utils import is_remote

    if is_remote():
        raise UsageError(
            "over Spark Connect, a stream cannot call back into this process; run it on the driver, or write a "
            'streaming DataFrame with .writeStream.format("coprlake")'
        )
    checkpoint = settings.checkpoint or default_checkpoint(table.uri, name, origin)
    folder = WriteTask.of(table).folder  # rejects tables that cannot be written to
    application = ""
    if Folder.of(checkpoint).exists("metadata"):
        log = DeltaLog.open(folder)
        application = application_of(checkpoint, log)
        if Folder.of(checkpoint).is_local:
            mend_checkpoint(Path(Folder.of(checkpoint).root), log.transaction_version(application))

    def each(batch: "DataFrame", number: int) -> None:
        nonlocal application
        log = DeltaLog.open(folder)
        application = application or application_of(checkpoint, log)
        started = time.perf_counter()
        last = log.transaction_version(application)
        if last is not None and last >= number:
            log.sync_to(log.version)  # Spark forgets the batch after this: it must be on disk
            report = IngestReport(IntakeReport())
        else:
            sync_checkpoint(checkpoint)
            report = write(batch, Transaction(application, number))
        if settings.on_batch is not None:
            settings.on_batch(_batch_report(number, report, time.perf_counter() - started, last))

    own_name = f"{name}-{_digest(f'{table.uri} {origin}')}"  # names of queries are unique in a session
    writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", checkpoint).queryName(own_name)
    if settings.once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{settings.trigger_seconds} seconds")
    return writer.start()


def _batch_report(number: int, report: IngestReport, seconds: float, last: int | None) -> BatchReport:
    segments = sum(len(one.segments) for one in report.written)
    was_done = last is not None and last >= number
    return BatchReport(number, report.read, report.row_count, report.raw_bytes, segments, seconds, was_done)


def default_checkpoint(uri: str, name: str, origin: str) -> str:
    """The default checkpoint folder of a stream from this origin; a restarted stream resumes from it."""
    kind = "".join(character if character.isalnum() or character in "-_." else "-" for character in name)
    return f"{uri.rstrip('/')}/{STREAMS_FOLDER}/{kind}-{_digest(origin)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
