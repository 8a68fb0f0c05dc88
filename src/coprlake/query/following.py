"""Follows a table: the matches among the records that each new commit adds."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable

from coprlake.errors import CoprlakeError
from coprlake.query.planning import View
from coprlake.query.searching import Search
from coprlake.segment.sealed import SegmentEntry
from coprlake.storage.log.added_files import added_files
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.storage.log.refusals import log_read_errors
from coprlake.storage.snapshot import Snapshot, open_segments

PAUSE_SECONDS: Final = 0.2
"""How often to look for new commits."""


class Following:
    """The matches of a search in the records that are there, and then in those that each commit adds.

    Every commit is read by itself, from the log: what `optimize` and `delete` write again is not new, and records are
    found even if `optimize` has merged their file by the time that we look.

    Args:
        log: the log of the table, used by nobody else.
        search: what to look for.

    Attributes:
        version: the last version whose records were given out.
        problems: what could not be read.
    """

    def __init__(self, log: DeltaLog, search: Search) -> None:
        self._log = log
        self._search = search
        self.version = log.version
        self.problems: list[str] = []

    def last(self, count: int) -> Iterator[pa.RecordBatch]:
        """The newest matches of the version at which this began, the oldest of them first."""
        if count == 0:
            return
        search = self._search.on(self._view(self._log, self._log.entries()), order="newest", limit=count)
        found = list(search)
        self.problems += search.report.problems
        for batch in reversed(found):
            yield batch.take(pa.array(range(batch.num_rows - 1, -1, -1), pa.int64()))

    def new(self) -> Iterator[pa.RecordBatch]:
        """The matches in what was committed since the last call, commit by commit, the oldest first."""
        self._log.refresh()
        for version in range(self.version + 1, self._log.version + 1):
            try:
                names = added_files(self._log.folder, version)
                if names:
                    yield from self._matches(version, names)
            except CoprlakeError as error:
                self.problems.append(str(error))
            self.version = version

    def _matches(self, version: int, names: frozenset[str]) -> Iterator[pa.RecordBatch]:
        with log_read_errors(self._log.folder):
            log = DeltaLog(DeltaTable(self._log.folder.uri, version=version), self._log.folder)
        view = self._view(log, [entry for entry in log.entries() if entry.name in names])
        search = self._search.on(view, order="oldest", limit=None)
        yield from search
        self.problems += search.report.problems

    def _view(self, log: DeltaLog, entries: list[SegmentEntry]) -> View:
        schema = log.schema
        return View(Snapshot(open_segments(log.folder, entries, schema, {}), schema, log.partition_by, log.version))
