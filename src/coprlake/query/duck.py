"""Runs DuckDB in this process: one in-memory database for all queries, with one connection per query.

A query with memory or thread limits has a database to itself while it runs; it is kept for the next query with the same
limits.
"""

import atexit
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from coprlake.errors import CoprlakeError, QueryError, QueryLimitError
from coprlake.language.functions.array_functions import ArrayFunction
from coprlake.query.handover import Stream, too_large
from coprlake.query.limits import Deadline, Limits

_ROWS: Final = 65_536
_lock = threading.Lock()
_shared: "_Database | None" = None
_idle: "list[tuple[Limits, _Database]]" = []
_MOST_IDLE: Final = 4
_workers = ThreadPoolExecutor(64, "coprlake-query")
"""Reused: a scan in a new thread was slower (34 against 28 ms, on a busy machine), probably due to its fresh memory."""


class _Database:
    """A database and the array functions registered with it."""

    def __init__(self, limits: Limits) -> None:
        import duckdb

        settings: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        if limits.memory_bytes is not None:
            settings["memory_limit"] = f"{max(1, limits.memory_bytes // 2**20)}MiB"
            settings["max_temp_directory_size"] = "0KiB"
        self._spill_folder = None if limits.memory_bytes is not None else _private_folder()
        settings["temp_directory"] = self._spill_folder or ""  # empty for none: by default it is the working directory
        if limits.threads is not None:
            settings["threads"] = limits.threads
        self.connection = duckdb.connect(":memory:", config=settings)
        self.connection.execute(
            "SET TimeZone = 'UTC'; SET preserve_insertion_order = true; "
            "SET parquet_metadata_cache = true"  # data files never change, and their footers list many batches
        )
        with suppress(duckdb.InvalidInputException):  # Jupyter without ipywidgets: no bar, and none can be switched off
            self.connection.execute("SET enable_progress_bar = false")
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def learn(self, functions: dict[str, ArrayFunction]) -> None:
        """Register array functions."""
        with self._lock:
            for name, function in functions.items():
                if name in self._known:
                    continue
                self.connection.create_function(  # type: ignore[call-overload]  # DuckDB 2 moved the enums
                    name,
                    _of_columns(function),
                    [_duck_type(kind) for kind in function.inputs],
                    _duck_type(function.output),
                    type="arrow",
                    null_handling="special",
                )
                self._known.add(name)

    def close(self) -> None:
        """Unregister our functions and close: they and DuckDB refer to each other, and DuckDB would warn at exit."""
        import duckdb

        with self._lock, suppress(duckdb.Error):
            while self._known:
                self.connection.remove_function(self._known.pop())
            self.connection.close()
        if self._spill_folder is not None:
            shutil.rmtree(self._spill_folder, ignore_errors=True)


def _private_folder() -> str | None:
    """A private folder for what does not fit into memory; None if it cannot be created."""
    try:
        return tempfile.mkdtemp(prefix="coprlake-query-")
    except OSError:
        return None


def _of_columns(function: ArrayFunction) -> Any:
    """Wrap the function for DuckDB, which passes a chunked array and expects an array."""

    def run(column: Any) -> pa.Array:
        return function.run(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)

    return run


def _duck_type(kind: pa.DataType) -> str:
    """The name of a type in DuckDB."""
    if pa.types.is_list(kind):
        return f"{_duck_type(kind.value_type)}[]"
    if pa.types.is_struct(kind):
        return f"STRUCT({', '.join(f'{chr(34)}{field.name}{chr(34)} {_duck_type(field.type)}' for field in kind)})"
    if pa.types.is_map(kind):
        return "MAP(VARCHAR, VARCHAR)"
    names: dict[pa.DataType, str] = {
        pa.int64(): "BIGINT",
        pa.float64(): "DOUBLE",
        pa.bool_(): "BOOLEAN",
        pa.string(): "VARCHAR",
    }
    return names[kind]


def _take(limits: Limits) -> _Database:
    global _shared
    with _lock:
        if limits == Limits():
            if _shared is None:
                _shared = _Database(limits)
            return _shared
        for place, (known, database) in enumerate(_idle):
            if known == limits:
                del _idle[place]
                return database
    return _Database(limits)


def _give_back(limits: Limits, database: _Database) -> None:
    if limits == Limits():
        return
    with _lock:
        _idle.append((limits, database))
        gone = _idle.pop(0)[1] if len(_idle) > _MOST_IDLE else None
    if gone is not None:
        gone.close()


@atexit.register
def _close_all() -> None:
    for database in [_shared, *(database for _, database in _idle)]:
        if database is not None:
            database.close()


class Connection:
    """A connection for one query."""

    def __init__(self, limits: Limits, deadline: Deadline, text: str) -> None:
        self._engine_limits = Limits(memory_bytes=limits.memory_bytes, threads=limits.threads)
        self._database = _take(self._engine_limits)
        self._cursor = self._database.connection.cursor()
        self._deadline = deadline
        self._limits = limits
        self._text = text
        self._future: Future[Any] | None = None
        self._streams: list[Stream] = []

    def learn(self, functions: dict[str, ArrayFunction]) -> None:
        """Register array functions."""
        self._database.learn(functions)

    def register(self, name: str, data: Any) -> None:
        """Register Arrow data under a name."""
        if isinstance(data, Stream):
            self._streams.append(data)
        self._cursor.register(name, data)

    def run(self, sql: str, *, is_small: bool = False) -> Iterator[pa.RecordBatch]:
        """Run a query and yield its result in batches.

        A large result is streamed. For that DuckDB plans the query and reads footers twice, so a small one is not.
        """
        reader = self._done(lambda: self._collected(sql) if is_small else self._cursor.sql(sql).to_arrow_reader(_ROWS))
        while True:
            batch = self._done(lambda: next(reader, None))
            if batch is None:
                return
            yield batch

    def _collected(self, sql: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about copying the rows once more
            return self._cursor.execute(sql).to_arrow_reader(_ROWS)

    def _done(self, work: Callable[[], Any]) -> Any:
        """Do the work in another thread: DuckDB reacts to Ctrl-C and deadlines between tasks at best.

        DuckDB's errors are translated into ours.
        """
        import duckdb

        self._deadline.check()
        future = self._future = _workers.submit(work)
        try:
            return future.result(self._deadline.left)
        except (KeyboardInterrupt, TimeoutError) as error:
            self._cursor.interrupt()
            with suppress(Exception):
                future.result()
            if isinstance(error, KeyboardInterrupt):
                raise
            raise self._deadline.error() from None
        except duckdb.OutOfMemoryException as error:
            raise self._failure() or too_large(self._limits.memory_bytes) from error
        except (duckdb.Error, pa.ArrowException, OSError) as error:  # a streamed result reports all errors as OSError
            raise self._explained(error) from error

    def _failure(self) -> Exception | None:
        """The error that occurred while records were read for the engine, if any."""
        return next((stream.failure for stream in self._streams if stream.failure is not None), None)

    def _explained(self, error: Exception) -> Exception:
        failure = self._failure()
        if failure is not None:
            return failure
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, CoprlakeError):
                return cause
            cause = cause.__cause__ or cause.__context__
        return explained(str(error), self._text, self._deadline)

    def close(self) -> None:
        """Release what the query holds; stop it if it is still running."""
        import duckdb

        with suppress(duckdb.Error):  # the database is closed already when a process ends
            self._cursor.interrupt()
        if self._future is not None:
            wait([self._future])
        with suppress(duckdb.Error):
            self._cursor.close()
        _give_back(self._engine_limits, self._database)


def explained(message: str, text: str, deadline: Deadline) -> CoprlakeError:
    """Translate the engine's error into the terms of the language."""
    low = message.lower()
    if "interrupt" in low and deadline.left == 0.0:
        return deadline.error()
    if "out of memory" in low:
        return QueryLimitError("the query needs more memory than it may have; narrow its time or filters")
    if "overflow" in low or "out of range" in low or "conversion error" in low:
        return QueryError("a number in the result does not fit into 64 bits; convert it with toDouble() first")
    if "invalid string encoding" in low:
        return not_utf8(message)
    if "slots; raise the interval" in low:
        return QueryError("makeTimeseries would make more than 1,500 slots; raise the interval")
    return QueryError(f"the query failed: {_first_line(message)}")


def not_utf8(message: str) -> QueryError:
    """The error for bytes that are not valid UTF-8."""
    return QueryError(f"the table has text that is not valid UTF-8; search instead of querying: {_first_line(message)}")


def _first_line(message: str) -> str:
    return message.strip().splitlines()[0][:300] if message.strip() else "no reason was given"
