"""Tables that Spark writes as Parquet files; used rarely, because a session takes seconds to start."""

import os
import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def has_java() -> bool:
    """Whether Spark can be started here."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") is not None or (home is not None and (Path(home) / "bin" / "java").exists())


def session() -> AbstractContextManager["SparkSession"]:
    """A session on this machine, or the one that is already running."""
    from coprlake import spark

    return spark.session("local[1]", {"spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"}, quiet=True)


def write_parquet(spark: "SparkSession", parts: list[pa.Table], folder: Path) -> None:
    """Write each part as separate files."""
    for part in parts:
        part = part.take(pa.array(range(part.num_rows), pa.int64()))  # Spark does not accept slices of nested columns
        spark.createDataFrame(part).coalesce(1).write.mode("append").parquet(str(folder))


def takes(kind: pa.DataType) -> bool:
    """Whether Spark can write a column of this Arrow type that reads back unchanged."""
    types = pa.types
    if types.is_map(kind):
        return takes(kind.key_type) and takes(kind.item_type)
    if types.is_struct(kind):
        return all(takes(field.type) for field in kind)
    if types.is_list(kind):
        return takes(kind.value_type)
    if types.is_timestamp(kind):
        return bool(kind.unit == "us")
    plain = types.is_signed_integer(kind) or kind in (pa.float32(), pa.float64(), pa.string(), pa.binary())
    return bool(plain or types.is_boolean(kind) or types.is_decimal128(kind))
