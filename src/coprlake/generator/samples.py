"""Draws sequences of lines from a folder of real logs, with new values in their variable parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coprlake.errors import UsageError
from coprlake.generator.clock import advance
from coprlake.generator.pools import GrowingPool, RecentPool, mix
from coprlake.generator.sample_lines import SampleFile, Slot, compile_file

_RUN_LINES = 28  # the mean length of a sequence of consecutive lines
_PAUSE_SHARE = 0.3  # share of lines that follow a longer pause
_PACE_MS = 60.0
_SHORT_ID_LIFE = 8


class SampleRenderer:
    """Renders lines modelled on the ``*.log`` files of ``folder``; each file is a kind of source."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._files = [compile_file(lines) for lines in _read_lines(folder)]
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._networks = GrowingPool(self._rng, 3.0, 0.45, 2.0)
        self._machines = GrowingPool(self._rng, 3.0, 0.6, 2.0)
        self._activities = RecentPool(self._rng, 0.95, 10.0)
        self._factors = self._rng.lognormal(0.0, 0.4, 400)

    @property
    def kind_count(self) -> int:
        """The number of kinds of sources."""
        return len(self._files)

    def mean_line_bytes(self) -> NDArray[np.float64]:
        """The average raw size of a line of each kind, in bytes."""
        return np.array([file.mean_bytes for file in self._files])

    def render(self, kind: int, counts: NDArray[np.int64]) -> list[str]:
        """The lines of ``len(counts)`` sources of a kind, one source after the other, each in time order."""
        file = self._files[kind]
        row_count = int(counts.sum())
        runs, lines, begins = self._draw_runs(row_count, len(file.patterns))
        begins |= self._rng.random(row_count) < _PAUSE_SHARE
        times = advance(self._rng, counts, begins, _PACE_MS)
        widths = np.diff(file.starts)[lines]
        ends = np.cumsum(widths)
        slots = np.arange(ends[-1]) + np.repeat(file.starts[lines] - ends + widths, widths)
        values = self._values(file, slots, np.repeat(runs, widths), np.repeat(times, widths))
        patterns = [file.patterns[line] for line in lines.tolist()]
        spans = zip(patterns, (ends - widths).tolist(), ends.tolist(), strict=True)
        return [pattern % tuple(values[start:end]) for pattern, start, end in spans]

    def _draw_runs(
        self, row_count: int, line_count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """The run of each row, its line in the file, and whether it starts a run."""
        lengths = self._rng.geometric(1 / _RUN_LINES, row_count // _RUN_LINES + 20)
        while lengths.sum() < row_count:
            lengths = np.concatenate((lengths, lengths))
        starts = np.cumsum(lengths) - lengths
        offsets = self._rng.integers(0, line_count, len(lengths)) - starts
        runs = np.repeat(np.arange(len(lengths)), lengths)[:row_count]
        rows = np.arange(row_count)
        return runs, (rows + offsets[runs]) % line_count, rows == starts[runs]

    def _values(
        self, file: SampleFile, slots: NDArray[np.int64], runs: NDArray[np.int64], times: NDArray[np.int64]
    ) -> list[object]:
        """A value for each slot: equal parts of a run stay equal, and machines and networks recur between runs."""
        values = np.empty(len(slots), dtype=object)
        kinds, parameters = file.kinds[slots], file.parameters[slots]
        for index, style in enumerate(file.styles):
            chosen = np.flatnonzero((kinds == Slot.TIME) & (parameters == index))
            if len(chosen):
                columns = style.columns(times[chosen])
                values[chosen] = list(map(style.pattern.__mod__, zip(*columns, strict=True)))
        run_count = int(runs.max(initial=-1)) + 1
        activities = self._activities.draw(run_count)
        chosen = np.flatnonzero((kinds == Slot.HEX) | (kinds == Slot.ID))
        # Short ids (processes, ports, threads) outlive an activity; long ones (blocks, requests) are new in each.
        lives = np.where(parameters[chosen] < 7, activities[runs[chosen]] // _SHORT_ID_LIFE, activities[runs[chosen]])
        words = mix(file.keys[slots[chosen]] ^ lives.astype(np.uint64) << np.uint64(32))
        values[chosen] = _of_width(words, parameters[chosen], kinds[chosen] == Slot.HEX)
        chosen = np.flatnonzero(kinds == Slot.OCTET)
        values[chosen] = self._octets(file.keys[slots[chosen]], parameters[chosen], runs[chosen], run_count)
        chosen = np.flatnonzero(kinds == Slot.MEASURE)
        numbers = file.numbers[slots[chosen]] * self._factors[self._rng.zipf(1.5, len(chosen)) % len(self._factors)]
        values[chosen] = numbers.astype(np.int64).tolist()
        return values.tolist()

    def _octets(
        self, keys: NDArray[np.uint64], places: NDArray[np.int64], runs: NDArray[np.int64], run_count: int
    ) -> list[int]:
        """The second to fourth bytes of addresses: two of the network, one of the machine."""
        networks = self._networks.draw(run_count).astype(np.uint64)[runs]
        machines = self._machines.draw(run_count).astype(np.uint64)[runs]
        words = mix(keys ^ np.where(places == 2, machines << np.uint64(32) ^ networks, networks << np.uint64(40)))
        octets: list[int] = ((words >> (places * 8 + 8).astype(np.uint64)) % np.uint64(254) + np.uint64(1)).tolist()
        return octets


def _of_width(words: NDArray[np.uint64], digits: NDArray[np.int64], are_hex: NDArray[np.bool_]) -> list[int]:
    """Numbers with the given counts of digits, hexadecimal or decimal; five digits stay below 60000, like ports."""
    hexadecimal = words >> (64 - 4 * np.minimum(digits, 16)).clip(0, 63).astype(np.uint64)
    low = np.uint64(10) ** (digits - 1).clip(0, 18).astype(np.uint64)
    decimal = low + words % (low * np.where(digits == 5, 5, 9).astype(np.uint64))
    numbers: list[int] = np.where(are_hex, hexadecimal, decimal).tolist()
    return numbers


def _read_lines(folder: Path) -> list[list[str]]:
    """The lines of each ``*.log`` file, ordered by name, without blank lines."""
    if not folder.is_dir():
        raise UsageError(f"the samples folder {folder} does not exist; give a folder of *.log files")
    files = []
    for path in sorted(folder.glob("*.log")):
        try:
            text = path.read_bytes().decode("utf-8", errors="replace")
        except OSError as error:
            raise UsageError(f"cannot read the sample {path}: {error.strerror}") from error
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        files.append([line for line in lines if line.strip()])
    files = [lines for lines in files if lines]
    if not files:
        raise UsageError(f"the samples folder {folder} has no log lines; it needs *.log files with one entry per line")
    return files
