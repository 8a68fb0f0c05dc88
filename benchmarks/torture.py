"""``python -m benchmarks.torture --minutes N --seed S --json``: hurt tables for N minutes, and count what breaks.

The minutes are shared among five tortures of `coprlake.testing.torture`; with ``--jobs 2`` they run in two processes
side by side. The run prints one JSON object with cases, failures and seconds of each, and how long a commit takes.
Every failure names a seed and the smallest case that still fails. A torture that breaks down itself is a failure of
its own and does not end the run. The exit code is 1 if anything failed.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Final

from coprlake.testing.torture.outcome import Budget, Failure, Outcome

WEIGHTS: Final = {"crash_states": 0.25, "kills": 0.30, "faults": 0.10, "mutations": 0.20, "differential": 0.15}
"""The part of the time that each torture gets."""
ORDER: Final = ("kills", "crash_states", "mutations", "differential", "faults")
"""Long ones first, so that two processes end at about the same time."""
PACKAGES: Final = ("coprlake", "deltalake", "duckdb", "numba", "numpy", "polars", "pyarrow", "pyspark")
COMMITS: Final = "commit_milliseconds"
PROGRESS_SECONDS: Final = 30.0
GRACE_SECONDS: Final = 900.0
"""A torture that takes so much longer than it was given hangs."""
BUSY: Final = 0.05
"""A run with more steal time than this is not final."""


@contextmanager
def _progress(name: str) -> Iterator[None]:
    """Say now and then how far a torture is."""
    over = threading.Event()
    started = time.monotonic()

    def tell() -> None:
        while not over.wait(PROGRESS_SECONDS):
            _say(name, Budget.latest or Outcome(), time.monotonic() - started)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _say(name: str, outcome: Outcome, seconds: float) -> None:
    counts = f"{outcome.cases:,} cases, {len(outcome.failures)} failures"
    print(f"{name}: {counts}, {seconds:.0f} s", file=sys.stderr, flush=True)


def torture(name: str, seed: int, seconds: float, folder: Path, cases: int | None = None) -> Outcome:
    """Run one torture in this process; whatever it raises is a failure of its own."""
    began = time.monotonic()
    try:
        module = import_module(f"coprlake.testing.torture.{name}")
    except ModuleNotFoundError as error:
        return _broken(seed, name, f"there is no such torture: {error}", began)
    (folder / name).mkdir(parents=True, exist_ok=True)
    try:
        with _progress(name):
            outcome: Outcome = module.run(seed, seconds, folder / name, cases)
    except Exception:
        return _broken(seed, name, f"the torture itself broke down:\n{traceback.format_exc()}", began)
    return outcome


def _broken(seed: int, name: str, what: str, began: float) -> Outcome:
    outcome = Outcome(failures=[Failure(seed, f"coprlake.testing.torture.{name}.run({seed}, ...)", what)])
    outcome.seconds = time.monotonic() - began
    return outcome


def commit_milliseconds() -> Any:
    """How long a commit takes; a text that says why not, if that cannot be measured."""
    try:
        return import_module("coprlake.testing.torture.commit_cost").commit_milliseconds()
    except ModuleNotFoundError as error:
        return f"not measured: {error}"


# --- processes ---


def elsewhere(name: str, options: argparse.Namespace, seconds: float, folder: Path) -> dict[str, Any]:
    """One torture in a process of its own: what kills that process ends nothing else."""
    command = [sys.executable, "-m", "benchmarks.torture", "--one", name, "--seed", str(options.seed)]
    command += ["--seconds", str(seconds), "--folder", str(folder)]
    if options.cases is not None:
        command += ["--cases", str(options.cases)]
    started = time.monotonic()
    problem = ""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=seconds + GRACE_SECONDS, check=False)
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        problem = f"it did not end {GRACE_SECONDS:.0f} seconds after its time"
    except (IndexError, ValueError):
        problem = f"its process ended with {done.returncode} and no report"
    if problem:
        found = _broken(options.seed, name, problem, started).as_json()
    for example in found["examples"]:
        print(f"{name}: FAILED: {example}", file=sys.stderr)
    print(
        f"{name}: {found['cases']:,} cases, {found['failures']} failures, {found['seconds']:.0f} s, done",
        file=sys.stderr,
        flush=True,
    )
    return found


def seconds_of(names: Sequence[str], minutes: float, jobs: int) -> dict[str, float]:
    """The time of each torture: together it is that of the run, times the number of processes."""
    total = sum(WEIGHTS[name] for name in names)
    workers = min(jobs, len(names))
    most = 60 * minutes  # one that runs alone cannot use two cores
    return {name: min(most, 60 * minutes * workers * WEIGHTS[name] / total) for name in names}


# --- the machine ---


def machine() -> dict[str, Any]:
    """What the run was made on."""
    cpu = platform.processor()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    return {"cpu": cpu, "cores": os.cpu_count(), "system": platform.platform()}


def versions() -> dict[str, str]:
    """Of Python and of the packages that matter."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def processor_ticks() -> tuple[int, int]:
    """All ticks of the processors so far, and those that another machine had."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0, 0
    ticks = [int(part) for part in stat.read_text().splitlines()[0].split()[1:9]]
    return sum(ticks), ticks[7]


def run(options: argparse.Namespace) -> dict[str, Any]:
    """All tortures of a run; the report."""
    names = [name for name in ORDER if not options.only or name in options.only]
    seconds = seconds_of(names, options.minutes, options.jobs)
    load_before, ticks = os.getloadavg(), processor_ticks()
    began, started = datetime.now(UTC), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="coprlake-torture-", dir=options.folder) as folder:
        commits = None if options.only else commit_milliseconds()  # first: nothing of ours runs beside it
        with ThreadPoolExecutor(options.jobs) as pool:
            running = {name: pool.submit(elsewhere, name, options, seconds[name], Path(folder)) for name in names}
            found = {name: future.result() for name, future in running.items()}
    all_ticks, stolen = (now - before for now, before in zip(processor_ticks(), ticks, strict=True))
    steal = stolen / all_ticks if all_ticks else 0.0
    return {
        **{name: found[name] for name in WEIGHTS if name in found},
        COMMITS: commits,
        "seed": options.seed,
        "minutes": round((time.monotonic() - started) / 60, 2),
        "jobs": options.jobs,
        "started": began.isoformat(timespec="seconds"),
        "load_before": [round(load, 2) for load in load_before],
        "load_after": [round(load, 2) for load in os.getloadavg()],
        "steal": round(steal, 4),
        "is_final": steal < BUSY and load_before[0] < 0.5,
        "machine": machine(),
        "versions": versions(),
        "command": "python -m benchmarks.torture " + " ".join(sys.argv[1:]),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tortures and print the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torture", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--minutes", type=float, default=5.0, help="wall-clock time of the whole run (default: 5)")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is random (default: 1)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--only", action="append", choices=list(WEIGHTS), help="run this torture; may be repeated")
    parser.add_argument("--folder", type=Path, help="where to put the tables (default: the system's temporary folder)")
    parser.add_argument("--jobs", type=int, default=1, help="tortures that run side by side (default: 1)")
    parser.add_argument("--cases", type=int, help="end each torture after this many cases")
    parser.add_argument("--one", choices=list(WEIGHTS), help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        outcome = torture(options.one, options.seed, options.seconds, options.folder, options.cases)
        print(json.dumps(outcome.as_json()))
        return 0
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
    report = run(options)
    failures = sum(report[name]["failures"] for name in WEIGHTS if name in report)
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        for name in WEIGHTS:
            if name in report:
                row = report[name]
                print(f"{name:14} {row['cases']:>9,} cases {row['failures']:>5} failures {row['seconds']:>8.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
