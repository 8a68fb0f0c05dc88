"""The driver's part of a write: commits the segments that all tasks sealed, all of them or none."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from coprlake.errors import ConflictError, DoneBeforeError
from coprlake.intake.options import IntakeReport
from coprlake.intake.sources.contents import FileContent, RangeContent, joined_ranges
from coprlake.storage.log.actions import NewFile
from coprlake.storage.log.delta_log import DeltaLog, Transaction
from coprlake.storage.writer import WriteReport


@dataclass
class Part:
    """The segments that one task sealed.

    Attributes:
        files: the segments.
        new_fields: columns of these segments that the table did not have.
        read: the intake report, if the task read raw logs.
        contents: what the files held that the task read.
        ranges: the same for ranges of files.
    """

    files: list[NewFile] = field(default_factory=list)
    new_fields: dict[str, pa.Field] = field(default_factory=dict)
    read: IntakeReport | None = None
    contents: list[FileContent] = field(default_factory=list)
    ranges: list[RangeContent] = field(default_factory=list)


class ColumnTypesError(ConflictError):
    """Tasks found values of different types for a new column, or different spellings of it.

    Attributes:
        fields: the columns with the types chosen for them.
        losers: the numbers of the parts that differ.
    """

    def __init__(self, fields: dict[str, pa.Field], losers: list[int], column: str) -> None:
        super().__init__(f"tasks found different types or spellings for the new column {column}; nothing was committed")
        self.fields = fields
        self.losers = losers


def join(
    log: DeltaLog,
    parts: Sequence[Part],
    *,
    note: dict[str, Any],
    replace: bool = False,
    once: Transaction | None = None,
) -> WriteReport:
    """Commit the segments that tasks sealed.

    Args:
        log: the table's log.
        parts: those of all tasks.
        note: describes the operation in the table's history.
        replace: remove the table's current segments.
        once: see `DeltaLog.commit`; if the transaction was committed before, the new files are deleted.

    Raises:
        ColumnTypesError: parts disagree; their files are kept.
    """
    fields = settled_fields(parts)
    files = [file for part in parts for file in part.files]
    report = WriteReport()
    if not files and not replace and once is None:
        return report
    if fields:
        log.add_columns(list(fields.values()))
    try:
        report.version = log.commit(files, note=note, replace=replace, once=once)
    except DoneBeforeError:
        discard(log, parts)
        return report
    for file in files:
        report.add(file.report)
    return report


def contents_of(parts: Sequence[Part]) -> list[FileContent]:
    """What the files held that all tasks read."""
    whole = [content for part in parts for content in part.contents]
    return whole + joined_ranges(one for part in parts for one in part.ranges)


def settled_fields(parts: Sequence[Part]) -> dict[str, pa.Field]:
    """The new columns of all parts.

    Raises:
        ColumnTypesError: a column has different types, of which the most general wins, or different spellings, of which
            the first wins.
    """
    chosen: dict[str, pa.Field] = {}  # by lower-case name: Delta ignores the case of names
    for part in parts:
        for new in part.new_fields.values():
            known = chosen.setdefault(new.name.lower(), new)
            if known.type != new.type:
                kind = max(known.type, new.type, key=_generality)
                chosen[new.name.lower()] = pa.field(known.name, kind)
    fields = {one.name: one for one in chosen.values()}
    differing = [[new.name for new in part.new_fields.values() if new != chosen[new.name.lower()]] for part in parts]
    losers = [number for number, names in enumerate(differing) if names]
    if losers:
        raise ColumnTypesError(fields, losers, differing[losers[0]][0])
    return fields


def _generality(kind: pa.DataType) -> int:
    """Rank a type by what it can hold: text holds every value, a float most numbers."""
    if pa.types.is_string(kind):
        return 3
    if pa.types.is_floating(kind):
        return 2
    return 1 if pa.types.is_integer(kind) else 0


def discard(log: DeltaLog, parts: Sequence[Part]) -> None:
    """Delete the files of parts that were not committed."""
    log.discard([file.report.name for part in parts for file in part.files])
