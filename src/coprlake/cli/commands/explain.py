"""``coprlake explain``: what a search skipped and read, and why it could not skip more."""

import time
from typing import TYPE_CHECKING

import click

from coprlake.cli.options.choices import NearestChoice
from coprlake.cli.options.doubtful import check_filters
from coprlake.cli.options.filters import PLAIN, SearchRequest, filter_options
from coprlake.cli.printing import figures
from coprlake.cli.printing.json_reports import echo_json
from coprlake.cli.printing.notices import color_option, note, noted, warn_each

if TYPE_CHECKING:
    from coprlake.query.report import SearchReport
    from coprlake.table import Table

_PHASES = {
    "prune": "checking the log and the index",
    "screen": "searching pages before decoding them",
    "read": "reading the columns that the search filters on",
    "filter": "filtering records",
    "fetch": "reading the other columns of the matches",
}
_FEW_BATCHES = 4


@click.command(short_help="Show what a search skips and reads, and why.")
@filter_options
@click.option(
    "--order",
    type=NearestChoice(["newest", "oldest", "any"]),
    default="newest",
    show_default=True,
    help="Order of the results, as in `search`.",
)
@click.option("-n", "--limit", type=click.IntRange(0), metavar="N", help="Stop after N matches.")
@click.option(
    "--threads", type=click.IntRange(1), metavar="N", help="Batches to process in parallel. Defaults to one per core."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@color_option
def explain(asked: SearchRequest, order: str, limit: int | None, threads: int | None, as_json: bool) -> None:
    """Run a search, discard the results, and show what it skipped and read.

    Takes the filters of `search`. A segment is one data file; a batch is the part of it that is read at once.
    """
    from coprlake.cli.options.table_argument import opened, total_bytes
    from coprlake.cli.printing.record_layout import needed_columns
    from coprlake.cli.printing.search_output import SHOWN

    table = opened(asked.table, texts=asked.texts)
    check_filters(asked, table)
    needed = needed_columns(table, SHOWN) or table.schema.names
    found = asked.search(table, order=order, limit=limit, threads=threads, columns=needed)
    started = time.perf_counter()
    report = found.explain()
    elapsed = time.perf_counter() - started
    if as_json:
        echo_json(
            report.to_dict()
            | {
                "predicate": str(report.predicate),
                "data_bytes": total_bytes(table),
                "elapsed_seconds": elapsed,
            }
        )
    else:
        click.echo(explanation(report, table, elapsed))
        if asked.kind in ("contains", PLAIN) and report.batches_for_nothing > report.batches_opened // 2 > _FEW_BATCHES:
            note("most batches were opened for nothing; if the text is a whole word, number or address, -w skips more")
        warn_each(report.problems)


def explanation(report: "SearchReport", table: "Table", elapsed: float) -> str:
    """Format the report of a search."""
    from coprlake.cli.options.table_argument import total_bytes

    total = total_bytes(table)
    opened_percent = figures.percent(report.batches_opened, report.batches)
    rows = [
        *_planned(report),
        ("  opened", f"{report.batches_opened:,}" + (f" ({opened_percent})" if report.batches else "")),
        ("  opened for nothing", f"{report.batches_for_nothing:,}"),
        ("records matched", f"{report.rows_matched:,}{' in the opened batches; stopped early' * report.stopped_early}"),
        (
            "read",
            f"{figures.size(report.bytes_read)} of {figures.size(total)} ({figures.percent(report.bytes_read, total)})",
        ),
    ]
    rows.append(("time", f"{figures.seconds(elapsed):>8}  in total; summed over all threads:"))
    rows += [(f"  {name}", f"{figures.seconds(spent):>8}  {_PHASES.get(name, '')}") for name, spent in _times(report)]
    return figures.pairs([*rows, *_notes(report)])


def explanation_of_plan(report: "SearchReport", done_by: str, elapsed: float) -> str:
    """Format the report of a search on Spark, which counts only what the driver pruned."""
    rows = [
        *_planned(report),
        ("  left", f"{report.batches - report.batches_pruned_by_time - report.batches_pruned_by_sketch:,}"),
        ("read by", done_by),
        ("time", f"{figures.seconds(elapsed)}, of which pruning took {figures.seconds(report.seconds['prune'])}"),
    ]
    return figures.pairs([*rows, *_notes(report)])


def _planned(report: "SearchReport") -> list[tuple[str, str]]:
    """Format what was ruled out before any data was read."""
    return [
        ("searched for", str(report.predicate)),
        ("segments", f"{report.segments:,}"),
        *_pruned(report),
        ("batches", f"{report.batches:,} in the remaining segments" if report.batches else "0"),
        ("  ruled out by time", f"{report.batches_pruned_by_time:,}"),
        ("  ruled out by sketch", f"{report.batches_pruned_by_sketch:,}"),
    ]


def _notes(report: "SearchReport") -> list[tuple[str, str]]:
    left = [text for text in report.notes if text not in noted()]
    return [("note" if i == 0 else "", text) for i, text in enumerate(left)]


def _pruned(report: "SearchReport") -> list[tuple[str, str]]:
    """Format how many segments were ruled out, and by what."""
    left = report.segments - (
        report.segments_pruned_by_time + report.segments_pruned_by_partition + report.segments_pruned_by_sketch
    )
    rows = [
        ("  ruled out by time", f"{report.segments_pruned_by_time:,}"),
        ("  ruled out by partition", f"{report.segments_pruned_by_partition:,}"),
        ("  ruled out by sketch", f"{report.segments_pruned_by_sketch:,}"),
        ("  left", f"{left:,}"),
    ]
    if report.segments_without_sketch:
        rows.append(("  without an index", f"{report.segments_without_sketch:,}, scanned in full"))
    return rows


def _times(report: "SearchReport") -> list[tuple[str, float]]:
    known = [(name, report.seconds[name]) for name in _PHASES if name in report.seconds]
    return known + [(name, spent) for name, spent in report.seconds.items() if name not in _PHASES]
