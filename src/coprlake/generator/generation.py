"""The generator's entry point: sizes the sources, renders their lines and shuffles them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from coprlake.errors import UsageError
from coprlake.generator.applications.application_list import APPLICATIONS
from coprlake.generator.distribution import SourceShape, lines_per_source, shape_named
from coprlake.generator.line_rendering import ApplicationRenderer
from coprlake.generator.logset import LogSet, line_lengths
from coprlake.generator.samples import SampleRenderer

_CHUNK_LINES = 50_000  # small sources of a kind are rendered together, to share the cost of a call
_SMALL_SOURCE_LINES = 60


class Renderer(Protocol):
    """Writes the lines of sources of several kinds."""

    @property
    def kind_count(self) -> int:
        """The number of kinds of sources."""

    def mean_line_bytes(self) -> NDArray[np.float64]:
        """The average raw size of a line of each kind, in bytes."""

    def render(self, kind: int, counts: NDArray[np.int64]) -> list[str]:
        """The lines of ``len(counts)`` sources of a kind, one source after the other, each in time order."""


def generate(
    name: str = "1M_generated",
    *,
    megabytes: float | None = None,
    seed: int = 1,
    samples: Path | str | None = None,
) -> LogSet:
    """Generate a log set with the sources, lines per source and statistics of the production set ``name``.

    Args:
        name: "1M_generated" (3,234 sources, 1.05 M lines) or "5M_generated" (60,580 sources, 7 M lines).
        megabytes: an approximate size to use instead, in 1e6 raw bytes; the shape of the set stays the same.
        seed: equal arguments give equal bytes.
        samples: a folder of ``*.log`` files to draw sequences of lines from; by default the text is made up.

    Lines are shuffled across sources; those of one source stay in time order.
    """
    if seed < 0:
        raise UsageError(f"the seed must be 0 or more, found {seed}")
    shape = shape_named(name)
    if megabytes is not None and not megabytes > 0:
        raise UsageError(f"megabytes must be more than 0, found {megabytes}")
    renderer: Renderer = (
        ApplicationRenderer(APPLICATIONS, seed) if samples is None else SampleRenderer(Path(samples), seed)
    )
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    if megabytes is None:
        counts = lines_per_source(shape)
        kinds = _deal_kinds(counts, renderer.kind_count, seed)
    else:
        counts, kinds = _counts_near(shape, megabytes * 1e6, renderer.mean_line_bytes(), seed)
    numbers = rng.permutation(len(counts))  # shuffled, so that the number of a source does not reveal its size
    texts, labels = [], []
    for kind, chosen in _chunks(counts, kinds):
        texts.append(pa.array(renderer.render(kind, counts[chosen]), type=pa.large_string()))
        labels.append(np.repeat(numbers[chosen], counts[chosen]))
    return _shuffled(name, pa.concat_arrays(texts), np.concatenate(labels).astype(np.int32), rng)


def _counts_near(
    shape: SourceShape, raw_bytes: float, mean_bytes: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The lines and kind of each source for about ``raw_bytes``, which depends most on the kinds of the largest."""
    counts = lines_per_source(shape, max(round(raw_bytes / mean_bytes.mean()), 1))
    dealt = _deal_kinds(counts, len(mean_bytes), seed)[::-1]
    kinds = dealt[::-1]
    for _ in range(5):
        # From the largest down, sources keep their kinds: otherwise the sizes would not converge.
        ratio = raw_bytes / float((counts * mean_bytes[kinds]).sum())
        counts = lines_per_source(shape, max(round(counts.sum() * ratio), 1))
        kinds = dealt[np.arange(len(counts)) % len(dealt)][::-1]
    return counts, kinds


def _deal_kinds(counts: NDArray[np.int64], kind_count: int, seed: int) -> NDArray[np.int64]:
    """Assign a kind to each source; ``counts`` must ascend.

    From the largest down, each source gets the kind with the fewest lines so far, so that a few large sources do not
    dominate the set. Small ones hardly matter and take all kinds in turn.
    """
    rng = np.random.Generator(np.random.PCG64([seed, 2]))
    rounds = -(-len(counts) // kind_count)
    kinds = np.concatenate([rng.permutation(kind_count) for _ in range(rounds)])[: len(counts)]
    loads = [(0, place, kind) for place, kind in enumerate(rng.permutation(kind_count).tolist())]
    for source in range(len(counts) - 1, int(np.searchsorted(counts, _SMALL_SOURCE_LINES)) - 1, -1):
        lines, place, kind = heapq.heappop(loads)
        kinds[source] = kind
        heapq.heappush(loads, (lines + int(counts[source]), place, kind))
    return kinds


def _chunks(counts: NDArray[np.int64], kinds: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Group sources of one kind to render together: about ``_CHUNK_LINES`` lines, or a single larger source."""
    for kind in range(int(kinds.max()) + 1):
        chosen = np.flatnonzero(kinds == kind)
        parts = np.cumsum(counts[chosen]) // _CHUNK_LINES
        for part in np.split(chosen, np.flatnonzero(np.diff(parts)) + 1):
            if len(part):
                yield kind, part


def _shuffled(name: str, content: pa.LargeStringArray, labels: NDArray[np.int32], rng: np.random.Generator) -> LogSet:
    """Shuffle the labels, then assign each source's lines to its labels in order."""
    arrival = rng.permutation(labels)
    takes = np.empty(len(labels), dtype=np.int64)
    takes[np.argsort(arrival, kind="stable")] = np.argsort(labels, kind="stable")
    raw_bytes = int(line_lengths(content).sum())
    return LogSet(name, content.take(pa.array(takes)), pa.array(arrival, type=pa.int32()), raw_bytes)
