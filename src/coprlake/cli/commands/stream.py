"""``coprlake stream``: append new files of a folder, or messages from Kafka, to a table."""

import queue
import re
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coprlake.cli.options.choices import NearestChoice
from coprlake.cli.options.engine import Engine, pairs, spark_options
from coprlake.cli.options.input_options import follow_option, reading_options
from coprlake.cli.options.target import Target, into_option, target_options
from coprlake.cli.options.time_option import pause_option, rhythm_option
from coprlake.cli.printing.notices import color_option, note
from coprlake.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from coprlake.intake.options import ReadOptions
    from coprlake.spark.streams.streaming import StreamSettings

_FAIR = {"spark.scheduler.mode": "FAIR"}
"""Fair scheduling: merging runs tasks too, and the stream must not wait for all of them."""


@dataclass(frozen=True)
class _Origin:
    """Where the records come from: a folder, or Kafka.

    Attributes:
        limit: the most files or messages in a batch.
        kafka_options: options of Spark's Kafka source.
    """

    folder: str | None
    servers: str
    topics: str
    limit: int | None
    kafka_options: Mapping[str, str]

    def __str__(self) -> str:
        return f"files in {self.folder}" if self.folder else f"messages of {self.topics} at {self.servers}"

    def jars(self) -> list[Path]:
        """Return the jars that Spark needs for this origin."""
        from coprlake.spark import connector_jars

        return [] if self.folder else connector_jars()

    def start(self, spark: "SparkSession", target: Target, settings: "StreamSettings") -> "StreamingQuery":
        """Start the stream."""
        from coprlake.spark import stream_folder, stream_kafka

        if self.folder:
            return stream_folder(spark, self.folder, target.open(), settings)
        return stream_kafka(spark, self.servers, self.topics, target.open(), settings, self.kafka_options)


def _servers(ctx: click.Context, param: click.Parameter, given: str | None) -> str | None:
    for server in (given or "").split(",") if given is not None else ():
        if not re.fullmatch(r"\s*\S+:\d+\s*", server):
            raise click.BadParameter(
                f"{server!r} is not a valid server; expected HOST:PORT, such as localhost:9092", ctx, param
            )
    return given


@click.command(
    short_help="Append new files of a folder, or Kafka messages, to a table.",
    epilog="Ctrl-C and SIGTERM stop the stream with exit code 0, and the next run continues there. 2 after an error.",
)
@click.argument("folder", required=False, type=click.Path())
@into_option
@click.option(
    "--kafka",
    metavar="HOST:PORT",
    callback=_servers,
    help="Read messages from these Kafka servers instead of a folder.",
)
@click.option("--topic", "topics", metavar="NAME,...", help="Kafka topics to read.")
@click.option(
    "--from",
    "start",
    type=NearestChoice(["earliest", "latest"]),
    help="Where a new stream starts: at the earliest message, the default, or with messages that arrive from now on.",
)
@click.option(
    "--kafka-option",
    "kafka_options",
    multiple=True,
    metavar="KEY=VALUE",
    callback=pairs("Kafka option", "kafka.security.protocol=SSL"),
    help="Option of Spark's Kafka source. Can be repeated.",
)
@click.option("--max-files", type=click.IntRange(1), metavar="N", help="Most files in a batch. Defaults to 10000.")
@click.option("--max-messages", type=click.IntRange(1), metavar="N", help="Most messages in a batch.")
@click.option(
    "--trigger",
    type=pause_option,
    default="5s",
    show_default=True,
    metavar="SPAN",
    help="Interval between batches, such as 500ms or 1m; 0 to start each batch right after the last.",
)
@click.option("--once", is_flag=True, help="Read what is there now, then exit.")
@click.option(
    "--checkpoint",
    type=click.Path(),
    metavar="FOLDER",
    help="Where to keep the position of the stream. Defaults to a folder in the table, one for each source.",
)
@click.option(
    "--optimize-every",
    type=rhythm_option,
    default="10m",
    show_default=True,
    metavar="SPAN",
    help="Interval at which small segments are merged while the stream runs; never to disable.",
)
@reading_options
@follow_option
@target_options
@spark_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per batch, each on its own line.")
@click.option("-q", "--quiet", is_flag=True, help="Do not report individual batches.")
@color_option
def stream(
    folder: str | None,
    kafka: str | None,
    target: Target,
    reading: "ReadOptions",
    engine: Engine,
    trigger: timedelta,
    once: bool,
    checkpoint: str | None,
    optimize_every: timedelta | None,
    as_json: bool,
    quiet: bool,
    follow_links: bool,
    **given: Any,
) -> None:
    """Append files that appear in FOLDER, or messages of Kafka topics, to a table: each of them exactly once.

    Runs until it is stopped. When it is started again, even after a crash, it continues where it stopped. Files must
    appear complete: write them elsewhere, or under a name that begins with a dot, then rename them. Each Kafka message
    becomes one record.
    """
    origin = _origin(folder, kafka, **given)
    if folder is not None:
        _check_folder(folder, target, checkpoint)
    target.check()
    from coprlake.cli.commands.stream_following import Follower, Optimizer, follow
    from coprlake.spark import StreamSettings

    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    settings = StreamSettings(
        reading,
        checkpoint,
        trigger_seconds=trigger.total_seconds(),
        once=once,
        segment_bytes=target.segment_bytes,
        on_batch=events.put,
        limit=origin.limit,
        follow_links=follow_links,
    )
    follower = Follower(as_json, quiet)
    with ExitStack() as stack:
        spark = stack.enter_context(engine.session(jars=() if engine.jars else origin.jars(), confs=_FAIR))
        started = time.perf_counter()
        query = origin.start(spark, target, settings)
        optimizer = Optimizer(spark, target.uri, optimize_every, events)
        follower.begin(f"waiting for {origin}")
        follow(query, events, follower, optimizer)
        seconds = time.perf_counter() - started
    note(follower.summary(target.uri, seconds, optimizer))


def _origin(
    folder: str | None,
    kafka: str | None,
    topics: str | None,
    start: str | None,
    kafka_options: Mapping[str, str],
    max_files: int | None,
    max_messages: int | None,
) -> _Origin:
    """Read where the records come from; reject options that do not go together."""
    if (folder is None) == (kafka is None):
        raise click.UsageError("name a FOLDER to watch, or --kafka HOST:PORT and --topic NAME")
    of_kafka = {"--topic": topics, "--from": start, "--kafka-option": kafka_options, "--max-messages": max_messages}
    if folder is not None:
        useless = next((name for name, value in of_kafka.items() if value), None)
        if useless is not None:
            raise click.UsageError(f"{useless} has no effect without --kafka")
        return _Origin(folder, "", "", max_files, {})
    if not topics:
        raise click.UsageError("no topic given; name it with --topic")
    if max_files is not None:
        raise click.UsageError("--max-files has no effect with --kafka; use --max-messages")
    options = ({"startingOffsets": start} if start else {}) | dict(kafka_options)
    return _Origin(None, kafka or "", topics, max_messages, options)


def _check_folder(folder: str, target: Target, checkpoint: str | None) -> None:
    """Reject a folder in which the stream itself would write."""
    root = Path(folder)
    if not root.is_dir():
        raise UsageError(f"{folder}: no such folder; create it first")
    for what, path in (("the table", target.uri), ("the checkpoint", checkpoint)):
        if path and "://" not in path and Path(path).resolve().is_relative_to(root.resolve()):
            raise UsageError(f"{path}: {what} is inside the folder to watch; put it elsewhere")
    if target.holds(folder):
        raise UsageError(f"{folder}: this folder belongs to the table that you write to; name one with logs")
