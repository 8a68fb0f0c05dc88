"""Registers the data source with sessions that do not find it themselves."""

from typing import TYPE_CHECKING

from coprlake.spark.source.data_source import CoprlakeDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Register the format ``coprlake`` with this session.

    Spark finds it by itself if the package is installed beside the driver; this call is needed with Spark Connect, and
    if the package came by ``--py-files``.
    """
    from pyspark.errors import PySparkException

    try:
        spark.dataSource.register(CoprlakeDataSource)
    except PySparkException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):  # PySpark 4.0, if it has found the package itself
            raise
