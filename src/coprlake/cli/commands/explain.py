"""``coprlake explain``: what a search did, and why it could not do better."""

import time
from typing import TYPE_CHECKING

import click

from coprlake.cli.options.filters import Asked, filter_options
from coprlake.cli.printing import figures
from coprlake.cli.printing.json_reports import echo_json
from coprlake.cli.printing.notices import color_option, note, warn_each

if TYPE_CHECKING:
    from coprlake.query.report import SearchReport
    from coprlake.table import Table

_PHASES = {
    "prune": "asking the log and the sketches",
    "screen": "looking for the text before anything is decoded",
    "read": "reading the columns that decide",
    "filter": "matching record by record",
    "fetch": "reading the rest of the matches",
}
_FEW_BATCHES = 4


@click.command(short_help="Tell what a search does: what it skips, what it reads, and why.")
@filter_options
@click.option(
    "--order",
    type=click.Choice(["newest", "oldest", "any"]),
    default="newest",
    show_default=True,
    help="As in `search`.",
)
@click.option("-n", "--limit", type=click.IntRange(0), metavar="N", help="Stop after so many matches.")
@click.option(
    "--threads", type=click.IntRange(1), metavar="N", help="Batches to work on at a time; by default one a core."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@color_option
def explain(asked: Asked, order: str, limit: int | None, threads: int | None, as_json: bool) -> None:
    """Run a search, throw the results away, and tell what it took.

    The options are those of `search`. A segment is one data file, a batch a part of it that is read as a whole.
    """
    from coprlake.cli.options.table_argument import opened, total_bytes
    from coprlake.cli.printing.record_layout import needed_columns
    from coprlake.cli.printing.search_output import SHOWN

    table = opened(asked.table, may_be_text=not asked.texts)
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
        if asked.kind == "contains" and report.batches_for_nothing > report.batches_opened // 2 > _FEW_BATCHES:
            note("most batches were opened for nothing; if the text is a whole word, number or address, -w skips more")
        warn_each(report.problems)


def explanation(report: "SearchReport", table: "Table", elapsed: float) -> str:
    """The figures of a search in words."""
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
    rows.append(("time", f"{figures.seconds(elapsed):>8}  in all; of which, on all threads together:"))
    rows += [(f"  {name}", f"{figures.seconds(spent):>8}  {_PHASES.get(name, '')}") for name, spent in _times(report)]
    return figures.pairs([*rows, *_notes(report)])


def explanation_of_plan(report: "SearchReport", done_by: str, elapsed: float) -> str:
    """The same for a search on Spark, of which only what the driver pruned is known."""
    rows = [
        *_planned(report),
        ("  left", f"{report.batches - report.batches_pruned_by_time - report.batches_pruned_by_sketch:,}"),
        ("read by", done_by),
        ("time", f"{figures.seconds(elapsed)}, of which pruning took {figures.seconds(report.seconds['prune'])}"),
    ]
    return figures.pairs([*rows, *_notes(report)])


def _planned(report: "SearchReport") -> list[tuple[str, str]]:
    """What was ruled out before anything was opened."""
    return [
        ("searched for", str(report.predicate)),
        ("segments", f"{report.segments:,}"),
        *_pruned(report),
        ("batches", f"{report.batches:,} in the segments that are left" if report.batches else "0"),
        ("  ruled out by time", f"{report.batches_pruned_by_time:,}"),
        ("  ruled out by sketch", f"{report.batches_pruned_by_sketch:,}"),
    ]


def _notes(report: "SearchReport") -> list[tuple[str, str]]:
    return [("note" if i == 0 else "", text) for i, text in enumerate(report.notes)]


def _pruned(report: "SearchReport") -> list[tuple[str, str]]:
    """What became of the segments."""
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
        rows.append(("  without a sketch", f"{report.segments_without_sketch:,}, scanned as a whole"))
    return rows


def _times(report: "SearchReport") -> list[tuple[str, float]]:
    known = [(name, report.seconds[name]) for name in _PHASES if name in report.seconds]
    return known + [(name, spent) for name, spent in report.seconds.items() if name not in _PHASES]
