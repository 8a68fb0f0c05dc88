"""What every store can do (paper 5): take lines with their source, be finished, and find lines.

A term is a whole term and a substring stands anywhere, both whatever the case of ASCII letters, exactly as
`coprlake.predicate.predicates.Term` and `Contains` say; stores find candidates in their own way, and the lines they
return are those that match. The order of use: `ingest` as often as needed, `finish_index`, `finish_data`, then
`sizes`, `files` and `reader`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from coprlake.config import BATCH_BYTES, MEMORY_LIMIT_BYTES


@dataclass(frozen=True)
class Setting:
    """What stores are told before they begin.

    Attributes:
        folder: an empty folder of their own.
        batch_bytes: raw text of a batch, for stores that have batches.
        memory_bytes: what an index may use before it writes to disk (paper 5.1.1).
        copr_index_bytes: how large COPR's index of the same lines is; CSC is sized by it.
    """

    folder: Path
    batch_bytes: int = BATCH_BYTES
    memory_bytes: int = MEMORY_LIMIT_BYTES
    copr_index_bytes: int | None = None


@dataclass(frozen=True)
class Sizes:
    """Bytes on disk. A store that cannot tell its index from its data has an index of 0."""

    data: int
    index: int


@dataclass(frozen=True)
class Answer:
    """What a query found.

    Attributes:
        lines: the matching lines, in any order.
        batches: how many batches the store has; 0 for one without batches.
        opened: how many of them were decompressed.
        matching: how many of them held a matching line.
    """

    lines: pa.Array
    batches: int = 0
    opened: int = 0
    matching: int = 0

    @property
    def error_rate(self) -> float:
        """Batches opened for nothing, as a part of all (paper 5.2)."""
        return (self.opened - self.matching) / self.batches if self.batches else 0.0


class Reader(ABC):
    """A store opened for queries."""

    @abstractmethod
    def term(self, text: str) -> Answer:
        """The lines that have the text as a whole term."""

    @abstractmethod
    def contains(self, text: str) -> Answer:
        """The lines that have the text anywhere."""

    def close(self) -> None:
        """Let go of files and memory."""
        return


class Store(ABC):
    """A store of lines, written once."""

    name: ClassVar[str]
    """A short word, for files and columns."""
    title: ClassVar[str]
    """As tables and figures call it."""
    settings: ClassVar[str]
    """How it is set up, and where its documentation recommends that: for the report."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.folder = setting.folder

    @classmethod
    def missing(cls) -> str | None:
        """Why this machine cannot run it; None if it can."""
        return None

    @abstractmethod
    def ingest(self, content: pa.Array, source: pa.Array) -> None:
        """Take lines, as they arrive: of all sources mixed. Both are arrays of `pa.string`, of some thousand lines."""

    @abstractmethod
    def finish_index(self) -> None:
        """Build the final index, and have it on disk."""

    @abstractmethod
    def finish_data(self) -> None:
        """Write what lines are still in memory, and have all data on disk."""

    @abstractmethod
    def sizes(self) -> Sizes:
        """What it takes on disk."""

    @abstractmethod
    def reader(self) -> Reader:
        """Open it; what this costs is a part of a cold query."""

    def files(self) -> list[Path]:
        """All files, to drop them from the page cache."""
        return [path for path in self.folder.rglob("*") if path.is_file()]

    def close(self) -> None:
        """Let go of everything; after the last query."""
        return
