"""The sketch in figures: size, speed, error rate and memory, on one core and 512 KiB batches.

``python -m benchmarks.sketch --megabytes 128 --json`` prints one JSON object. Times are for this machine at this
moment; what can be compared is their ratio to ``zstd3_seconds``, measured in between.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from coprlake.config import BATCH_BYTES, MEMORY_LIMIT_BYTES, RULES, SIGNATURE_BITS, RuleSet
from coprlake.errors import CoprlakeError
from coprlake.generator import batches_by_source, generate
from coprlake.kernel import U32Array
from coprlake.sketch.immutable import SealedSketch
from coprlake.sketch.spilling import SketchWriter
from coprlake.tokens.scanner import BatchScanner

PARTS = {
    "perfect_hash": ("levels", "level_ranks", "fallback"),
    "signatures": ("signatures",),
    "ranks": ("ranks",),
    "rank_widths": ("width_samples", "width_codes", "width_table"),
    "list_offsets": ("list_offsets",),
    "lists": ("lists",),
    "header_footer_padding": ("header, footer, padding",),
}
"""What a person wants to know of the sections."""


@dataclass(frozen=True)
class Figures:
    """What a run found out; the names are those of the JSON object."""

    raw_bytes: int
    batch_count: int
    zstd3_seconds: float
    zstd3_percent: float
    index_seconds: float
    index_to_zstd3_ratio: float
    tokenize_seconds: float
    insert_seconds: float
    seal_seconds: float
    seal_to_index_ratio: float
    seal_seconds_by_phase: dict[str, float]
    token_posting_pairs: int
    distinct_tokens: int
    distinct_tokens_per_megabyte: float
    distinct_lists: int
    signature_bits: int
    bits_per_token: dict[str, float]
    overhead_percent: float
    absent_probes_per_second: float
    present_probes_per_second: float
    single_probe_microseconds: float
    open_microseconds: float
    error_rate: float
    error_rate_in_theory: float
    memory_limit_bytes: int
    peak_sketch_memory_bytes: int
    spill_count: int


@dataclass
class Indexing:
    """Seconds of the three things done to each batch in turn, and what came out."""

    compress_seconds: float = 0
    tokenize_seconds: float = 0
    insert_seconds: float = 0
    compressed_bytes: int = 0
    pairs: int = 0


def index(batches: list[pa.LargeStringArray], writer: SketchWriter) -> Indexing:
    """Compress, tokenize and insert batch after batch: so that what slows the machine down slows all three."""
    scanner = BatchScanner()
    codec = pa.Codec("zstd", compression_level=3)
    done = Indexing()
    for posting, batch in enumerate(batches):
        text = "\n".join(batch.to_pylist()).encode()
        begun = time.perf_counter()
        done.compressed_bytes += len(codec.compress(text))
        compressed = time.perf_counter()
        fingerprints = scanner.scan(batch)
        tokenized = time.perf_counter()
        writer.insert(fingerprints, posting)
        inserted = time.perf_counter()
        done.compress_seconds += compressed - begun
        done.tokenize_seconds += tokenized - compressed
        done.insert_seconds += inserted - tokenized
        done.pairs += len(fingerprints)
    return done


def per_second(count: int, work: Callable[[], object], repeat: int = 3) -> float:
    """How many of `count` things a second `work` does, the best of some runs."""
    best = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return count / best


def absent_fingerprints(present: U32Array, count: int) -> U32Array:
    """Random fingerprints that are none of those present."""
    drawn = np.random.default_rng(7).integers(1, 1 << 32, count + count // 50, dtype=np.uint32)
    return drawn[~np.isin(drawn, present)][:count]


def warm_up(batches: list[pa.LargeStringArray], folder: Path) -> None:
    """Compile, or load from the cache, every kernel that is timed."""
    with SketchWriter(2 << 20) as writer:
        index(batches[:6], writer)
        writer.seal(folder / "warm.copr", signature_bits=32)
    with SealedSketch.open(folder / "warm.copr") as sketch:
        sketch.candidate_postings("error")
        sketch.verify()


def measure(
    batches: list[pa.LargeStringArray],
    raw_bytes: int,
    memory_limit_bytes: int,
    signature_bits: int,
    folder: Path,
    rules: RuleSet = RULES,
) -> Figures:
    """Run everything once."""
    warm_up(batches, folder)
    path, full = folder / "sketch.copr", folder / "full.copr"
    with SketchWriter(memory_limit_bytes, spill_folder=folder) as writer:
        done = index(batches, writer)
        started = time.perf_counter()
        report = writer.seal(path, signature_bits=signature_bits, rules=rules)
        seal_seconds = time.perf_counter() - started
        peak, spills = writer.peak_memory_bytes, writer.spill_count
        writer.seal(full, signature_bits=32)
    index_seconds = done.tokenize_seconds + done.insert_seconds
    with SealedSketch.open(full) as whole:
        present, _ = whole.tokens()

    def open_often() -> None:
        for _ in range(200):
            SealedSketch.open(path).close()

    opens = per_second(200, open_often)
    with SealedSketch.open(path) as sketch:
        absent = absent_fingerprints(present, 2_000_000)
        some = np.random.default_rng(8).choice(present, min(500_000, len(present)), replace=False)
        token_count = sketch.token_count
        parts = sketch.bytes_by_part()
        bits = {name: 8 * sum(parts[part] for part in own) / token_count for name, own in PARTS.items()}
        return Figures(
            raw_bytes=raw_bytes,
            batch_count=len(batches),
            zstd3_seconds=done.compress_seconds,
            zstd3_percent=100 * done.compressed_bytes / raw_bytes,
            index_seconds=index_seconds,
            index_to_zstd3_ratio=index_seconds / done.compress_seconds,
            tokenize_seconds=done.tokenize_seconds,
            insert_seconds=done.insert_seconds,
            seal_seconds=seal_seconds,
            seal_to_index_ratio=seal_seconds / index_seconds,
            seal_seconds_by_phase=report.seconds_by_phase,
            token_posting_pairs=done.pairs,
            distinct_tokens=token_count,
            distinct_tokens_per_megabyte=token_count / raw_bytes * 1e6,
            distinct_lists=sketch.list_count,
            signature_bits=signature_bits,
            bits_per_token={"total": 8 * report.file_bytes / token_count} | bits,
            overhead_percent=100 * report.file_bytes / raw_bytes,
            absent_probes_per_second=per_second(len(absent), lambda: sketch.list_ids(absent)),
            present_probes_per_second=per_second(len(some), lambda: sketch.list_ids(some)),
            single_probe_microseconds=1e6
            / per_second(5000, lambda: [sketch.may_contain("x7Gq9") for _ in range(5000)]),
            open_microseconds=1e6 / opens,
            error_rate=float(np.mean(sketch.list_ids(absent) >= 0)),
            error_rate_in_theory=2.0**-signature_bits,
            memory_limit_bytes=memory_limit_bytes,
            peak_sketch_memory_bytes=peak,
            spill_count=spills,
        )


def main(arguments: list[str] | None = None) -> int:
    """The command line of this benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sketch", description="The COPR sketch in figures.")
    parser.add_argument("--megabytes", type=float, default=128, help="size of the generated logs (default: 128)")
    parser.add_argument("--set", default="1M_generated", help="whose distribution of sources to follow")
    parser.add_argument("--samples", type=Path, help="folder of real log samples to draw lines from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory-limit-mib", type=float, default=MEMORY_LIMIT_BYTES / 2**20)
    parser.add_argument("--signature-bits", type=int, default=SIGNATURE_BITS)
    parser.add_argument(
        "--rules", type=RuleSet, default=RULES, help="rule set to seal as; paper is format 1.0 (default: winnowed)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a list for people")
    options = parser.parse_args(arguments)
    try:
        return report(options)
    except CoprlakeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def report(options: argparse.Namespace) -> int:
    """Generate, measure, print."""
    logs = generate(options.set, megabytes=options.megabytes, seed=options.seed, samples=options.samples)
    batches = list(batches_by_source(logs, BATCH_BYTES))
    limit = int(options.memory_limit_mib * 2**20)
    with tempfile.TemporaryDirectory(prefix="coprlake-benchmark-") as folder:
        figures = asdict(measure(batches, logs.raw_bytes, limit, options.signature_bits, Path(folder), options.rules))
    if options.json:
        json.dump(figures, sys.stdout)
        print()
        return 0
    for name, value in figures.items():
        rows = value.items() if isinstance(value, dict) else [("", value)]
        for part, number in rows:
            shown = f"{number:,.4g}" if isinstance(number, float) else f"{number:,}"
            print(f"{f'{name}.{part}' if part else name:45} {shown:>15}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
