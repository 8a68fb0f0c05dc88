"""``coprlake index``: index data files that have no index."""

import click

from coprlake.cli.options.engine import Engine, engine_options
from coprlake.cli.options.filters import table_argument
from coprlake.cli.options.target import rules_option
from coprlake.cli.printing import figures
from coprlake.cli.printing.json_reports import echo_json
from coprlake.cli.printing.notices import color_option, note, warn_each
from coprlake.cli.printing.progress_bar import job_bar, progress_bar
from coprlake.config import RuleSet


@click.command(
    short_help="Write missing or damaged index files.",
    epilog="Exits with 1 if a data file could not be indexed.",
)
@table_argument
@click.option(
    "--grams",
    multiple=True,
    metavar="FIELD",
    help="Field, other than the content, to index for search inside words. Can be repeated.",
)
@rules_option("Reindex segments that use other rules.")
@click.option("--rebuild", is_flag=True, help="Reindex all segments.")
@engine_options()
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@color_option
@click.pass_context
def index(
    ctx: click.Context,
    table: str,
    grams: tuple[str, ...],
    rules: RuleSet | None,
    rebuild: bool,
    engine: Engine,
    as_json: bool,
) -> None:
    """Index the data files that have no index, in a table or in a folder of Parquet files written by another program.

    The data files are only read, never changed.
    """
    from coprlake.cli.options.table_argument import opened, total_bytes

    opened_table = opened(table)
    total = total_bytes(opened_table)
    if engine.is_spark:
        from coprlake.spark import index as index_on_spark

        with engine.session() as spark, job_bar("indexing", total) as progress:
            report = index_on_spark(spark, opened_table, grams=grams, rules=rules, rebuild=rebuild, progress=progress)
    else:
        with progress_bar("indexing", total) as advance:
            report = opened_table.index(grams=grams, rules=rules, rebuild=rebuild, progress=advance)
    if as_json:
        echo_json(report)
    elif not report.indexed and not report.problems:
        note(f"nothing to do: {figures.amount(report.skipped, 'segment')}, all indexed; --rebuild indexes them again")
    else:
        share = figures.share_of_raw(report.index_bytes, report.raw_bytes)
        click.echo(
            f"indexed {figures.amount(report.indexed, 'segment')} in {figures.seconds(report.seconds)}: "
            f"{figures.size(report.index_bytes)} for {figures.size(report.raw_bytes)} of text"
            f"{f' ({share})' if share else ''}; {report.skipped:,} had one already"
        )
    if not as_json:
        warn_each(report.problems)
    ctx.exit(1 if report.problems else 0)
