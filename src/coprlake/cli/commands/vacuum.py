"""``coprlake vacuum``: remove files that are no longer needed."""

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from coprlake.cli.options.filters import table_argument
from coprlake.cli.options.renamed_option import renamed_option
from coprlake.cli.options.time_option import span_option
from coprlake.cli.printing import figures
from coprlake.cli.printing.harmless import one_line
from coprlake.cli.printing.json_reports import echo_json
from coprlake.cli.printing.notices import Failure, color_option, is_terminal, note
from coprlake.config import VACUUM_HOURS

if TYPE_CHECKING:
    from coprlake.table import Table

_SAFE_HOURS = 1
"""Below this, files may go that a search or a writer is using."""


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
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation, even if --keep is less than an hour.")
@click.option("--dry-run", is_flag=True, help="List the files, and remove nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@color_option
@click.pass_context
def vacuum(
    ctx: click.Context,
    table: str,
    keep: timedelta | None,
    older_than_hours: float | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove the files of old versions, and files that interrupted writers left behind.

    Versions older than --keep cannot be read afterwards. Keep at least as long as your longest search or ingest takes:
    it fails if its files are removed. If you keep less than an hour, you are asked first.
    """
    from coprlake.cli.options.table_argument import opened

    if keep is not None and older_than_hours is not None:
        raise click.UsageError("--keep and --older-than-hours contradict each other")
    hours = keep / timedelta(hours=1) if keep is not None else older_than_hours
    hours = VACUUM_HOURS if hours is None else hours
    opened_table = opened(table)
    if hours < _SAFE_HOURS and not (yes or dry_run):
        _confirm(ctx, opened_table, hours)
    report = opened_table.vacuum(retention_hours=hours, dry_run=dry_run)
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


def _confirm(ctx: click.Context, table: "Table", hours: float) -> None:
    """Ask before files are removed that somebody may be using."""
    if not is_terminal():
        raise Failure(
            "keeping less than an hour removes files that searches and writers may be using, and there is no terminal "
            "to ask for confirmation; add --yes to do it, or --dry-run to list the files"
        )
    found = table.vacuum(retention_hours=hours, dry_run=True)
    count = len(found.data_files) + len(found.sidecars) + len(found.leftovers)
    note(
        f"this removes {figures.amount(count, 'file')} ({figures.size(found.bytes)}) and all versions but the newest; "
        "searches and writers that are using them will fail"
    )
    if not click.confirm("Remove?", err=True):
        note("nothing was removed")
        ctx.exit(1)
