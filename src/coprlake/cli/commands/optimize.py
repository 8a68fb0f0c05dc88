"""``coprlake optimize``: merge small segments."""

from typing import TYPE_CHECKING

import click

from coprlake.cli.options.choices import NearestChoice
from coprlake.cli.options.engine import Engine, engine_options
from coprlake.cli.options.filters import table_argument
from coprlake.cli.options.renamed_option import renamed_option
from coprlake.cli.printing import figures
from coprlake.cli.printing.figures import parse_size
from coprlake.cli.printing.json_reports import echo_json
from coprlake.cli.printing.notices import color_option, note
from coprlake.cli.printing.progress_bar import job_bar, progress_bar
from coprlake.config import OPTIMIZED_LEVEL, OPTIMIZED_SEGMENT_BYTES

if TYPE_CHECKING:
    from coprlake.storage.optimizing import OptimizeReport
    from coprlake.storage.repartitioning import Partitions

_ZSTANDARD_LEVELS = click.IntRange(1, 22)


@click.command(short_help="Merge small segments into large ones.")
@table_argument
@click.option(
    "--target-size",
    type=parse_size,
    metavar="SIZE",
    default=OPTIMIZED_SEGMENT_BYTES,
    show_default=f"{OPTIMIZED_SEGMENT_BYTES >> 20}MiB",
    help="Amount of raw text in a merged segment.",
)
@click.option(
    "--compression",
    type=_ZSTANDARD_LEVELS,
    default=OPTIMIZED_LEVEL,
    show_default=True,
    help="Zstandard compression level of the new data files.",
)
@renamed_option("--level", "--compression", _ZSTANDARD_LEVELS)
@click.option("--full", is_flag=True, help="Rewrite all segments, even those that are large enough.")
@click.option(
    "--repartition",
    type=NearestChoice(["none", "day"]),
    help="Change the partitions of the table, in one commit that rewrites all segments. Local engine only.",
)
@engine_options()
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@color_option
def optimize(
    table: str,
    target_size: int,
    compression: int,
    full: bool,
    repartition: "Partitions | None",
    engine: Engine,
    as_json: bool,
) -> None:
    """Merge small segments into fewer, better compressed files, sorted by time.

    Segments of different partitions stay apart. If they are small, as when logs of many years are partitioned by day,
    --repartition none merges them all.

    Searches can run at the same time. The old files stay until `coprlake vacuum` removes them.
    """
    from coprlake.cli.options.table_argument import opened
    from coprlake.storage.optimizing import groups_to_merge

    opened_table = opened(table)
    engine = engine.able(["--repartition"] if repartition else [])
    segments = opened_table.snapshot().segments
    groups = groups_to_merge(segments, target_size, full=full)
    total = sum(segment.entry.data_bytes for group in ([segments] if repartition else groups) for segment in group)
    if engine.is_spark and groups:
        from coprlake.spark import optimize as optimize_on_spark

        with engine.session() as spark, job_bar("optimizing", total) as progress:
            report = optimize_on_spark(
                spark, opened_table, target_bytes=target_size, level=compression, full=full, progress=progress
            )
    else:
        with progress_bar("optimizing", total) as advance:
            report = opened_table.optimize(
                target_bytes=target_size, level=compression, full=full, repartition=repartition, progress=advance
            )
    if as_json:
        echo_json(report)
    else:
        _print_summary(report)


def _print_summary(report: "OptimizeReport") -> None:
    if report.written:
        size = figures.size
        rows = [
            ["segments", f"{report.segments_before:,}", f"{report.segments_after:,}"],
            ["data rewritten", size(report.data_bytes_before), size(report.data_bytes_after)],
            ["index rewritten", size(report.index_bytes_before), size(report.index_bytes_after)],
        ]
        click.echo(figures.grid(["", "before", "after"], rows, right=frozenset({1, 2})))
        again = f", {report.tokenized_again:,} of them tokenized again" if report.tokenized_again else ""
        click.echo(
            f"merged {report.merged:,} segments into {report.written:,} in {figures.seconds(report.seconds)}{again}"
        )
        note("the old files stay until `coprlake vacuum` removes them")
    elif not report.conflicts:
        note(f"nothing to merge: {figures.amount(report.segments_after, 'segment')}")
    if report.conflicts:
        groups = figures.amount(report.conflicts, "group")
        note(f"{groups} of segments left unchanged, because another writer changed some of them in the meantime")
