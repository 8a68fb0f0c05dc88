"""``coprlake info``: the contents of a table, and its size on disk."""

import textwrap
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from coprlake.cli.options.filters import table_argument
from coprlake.cli.printing import figures
from coprlake.cli.printing.json_reports import echo_json
from coprlake.cli.printing.notices import color_option, note, warn_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coprlake.segment.sealed import SealedSegment
    from coprlake.storage.information import TableInfo

_FEW = 10
"""Up to so many segments nobody needs advice about partitions."""


@click.command(short_help="Show the contents of a table and its size on disk.")
@table_argument
@click.option("--segments", is_flag=True, help="List the segments too.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@color_option
def info(table: str, segments: bool, as_json: bool) -> None:
    """Show the segments, records, time range and columns of a table, and what takes how much space."""
    from coprlake.cli.options.table_argument import opened

    opened_table = opened(table)
    found = opened_table.info()
    listed = _listed(opened_table.snapshot().segments) if segments else []
    if as_json:
        echo_json(found.to_dict() | ({"segment_list": listed} if segments else {}))
        return
    click.echo(_description(found))
    if listed:
        click.echo("\n" + _listing(listed))
    warn_each(found.problems)
    if not found.segments:
        note("the table has no records yet; `coprlake ingest` adds some")


def _description(found: "TableInfo") -> str:
    def of_raw(count: int) -> str:
        return figures.of_raw(count, found.raw_bytes)

    rows = [
        ("table", f"{found.uri} (version {found.version:,})"),
        ("columns", _columns(found.columns)),
        ("partitioned by", ", ".join(found.partition_by) or "nothing"),
        ("records", f"{found.rows:,}"),
        ("segments", _segments(found)),
        ("batches", f"{found.batches:,}"),
        (
            "times",
            f"{_time(found.first_time)} to {_time(found.last_time)}"
            if found.first_time or found.last_time
            else "unknown",
        ),
        ("raw text", f"{figures.size(found.raw_bytes):>9}"),
        ("data files", of_raw(found.data_bytes)),
        ("rules", _rules(found)),
        ("index", of_raw(found.index_bytes)),
    ]
    parts = sorted(found.index_bytes_by_part.items(), key=lambda part: -part[1])
    rows += [(f"  {name.replace('_', ' ')}", of_raw(count)) for name, count in parts if count]
    rows.append(("tokens", f"{found.tokens:,}" + (f", {_bits(found):.1f} bits each" if found.tokens else "")))
    return figures.pairs(rows)


def _columns(columns: dict[str, str]) -> str:
    """List the columns; those that not every table has, with their types."""
    usual = ("timestamp", "source", "loglevel", "content", "attributes", "day")
    shown = ", ".join(name if name in usual else f"{name} ({kind})" for name, kind in columns.items())
    return "\n".join(textwrap.wrap(shown, 76, break_long_words=False, break_on_hyphens=False))


def _segments(found: "TableInfo") -> str:
    small = found.mergeable_segments
    if small:
        return f"{found.segments:,}; {small:,} small ones can be merged with `coprlake optimize`"
    fewer = max(1, found.segments_unpartitioned)
    if found.partition_by and found.segments > max(_FEW, 2 * fewer):
        return (
            f"{found.segments:,}, because partitions are small; `coprlake optimize --repartition none` leaves "
            f"about {fewer:,}"
        )
    return f"{found.segments:,}"


def _rules(found: "TableInfo") -> str:
    """Format the rules of new segments, and those of segments that differ."""
    others = {name: count for name, count in found.segments_by_rules.items() if name != found.rules}
    shown = [f"{figures.amount(count, 'segment')} with {name}" for name, count in others.items()]
    advice = "; `coprlake index --rebuild` reindexes them" if shown else ""
    return found.rules + (f", but {', '.join(shown)}{advice}" if shown else "")


def _bits(found: "TableInfo") -> float:
    return 8 * found.index_bytes / found.tokens


def _time(moment: datetime | None) -> str:
    return "?" if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _listed(segments: "Sequence[SealedSegment]") -> list[dict[str, Any]]:
    from coprlake.storage.information import mergeable_names

    mergeable = mergeable_names(segments)
    return [_segment(segment, segment.name in mergeable) for segment in segments]


def _segment(segment: "SealedSegment", is_mergeable: bool) -> dict[str, Any]:
    """Return the figures of a segment; None for those that are not known."""
    from coprlake.segment.python_values import datetime_of
    from coprlake.segment.searchable import ALWAYS

    entry, sidecar = segment.entry, segment.sidecar
    known = (entry.first_time, entry.last_time) != ALWAYS and entry.first_time <= entry.last_time
    return {
        "name": entry.name,
        "rows": entry.row_count,
        "batches": sidecar and sidecar.description.batch_count,
        "raw_bytes": sidecar and sidecar.description.raw_bytes,
        "data_bytes": entry.data_bytes,
        "index_bytes": sidecar and sidecar.file_bytes,
        "first_time": datetime_of(entry.first_time) if known else None,
        "last_time": datetime_of(entry.last_time) if known else None,
        "mergeable": is_mergeable,
        "rules": sidecar and sidecar.description.plan.rules,
        "problem": None if sidecar else str(segment.sidecar_problem),
    }


def _listing(listed: list[dict[str, Any]]) -> str:
    def count(value: int | None) -> str:
        return "?" if value is None else f"{value:,}"

    def size(value: int | None) -> str:
        return "?" if value is None else figures.size(value)

    rows = [
        [
            _time(one["first_time"]),
            _time(one["last_time"]),
            count(one["rows"]),
            count(one["batches"]),
            size(one["raw_bytes"]),
            size(one["data_bytes"]),
            "none" if one["index_bytes"] is None else size(one["index_bytes"]),
            one["name"],
        ]
        for one in sorted(listed, key=lambda one: (str(one["first_time"]), one["name"]))
    ]
    header = ["from", "to", "records", "batches", "raw", "data", "index", "file"]
    return figures.grid(header, rows, right=frozenset({2, 3, 4, 5, 6}))
