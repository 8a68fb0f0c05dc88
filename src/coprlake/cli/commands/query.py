"""``coprlake query``: run a query, and print its result for people or for programs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from coprlake.cli.options.choices import NearestChoice
from coprlake.cli.options.engine import Engine, engine_options
from coprlake.cli.options.query_options import Terms, asked, heard, terms_options
from coprlake.cli.printing import figures
from coprlake.cli.printing.notices import color_option, note, warn_each
from coprlake.cli.printing.record_layout import OUTPUTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coprlake.cli.printing.answers import Form
    from coprlake.query.querying import Query


@click.command(
    short_help="Run a query: filter, parse, aggregate, chart.",
    epilog="\b\nExamples:\n"
    """  coprlake query 'fetch logs | filter loglevel == "ERROR" | summarize count(), by:{source}' ./logs\n"""
    "  coprlake query 'fetch logs, from:-2h | makeTimeseries count(), by:{loglevel}' ./logs\n"
    "  coprlake query 'fetch logs | filter contains(content, $id)' ./logs --set id=4711-a\n\n"
    "Exit codes: 0 if the query ran, even if it found no records; 2 after an error.",
)
@click.argument("positional", nargs=-1, metavar="[QUERY] [TABLE]", type=click.Path(allow_dash=True))
@click.option("-t", "--table", metavar="TABLE", type=click.Path(), help="The table; the only argument is then QUERY.")
@click.option(
    "--file",
    "file",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Read the query from FILE; - for standard input. The only argument is then TABLE.",
)
@terms_options
@click.option(
    "--max-rows",
    type=click.IntRange(0),
    metavar="N",
    help="Stop after N rows; 0 for all. Defaults to 1,000 for a table on a terminal, and to all otherwise.",
)
@click.option(
    "-o",
    "--output",
    "--format",
    "output",
    type=NearestChoice(OUTPUTS),
    help="Output format: an aligned table, tab-separated values (lines), one JSON object per line (json), csv or "
    "parquet. Defaults to table on a terminal, and to lines otherwise.",
)
@click.option("--json", "as_json", is_flag=True, help="Short for -o json.")
@click.option(
    "--out",
    type=click.Path(),
    metavar="FILE",
    help="Write to FILE; its suffix determines the format unless -o is given.",
)
@click.option(
    "--chart/--no-chart",
    "chart",
    default=None,
    help="Draw a sparkline for each time series, or a bar for each number with one or two keys. On a terminal, time "
    "series are drawn by default.",
)
@click.option("--explain", is_flag=True, help="Run the query, and print what it did instead of its rows.")
@click.option("--stats", is_flag=True, help="Also print to stderr what --explain prints.")
@engine_options("duckdb")
@color_option
def query(
    positional: tuple[str, ...],
    table: str | None,
    file: str | None,
    terms: Terms,
    max_rows: int | None,
    output: str | None,
    as_json: bool,
    out: str | None,
    chart: bool | None,
    explain: bool,
    stats: bool,
    engine: Engine,
) -> None:
    """Run a query on a table.

    A query is a pipeline of commands that begins with `fetch logs`, where `logs` stands for TABLE. Put it in quotes to
    protect it from the shell. QUERY and TABLE may come in either order; a QUERY of - is read from standard input. Use
    `coprlake shell` to run queries interactively, with completion.

    In JSON and CSV, times are ISO 8601 in UTC, durations are in nanoseconds, and nested values are objects and arrays.
    Warnings go to stderr. An error shows where in the query it occurred.
    """
    if as_json and output not in (None, "json"):
        raise click.UsageError(f"--json and -o {output} contradict each other")
    if explain and (out is not None or stats or chart is not None or output not in (None, "json")):
        raise click.UsageError(
            "--explain prints a report instead of rows, as text or with --json; leave out options about rows"
        )
    text, name = asked(positional, file, table)
    from coprlake.cli.options.table_argument import opened
    from coprlake.cli.printing import answers

    form = answers.chosen_form("json" if as_json else output, out, chart)
    if max_rows is None and form.is_for_people and not explain:
        max_rows = answers.ROWS_ON_A_TERMINAL
    terms = replace(terms, rows=max_rows or None)
    if engine.is_spark and (terms.memory_bytes or terms.threads):
        limit = "--memory" if terms.memory_bytes else "--threads"
        raise click.UsageError(f"{limit} limits DuckDB only; use --conf and --master to limit Spark")
    found = opened(name)
    with heard(), _spark(engine) as spark:
        started = time.perf_counter()
        understood = terms.ask(found, text, spark)
        warned = list(understood.warnings)
        warn_each(warned)
        if explain:
            _explain(understood, started, is_json=as_json or output == "json")
        else:
            answers.write(understood, form)
        tell(understood, form, warned)
        if stats:
            from coprlake.cli.printing.query_report import explanation

            note(explanation(understood, time.perf_counter() - started), is_styled=True)


@contextmanager
def _spark(engine: Engine) -> "Iterator[SparkSession | None]":
    """Start a Spark session if the engine is Spark."""
    if not engine.is_spark:
        yield None
        return
    with engine.session() as spark:
        yield spark


def _explain(understood: "Query", started: float, *, is_json: bool) -> None:
    from coprlake.cli.printing.json_reports import echo_json
    from coprlake.cli.printing.query_report import as_json, explanation

    understood.explain()
    elapsed = time.perf_counter() - started
    if is_json:
        echo_json(as_json(understood, elapsed))
    else:
        click.echo(explanation(understood, elapsed))


def tell(understood: "Query", form: "Form", warned: list[str]) -> None:
    """Print what accompanies a result: late warnings, problems with files, and whether rows were cut off."""
    report = understood.report
    late = [text for text in report.warnings if text not in warned]
    warn_each(late[:-1] if report.is_cut else late)
    for scan in report.scans:
        warn_each(scan.search.problems)
    if report.is_cut:
        shown = "the first row is" if report.rows == 1 else f"the first {report.rows:,} rows are"
        note(f"only {shown} shown; --max-rows N for more, 0 for all")
    elif not report.rows:
        note("no records")
    elif form.out not in (None, "-"):
        note(f"{figures.amount(report.rows, 'row')} written to {form.out}")
