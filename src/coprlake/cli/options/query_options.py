"""The options of `query` and `shell`: the query, its table, its variables and its limits."""

import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from coprlake.cli.options.filters import TABLE_VARIABLE
from coprlake.cli.options.time_option import moment_option, span_option
from coprlake.cli.printing.figures import parse_size
from coprlake.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coprlake.query.limits import Limits
    from coprlake.query.querying import Query
    from coprlake.table import Table

STANDARD_INPUT = "-"
_JSON = re.compile(r'-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null|".*"|\[.*\]', re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Terms:
    """The options of a query: everything but its text and its table.

    Attributes:
        since: start of the time range, which ends now without `until`; a time range in the query takes precedence.
        until: end of the time range, exclusive.
        variables: the values of ``$names``.
        timeout: how long the query may take.
        rows: the most rows to return; None for all.
        memory_bytes: the memory that DuckDB may use.
        threads: the threads that DuckDB may use.
        use_sketches: whether to use the index.
    """

    since: datetime | None = None
    until: datetime | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    timeout: timedelta | None = None
    rows: int | None = None
    memory_bytes: int | None = None
    threads: int | None = None
    use_sketches: bool = True

    def ask(self, table: "Table", text: str, spark: "SparkSession | None" = None) -> "Query":
        """Compile a query without running it, for Spark if there is a session, otherwise for DuckDB."""
        from coprlake.query.fetching import ANY_TABLE

        wishes: dict[str, Any] = {
            "tables": ANY_TABLE,  # whoever types has the rights of the process anyway
            "since": self.since,
            "until": self.until,
            "variables": self.variables,
            "limits": self.limits(),
            "use_sketches": self.use_sketches,
        }
        if spark is None:
            return table.query(text, **wishes)
        from coprlake.spark.jobs.querying import query

        return query(spark, table, text, **wishes)

    def limits(self) -> "Limits":
        """Return the limits of the query."""
        from coprlake.query.limits import Limits

        seconds = None if self.timeout is None else self.timeout.total_seconds()
        return Limits(seconds=seconds, rows=self.rows, memory_bytes=self.memory_bytes, threads=self.threads)


@contextmanager
def heard() -> Iterator[None]:
    """Turn DuckDB's error after Ctrl-C into a KeyboardInterrupt."""
    try:
        yield
    except RuntimeError as error:
        if "interrupted" not in str(error).lower():
            raise
        raise KeyboardInterrupt from error


class QueryRequest(NamedTuple):
    """The text of a query, and the table to run it on."""

    text: str
    table: str


def asked(positional: Sequence[str], file: str | None, table: str | None) -> QueryRequest:
    """Tell the query from the table, as the help of `query` describes.

    Raises:
        click.UsageError: one of them is missing, or there are too many arguments.
    """
    fallback = table or os.environ.get(TABLE_VARIABLE) or None
    most = (0 if file else 1) + (0 if table else 1)
    if len(positional) > most:
        expected = ["QUERY"] * (file is None) + ["TABLE"] * (table is None)
        raise click.UsageError(
            f"expected {' and '.join(expected) or 'no argument'}, found {' '.join(map(repr, positional))}; "
            "put the query in quotes"
        )
    left = list(positional)
    if len(left) == 2 and _is_query(left[1]) and not _is_query(left[0]):
        left.reverse()  # the table was given first
    query = None
    if file is None and left and (len(left) == 2 or _is_query(left[0]) or fallback):
        query = left.pop(0)
    found = left[0] if left else fallback
    if not found:
        raise click.UsageError(f"no table given; name it after the query, with --table, or in {TABLE_VARIABLE}")
    if query is None and file is None:
        raise click.UsageError('no query given; write it in quotes before the table: "fetch logs | limit 10"')
    return QueryRequest(
        _read(file) if file is not None else _read("-") if query == STANDARD_INPUT else str(query), found
    )


def _is_query(text: str) -> bool:
    """Whether an argument is a query, not a path: it has more than one word, and no folder has its name."""
    return text == STANDARD_INPUT or (re.search(r"[\s|]", text.strip()) is not None and not Path(text).is_dir())


def _read(file: str) -> str:
    """Read the text of a file, or standard input."""
    try:
        data = sys.stdin.buffer.read() if file == STANDARD_INPUT else Path(file).read_bytes()
        return data.decode("utf-8-sig").rstrip()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not a query; expected text in UTF-8") from error


def _variables(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> dict[str, Any]:
    """Read ``name=value``: numbers, true, false, null, quoted text and arrays as JSON, anything else as text."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().removeprefix("$")
        if not equals or not _NAME.fullmatch(name):
            raise click.BadParameter(
                f"{text!r} is not a valid variable; expected NAME=VALUE, such as user=ann", ctx, param
            )
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    if _JSON.fullmatch(text.strip()):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


_OPTIONS = [
    click.option(
        "--since",
        type=moment_option,
        metavar="TIME",
        help="Start of the time range, which ends now without --until. A from: in the query takes precedence.",
    ),
    click.option(
        "--until",
        type=moment_option,
        metavar="TIME",
        help="End of the time range, exclusive. A to: in the query takes precedence.",
    ),
    click.option(
        "--set",
        "values",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_variables,
        help="Value of $NAME in the query: a number, true, false, null or a JSON array; anything else, or anything "
        "in double quotes, is text. Can be repeated.",
    ),
    click.option(
        "--timeout", type=span_option, metavar="SPAN", help="Stop the query after this time, such as 30s or 5m."
    ),
    click.option("--memory", type=parse_size, metavar="SIZE", help="Memory that DuckDB may use, such as 2GB."),
    click.option(
        "--threads", type=click.IntRange(1), metavar="N", help="Threads that DuckDB may use. Defaults to one per core."
    ),
    click.option(
        "--no-index", is_flag=True, hidden=True, help="Do not use the index: prune by time and partition only."
    ),
]


def terms_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for times, variables and limits to a command, passed to it as one argument, `terms`."""

    @functools.wraps(function)
    def with_terms(*arguments: Any, **given: Any) -> Any:
        since: datetime | None = given.pop("since")
        until: datetime | None = given.pop("until")
        if since and until and since >= until:
            raise click.UsageError("--since must be before --until")
        timeout: timedelta | None = given.pop("timeout")
        if timeout is not None and timeout <= timedelta():
            raise click.UsageError("--timeout must be longer than 0")
        terms = Terms(
            since,
            until,
            given.pop("values"),
            timeout,
            memory_bytes=given.pop("memory"),
            threads=given.pop("threads"),
            use_sketches=not given.pop("no_index"),
        )
        return function(*arguments, terms=terms, **given)

    decorated: Callable[..., Any] = with_terms
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
