"""``python -m benchmarks.scale``: how cost grows with the size of the data, and with the number of segments.

Against size: bits a token, MB/s of ingest, and the time of a query, for one segment of more and more lines. Against
segments: a search for an absent needle over 1 to 12,030 segments (the paper's query of section 6 touched 12,030). These
are hard links to a few segments, so all sketches are asked, but the disk holds them once. Everything is on one core.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.paper.published import SEARCHED_GIGABYTES, SEGMENTS
from benchmarks.stores.base import Setting
from benchmarks.stores.copr import CoprStore
from coprlake.files import Folder
from coprlake.generator import generate
from coprlake.predicate.narrowing.claims import Exact
from coprlake.predicate.predicates import Contains, Predicate, Term
from coprlake.query.options import SearchOptions
from coprlake.query.planning import View
from coprlake.query.searching import Search
from coprlake.segment.sealed import SealedSegment, SegmentEntry
from coprlake.segment.sidecar import sidecar_name
from coprlake.storage.snapshot import Snapshot

ROOT = Path(__file__).parent.parent
SIZES = (10, 30, 100, 300, 1000)
COUNTS = (1, 10, 100, 1_000, 5_000, SEGMENTS)
ABSENT = "qzjxkvwyqzjxkvwy"
SCHEMA = pa.schema([("source", pa.string()), ("content", pa.string())])
NAME = "segment.parquet"


def median(work: Callable[[], Any], rounds: int) -> float:
    """The middle of several rounds, after one to warm up."""
    work()
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def written(folder: Path, megabytes: float, seed: int) -> tuple[CoprStore, int, float]:
    """A segment of so many generated lines: the store, the raw size, and the seconds that it took."""
    logs = generate("5M_generated", megabytes=megabytes, seed=seed)
    content, source = logs.content, logs.source
    folder.mkdir(parents=True)
    store = CoprStore(Setting(folder))
    started = time.perf_counter()
    for first in range(0, len(content), 8_192):
        places = pa.array(np.arange(first, min(first + 8_192, len(content))))  # copied: a cast looks at the whole
        store.ingest(content.take(places).cast(pa.string()), source.take(places).cast(pa.string()))
    store.finish_index()
    store.finish_data()
    seconds = time.perf_counter() - started
    raw = int(pa.compute.sum(pa.compute.binary_length(content)).as_py()) + len(content)
    return store, raw, seconds


def by_size(folder: Path, sizes: list[float], say: Callable[[str], None]) -> list[dict[str, float]]:
    """How one segment grows."""
    rows = []
    for size in sizes:
        say(f"{size:g} MB")
        store, raw, seconds = written(folder / f"size-{size:g}", size, 1)
        tokens = store.token_count()
        sizes_ = store.sizes()
        reader = store.reader()
        rows.append(
            {
                "raw_megabytes": raw / 1e6,
                "tokens": tokens,
                "bits_per_token": 8 * sizes_.index / tokens,
                "index_percent": 100 * sizes_.index / raw,
                "data_percent": 100 * sizes_.data / raw,
                "ingest_megabytes_per_second": raw / 1e6 / seconds,
                "absent_term_microseconds": 1e6 * median(lambda r=reader: r.term(ABSENT), 200),  # type: ignore[misc]
                "absent_substring_microseconds": 1e6 * median(lambda r=reader: r.contains(ABSENT), 200),  # type: ignore[misc]
                "open_and_ask_microseconds": 1e6 * median(lambda s=store: _fresh(s), 30),  # type: ignore[misc]
            }
        )
        reader.close()
    return rows


def _fresh(store: CoprStore) -> None:
    reader = store.reader()
    reader.term(ABSENT)
    reader.close()


def by_segments(folder: Path, counts: list[int], megabytes: float, say: Callable[[str], None]) -> dict[str, Any]:
    """How a search for an absent needle grows with the number of segments."""
    originals = []
    raw = 0
    for seed in range(8):
        say(f"segment {seed + 1} of 8, {megabytes:g} MB")
        store, size, _ = written(folder / f"original-{seed}", megabytes, 100 + seed)
        originals.append(store.folder)
        raw += size
    mean_raw = raw / len(originals)
    segments = []
    for number in range(max(counts)):
        original = originals[number % len(originals)]
        place = folder / "linked" / f"{number:05d}"
        place.mkdir(parents=True)
        for name in (NAME, sidecar_name(NAME)):
            (place / name).parent.mkdir(exist_ok=True)
            os.link(original / name, place / name)
        segments.append(SealedSegment(Folder.of(place), SegmentEntry(NAME, (place / NAME).stat().st_size)))
    rows = []
    for count in counts:
        say(f"{count:,} segments")
        view = View(Snapshot(segments[:count], SCHEMA, [], 0))
        started = time.perf_counter()
        _search(view, Term(ABSENT))
        first = time.perf_counter() - started
        term = median(lambda v=view: _search(v, Term(ABSENT)), 9)  # type: ignore[misc]
        contains = median(lambda v=view: _search(v, Contains(ABSENT)), 9)  # type: ignore[misc]
        rows.append(
            {
                "segments": count,
                "raw_gigabytes": count * mean_raw / 1e9,
                "first_seconds": first,
                "term_seconds": term,
                "contains_seconds": contains,
                "gigabytes_per_second": count * mean_raw / 1e9 / term,
            }
        )
    return {"raw_megabytes_per_segment": mean_raw / 1e6, "rows": rows}


def _search(view: View, predicate: Predicate) -> int:
    search = Search(lambda: view, Exact(predicate), SearchOptions(columns=("content",), threads=1, strict=True))
    return sum(batch.num_rows for batch in search)


def draw(figures: dict[str, Any], folder: Path) -> None:
    """The curves as pictures."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = figures["by_size"]
    sizes = [row["raw_megabytes"] for row in rows]
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8))
    panels = (
        ("bits a token", ["bits_per_token"], "linear"),
        ("MB/s of ingest", ["ingest_megabytes_per_second"], "linear"),
        (
            "microseconds a query",
            ["absent_term_microseconds", "absent_substring_microseconds", "open_and_ask_microseconds"],
            "log",
        ),
    )
    for axis, (title, keys, scale) in zip(axes, panels, strict=True):
        for key in keys:
            label = key.removesuffix("_microseconds").replace("_", " ")
            axis.plot(sizes, [row[key] for row in rows], marker="o", label=label)
        axis.set_xscale("log")
        axis.set_yscale(scale)
        axis.set_xlabel("MB in one segment")
        axis.set_title(title, fontsize=10)
        if scale == "linear":
            axis.set_ylim(bottom=0)
        if len(keys) > 1:
            axis.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(folder / "scale-size.png", dpi=130)
    plt.close(figure)
    rows = figures["by_segments"]["rows"]
    counts = [row["segments"] for row in rows]
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8))
    axes[0].plot(counts, [row["first_seconds"] for row in rows], marker="o", label="first search, sketches opened")
    axes[0].plot(counts, [row["term_seconds"] for row in rows], marker="o", label="term")
    axes[0].plot(counts, [row["contains_seconds"] for row in rows], marker="o", label="contains")
    axes[0].set_title("seconds for an absent needle", fontsize=10)
    axes[0].legend(fontsize=8, frameon=False)
    axes[1].plot(counts, [row["gigabytes_per_second"] for row in rows], marker="o", label="coprlake")
    axes[1].axhline(SEARCHED_GIGABYTES, color="grey", linestyle="--", label="the paper, in production")
    axes[1].set_title("GB of logs searched a second, on one core", fontsize=10)
    axes[1].legend(fontsize=8, frameon=False)
    for axis in axes:
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("segments")
    figure.tight_layout()
    figure.savefig(folder / "scale-segments.png", dpi=130)
    plt.close(figure)


def report(figures: dict[str, Any]) -> str:
    """The figures as Markdown."""
    lines = [
        "# How cost grows",
        "",
        "Made by `python -m benchmarks.scale`. One core; generated logs (5M_generated).",
        "",
        "![size](scale-size.png)",
        "",
        "| MB in one segment | tokens | bits a token | index % of raw | ingest MB/s | absent term us "
        "| absent substring us | open and ask us |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['raw_megabytes']:,.0f} | {row['tokens']:,} | {row['bits_per_token']:.1f} | {row['index_percent']:.2f} "
        f"| {row['ingest_megabytes_per_second']:.0f} | {row['absent_term_microseconds']:.0f} "
        f"| {row['absent_substring_microseconds']:.0f} | {row['open_and_ask_microseconds']:.0f} |"
        for row in figures["by_size"]
    ]
    segments = figures["by_segments"]
    lines += [
        "",
        f"Segments of {segments['raw_megabytes_per_segment']:.0f} MB, as hard links to eight:",
        "",
        "![segments](scale-segments.png)",
        "",
        "| segments | GB of logs | first search s | absent term s | absent substring s | GB/s searched on one core |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['segments']:,} | {row['raw_gigabytes']:,.0f} | {row['first_seconds']:.3f} | {row['term_seconds']:.4f} "
        f"| {row['contains_seconds']:.4f} | {row['gigabytes_per_second']:,.0f} |"
        for row in segments["rows"]
    ]
    last = segments["rows"][-1]
    lines += [
        "",
        f"The paper's query over {SEGMENTS:,} segments searched {SEARCHED_GIGABYTES:,.0f} GB a second and core in "
        f"production; here {last['gigabytes_per_second']:,.0f} with {last['segments']:,} segments of "
        f"{segments['raw_megabytes_per_segment']:.0f} MB "
        "(theirs have 2.1 GB: a sketch of a larger segment takes no longer to ask, so GB/s would grow with the size).",
        "",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="How cost grows.")
    parser.add_argument("--sizes", type=float, nargs="+", default=list(SIZES), help="MB of one segment (up to 5000)")
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS), help="numbers of segments")
    parser.add_argument("--segment-megabytes", type=float, default=100, help="size of each of the many segments")
    parser.add_argument("--out", type=Path, help="a folder for the results")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(arguments)
    out = options.out or ROOT / "benchmarks" / "runs" / f"{datetime.now(UTC):%Y-%m-%d}-scale"
    out.mkdir(parents=True, exist_ok=True)

    def say(text: str) -> None:
        print(f"{datetime.now(UTC):%H:%M:%S} {text}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="coprlake-scale-") as name:
        figures = {
            "by_size": by_size(Path(name), options.sizes, say),
            "by_segments": by_segments(Path(name), options.counts, options.segment_megabytes, say),
        }
    (out / "scale.json").write_text(json.dumps(figures, indent=1) + "\n")
    (out / "README.md").write_text(report(figures))
    try:
        draw(figures, out)
    except ImportError:
        say("matplotlib is not installed, so there are no pictures; run: pip install -e '.[peers]'")
    print(json.dumps(figures, indent=1) if options.json else out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
