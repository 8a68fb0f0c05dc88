"""``python -m coprlake.generator``: writes a generated log set to a file and its figures to stderr."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from coprlake.errors import CoprlakeError
from coprlake.generator.distribution import SHAPES
from coprlake.generator.generation import generate
from coprlake.generator.log_figures import Figures, measure
from coprlake.generator.logset import LogSet

_CHUNK_LINES = 65_536


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if the lines were written, or 2 with a message on stderr."""
    options = _parser().parse_args(arguments)
    try:
        logs = generate(options.set, megabytes=options.megabytes, seed=options.seed, samples=options.samples)
        if options.out == "-":
            _write_lines(logs, sys.stdout.buffer)
        else:
            with Path(options.out).open("wb") as out:
                _write_lines(logs, out)
        print(_report(measure(logs)), file=sys.stderr)
    except BrokenPipeError:
        # The reader has seen enough; Python would print a second error when it closes stdout.
        sys.stderr.close()
        return 0
    except (CoprlakeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m coprlake.generator",
        description="Write a set of realistic log lines, one line each, and print its figures to stderr.",
    )
    parser.add_argument("--set", default="1M_generated", help=f"the set: {', '.join(SHAPES)} (default %(default)s)")
    parser.add_argument("--megabytes", type=float, help="stop near this size (1e6 bytes) instead of the set's own")
    parser.add_argument("--seed", type=int, default=1, help="equal seeds give equal bytes (default %(default)s)")
    parser.add_argument("--samples", metavar="DIR", help="draw sequences of lines from the *.log files in this folder")
    parser.add_argument("--out", metavar="FILE", required=True, help="the file to write; - for standard output")
    return parser


def _write_lines(logs: LogSet, out: BinaryIO) -> None:
    for first in range(0, logs.line_count, _CHUNK_LINES):
        lines = logs.content.slice(first, _CHUNK_LINES).to_pylist()
        out.write(("\n".join(lines) + "\n").encode())
    out.flush()


def _report(figures: Figures) -> str:
    return (
        f"{figures.line_count} lines of {figures.source_count} sources, {figures.raw_bytes / 1e6:.1f} MB\n"
        f"zstd level 3 leaves {figures.zstd3_percent:.1f} %\n"
        f"{figures.distinct_tokens_per_megabyte:.0f} distinct tokens per MB\n"
        f"{figures.single_batch_token_percent:.1f} % of the tokens are in one batch only"
    )


if __name__ == "__main__":
    sys.exit(main())
