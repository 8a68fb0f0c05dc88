"""How fast raw logs become records, by format, on one core.

``python -m benchmarks.intake --megabytes 64 --json`` prints one JSON object. Times are for this machine at this
moment; what can be compared is their ratio to the time of zstd level 3 for the same bytes, measured in between.
"""

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from coprlake.errors import CoprlakeError
from coprlake.generator import generate
from coprlake.intake.lines import split_lines, text_column
from coprlake.intake.reading import Intake

CODEC = pa.Codec("zstd", compression_level=3)
PIECE_BYTES = 4 * 1024 * 1024
LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "WARN", "ERROR")


def _times(count: int) -> list[str]:
    stamps = np.datetime64("2024-05-06T07:08:09.000", "ms") + np.arange(count) * 37
    return [str(text) for text in np.datetime_as_string(stamps)]


def as_text(lines: list[str]) -> Iterator[str]:
    """The generated lines behind a timestamp, a level and a logger, as log4j writes them."""
    for number, (stamp, line) in enumerate(zip(_times(len(lines)), lines, strict=True)):
        yield f"{stamp.replace('T', ' ').replace('.', ',')} {LEVELS[number % 6]} [main] {line}"


def as_syslog(lines: list[str]) -> Iterator[str]:
    """RFC 5424."""
    for number, (stamp, line) in enumerate(zip(_times(len(lines)), lines, strict=True)):
        yield f"<{30 + number % 5}>1 {stamp}Z host-{number % 50} app-{number % 7} {number % 999} - - {line}"


def as_access(lines: list[str]) -> Iterator[str]:
    """The combined format."""
    for number in range(len(lines)):
        clock = f"{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}"
        yield (
            f'10.0.{number % 200}.{number % 251} - - [06/May/2024:{clock} +0000] "GET /item/{number * 7919 % 99991}'
            f' HTTP/1.1" 200 {number % 5000} "https://example.org/shop" "Mozilla/5.0 (X11; Linux x86_64) Firefox/125.0"'
        )


def as_ndjson(lines: list[str]) -> Iterator[str]:
    """Eight keys, one of them an object."""
    for number, (stamp, line) in enumerate(zip(_times(len(lines)), lines, strict=True)):
        row = {
            "ts": f"{stamp}Z",
            "level": LEVELS[number % 6].lower(),
            "msg": line,
            "logger": f"com.example.Service{number % 20}",
            "thread": number % 64,
            "http": {"status": 200, "ms": number % 1000 / 8},
        }
        yield json.dumps(row)


def as_csv(lines: list[str]) -> Iterator[str]:
    """Five columns; a header first."""
    yield "timestamp,level,logger,thread,message"
    for number, (stamp, line) in enumerate(zip(_times(len(lines)), lines, strict=True)):
        quoted = line.replace('"', '""')
        yield f'{stamp}Z,{LEVELS[number % 6]},com.example.Service{number % 20},{number % 64},"{quoted}"'


WRITERS: dict[str, Callable[[list[str]], Iterator[str]]] = {
    "text": as_text,
    "syslog": as_syslog,
    "access": as_access,
    "ndjson": as_ndjson,
    "csv": as_csv,
}


def _zstd_seconds(data: bytes) -> float:
    started = time.perf_counter()
    for start in range(0, len(data), PIECE_BYTES):
        CODEC.compress(data[start : start + PIECE_BYTES])
    return time.perf_counter() - started


def _best(run: Callable[[], int], repeats: int) -> tuple[float, int]:
    """Seconds of the fastest run, and the records it gave."""
    best, records = float("inf"), 0
    for _ in range(repeats):
        started = time.perf_counter()
        records = run()
        best = min(best, time.perf_counter() - started)
    return best, records


def _read(path: Path) -> int:
    with Intake([path]) as intake:
        return sum(batch.num_rows for batch in intake)


def _split(data: bytes) -> int:
    count = 0
    for start in range(0, len(data), PIECE_BYTES):
        piece = np.frombuffer(data, np.uint8, min(PIECE_BYTES, len(data) - start), start)
        count += len(text_column(piece, split_lines(piece, last=True)[0]))
    return count


def measure(lines: list[str], folder: Path, repeats: int) -> dict[str, dict[str, float]]:
    """Write the lines in each format and read them again."""
    figures: dict[str, dict[str, float]] = {}
    for name, write in WRITERS.items():
        data = "\n".join(write(lines)).encode() + b"\n"
        path = folder / f"{name}.log"
        path.write_bytes(data[: data.find(b"\n", 100_000) + 1])
        _read(path)  # compiles
        path.write_bytes(data)
        zstd = _zstd_seconds(data)
        figures[name] = _figures(*_best(lambda path=path: _read(path), repeats), len(data), zstd)  # type: ignore[misc]
        if name == "text":
            figures["split_lines"] = _figures(*_best(lambda data=data: _split(data), repeats), len(data), zstd)  # type: ignore[misc]
            for packed, content in {"gz": gzip.compress(data, 6), "zst": None}.items():
                copy = folder / f"text.{packed}"
                copy.write_bytes(content) if content else _write_zstd(copy, data)
                figures[f"text_{packed}"] = _figures(
                    *_best(lambda copy=copy: _read(copy), repeats),  # type: ignore[misc]
                    len(data),
                    zstd,
                )
            table = pa.table({"timestamp": _times(len(lines)), "message": lines, "thread": range(len(lines))})
            pyarrow.parquet.write_table(table, folder / "table.parquet", compression="zstd")
            figures["parquet"] = _figures(*_best(lambda: _read(folder / "table.parquet"), repeats), table.nbytes, zstd)
        path.unlink()
    return figures


def _write_zstd(path: Path, data: bytes) -> None:
    with pa.CompressedOutputStream(str(path), "zstd") as out:
        out.write(data)


def _figures(seconds: float, records: int, size: int, zstd_seconds: float) -> dict[str, float]:
    return {
        "bytes": size,
        "records": records,
        "seconds": seconds,
        "megabytes_per_second": size / seconds / 1e6,
        "zstd3_seconds": zstd_seconds,
        "to_zstd3_ratio": seconds / zstd_seconds,
    }


def main(arguments: list[str] | None = None) -> int:
    """The command line of this benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.intake", description="Reading raw logs, by format.")
    parser.add_argument("--megabytes", type=float, default=64, help="size of the generated logs (default: 64)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3, help="the fastest of so many runs counts")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a list for people")
    options = parser.parse_args(arguments)
    try:
        lines = generate(megabytes=options.megabytes, seed=options.seed).content.to_pylist()
        with tempfile.TemporaryDirectory(prefix="coprlake-benchmark-") as folder:
            figures = measure(lines, Path(folder), options.repeats)
    except CoprlakeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(figures))
        return 0
    for name, row in figures.items():
        speed, ratio = row["megabytes_per_second"], row["to_zstd3_ratio"]
        print(f"{name:12} {speed:8,.0f} MB/s {ratio:6.2f} of the time of zstd-3 {row['records']:12,} records")
    return 0


if __name__ == "__main__":
    sys.exit(main())
