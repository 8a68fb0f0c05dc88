"""DuckDB over plain Parquet: no index, a good scan."""

from importlib.util import find_spec

from benchmarks.stores.base import Answer, Reader
from benchmarks.stores.batches import contains, term
from benchmarks.stores.duckdb_parquet import SETTINGS, ParquetStore, exactly
from coprlake.predicate.predicates import Predicate


def _pattern(text: str) -> str:
    """A regular expression for the text itself."""
    return "".join(one if one.isalnum() or ord(one) > 127 else f"\\x{{{ord(one):x}}}" for one in text)


class DuckdbReader(Reader):
    """A connection of one thread."""

    def __init__(self, store: "DuckdbStore") -> None:
        import duckdb

        self._base = duckdb.connect(config={"threads": 1})
        quoted = str(store.data).replace("'", "''")
        self._query = f"SELECT content FROM read_parquet('{quoted}') WHERE regexp_matches(content, $1, 'i')"

    def _answer(self, predicate: Predicate, text: str) -> Answer:
        found = self._base.sql(self._query, params=[_pattern(text)]).to_arrow_table()
        return Answer(exactly(predicate, found["content"]))

    def term(self, text: str) -> Answer:
        """Scan for the text, and see to the borders afterwards."""
        return self._answer(term(text), text)

    def contains(self, text: str) -> Answer:
        """Scan for the text."""
        return self._answer(contains(text), text)

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()


class DuckdbStore(ParquetStore):
    """Scanned by DuckDB."""

    name = "duckdb-scan"
    title = "DuckDB, scan of Parquet"
    settings = (
        f"{SETTINGS}; one thread; regexp_matches(content, text, 'i'), which was faster here than ILIKE and than "
        "contains with lower"
    )

    @classmethod
    def missing(cls) -> str | None:
        """Whether there is the package."""
        return "DuckDB is not installed; install it with: pip install duckdb" if find_spec("duckdb") is None else None

    def reader(self) -> Reader:
        """Connect."""
        return DuckdbReader(self)
