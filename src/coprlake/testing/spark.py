"""Variants of the conformance suite for Spark: tables that tasks wrote, streamed, merged and indexed.

Each takes a session and returns a variant as in `coprlake.testing.store_variants`.
"""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from coprlake import spark as lake
from coprlake.table import create_table, open_table
from coprlake.testing.predicate_strategies import Row
from coprlake.testing.store_variants import SCHEMA, Stored, Variant, several_segments, unindexed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SparkVariant: TypeAlias = Callable[["SparkSession"], Variant]

SEGMENT_BYTES: Final = 60
"""A few rows per segment, so that a few rows fill many segments."""

FILES: Final = 3
"""The number of files that a stream finds one after the other."""


def written_by_spark(spark: "SparkSession") -> Variant:
    """A DataFrame that two tasks write to a new table."""

    def store(folder: Path, rows: list[Row]) -> Stored:
        frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema=SCHEMA)).repartition(2)
        writer = frame.write.format("coprlake").mode("append").option("segment_bytes", str(SEGMENT_BYTES))
        writer.option("grams", "userapp").save(str(folder))
        return Stored(open_table(folder), rows)

    return store


def streamed_by_spark(spark: "SparkSession") -> Variant:
    """Files that a stream reads batch by batch; it restarts from its checkpoint before the last one."""

    def store(folder: Path, rows: list[Row]) -> Stored:
        create_table(folder, partition_by=None)
        place = folder.with_name(f"{folder.name}-{uuid.uuid4().hex}")
        waiting = place / "waiting"
        waiting.mkdir(parents=True)
        (place / "in").mkdir()
        for number in range(FILES):
            part = pa.Table.from_pylist(rows[number::FILES], schema=SCHEMA)
            pq.write_table(part, waiting / f"{number}.parquet")
            (waiting / f"{number}.parquet").rename(place / "in" / f"{number}.parquet")
            if number >= FILES - 2:
                _stream(spark, place, folder)
        return Stored(open_table(folder), rows)

    return store


def _stream(spark: "SparkSession", place: Path, folder: Path) -> None:
    """Read all files that are available."""
    columns = spark.createDataFrame(SCHEMA.empty_table()).schema
    source = spark.readStream.schema(columns).option("maxFilesPerTrigger", "1").parquet(str(place / "in"))
    writer = source.writeStream.format("coprlake").option("checkpointLocation", str(place / "checkpoint"))
    writer = writer.option("segment_bytes", str(SEGMENT_BYTES)).trigger(availableNow=True)
    query = writer.start(str(folder))
    query.awaitTermination()
    error = query.exception()
    if error is not None:
        raise error


def optimized_by_spark(spark: "SparkSession") -> Variant:
    """Small segments that tasks merged."""

    def store(folder: Path, rows: list[Row]) -> Stored:
        stored = several_segments(folder, rows)
        lake.optimize(spark, folder)
        return Stored(stored.table, rows)

    return store


def indexed_by_spark(spark: "SparkSession") -> Variant:
    """Lost sidecars that tasks rewrote."""

    def store(folder: Path, rows: list[Row]) -> Stored:
        stored = unindexed(folder, rows)
        lake.index(spark, stored.table)
        return Stored(stored.table, rows)

    return store


SPARK_VARIANTS: Final[dict[str, SparkVariant]] = {
    variant.__name__: variant for variant in (written_by_spark, streamed_by_spark, optimized_by_spark, indexed_by_spark)
}
