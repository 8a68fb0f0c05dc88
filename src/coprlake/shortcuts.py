"""What people ask a table for most often, in one word."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import coprlake
from coprlake.errors import CoprlakeError
from coprlake.summary import Summarized

if TYPE_CHECKING:
    from coprlake.query.plain_search import TableFields
    from coprlake.query.planning import View
    from coprlake.query.searching import Search
    from coprlake.storage.ledger import Ledger
    from coprlake.storage.log.delta_log import DeltaLog
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

    @abstractmethod
    def _delta_log(self, what: str) -> "DeltaLog":
        """The log, to do something with it."""

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

    def ledger(self) -> "Ledger":
        """The files that were ingested, by their contents."""
        from coprlake.storage.ledger import Ledger

        return Ledger(self._delta_log("ingest"))

    def ingest(self, inputs: Any, **options: Any) -> "coprlake.IngestReport":
        """Read logs into the table: a file, folder or glob, a list of them, or an open file.

        >>> table = coprlake.create_table("logs")
        >>> table.ingest("app.log").row_count
        2
        >>> [row["content"] for row in table.search("refused", columns=["content"]).rows()]
        ['2026-11-16T03:55:01Z ERROR connection refused']

        Args:
            inputs: what to read.
            **options: as `coprlake.ingest` takes them: ``again=True``, ``source="web-1"``, ``format="csv"``.

        Returns:
            What was read (`read`, with counts and warnings) and what was written.
        """
        return coprlake.ingest(inputs, into=self, **options)
