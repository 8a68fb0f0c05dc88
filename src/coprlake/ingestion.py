"""Ingestion in this process: raw logs into a table, in one commit or several."""

import ctypes
import difflib
import io
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from typing import Any, Protocol

import pyarrow as pa

from coprlake.config import SEGMENT_BYTES
from coprlake.deprecation import Renamed
from coprlake.errors import UsageError
from coprlake.intake.reading import Intake, IntakeReport, ReadOptions
from coprlake.intake.sources.inputs import STDIN
from coprlake.query.context import is_count
from coprlake.segment.assigner import as_one_chunk
from coprlake.storage.known_files import without_known
from coprlake.storage.ledger import Ledger
from coprlake.storage.writer import WriteReport
from coprlake.summary import Report
from coprlake.table import Table, create_table, table_exists

_M_MMAP_THRESHOLD = -3  # of glibc's malloc.h

COALESCED_BYTES = 2 * 1024 * 1024
"""Small files are combined into batches of about this size: an append of one record costs as much as one of
thousands."""


@dataclass(repr=False)
class IngestReport(Report):
    """What was read, and what was written."""

    read: IntakeReport
    written: list[WriteReport] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def version(self) -> int | None:
        """The version of the table that has all records; None if there were no records."""
        return self.written[-1].version if self.written else None

    @property
    def row_count(self) -> int:
        """The number of records in the table now."""
        return sum(report.row_count for report in self.written)

    @property
    def raw_bytes(self) -> int:
        """Of the logs, decompressed."""
        return sum(report.raw_bytes for report in self.written)

    @property
    def data_bytes(self) -> int:
        """Of the data files."""
        return sum(report.data_bytes for report in self.written)

    @property
    def index_bytes(self) -> int:
        """Of the sidecars."""
        return sum(report.index_bytes for report in self.written)

    sketch_bytes = Renamed("index_bytes")

    def _facts(self) -> Mapping[str, Any]:
        names = ("version", "row_count", "raw_bytes", "data_bytes", "index_bytes", "seconds")
        return {name: getattr(self, name) for name in names} | {"read": self.read}


class Appendable(Protocol):
    """Accepts records."""

    def append(self, batch: pa.RecordBatch, *, raw_bytes: int | None = None) -> Any:
        """Add a batch, with the number of raw bytes that it came from."""


class Gatherer:
    """Combines small batches of the same schema before they are appended."""

    def __init__(self, writer: Appendable) -> None:
        self._writer = writer
        self._waiting: dict[pa.Schema, list[pa.RecordBatch]] = {}
        self._raw_bytes: dict[pa.Schema, int] = {}

    def add(self, batch: pa.RecordBatch, raw_bytes: int) -> None:
        """Add a batch; the amount that waits for more of its schema is bounded."""
        if raw_bytes >= COALESCED_BYTES and batch.schema not in self._waiting:
            self._writer.append(batch, raw_bytes=raw_bytes)
            return
        self._waiting.setdefault(batch.schema, []).append(batch)
        self._raw_bytes[batch.schema] = self._raw_bytes.get(batch.schema, 0) + raw_bytes
        if self._raw_bytes[batch.schema] >= COALESCED_BYTES:
            self._append(batch.schema)
        elif sum(self._raw_bytes.values()) >= 4 * COALESCED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Append everything that is waiting."""
        for schema in list(self._waiting):
            self._append(schema)

    def _append(self, schema: pa.Schema) -> None:
        records = as_one_chunk(self._waiting.pop(schema))
        raw_bytes = self._raw_bytes.pop(schema)
        for batch in records.to_batches():
            self._writer.append(batch, raw_bytes=raw_bytes)
            raw_bytes = 0


def give_memory_back() -> None:
    """Let the C library return arrays of a megabyte and more at once instead of keeping them for later.

    By default it raises that limit to 32 MB as such arrays come and go, as those of a growing sketch do: 10 % more
    memory.
    """
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 1 << 20)


def measured(intake: Intake) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The batches of an intake, each with the raw bytes that were read for it."""
    done = 0
    for batch in intake:
        yield batch, intake.report.raw_bytes - done
        done = intake.report.raw_bytes


def ingest_intake(
    table: Table,
    intake: Intake,
    *,
    segment_bytes: int = SEGMENT_BYTES,
    commit_bytes: int | None = None,
    progress: Callable[[IntakeReport], None] | None = None,
    again: bool = False,
    ledger: Ledger | None = None,
) -> IngestReport:
    """Append all records of an intake to a table; see `ingest`.

    Args:
        table: the table to append to.
        intake: the records.
        segment_bytes: see `ingest`.
        commit_bytes: see `ingest`.
        progress: see `ingest`.
        again: see `ingest`.
        ledger: the table's, if `leave_out_known` was called with it.
    """
    for name, size in (("segment_bytes", segment_bytes), ("commit_bytes", commit_bytes)):
        if size is not None and not is_count(size, least=1):
            raise UsageError(f"{name} is {size!r}; expected a number of bytes, 1 or more")
    give_memory_back()
    started = time.perf_counter()
    if ledger is None:
        ledger = table.ledger()
        leave_out_known(intake, ledger, again=again)
    report = IngestReport(intake.report)
    with table.writer(searchable=False, segment_bytes=segment_bytes) as writer:
        gatherer = Gatherer(writer)
        committed = 0

        def commit() -> None:
            gatherer.flush()
            if writer.uncommitted_rows:
                contents, intake.contents = intake.contents, []
                done = ledger.record(contents, lambda once: writer.commit(once=once), again=again)
                report.written.append(done)

        for batch, raw_bytes in measured(intake):
            gatherer.add(batch, raw_bytes)
            done = intake.report.raw_bytes
            if commit_bytes is not None and done - committed >= commit_bytes:
                commit()
                committed = done
            if progress is not None:
                progress(intake.report)
        commit()
    if report.written and intake.contents:  # files whose last records were in the commit before
        ledger.note(intake.contents)
    report.seconds = time.perf_counter() - started
    return report


def leave_out_known(intake: Intake, ledger: Ledger, *, again: bool = False) -> None:
    """Take the files out of an intake that the table has, and of those that have grown what it has."""
    if not again:
        intake.restrict(without_known(intake.files, ledger, intake.options, intake.report))


def ingest(
    inputs: Any,
    into: Any,
    *,
    options: ReadOptions | None = None,
    again: bool = False,
    recursive: bool = True,
    follow_links: bool = False,
    segment_bytes: int = SEGMENT_BYTES,
    commit_bytes: int | None = None,
    progress: Callable[[IntakeReport], None] | None = None,
    **reading: Any,
) -> IngestReport:
    """Read logs into a table, which is created if it does not exist; all records are added or none.

    >>> import coprlake
    >>> report = coprlake.ingest("app.log", into="logs")
    >>> report.row_count
    2
    >>> coprlake.open_table("logs").search("refused").count()
    1

    A file that was ingested before is passed over, and of one that has grown since only what is new is read:

    >>> coprlake.ingest("app.log", into="logs").read.known
    1
    >>> coprlake.ingest("app.log", into="logs", again=True).row_count
    2

    Args:
        inputs: a file, folder or glob, or a list of them; an open file; or an `Intake`.
        into: the table, or its path.
        options: how to read the logs.
        again: also ingest files that were ingested before.
        recursive: also read the files in folders of folders.
        follow_links: also follow symbolic links that lead out of a folder.
        segment_bytes: raw size at which a segment is sealed.
        commit_bytes: commit after each so many raw bytes, so that a long ingest keeps what it committed if interrupted.
        progress: called after each batch.
        **reading: single options, by their names in `ReadOptions`: ``source="web-1"``, ``format="csv"``.

    Returns:
        What was read (`read`, with counts and warnings) and what was written.

    Raises:
        NotFoundError: an input does not exist, or a folder or glob has no files.
        UsageError: an option or an input makes no sense, as a single file that is not text.
    """
    if hasattr(inputs, "writer") and isinstance(into, Intake):
        inputs, into = into, inputs  # the order of earlier versions
    if isinstance(inputs, Intake):
        if options is not None or reading:
            raise UsageError("an Intake has its options already; give them to the Intake")
        intake = inputs
    else:
        chosen = replace(options or ReadOptions(), **_known_options(reading))
        intake = _opened(inputs, chosen, recursive=recursive, follow_links=follow_links)
    with intake:
        table = into
        if isinstance(into, str | PathLike):
            if not table_exists(into):
                intake.first()  # an input that is refused shall leave no table
            table = create_table(into, exist_ok=True)
        elif not isinstance(into, Table):
            raise UsageError(f"cannot ingest into {into!r}; expected a table, or the path of one")
        return ingest_intake(
            table, intake, segment_bytes=segment_bytes, commit_bytes=commit_bytes, progress=progress, again=again
        )


def _known_options(reading: Mapping[str, Any]) -> Mapping[str, Any]:
    names = [one.name for one in fields(ReadOptions)]
    for name in reading:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            advice = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(names)}"
            raise UsageError(f"there is no option {name}; {advice}")
    return reading


def _opened(inputs: Any, options: ReadOptions, *, recursive: bool, follow_links: bool) -> Intake:
    """The intake of paths, or of an open file."""
    if not hasattr(inputs, "read"):
        several = inputs if isinstance(inputs, Iterable) and not isinstance(inputs, str | bytes) else [inputs]
        inputs = list(several) if inputs is not None else []
        for path in inputs:
            if not isinstance(path, str | PathLike):
                raise UsageError(
                    f"cannot read {path!r}; expected the path of a file or a folder, a list of them, or an open file; "
                    "records in memory go to append()"
                )
        return Intake(inputs, options, recursive=recursive, follow_links=follow_links)
    name = getattr(inputs, "name", None)
    if options.source is None and isinstance(name, str):
        options = replace(options, source=name)
    if isinstance(inputs, io.TextIOBase):
        inputs = getattr(inputs, "buffer", None) or io.BytesIO(inputs.read().encode("utf-8", "surrogatepass"))
    return Intake([STDIN], options, stdin=inputs)
