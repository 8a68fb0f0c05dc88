"""``coprlake vacuum``: remove files that nothing needs any more."""

from datetime import timedelta

import click

from coprlake.cli.options.filters import table_argument
from coprlake.cli.options.time_option import span_option
from coprlake.cli.printing import figures
from coprlake.cli.printing.harmless import one_line
from coprlake.cli.printing.json_reports import echo_json
from coprlake.cli.printing.notices import color_option, note
from coprlake.config import VACUUM_HOURS


@click.command(short_help="Remove files that no recent version needs.")
@table_argument
@click.option(
    "--retain", type=span_option, metavar="SPAN", help="Keep what versions of this time need, such as 7d, the default."
)
@click.option("--older-than-hours", type=click.FloatRange(0), metavar="HOURS", help="The same in hours.")
@click.option("--dry-run", is_flag=True, help="List the files, and remove none.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@color_option
def vacuum(table: str, retain: timedelta | None, older_than_hours: float | None, dry_run: bool, as_json: bool) -> None:
    """Remove the files of old versions, and what an interrupted writer left behind.

    Earlier versions of the table cannot be read after that. A span that is shorter than the longest search or ingest
    takes the files away from under it.
    """
    from coprlake.cli.options.table_argument import opened

    if retain is not None and older_than_hours is not None:
        raise click.UsageError("--retain and --older-than-hours contradict each other")
    hours = retain / timedelta(hours=1) if retain is not None else older_than_hours
    report = opened(table).vacuum(retention_hours=VACUUM_HOURS if hours is None else hours, dry_run=dry_run)
    files = [*report.data_files, *report.sidecars, *report.leftovers]
    if as_json:
        echo_json(report)
    elif not files:
        note("nothing to remove")
    else:
        if dry_run:
            click.echo("\n".join(map(one_line, files)))
        verb = "would remove" if dry_run else "removed"
        parts = ", ".join(
            figures.amount(len(names), *word)
            for names, word in (
                (report.data_files, ("data file",)),
                (report.sidecars, ("sidecar",)),
                (report.leftovers, ("leftover",)),
            )
            if names
        )
        click.echo(f"{verb} {parts}: {figures.size(report.bytes)}", err=dry_run)
