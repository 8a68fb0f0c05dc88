"""Spreads work over numbered tasks."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNKNOWN_PARALLELISM: Final = 8


def parallelism(spark: "SparkSession") -> int:
    """The number of tasks that run at a time; a guess over Spark Connect, where the session does not say."""
    from pyspark.errors import PySparkException

    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except (PySparkException, AttributeError):
        return int(spark.conf.get("spark.default.parallelism", str(UNKNOWN_PARALLELISM)))


def places(spark: "SparkSession", count: int) -> "DataFrame":
    """A DataFrame of `count` partitions, one per task, each with one row: the number of the task, from 0."""
    return spark.range(0, count, 1, count)


def places_in(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """In a task: the numbers in its batches, normally one."""
    for batch in batches:
        yield from batch.column(0).to_pylist()
