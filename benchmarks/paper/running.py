"""The whole run: every store on every set, one process after the other. What is done is kept, so a run can go on."""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.paper.datasets import DataSet
from benchmarks.stores.base import Store

Say = Callable[[str], None]
PACKAGES = ("coprlake", "numpy", "numba", "pyarrow", "duckdb", "pyspark", "jpype1", "tantivy", "chdb", "matplotlib")


def run(
    stores: Iterable[type[Store]], data: Iterable[DataSet], folder: Path, *, budget: float, timeout: float, say: Say
) -> list[dict[str, Any]]:
    """Measure what is not measured yet; the results of all, in the order of the stores.

    Each result is a `Measured` as a dict; one of a store that is missing, crashed or took too long has only its names
    and a `problem`.

    Raises:
        SystemExit: two stores do not find the same lines.
    """
    path = folder / "results.jsonl"
    known = {(row["store"], row["data"]): row for row in _rows(path)}
    results: list[dict[str, Any]] = []
    classes = list(stores)
    for one in data:
        for store_class in classes:
            key = (store_class.name, one.name)
            if key not in known:
                index = known.get(("copr", one.name), {}).get("index_bytes")
                known[key] = _measured(store_class, one, index, budget, timeout, say)
                with path.open("a") as file:
                    file.write(json.dumps(known[key]) + "\n")
            results.append(known[key])
        check_agreement([known[(store_class.name, one.name)] for store_class in classes])
    return results


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _measured(
    store_class: type[Store], data: DataSet, copr_index_bytes: int | None, budget: float, timeout: float, say: Say
) -> dict[str, Any]:
    names = {"store": store_class.name, "title": store_class.title, "data": data.name, "settings": store_class.settings}
    missing = store_class.missing()
    if missing is not None:
        say(f"{data.name}: {store_class.title}: not there: {missing}")
        return {**names, "problem": f"not installed: {missing}"}
    command = [sys.executable, "-m", "benchmarks.paper.measuring", store_class.name]
    command += [json.dumps({**asdict(data), "path": str(data.path)}), "--budget", str(budget)]
    command += ["--copr-index-bytes", str(copr_index_bytes)] if copr_index_bytes else []
    started = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        say(f"{data.name}: {store_class.title}: stopped after {timeout:.0f} s")
        return {**names, "problem": f"took longer than {timeout:.0f} s"}
    say(f"{data.name}: {store_class.title}: {time.perf_counter() - started:.0f} s")
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason"])[-1][:200]
        say(f"  failed: {reason}")
        return {**names, "problem": f"failed: {reason}"}
    measured: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return measured


def check_agreement(rows: list[dict[str, Any]]) -> None:
    """All stores that ran have to have found the same number of lines for each query.

    Raises:
        SystemExit: some did not.
    """
    answered = [row for row in rows if "lines" in row]
    for row in answered[1:]:
        if row["lines"] != answered[0]["lines"]:
            raise SystemExit(
                f"{row['data']}: {row['title']} and {answered[0]['title']} do not find the same lines: "
                f"{row['lines']} and {answered[0]['lines']}"
            )


def machine() -> dict[str, Any]:
    """Where a run was made, and with which versions."""
    processor = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "unknown"
    )
    memory = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "memory_gigabytes": round(memory / 2**20, 1),
        "python": platform.python_version(),
        "system": platform.system(),
        "versions": versions,
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
