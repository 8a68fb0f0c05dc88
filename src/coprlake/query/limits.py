"""What a query may take."""

import time
from dataclasses import dataclass, field

from coprlake.errors import QueryLimitError, UsageError


@dataclass(frozen=True)
class Limits:
    """The limits of a query; None for no limit.

    Attributes:
        seconds: from its start to its last row.
        rows: of the result.
        memory_bytes: that the engine may use, and a quarter more for records that are handed to it. A result that is
            collected in memory is the caller's.
        threads: that the engine may use.
    """

    seconds: float | None = None
    rows: int | None = None
    memory_bytes: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "rows", "memory_bytes", "threads"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UsageError(f"the limit of {name} is {value}; expected more than 0")


@dataclass
class Deadline:
    """The time until which a query has to be done."""

    seconds: float | None
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float | None:
        """Seconds that are left; None for ever."""
        return None if self.seconds is None else max(0.0, self.began + self.seconds - time.monotonic())

    def error(self) -> QueryLimitError:
        """What to say when it is over."""
        return QueryLimitError(
            f"the query took longer than {self.seconds:g} seconds and was stopped; narrow its time or filters, or "
            "raise the limit of time"
        )

    def check(self) -> None:
        """Stop if it is over."""
        if self.left == 0.0:
            raise self.error()
