"""The data source by its name, for sessions that do not find it themselves."""

from typing import TYPE_CHECKING

from coprlake.spark.source.data_source import CoprlakeDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Let this session know the format ``coprlake``.

    Spark finds it without this where the package is installed beside the driver; with Spark Connect, and where the
    package came by ``--py-files``, it has to be told.
    """
    spark.dataSource.register(CoprlakeDataSource)
