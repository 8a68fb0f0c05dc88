"""The report of a search: what was pruned and how, what was read for nothing, and where the time went."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from coprlake.summary import Report, text_of


@dataclass(repr=False)
class SearchReport(Report):
    """The figures of one search; complete when all of its results were taken."""

    always_shown = ("segments", "batches", "batches_opened", "rows_matched")

    predicate: object = ""
    segments: int = 0
    segments_pruned_by_time: int = 0
    segments_pruned_by_partition: int = 0
    segments_pruned_by_sketch: int = 0
    segments_without_sketch: int = 0
    batches: int = 0
    batches_pruned_by_time: int = 0
    batches_pruned_by_sketch: int = 0
    batches_opened: int = 0
    batches_for_nothing: int = 0
    rows_matched: int = 0
    bytes_read: int = 0
    stopped_early: bool = False
    is_incomplete: bool = False  # records could not be read, and are missing from the result
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # what is odd about the search, such as an unknown field
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def _facts(self) -> Mapping[str, Any]:
        facts = super()._facts()
        return {name: text_of(value) if name == "predicate" else value for name, value in facts.items()}

    @property
    def error_rate(self) -> float:
        """The share of all batches that were opened for nothing (paper 5.2)."""
        return self.batches_for_nothing / self.batches if self.batches else 0.0

    def add(self, **counts: int) -> None:
        """Add to counts; thread-safe."""
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def add_seconds(self, phase: str, seconds: float) -> None:
        """Add to the time of a phase; thread-safe. With several threads, the sum may exceed the elapsed time."""
        with self._lock:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the ``with`` block to a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add_seconds(name, time.perf_counter() - started)

    def note(self, text: str) -> None:
        """Record, once, why something was not pruned."""
        if text not in self.notes:
            self.notes.append(text)

    def problem(self, text: str) -> None:
        """Record, once, a problem with the table."""
        with self._lock:
            if text not in self.problems:
                self.problems.append(text)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        with self._lock:
            lock, self._lock = self._lock, None  # type: ignore[assignment]  # a lock cannot be copied
            try:
                values = asdict(self)
            finally:
                self._lock = lock
        del values["_lock"]
        return values | {"predicate": str(self.predicate), "error_rate": self.error_rate}
