"""The clocks of sources and the formats of their times."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Column = list[int] | list[str] | list[float]
Columns = list[Column]

START_SECONDS = 1_718_000_000  # a fixed day, so that a seed gives the same bytes whenever it runs
SPAN_SECONDS = 6 * 3600
_SECOND = 1_000_000
_PARTS = re.compile(r"%S|\{(ms|us|epoch)\}")


@dataclass(frozen=True)
class TimeStyle:
    """A time format: strftime down to the minute, then ``%S``, ``{ms}``, ``{us}``; or ``{epoch}``.

    Only whole minutes go through strftime, once each, since the lines of a source share most of them.
    """

    spec: str

    @property
    def pattern(self) -> str:
        """The percent pattern that takes the columns of :meth:`columns`."""
        head, tail = self._split()
        widths = {"%S": "%02d", "{ms}": "%03d", "{us}": "%06d", "{epoch}": "%d"}
        rendered = _PARTS.sub(lambda match: widths[match[0]], tail)
        return ("%s" if head else "") + rendered

    def columns(self, times: NDArray[np.int64]) -> Columns:
        """The columns that write ``times`` (microseconds since 1970, UTC)."""
        head, tail = self._split()
        seconds = times // _SECOND
        columns: Columns = [_minute_texts(head, seconds // 60)] if head else []
        for part in _PARTS.finditer(tail):
            if part[0] == "%S":
                columns.append((seconds % 60).tolist())
            elif part[0] == "{epoch}":
                columns.append(seconds.tolist())
            else:
                columns.append((times % _SECOND // (1000 if part[0] == "{ms}" else 1)).tolist())
        return columns

    def _split(self) -> tuple[str, str]:
        first = _PARTS.search(self.spec)
        return (self.spec[: first.start()], self.spec[first.start() :]) if first else (self.spec, "")


def _minute_texts(pattern: str, minutes: NDArray[np.int64]) -> list[str]:
    distinct, inverse = np.unique(minutes, return_inverse=True)
    texts = [time.strftime(pattern, time.gmtime(minute * 60)) for minute in distinct.tolist()]
    return [texts[index] for index in inverse.tolist()]


def advance(
    rng: np.random.Generator, counts: NDArray[np.int64], begins: NDArray[np.bool_], pace_ms: float
) -> NDArray[np.int64]:
    """Times in microseconds of the lines of several sources, ascending within each source.

    ``counts`` are the lines of each source; ``begins`` marks lines that start a new activity. Before these a source
    pauses long enough to fill some hours (at most about ten minutes on average), before others about ``pace_ms``.
    """
    starts = np.concatenate(([0], np.cumsum(counts)))
    pause = np.minimum(SPAN_SECONDS / np.maximum(counts, 1) * 2, 600.0) * _SECOND
    gaps = rng.lognormal(np.log(pace_ms * 1000), 1.1, len(begins))
    opening = np.flatnonzero(begins)
    pauses = np.repeat(pause, counts)[opening]
    gaps[opening] = rng.exponential(1.0, len(opening)) * pauses
    elapsed = np.cumsum(gaps.astype(np.int64))
    first = START_SECONDS * _SECOND + (rng.random(len(counts)) * 7200 * _SECOND).astype(np.int64)
    return np.asarray(elapsed + np.repeat(first - elapsed[starts[:-1]], counts))
