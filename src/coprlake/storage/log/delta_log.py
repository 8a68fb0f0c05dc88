"""The table's log: which data files belong to it, by Delta's protocol, through delta-rs.

A commit is a compare-and-swap on the version: delta-rs's own conflict resolution let two transactions remove the
same file (measured with deltalake 1.6.6), which would double its records. So a commit here either finds its assumptions
still true at the newest version, or looks again, or gives up with a `ConflictError`.

On this machine a commit is on disk before it has its name, and its name is on disk before `commit` returns: delta-rs
syncs nothing, so a loss of power could empty what had been acknowledged. An object store does the same by itself.
"""

import json
import math
import random
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    OvertakenError,
    StorageError,
    UnreadableTableError,
    UsageError,
)
from coprlake.files import Folder
from coprlake.segment.sealed import SegmentEntry
from coprlake.segment.sidecar import sidecar_name
from coprlake.storage.log import turns
from coprlake.storage.log.actions import NewFile, check_written, entries_of, name_of
from coprlake.storage.log.checkpointing import checkpoint_interval, write_checkpoint
from coprlake.storage.log.commits import (
    IDENTITY,
    NOTE,
    add_line,
    columns_commit,
    data_commit,
    path_text,
    remove_line,
    transaction_line,
)
from coprlake.storage.log.creating import create_log
from coprlake.storage.log.layouts import NewLayout, check_layout, layout_line
from coprlake.storage.log.log_checking import (
    check_whole,
    commit_damage,
    damaged_commit,
    damaged_commits,
    is_named,
    log_problems,
    may_be_condensed,
)
from coprlake.storage.log.panics import panics_refused
from coprlake.storage.log.permitting import check_readable, check_writable
from coprlake.storage.log.protocol import Change
from coprlake.storage.log.publishing import CommitPublisher
from coprlake.storage.log.refusals import (
    cause_of,
    check_name,
    check_spelling,
    log_read_errors,
    too_new,
    why_no_table,
)
from coprlake.storage.partitioning import log_text

if TYPE_CHECKING:
    from coprlake.storage.segmenter import TableShape

COMMIT_ATTEMPTS: Final = 30


class Transaction(NamedTuple):
    """A step of an application that must not be made twice; its versions ascend. If given, `after` was the last one."""

    application: str
    version: int
    after: int | None = None


class _Attempt(NamedTuple):
    """A commit that may be in the log: what it does, its id, and the first version that it may have."""

    what: tuple[Any, ...]
    identity: str
    since: int


class DeltaLog:
    """The log of one table at one version; `refresh` moves to the newest."""

    def __init__(self, table: DeltaTable, folder: Folder) -> None:
        self.folder = folder
        self._table = table
        self._checked_version = -1
        self._publisher = CommitPublisher(folder)
        self._attempt: _Attempt | None = None
        self._spelling: tuple[int, dict[str, str]] = (-1, {})
        self._damaged_commits = damaged_commits(folder) if folder.is_local else {}
        self._check_protocol()

    @classmethod
    def open(cls, folder: Folder) -> "DeltaLog":
        """The log of the table in this folder.

        Raises:
            NotFoundError: there is no Delta table.
            UnreadableTableError: its protocol is newer than what is understood here.
        """
        check_name(folder)
        try:
            with panics_refused(folder.uri):
                return cls(DeltaTable(folder.uri), folder)
        except TableNotFoundError as error:
            raise NotFoundError(f"{folder.uri}: {why_no_table(folder)}") from error
        except DeltaProtocolError as error:
            raise too_new(folder, cause_of(error)) from error
        except OSError as error:
            raise StorageError(f"{folder.uri}: the table's log cannot be read; {cause_of(error)}") from error
        except DeltaError as error:
            for problem in _problems_of(folder):
                raise problem from error
            raise UnreadableTableError(
                folder.uri,
                section="_delta_log",
                expected="a log by Delta's protocol",
                found=cause_of(error),
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
        create_log(folder, schema, partition_by, configuration)
        return cls.open(folder)

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
    def shape(self) -> "TableShape":
        """What writers have to know."""
        from coprlake.storage.segmenter import TableShape

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
        """Move to the newest version; whether there was one, or a damaged commit was mended."""
        before = self.version
        try:
            with panics_refused(self.folder.uri):
                self._table.update_incremental()
        except (DeltaError, OSError, UnreadableTableError):
            # versions in between were cleaned away, or the log is broken: opening will tell
            self._table = DeltaLog.open(self.folder)._table
        self._check_protocol()  # also when nothing is new: what was refused once is refused again
        if self.folder.is_local and (self._damaged_commits or self.version != before):
            known = {number: commit_damage(self.folder, number) for number in self._damaged_commits}
            mended = None in known.values()
            if mended:  # delta-rs does not read a version again
                self._table, self._spelling = DeltaLog.open(self.folder)._table, (-1, {})
            new = damaged_commits(self.folder, range(before + 1, self.version + 1))
            self._damaged_commits = {number: what for number, what in known.items() if what} | new
            return mended or self.version != before
        return self.version != before

    def missing(self) -> list[UnreadableTableError]:
        """Commits of this version that are empty or cut short: records may be missing; `refresh` comes first."""
        return [damaged_commit(self.folder, number, what) for number, what in self._damaged_commits.items()]

    def problems(self) -> list[UnreadableTableError]:
        """All that is wrong with the files of the log; it reads them."""
        return _problems_of(self.folder)

    def entries(self) -> list[SegmentEntry]:
        """All data files of this version, in the order of their names."""
        return entries_of(self._actions())

    def _actions(self) -> pa.Table:
        """The files as delta-rs tells of them; `pa.table` would import pandas for that."""
        with log_read_errors(self.folder):
            return pa.RecordBatchReader.from_stream(self._table.get_add_actions()).read_all()

    def history(self) -> list[dict[str, Any]]:
        """What happened, newest first."""
        with log_read_errors(self.folder):
            return list(self._table.history())

    def commit(
        self,
        add: Sequence[NewFile] = (),
        remove: Sequence[SegmentEntry] = (),
        *,
        note: dict[str, Any],
        data_change: bool = True,
        replace: bool = False,
        once: Transaction | None = None,
        layout: NewLayout | None = None,
    ) -> int:
        """Add and remove files in one step; returns the new version.

        Args:
            add: files that are written and synced.
            remove: files that must still be in the table.
            note: what is done, for the history.
            data_change: False when the records stay the same.
            replace: remove whatever the table has, too.
            once: a transaction that the log must not have yet, and has then.
            layout: other partition columns, those of `add`; all files of the table must be in `remove`.

        Raises:
            ConflictError: somebody else removed one of `remove`, changed the layout, or changed the table again and
                again.
            DoneBeforeError: the transaction is in the log; nothing was changed.
        """
        self.refresh()
        what = (tuple(file.report.name for file in add), tuple(entry.name for entry in remove), replace, once)
        if self._attempt is None or self._attempt.what != what:
            self._attempt = _Attempt(what, uuid.uuid4().hex, self.version + 1)
        else:
            landed = self._publisher.find(self._attempt.identity, self._attempt.since)
            if landed is not None:  # it had failed, but not for the log
                return self._done(landed)
        for turn in range(COMMIT_ATTEMPTS):
            if turn:
                self.refresh()
            self.check_writable("move" if not data_change else "delete" if remove or replace else "append")
            self._check_first(once)
            check_layout(self.folder, add, self.partition_by, layout)
            self._check_present(remove, all_of_them=layout is not None)
            version = self.version + 1  # what the swap demands
            going = self.entries() if replace else remove
            try:
                with turns.held(self.folder, alone=False):
                    check_written(self.folder, add)
                    swapped = self._commit_once(add, going, note, data_change, once, layout)
            except (DeltaError, OSError) as error:
                landed = self._publisher.find(self._attempt.identity, self._attempt.since)
                if landed is not None:
                    return self._done(landed)
                if not isinstance(error, CommitFailedError):
                    raise self._failed("the commit failed", error) from error
                swapped = False
            if swapped:
                return self._done(version)
            time.sleep(random.uniform(0, 0.01) * (turn + 1))
        raise ConflictError(
            f"{self.folder.uri}: others committed first, {COMMIT_ATTEMPTS} times in a row; nothing was changed, "
            "try again"
        )

    def _failed(self, what: str, error: Exception) -> StorageError:
        failed = StorageError(f"{self.folder.uri}: {what}; {cause_of(error)}")
        return error if isinstance(error, StorageError) else failed

    def _done(self, version: int) -> int:
        """Return when the commit of this version will survive a loss of power."""
        self._publisher.confirm(version)
        self._attempt = None
        self._checkpoint_if_due(version)
        return version

    def sync_to(self, version: int) -> None:
        """See that the commits up to this version, whoever made them, are on disk."""
        self._publisher.sync_to(version)

    def _checkpoint_if_due(self, version: int) -> None:
        """Every so often, make a checkpoint and clean away old commits. It saves time; an error costs nothing else.

        Not while a commit is damaged: the checkpoint would hide the loss, and the commit could not be restored.
        """
        configuration = self.configuration
        if not self.folder.is_local or (version + 1) % checkpoint_interval(configuration):
            return  # in an object store, delta-rs has done it
        with suppress(DeltaError, OSError, CoprlakeError), panics_refused(self.folder.uri):
            if not may_be_condensed(self.folder):
                return
            write_checkpoint(self.folder, version)
            if configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "true":
                self.refresh()
                if not damaged_commits(self.folder):  # or nothing would tell of them any more
                    self._table.cleanup_metadata()

    def discard(self, names: Sequence[str]) -> None:
        """Remove data files, and their sidecars, that were to join the table and did not.

        A commit may be in the log although whoever made it saw an error, or was interrupted. So the log is asked first,
        and if it cannot be asked the files stay: `vacuum` removes what nobody needs, nobody brings back what was lost.
        In an object store a commit may even arrive later than its error: there all of them are left to `vacuum`.
        """
        if not self.folder.is_local:
            return
        with suppress(CoprlakeError):
            log = DeltaLog.open(self.folder)
            present = log.names()
            if log.missing():
                return
            for name in names:
                if name not in present and not is_named(self.folder, name, log.version):
                    self.folder.remove(name)
                    self.folder.remove(sidecar_name(name))

    def names(self) -> set[str]:
        """The data files of this version."""
        return set(self._spelled())

    def _spelled(self) -> dict[str, str]:
        """The path of each data file as the log spells it; to remove a file, it has to be spelled the same."""
        if self._spelling[0] != self.version:
            paths = self._actions().column("path").to_pylist()
            self._spelling = self.version, {name_of(path): path for path in paths}
        return self._spelling[1]

    def transaction_version(self, application: str) -> int | None:
        """The last transaction of an application, None if it never made one; `refresh` comes first."""
        with log_read_errors(self.folder):
            return self._table.transaction_version(application)

    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        """Give the table columns that it does not have; those that somebody else has added meanwhile are fine."""
        for attempt in range(COMMIT_ATTEMPTS):
            self.refresh()
            self.check_writable("columns")
            present = self.schema
            check_spelling(self.folder, fields, present)
            missing = [field for field in fields if field.name not in present.names]
            known = [field for field in fields if field.name in present.names]
            other = [field for field in known if field.type != present.field(field.name).type]
            if other:
                raise ConflictError(
                    f"{self.folder.uri}: somebody else has added the column {other[0].name} with another type; "
                    "nothing was committed, try again"
                )
            if not missing:
                self.sync_to(self.version)
                return
            try:
                if self._add_once(pa.schema(missing)):
                    return
            except CommitFailedError:
                pass
            except OSError as error:
                raise self._failed("columns could not be added", error) from error
            except DeltaError as error:
                names = ", ".join(field.name for field in missing)
                raise UsageError(f"{self.folder.uri}: cannot add {names}; {cause_of(error)}") from error
            time.sleep(random.uniform(0, 0.01) * (attempt + 1))
        raise ConflictError(f"{self.folder.uri}: others changed the columns again and again; try again")

    def _add_once(self, fields: pa.Schema) -> bool:
        """Whether the columns were added; somebody else may have been first."""
        if not self.folder.is_local:
            self._table.alter.add_columns(Schema.from_arrow(fields).fields)
            return True
        version = self.version + 1
        if not self._publisher.swap(version, columns_commit(self._table, fields, uuid.uuid4().hex)):
            return False
        self._publisher.confirm(version)
        self._checkpoint_if_due(version)
        return True

    def vacuum(self, retention_hours: float, *, dry_run: bool) -> list[str]:
        """Delete data files that no version of the last hours needs; returns their names."""
        check_whole(self.folder)
        hours = max(0, math.ceil(retention_hours))
        local = self.folder.is_local  # delta-rs follows symbolic links, and deletes whatever it finds behind them
        try:
            names = list(self._table.vacuum(hours, dry_run or local, enforce_retention_duration=False, full=True))
        except (DeltaError, OSError) as error:
            raise StorageError(f"{self.folder.uri}: old files could not be removed; {cause_of(error)}") from error
        if not local:
            return names
        with turns.held(self.folder, alone=True):
            self.refresh()  # somebody may have committed a file since it was found that no version has it
            present = self.names()
            names = [name for name in names if name not in present and self.folder.holds(name)]
            if not dry_run:
                self.sync_to(self.version)  # or a loss of power could bring back the version that needs them
                for name in names:
                    self.folder.remove(name)
        if not dry_run:
            for one in {name.rpartition("/")[0]: name for name in names}.values():
                with suppress(CoprlakeError):  # what comes back is removed the next time
                    self.folder.sync_names(one)
        return names

    def _commit_once(
        self,
        add: Sequence[NewFile],
        remove: Sequence[SegmentEntry],
        note: dict[str, Any],
        data_change: bool,
        once: Transaction | None,
        layout: NewLayout | None,
    ) -> bool:
        """Try to make the next version; whether it was made, where an error does not tell."""
        assert self._attempt is not None
        now = int(time.time() * 1000)
        adding = [file.action(data_change=data_change) for file in add]
        partitions = [{name: log_text(value) for name, value in entry.partition.items()} for entry in remove]
        if self.folder.is_local:
            spelled = self._spelled() if remove else {}
            lines = [] if once is None else [transaction_line(once.application, once.version)]
            lines += [] if layout is None else [layout_line(self._table, layout)]
            lines += [add_line(action) for action in adding]
            for entry, partition in zip(remove, partitions, strict=True):
                path = spelled.get(entry.name) or path_text(entry.name)
                lines.append(remove_line(path, entry.data_bytes, partition, moment=now, data_change=data_change))
            data = data_commit(
                lines, note, self._attempt.identity, layout.partition_by if layout else self.partition_by
            )
            return self._publisher.swap(self.version + 1, data)
        assert layout is None  # a local table only
        actions: list[AddAction | RemoveAction] = [*adding]
        for entry, partition in zip(remove, partitions, strict=True):
            actions.append(RemoveAction(entry.name, data_change, now, entry.data_bytes, partition))
        self._table.create_write_transaction(
            actions,
            "append",
            self._table.schema(),
            self.partition_by,
            commit_properties=CommitProperties(
                custom_metadata={NOTE: json.dumps(note), IDENTITY: self._attempt.identity},
                max_commit_retries=0,
                app_transactions=[] if once is None else [DeltaTransaction(once.application, once.version)],
            ),
        )
        return True

    def _check_first(self, once: Transaction | None) -> None:
        last = 0 if once is None else self.transaction_version(once.application)
        if once and once.after is not None and (last or 0) != once.after:
            raise OvertakenError(f"{self.folder.uri}: another transaction of {once.application} was first")
        if once and last is not None and last >= once.version:
            self.sync_to(self.version)  # whoever made it may have died before it was on disk
            raise DoneBeforeError(
                f"{self.folder.uri}: transaction {once.version} of {once.application} is in the table already"
            )

    def _check_present(self, remove: Sequence[SegmentEntry], *, all_of_them: bool) -> None:
        names = self.names() if remove or all_of_them else set()
        gone = [entry.name for entry in remove if entry.name not in names]
        if all_of_them and len(names) != len(remove):
            raise ConflictError(f"{self.folder.uri}: others added or removed files meanwhile; try again")
        if gone:
            raise ConflictError(
                f"{self.folder.uri}: {gone[0]} was removed by somebody else meanwhile; nothing was changed, try again"
            )

    def _check_protocol(self) -> None:
        if self._checked_version != self.version:
            check_readable(self._table, self.folder)
            self._checked_version = self.version

    def check_writable(self, change: Change) -> None:
        """Refuse a change that the table's protocol or one of its rules forbids; see `permitting`."""
        check_writable(self._table, self.folder, change)


def _problems_of(folder: Folder) -> list[UnreadableTableError]:
    with log_read_errors(folder):
        return log_problems(folder)
