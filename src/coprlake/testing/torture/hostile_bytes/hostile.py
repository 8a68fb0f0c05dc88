"""The common base of all kinds of hostile bytes: reproducible cases, and the files they start from."""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from coprlake.table import Table, create_table
from coprlake.testing.torture.hostile_bytes.mutating import Edit

WORDS: Final = ("error", "refused", "10.0.0.17", "user", "session", "käse", "timeout", "GET", "/index.html", "x=1")


@dataclass(frozen=True)
class Case:
    """Some bytes, edits to them, and a check of the result.

    Attributes:
        base: the name of the bytes.
        edits: all edits; a failure is retried with fewer.
        check: makes the edits and returns what is wrong, None if nothing is. A `CoprlakeError` is a right answer; any
            other exception is not.
    """

    base: str
    edits: Sequence[Edit]
    check: Callable[[Sequence[Edit]], str | None]


class Kind(ABC):
    """One kind of hostile bytes."""

    name: str
    weight: int
    """The approximate number of cases of this kind in a thousand."""

    @abstractmethod
    def prepare(self, folder: Path) -> None:
        """Write the files that cases start from; `folder` is empty and belongs to this kind."""

    @abstractmethod
    def case(self, chance: random.Random) -> Case:
        """Draw a case; the same for the same state of `chance`."""


def log_lines(seed: int, count: int) -> list[str]:
    """Log lines, mostly different."""
    chance = random.Random(seed)
    return [
        f"2026-11-18T01:{number // 60 % 60:02d}:{number % 60:02d}Z {chance.choice(('INFO', 'WARN', 'ERROR'))} "
        f"{' '.join(chance.choices(WORDS, k=3))} id={chance.randrange(1 << 32):08x} took {number} ms"
        for number in range(count)
    ]


def small_table(path: Path, seed: int, batches: int = 6, lines: int = 40) -> Table:
    """A table of a few segments, each with a few batches, one per source."""
    table = create_table(path, partition_by=None)
    for part in range(2):
        content = log_lines(seed + part, batches * lines)
        sources = [f"host-{number % batches}" for number in range(len(content))]
        table.append(pa.table({"content": content, "source": sources}))
    return table
