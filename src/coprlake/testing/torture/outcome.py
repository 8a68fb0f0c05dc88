"""The report of a torture: the number of cases, and the smallest case of each failure."""

import time
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

ENOUGH: Final = 50
"""The number of failures after which a torture stops."""


@dataclass(frozen=True)
class Failure:
    """One failed case, in a form that can be run again."""

    seed: int
    case: str
    """The smallest case that still fails, as text or as code to paste."""
    what: str
    """What was expected and what happened instead."""

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.what}\n  case: {self.case}"


@dataclass
class Outcome:
    """The result of one torture."""

    cases: int = 0
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    """Cases by kind, so that a run shows what it covered."""

    def count(self, kind: str, cases: int = 1) -> None:
        """Count cases of one kind."""
        self.cases += cases
        self.counts[kind] = self.counts.get(kind, 0) + cases

    def as_json(self) -> dict[str, Any]:
        """The figures for a report."""
        return {
            "cases": self.cases,
            "failures": len(self.failures),
            "seconds": round(self.seconds, 1),
            "counts": dict(sorted(self.counts.items())),
            "examples": [str(failure) for failure in self.failures[:20]],
        }


class Budget:
    """Says when a torture has to stop, and records how long it took."""

    latest: ClassVar[Outcome | None] = None
    """The outcome of the torture that started last, to watch its progress."""

    def __init__(self, outcome: Outcome, seconds: float, cases: int | None = None) -> None:
        Budget.latest = outcome
        self._outcome = outcome
        self._cases = cases
        self._begin = time.monotonic()
        self._end = self._begin + seconds

    @property
    def is_spent(self) -> bool:
        """Whether the time is up or all cases were run."""
        self._outcome.seconds = time.monotonic() - self._begin
        enough = self._cases is not None and self._outcome.cases >= self._cases
        return enough or time.monotonic() >= self._end
