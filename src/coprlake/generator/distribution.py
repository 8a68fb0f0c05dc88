"""The number of lines per source: recorded production quantiles of the two named sets, scaled to any size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from coprlake.errors import UsageError

QUANTILES = (0.0, 0.5, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 1.0)


@dataclass(frozen=True)
class SourceShape:
    """A named set: its size, and lines per source at each of ``QUANTILES``."""

    name: str
    source_count: int
    line_count: int
    lines_at_quantiles: tuple[int, ...]


SHAPES = {
    shape.name: shape
    for shape in (
        SourceShape(
            "1M_generated",
            3_234,
            1_046_661,
            (1, 1, 1, 4, 15, 60, 329, 908, 2138, 10295, 16954, 47500, 53946, 58749, 86638),
        ),
        SourceShape(
            "5M_generated",
            60_580,
            7_033_608,
            (1, 1, 4, 4, 5, 7, 12, 17, 26, 129, 220, 1766, 9225, 34720, 451209),
        ),
    )
}


def shape_named(name: str) -> SourceShape:
    """The shape of the set ``name``; raises a UsageError that lists the sets if it is unknown."""
    if name not in SHAPES:
        raise UsageError(f"unknown log set {name!r}: the sets are {', '.join(SHAPES)}")
    return SHAPES[name]


def lines_per_source(shape: SourceShape, line_total: int | None = None) -> NDArray[np.int64]:
    """The number of lines of each source, ascending, at least one each.

    Without ``line_total``, the sources and the total are those of the set. With it, both the number of sources and the
    lines per source scale by about the square root of the ratio, which keeps the shape of the curve: a system that
    logs ten times as much has more sources, and busier ones.
    """
    if line_total is None or line_total == shape.line_count:
        return _whole_lines(_curve(shape, shape.source_count), 1.0)
    line_total = max(line_total, 1)
    ratio = line_total / shape.line_count
    source_count = min(max(round(shape.source_count * ratio**0.5), 1), line_total)
    curve = _curve(shape, source_count)
    low, high = 0.0, 4.0 * line_total
    for _ in range(80):
        middle = (low + high) / 2
        if _whole_lines(curve, middle).sum() < line_total:
            low = middle
        else:
            high = middle
    return _whole_lines(curve, high)


def _whole_lines(curve: NDArray[np.float64], factor: float) -> NDArray[np.int64]:
    return np.maximum(np.rint(curve * factor), 1).astype(np.int64)


def _curve(shape: SourceShape, source_count: int) -> NDArray[np.float64]:
    """The quantile function at ``source_count`` points, bent between the quantiles to meet the set's total."""
    bend = _bend(shape)
    return _interpolate(shape, np.linspace(0.0, 1.0, source_count) if source_count > 1 else np.ones(1), bend)


@cache
def _bend(shape: SourceShape) -> float:
    """The exponent that makes the full set sum to its line count; more bend means fewer lines."""
    points = np.linspace(0.0, 1.0, shape.source_count)
    low, high = 0.05, 20.0
    for _ in range(60):
        middle = (low * high) ** 0.5
        if _whole_lines(_interpolate(shape, points, middle), 1.0).sum() > shape.line_count:
            low = middle
        else:
            high = middle
    return high


def _interpolate(shape: SourceShape, points: NDArray[np.float64], bend: float) -> NDArray[np.float64]:
    """Interpolate between the quantiles, log-linearly for ``bend`` 1; every bend meets the quantiles themselves."""
    quantiles = np.asarray(QUANTILES)
    logs = np.log(np.asarray(shape.lines_at_quantiles, dtype=np.float64))
    index = np.clip(np.searchsorted(quantiles, points, side="right") - 1, 0, len(quantiles) - 2)
    along = (points - quantiles[index]) / (quantiles[index + 1] - quantiles[index])
    rise = logs[index + 1] - logs[index]
    return np.asarray(np.exp(logs[index] + rise * np.clip(along, 0.0, 1.0) ** bend))
