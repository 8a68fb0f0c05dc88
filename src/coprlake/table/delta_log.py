"""The table's log: which data files belong to it, by Delta's protocol, through delta-rs.

A commit is a compare-and-swap on the version: delta-rs's own conflict resolution let two transactions remove the
same file (measured with deltalake 1.6.6), which would double its records. So a commit here either finds its assumptions
still true at the newest version, or looks again, or gives up with a `ConflictError`.
"""

import json
import math
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction
from deltalake.transaction import Transaction as DeltaTransaction

from coprlake.errors import (
    ConflictError,
    CoprlakeError,
    DoneBeforeError,
    NotFoundError,
    StorageError,
    UnreadableTableError,
    UsageError,
)
from coprlake.files import Folder
from coprlake.segment.sealed import SegmentEntry
from coprlake.segment.sidecar import sidecar_name
from coprlake.table.actions import NewFile, entries_of
from coprlake.table.partitioning import log_text
from coprlake.table.protocol import FEATURE_VERSION, Change, Rules, check_change, unknown_features
from coprlake.table.segmenter import TableShape

READER_VERSION: Final = 3
READER_FEATURES: Final = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors"})
COMMIT_ATTEMPTS: Final = 30
NOTE: Final = "coprlake"
"""The key under which a commit says, in our words, what it was."""


class Transaction(NamedTuple):
    """A step of an application that must not be made twice; its versions ascend."""

    application: str
    version: int


class DeltaLog:
    """The log of one table at one version; `refresh` moves to the newest."""

    def __init__(self, table: DeltaTable, folder: Folder) -> None:
        self.folder = folder
        self._table = table
        self._checked_version = -1
        self._check_protocol()

    @classmethod
    def open(cls, folder: Folder) -> "DeltaLog":
        """The log of the table in this folder.

        Raises:
            NotFoundError: there is no Delta table.
            UnreadableTableError: its protocol is newer than what is understood here.
        """
        _check_name(folder)
        try:
            return cls(DeltaTable(folder.uri), folder)
        except TableNotFoundError as error:
            raise NotFoundError(f"{folder.uri}: {_why_no_table(folder)}") from error
        except DeltaProtocolError as error:
            raise _too_new(folder, _first_line(error)) from error
        except OSError as error:
            raise StorageError(f"{folder.uri}: the table's log cannot be read; {_first_line(error)}") from error
        except DeltaError as error:
            raise UnreadableTableError(
                folder.uri,
                section="_delta_log",
                expected="a log by Delta's protocol",
                found=_first_line(error),
                advice="check the files in that folder",
            ) from error

    @classmethod
    def create(
        cls, folder: Folder, schema: pa.Schema, partition_by: Sequence[str], configuration: dict[str, str]
    ) -> "DeltaLog":
        """A new, empty table.

        Raises:
            ConflictError: there is one already.
        """
        _check_name(folder)
        if folder.is_local:
            try:
                Path(folder.root).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StorageError(f"{folder.root}: the folder cannot be made; {error.strerror}") from error
        try:
            table = DeltaTable.create(
                folder.uri,
                Schema.from_arrow(schema),
                mode="error",
                partition_by=list(partition_by),
                configuration=configuration,
                raise_if_key_not_exists=False,
            )
        except DeltaError as error:
            if DeltaTable.is_deltatable(folder.uri):
                raise ConflictError(f"{folder.uri}: there is a table already; open it instead") from error
            raise StorageError(f"{folder.uri}: the table could not be made; {_first_line(error)}") from error
        return cls(table, folder)

    @property
    def version(self) -> int:
        """Counts commits."""
        return int(self._table.version())

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table, as Arrow has them."""
        return pa.schema(self._table.schema().to_arrow())

    @property
    def partition_by(self) -> list[str]:
        """The columns whose values are in the log and not in the files."""
        return list(self._table.metadata().partition_columns)

    @property
    def shape(self) -> TableShape:
        """What writers have to know."""
        return TableShape(self.folder.uri, self.schema, tuple(self.partition_by))

    @property
    def table_id(self) -> str:
        """A name that no other table has, and that stays when this one is moved."""
        return str(self._table.metadata().id)

    @property
    def configuration(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self._table.metadata().configuration)

    def refresh(self) -> bool:
        """Move to the newest version; whether there was one."""
        before = self.version
        try:
            self._table.update_incremental()
        except (DeltaError, OSError):  # versions in between were cleaned away, or the log is broken: opening will tell
            self._table = DeltaLog.open(self.folder)._table
        self._check_protocol()  # also when nothing is new: what was refused once is refused again
        return self.version != before

    def entries(self) -> list[SegmentEntry]:
        """All data files of this version, in the order of their names."""
        return entries_of(self._actions())

    def _actions(self) -> pa.Table:
        """The files as delta-rs tells of them; `pa.table` would import pandas for that."""
        return pa.RecordBatchReader.from_stream(self._table.get_add_actions()).read_all()

    def history(self) -> list[dict[str, Any]]:
        """What happened, newest first."""
        try:
            return list(self._table.history())
        except (DeltaError, OSError) as error:
            raise StorageError(f"{self.folder.uri}: the history cannot be read; {_first_line(error)}") from error

    def commit(
        self,
        add: Sequence[NewFile] = (),
        remove: Sequence[SegmentEntry] = (),
        *,
        note: dict[str, Any],
        data_change: bool = True,
        replace: bool = False,
        once: Transaction | None = None,
    ) -> int:
        """Add and remove files in one step; returns the new version.

        Args:
            add: files that are written and synced.
            remove: files that must still be in the table.
            note: what is done, for the history.
            data_change: False when the records stay the same.
            replace: remove whatever the table has, too.
            once: a transaction that the log must not have yet, and has then.

        Raises:
            ConflictError: somebody else removed one of `remove`, or changed the table again and again.
            DoneBeforeError: the transaction is in the log; nothing was changed.
        """
        for attempt in range(COMMIT_ATTEMPTS):
            self.refresh()
            self.check_writable("move" if not data_change else "delete" if remove or replace else "append")
            self._check_present(remove)
            self._check_written(add)
            self._check_first(once)
            version = self.version + 1  # what the swap demands
            going = self.entries() if replace else remove
            try:
                self._commit_once(add, going, note, data_change, once)
            except CommitFailedError:
                if not self._has_landed(add, going, once):
                    time.sleep(random.uniform(0, 0.01) * (attempt + 1))
                    continue
            except (DeltaError, OSError) as error:
                if not self._has_landed(add, going, once):
                    raise StorageError(f"{self.folder.uri}: the commit failed; {_first_line(error)}") from error
            return version
        raise ConflictError(
            f"{self.folder.uri}: others committed first, {COMMIT_ATTEMPTS} times in a row; nothing was changed, "
            "try again"
        )

    def discard(self, names: Sequence[str]) -> None:
        """Remove data files, and their sidecars, that were to join the table and did not.

        A commit may be in the log although whoever made it saw an error, or was interrupted. So the log is asked first,
        and if it cannot be asked the files stay: `vacuum` removes what nobody needs, nobody brings back what was lost.
        """
        try:
            present = DeltaLog.open(self.folder).names()
        except CoprlakeError:
            return
        for name in names:
            if name not in present:
                self.folder.remove(name)
                self.folder.remove(sidecar_name(name))

    def names(self) -> set[str]:
        """The data files of this version."""
        return {unquote(path) for path in self._actions().column("path").to_pylist()}

    def transaction_version(self, application: str) -> int | None:
        """The last transaction of an application, None if it never made one; `refresh` comes first."""
        return self._table.transaction_version(application)

    def _has_landed(
        self, add: Sequence[NewFile], remove: Sequence[SegmentEntry], once: Transaction | None = None
    ) -> bool:
        """Whether a commit that ended with an error is in the log nevertheless: the checkpoint after it may fail."""
        log = DeltaLog.open(self.folder)
        present = log.names()
        if add:
            return all(file.report.name in present for file in add)
        if once is not None and not remove:
            return log.transaction_version(once.application) == once.version
        return bool(remove) and all(entry.name not in present for entry in remove)

    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        """Give the table columns that it does not have; those that somebody else has added meanwhile are fine."""
        for attempt in range(COMMIT_ATTEMPTS):
            self.refresh()
            self.check_writable("columns")
            present = self.schema
            self._check_spelling(fields, present)
            missing = [field for field in fields if field.name not in present.names]
            known = [field for field in fields if field.name in present.names]
            other = [field for field in known if field.type != present.field(field.name).type]
            if other:
                raise ConflictError(
                    f"{self.folder.uri}: somebody else has added the column {other[0].name} with another type; "
                    "nothing was committed, try again"
                )
            if not missing:
                return
            try:
                self._table.alter.add_columns(Schema.from_arrow(pa.schema(missing)).fields)
                return
            except CommitFailedError:
                time.sleep(random.uniform(0, 0.01) * (attempt + 1))
            except OSError as error:
                raise StorageError(f"{self.folder.uri}: columns could not be added; {_first_line(error)}") from error
            except DeltaError as error:
                names = ", ".join(field.name for field in missing)
                raise UsageError(f"{self.folder.uri}: cannot add {names}; {_first_line(error)}") from error
        raise ConflictError(f"{self.folder.uri}: others changed the columns again and again; try again")

    def _check_spelling(self, fields: Sequence[pa.Field], present: pa.Schema) -> None:
        """Delta does not tell names by case."""
        spelt = {name.lower(): name for name in present.names}
        for field in fields:
            if spelt.get(field.name.lower(), field.name) != field.name:
                raise ConflictError(
                    f"{self.folder.uri}: somebody else has added the column {spelt[field.name.lower()]}, which is "
                    f"{field.name} to Delta; nothing was committed, try again"
                )

    def vacuum(self, retention_hours: float, *, dry_run: bool) -> list[str]:
        """Delete data files that no version of the last hours needs; returns their names."""
        hours = max(0, math.ceil(retention_hours))
        try:
            names = self._table.vacuum(hours, dry_run, enforce_retention_duration=False, full=True)
        except (DeltaError, OSError) as error:
            raise StorageError(f"{self.folder.uri}: old files could not be removed; {_first_line(error)}") from error
        return [unquote(name) for name in names]

    def _commit_once(
        self,
        add: Sequence[NewFile],
        remove: Sequence[SegmentEntry],
        note: dict[str, Any],
        data_change: bool,
        once: Transaction | None,
    ) -> None:
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [file.action(data_change=data_change) for file in add]
        for entry in remove:
            partition = {name: log_text(value) for name, value in entry.partition.items()}
            actions.append(RemoveAction(entry.name, data_change, now, entry.data_bytes, partition))
        self._table.create_write_transaction(
            actions,
            "append",
            self._table.schema(),
            self.partition_by,
            commit_properties=CommitProperties(
                custom_metadata={NOTE: json.dumps(note)},
                max_commit_retries=0,
                app_transactions=[] if once is None else [DeltaTransaction(once.application, once.version)],
            ),
        )

    def _check_first(self, once: Transaction | None) -> None:
        last = None if once is None else self.transaction_version(once.application)
        if once is not None and last is not None and last >= once.version:
            raise DoneBeforeError(
                f"{self.folder.uri}: transaction {once.version} of {once.application} is in the table already"
            )

    def _check_present(self, remove: Sequence[SegmentEntry]) -> None:
        if not remove:
            return
        names = self.names()
        gone = [entry.name for entry in remove if entry.name not in names]
        if gone:
            raise ConflictError(
                f"{self.folder.uri}: {gone[0]} was removed by somebody else meanwhile; nothing was changed, try again"
            )

    def _check_written(self, add: Sequence[NewFile]) -> None:
        for file in add:
            entry = self.folder.entry(file.report.name)
            if entry is None or entry.size_bytes != file.report.data_bytes:
                raise ConflictError(
                    f"{self.folder.uri}: {file.report.name} was removed before it could be committed, perhaps by "
                    "a vacuum; nothing was committed"
                )

    def _check_protocol(self) -> None:
        if self._checked_version == self.version:
            return
        protocol = self._table.protocol()
        features = set(protocol.reader_features or ()) - READER_FEATURES
        if protocol.min_reader_version > READER_VERSION or features:
            found = f"reader version {protocol.min_reader_version} {', '.join(sorted(features))}".strip()
            raise _too_new(self.folder, found)
        if "columnMapping" in (protocol.writer_features or ()) or "delta.columnMapping.mode" in self.configuration:
            raise _too_new(self.folder, "columns that are mapped to other names")
        if "deletionVectors" in (protocol.reader_features or ()) and self._has_deletion_vectors():
            raise _too_new(self.folder, "deletion vectors: run REORG TABLE ... APPLY (PURGE) in Spark first")
        self._checked_version = self.version

    def _has_deletion_vectors(self) -> bool:
        return bool(pa.RecordBatchReader.from_stream(self._table.deletion_vectors()).read_all().num_rows)

    def check_writable(self, change: Change) -> None:
        """Refuse a change that the table's protocol or one of its rules forbids; see `protocol`.

        Raises:
            UnreadableTableError: a writer must understand something that is not understood here.
            UsageError: a rule of the table forbids it, or cannot be kept here.
        """
        protocol = self._table.protocol()
        features = protocol.writer_features or ()
        rules = Rules(protocol.min_writer_version, features, self.configuration, self._table.schema().to_json())
        unknown = unknown_features(rules)
        if unknown:
            raise _too_new(self.folder, f"writer features {', '.join(unknown)}")
        check_change(self.folder.uri, rules, change)


def _check_name(folder: Folder) -> None:
    if folder.is_local and "%" in folder.root:  # delta-rs 1.6 decodes it once or twice, and looks elsewhere
        raise UsageError(f"{folder.root}: a table's path must not have a percent sign; choose another folder")
    if folder.is_local and "\\" in folder.root:  # which delta-rs takes for a slash, and looks elsewhere
        raise UsageError(f"{folder.root}: a table's path must not have a backslash; choose another folder")


def _why_no_table(folder: Folder) -> str:
    if not folder.exists():
        return "no such folder; `coprlake ingest FILES --into TABLE` makes a table"
    return "this folder holds no table (no _delta_log in it); check the path"


def _too_new(folder: Folder, found: str) -> UnreadableTableError:
    return UnreadableTableError(
        folder.uri,
        section="protocol",
        expected=f"Delta reader version {READER_VERSION} and writer version {FEATURE_VERSION} at most",
        found=found,
        advice="upgrade coprlake, or read the table with the engine that wrote it",
    )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
