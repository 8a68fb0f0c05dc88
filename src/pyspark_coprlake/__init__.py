"""Lets Spark find the data source ``coprlake`` by its name: it looks into every package named ``pyspark_*``."""

from coprlake.spark.source.data_source import CoprlakeDataSource as DefaultSource

__all__ = ["DefaultSource"]
