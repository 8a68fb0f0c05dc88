"""``python -m benchmarks.queries``: what a query costs beside a bare search, and beside DuckDB alone.

Three figures, each compared inside of one run: a selective pipeline with the bare search for the same needle, a count
over the whole table with DuckDB's own SELECT on the same files, and the time to parse and compile a query. DuckDB has
one thread. A run in which the ways do not give the same rows fails.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from coprlake.generator import generate
from coprlake.language.compiling import compile_query
from coprlake.predicate.predicates import Equals
from coprlake.query.limits import Limits
from coprlake.query.querying import Catalog
from coprlake.table import Table, create_table

NEEDLE = "checkout-7f3a91"
PIPELINE = f"""fetch logs
| filter matchesValue(userapp, "{NEEDLE}")
| parse content, "LD:first ' ' LD:rest"
| fields timestamp, source, first, rest
| sort timestamp desc"""
COUNT = "fetch logs | summarize count = count(), by:{loglevel}"
LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "WARN", "ERROR")
COMPILED = (
    PIPELINE,
    COUNT,
    'fetch logs, from:-2h | filter loglevel == "ERROR" and contains(content, "refused") '
    "| makeTimeseries count(), by:{source}",
    "fetch logs | fieldsAdd hour = bin(timestamp, 1h), big = stringLength(content) > 200 "
    "| summarize n = countIf(big), by:{hour}",
)
ONE_THREAD = Limits(threads=1)


def write_table(folder: Path, megabytes: float, seed: int) -> tuple[Table, int]:
    """A table of generated logs whose records have an app; two of them have the needle. Also the size of the lines."""
    logs = generate(megabytes=megabytes, seed=seed)
    random = np.random.default_rng(seed)
    count = len(logs.content)
    apps = pa.array([f"app-{number:05x}" for number in range(997)] + [NEEDLE])
    chosen = random.integers(0, 997, count)
    chosen[[count // 3, count // 2]] = 997
    keys = pa.array(["userapp"]).take(pa.array(np.zeros(count, np.int64)))
    offsets = pa.array(np.arange(count + 1, dtype=np.int32))
    begin = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1e6)
    times = np.sort(random.integers(0, 86_400 * 10**6, count)) + begin
    records = pa.table(
        {
            "timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
            "source": logs.source,
            "loglevel": pa.array(LEVELS).take(pa.array(random.integers(0, len(LEVELS), count))),
            "content": logs.content,
            "attributes": pa.MapArray.from_arrays(offsets, keys, apps.take(pa.array(chosen))),
        }
    )
    table = create_table(folder)
    table.append(records)
    return table, int(pa.compute.sum(pa.compute.binary_length(logs.content)).as_py()) + count


def median(work: Callable[[], Any], rounds: int) -> float:
    """The middle of several rounds, after one to warm up."""
    work()
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def selective(table: Table, rounds: int) -> dict[str, Any]:
    """The pipeline against the bare search."""
    predicate = Equals("userapp", NEEDLE)
    columns = ["timestamp", "source", "content"]
    wanted = sum(batch.num_rows for batch in table.search(predicate, columns=columns))
    query = table.query(PIPELINE)
    if query.arrow().num_rows != wanted:
        raise SystemExit(f"the query found {query.report.rows} rows, the search {wanted}")
    search = median(lambda: list(table.search(predicate, columns=columns)), rounds)
    whole = median(lambda: table.query(PIPELINE).arrow(), rounds)
    scanned = query.report.scans[0].search
    return {
        "search_seconds": search,
        "query_seconds": whole,
        "allowed_seconds": 2 * search + 0.03,
        "query_over_allowed": whole / (2 * search + 0.03),
        "rows": wanted,
        "batches": scanned.batches,
        "batches_opened": scanned.batches_opened,
        "seconds_by_phase": query.report.seconds,
    }


def counting(table: Table, raw_bytes: int, rounds: int) -> dict[str, Any]:
    """The count over everything against DuckDB alone, turn by turn, both with one thread."""
    query = table.query(COUNT, limits=ONE_THREAD)
    found = sorted(tuple(row.values()) for row in query)
    root = Path(table.uri.removeprefix("file://"))
    files = [str(root / segment.name) for segment in table.snapshot().segments]
    connection = duckdb.connect(config={"threads": 1})

    def alone() -> list[Any]:
        return connection.execute(
            "SELECT loglevel, count(*) FROM read_parquet($1) GROUP BY loglevel", [files]
        ).fetchall()

    if found != sorted(alone()):
        raise SystemExit("the query and DuckDB do not count the same")
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(median(alone, 1))
        ours.append(median(lambda: table.query(COUNT, limits=ONE_THREAD).arrow(), 1))
    return {
        "query_seconds": float(np.median(ours)),
        "duckdb_seconds": float(np.median(theirs)),
        "query_over_duckdb": float(np.median(ours) / np.median(theirs)),
        "gigabytes_per_second_and_core": raw_bytes / 1e9 / float(np.median(ours)),
        "columns_read": query.report.scans[0].columns,
        "way": query.report.scans[0].way,
    }


def compiling(table: Table, rounds: int) -> dict[str, float]:
    """Milliseconds from the text of a query to its SQL, for queries of usual length."""
    catalog = Catalog(table._view, table.uri, lambda name: (_ for _ in ()).throw(KeyError(name)))

    def compiled(text: str) -> Callable[[], str]:
        return lambda: compile_query(text, catalog).lowered("duckdb").sql()

    seconds = [median(compiled(text), rounds) for text in COMPILED]
    return {"median_milliseconds": 1e3 * float(np.median(seconds)), "most_milliseconds": 1e3 * max(seconds)}


def run(megabytes: float, seed: int, rounds: int, say: Callable[[str], None]) -> dict[str, Any]:
    """The whole benchmark."""
    with tempfile.TemporaryDirectory(prefix="coprlake-benchmark-") as name:
        say(f"writing a table of {megabytes:.0f} MB")
        table, raw_bytes = write_table(Path(name) / "table", megabytes, seed)
        figures: dict[str, Any] = {"raw_bytes": raw_bytes, "segments": len(table.snapshot().segments)}
        say("a selective pipeline")
        figures["selective"] = selective(table, rounds)
        say("a count over everything")
        figures["counting"] = counting(table, raw_bytes, rounds)
        say("parsing and compiling")
        figures["compiling"] = compiling(table, rounds)
        return figures


def report(figures: dict[str, Any]) -> str:
    """The figures for people."""
    needle, count, compiled = figures["selective"], figures["counting"], figures["compiling"]
    return "\n".join(
        [
            f"raw {figures['raw_bytes'] / 1e6:,.0f} MB, {figures['segments']} segments",
            f"selective pipeline {1e3 * needle['query_seconds']:.1f} ms; "
            f"bare search {1e3 * needle['search_seconds']:.1f} ms; "
            f"{needle['query_over_allowed']:.2f} of the allowed 2 x search + 30 ms; "
            f"{needle['batches_opened']} of {needle['batches']} batches opened",
            f"count by level {1e3 * count['query_seconds']:.1f} ms, "
            f"DuckDB alone {1e3 * count['duckdb_seconds']:.1f} ms: "
            f"{count['query_over_duckdb']:.2f} x; {count['gigabytes_per_second_and_core']:.1f} GB/s and core",
            f"parse and compile {compiled['median_milliseconds']:.1f} ms, "
            f"at most {compiled['most_milliseconds']:.1f} ms",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queries", description="Queries, in figures.")
    parser.add_argument("--megabytes", type=float, default=400, help="size of the generated logs (default: 400)")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other logs")
    parser.add_argument("--rounds", type=int, default=15, help="how often each query runs (default: 15)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(arguments)
    figures = run(options.megabytes, options.seed, options.rounds, lambda text: print(text, file=sys.stderr))
    print(json.dumps(figures, indent=1) if options.json else report(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
