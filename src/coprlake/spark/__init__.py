"""Spark: data source, jobs and sessions.

.. code-block:: python

    from coprlake import spark as lake

    with lake.session("local[*]") as spark:
        lake.ingest(spark, ["/var/log"], "logs")
        lake.search(spark, "logs", "connection refused").show()
"""

from typing import Any

import lazy_loader

from coprlake.extras import missing_package

_load, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "jobs.indexing": ["index"],
        "jobs.ingesting": ["ingest"],
        "jobs.optimizing": ["optimize"],
        "jobs.querying": ["SparkQuery", "query"],
        "jobs.searching": ["SparkSearch", "plan_search", "search"],
        "runtime.jars": ["connector_jars"],
        "runtime.sessions": ["session"],
        "source.registering": ["register"],
        "streams.folder_stream": ["stream_folder"],
        "streams.kafka_stream": ["stream_kafka"],
        "streams.streaming": ["BatchReport", "StreamSettings"],
    },
)


def __getattr__(name: str) -> Any:
    """Load a public name on first use.

    Raises:
        NotInstalledError: it needs a package that is not installed.
    """
    try:
        return _load(name)
    except ImportError as error:
        raise missing_package(error) or error from error
