"""Which query of which table, under which limits: what `query` and `shell` share."""

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
    """Everything about a query but its text and its table.

    Attributes:
        since: of this time and later, up to now without `until`; what the query says counts more.
        until: before this time.
        variables: the values of ``$names``.
        timeout: how long it may take.
        rows: at most so many; None for all.
        memory_bytes: that DuckDB may use.
        threads: that DuckDB may use.
        use_sketches: whether the index is used.
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
        """The query, understood but not run: on Spark if there is a session, else on DuckDB."""
        from coprlake.query.fetching import ANY_TABLE

        wishes: dict[str, Any] = {
            "tables": ANY_TABLE,  # who types has the rights of the process anyway
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
        """What it may take."""
        from coprlake.query.limits import Limits

        seconds = None if self.timeout is None else self.timeout.total_seconds()
        return Limits(seconds=seconds, rows=self.rows, memory_bytes=self.memory_bytes, threads=self.threads)


@contextmanager
def heard() -> Iterator[None]:
    """Ctrl-C is a KeyboardInterrupt, whatever DuckDB makes of it."""
    try:
        yield
    except RuntimeError as error:
        if "interrupted" not in str(error).lower():
            raise
        raise KeyboardInterrupt from error


class Asked(NamedTuple):
    """A query and the table it is asked of."""

    text: str
    table: str


def asked(positional: Sequence[str], file: str | None, table: str | None) -> Asked:
    """Tell the query from the table; see the help of `query`.

    Raises:
        click.UsageError: one of them is missing, or there is too much.
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
        left.reverse()  # the table first: nobody can mean it otherwise
    query = None
    if file is None and left and (len(left) == 2 or _is_query(left[0]) or fallback):
        query = left.pop(0)
    found = left[0] if left else fallback
    if not found:
        raise click.UsageError(f"which table? Name it behind the query, with --table, or in {TABLE_VARIABLE}")
    if query is None and file is None:
        raise click.UsageError('which query? Write it before the table in quotes: "fetch logs | limit 10"')
    return Asked(_read(file) if file is not None else _read("-") if query == STANDARD_INPUT else str(query), found)


def _is_query(text: str) -> bool:
    """Whether this is a query and no path: one has more than a word, and is no folder."""
    return text == STANDARD_INPUT or (re.search(r"[\s|]", text.strip()) is not None and not Path(text).is_dir())


def _read(file: str) -> str:
    """The text of a file, or what comes in."""
    try:
        data = sys.stdin.buffer.read() if file == STANDARD_INPUT else Path(file).read_bytes()
        return data.decode("utf-8-sig").rstrip()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: a query is text in UTF-8, and this is not") from error


def _variables(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> dict[str, Any]:
    """``name=value`` as an option: numbers, true, false, null and what is in quotes or brackets are JSON, else text."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().removeprefix("$")
        if not equals or not _NAME.fullmatch(name):
            raise click.BadParameter(f"{text!r} is no variable; expected NAME=VALUE, such as user=ann", ctx, param)
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
        help="From this time on, until now without --until, unless the query has a from: of its own.",
    ),
    click.option("--until", type=moment_option, metavar="TIME", help="Before this time, unless it has a to:."),
    click.option(
        "--set",
        "values",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_variables,
        help="The value of $NAME in the query: a number, true, false, null, a JSON array, or else a text; "
        "in double quotes it is always a text. Repeat it for several.",
    ),
    click.option("--timeout", type=span_option, metavar="SPAN", help="Stop after this time, such as 30s or 5m."),
    click.option("--memory", type=parse_size, metavar="SIZE", help="What DuckDB may use, such as 2GB."),
    click.option("--threads", type=click.IntRange(1), metavar="N", help="Threads of DuckDB; by default one a core."),
    click.option("--no-index", is_flag=True, hidden=True, help="Prune by time and partition alone."),
]


def terms_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options for times, variables and limits; the function gets one argument for all: `terms`."""

    @functools.wraps(function)
    def with_terms(*arguments: Any, **given: Any) -> Any:
        since: datetime | None = given.pop("since")
        until: datetime | None = given.pop("until")
        if since and until and since >= until:
            raise click.UsageError("--since is not before --until, so there is nothing between")
        timeout: timedelta | None = given.pop("timeout")
        if timeout is not None and timeout <= timedelta():
            raise click.UsageError("--timeout is no time at all")
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
