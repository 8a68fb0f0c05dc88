"""Limits on the time, rows, memory and threads of a query."""

import time
from dataclasses import dataclass, field

from coprlake.errors import QueryLimitError, UsageError


@dataclass(frozen=True)
class Limits:
    """The limits of a query; None for no limit.

    Attributes:
        seconds: the time from its start to its last row.
        rows: the number of rows in the result.
        memory_bytes: the memory that the engine may use, plus a quarter for records that are handed to it. A result
            that the caller collects in memory does not count.
        threads: the number of threads that the engine may use.
    """

    seconds: float | None = None
    rows: int | None = None
    memory_bytes: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "rows", "memory_bytes", "threads"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UsageError(f"the limit {name} is {value}; expected more than 0")


@dataclass
class Deadline:
    """The time by which a query must finish."""

    seconds: float | None
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float | None:
        """The seconds left; None for no limit."""
        return None if self.seconds is None else max(0.0, self.began + self.seconds - time.monotonic())

    def error(self) -> QueryLimitError:
        """The error for exceeding the deadline."""
        return QueryLimitError(
            f"the query took longer than {self.seconds:g} seconds and was stopped; narrow its time or filters, or "
            "raise the time limit"
        )

    def check(self) -> None:
        """Raise if no time is left."""
        if self.left == 0.0:
            raise self.error()
