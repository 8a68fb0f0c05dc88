"""Three figures that show how closely a log set resembles real logs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coprlake.generator.logset import LogSet, batches_by_source


@dataclass(frozen=True)
class Figures:
    """Measures of a log set; real logs have about 8-14 %, 7,000-12,000 and 80 %."""

    raw_bytes: int
    line_count: int
    source_count: int
    zstd3_percent: float
    """Size of the batches, each compressed with zstd level 3, as a percentage of the raw size."""
    distinct_tokens_per_megabyte: float
    """Distinct tokens of all batches per 1e6 raw bytes."""
    single_batch_token_percent: float
    """Percentage of the distinct tokens that occur in only one batch."""


def measure(logs: LogSet, batch_bytes: int = 512 * 1024) -> Figures:
    """Measure ``logs`` in batches by source; tokens are distinguished by their 32-bit fingerprints."""
    from coprlake.tokens.scanner import BatchScanner  # not at the top: it imports Numba, which `--help` does not need

    codec = pa.Codec("zstd", compression_level=3)
    scanner = BatchScanner()
    compressed_bytes = 0
    fingerprints = []
    for batch in batches_by_source(logs, batch_bytes):
        text = "\n".join(batch.to_pylist()) + "\n"
        compressed_bytes += codec.compress(text.encode()).size
        fingerprints.append(scanner.scan(batch, rules="paper").copy())
    _, batches_of_token = np.unique(np.concatenate(fingerprints or [np.zeros(0, np.uint32)]), return_counts=True)
    distinct = max(len(batches_of_token), 1)
    raw_bytes = max(logs.raw_bytes, 1)
    return Figures(
        raw_bytes=logs.raw_bytes,
        line_count=logs.line_count,
        source_count=logs.source_count,
        zstd3_percent=100 * compressed_bytes / raw_bytes,
        distinct_tokens_per_megabyte=len(batches_of_token) / (raw_bytes / 1e6),
        single_batch_token_percent=100 * int((batches_of_token == 1).sum()) / distinct,
    )
