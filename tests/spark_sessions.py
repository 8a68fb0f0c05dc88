"""What the tests of Spark have in common; the session itself is a fixture of conftest.py."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

MASTER = "local[2,3]"
"""Two tasks at a time, each of which may fail twice."""

CONFS = {"spark.sql.shuffle.partitions": "2", "spark.sql.streaming.numRecentProgressUpdates": "5"}

QUIET = [
    # PySpark leaves sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]
"""Marks for modules that use Spark."""


def load(spark: SparkSession, path: Path | str, **options: Any) -> DataFrame:
    """The table as the data source reads it."""
    reader = spark.read.format("coprlake")
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load(str(path))


def ids(frame: DataFrame) -> list[int]:
    """The numbers of the rows."""
    return sorted(row["id"] for row in frame.select("id").collect())


def data_files(folder: Path) -> set[str]:
    """All files of a table but those of the log."""
    return {
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file() and "_delta_log" not in file.parts and "streams" not in file.parts
    }
