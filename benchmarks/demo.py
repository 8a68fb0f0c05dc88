"""``make demo``: generated logs stream into a table on Spark, needles are found, another engine reads the same files.

Every answer is checked against a scan of the whole table.
"""

import argparse
import os
import re
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import click
import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table as Grid

from benchmarks import demo_pipeline
from benchmarks.store import batches_of, warm_up, write_logs
from coprlake import spark as lake
from coprlake.cli.commands.explain import explanation
from coprlake.errors import CoprlakeError
from coprlake.predicate.predicates import Contains, Predicate, Term
from coprlake.query.report import SearchReport
from coprlake.table import Table, create_table

PROGRAM = "coprlake" if shutil.which("coprlake") else os.path.relpath(Path(sys.executable).with_name("coprlake"))
"""The command as a person can type it here: `make demo` puts it into an environment that is not activated."""

CAPTION = """A batch is 512 KiB of logs; the scan opens every one. Where a text can only be pruned by its 3-grams, and
these are in every batch, as those of digits are, the sketch cannot help."""


@dataclass
class Answer:
    """How a search went: best of some."""

    lines: int
    seconds: float
    report: SearchReport


def present_needles(table: Table) -> list[Predicate]:
    """Needles of several kinds that occur in the logs: an id, an address, a part of each."""
    batches = list(batches_of(table))
    segment, batch = batches[len(batches) // 2]
    text = "\n".join(segment.read(batch, ["content"]).column(0).to_pylist())
    identifier = re.search(r"\b(?=[a-z]*\d)(?=\d*[a-z])[0-9a-z]{10,}\b", text)
    address = re.search(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", text)
    found: list[Predicate] = []
    if identifier:
        found += [Term(identifier[0]), Contains(identifier[0][2:9])]
    if address:
        found.append(Term(address[0]))
    return [*found, Term("timeout"), Contains("refused")]


def absent_needles(seed: int) -> list[Predicate]:
    """The paper's needles (5.2): sixteen random letters, and three groups of three digits."""
    random = np.random.default_rng(seed)
    letters = "".join(random.choice(list("abcdefghijklmnopqrstuvwxyz"), 16))
    address = ".".join(str(group) for group in random.integers(100, 1000, 3))
    return [Term(letters), Contains(letters), Term(address), Contains(address)]


def ask(table: Table, predicate: Predicate, *, use_sketches: bool, rounds: int) -> Answer:
    """All matching lines, and the time of the fastest round."""
    best = float("inf")
    for _ in range(rounds):
        search = table.search(predicate, columns=["content"], threads=1, use_sketches=use_sketches)
        started = time.perf_counter()
        lines = sum(batch.num_rows for batch in search)
        best = min(best, time.perf_counter() - started)
    return Answer(lines, best, search.report)


def search_grid(table: Table, needles: list[Predicate], batch_count: int) -> tuple[Grid, int]:
    """Each needle by the sketches and by a scan; also how many lines the sketches missed, which must be 0."""
    grid = Grid(title="Needles", title_justify="left", caption=CAPTION, caption_justify="left")
    grid.add_column("search", no_wrap=True)
    for name in ("lines", "batches opened", "for nothing", "with sketches", "scan", "faster"):
        grid.add_column(name, justify="right", style="bold green" if name == "faster" else None)
    missed = 0
    for needle in needles:
        found = ask(table, needle, use_sketches=True, rounds=5)
        truth = ask(table, needle, use_sketches=False, rounds=1)
        missed += abs(truth.lines - found.lines)
        grid.add_row(
            str(needle),
            f"{found.lines:,}",
            f"{found.report.batches_opened:,} of {batch_count:,}",
            f"{found.report.batches_for_nothing:,}",
            f"{found.seconds * 1e3:,.3f} ms",
            f"{truth.seconds * 1e3:,.0f} ms",
            f"{truth.seconds / found.seconds:,.1f} x",
        )
    return grid, missed


def size_grid(table: Table) -> Grid:
    """Where the bytes go."""
    info = table.info()
    grid = Grid(title="What it takes", title_justify="left")
    for name in ("part", "bytes", "% of raw"):
        grid.add_column(name, justify="left" if name == "part" else "right")
    rows = {"raw logs": info.raw_bytes, "data (Parquet, zstd)": info.data_bytes, "index (sketches)": info.index_bytes}
    rows |= {f"  {part.replace('_', ' ')}": size for part, size in info.index_bytes_by_part.items()}
    for name, size in rows.items():
        style = None if name.startswith(" ") else "bold"
        grid.add_row(name, f"{size:,}", f"{100 * size / info.raw_bytes:.2f}", style=style)
    return grid


def duckdb_grid(folder: Path, console: Console) -> tuple[Grid, int]:
    """The same files, read by DuckDB with plain SQL; also the number of records it sees."""
    sql = f"""SELECT loglevel, count(*) AS records, min(timestamp)::VARCHAR AS first, max(timestamp)::VARCHAR AS last
FROM read_parquet('{folder}/**/*.parquet', hive_partitioning = true, union_by_name = true)
GROUP BY loglevel ORDER BY records DESC"""
    console.print(f"\n[bold]The same files in DuckDB, with no code of ours:[/]\n[cyan]{sql}[/]")
    with duckdb.connect() as connection:
        rows = connection.execute(sql).fetchall()
    grid = Grid()
    for name in ("loglevel", "records", "first", "last"):
        grid.add_column(name, justify="right" if name == "records" else "left")
    for level, count, first, last in rows:
        grid.add_row(str(level or "-"), f"{count:,}", first, last)
    return grid, sum(count for _, count, _, _ in rows)


def on_spark(logs: Path, folder: Path, table: Table, console: Console) -> int:
    """Stream, search meanwhile, optimize, and find a needle, all on Spark; the number of records."""
    with console.status("starting Spark ..."):
        running = lake.session("local[*]", quiet=True)
        spark = running.__enter__()
    try:
        done = demo_pipeline.stream_in(spark, logs, folder / "inbox", table, console)
        console.print(
            f"{done.rows:,} records, {done.raw_bytes / 1e6:,.1f} MB streamed in within {done.seconds:.1f} s, "
            f"in {len(done.batches)} batches"
        )
        demo_pipeline.merge(spark, table, console)
        planned, lines, seconds = demo_pipeline.needle(spark, table, present_needles(table)[0])
        console.print(
            f"[bold]{planned.sought.predicate}[/] by coprlake.spark.search: {lines} line(s) in {seconds:.2f} s, "
            f"{len(planned.shares())} task(s); {planned.plan.data_bytes:,} of {planned.plan.table_bytes:,} bytes left "
            "after pruning\n"
        )
    finally:
        running.__exit__(None, None, None)
    return done.rows


def run(megabytes: float, seed: int, folder: Path, console: Console) -> int:
    """The whole demo; 1 if an answer was wrong."""
    console.rule("[bold]coprlake: logs as open Parquet, and the needle in them")
    shutil.rmtree(folder, ignore_errors=True)
    logs = folder / "logs"
    logs.mkdir(parents=True)
    with console.status("compiling the kernels (only the first time on a machine, half a minute) ..."):
        (folder / "warm").mkdir()
        warm_up(folder / "warm")
        shutil.rmtree(folder / "warm")
    with console.status(f"generating {megabytes:,.0f} MB of logs ..."):
        write_logs(megabytes, seed, logs)
    table = create_table(folder / "table")
    rows = on_spark(logs, folder, table, console)
    batches = len(list(batches_of(table)))
    with console.status("searching, and scanning everything to check ..."):
        grid, missed = search_grid(table, [*absent_needles(seed), *present_needles(table)], batches)
    console.print(grid)
    example = ask(table, present_needles(table)[0], use_sketches=True, rounds=5)
    console.print("\n[bold]What one of them did (coprlake explain):[/]")
    console.print(click.unstyle(explanation(example.report, table, example.seconds)) + "\n", markup=False)
    console.print(size_grid(table))
    table.vacuum(retention_hours=0)  # DuckDB reads all Parquet files in the folder, also those that were merged
    grid, seen = duckdb_grid(folder / "table", console)
    console.print(grid)
    if missed or seen != rows:
        console.print(f"[bold red]{missed} lines were missed; DuckDB sees {seen:,} of {rows:,} records")
        return 1
    console.print("[bold green]every search found what the scan found, and DuckDB sees every record")
    where = f"{folder}/table"
    console.print(f"\nTry it: {PROGRAM} search refused {where} -n 5\n        {PROGRAM} explain -w timeout {where}")
    console.print(f"        {PROGRAM} query 'fetch logs | summarize count(), by:{{loglevel}}' {where}", markup=False)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """The command line of the demo."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo", description="Store logs, then find needles.")
    parser.add_argument("--megabytes", type=float, default=64, help="size of the generated logs (default: 64)")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other logs")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where it is put, anew each time")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    try:
        return run(options.megabytes, options.seed, options.folder, console)
    except CoprlakeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
