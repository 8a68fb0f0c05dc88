"""``coprlake delete``: delete records that match a search, or that are too old."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from coprlake.cli.options.doubtful import check_filters
from coprlake.cli.options.filters import SearchRequest, filter_options
from coprlake.cli.options.time_option import span_option
from coprlake.cli.printing import figures
from coprlake.cli.printing.json_reports import echo_json
from coprlake.cli.printing.notices import Failure, color_option, is_terminal, note, warn_each
from coprlake.cli.printing.progress_bar import progress_bar

if TYPE_CHECKING:
    from coprlake.storage.deleting import DeleteReport
    from coprlake.table import Table


@click.command(short_help="Delete records that match, or that are too old.")
@filter_options
@click.option("--older-than", type=span_option, metavar="SPAN", help="Select records older than this, such as 30d.")
@click.option("-y", "--yes", is_flag=True, help="Delete without asking for confirmation.")
@click.option("--dry-run", is_flag=True, help="Print how many records match, and delete nothing.")
@click.option(
    "--status", is_flag=True, help="List past deletions, and whether their data is merely hidden or erased from disk."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@color_option
@click.pass_context
def delete(
    ctx: click.Context,
    asked: SearchRequest,
    older_than: timedelta | None,
    yes: bool,
    dry_run: bool,
    status: bool,
    as_json: bool,
) -> None:
    """Delete the records that `search` finds with the same filters.

    Searches no longer find deleted records. Their data stays on disk until `coprlake vacuum` removes the old files,
    which it does after a week by default. --status shows how far each deletion has got.
    """
    from coprlake.cli.options.table_argument import opened, total_bytes

    if status:  # nothing is searched for, so a single argument is the table
        _print_status(opened(asked.texts[0] if asked.texts else asked.table), as_json)
        return
    table = opened(asked.table, texts=asked.texts)
    asked = _checked(asked, older_than)
    check_filters(asked, table, is_strict=True)
    if not (yes or dry_run or is_terminal()):
        raise Failure(
            "no terminal to ask for confirmation; add --yes to delete, or --dry-run to see how many records match"
        )
    search = asked.search(table)
    count = search.count()
    warn_each(search.report.problems)
    nothing = not count and not search.report.is_incomplete  # a file that cannot be read may go as a whole
    if dry_run and as_json:
        echo_json({"dry_run": True, "rows": count})
    elif dry_run or nothing:
        note(f"{_matching(count, asked, table)}; nothing was deleted")
    if dry_run or nothing:
        return
    if not yes:
        note(f"{_matching(count, asked, table)} in {asked.table}")
        if not click.confirm("Delete?", err=True):
            note("nothing was deleted")
            ctx.exit(1)
    with progress_bar("deleting", total_bytes(table)) as advance:
        report = table.delete(asked.predicate(table), since=asked.since, until=asked.until, progress=advance)
    if as_json:
        echo_json(report)
    else:
        click.echo(_summary(report))
        note("the data stays on disk until `coprlake vacuum` removes the old files")


def _checked(asked: SearchRequest, older_than: timedelta | None) -> SearchRequest:
    """Apply --older-than, and reject filters that match every record."""
    if older_than is not None:
        if asked.until is not None:
            raise click.UsageError("--older-than and --until contradict each other")
        try:
            asked = dataclasses.replace(asked, until=datetime.now(UTC) - older_than)
        except OverflowError as error:
            raise click.UsageError("--older-than is before the year 1; nothing is that old") from error
    if asked.is_everything:
        raise click.UsageError("this would delete every record; give a text, a filter or a time")
    if any(not text.strip(' "*') for text in asked.texts):
        raise click.UsageError("the text is empty, so every record would match; perhaps a shell variable is not set")
    return asked


def _matching(count: int, asked: SearchRequest, table: "Table") -> str:
    """``12 records match contains(content, "x") since 2026-11-16T03:55:00Z``."""
    words = [] if asked.is_time_only else [str(asked.predicate(table))]
    words += [f"since {asked.since.isoformat(timespec='seconds')}"] if asked.since else []
    words += [f"until {asked.until.isoformat(timespec='seconds')}"] if asked.until else []
    verb = "matches" if count == 1 else "match"
    return f"{figures.amount(count, 'record')} {verb} {' '.join(words)}"


def _summary(report: "DeleteReport") -> str:
    return (
        f"deleted {figures.amount(report.rows, 'record')}: {figures.amount(report.files_dropped, 'file')} dropped, "
        f"{report.files_rewritten:,} rewritten, {figures.size(report.bytes_before)} of data became "
        f"{figures.size(report.bytes_after)}"
    )


def _print_status(table: "Table", as_json: bool) -> None:
    found = table.deletions()
    if as_json:
        echo_json({"deletions": [dataclasses.asdict(one) for one in found]})
    elif not found:
        note("no deletions")
    else:
        rows = [
            [
                f"{one.version:,}",
                one.time.strftime("%Y-%m-%dT%H:%M:%SZ"),
                one.state,
                f"{one.rows:,}",
                figures.size(one.bytes_left) if one.files_left else "-",
                one.what,
            ]
            for one in found
        ]
        header = ["version", "time", "state", "records", "on disk", "what"]
        click.echo(figures.grid(header, rows, right=frozenset({0, 3, 4})))
