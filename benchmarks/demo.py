"""``make demo``: generate logs, index them, look for needles that are there and needles that are not.

Every answer is checked against a scan of all batches, and the same batches, compressed, are what the sketch competes
with.
"""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.sketch import PARTS
from coprlake.config import BATCH_BYTES
from coprlake.errors import CoprlakeError
from coprlake.kernel import U32Array
from coprlake.sketch.algebra import all_tokens
from coprlake.sketch.immutable import SealedSketch
from coprlake.sketch.spilling import SketchWriter
from coprlake.testing.generator import LogSet, batches_by_source, generate
from coprlake.tokens.query import contains_tokens, term_tokens
from coprlake.tokens.scanner import BatchScanner

CODEC = pa.Codec("zstd", compression_level=3)
PROBES = 1_000_000
CAPTION = """A batch is 512 KiB of logs; the scan opens every one. Where a text can only be pruned by its
3-grams, and these are in every batch, as those of digits are, the sketch cannot help."""


@dataclass
class Store:
    """Compressed batches, and the sketch that says which of them to open."""

    sketch: SealedSketch
    batches: list[tuple[bytes, int]]

    def text(self, number: int) -> bytes:
        """The lines of a batch, lower-cased: a search here does not mind case."""
        data, size = self.batches[number]
        return bytes(CODEC.decompress(data, size)).lower()


@dataclass(frozen=True)
class Query:
    """One kind of search for one text."""

    kind: str
    text: str

    def tokens(self) -> U32Array:
        """What a matching batch must contain."""
        return term_tokens(self.text) if self.kind == "term" else contains_tokens(self.text)

    def matcher(self) -> Callable[[bytes], bool]:
        """The exact answer for a batch."""
        needle = self.text.lower().encode()
        if self.kind == "contains":
            return lambda text: needle in text
        whole = re.compile(rb"(?<![0-9a-z])" + re.escape(needle) + rb"(?![0-9a-z])")
        return lambda text: needle in text and whole.search(text) is not None


def index(batches: list[pa.LargeStringArray], path: Path, console: Console) -> tuple[dict[str, float], int]:
    """Index all batches and seal: the seconds of both, and the peak of memory."""
    scanner = BatchScanner()
    with console.status("compiling the kernels (only the first time on a machine) ..."), SketchWriter() as warm:
        warm.insert(scanner.scan(batches[0][:100]), 0)
        warm.insert(scanner.scan(batches[0][:200]), 1)
        warm.seal(path)
        with SealedSketch.open(path) as sketch:
            line = str(batches[0][0])
            for find in (term_tokens, contains_tokens):
                sketch.candidates(all_tokens(find(line)))
    with SketchWriter() as writer:
        started = time.perf_counter()
        for posting, batch in enumerate(track(batches, "indexing", console=console, transient=True)):
            writer.insert(scanner.scan(batch), posting)
        seconds = {"index": time.perf_counter() - started}
        seconds["seal"] = writer.seal(path).seconds
        return seconds, writer.peak_memory_bytes


def present_needles(batches: list[pa.LargeStringArray]) -> list[Query]:
    """Needles of several kinds that occur in the logs: an id, an address, a part of each."""
    text = "\n".join(batches[len(batches) // 2].to_pylist())
    address = re.search(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", text)
    identifier = re.search(r"\b(?=[a-z]*\d)(?=\d*[a-z])[0-9a-z]{10,}\b", text)
    found = []
    if identifier:
        found += [Query("term", identifier[0]), Query("contains", identifier[0][2:9])]
    if address:
        found.append(Query("term", address[0]))
    return [*found, Query("term", "timeout"), Query("contains", "refused")]


def absent_needles(seed: int) -> list[Query]:
    """The paper's needles (5.2): sixteen random letters, and three groups of three digits."""
    random = np.random.default_rng(seed)
    letters = "".join(random.choice(list("abcdefghijklmnopqrstuvwxyz"), 16))
    address = ".".join(str(group) for group in random.integers(100, 1000, 3))
    return [Query("term", letters), Query("contains", letters), Query("term", address), Query("contains", address)]


def ask(sketch: SealedSketch, query: Query) -> tuple[list[int], float]:
    """The batches that the sketch leaves, and the seconds it took, the text's tokens included; the best of five."""
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        candidates = sketch.candidates(all_tokens(query.tokens()))
        best = min(best, time.perf_counter() - started)
    return candidates.tolist(), best


def search_table(store: Store, queries: list[Query]) -> tuple[Table, int]:
    """Each query by the sketch and by scanning everything; also how many batches the sketch missed, which must be 0."""
    table = Table(title="Needles", title_justify="left", caption=CAPTION)
    table.add_column("query", no_wrap=True)
    for name in ("batches that match", "left by the sketch", "opened for nothing", "ask the sketch", "whole search"):
        table.add_column(name, justify="right")
    table.add_column("scan", justify="right")
    table.add_column("faster", justify="right", style="bold green")
    missed = 0
    for query in queries:
        matches = query.matcher()
        candidates, ask_seconds = ask(store.sketch, query)
        started = time.perf_counter()
        hits = {number for number in candidates if matches(store.text(number))}
        opened = time.perf_counter()
        truth = {number for number in range(len(store.batches)) if matches(store.text(number))}
        scan_seconds = time.perf_counter() - opened
        search_seconds = ask_seconds + opened - started
        missed += len(truth - hits)
        table.add_row(
            f"{query.kind} [cyan]{query.text}[/]",
            f"{len(truth):,}",
            f"{len(candidates):,} of {len(store.batches):,}",
            f"{len(candidates) - len(hits):,}",
            f"{ask_seconds * 1e6:,.0f} us",
            f"{search_seconds * 1e3:,.2f} ms",
            f"{scan_seconds * 1e3:,.0f} ms",
            f"{scan_seconds / search_seconds:,.1f} x",
        )
    return table, missed


def size_table(logs: LogSet, store: Store) -> Table:
    """Where the bytes of the sketch go."""
    table = Table(title="The sketch, part by part", title_justify="left")
    for name in ("part", "bytes", "bits a token", "% of raw"):
        table.add_column(name, justify="left" if name == "part" else "right")
    sizes = store.sketch.bytes_by_part()
    rows = {name.replace("_", " "): sum(sizes[part] for part in parts) for name, parts in PARTS.items()}
    for name, size in [*rows.items(), ("whole sketch", sum(rows.values()))]:
        style = "bold" if name == "whole sketch" else None
        bits = 8 * size / store.sketch.token_count
        table.add_row(name, f"{size:,}", f"{bits:.2f}", f"{100 * size / logs.raw_bytes:.3f}", style=style)
    return table


def speed_table(logs: LogSet, store: Store, seconds: dict[str, float], peak_bytes: int) -> Table:
    """Speed, memory and error rate."""
    random = np.random.default_rng(3).integers(1, 1 << 32, PROBES, dtype=np.uint32)
    started = time.perf_counter()
    found = store.sketch.list_ids(random) >= 0
    probes = time.perf_counter() - started
    table = Table(title="Speed and precision, one core", title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("figure", justify="right")
    megabytes = logs.raw_bytes / 1e6
    table.add_row("compress with zstd level 3", f"{megabytes / seconds['zstd']:,.0f} MB/s")
    table.add_row("index (tokenize and insert)", f"{megabytes / seconds['index']:,.0f} MB/s")
    table.add_row("seal", f"{seconds['seal'] * 1e3:,.0f} ms")
    table.add_row("memory of the sketch while indexing", f"{peak_bytes / 2**20:,.1f} MiB")
    table.add_row("look up random tokens", f"{PROBES / probes / 1e6:,.1f} million/s")
    rate, theory = float(found.mean()), 2.0**-store.sketch.signature_bits
    table.add_row("of those taken for present", f"{100 * rate:.3f} % (theory: {100 * theory:.3f} %)")
    return table


def run(megabytes: float, seed: int, samples: Path | None, console: Console) -> int:
    """The whole demo; 1 if the sketch missed a batch."""
    console.rule("[bold]coprlake: which batch holds the needle?")
    with console.status(f"generating {megabytes:,.0f} MB of logs ..."):
        logs = generate(megabytes=megabytes, seed=seed, samples=samples)
        batches = list(batches_by_source(logs, BATCH_BYTES))
    size = f"{logs.raw_bytes / 1e6:,.1f} MB in {len(batches)} batches"
    console.print(f"{logs.line_count:,} lines from {logs.source_count:,} sources, {size}")
    with tempfile.TemporaryDirectory(prefix="coprlake-demo-") as folder:
        path = Path(folder) / "demo.copr"
        seconds, peak_bytes = index(batches, path, console)
        texts = ["\n".join(batch.to_pylist()).encode() for batch in batches]
        started = time.perf_counter()
        compressed = [(CODEC.compress(text, asbytes=True), len(text)) for text in texts]
        seconds["zstd"] = time.perf_counter() - started
        with SealedSketch.open(path) as sketch:
            sketch.verify()
            return show(logs, Store(sketch, compressed), seconds, peak_bytes, absent_needles(seed), batches, console)


def show(
    logs: LogSet,
    store: Store,
    seconds: dict[str, float],
    peak_bytes: int,
    absent: list[Query],
    batches: list[pa.LargeStringArray],
    console: Console,
) -> int:
    """Search, and print what there is to know."""
    data_percent = 100 * sum(len(data) for data, _ in store.batches) / logs.raw_bytes
    sketch_percent = 100 * store.sketch.header.file_bytes / logs.raw_bytes
    console.print(
        f"compressed to {data_percent:.1f} % of raw; the sketch adds [bold]{sketch_percent:.2f} %[/] "
        f"for {store.sketch.token_count:,} distinct tokens\n"
    )
    with console.status("searching, and scanning everything to check ..."):
        needles, missed = search_table(store, [*absent, *present_needles(batches)])
    for table in (needles, size_table(logs, store), speed_table(logs, store, seconds, peak_bytes)):
        console.print(table)
    if missed:
        console.print(f"[bold red]{missed} matching batches were missed")
        return 1
    console.print("[bold green]no matching batch was missed")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """The command line of the demo."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo", description="Index logs, then find needles.")
    parser.add_argument("--megabytes", type=float, default=64, help="size of the generated logs (default: 64)")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other logs")
    parser.add_argument("--samples", type=Path, help="folder of real log samples to draw lines from")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140)
    try:
        return run(options.megabytes, options.seed, options.samples, console)
    except CoprlakeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
