"""Spark over plain Parquet: no index, and a job for every query."""

import atexit
from contextlib import ExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.stores.base import Answer, Reader, Setting
from benchmarks.stores.batches import contains, term
from benchmarks.stores.duckdb_parquet import SETTINGS, ParquetStore, exactly
from coprlake.errors import UsageError
from coprlake.predicate.predicates import Predicate
from coprlake.spark.runtime.java import java_executable
from coprlake.spark.runtime.sessions import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkReader(Reader):
    """A data frame of the file."""

    def __init__(self, store: "SparkStore") -> None:
        self._lines: Any = store.spark().read.parquet(str(store.data)).select("content")

    def _answer(self, predicate: Predicate, text: str) -> Answer:
        from pyspark.sql import functions

        content = functions.col("content")
        if text.isascii():
            condition = functions.lower(content).contains(text.lower())
        else:  # what lower makes of other letters may depend on those around them
            quoted = "".join(f"\\x{{{ord(one):x}}}" for one in text)
            condition = content.rlike(f"(?i){quoted}")
        return Answer(exactly(predicate, self._lines.where(condition).toArrow()["content"]))

    def term(self, text: str) -> Answer:
        """Scan for the text, and see to the borders afterwards."""
        return self._answer(term(text), text)

    def contains(self, text: str) -> Answer:
        """Scan for the text."""
        return self._answer(contains(text), text)


class SparkStore(ParquetStore):
    """Scanned by Spark."""

    name = "spark-scan"
    title = "Spark, scan of Parquet"
    settings = f"{SETTINGS}; local[1], a session that runs already; lower(content) contains the text"

    _open: ClassVar[ExitStack | None] = None
    _spark: ClassVar["SparkSession | None"] = None

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.spark()

    @classmethod
    def spark(cls) -> "SparkSession":
        """The session of all stores, which ends with the process."""
        if cls._spark is None or cls._spark._jsc.sc().isStopped():
            stack = ExitStack()
            cls._spark = stack.enter_context(session("local[1]", name="stores", quiet=True))
            cls._open = stack
            atexit.register(stack.close)
        return cls._spark

    @classmethod
    def end(cls) -> None:
        """Stop the session, where somebody else wants one of another kind in this process."""
        if cls._open is not None:
            cls._open.close()
        cls._open = cls._spark = None

    @classmethod
    def missing(cls) -> str | None:
        """Whether there are Spark and a Java."""
        if find_spec("pyspark") is None:
            return "Spark is not installed; install it with: pip install pyspark"
        try:
            java_executable()
        except UsageError as error:
            return str(error)
        return None

    def reader(self) -> Reader:
        """Read the schema."""
        return SparkReader(self)
