"""``coprlake search``: find records, and print them for people or for programs."""

import itertools
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import click

from coprlake.cli.options.doubtful import check_filters
from coprlake.cli.options.engine import Engine, engine_options
from coprlake.cli.options.filters import SearchRequest, filter_options
from coprlake.cli.options.search_options import Printing, printing_options
from coprlake.cli.printing import figures
from coprlake.cli.printing.notices import Failure, color_option, note, warn_each
from coprlake.cli.printing.record_layout import FOR_PEOPLE, Shown, chosen_layout, needed_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from coprlake.cli.commands.spark_search import SparkResults
    from coprlake.query.searching import Search
    from coprlake.table import Table

    SearchResults: TypeAlias = Search | SparkResults
    Finder: TypeAlias = Callable[..., SearchResults]


@click.command(
    short_help="Find records and print them.",
    epilog="Exit codes: 0 if a record matches, 1 if none does, 2 after an error.",
)
@filter_options
@printing_options
@engine_options()
@color_option
@click.pass_context
def search(ctx: click.Context, asked: SearchRequest, printing: Printing, engine: Engine) -> None:
    """Find records and print them, newest first.

    Arguments come in the same order as for grep: `coprlake search refused ./logs`. A single argument is TEXT if
    COPRLAKE_TABLE or --table names the table, and TABLE otherwise. Without TEXT, the other filters decide alone.

    TEXT consists of words, "phrases", field:value, -not and *: 'refused -debug level:error "by peer"'. All of them
    must hold, and words are looked for in every value of a record; -F takes TEXT as it is.

    On a terminal, each record is shown with its local time, level and source, matches are highlighted, further lines of
    a record are folded, and more than a screen goes to a pager. In a pipe, only the log line is written as it was read,
    so grep, sort and wc work as they do on the log file, and jq on records that came from JSON.

    Use Spark for searches that read much of a large table. It prints once all of its tasks are done, and does not
    support context (-A, -B, -C) and --follow.
    """
    printing.check(has_texts=bool(asked.texts), is_inverted=asked.invert_match)
    wanted = {
        "context (-A, -B, -C)": any(printing.context),
        "--threads": printing.threads is not None,
        "--follow": printing.follow,
    }
    engine = engine.able([name for name, is_wanted in wanted.items() if is_wanted])
    from coprlake.cli.options.table_argument import opened

    table = opened(asked.table, texts=asked.texts)
    check_filters(asked, table, is_quiet=printing.quiet)
    if printing.follow:
        from coprlake.cli.commands.search_following import follow

        follow(table, asked, printing)
        return
    with ExitStack() as stack:
        find = _finder(table, asked, engine, stack, threads=printing.threads, strict=printing.strict)
        started = time.perf_counter()
        if printing.quiet or printing.only_count:
            found, count = _counted(table, find, printing)
        elif printing.only_names:
            found, count = _named(table, find, printing)
        else:
            found, count = _printed(table, find, asked, printing)
        if printing.stats:
            note(_statistics(found, table, time.perf_counter() - started), is_styled=True)
    if found.report.is_incomplete:
        ctx.exit(2)  # as grep does when it could not read a file
    ctx.exit(0 if count else 1)


def _counted(table: "Table", find: "Finder", printing: Printing) -> "tuple[SearchResults, int]":
    """Count the matches, or look whether there is one."""
    found = find(order="any", limit=1 if printing.quiet else None, columns=table.schema.names[:1])
    count = sum(batch.num_rows for batch in found) if printing.quiet else found.count()
    _fail_or_warn(found, printing.strict)
    if not printing.quiet:
        click.echo(count if printing.limit is None else min(count, printing.limit))
    return found, count


def _named(table: "Table", find: "Finder", printing: Printing) -> "tuple[SearchResults, int]":
    """Print the sources that have a match."""
    from coprlake.cli.printing.harmless import one_line
    from coprlake.cli.printing.search_output import destination
    from coprlake.records import SOURCE

    if SOURCE not in table.schema.names:
        raise click.UsageError(f"--files-with-matches needs a column {SOURCE}; the table has none")
    found, count = find(order="any", columns=[SOURCE]), 0
    is_terminal = printing.out in (None, "-") and sys.stdout.isatty()
    with destination(printing.out) as out:
        for name in itertools.islice(found.distinct(SOURCE), printing.limit):
            out.write(((one_line(name or "") if is_terminal else name or "") + "\n").encode(errors="replace"))
            out.flush()
            count += 1
        if printing.strict:
            _fail_if_wrong(found)
    _fail_or_warn(found, printing.strict)
    return found, count


def _printed(table: "Table", find: "Finder", asked: SearchRequest, printing: Printing) -> "tuple[SearchResults, int]":
    """Print the matching records."""
    shown = chosen_layout(
        table,
        "lines" if printing.only_matching else "json" if printing.as_json else printing.output,
        printing.out,
        printing.columns,
        has_context=any(printing.context),
        is_raw=printing.raw,
    )
    needed = list(table.schema.names)
    if not printing.only_matching:
        needed = needed_columns(table, shown.columns, are_originals=shown.are_originals)
    options = {"context": printing.context} if any(printing.context) else {}
    found = find(order=printing.order, limit=printing.limit, columns=needed, **options)
    count = _write(table, found, asked, shown, printing)
    _fail_or_warn(found, printing.strict)
    if not count and shown.output in FOR_PEOPLE:
        note(_nothing(table, asked))
    elif shown.out not in (None, "-"):
        note(f"{figures.amount(count, 'record')} written to {shown.out}")
    return found, count


def _finder(
    table: "Table", asked: SearchRequest, engine: Engine, stack: ExitStack, *, threads: int | None, strict: bool
) -> "Finder":
    """Return a function that searches in a given order; a Spark session lasts until the stack is closed."""
    if not engine.is_spark or not table.snapshot().segments:  # an empty table needs no Spark
        return partial(asked.search, table, threads=threads, strict=strict)
    spark = stack.enter_context(engine.session())
    from coprlake.cli.commands.spark_search import SparkResults

    return partial(SparkResults, spark, table, asked, strict=strict)


def _statistics(found: "SearchResults", table: "Table", elapsed: float) -> str:
    from coprlake.cli.commands.explain import explanation, explanation_of_plan
    from coprlake.query.searching import Search

    if isinstance(found, Search):
        return explanation(found.report, table, elapsed)
    return explanation_of_plan(found.report, found.done_by, elapsed)


def _write(table: "Table", found: "SearchResults", asked: SearchRequest, shown: Shown, printing: Printing) -> int:
    """Write all results; return how many records matched."""
    from coprlake.cli.printing.pager import paged
    from coprlake.cli.printing.record_writers import new_writer
    from coprlake.cli.printing.search_output import destination

    count = 0
    with paged() if shown.is_terminal and not printing.no_pager else destination(shown.out) as out:
        writer = new_writer(table, found.schema, asked, shown, printing, out)
        try:
            for batch in found:
                if printing.strict:
                    _fail_if_wrong(found)
                writer.write(batch)
                count += _match_count(batch) if shown.has_context else batch.num_rows
        finally:
            writer.close()
        if printing.strict:  # before the file gets its name
            _fail_if_wrong(found)
    return count


def _match_count(batch: "pa.RecordBatch") -> int:
    """The records that matched: the others are their context."""
    import pyarrow as pa

    is_match = batch.column("match")
    assert isinstance(is_match, pa.BooleanArray), is_match.type
    return is_match.true_count


def _fail_or_warn(found: "SearchResults", strict: bool) -> None:
    if strict:
        _fail_if_wrong(found)
    warn_each(found.report.problems)


def _fail_if_wrong(found: "SearchResults") -> None:
    problems = found.report.problems
    if problems:
        raise Failure("; ".join(problems[:3]) + (f"; and {len(problems) - 3:,} more" if len(problems) > 3 else ""))


def _nothing(table: "Table", asked: SearchRequest) -> str:
    """Explain an empty result."""
    if not table.snapshot().segments:
        return f"{asked.table}: the table has no records yet; `coprlake ingest` adds some"
    if len(asked.texts) == 1 and asked.texts[0] != asked.table and os.path.isdir(asked.texts[0]):  # noqa: PTH112
        return f"no match for {asked.texts[0]!r} in {asked.table}; if you meant it as the table, use --table"
    return f"no match in {asked.table}"
