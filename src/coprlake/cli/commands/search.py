"""``coprlake search``: find records, and print them for people or for programs."""

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import IO, TYPE_CHECKING, TypeAlias

import click

from coprlake.cli.options.engine import Engine, engine_options
from coprlake.cli.options.filters import SearchRequest, filter_options
from coprlake.cli.printing import figures
from coprlake.cli.printing.notices import Failure, color_option, is_colored, note, warn_each
from coprlake.cli.printing.record_layout import FOR_PEOPLE, OUTPUTS, Shown, chosen_layout, needed_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from coprlake.cli.commands.spark_search import SparkResults
    from coprlake.cli.printing.search_output import Writer
    from coprlake.query.searching import Search
    from coprlake.table import Table

    SearchResults: TypeAlias = Search | SparkResults


@click.command(
    short_help="Find records and print them.",
    epilog="Exit codes: 0 if a record matches, 1 if none does, 2 after an error.",
)
@filter_options
@click.option(
    "--order",
    type=click.Choice(["newest", "oldest", "any"]),
    default="newest",
    show_default=True,
    help="Order of the results, by time; any is fastest.",
)
@click.option("-n", "--limit", type=click.IntRange(0), metavar="N", help="Stop after N matches.")
@click.option(
    "-A",
    "--after-context",
    "after",
    type=click.IntRange(0),
    metavar="N",
    help="Also show N records of the same source after each match.",
)
@click.option(
    "-B",
    "--before-context",
    "before",
    type=click.IntRange(0),
    metavar="N",
    help="Also show N records before each match.",
)
@click.option(
    "-C",
    "--context",
    "around",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Also show N records before and after each match.",
)
@click.option("-c", "--count", "only_count", is_flag=True, help="Print only the number of matching records.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; the exit code tells whether a record matches.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(OUTPUTS),
    help="Output format: aligned columns (table), only the log lines (lines), one JSON object per line (json), csv or "
    "parquet. Defaults to table on a terminal, and to lines otherwise.",
)
@click.option("--json", "as_json", is_flag=True, help="Short for -o json.")
@click.option("--columns", metavar="A,B", help="Columns to print.")
@click.option(
    "--out",
    type=click.Path(),
    metavar="FILE",
    help="Write to FILE; its suffix determines the format unless -o is given.",
)
@click.option(
    "--strict", is_flag=True, help="Fail if a file is missing or damaged, instead of warning and searching the rest."
)
@click.option(
    "--threads", type=click.IntRange(1), metavar="N", help="Batches to process in parallel. Defaults to one per core."
)
@click.option("--stats", is_flag=True, help="Also print to stderr what `explain` prints.")
@engine_options()
@color_option
@click.pass_context
def search(
    ctx: click.Context,
    asked: SearchRequest,
    order: str,
    limit: int | None,
    after: int | None,
    before: int | None,
    around: int,
    only_count: bool,
    quiet: bool,
    output: str | None,
    as_json: bool,
    columns: str | None,
    out: str | None,
    strict: bool,
    threads: int | None,
    stats: bool,
    engine: Engine,
) -> None:
    """Find records and print them, newest first.

    Arguments come in the same order as for grep: `coprlake search refused ./logs`. A single argument is TEXT if
    COPRLAKE_TABLE or --table names the table, and TABLE otherwise. Without TEXT, the other filters decide alone.

    TEXT consists of words, "phrases", field:value, -not and *: 'refused -debug level:error "by peer"'. All of them
    must hold, and words are looked for in every value of a record; -F takes TEXT as it is.

    On a terminal, each record is shown with its time, level and source, and matches are highlighted. In a pipe, only
    the log line is written, exactly as it was read, so grep, sort and wc work as they do on the log file.

    Use Spark for searches that read much of a large table. It prints once all of its tasks are done, and does not
    support context (-A, -B, -C).
    """
    if as_json and output not in (None, "json"):
        raise click.UsageError(f"--json and -o {output} contradict each other")
    if out is not None and (only_count or quiet):
        raise click.UsageError(f"--out and {'--count' if only_count else '--quiet'} contradict each other")
    context = (around if before is None else before, around if after is None else after)
    engine.able([*(["context (-A, -B, -C)"] if any(context) else []), *(["--threads"] if threads is not None else [])])
    from coprlake.cli.options.table_argument import opened

    table = opened(asked.table, may_be_text=not asked.texts)
    is_shown = not (quiet or only_count)
    shown = (
        chosen_layout(table, "json" if as_json else output, out, columns, has_context=any(context))
        if is_shown
        else None
    )
    with ExitStack() as stack:
        find = _finder(table, asked, engine, stack, threads=threads, strict=strict)
        started = time.perf_counter()
        if shown is None:
            found = find(order="any", limit=1 if quiet else None, columns=table.schema.names[:1])
            count = sum(batch.num_rows for batch in found) if quiet else found.count()
            _fail_or_warn(found, strict)
            if only_count and not quiet:
                click.echo(count if limit is None else min(count, limit))
        else:
            needed = needed_columns(table, shown.columns)
            found = find(order=order, limit=limit, columns=needed, **({"context": context} if any(context) else {}))
            count = _write(found, asked, shown, strict)
            _fail_or_warn(found, strict)
            if not count and shown.output in FOR_PEOPLE:
                note(_nothing(table, asked))
            elif shown.out not in (None, "-"):
                note(f"{figures.amount(count, 'record')} written to {shown.out}")
        if stats:
            note(_statistics(found, table, time.perf_counter() - started), is_styled=True)
    if found.report.is_incomplete:
        ctx.exit(2)  # as grep does when it could not read a file
    ctx.exit(0 if count else 1)


def _finder(
    table: "Table", asked: SearchRequest, engine: Engine, stack: ExitStack, *, threads: int | None, strict: bool
) -> "Callable[..., SearchResults]":
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


def _write(found: "SearchResults", asked: SearchRequest, shown: Shown, strict: bool) -> int:
    """Write all results; return how many records matched."""
    from coprlake.cli.printing.search_output import destination

    count = 0
    with destination(shown.out) as out:
        writer = _writer(found, asked, shown, out)
        try:
            for batch in found:
                if strict:
                    _fail_if_wrong(found)
                writer.write(batch)
                count += _match_count(batch) if shown.has_context else batch.num_rows
        finally:
            writer.close()
        if strict:  # before the file gets its name
            _fail_if_wrong(found)
    return count


def _match_count(batch: "pa.RecordBatch") -> int:
    """The records that matched: the others are their context."""
    import pyarrow as pa

    is_match = batch.column("match")
    assert isinstance(is_match, pa.BooleanArray), is_match.type
    return is_match.true_count


def _writer(found: "SearchResults", asked: SearchRequest, shown: Shown, out: IO[bytes]) -> "Writer":
    from coprlake.cli.printing import search_output as outputs

    predicate = asked.predicate() if is_colored() and shown.out in (None, "-") else None
    if shown.output == "table":
        return outputs.ColumnWriter(
            out, shown.columns, predicate, header=shown.are_columns_chosen, has_context=shown.has_context
        )
    if shown.output == "lines":
        return outputs.LinesWriter(
            out, shown.columns, predicate, is_terminal=shown.is_terminal, has_context=shown.has_context
        )
    if shown.output == "json":
        return outputs.JsonWriter(out, shown.columns)
    if shown.output == "csv":
        return outputs.CsvWriter(out, shown.columns, shown.is_terminal)
    return outputs.ParquetWriter(out, shown.columns, found.schema)


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
