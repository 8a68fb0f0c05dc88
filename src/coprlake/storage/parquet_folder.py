"""A folder of another writer's Parquet files, as a table that is read and indexed but never written."""

from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from coprlake.errors import NotFoundError, UnreadableDataError
from coprlake.files import READ_ERRORS, FileEntry, Folder
from coprlake.records import INT96_UNIT, varying
from coprlake.segment.sealed import SegmentEntry
from coprlake.storage.partitioning import NO_VALUE
from coprlake.storage.recognizing import refuse_links_into_tables, refuse_tables_above, refuse_tables_below
from coprlake.text.text_types import is_text_map, is_text_or_bytes


class ParquetFolder:
    """The listing of the folder, in place of a log.

    Files may be replaced by others of the same name, so a sidecar counts only while its data file has the size and time
    that were indexed. Rejects a folder that belongs to a table of some format: see `recognizing`.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        refuse_tables_above(folder)
        self._files = self._list()
        refuse_links_into_tables(folder, self._files)
        if not self._files:
            raise NotFoundError(f"{folder.uri}: this folder holds no table and no Parquet files; check the path")
        self.version = 0
        self.schema = self._joint_schema()

    @property
    def partition_by(self) -> list[str]:
        """The columns in the names of folders (``day=2026-11-16/``)."""
        return list(dict.fromkeys(name for file in self._files for name in _partition(file.name)))

    @property
    def configuration(self) -> dict[str, str]:
        """Always empty: a folder has no properties."""
        return {}

    def refresh(self) -> bool:
        """List the folder again; returns whether it has changed."""
        files = self._list()
        if files == self._files:
            return False
        refuse_links_into_tables(self.folder, files)
        self._files = files
        self.schema = self._joint_schema()
        self.version += 1
        return True

    def entries(self) -> list[SegmentEntry]:
        """The files of the last listing."""
        return [
            SegmentEntry(file.name, file.size_bytes, partition=_partition(file.name), modified_ns=file.modified_ns)
            for file in self._files
        ]

    def _list(self) -> list[FileEntry]:
        """The Parquet files.

        Raises:
            NotFoundError, UnreadableTableError: they belong to a table, which may no longer use all of them.
        """
        files = self.folder.list()
        refuse_tables_below(self.folder, files)
        return [file for file in files if file.name.endswith(".parquet") and not _is_hidden(file.name)]

    def _joint_schema(self) -> pa.Schema:
        """The columns of all files; the first file with a column sets its type, marked as varying if others differ."""
        fields: dict[str, pa.Field] = {}
        problem: Exception | None = None
        for file in self._files:
            try:
                with self.folder.open(file.name) as source:
                    found = pq.ParquetFile(source, coerce_int96_timestamp_unit=INT96_UNIT).schema_arrow
            except READ_ERRORS as error:
                problem = problem or _unreadable(self.folder.path(file.name), error)
                continue  # reading the file will report it
            for one in found.remove_metadata():
                known = fields.setdefault(one.name, one.remove_metadata())
                if not _reads_alike(known.type, one.type):
                    fields[one.name] = varying(known)
        if problem is not None and not fields:  # no search would get as far as reading a file
            raise problem
        for name in self.partition_by:
            fields.setdefault(name, pa.field(name, pa.string()))
        return pa.schema(list(fields.values()))


def _reads_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether a search means the same by columns of these types."""
    return (
        one == other or (is_text_or_bytes(one) and is_text_or_bytes(other)) or (is_text_map(one) and is_text_map(other))
    )


def _unreadable(path: str, error: Exception) -> UnreadableDataError:
    return UnreadableDataError(
        path,
        section="data file",
        expected="a Parquet file",
        found=str(error).partition("\n")[0],
        advice="no file of this folder can be read; check the path, or restore the files from a copy",
    )


def _is_hidden(name: str) -> bool:
    return any(part.startswith(("_", ".")) for part in name.split("/"))


def _partition(name: str) -> dict[str, Any]:
    """The partition columns in a file's path, and their values."""
    pairs = (part.partition("=") for part in name.split("/")[:-1] if "=" in part)
    return {unquote(column): None if value == NO_VALUE else unquote(value) for column, _, value in pairs}
