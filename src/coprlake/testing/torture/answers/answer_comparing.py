"""Runs one search or query in all ways and reports how the answers differ."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa

from coprlake.errors import CoprlakeError
from coprlake.predicate.predicates import Predicate
from coprlake.query import duck_scan
from coprlake.query.resolving import resolved, time_column
from coprlake.query.searching import Search
from coprlake.testing.torture.answers.foreign_data import ID
from coprlake.testing.torture.answers.oracle import answer, is_in_time
from coprlake.testing.torture.answers.plain_rows import Moment, Row, clipped, is_valid_text, plain_rows
from coprlake.testing.torture.answers.plain_sql import NoSqlError, PlainTable
from coprlake.testing.torture.answers.random_pipelines import Pipeline, UndefinedError
from coprlake.testing.torture.answers.writers import Written

Answer: TypeAlias = Any
"""Row numbers, rows, or the name of an expected error."""


@dataclass(frozen=True)
class SearchCase:
    """A search: the predicate, the time range, and what else to check."""

    predicate: Predicate
    since: int | None = None
    until: int | None = None
    extra: str = ""
    """An extra check: ``threads``, ``newest``, ``oldest``, ``count``, ``limit`` or ``rows``."""

    def __str__(self) -> str:
        times = f", since={self.since}, until={self.until}" if (self.since, self.until) != (None, None) else ""
        return f"search({self.predicate!r}{times}){' ' if self.extra else ''}{self.extra}"


class OpenTable:
    """A written table, with its rows as the oracle and DuckDB see them."""

    def __init__(self, written: Written) -> None:
        self.table = written.table
        self.schema: pa.Schema = written.data.schema
        self.rows: list[Row] = plain_rows(written.data)
        self.is_utf8 = is_valid_text(written.data)
        self._plain: PlainTable | None = None
        with suppress(NoSqlError):
            self._plain = PlainTable(written.files, written.partition_by) if written.files else None

    def close(self) -> None:
        """Release DuckDB's copy."""
        if self._plain is not None:
            self._plain.close()

    def sql_ids(self, asked: SearchCase) -> list[int] | None:
        """The rows that plain SQL finds; None if SQL cannot express the search."""
        if self._plain is None:
            return None
        try:
            return self._plain.ids(asked.predicate, asked.since, asked.until)
        except (NoSqlError, RecursionError):
            return None


def _attempt(way: str, run: Callable[[], Answer]) -> Answer:
    """The answer, or the name of a clean error; the text of an unclean error equals no other answer."""
    try:
        return run()
    except CoprlakeError as error:
        return f"error: {type(error).__name__}"
    except Exception as error:
        return f"unclean: {type(error).__name__} in {way}: {str(error)[:300]}"


def wrong_search(table: OpenTable, asked: SearchCase, seen: Callable[[str], None] = lambda way: None) -> str | None:
    """What is wrong with the answers to a search; None if nothing is. `seen` is called with each extra way compared."""

    def search(**how: Any) -> Search:
        return table.table.search(asked.predicate, since=asked.since, until=asked.until, strict=True, **how)

    def ids(**how: Any) -> list[int]:
        return search(columns=[ID], **how).arrow().column(ID).to_pylist()

    sketched = _attempt("with sketches", lambda: sorted(ids(threads=1)))
    scanned = _attempt("without sketches", lambda: sorted(ids(threads=1, use_sketches=False)))
    for found in (sketched, scanned):
        if isinstance(found, str) and found.startswith("unclean"):
            return found
    if sketched != scanned:
        return f"with sketches {_shown(sketched)}, without {_shown(scanned)}"
    if isinstance(sketched, str):
        return None
    asked = replace(asked, predicate=resolved(asked.predicate, table.table.schema))
    problem = _against_oracle(table, asked, sketched)
    if problem is not None:
        return problem
    by_sql = table.sql_ids(asked)
    if by_sql is not None:
        seen("sql")
        if sorted(by_sql) != sketched:
            return f"found {_shown(sketched)}, DuckDB's SQL {_shown(sorted(by_sql))}"
    extra = _attempt(asked.extra, lambda: _wrong_extra(table, asked, sketched, search, ids))
    return None if extra is None else str(extra)


def _against_oracle(table: OpenTable, asked: SearchCase, found: list[int]) -> str | None:
    if len(set(found)) != len(found):
        return f"rows were found twice: {_shown(found)}"
    got = set(found)
    time = time_column(table.table.schema)
    for row in table.rows:
        expected = is_in_time(row, time, asked.since, asked.until) and answer(asked.predicate, row)
        if expected is not None and expected != (row[ID] in got):
            verb = "is missing" if expected else "must not be found"
            return f"row {row[ID]} {verb}: { {name: value for name, value in row.items() if value is not None} }"
    return None


def _wrong_extra(
    table: OpenTable, asked: SearchCase, found: list[int], search: Callable[..., Search], ids: Callable[..., list[int]]
) -> str | None:
    if asked.extra == "threads":
        some, many = sorted(ids()), sorted(ids(threads=5))
        return None if some == many == found else f"1 thread {_shown(found)}, {_shown(some)}, 5 threads {_shown(many)}"
    if asked.extra == "count":
        counted = search().count(), search(use_sketches=False).count()
        return None if counted == (len(found), len(found)) else f"counted {counted}, found {len(found)}"
    if asked.extra == "limit":
        some = ids(limit=3)
        right = len(some) == min(3, len(found)) and set(some) <= set(found) and len(set(some)) == len(some)
        return None if right else f"with a limit of 3 {_shown(some)} of {_shown(found)}"
    if asked.extra in ("newest", "oldest"):
        return _wrong_order(table, asked.extra, ids(order=asked.extra), found)
    if asked.extra == "rows":
        return _wrong_rows(table, search().arrow(), found)
    return None


def _wrong_order(table: OpenTable, order: str, ordered: list[int], found: list[int]) -> str | None:
    if sorted(ordered) != found:
        return f"{order} first {_shown(ordered)}, in any order {_shown(found)}"
    moments = {row[ID]: row.get(time_column(table.table.schema) or "") for row in table.rows}
    times = [clipped(moment.microseconds // 1) for number in ordered if isinstance(moment := moments[number], Moment)]
    return None if times == sorted(times, reverse=order == "newest") else f"{order} first is not in order: {ordered}"


def _wrong_rows(table: OpenTable, answer_table: pa.Table, found: list[int]) -> str | None:
    """What is wrong with the returned records, compared with the stored ones; None if nothing is."""
    stored = {row[ID]: row for row in table.rows}
    for row in plain_rows(answer_table):
        for name, value in row.items():
            if repr(value) != repr(stored[row[ID]].get(name)):
                return f"row {row[ID]} has {name} = {stored[row[ID]].get(name)!r}, given back as {value!r}"
    return None


def _shown(found: Answer) -> str:
    text = str(found)
    return text if len(text) < 200 else f"{text[:200]}... ({len(found)})"


@contextmanager
def _files_by_duckdb() -> Iterator[None]:
    """Make DuckDB read the files itself, however little pruning leaves."""
    before = duck_scan.LITTLE_BYTES
    duck_scan.LITTLE_BYTES = 0  # type: ignore[misc]
    try:
        yield
    finally:
        duck_scan.LITTLE_BYTES = before  # type: ignore[misc]


def wrong_pipeline(
    table: OpenTable, pipeline: Pipeline, by_files: bool, seen: Callable[[str], None] = lambda way: None
) -> str | None:
    """What is wrong with the answers to a query; None if nothing is."""

    def query(text: str = pipeline.text, **how: Any) -> Answer:
        return pipeline.shown(table.table.query(text, **how).arrow())

    answers = {"with sketches": _attempt("with sketches", query)}
    answers["without sketches"] = _attempt("without sketches", lambda: query(use_sketches=False))
    if by_files:
        with _files_by_duckdb():
            answers["files read by DuckDB"] = _attempt("files read by DuckDB", query)
    for found in answers.values():
        if isinstance(found, str) and found.startswith("unclean"):
            return found
    if not table.is_utf8:  # DuckDB rejects invalid text when it reads it, which pruning may prevent
        answers = {way: found for way, found in answers.items() if not isinstance(found, str)}
        answers.setdefault("with sketches", next(iter(answers.values()), "error"))
    first = answers["with sketches"]
    for way, found in answers.items():
        if found != first:
            return f"with sketches {_shown(first)}, {way} {_shown(found)}"
    if isinstance(first, str):
        return None
    try:
        meant = pipeline.meaning(table.rows)
        seen("meaning")
        if meant != first:
            return f"found {_shown(first)}, meant {_shown(meant)}"
    except UndefinedError:
        pass
    if pipeline.end in ("ids", "count") and pipeline.counting is not None:
        counting = pipeline.counting
        counted = _attempt("countIf", lambda: table.table.query(counting).arrow().column("n").to_pylist()[0])
        kept = len(first) if pipeline.end == "ids" else first[0]
        if counted != kept and (table.is_utf8 or not isinstance(counted, str)):
            return f"filter keeps {kept}, countIf counts {counted}: {counting}"
    return None


EXTRAS = ("", "", "", "", "", "threads", "newest", "oldest", "count", "limit", "rows")


def random_extra(chance: random.Random) -> str:
    """A random extra check for a search."""
    return chance.choice(EXTRAS)
