"""One store on one set of lines, measured in a process of its own (``python -m benchmarks.paper.measuring``).

So its memory is its own, and if it crashes or hangs, the run goes on. Everything is on one thread.
"""

import argparse
import json
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.paper.datasets import DataSet
from benchmarks.paper.scenarios import SCENARIOS, Query, long_words, queries
from benchmarks.stores.base import Answer, Reader, Setting, Store
from benchmarks.stores.catalog import stores
from benchmarks.stores.copr import CoprStore

MODES = ("cold", "fresh", "warm")
"""Cold: a new reader and no page in memory. Fresh: a new reader, pages in memory. Warm: one reader for all queries."""

CHECKED = 10
"""So many queries of a scenario are answered by every store, and have to give the same lines."""

MOST_QUERIES = 20_000


@dataclass
class Timing:
    """The queries of one scenario in one mode."""

    count: int
    per_second: float
    median_seconds: float
    fastest_tenth_seconds: float
    slowest_tenth_seconds: float
    error_rate: float


@dataclass
class Measured:
    """All figures of a store on a set."""

    store: str
    title: str
    data: str
    raw_bytes: int
    settings: str
    ingest_seconds: float = 0.0
    index_seconds: float = 0.0
    data_seconds: float = 0.0
    data_bytes: int = 0
    index_bytes: int = 0
    peak_memory_bytes: int = 0
    bits_per_token: dict[str, float] = field(default_factory=dict)
    timings: dict[str, dict[str, Timing]] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)


def measure(
    store_class: type[Store], data: DataSet, folder: Path, budget: float, copr_index_bytes: int | None
) -> Measured:
    """Store the lines and ask the queries; `budget` seconds for each scenario in each mode."""
    words = long_words(data.content())
    warm_up(store_class, folder, copr_index_bytes)
    place = folder / "store"
    place.mkdir()
    store = store_class(Setting(place, copr_index_bytes=copr_index_bytes))
    result = Measured(store.name, store.title, data.name, data.raw_bytes, store.settings)
    try:
        _ingest(store, data, result)
        sizes = store.sizes()
        result.data_bytes, result.index_bytes = sizes.data, sizes.index
        if isinstance(store, CoprStore):
            result.bits_per_token = _bits(store)
        for scenario in SCENARIOS:
            result.lines[scenario] = _checked(store, scenario, words)
            result.timings[scenario] = {mode: _timed(store, scenario, mode, words, budget) for mode in MODES}
        result.peak_memory_bytes = peak_memory_bytes()
    finally:
        store.close()
    return result


def warm_up(store_class: type[Store], folder: Path, copr_index_bytes: int | None) -> None:
    """Compile, load and start whatever a store needs, outside of what is timed."""
    place = folder / "warm-up"
    place.mkdir()
    store = store_class(Setting(place, copr_index_bytes=None if copr_index_bytes is None else 1 << 16))
    words = ["connection", "refused", "user", "10.1.2.3", "timeout", "abcdefghijklmnop", "käse"]
    lines = pa.array([" ".join([*words[i % 7 :], f"request-{i:05d}"]) for i in range(3_000)])
    store.ingest(lines, pa.array([f"s{i % 5}" for i in range(3_000)]))
    store.finish_index()
    store.finish_data()
    reader = store.reader()
    for text in ("refused", "absent-term", "request-00017", "quest-000"):
        reader.term(text)
        reader.contains(text)
    reader.close()
    store.close()


def _ingest(store: Store, data: DataSet, result: Measured) -> None:
    started = time.perf_counter()
    for content, source in data.chunks():
        store.ingest(content, source)
    ingested = time.perf_counter()
    store.finish_index()
    indexed = time.perf_counter()
    store.finish_data()
    finished = time.perf_counter()
    result.ingest_seconds = ingested - started
    result.index_seconds, result.data_seconds = indexed - ingested, finished - indexed
    together = float(getattr(store, "index_seconds", 0.0))  # of a store that finishes both in one call
    result.index_seconds += together
    result.data_seconds -= together


def _bits(store: CoprStore) -> dict[str, float]:
    """Where the bits of a token go."""
    assert store.report is not None
    tokens = store.token_count()
    return {part: 8 * size / tokens for part, size in store.report.index_bytes_by_part.items()}


def _ask(reader: Reader, query: Query) -> Answer:
    return reader.term(query.text) if query.kind == "term" else reader.contains(query.text)


def _checked(store: Store, scenario: str, words: list[str]) -> list[int]:
    """How many lines the first queries find; all stores have to agree."""
    reader = store.reader()
    asked = queries(scenario, words)
    found = [len(_ask(reader, next(asked)).lines) for _ in range(CHECKED)]
    reader.close()
    return found


def _timed(store: Store, scenario: str, mode: str, words: list[str], budget: float) -> Timing:
    asked = queries(scenario, words)
    files = store.files()
    shared = store.reader() if mode == "warm" else None
    seconds: list[float] = []
    errors: list[float] = []
    begin = time.perf_counter()
    while len(seconds) < 3 or (time.perf_counter() - begin < budget and len(seconds) < MOST_QUERIES):
        query = next(asked)
        if mode == "cold":
            drop_from_cache(files)
        started = time.perf_counter()
        reader = shared or store.reader()
        answer = _ask(reader, query)
        if shared is None:
            reader.close()
        seconds.append(time.perf_counter() - started)
        errors.append(answer.error_rate)
    if shared is not None:
        shared.close()
    low, middle, high = np.quantile(seconds, [0.1, 0.5, 0.9])
    return Timing(
        len(seconds), len(seconds) / sum(seconds), float(middle), float(low), float(high), float(np.mean(errors))
    )


def drop_from_cache(files: list[Path]) -> None:
    """Have the kernel forget the pages of these files, as far as nobody maps them."""
    for path in files:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def peak_memory_bytes() -> int:
    """Of this process."""
    found = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(found[0]) if found else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(arguments: list[str] | None = None) -> int:
    """Measure one, and print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper.measuring")
    parser.add_argument("store")
    parser.add_argument("data", help="a data set as JSON")
    parser.add_argument("--budget", type=float, default=1.0)
    parser.add_argument("--copr-index-bytes", type=int)
    options = parser.parse_args(arguments)
    fields: dict[str, Any] = json.loads(options.data)
    data = DataSet(**{**fields, "path": Path(fields["path"])})
    (store_class,) = [known for known in stores() if known.name == options.store]
    with tempfile.TemporaryDirectory(prefix="coprlake-store-") as folder:
        measured = measure(store_class, data, Path(folder), options.budget, options.copr_index_bytes)
    print("\n" + json.dumps(asdict(measured)))
    return 0


Say = Callable[[str], None]

if __name__ == "__main__":
    sys.exit(main())
