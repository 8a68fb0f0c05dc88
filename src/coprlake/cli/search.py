"""``coprlake search``: find records, and write them as people or programs like them."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from coprlake.cli.filters import Asked, filter_options
from coprlake.cli.messages import Failure, color_option, is_colored, note, warn_each

if TYPE_CHECKING:
    import pyarrow as pa

    from coprlake.cli.output import Writer
    from coprlake.query.search import Search
    from coprlake.store import Table

OUTPUTS = ("table", "lines", "json", "csv", "parquet")
FOR_PEOPLE = ("table", "lines")
_SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".ndjson": "json", ".jsonl": "json"}


@dataclass(frozen=True)
class Shown:
    """What of a record goes where, and how."""

    output: str
    out: str | None
    columns: tuple[str, ...]
    chosen: bool

    @property
    def is_terminal(self) -> bool:
        """Whether a terminal shows it."""
        return self.out in (None, "-") and sys.stdout.isatty()


@click.command(
    short_help="Find records and print them.",
    epilog="Exits with 0 if something matches, 1 if nothing does, 2 after an error.",
)
@filter_options
@click.option(
    "--order",
    type=click.Choice(["newest", "oldest", "any"]),
    default="newest",
    show_default=True,
    help="By time; any is the fastest.",
)
@click.option("-n", "--limit", type=click.IntRange(0), metavar="N", help="Stop after so many matches.")
@click.option(
    "-A",
    "--after-context",
    "after",
    type=click.IntRange(0),
    metavar="N",
    help="Also show so many records of the same source after each match.",
)
@click.option(
    "-B", "--before-context", "before", type=click.IntRange(0), metavar="N", help="Also show so many before each match."
)
@click.option(
    "-C",
    "--context",
    "around",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Also show so many before and after.",
)
@click.option("-c", "--count", "only_count", is_flag=True, help="Print only how many records match.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; the exit code tells whether something matches.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(OUTPUTS),
    help="How to print: columns for people (table), the log lines alone (lines), one JSON object a line (json), "
    "csv or parquet. By default a table on a terminal and lines elsewhere.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as -o json.")
@click.option("--columns", metavar="A,B", help="What to print of a record.")
@click.option(
    "--out",
    type=click.Path(),
    metavar="FILE",
    help="Write to a file; its suffix tells the kind of output unless -o does.",
)
@click.option(
    "--strict", is_flag=True, help="Fail if anything is wrong with a file, instead of warning and searching the rest."
)
@click.option(
    "--threads", type=click.IntRange(1), metavar="N", help="Batches to work on at a time; by default one a core."
)
@click.option("--stats", is_flag=True, help="Tell on stderr what the search did, as `explain` does.")
@color_option
@click.pass_context
def search(
    ctx: click.Context,
    asked: Asked,
    order: str,
    limit: int | None,
    after: int | None,
    before: int | None,
    around: int,
    only_count: bool,
    quiet: bool,
    output: str | None,
    as_json: bool,
    columns: str | None,
    out: str | None,
    strict: bool,
    threads: int | None,
    stats: bool,
) -> None:
    """Find records and print them, the newest first.

    The order of the arguments is that of grep: `coprlake search refused ./logs`. A single argument is the TEXT if
    COPRLAKE_TABLE or --table names the table, and the TABLE if not. Without a text the other filters decide alone.

    On a terminal each record is shown with its time, level and source, and with the match in colour. Into a pipe goes
    the log line alone, as it was read, so that grep, sort and wc work as on the log file itself.
    """
    if as_json and output not in (None, "json"):
        raise click.UsageError(f"--json and -o {output} contradict each other")
    from coprlake.cli.tables import opened

    table = opened(asked.table)
    started = time.perf_counter()
    options = {"threads": threads, "strict": strict}
    if quiet or only_count:
        found = asked.search(table, order="any", limit=1 if quiet else None, columns=table.schema.names[:1], **options)
        count = sum(batch.num_rows for batch in found) if quiet else found.count()
        _fail_or_warn(found, strict)
        if only_count and not quiet:
            click.echo(count if limit is None else min(count, limit))
    else:
        context = (around if before is None else before, around if after is None else after)
        shown = _shown(table, "json" if as_json else output, out, columns, has_context=any(context))
        needed = needed_columns(table, shown.columns)
        found = asked.search(table, order=order, limit=limit, context=context, columns=needed, **options)
        count = _write(found, asked, shown, strict)
        _fail_or_warn(found, strict)
        if not count and shown.output in FOR_PEOPLE:
            note(_nothing(table, asked))
        elif shown.out not in (None, "-"):
            note(f"{count:,} records written to {shown.out}")
    if stats:
        from coprlake.cli.explain import explanation

        note(explanation(found.report, table, time.perf_counter() - started))
    ctx.exit(0 if count else 1)


def _shown(table: "Table", output: str | None, out: str | None, columns: str | None, *, has_context: bool) -> Shown:
    """Settle what was left open."""
    from coprlake.cli.output import SHOWN
    from coprlake.query.context import MATCH
    from coprlake.records import CONTENT, DAY

    to_stdout = out in (None, "-")
    is_terminal = to_stdout and sys.stdout.isatty()
    if output is None:
        output = _SUFFIXES.get(Path(out or "-").suffix.lower(), "lines") if not to_stdout else None
        output = output or ("table" if is_terminal else "lines")
    if output == "parquet" and is_terminal:
        raise click.UsageError("a terminal cannot show Parquet; name a file with --out, or redirect the output")
    names = table.schema.names
    if columns is not None:
        chosen = [name.strip() for name in columns.split(",") if name.strip()]
        unknown = [name for name in chosen if name not in names]
        if unknown or not chosen:
            raise click.UsageError(
                f"there is no column {unknown[0] if unknown else ''!r}; the table has {', '.join(names)}"
            )
    elif output in FOR_PEOPLE and CONTENT in names:
        chosen = [name for name in SHOWN if name in names] if output == "table" else [CONTENT]
    else:
        chosen = [name for name in names if name != DAY]
    if has_context and output in ("csv", "parquet"):
        chosen += [field.name for field in MATCH]
    return Shown(output, out, tuple(dict.fromkeys(chosen)), columns is not None)


def needed_columns(table: "Table", shown: Sequence[str]) -> list[str]:
    """What has to be read: also the time, by which results are sorted, and the source, which parts contexts."""
    from coprlake.records import SOURCE, TIMESTAMP

    names = table.schema.names
    return [name for name in dict.fromkeys([*shown, TIMESTAMP, SOURCE]) if name in names]


def _write(found: "Search", asked: Asked, shown: Shown, strict: bool) -> int:
    """Write all results; returns how many records matched."""
    from coprlake.cli.output import destination

    count = 0
    with destination(shown.out) as out:
        batches = _checked(found, strict)
        writer = _writer(found, asked, shown, out)
        try:
            for batch in batches:
                writer.write(batch)
                count += _matches(batch)
        finally:
            writer.close()
    return count


def _writer(found: "Search", asked: Asked, shown: Shown, out: IO[bytes]) -> "Writer":
    from coprlake.cli import output as outputs

    predicate = asked.predicate() if is_colored() and shown.out in (None, "-") else None
    if shown.output == "table":
        return outputs.TableWriter(out, shown.columns, predicate, header=shown.chosen)
    if shown.output == "lines":
        return outputs.LinesWriter(out, shown.columns, predicate, shown.is_terminal)
    if shown.output == "json":
        return outputs.JsonWriter(out, shown.columns)
    if shown.output == "csv":
        return outputs.CsvWriter(out, shown.columns)
    return outputs.ParquetWriter(out, shown.columns, found.schema)


def _checked(found: "Search", strict: bool) -> Iterator["pa.RecordBatch"]:
    """The results; with `strict` none of them after a problem."""
    for batch in found:
        if strict and found.report.problems:
            break
        yield batch


def _matches(batch: "pa.RecordBatch") -> int:
    if "group" in batch.schema.names:
        return int(batch.column("match").true_count)
    return int(batch.num_rows)


def _fail_or_warn(found: "Search", strict: bool) -> None:
    problems = found.report.problems
    if strict and problems:
        raise Failure("; ".join(problems[:3]) + (f"; and {len(problems) - 3:,} more" if len(problems) > 3 else ""))
    warn_each(problems)


def _nothing(table: "Table", asked: Asked) -> str:
    """Why there is nothing to see."""
    if not table.snapshot().segments:
        return f"{asked.table}: the table has no records yet; `coprlake ingest` adds some"
    if len(asked.texts) == 1 and asked.texts[0] != asked.table and os.path.isdir(asked.texts[0]):  # noqa: PTH112
        return f"no match for {asked.texts[0]!r} in {asked.table}; if it was meant as the table, say --table"
    return f"no match in {asked.table}"
