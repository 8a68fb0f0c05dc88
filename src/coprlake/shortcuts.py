"""What people ask a table for most often, in one word."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coprlake.errors import CoprlakeError
from coprlake.summary import Summarized

if TYPE_CHECKING:
    from coprlake.query.plain_search import TableFields
    from coprlake.query.planning import View
    from coprlake.query.searching import Search
    from coprlake.storage.snapshot import Snapshot


class Shortcuts(Summarized, ABC):
    """A base of `coprlake.table.Table`: calls that only combine others of it."""

    @property
    @abstractmethod
    def uri(self) -> str:
        """Where the table is."""

    @abstractmethod
    def snapshot(self) -> "Snapshot":
        """The segments of the newest version."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns, with their types."""

    @abstractmethod
    def search(self) -> "Search":
        """All records."""

    def _facts(self) -> Mapping[str, Any]:
        return self._known("known_facts")

    def _details(self) -> Mapping[str, Any]:
        return self._known("known_details")

    def _known(self, what: str) -> Mapping[str, Any]:
        """Facts of the newest version; only the place if it cannot be read any more, because a repr must not fail."""
        from coprlake.storage import information

        try:
            found: Mapping[str, Any] = getattr(information, what)(self.uri, self.snapshot())
        except CoprlakeError:
            return {"uri": self.uri}
        return found

    @property
    def version(self) -> int:
        """The newest version."""
        return self.snapshot().version

    @property
    def columns(self) -> list[str]:
        """The names of the columns; `schema` also has their types."""
        return list(self.schema.names)

    @abstractmethod
    def _view(self) -> "View":
        """One moment of the table."""

    def fields(self) -> "TableFields":
        """The fields that a search can name: the columns, and the keys of attributes that occur."""
        from coprlake.query.plain_search import fields_of

        return fields_of(self._view())

    def count(self) -> int:
        """The number of records; `search(...).count()` counts those that match."""
        return self.search().count()
