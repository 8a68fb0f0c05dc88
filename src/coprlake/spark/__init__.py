"""Spark: data source, jobs and sessions.

.. code-block:: python

    from coprlake import spark as lake

    with lake.session("local[*]") as spark:
        lake.ingest(spark, ["/var/log"], "logs")
        lake.search(spark, "logs", "connection refused").show()
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
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
