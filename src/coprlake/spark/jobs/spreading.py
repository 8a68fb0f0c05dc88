"""Work spread over tasks: so many at a time, each known by its number."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNKNOWN_PARALLELISM: Final = 8


def parallelism(spark: "SparkSession") -> int:
    """How many tasks run at a time; a guess where the session does not tell, which is over Spark Connect."""
    from pyspark.errors import PySparkException

    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except (PySparkException, AttributeError):
        return int(spark.conf.get("spark.default.parallelism", str(UNKNOWN_PARALLELISM)))


def places(spark: "SparkSession", count: int) -> "DataFrame":
    """A DataFrame with one number, from 0 on, in each of so many partitions: a task each."""
    return spark.range(0, count, 1, count)


def places_in(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """In a task: its number."""
    for batch in batches:
        yield from batch.column(0).to_pylist()
