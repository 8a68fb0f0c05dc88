"""The report of a query: its syntax tree, what was skipped in each table, its SQL, and where the time went."""

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from coprlake.cli.printing import figures
from coprlake.cli.printing.harmless import harmless, one_line

if TYPE_CHECKING:
    from coprlake.query.duck_scan import ScanReport
    from coprlake.query.querying import Query, QueryReport

_PHASES = {
    "parse": "parsing the query",
    "plan": "resolving names and types",
    "sql": "generating SQL",
    "prune": "checking the log and the index",
    "read": "pruning, and reading files for the engine",
    "engine": "computing, including files that the engine reads itself",
    "rest": "loading libraries, opening the table",
}
_SEARCH_PHASES = ("prune", "screen", "read", "filter", "fetch")
_LISTED_COLUMNS = 20


def explanation(query: "Query", elapsed: float) -> str:
    """Format the report of a query that has run."""
    from coprlake.language.outline import outline

    report = query.report
    parts = [("query", harmless("\n".join(outline(query.compiled.tree))))]
    parts += [(f"table {scan.table}", figures.pairs(_scan(scan))) for scan in report.scans]
    parts.append((f"SQL of {_engine(report)}", harmless(query.compiled.lowered(report.engine).sql(pretty=True))))
    shown = "rows, cut there" if report.is_cut else "row" if report.rows == 1 else "rows"
    parts.append(
        (f"time: {figures.seconds(elapsed)} for {report.rows:,} {shown}", figures.pairs(_times(report, elapsed)))
    )
    return "\n\n".join(f"{click.style(one_line(head), bold=True)}\n{_indented(body)}" for head, body in parts)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def _engine(report: "QueryReport") -> str:
    return {"duckdb": "DuckDB", "spark": "Spark"}.get(report.engine, report.engine)


def _scan(scan: "ScanReport") -> list[tuple[str, str]]:
    """Format how a table was read."""
    search = scan.search
    columns = ", ".join(scan.columns[:_LISTED_COLUMNS])
    if len(scan.columns) > _LISTED_COLUMNS:
        columns += f" and {len(scan.columns) - _LISTED_COLUMNS} more"
    rows = [
        ("read as", scan.way),
        ("columns", columns),
        ("pruned by", scan.predicate if scan.predicate != "everything" else "nothing but the time"),
        (
            "segments",
            _left(
                search.segments,
                {
                    "time": search.segments_pruned_by_time,
                    "partition": search.segments_pruned_by_partition,
                    "sketch": search.segments_pruned_by_sketch,
                },
            ),
        ),
    ]
    if search.segments_without_sketch:
        rows.append(("", f"{search.segments_without_sketch:,} without an index, read in full"))
    if search.batches:
        pruned = {"time": search.batches_pruned_by_time, "sketch": search.batches_pruned_by_sketch}
        rows.append(("batches", _left(search.batches, pruned)))
    if search.batches_opened:
        rows.append(("", f"{search.batches_opened:,} opened, {search.batches_for_nothing:,} for nothing"))
        rows.append(("matched", f"{search.rows_matched:,} records in {figures.size(search.bytes_read)} read"))
    rows.append(("files", f"{scan.files:,}"))
    spent = [f"{name} {figures.seconds(search.seconds[name])}" for name in _SEARCH_PHASES if name in search.seconds]
    if spent:
        rows.append(("search took", ", ".join(spent)))
    rows += [("cannot prune" if i == 0 else "", text) for i, text in enumerate(scan.ignored)]
    rows += [("note" if i == 0 else "", text) for i, text in enumerate([*search.notes, *search.problems])]
    return rows


def _left(count: int, pruned: dict[str, int]) -> str:
    """Format ``120; ruled out 100 by time; 20 left``."""
    gone = [f"{number:,} by {reason}" for reason, number in pruned.items() if number]
    if not gone:
        return f"{count:,}, none ruled out"
    return f"{count:,}; ruled out {', '.join(gone)}; {count - sum(pruned.values()):,} left"


def _times(report: "QueryReport", elapsed: float) -> list[tuple[str, str]]:
    rest = elapsed - sum(report.seconds.values())
    phases = {**report.seconds, **({"rest": rest} if rest > 0 else {})}
    total = sum(phases.values())
    return [
        (name, f"{figures.seconds(spent):>8}  {100 * spent / total if total else 0:3.0f} %  {_PHASES.get(name, '')}")
        for name, spent in phases.items()
    ]


def summary(query: "Query", elapsed: float) -> str:
    """Summarize rows, time and what was skipped in one line."""
    report = query.report
    parts = [figures.amount(report.rows, "row") + (" (there are more)" if report.is_cut else "")]
    parts.append(figures.seconds(elapsed))
    segments = sum(scan.search.segments for scan in report.scans)
    if segments:
        searches = [scan.search for scan in report.scans]
        gone = sum(
            s.segments_pruned_by_time + s.segments_pruned_by_partition + s.segments_pruned_by_sketch for s in searches
        )
        parts.append(f"{gone:,} of {figures.amount(segments, 'segment')} skipped")
        batches = sum(s.batches for s in searches)
        skipped = sum(s.batches_pruned_by_time + s.batches_pruned_by_sketch for s in searches)
        if batches:
            parts.append(f"{skipped:,} of {figures.amount(batches, 'batch', 'batches')} skipped")
    return ", ".join(parts)


def as_json(query: "Query", elapsed: float) -> dict[str, Any]:
    """Convert the report to plain data."""
    from coprlake.language.outline import outline

    report = query.report
    return {
        "query": report.text,
        "engine": report.engine,
        "tree": outline(query.compiled.tree),
        "scans": [_plain_scan(scan) for scan in report.scans],
        "sql": query.compiled.lowered(report.engine).sql(pretty=True),
        "rows": report.rows,
        "is_cut": report.is_cut,
        "warnings": report.warnings,
        "seconds": report.seconds,
        "elapsed_seconds": elapsed,
    }


def _plain_scan(scan: "ScanReport") -> dict[str, Any]:
    own = {field.name: getattr(scan, field.name) for field in dataclasses.fields(scan)}
    return own | {"search": scan.search.to_dict()}
