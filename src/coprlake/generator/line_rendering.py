"""Renders the lines of the built-in applications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coprlake.generator.clock import Columns, advance
from coprlake.generator.field_values import Lifetime, Values
from coprlake.generator.template import Application, Field, Line

_PILOT_LINES = 1500
_SAME_FLOW = 0.7  # share of episodes that repeat the flow of the previous one


class ApplicationRenderer:
    """Renders lines of ``applications``; equal seeds and equal calls give equal lines."""

    def __init__(self, applications: Sequence[Application], seed: int) -> None:
        self._applications = applications
        self._seed = seed
        self._values = Values(np.random.Generator(np.random.PCG64(seed)))

    @property
    def kind_count(self) -> int:
        """The number of kinds of sources."""
        return len(self._applications)

    def mean_line_bytes(self) -> NDArray[np.float64]:
        """The average raw size of a line of each kind, in bytes, from a trial that does not affect the pools."""
        trial = ApplicationRenderer(self._applications, self._seed)
        texts = ["\n".join(trial.render(kind, np.array([_PILOT_LINES]))) for kind in range(self.kind_count)]
        return np.array([(len(text.encode()) + 1) / _PILOT_LINES for text in texts])

    def render(self, kind: int, counts: NDArray[np.int64]) -> list[str]:
        """The lines of ``len(counts)`` sources of a kind, one source after the other, each in time order."""
        application = self._applications[kind]
        layout = _lay_out(application, int(counts.sum()), self._values.rng)
        sources = np.repeat(np.arange(len(counts)), counts)
        begins = layout.begins()
        begins[np.concatenate(([0], np.cumsum(counts[:-1])))] = True
        times = advance(self._values.rng, counts, begins, application.pace_ms)
        chunk = _Chunk(self._values, application, len(counts), sources, times, {})
        lines = np.empty(len(sources), dtype=object)
        for flow in range(len(application.flows)):
            chunk.write_flow(layout, flow, lines)
        return lines.tolist()


@dataclass(frozen=True)
class _Layout:
    """The flow that each episode follows and the rows of its lines; -1 for an omitted line."""

    episode_flows: NDArray[np.int64]
    slot_starts: NDArray[np.int64]
    rows: NDArray[np.int64]
    row_count: int

    def begins(self) -> NDArray[np.bool_]:
        """Mark the first row of each episode."""
        marks = np.zeros(self.row_count, dtype=np.bool_)
        first = self.rows[self.slot_starts]
        marks[first[first < self.row_count]] = True
        return marks


def _lay_out(application: Application, row_count: int, rng: np.random.Generator) -> _Layout:
    """Draw episodes for at least ``row_count`` rows; the last one may extend beyond them."""
    flows = application.flows
    weights = 1.0 / np.arange(1, len(flows) + 1) ** 1.2
    weights /= weights.sum()
    lengths = np.array([len(flow) for flow in flows])
    surely = np.array([sum(not line.optional for line in flow) for flow in flows])
    # Counts only lines that are never omitted, so that one draw usually suffices.
    expected = float((surely * weights).sum())
    episodes = np.zeros(0, dtype=np.int64)
    while surely[episodes].sum() < row_count:
        drawn = rng.choice(len(flows), int(row_count / expected * 1.1) + 10, p=weights)
        stays = np.where(rng.random(len(drawn)) < _SAME_FLOW, 0, np.arange(len(drawn)))
        episodes = np.concatenate((episodes, drawn[np.maximum.accumulate(stays)]))
    starts = np.concatenate(([0], np.cumsum(lengths[episodes])))
    optional = np.array([line.optional for flow in flows for line in flow])
    flow_starts = np.concatenate(([0], np.cumsum(lengths)))[:-1]
    slots = np.arange(starts[-1]) - np.repeat(starts[:-1] - flow_starts[episodes], lengths[episodes])
    present = ~optional[slots] | (rng.random(len(slots)) < 0.5)
    rows = np.where(present, np.cumsum(present) - 1, -1)
    return _Layout(episodes, starts[:-1], rows, row_count)


@dataclass(frozen=True)
class _Chunk:
    """The rows of some sources of one application while their lines are rendered."""

    values: Values
    application: Application
    source_count: int
    sources: NDArray[np.int64]
    times: NDArray[np.int64]
    source_columns: dict[str, Columns]

    def write_flow(self, layout: _Layout, flow: int, lines: NDArray[np.object_]) -> None:
        """Write all lines of the episodes that follow ``flow`` into ``lines``."""
        slots = layout.slot_starts[layout.episode_flows == flow]
        slots = slots[layout.rows[slots] < layout.row_count]
        held: dict[str, Columns] = {}
        for index, line in enumerate(self.application.flows[flow]):
            rows = layout.rows[slots + index]
            kept = np.flatnonzero((rows >= 0) & (rows < layout.row_count))
            if len(kept):
                lines[rows[kept]] = self._write(line, rows[kept], kept, len(slots), held)

    def _write(
        self, line: Line, rows: NDArray[np.int64], kept: NDArray[np.int64], episodes: int, held: dict[str, Columns]
    ) -> list[str]:
        columns: Columns = []
        for field in line.fields:
            if field.scope is Lifetime.LINE:
                columns += field.draw(self.values, len(rows))
            elif field.scope is Lifetime.ROW:
                columns += self._row_columns(field, rows)
            elif field.scope is Lifetime.SOURCE:
                columns += _taken(self._source_columns(field), self.sources[rows])
            else:
                if field.text not in held:
                    held[field.text] = field.draw(self.values, episodes)
                columns += held[field.text] if len(kept) == episodes else _taken(held[field.text], kept)
        if not columns:
            return [line.pattern % ()] * len(rows)
        return list(map(line.pattern.__mod__, zip(*columns, strict=True)))

    def _source_columns(self, field: Field) -> Columns:
        if field.text not in self.source_columns:
            self.source_columns[field.text] = field.draw(self.values, self.source_count)
        return self.source_columns[field.text]

    def _row_columns(self, field: Field, rows: NDArray[np.int64]) -> Columns:
        if field.text.startswith("time"):
            return self.application.style.columns(self.times[rows])
        # Counters of a source share a start value, as if it had been up for some time.
        drawn = self.source_columns.setdefault(
            "seq", [self.values.rng.integers(20_000, 9_000_000, self.source_count).tolist()]
        )
        step = int(field.argument or 1)
        return [(np.array(drawn[0], dtype=np.int64)[self.sources[rows]] + rows * step).tolist()]


def _taken(columns: Columns, indices: NDArray[np.int64]) -> Columns:
    chosen = indices.tolist()
    return [[column[index] for index in chosen] for column in columns]
