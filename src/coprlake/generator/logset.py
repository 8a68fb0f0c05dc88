"""A set of log lines with their sources, and the batches that a store would make of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


@dataclass(frozen=True)
class LogSet:
    """Log lines in order of arrival.

    ``content`` holds the lines without line ends; ``source`` holds the number of the source of each line (dense from 0,
    int32); ``raw_bytes`` counts the lines and one byte per line end.
    """

    name: str
    content: pa.LargeStringArray
    source: pa.Array
    raw_bytes: int

    @property
    def line_count(self) -> int:
        """The number of lines."""
        return len(self.content)

    @property
    def source_count(self) -> int:
        """The number of sources; every source has at least one line."""
        return int(pc.max(self.source).as_py()) + 1 if len(self.source) else 0


def line_lengths(content: pa.LargeStringArray) -> NDArray[np.int64]:
    """The bytes of each line, including its line end."""
    return np.asarray(pc.binary_length(content), dtype=np.int64) + 1


def batches_by_source(logs: LogSet, batch_bytes: int = 512 * 1024) -> Iterator[pa.LargeStringArray]:
    """Split the set into batches of about ``batch_bytes`` raw bytes: source by source, each in its order.

    A batch ends with the line that brings it to ``batch_bytes``; smaller sources share a batch.
    """
    order = np.argsort(np.asarray(logs.source), kind="stable")
    ends = np.cumsum(line_lengths(logs.content)[order])
    first, filled = 0, 0
    while first < len(order):
        last = min(int(np.searchsorted(ends, filled + batch_bytes)) + 1, len(order))
        yield logs.content.take(pa.array(order[first:last]))
        filled, first = int(ends[last - 1]), last
