"""``python -m benchmarks.first_contact --json``: what a newcomer waits for, from ``pip install`` to an answer.

Programs are timed from start to exit, each in turn with a bare ``python -c "import pyarrow"``, so that their ratios are
of the same moments; the median of the runs counts. With ripgrep on the path, a search is also compared with it.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from benchmarks.torture import BUSY, machine, processor_ticks, versions
from coprlake import Table, open_table, term
from scripts.fresh_environment import Environment, build, plain_environment

ABSENT: Final = "qzjxkvwyqzjxkvwy"
FIRST_HIT: Final = "firsthitneedle"
YEARS: Final = 13
THREADS: Final = 8
_PROGRAM: Final = ("-c", "import sys; sys.argv[0] = 'coprlake'; from coprlake.cli.main import main; main()")
_SITE: Final = Path(__file__).parent.parent / "src"


def program(*arguments: str) -> list[str]:
    """The command line of coprlake with these arguments, as the installed script runs it."""
    return [sys.executable, *_PROGRAM, *arguments]


def here() -> dict[str, str]:
    """The environment of a timed program: that of a user, with this checkout as the installed package."""
    return plain_environment() | {"PYTHONPATH": str(_SITE)}


def seconds_of(command: Sequence[str], exit_codes: Sequence[int] = (0,), **more: Any) -> float:
    """How long a program takes from start to exit."""
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, timeout=600, check=False, stdin=subprocess.DEVNULL, **more)
    seconds = time.perf_counter() - started
    if done.returncode not in exit_codes:
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return seconds


def output_of(*arguments: str) -> Any:
    """The JSON that a command of coprlake prints."""
    done = subprocess.run(program(*arguments), capture_output=True, timeout=900, check=False, env=here())
    if done.returncode:
        raise RuntimeError(f"{arguments} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return json.loads(done.stdout)


def starts(table: Path, raw: Path, runs: int) -> dict[str, Any]:
    """The times from start to exit, and their ratios to a bare import of PyArrow in the same rounds."""
    variables = here()
    commands: dict[str, tuple[list[str], tuple[int, ...]]] = {
        "pyarrow": ([sys.executable, "-c", "import pyarrow"], (0,)),
        "search": (program("search", ABSENT, str(table)), (1,)),
        "query": (program("query", "fetch logs | summarize n = count()", "--table", str(table)), (0,)),
        "help": (program("--help"), (0,)),
        "import": ([sys.executable, "-c", "import coprlake"], (0,)),
    }
    if ripgrep := shutil.which("rg"):
        commands["ripgrep"] = ([ripgrep, "-c", ABSENT, str(raw)], (1,))
    spent: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(runs + 1):
        for name, (command, codes) in commands.items():
            seconds = seconds_of(command, codes, env=variables)
            if number:  # the first round fills caches
                spent[name].append(seconds)
    middle = {name: statistics.median(times) for name, times in spent.items()}
    found: dict[str, Any] = {f"{name}_seconds": round(seconds, 4) for name, seconds in middle.items()}
    for name in ("search", "query", "help", "import"):
        found[f"{name}_over_pyarrow"] = round(middle[name] / middle["pyarrow"], 2)
    found["search_over_ripgrep"] = round(middle["search"] / middle["ripgrep"], 3) if ripgrep else None
    return found


def installation(log: Path, scratch: Path, bare_seconds: float) -> dict[str, Any]:
    """From ``pip install`` of the wheel in a fresh environment to the first hit in a small log."""
    _, wheel = build(scratch)
    fresh = Environment(scratch / "fresh")
    before = sum(fresh.disk_bytes().values())
    started = time.perf_counter()
    fresh.install(str(wheel))
    installed = time.perf_counter()
    work = scratch / "work"
    work.mkdir()
    fresh.run("coprlake", "ingest", str(log), "--into", "logs", cwd=work)
    found = fresh.run("coprlake", "search", FIRST_HIT, "logs", cwd=work)
    done = time.perf_counter()
    if FIRST_HIT not in found:
        raise RuntimeError("the first search found nothing")
    sizes = fresh.disk_bytes()
    return {
        "install_to_first_hit_seconds": round(done - started, 2),
        "after_install_seconds": round(done - installed, 2),
        "after_install_over_pyarrow": round((done - installed) / bare_seconds, 1),
        "core_install_bytes": sum(sizes.values()) - before,
        "core_install_largest": dict(sorted(sizes.items(), key=lambda item: -item[1])[:12]),
    }


def over_years(lines: Sequence[str]) -> list[str]:
    """The lines with times of their own, evenly over some years."""
    first, step = datetime(2013, 1, 1, tzinfo=UTC), timedelta(days=365.25 * YEARS) / max(1, len(lines))
    return [f"{first + number * step:%Y-%m-%dT%H:%M:%SZ} {line}" for number, line in enumerate(lines)]


def many_years(log: Path, scratch: Path) -> dict[str, Any]:
    """A log over many years with defaults, and how fast that is compared with a table without partitions."""
    rates: dict[str, list[float]] = {"default": [], "unpartitioned": []}
    options = {"default": (), "unpartitioned": ("--partition-by", "none")}
    table = ""
    for number in range(3):
        for name in rates:
            table = str(scratch / f"years-{name}-{number}")
            told = output_of("ingest", str(log), "--into", table, "--engine", "local", "--json", *options[name])
            rates[name].append(told["raw_bytes"] / told["seconds"])
    info = output_of("info", str(scratch / "years-default-0"), "--json")
    return {
        "raw_bytes": info["raw_bytes"],
        "segments": info["segments"],
        "index_percent": round(100 * info["index_bytes"] / info["raw_bytes"], 3),
        "ingest_over_unpartitioned": round(max(rates["default"]) / max(rates["unpartitioned"]), 3),
    }


def threads_over_one(table: Table, seconds: float) -> dict[str, Any]:
    """Absent needles asked by several threads at once, compared with one thread."""
    predicate = term(ABSENT)

    def ask(until: float) -> int:
        count = 0
        while time.perf_counter() < until:
            for _ in range(50):
                table.search(predicate).count()
            count += 50
        return count

    def rate(threads: int) -> float:
        with ThreadPoolExecutor(threads) as pool:
            began = time.perf_counter()
            asked = sum(pool.map(ask, [began + seconds] * threads))
            return asked / (time.perf_counter() - began)

    rate(1)
    rates = [(rate(1), rate(THREADS)) for _ in range(3)]
    one, several = max(first for first, _ in rates), max(second for _, second in rates)
    return {"needles_per_second": {"one": round(one), "threads": round(several)}, "threads_over_one": several / one}


def run(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure all of it."""
    load_before, ticks = os.getloadavg(), processor_ticks()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="coprlake-first-contact-", dir=options.folder) as name:
        scratch = Path(name)
        say(f"generating {options.megabytes:g} MB, and ingesting them")
        raw, table = scratch / "a.log", scratch / "logs"
        seconds_of(program("generate", "--megabytes", str(options.megabytes), "--out", str(raw)), env=here())
        output_of("ingest", str(raw), "--into", str(table), "--engine", "local", "--json")
        say("starting programs")
        figures |= starts(table, raw, options.runs)
        say("asking from several threads")
        figures |= threads_over_one(open_table(table), options.thread_seconds)
        say(f"ingesting a log of {YEARS} years")
        lines = _first(raw, options.years_megabytes)
        years = scratch / "years.log"
        years.write_text("\n".join(over_years(lines)) + "\n")
        figures["many_years"] = many_years(years, scratch)
        if not options.no_install:
            say("installing into an empty environment")
            small = scratch / "small.log"
            small.write_text("\n".join([*_first(raw, options.log_megabytes), f"the line with {FIRST_HIT}"]) + "\n")
            figures |= installation(small, scratch, figures["pyarrow_seconds"])
    all_ticks, stolen = (now - before for now, before in zip(processor_ticks(), ticks, strict=True))
    steal = stolen / all_ticks if all_ticks else 0.0
    return figures | {
        "megabytes": options.megabytes,
        "runs": options.runs,
        "load_before": [round(load, 2) for load in load_before],
        "steal": round(steal, 4),
        "is_final": steal < BUSY and load_before[0] < 0.5,
        "machine": machine(),
        "versions": versions(),
    }


def _first(raw: Path, megabytes: float) -> list[str]:
    """The first lines of a log, about so much of it."""
    with raw.open(encoding="utf-8", errors="replace") as file:
        return file.read(int(megabytes * 1e6)).split("\n")[:-1]


def _print(figures: Mapping[str, Any]) -> None:
    for name, value in figures.items():
        print(f"{name:32}{value}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_contact", description=__doc__)
    parser.add_argument("--megabytes", type=float, default=200.0, help="size of the searched table (default: 200)")
    parser.add_argument("--years-megabytes", type=float, default=20.0, help="size of the log over years (default: 20)")
    parser.add_argument("--log-megabytes", type=float, default=10.0, help="size of a user's first log (default: 10)")
    parser.add_argument("--runs", type=int, default=7, help="starts of each program (default: 7)")
    parser.add_argument("--thread-seconds", type=float, default=2.0, help="time of a round with threads (default: 2)")
    parser.add_argument("--no-install", action="store_true", help="leave out the installation")
    parser.add_argument("--folder", help="where to put scratch files")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    figures = run(options, lambda text: print(text, file=sys.stderr, flush=True))
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        _print(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
