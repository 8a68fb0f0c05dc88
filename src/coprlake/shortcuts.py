"""What people ask a table for most often, in one word."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import pyarrow as pa

from coprlake.summary import Summarized

if TYPE_CHECKING:
    from coprlake.query.searching import Search


class Shortcuts(Summarized, ABC):
    """A base of `coprlake.table.Table`: calls that only combine others of it."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns, with their types."""

    @abstractmethod
    def search(self) -> "Search":
        """All records."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns; `schema` also has their types."""
        return list(self.schema.names)

    def count(self) -> int:
        """The number of records; `search(...).count()` counts those that match."""
        return self.search().count()
