"""``coprlake verify``: check that no file of a table is missing or damaged."""

import dataclasses

import click

from coprlake.cli.options.filters import table_argument
from coprlake.cli.printing import figures
from coprlake.cli.printing.harmless import one_line
from coprlake.cli.printing.json_reports import echo_json
from coprlake.cli.printing.notices import color_option, note
from coprlake.cli.printing.progress_bar import progress_bar


@click.command(
    short_help="Check all files of a table for damage.",
    epilog="Exit codes: 0 if the table is sound, 1 if there are problems, 2 if there is no table to check.",
)
@table_argument
@click.option("--deep", is_flag=True, help="Also read all data, and check that the index has every token.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@color_option
@click.pass_context
def verify(ctx: click.Context, table: str, deep: bool, as_json: bool) -> None:
    """Check each data file against the log, and each index file against its checksums and its data file."""
    from coprlake.cli.options.table_argument import opened, total_bytes
    from coprlake.errors import UnreadableTableError
    from coprlake.storage.verifying import verify_log

    try:
        opened_table = opened(table)
    except UnreadableTableError:
        report = verify_log(table)
        if not report.log_problems:
            raise
    else:
        with progress_bar("verifying", total_bytes(opened_table)) as advance:
            report = opened_table.verify(deep=deep, progress=advance)
    if as_json:
        echo_json(dataclasses.asdict(report) | {"is_sound": report.is_sound})
        ctx.exit(0 if report.is_sound else 1)
    checked = f"{figures.amount(report.segments, 'segment')}, {figures.amount(report.rows, 'record')}"
    if report.is_sound:
        click.echo(f"{click.style('sound', fg='green')}: {checked}")
        if not deep and report.segments:
            note("the data was not read: sizes, footers and index files were checked; --deep reads everything")
        return
    for problem in report.log_problems:
        click.echo(f"{click.style('log', fg='red', bold=True)}      {problem}")
    for problem in report.data_problems:
        click.echo(f"{click.style('data', fg='red', bold=True)}     {one_line(problem)}")
    for problem in report.sidecar_problems:
        click.echo(f"{click.style('sidecar', fg='yellow', bold=True)}  {one_line(problem)}")
    data, sidecars = len(report.data_problems), len(report.sidecar_problems)
    found = f"{figures.amount(data, 'problem')} with data, {sidecars:,} with sidecars"
    if report.log_problems:
        found = f"{figures.amount(len(report.log_problems), 'problem')} with the log, {data:,} with data, " + (
            f"{sidecars:,} with sidecars"
        )
    click.echo(f"{click.style('not sound', fg='red')}: {checked}; {found}")
    if sidecars:
        note(
            "searches are still right without sidecars, only slower; `coprlake index` rewrites missing and damaged ones"
        )
    ctx.exit(1)
