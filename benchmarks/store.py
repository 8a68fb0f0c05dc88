"""``python -m benchmarks.store``: what it costs to store logs in a table, and to search them with and without sketches.

Logs are generated (or taken from ``--logs PATH``), written to files, and ingested: read, parsed, indexed, compressed,
written and committed. The paper's five query scenarios (5.2) then run through the Python API, once with the sketches
and once as a scan of the same table; a run in which the two do not find the same lines fails. All on one thread.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from coprlake.errors import CoprlakeError
from coprlake.generator import generate
from coprlake.ingestion import IngestReport, ingest
from coprlake.intake.reading import Intake, ReadOptions
from coprlake.predicate.predicates import Contains, Predicate, Term
from coprlake.segment.sealed import SealedSegment
from coprlake.table import Table, create_table, open_table

QUERIES = 100
FILE_LINES = 32_768
OPENINGS = 50


@dataclass
class Run:
    """The figures of one way to answer the queries of a scenario."""

    queries_per_second: float
    lines: int
    error_rate: float


def write_logs(megabytes: float, seed: int, folder: Path) -> None:
    """Generated logs as files, the lines of a source together: as if small files had been brought into larger ones."""
    logs = generate(megabytes=megabytes, seed=seed)
    order = np.argsort(np.asarray(logs.source), kind="stable")
    content = logs.content.take(pa.array(order))
    for number, first in enumerate(range(0, len(content), FILE_LINES)):
        lines = content.slice(first, FILE_LINES).to_pylist()
        (folder / f"{number:05d}.log").write_text("\n".join(lines) + "\n")


def warm_up(folder: Path) -> None:
    """Compile or load all kernels, outside of what is timed."""
    lines = [f"2026-11-16T03:55:00Z INFO warm {i:04x} connection from 10.1.2.{i}" for i in range(200)]
    (folder / "warm.log").write_text("\n".join(lines))
    table = create_table(folder / "warm")
    ingest(table, Intake([folder / "warm.log"], ReadOptions(format="text")))
    for predicate in (Term("warm"), Contains("onnect"), Term("no-such-id"), Contains("nosuchid")):
        for use_sketches in (True, False):
            lines_of(table, predicate, use_sketches=use_sketches)


def run_ingest(logs: Path, table_folder: Path) -> dict[str, Any]:
    """Ingest in this process: seconds, and the peak of its memory."""
    with tempfile.TemporaryDirectory(prefix="coprlake-warm-") as folder:
        warm_up(Path(folder))
    table = create_table(table_folder)
    report: IngestReport = ingest(table, Intake([logs], ReadOptions(format="text")))
    return {
        "ingest_seconds": report.seconds,
        "raw_bytes": report.raw_bytes,
        "data_bytes": report.data_bytes,
        "index_bytes": report.index_bytes,
        "rows": report.row_count,
        "segments": sum(len(written.segments) for written in report.written),
        "batches": sum(segment.batch_count for written in report.written for segment in written.segments),
        "seconds_by_phase": report.written[-1].seconds_by_phase,
        "peak_memory_bytes": peak_memory_bytes(),
    }


def peak_memory_bytes() -> int:
    """Of this process; `getrusage` would count what its parent had when it was forked."""
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(kilobytes)


def ingest_elsewhere(logs: Path, table_folder: Path) -> dict[str, Any]:
    """`run_ingest` in a process of its own, so that its memory is that of an ingest."""
    command = [sys.executable, "-m", "benchmarks.store", "--ingest", str(logs), str(table_folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CoprlakeError(done.stderr.strip().removeprefix("error: "))
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def batches_of(table: Table) -> Iterator[tuple[SealedSegment, int]]:
    """All batches of a table."""
    for segment in table.snapshot().segments:
        for batch in range(segment.batch_count):
            yield segment, batch


def compress(table: Table) -> dict[str, float]:
    """The lines of the same batches through bare zstd level 3: the yardstick; the best of three rounds."""
    codec = pa.Codec("zstd", compression_level=3)
    texts = [("\n".join(s.read(b, ["content"]).column(0).to_pylist()) + "\n").encode() for s, b in batches_of(table)]
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        size = sum(len(codec.compress(text, asbytes=True)) for text in texts)
        seconds.append(time.perf_counter() - started)
    content = sum(s.stored_bytes(b, ["content"]) for s, b in batches_of(table))
    return {"zstd3_seconds": min(seconds), "zstd3_bytes": size, "content_bytes": content}


def open_seconds(table: Table) -> dict[str, float]:
    """A segment that was not open: until its sketch can be asked, and until its data can be read."""
    segment = max(table.snapshot().segments, key=lambda one: one.entry.data_bytes)
    sketch, footer = [], []
    for _ in range(OPENINGS):
        fresh = SealedSegment(segment._folder, segment.entry, segment.constants)
        started = time.perf_counter()
        assert fresh.sidecar is not None
        opened = time.perf_counter()
        _ = fresh.footer
        footer.append(time.perf_counter() - opened)
        sketch.append(opened - started)
        fresh.close()
    return {
        "open_microseconds": 1e6 * float(np.median(sketch)),
        "footer_microseconds": 1e6 * float(np.median(footer)),
    }


def scenarios(table: Table, seed: int) -> dict[str, list[Predicate]]:
    """The paper's queries (5.2): 16 random letters, three random groups of three digits, long tokens of the data."""
    random = np.random.default_rng(seed)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    ids = ["".join(random.choice(letters, 16)) for _ in range(QUERIES)]
    addresses = [".".join(map(str, random.integers(100, 1000, 3))) for _ in range(QUERIES)]
    extracted = long_tokens(table, random)
    return {
        "term_id": [Term(text) for text in ids],
        "contains_id": [Contains(text) for text in ids],
        "term_ip": [Term(text) for text in addresses],
        "contains_ip": [Contains(text) for text in addresses],
        "term_extracted": [Term(text) for text in extracted],
    }


def long_tokens(table: Table, random: np.random.Generator) -> list[str]:
    """Some of the distinct words of more than eight letters and digits, each as likely as any other.

    So most are rare, as in the paper, where such a term is in 0.4 to 4.8 % of the batches.
    """
    words: set[bytes] = set()
    for segment, batch in batches_of(table):
        lines = segment.read(batch, ["content"]).column(0).to_pylist()
        words.update(re.findall(rb"[0-9A-Za-z]{9,}", "\n".join(lines).encode()))
    ordered = sorted(words)
    return [ordered[number].decode() for number in random.choice(len(ordered), QUERIES, replace=False)]


def lines_of(table: Table, predicate: Predicate, *, use_sketches: bool) -> tuple[int, float]:
    """Search and take all matching lines: how many, and the batches opened for nothing as a part of all."""
    search = table.search(predicate, columns=["content"], threads=1, use_sketches=use_sketches)
    lines = sum(batch.num_rows for batch in search)
    return lines, search.report.batches_for_nothing


def measure(table: Table, queries: list[Predicate], batch_count: int, *, use_sketches: bool) -> tuple[Run, list[int]]:
    """Run all queries of a scenario."""
    for query in queries[:2]:
        lines_of(table, query, use_sketches=use_sketches)
    started = time.perf_counter()
    found = [lines_of(table, query, use_sketches=use_sketches) for query in queries]
    seconds = time.perf_counter() - started
    lines = [count for count, _ in found]
    wasted = sum(count for _, count in found) / batch_count / len(queries)
    return Run(len(queries) / seconds, sum(lines), wasted), lines


def absent_microseconds(table: Table) -> float:
    """A warm search for a term that is not there, through the whole Python API; the best of many."""
    predicate = Term("qzjxkvwyqzjxkvwy")
    best = float("inf")
    for _ in range(2000):
        started = time.perf_counter()
        count = table.search(predicate).count()
        best = min(best, time.perf_counter() - started)
        assert count == 0
    return 1e6 * best


def run(logs: Path | None, megabytes: float, seed: int, say: Callable[[str], None]) -> dict[str, Any]:
    """The whole benchmark."""
    with tempfile.TemporaryDirectory(prefix="coprlake-benchmark-") as name:
        folder = Path(name)
        if logs is None:
            logs = folder / "logs"
            logs.mkdir()
            say(f"generating {megabytes:.0f} MB")
            write_logs(megabytes, seed, logs)
        say("ingesting")
        warm_up(folder)  # also fills the cache of kernels: compiling them would count as memory
        figures = ingest_elsewhere(logs, folder / "table")
        table = open_table(folder / "table")
        figures |= compress(table)
        figures |= open_seconds(table)
        figures["absent_microseconds"] = absent_microseconds(table)
        figures["queries"] = {}
        for scenario, queries in scenarios(table, seed).items():
            say(scenario)
            copr, found = measure(table, queries, figures["batches"], use_sketches=True)
            scan, truth = measure(table, queries, figures["batches"], use_sketches=False)
            if found != truth:
                raise SystemExit(f"{scenario}: the sketches lost lines: {sum(found)} of {sum(truth)} found")
            figures["queries"][scenario] = {
                "coprlake": copr.__dict__,
                "scan": scan.__dict__,
                "speedup_over_scan": copr.queries_per_second / scan.queries_per_second,
            }
        scan_speed = figures["queries"]["term_id"]["scan"]["queries_per_second"] * figures["raw_bytes"] / 1e9
        return figures | {"scan_gigabytes_per_second": scan_speed} | ratios(figures)


def ratios(figures: dict[str, Any]) -> dict[str, float]:
    """What does not depend on the machine."""
    return {
        "ingest_over_zstd3": figures["ingest_seconds"] / figures["zstd3_seconds"],
        "data_over_zstd3": figures["data_bytes"] / figures["zstd3_bytes"],
        "content_over_zstd3": figures["content_bytes"] / figures["zstd3_bytes"],
        "data_percent": 100 * figures["data_bytes"] / figures["raw_bytes"],
        "index_percent": 100 * figures["index_bytes"] / figures["raw_bytes"],
    }


def report(figures: dict[str, Any]) -> str:
    """The figures for people."""
    lines = [
        f"raw {figures['raw_bytes'] / 1e6:,.1f} MB, {figures['rows']:,} records, {figures['segments']} segments, "
        f"{figures['batches']} batches",
        f"ingest {figures['ingest_seconds']:.2f} s: {figures['ingest_over_zstd3']:.2f} x zstd level 3, "
        f"peak memory {figures['peak_memory_bytes'] / 1e6:,.0f} MB",
        f"data {figures['data_percent']:.2f} % of raw ({figures['data_over_zstd3']:.3f} x zstd; the content alone "
        f"{figures['content_over_zstd3']:.3f}), index {figures['index_percent']:.2f} %",
        f"open {figures['open_microseconds']:.0f} us, footer {figures['footer_microseconds']:.0f} us, "
        f"absent term {figures['absent_microseconds']:.1f} us, scan {figures['scan_gigabytes_per_second']:.2f} GB/s",
    ]
    for scenario, both in figures["queries"].items():
        lines.append(
            f"{scenario:15s} {both['coprlake']['queries_per_second']:12,.1f} q/s, scan "
            f"{both['scan']['queries_per_second']:8,.2f} q/s, {both['speedup_over_scan']:10,.1f} x, "
            f"{both['coprlake']['lines']:,} lines, error rate {both['coprlake']['error_rate']:.6f}"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.store", description="Store and search logs, in figures."
    )
    parser.add_argument("--megabytes", type=float, default=200, help="size of the generated logs (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other logs and queries")
    parser.add_argument("--logs", type=Path, help="a file or folder of logs instead of generated ones")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--ingest", nargs=2, metavar=("LOGS", "TABLE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    try:
        if options.ingest:
            print(json.dumps(run_ingest(Path(options.ingest[0]), Path(options.ingest[1]))))
            return 0
        figures = run(options.logs, options.megabytes, options.seed, lambda text: print(text, file=sys.stderr))
    except CoprlakeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(figures, indent=1) if options.json else report(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
