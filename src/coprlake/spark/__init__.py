"""Spark: data source, jobs and sessions.

.. code-block:: python

    from coprlake import spark as lake

    with lake.session("local[*]") as spark:
        lake.ingest(spark, ["/var/log"], "logs")
        lake.search(spark, "logs", "connection refused").show()
"""

from importlib import import_module
from typing import Any

_EXPORTS = {
    "session": "runtime.sessions",
    "register": "source.registering",
    "query": "jobs.querying",
    "SparkQuery": "jobs.querying",
    "search": "jobs.searching",
    "plan_search": "jobs.searching",
    "SparkSearch": "jobs.searching",
    "ingest": "jobs.ingesting",
    "stream_folder": "streams.folder_stream",
    "stream_kafka": "streams.kafka_stream",
    "StreamSettings": "streams.streaming",
    "BatchReport": "streams.streaming",
    "optimize": "jobs.optimizing",
    "index": "jobs.indexing",
    "connector_jars": "runtime.jars",
}
"""Public names and the modules that define them; a module is imported on first use."""

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(f"coprlake.spark.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
