"""The table's log: which data files belong to it, by Delta's protocol, through delta-rs.

A commit is a compare-and-swap on the version: delta-rs's own conflict resolution let two transactions remove the
same file (measured with deltalake 1.6.6), which would double its records. So a commit here either finds its assumptions
still true at the newest version, or looks again, or gives up with a `ConflictError`.

On this machine a commit is on disk before it has its name, and its name is on disk before `commit` returns: delta-rs
syncs nothing, so a loss of power could empty what had been acknowledged. An object store does the same by itself.
"""

import fcntl
import json
import math
import os
import random
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
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
from coprlake.files import Folder, storage_error
from coprlake.segment.sealed import SegmentEntry
from coprlake.segment.sidecar import sidecar_name
from coprlake.table.log import features
from coprlake.table.log.actions import NewFile, entries_of
from coprlake.table.log.checkpointing import POINTER, write_checkpoint
from coprlake.table.log.commits import (
    IDENTITY,
    LOG,
    NOTE,
    add_line,
    columns_commit,
    commit_name,
    create_commit,
    data_commit,
    path_text,
    remove_line,
    transaction_line,
)
from coprlake.table.log.log_checking import empty_commit, empty_commits, log_problems
from coprlake.table.log.panics import panics_refused
from coprlake.table.log.protocol import FEATURE_VERSION, Change, Rules, check_change, unknown_features
from coprlake.table.log.publishing import CommitPublisher
from coprlake.table.partitioning import log_text
from coprlake.table.segmenter import TableShape

READER_VERSION: Final = 3
READER_FEATURES: Final = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors"})
COMMIT_ATTEMPTS: Final = 30
CHECKPOINT_INTERVAL: Final = 100
"""Commits from one checkpoint to the next, unless the table says otherwise; as in delta-rs."""
_COLOR: Final = re.compile(r"\x1b\[[0-9;]*m")
_CAUSE: Final = "\N{DOWNWARDS ARROW WITH TIP RIGHTWARDS}"


class Transaction(NamedTuple):
    """A step of an application that must not be made twice; its versions ascend."""

    application: str
    version: int


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
        self._empty_commits = empty_commits(folder) if folder.is_local else []
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
            with panics_refused(folder.uri):
                return cls(DeltaTable(folder.uri), folder)
        except TableNotFoundError as error:
            raise NotFoundError(f"{folder.uri}: {_why_no_table(folder)}") from error
        except DeltaProtocolError as error:
            raise _too_new(folder, _first_line(error)) from error
        except OSError as error:
            raise StorageError(f"{folder.uri}: the table's log cannot be read; {_first_line(error)}") from error
        except DeltaError as error:
            for problem in _problems_of(folder):
                raise problem from error
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
        try:
            if folder.is_local:
                return cls._create_here(folder, schema, partition_by, configuration)
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
                raise _is_there(folder) from error
            raise StorageError(f"{folder.uri}: the table could not be made; {_first_line(error)}") from error
        return cls(table, folder)

    @classmethod
    def _create_here(
        cls, folder: Folder, schema: pa.Schema, partition_by: Sequence[str], configuration: dict[str, str]
    ) -> "DeltaLog":
        try:
            folder.make()
        except (OSError, CoprlakeError) as error:
            reason = getattr(error.__cause__, "strerror", None) or _first_line(error)
            raise StorageError(f"{folder.root}: the folder cannot be made; {reason}") from error
        if DeltaTable.is_deltatable(folder.uri):
            raise _is_there(folder)
        data = create_commit(folder.root, schema, partition_by, configuration, uuid.uuid4().hex)
        try:
            Path(folder.path(LOG)).mkdir(exist_ok=True)
        except OSError as error:
            raise StorageError(f"{folder.path(LOG)}: the folder cannot be made; {error.strerror}") from error
        if not folder.place(commit_name(0), data):
            raise _is_there(folder)
        folder.sync_names(commit_name(0))
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
            with panics_refused(self.folder.uri):
                self._table.update_incremental()
        except (DeltaError, OSError, UnreadableTableError):
            # versions in between were cleaned away, or the log is broken: opening will tell
            self._table = DeltaLog.open(self.folder)._table
        self._check_protocol()  # also when nothing is new: what was refused once is refused again
        if self.folder.is_local and (self._empty_commits or self.version != before):
            looked_at = [*self._empty_commits, *range(before + 1, self.version + 1)]
            self._empty_commits = empty_commits(self.folder, looked_at)
        return self.version != before

    def missing(self) -> list[UnreadableTableError]:
        """Commits of this version that are empty, so that records may be missing; `refresh` comes first."""
        return [empty_commit(self.folder, number) for number in self._empty_commits]

    def problems(self) -> list[UnreadableTableError]:
        """All that is wrong with the files of the log; it reads them."""
        return _problems_of(self.folder)

    def entries(self) -> list[SegmentEntry]:
        """All data files of this version, in the order of their names."""
        return entries_of(self._actions())

    def _actions(self) -> pa.Table:
        """The files as delta-rs tells of them; `pa.table` would import pandas for that."""
        with self._reading():
            return pa.RecordBatchReader.from_stream(self._table.get_add_actions()).read_all()

    def history(self) -> list[dict[str, Any]]:
        """What happened, newest first."""
        with self._reading():
            return list(self._table.history())

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """What delta-rs says when it cannot read the log, as an error of ours."""
        try:
            with panics_refused(self.folder.uri):
                yield
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise StorageError(f"{self.folder.uri}: the table's log cannot be read; {_first_line(error)}") from error

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
            self._check_present(remove)
            self._check_first(once)
            version = self.version + 1  # what the swap demands
            going = self.entries() if replace else remove
            try:
                with self._held(alone=False):
                    self._check_written(add)
                    swapped = self._commit_once(add, going, note, data_change, once)
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
        if isinstance(error, StorageError):
            return error
        return StorageError(f"{self.folder.uri}: {what}; {_first_line(error)}")

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
        """Every so often, make a checkpoint and clean away old commits. It saves time; an error costs nothing else."""
        if not self.folder.is_local:
            return  # delta-rs has done it
        configuration = self.configuration
        try:
            interval = int(configuration.get("delta.checkpointInterval", CHECKPOINT_INTERVAL))
        except ValueError:
            interval = CHECKPOINT_INTERVAL
        if interval < 1 or (version + 1) % interval:
            return
        with suppress(DeltaError, OSError, CoprlakeError):
            write_checkpoint(self.folder, version)
            if configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "true":
                self.refresh()
                self._table.cleanup_metadata()

    def discard(self, names: Sequence[str]) -> None:
        """Remove data files, and their sidecars, that were to join the table and did not.

        A commit may be in the log although whoever made it saw an error, or was interrupted. So the log is asked first,
        and if it cannot be asked the files stay: `vacuum` removes what nobody needs, nobody brings back what was lost.
        In an object store a commit may even arrive later than its error: there all of them are left to `vacuum`.
        """
        if not self.folder.is_local:
            return
        try:
            log = DeltaLog.open(self.folder)
            present = log.names()
            if log.missing():
                return
            for name in names:
                if name not in present and not log._has_named(name):
                    self.folder.remove(name)
                    self.folder.remove(sidecar_name(name))
        except CoprlakeError:
            return

    def _has_named(self, name: str) -> bool:
        """Whether a commit since a data file was written names it: old versions may need it."""
        entry = self.folder.entry(name)
        if entry is None:
            return False
        wanted = path_text(name.rpartition("/")[2]).encode()
        for number in range(self.version, -1, -1):
            commit = self.folder.entry(commit_name(number))
            if commit is None or commit.modified_ns < entry.modified_ns:
                return False
            if wanted in self.folder.read(commit_name(number)):
                return True
        return False

    def names(self) -> set[str]:
        """The data files of this version."""
        return set(self._spelled())

    def _spelled(self) -> dict[str, str]:
        """The path of each data file as the log spells it; to remove a file, it has to be spelled the same."""
        if self._spelling[0] != self.version:
            paths = self._actions().column("path").to_pylist()
            self._spelling = self.version, {unquote(path): path for path in paths}
        return self._spelling[1]

    def transaction_version(self, application: str) -> int | None:
        """The last transaction of an application, None if it never made one; `refresh` comes first."""
        with self._reading():
            return self._table.transaction_version(application)

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
                raise UsageError(f"{self.folder.uri}: cannot add {names}; {_first_line(error)}") from error
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
        self._check_whole()
        hours = max(0, math.ceil(retention_hours))
        local = self.folder.is_local  # delta-rs follows symbolic links, and deletes whatever it finds behind them
        try:
            names = list(self._table.vacuum(hours, dry_run or local, enforce_retention_duration=False, full=True))
        except (DeltaError, OSError) as error:
            raise StorageError(f"{self.folder.uri}: old files could not be removed; {_first_line(error)}") from error
        if not local:
            return names
        with self._held(alone=True):
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

    @contextmanager
    def _held(self, *, alone: bool) -> Iterator[None]:
        """Hold the log of a table on this machine: commits hold it together, a vacuum `alone`.

        Between the moment at which a commit sees that its files are there and the moment at which it is in the log, no
        vacuum removes a file, whatever the retention is and whatever the clock says. A dead process holds nothing.
        """
        if not self.folder.is_local:
            yield
            return
        try:
            descriptor = os.open(self.folder.path(LOG), os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise storage_error(self.folder.path(LOG), error) from error
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    def _check_whole(self) -> None:
        """Refuse to decide what nobody needs while a commit, or a checkpoint, that may name it cannot be read."""
        for problem in log_problems(self.folder, read=self.folder.is_local):
            if not problem.file.endswith(POINTER):
                raise UnreadableTableError(
                    problem.file,
                    section=problem.section,
                    expected=problem.expected,
                    found=f"{problem.found}, which may name files that nothing else does: none was removed",
                    advice=problem.advice,
                )

    def _commit_once(
        self,
        add: Sequence[NewFile],
        remove: Sequence[SegmentEntry],
        note: dict[str, Any],
        data_change: bool,
        once: Transaction | None,
    ) -> bool:
        """Try to make the next version; whether it was made, where an error does not tell."""
        assert self._attempt is not None
        now = int(time.time() * 1000)
        adding = [file.action(data_change=data_change) for file in add]
        partitions = [{name: log_text(value) for name, value in entry.partition.items()} for entry in remove]
        if self.folder.is_local:
            spelled = self._spelled() if remove else {}
            lines = [] if once is None else [transaction_line(once.application, once.version)]
            lines += [add_line(action) for action in adding]
            for entry, partition in zip(remove, partitions, strict=True):
                path = spelled.get(entry.name) or path_text(entry.name)
                lines.append(remove_line(path, entry.data_bytes, partition, moment=now, data_change=data_change))
            data = data_commit(lines, note, self._attempt.identity, self.partition_by)
            return self._publisher.swap(self.version + 1, data)
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
        last = None if once is None else self.transaction_version(once.application)
        if once is not None and last is not None and last >= once.version:
            self.sync_to(self.version)  # whoever made it may have died before it was on disk
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
        unknown = set(protocol.reader_features or ()) - READER_FEATURES
        if protocol.min_reader_version > READER_VERSION or unknown:
            found = f"reader version {protocol.min_reader_version} {', '.join(sorted(unknown))}".strip()
            raise _too_new(self.folder, found)
        if "columnMapping" in (protocol.writer_features or ()) or "delta.columnMapping.mode" in self.configuration:
            raise _too_new(self.folder, "columns that are mapped to other names")
        if "deletionVectors" in (protocol.reader_features or ()) and self._has_deletion_vectors():
            raise _too_new(self.folder, "deletion vectors: run REORG TABLE ... APPLY (PURGE) in Spark first")
        features.check_readable(self.folder.uri, self.configuration)
        self._checked_version = self.version

    def _has_deletion_vectors(self) -> bool:
        with self._reading():
            return bool(pa.RecordBatchReader.from_stream(self._table.deletion_vectors()).read_all().num_rows)

    def check_writable(self, change: Change) -> None:
        """Refuse a change that the table's protocol or one of its rules forbids; see `protocol`.

        Raises:
            UnreadableTableError: a writer must understand something that is not understood here.
            UsageError: a rule of the table forbids it, or cannot be kept here.
        """
        features.check_writable(self.folder.uri, self.configuration)
        protocol = self._table.protocol()
        names = protocol.writer_features or ()
        rules = Rules(protocol.min_writer_version, names, self.configuration, self._table.schema().to_json())
        unknown = unknown_features(rules)
        if unknown:
            raise _too_new(self.folder, f"writer features {', '.join(unknown)}")
        check_change(self.folder.uri, rules, change)


def _is_there(folder: Folder) -> ConflictError:
    return ConflictError(f"{folder.uri}: there is a table already; open it instead")


def _problems_of(folder: Folder) -> list[UnreadableTableError]:
    try:
        return log_problems(folder)
    except OSError as error:
        raise StorageError(f"{folder.uri}: the table's log cannot be read; {_first_line(error)}") from error


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
    """What went wrong, and why: the first line and the last of the causes that delta-rs lists below it."""
    first, *rest = _COLOR.sub("", str(error)).splitlines() or [""]
    causes = [line.partition(_CAUSE)[2].strip() for line in rest if _CAUSE in line]
    return f"{first}: {causes[-1]}" if causes else first
