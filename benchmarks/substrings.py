"""``python -m benchmarks.substrings``: the paper's token rules against ours, on the same logs.

Both ways to index store the same files in a table of their own, in turns, each time in a process of its own: `paper`
has rules 1-8 and 10 signature bits, `default` what a table has when nobody says otherwise. Then both answer the same
queries, round after round, with scans in between: what slows the machine down slows all of them, and ratios remain. A
run in which the two do not find as many lines, or not the lines that a scan finds, fails. All on one thread.

``--logs PATH`` is a folder. If it has fewer bytes than ``--megabytes`` and files named like LogHub's samples
(``*_2k.log``), logs are generated after these; else its lines are taken as they are, about the first ``--megabytes``.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.figures import substrings_table
from benchmarks.paper.scenarios import long_words
from benchmarks.store import FILE_LINES, lines_of
from coprlake.config import RULES
from coprlake.errors import CoprlakeError, NotFoundError, UsageError
from coprlake.generator import generate
from coprlake.ingestion import ingest
from coprlake.intake.reading import Intake, ReadOptions
from coprlake.predicate.predicates import Contains, Predicate, Term
from coprlake.segment.mutable import SegmentOptions
from coprlake.storage.writer import TableWriter
from coprlake.table import Table, create_table, open_table

WAYS = {
    "paper": SegmentOptions(rules="paper", signature_bits=10),
    "default": SegmentOptions(rules=RULES),
    "paper_8_bits": SegmentOptions(rules="paper", signature_bits=8),
}
COMPARED = ("paper", "default")
CHECKED = 5
CHUNK = 10  # queries between two scans
LEAST_SECONDS = 0.1
WARM_UP_FILES = 4
WARM_UP_MEMORY_BYTES = 2 << 20  # so little that the sketch of these files spills
NOISE = 0.9


class WayTable(Table):
    """A table whose writers have the options of a way to index, also those that `ingest` makes."""

    def __init__(self, folder: Path, options: SegmentOptions) -> None:
        super().__init__(create_table(folder, partition_by=None, rules=options.rules or RULES)._log)
        self._options = options

    def writer(self, **arguments: Any) -> TableWriter:
        """As that of any table."""
        return super().writer(**{"options": self._options, **arguments})


def prepare_logs(path: Path | None, megabytes: float, seed: int, folder: Path) -> str:
    """Write the logs of a run into the folder as text files; returns what they are."""
    if path is not None and not path.is_dir():
        raise NotFoundError(f"{path}: there is no such folder; name a folder of log files")
    if path is not None and not is_samples(path, megabytes):
        copy_logs(path, megabytes * 1e6, folder)
        return path.resolve().name
    logs = generate(megabytes=megabytes, seed=seed, samples=path)
    content = logs.content.take(pa.array(np.argsort(np.asarray(logs.source), kind="stable")))
    for number, first in enumerate(range(0, len(content), FILE_LINES)):
        append_lines(folder / f"{number:05d}.log", content.slice(first, FILE_LINES))
    return "generated" if path is None else f"generated after the samples of {path.resolve().name}"


def is_samples(path: Path, megabytes: float) -> bool:
    """Whether a folder has LogHub's samples, and not enough of them."""
    total = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return total < megabytes * 1e6 and any(path.glob("*_2k.log"))


def copy_logs(path: Path, limit_bytes: float, folder: Path) -> None:
    """The lines of all files, decompressed, a file for each of them, until there are enough."""
    files: dict[str, Path] = {}
    with Intake([path], ReadOptions(format="text")) as intake:
        for batch in intake:
            source = str(batch.column("source")[0])
            append_lines(files.setdefault(source, folder / f"{len(files):05d}.log"), batch.column("content"))
            if intake.report.raw_bytes >= limit_bytes:
                return
    if not files:
        raise UsageError(f"{path}: there are no lines in its files; name a folder of log files")


def append_lines(file: Path, lines: pa.Array) -> None:
    """Add lines to a file."""
    with file.open("ab") as out:
        out.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())


def run_ingest(logs: Path, table_folder: Path, way: str) -> dict[str, Any]:
    """Ingest in this process, after some of the files to warm up: no kernel is compiled or loaded while time counts."""
    options = WAYS[way]
    with tempfile.TemporaryDirectory(prefix="coprlake-warm-") as folder:
        spilling = replace(options, memory_limit_bytes=WARM_UP_MEMORY_BYTES)
        some = sorted(logs.iterdir())[:WARM_UP_FILES]
        ingest(WayTable(Path(folder) / "table", spilling), Intake(some, ReadOptions(format="text")))
    report = ingest(WayTable(table_folder, options), Intake([logs], ReadOptions(format="text")))
    (written,) = report.written
    return {
        "ingest_seconds": report.seconds,
        "seal_seconds": written.seconds_by_phase["seal sketch"],
        "raw_bytes": report.raw_bytes,
        "index_percent": 100 * report.index_bytes / report.raw_bytes,
        "batches": sum(segment.batch_count for segment in written.segments),
        "segments": len(written.segments),
    }


def ingest_elsewhere(logs: Path, table_folder: Path, way: str) -> dict[str, Any]:
    """`run_ingest` in a process of its own, into a new table."""
    shutil.rmtree(table_folder, ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.substrings", "--ingest", str(logs), str(table_folder), way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CoprlakeError(done.stderr.strip().removeprefix("error: "))
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def ingest_in_turns(logs: Path, folder: Path, rounds: int) -> dict[str, dict[str, Any]]:
    """The figures of each way that is compared; seconds are the best of the rounds. The last tables remain."""
    best: dict[str, dict[str, Any]] = {}
    for _ in range(rounds):
        for way in COMPARED:
            figures = ingest_elsewhere(logs, folder / way, way)
            known = best.setdefault(way, figures)
            for name in ("ingest_seconds", "seal_seconds"):
                known[name] = min(known[name], figures[name])
    if best["paper"]["batches"] != best["default"]["batches"]:
        raise CoprlakeError("the two tables have not the same batches: rules must not change how records are stored")
    return best


def scenarios(table: Table, count: int, seed: int) -> dict[str, list[Predicate]]:
    """The queries: those of the paper (5.2) for ids and addresses, and texts inside of numbers, hex ids and words."""
    random = np.random.default_rng(seed)

    def texts(letters: str, length: int) -> list[str]:
        return ["".join(row) for row in random.choice(list(letters), (count, length))]

    ids = texts("abcdefghijklmnopqrstuvwxyz", 16)
    addresses = [".".join(map(str, row)) for row in random.integers(100, 1000, (count, 3))]
    content = table.search(columns=["content"], threads=1).arrow().column("content")
    words = [word for word in long_words(content, count, seed) if len(word) > 8]
    if not words:
        raise UsageError("the logs have no word of more than eight letters and digits to look for; take other logs")
    return {
        "term_id": [Term(text) for text in ids],
        "contains_id": [Contains(text) for text in ids],
        "term_ip": [Term(text) for text in addresses],
        "contains_ip": [Contains(text) for text in addresses],
        "contains_number": [Contains(text) for text in texts("0123456789", 11)],
        "contains_hex": [Contains(text) for text in texts("0123456789abcdef", 12)],
        "contains_fragment": [Contains(word[1:-1]) for word in words],
    }


def check_against_scan(tables: dict[str, Table], queries: list[Predicate]) -> None:
    """Compare some queries with a scan, line by line; this is also what warms up the tables."""

    def matching(table: Table, query: Predicate, *, use_sketches: bool) -> list[str]:
        search = table.search(query, columns=["content"], threads=1, use_sketches=use_sketches)
        return sorted(search.arrow().column("content").to_pylist())

    for query in queries[:CHECKED]:
        truth = matching(tables["default"], query, use_sketches=False)
        for way, table in tables.items():
            found = matching(table, query, use_sketches=True)
            if found != truth:
                raise CoprlakeError(f"{query}: {way} found other lines than the scan: {len(found)}, not {len(truth)}")


@dataclass
class Answers:
    """What a table found: the lines of each query, batches opened for nothing, and the seconds that all took."""

    lines: list[int]
    wasted: float = 0
    seconds: float = 0


def ask(table: Table, queries: list[Predicate]) -> Answers:
    """Ask all queries once."""
    started = time.perf_counter()
    found = [lines_of(table, query, use_sketches=True) for query in queries]
    seconds = time.perf_counter() - started
    return Answers([lines for lines, _ in found], sum(wasted for _, wasted in found), seconds)


def ask_in_turns(tables: dict[str, Table], queries: list[Predicate]) -> dict[str, Answers]:
    """Ask one table after the other, again and again until that took long enough to be timed: the median counts."""
    passes: dict[str, list[Answers]] = {way: [] for way in tables}
    started = time.perf_counter()
    while not passes["paper"] or time.perf_counter() - started < LEAST_SECONDS:
        for way, table in tables.items():
            passes[way].append(ask(table, queries))
    return {
        way: replace(answers[-1], seconds=float(np.median([answer.seconds for answer in answers])))
        for way, answers in passes.items()
    }


def one_round(tables: dict[str, Table], queries: list[Predicate], number: int) -> tuple[dict[str, Answers], float]:
    """The answers of each table, and the seconds of a scan: some queries, a scan, some queries, a scan, and so on."""
    total = {way: Answers([]) for way in tables}
    scans: list[float] = []
    for first in range(0, len(queries), CHUNK):
        chunk = queries[first : first + CHUNK]
        answers = ask_in_turns(tables, chunk)
        place = number % len(chunk)
        started = time.perf_counter()
        truth, _ = lines_of(tables[COMPARED[len(scans) % 2]], chunk[place], use_sketches=False)
        scans.append(time.perf_counter() - started)
        for way, answer in answers.items():
            if answer.lines[place] != truth:
                raise CoprlakeError(f"{chunk[place]}: {way} found {answer.lines[place]} lines, the scan {truth}")
            total[way].lines += answer.lines
            total[way].wasted += answer.wasted
            total[way].seconds += answer.seconds
    return total, float(np.mean(scans))


def measure(scenario: str, queries: list[Predicate], tables: dict[str, Table], figures: dict[str, Any]) -> None:
    """Add the figures of a scenario to those of each way, and to `lines` and `scan_seconds`, which all share."""
    check_against_scan(tables, queries)
    rounds = [one_round(tables, queries, number) for number in range(figures["rounds"])]
    last, _ = rounds[-1]
    if last["paper"].lines != last["default"].lines:
        found = " and ".join(str(sum(answers.lines)) for answers in last.values())
        raise CoprlakeError(f"{scenario}: the two ways do not find the same lines: {found} in all")
    for way in tables:
        speedups = [scan * len(queries) / answers[way].seconds for answers, scan in rounds]
        figures[way].setdefault("speedup_over_scan", {})[scenario] = float(np.median(speedups))
        error_rate = last[way].wasted / len(queries) / figures["batches"]
        figures[way].setdefault("error_rate", {})[scenario] = error_rate
    figures.setdefault("lines", {})[scenario] = sum(last["default"].lines)
    figures.setdefault("scan_seconds", {})[scenario] = float(np.median([scan for _, scan in rounds]))


def run(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    """The whole benchmark."""
    with tempfile.TemporaryDirectory(prefix="coprlake-benchmark-") as name:
        folder = Path(name)
        logs = folder / "logs"
        logs.mkdir()
        say("logs")
        figures: dict[str, Any] = {"logs": prepare_logs(options.logs, options.megabytes, options.seed, logs)}
        say(f"ingesting {2 * options.rounds + 1} times")
        eight = ingest_elsewhere(logs, folder / "paper_8_bits", "paper_8_bits")  # first: it fills the cache of kernels
        figures |= {name: eight[name] for name in ("raw_bytes", "batches", "segments")}
        figures |= {"queries": options.queries, "rounds": options.rounds}
        figures |= {"paper_8_bits_index_percent": eight["index_percent"]}
        figures |= ingest_in_turns(logs, folder, options.rounds)
        tables = {way: open_table(folder / way) for way in COMPARED}
        for scenario, queries in scenarios(tables["default"], options.queries, options.seed).items():
            say(scenario)
            measure(scenario, queries, tables, figures)
        return figures | {"ratios": ratios(figures["paper"], figures["default"])}


def ratios(paper: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    """Ours over the paper's, and which limits are kept."""
    over = {name: default[name] / paper[name] for name in ("index_percent", "ingest_seconds", "seal_seconds")}
    reached: list[dict[str, Any]] = []

    def check(name: str, limit: float, value: float, *, is_least: bool) -> None:
        is_reached = value >= limit if is_least else value <= limit
        reached.append({"name": name, "limit": limit, "value": value, "reached": is_reached})

    speeds, paper_speeds = default["speedup_over_scan"], paper["speedup_over_scan"]
    for name, least in (("contains_ip", 50), ("contains_number", 500), ("contains_hex", 500)):
        check(f"{name}: at least {least} x the scan", least, speeds[name], is_least=True)
    check("contains_ip: at least 150 x the scan, if it can be had", 150, speeds["contains_ip"], is_least=True)
    for name in ("contains_id", "term_id", "term_ip"):
        check(f"{name}: as fast as paper, but for noise", NOISE, speeds[name] / paper_speeds[name], is_least=True)
        limit, rate = paper["error_rate"][name], default["error_rate"][name]
        check(f"{name}: error rate at most that of paper", limit, rate, is_least=False)
    for name, most in (("index_percent", 1.0), ("ingest_seconds", 1.1), ("seal_seconds", 1.2)):
        check(f"{name}: at most {most} x paper", most, over[name], is_least=False)
    return over | {"reached": reached}


def report(figures: dict[str, Any]) -> str:
    """The figures for people."""
    lines = [
        f"logs: {figures['logs']}, {figures['raw_bytes'] / 1e6:,.1f} MB, {figures['segments']} segments, "
        f"{figures['batches']} batches, {figures['queries']} queries each",
        "",
        substrings_table(figures),
        "",
    ]
    lines += [
        f"{'reached' if check['reached'] else 'missed':7s} {check['name']}: {check['value']:,.4g}"
        for check in figures["ratios"]["reached"]
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.substrings", description="The paper's token rules against ours, in figures."
    )
    parser.add_argument("--megabytes", type=float, default=200, help="size of the logs (default: 200)")
    parser.add_argument("--queries", type=int, default=100, help="of each scenario (default: 100)")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is timed (default: 3)")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other logs and queries")
    parser.add_argument("--logs", type=Path, help="a folder of logs, or of samples, instead of generated ones")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--ingest", nargs=3, metavar=("LOGS", "TABLE", "WAY"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    try:
        if options.ingest:
            logs, table, way = options.ingest
            print(json.dumps(run_ingest(Path(logs), Path(table), way)))
            return 0
        for name, least in (("megabytes", 1e-3), ("queries", 1), ("rounds", 1), ("seed", 0)):
            if not getattr(options, name) >= least:
                raise UsageError(f"--{name} must be at least {least}, found {getattr(options, name)}")
        figures = run(options, lambda text: print(text, file=sys.stderr))
    except (CoprlakeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(figures, indent=1) if options.json else report(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
