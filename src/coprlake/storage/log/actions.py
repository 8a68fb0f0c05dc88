"""Reads and writes what the log says about a data file: names, sizes, and the statistics of the timestamp."""

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake.transaction import AddAction

from coprlake.errors import ConflictError, UnreadableTableError
from coprlake.files import Folder
from coprlake.records import TIMESTAMP
from coprlake.segment.python_values import is_datetime, iso_text
from coprlake.segment.sealed import SegmentEntry
from coprlake.segment.searchable import ALWAYS

if TYPE_CHECKING:
    from coprlake.segment.mutable import SegmentReport

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True)
class NewFile:
    """A sealed segment to add to the table."""

    report: "SegmentReport"
    partition: dict[str, str | None]

    def action(self, *, data_change: bool) -> AddAction:
        """The log's action that adds the file."""
        return AddAction(
            path=self.report.name,
            size=self.report.data_bytes,
            partition_values=self.partition,
            modification_time=int(time.time() * 1000),
            data_change=data_change,
            stats=_statistics(self.report),
        )


def check_written(folder: Folder, add: Sequence[NewFile]) -> None:
    """Raise `ConflictError` if one of these files is not there any more."""
    for file in add:
        entry = folder.entry(file.report.name)
        if entry is None or entry.size_bytes != file.report.data_bytes:
            raise ConflictError(
                f"{folder.uri}: {file.report.name} was removed before it could be committed, perhaps by "
                "a vacuum; nothing was committed"
            )


def _statistics(report: "SegmentReport") -> str:
    stats: dict[str, Any] = {"numRecords": report.row_count}
    if (report.first_time, report.last_time) != ALWAYS:
        for side, moment in (("minValues", report.first_time), ("maxValues", report.last_time)):
            if is_datetime(moment):  # other readers know no other times; without a bound nothing is ruled out
                stats[side] = {TIMESTAMP: iso_text(moment)}
        stats["nullCount"] = {TIMESTAMP: 0}
    return json.dumps(stats)


def entries_of(actions: pa.Table) -> list[SegmentEntry]:
    """The data files of a version, in the order of their names."""
    partition = actions.column("partition").to_pylist() if "partition" in actions.schema.names else None
    names = [name_of(path) for path in actions.column("path").to_pylist()]
    rows = actions.column("num_records").to_pylist()
    first = _time_statistics(actions, "min", ALWAYS[0])
    last = _time_statistics(actions, "max", ALWAYS[1])
    nulls = _null_counts(actions)
    sizes = actions.column("size_bytes").to_pylist()
    entries = [
        SegmentEntry(
            name=names[number],
            data_bytes=sizes[number],
            row_count=rows[number],
            first_time=first[number],
            last_time=last[number],
            partition=partition[number] if partition else {},
            has_all_times=nulls[number] == 0,
        )
        for number in range(len(names))
    ]
    return sorted(entries, key=lambda entry: entry.name)


def name_of(path: str) -> str:
    """The name of a data file in the table's folder, from its path as spelled in the log.

    Raises:
        UnreadableTableError: the file is elsewhere: a table must not lead to other files of this machine. Or the path
            is not the file's plain name: comparing names would make it look like a file that no version needs.
    """
    name = unquote(path)
    if name.startswith("/") or _SCHEME.match(name):
        advice = (
            "this looks like a shallow clone; make a deep copy of the table, or open the table that it was cloned from"
        )
        raise UnreadableTableError(
            name,
            section="_delta_log",
            expected="data files inside the table's folder",
            found="an absolute path",
            advice=advice,
        )
    parts = name.split("/")
    if ".." in parts:
        raise UnreadableTableError(
            name,
            section="_delta_log",
            expected="data files inside the table's folder",
            found="a path that leads out of it",
            advice="do not trust this table; ask its author why it has this path",
        )
    if "." in parts or "" in parts:
        raise UnreadableTableError(
            name,
            section="_delta_log",
            expected="data files by their plain names",
            found="a path with a part that is empty or a dot",
            advice="rewrite the table with the engine that created it",
        )
    return name


def _time_statistics(actions: pa.Table, side: str, unknown: int) -> list[int]:
    """The first or last time of each file, in microseconds."""
    values = actions.column(side) if side in actions.schema.names else None
    times = None if values is None else _member(values, TIMESTAMP)
    if times is None or not pa.types.is_timestamp(times.type):
        return [unknown] * actions.num_rows
    return list(times.cast(pa.timestamp("us")).cast(pa.int64()).fill_null(unknown).to_pylist())


def _null_counts(actions: pa.Table) -> list[int | None]:
    """The number of records without a timestamp in each file; None where the log does not say."""
    counts = actions.column("null_count") if "null_count" in actions.schema.names else None
    found = None if counts is None else _member(counts, TIMESTAMP)
    return [None] * actions.num_rows if found is None else found.to_pylist()


def _member(structs: pa.ChunkedArray, name: str) -> pa.ChunkedArray | None:
    """One member of all structs, whatever it is under a null; None if they have none of this name."""
    kind = structs.type
    if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
        return None
    members = [chunk.field(name) for chunk in structs.chunks if isinstance(chunk, pa.StructArray)]
    return pa.chunked_array(members, kind.field(name).type)
