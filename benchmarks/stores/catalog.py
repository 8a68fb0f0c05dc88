"""All stores that are compared. A module is imported when its store is asked for: some need what a machine may lack."""

from importlib import import_module

from benchmarks.stores.base import Store

ALL: tuple[str, ...] = (
    "benchmarks.stores.scan:ScanStore",
    "benchmarks.stores.copr:CoprStore",
    "benchmarks.stores.copr:CoprlakeStore",
    "benchmarks.stores.csc:CscStore",
    "benchmarks.stores.csc:CscTwoStore",
    "benchmarks.stores.bloom:BloomStore",
    "benchmarks.stores.dictionary.store:DictionaryStore",
    "benchmarks.stores.lucene:LuceneLineStore",
    "benchmarks.stores.lucene:LuceneBatchStore",
    "benchmarks.stores.tantivy:TantivyStore",
    "benchmarks.stores.clickhouse:ClickHouseWordsStore",
    "benchmarks.stores.clickhouse:ClickHouseGramsStore",
    "benchmarks.stores.sqlite:SqliteStore",
    "benchmarks.stores.duckdb:DuckdbStore",
    "benchmarks.stores.spark:SparkStore",
)


def load(place: str) -> type[Store]:
    """The class of a store, by "module:Class"."""
    module, _, name = place.partition(":")
    kind = getattr(import_module(module), name)
    assert isinstance(kind, type)
    assert issubclass(kind, Store)
    return kind


def stores() -> list[type[Store]]:
    """The classes of all stores."""
    return [load(place) for place in ALL]
