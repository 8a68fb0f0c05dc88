"""The generator's one entry: sources with their sizes, their lines, and the shuffle of all of them."""

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
from coprlake.generator.logset import LogSet, line_lengths
from coprlake.generator.rendering import ApplicationRenderer
from coprlake.generator.samples import SampleRenderer

_CHUNK_LINES = 50_000  # small sources of a kind are written together, so that the cost of a call is shared
_SMALL_SOURCE_LINES = 60


class Renderer(Protocol):
    """Writes the lines of sources of several kinds."""

    @property
    def kind_count(self) -> int:
        """How many kinds of source there are."""

    def mean_line_bytes(self) -> NDArray[np.float64]:
        """Raw bytes of an average line of each kind."""

    def render(self, kind: int, counts: NDArray[np.int64]) -> list[str]:
        """The lines of ``len(counts)`` sources of a kind, one source after the other, each in time order."""


def generate(
    name: str = "1M_generated",
    *,
    megabytes: float | None = None,
    seed: int = 1,
    samples: Path | str | None = None,
) -> LogSet:
    """A log set with the sources, lines per source and statistics of the production set ``name``.

    Args:
        name: "1M_generated" (3,234 sources, 1.05 M lines) or "5M_generated" (60,580 sources, 7 M lines).
        megabytes: a size to come near instead, smaller or larger, in 1e6 raw bytes; the shape of the set stays.
        seed: equal arguments give equal bytes.
        samples: a folder of ``*.log`` files to draw sequences of lines from; without it the text is made up.

    Lines are shuffled over all sources; those of one source keep the order of their times.
    """
    if seed < 0:
        raise UsageError(f"a seed is 0 or more, not {seed}")
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
    numbers = rng.permutation(len(counts))  # of the source in the set, so that its number does not tell its size
    texts, labels = [], []
    for kind, chosen in _chunks(counts, kinds):
        texts.append(pa.array(renderer.render(kind, counts[chosen]), type=pa.large_string()))
        labels.append(np.repeat(numbers[chosen], counts[chosen]))
    return _shuffled(name, pa.concat_arrays(texts), np.concatenate(labels).astype(np.int32), rng)


def _counts_near(
    shape: SourceShape, raw_bytes: float, mean_bytes: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lines and kind of each source for about ``raw_bytes``: the few largest sources decide, so their kinds count."""
    counts = lines_per_source(shape, max(round(raw_bytes / mean_bytes.mean()), 1))
    dealt = _deal_kinds(counts, len(mean_bytes), seed)[::-1]
    kinds = dealt[::-1]
    for _ in range(5):
        # The largest source keeps its kind, and so on downwards: dealt anew, the sizes would not settle.
        ratio = raw_bytes / float((counts * mean_bytes[kinds]).sum())
        counts = lines_per_source(shape, max(round(counts.sum() * ratio), 1))
        kinds = dealt[np.arange(len(counts)) % len(dealt)][::-1]
    return counts, kinds


def _deal_kinds(counts: NDArray[np.int64], kind_count: int, seed: int) -> NDArray[np.int64]:
    """A kind for each source; ``counts`` ascend.

    From the largest on, a source goes to the kind with the fewest lines so far, so that a few large sources do not
    decide what a set is like. Small ones weigh nothing and go round all kinds.
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
    """Sources of one kind to write together: of about ``_CHUNK_LINES`` lines, or a single larger one."""
    for kind in range(int(kinds.max()) + 1):
        chosen = np.flatnonzero(kinds == kind)
        parts = np.cumsum(counts[chosen]) // _CHUNK_LINES
        for part in np.split(chosen, np.flatnonzero(np.diff(parts)) + 1):
            if len(part):
                yield kind, part


def _shuffled(name: str, content: pa.LargeStringArray, labels: NDArray[np.int32], rng: np.random.Generator) -> LogSet:
    """Shuffles the labels, then hands each source's lines to its labels in order."""
    arrival = rng.permutation(labels)
    takes = np.empty(len(labels), dtype=np.int64)
    takes[np.argsort(arrival, kind="stable")] = np.argsort(labels, kind="stable")
    raw_bytes = int(line_lengths(content).sum())
    return LogSet(name, content.take(pa.array(takes)), pa.array(arrival, type=pa.int32()), raw_bytes)
