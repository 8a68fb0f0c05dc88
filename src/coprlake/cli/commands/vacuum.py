"""``coprlake vacuum``: remove files that are no longer needed."""

from datetime import timedelta

import click

from coprlake.cli.options.filters import table_argument
from coprlake.cli.options.renamed_option import renamed_option
from coprlake.cli.options.time_option import span_option
from coprlake.cli.printing import figures
from coprlake.cli.printing.harmless import one_line
from coprlake.cli.printing.json_reports import echo_json
from coprlake.cli.printing.notices import color_option, note
from coprlake.config import VACUUM_HOURS


@click.command(short_help="Remove files that no recent version needs.")
@table_argument
@click.option(
    "--keep",
    type=span_option,
    metavar="SPAN",
    help="Keep the files of all versions younger than this, such as 7d, the default.",
)
@renamed_option("--retain", "--keep", span_option)
@click.option("--older-than-hours", type=click.FloatRange(0), metavar="HOURS", help="The same as --keep, in hours.")
@click.option("--dry-run", is_flag=True, help="List the files, and remove nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@color_option
def vacuum(table: str, keep: timedelta | None, older_than_hours: float | None, dry_run: bool, as_json: bool) -> None:
    """Remove the files of old versions, and files that interrupted writers left behind.

    Versions older than --keep cannot be read afterwards. Keep at least as long as your longest search or ingest takes:
    it fails if its files are removed.
    """
    from coprlake.cli.options.table_argument import opened

    if keep is not None and older_than_hours is not None:
        raise click.UsageError("--keep and --older-than-hours contradict each other")
    hours = keep / timedelta(hours=1) if keep is not None else older_than_hours
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
