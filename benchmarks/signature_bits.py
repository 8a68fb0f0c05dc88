"""How many signature bits: what each bit costs on disk, and what it saves when a needle is looked for.

``python -m benchmarks.signature_bits`` prints the table of docs/decisions/0003-signature-bits.md. A needle that is
absent costs one look into the sketch; if the sketch takes it for present, a batch is opened for nothing. The error rate
is the paper's: batches opened for nothing over all batches.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from coprlake.config import BATCH_BYTES
from coprlake.errors import CoprlakeError
from coprlake.generator import batches_by_source, generate
from coprlake.sketch.algebra import all_tokens
from coprlake.sketch.immutable import SealedSketch
from coprlake.sketch.spilling import SketchWriter
from coprlake.tokens.required_tokens import term_tokens
from coprlake.tokens.scanner import BatchScanner

QUERIES = 20_000
SIZES = (4, 6, 7, 8, 9, 10, 12, 16)


def needles(kind: str, count: int) -> list[str]:
    """Texts that are hardly ever in the logs: the paper's ids and addresses, and numbers (all 3-grams exist)."""
    random = np.random.default_rng(11)
    if kind == "id":
        return ["".join(row) for row in random.choice(list("abcdefghijklmnopqrstuvwxyz"), (count, 16))]
    if kind == "ip":
        return [".".join(map(str, row)) for row in random.integers(100, 1000, (count, 3))]
    return [str(number) for number in random.integers(10**11, 10**12, count)]


def opening_seconds(batches: list[pa.LargeStringArray]) -> float:
    """What it takes to open a batch for nothing: decompress and search it."""
    codec = pa.Codec("zstd", compression_level=3)
    texts = ["\n".join(batch.to_pylist()).encode() for batch in batches[:40]]
    packed = [(codec.compress(text), len(text)) for text in texts]
    started = time.perf_counter()
    found = sum(b"no such needle" in bytes(codec.decompress(data, size)).lower() for data, size in packed)
    assert found == 0
    return (time.perf_counter() - started) / len(packed)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.signature_bits", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--megabytes", type=float, default=128)
    options = parser.parse_args(arguments)
    try:
        return print_table(options.megabytes)
    except CoprlakeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def print_table(megabytes: float) -> int:
    """Index the logs once, seal them with each size, print a row for each."""
    logs = generate(megabytes=megabytes)
    batches = list(batches_by_source(logs, BATCH_BYTES))
    scanner = BatchScanner()
    opening = opening_seconds(batches)
    print(f"{len(batches)} batches; opening one for nothing takes {opening * 1e6:,.0f} us\n")
    print("| bits | % of raw | error rate: one token | term(ID) | term(IP) | term(number) | look, us | wasted, us |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, SketchWriter() as writer:
        for posting, batch in enumerate(batches):
            writer.insert(scanner.scan(batch, rules="paper"), posting)
        for bits in SIZES:
            path = Path(folder) / "sketch.copr"
            writer.seal(path, signature_bits=bits, rules="paper")
            with SealedSketch.open(path) as sketch:
                print(row(sketch, bits, logs.raw_bytes, opening))
    return 0


def row(sketch: SealedSketch, bits: int, raw_bytes: int, opening: float) -> str:
    """One line of the table: a term(number) query is what the last two columns are about."""
    random = np.random.default_rng(5).integers(1, 1 << 32, 2_000_000, dtype=np.uint32)
    single = float(np.mean(sketch.list_ids(random) >= 0))
    rates = {}
    for kind in ("id", "ip", "number"):
        expressions = [all_tokens(term_tokens(text, rules="paper")) for text in needles(kind, QUERIES)]
        started = time.perf_counter()
        opened = sum(len(sketch.candidates(expression)) for expression in expressions)
        look = (time.perf_counter() - started) / QUERIES
        rates[kind] = opened / QUERIES / sketch.posting_count
    wasted = rates["number"] * sketch.posting_count * opening
    percent = 100 * sketch.header.file_bytes / raw_bytes
    return (
        f"| {bits} | {percent:.2f} | {single:.2e} | {rates['id']:.1e} | {rates['ip']:.1e} | {rates['number']:.1e} "
        f"| {look * 1e6:.1f} | {wasted * 1e6:.1f} |"
    )


if __name__ == "__main__":
    sys.exit(main())
