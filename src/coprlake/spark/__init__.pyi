from .jobs.indexing import index as index
from .jobs.ingesting import ingest as ingest
from .jobs.optimizing import optimize as optimize
from .jobs.querying import SparkQuery as SparkQuery
from .jobs.querying import query as query
from .jobs.searching import SparkSearch as SparkSearch
from .jobs.searching import plan_search as plan_search
from .jobs.searching import search as search
from .runtime.jars import connector_jars as connector_jars
from .runtime.sessions import session as session
from .source.registering import register as register
from .streams.folder_stream import stream_folder as stream_folder
from .streams.kafka_stream import stream_kafka as stream_kafka
from .streams.streaming import BatchReport as BatchReport
from .streams.streaming import StreamSettings as StreamSettings

__all__: list[str]

def __dir__() -> list[str]: ...
