"""Tells a plain folder of Parquet files from a part of a table, whose metadata says which files count.

A table of Iceberg, Hudi or Delta keeps the files of deleted and rewritten records until they are cleaned up. Reading
its folder file by file would bring those records back, so it is rejected, and the error says what to do.
"""

import os
from collections.abc import Iterable, Iterator
from posixpath import dirname

from pyarrow import fs

from coprlake.errors import CoprlakeError, NotFoundError, UnreadableTableError
from coprlake.files import FileEntry, Folder
from coprlake.table_formats import DELTA, ICEBERG, ICEBERG_FOLDER, MARKS, FoundTable, is_iceberg


def refuse_tables_above(folder: Folder) -> None:
    """Raise if the folder is a table of another format than Delta, or is inside a table of any format.

    Skips folders above that cannot be read.

    Raises:
        UnreadableTableError: it is one.
    """
    for root in _paths(folder):
        path, is_own = root, True
        while True:
            format_name = _format_of(folder.filesystem, path)
            if format_name is not None and not (is_own and format_name == DELTA):
                raise _is_a_table(folder, format_name) if is_own else _is_inside(folder, FoundTable(format_name, path))
            if dirname(path) in ("", path):
                break
            path, is_own = dirname(path), False


def refuse_tables_below(folder: Folder, files: Iterable[FileEntry]) -> None:
    """Raise if a folder below this one is a table of any format.

    Args:
        folder: the folder with the files.
        files: all files in it and below.

    Raises:
        NotFoundError: a folder below is a Delta table, which can be opened instead.
        UnreadableTableError: a folder below is a table of another format.
    """
    found = next(_tables_among(files), None)
    if found is None:
        return
    if found.format == DELTA:
        raise NotFoundError(
            f"{folder.uri}: this folder is not a table, but contains at least one; open {found.folder} in it"
        )
    raise _is_a_table(folder, found.format, found.folder)


def refuse_links_into_tables(folder: Folder, files: Iterable[FileEntry]) -> None:
    """Raise if symbolic links in the folder lead to data files, or folders of them, of a table elsewhere."""
    if not folder.is_local:
        return
    own = os.path.realpath(folder.root)
    elsewhere = {dirname(os.path.realpath(folder.path(file.name))) for file in files}
    for path in sorted(path for path in elsewhere if path != own and not path.startswith(f"{own}/")):
        refuse_tables_above(Folder(folder.filesystem, path, path))
        if _format_of(folder.filesystem, path) == DELTA:
            raise _is_inside(folder, FoundTable(DELTA, path))


def _paths(folder: Folder) -> list[str]:
    """The folder's path as given, and with symbolic links resolved if that differs."""
    if not folder.is_local:
        return [folder.root]
    return list(dict.fromkeys([os.path.normpath(folder.root), os.path.realpath(folder.root)]))


def _format_of(filesystem: fs.FileSystem, path: str) -> str | None:
    """The format of the table in a folder; None if there is none, or the folder cannot be read."""
    base = path.rstrip("/")
    try:
        marks = filesystem.get_file_info([f"{base}/{name}" for name in MARKS])
        found = next((MARKS[info.base_name] for info in marks if info.type == fs.FileType.Directory), None)
        if found is not None:
            return found
        selector = fs.FileSelector(f"{base}/{ICEBERG_FOLDER}", allow_not_found=True)
        return ICEBERG if any(is_iceberg(info.base_name) for info in filesystem.get_file_info(selector)) else None
    except (OSError, CoprlakeError):  # no permission, or a bucket that may not be listed from its root
        return None


def _tables_among(files: Iterable[FileEntry]) -> Iterator[FoundTable]:
    for file in files:
        *parts, own = file.name.split("/")
        for place, part in enumerate(parts):
            if part in MARKS:
                yield FoundTable(MARKS[part], "/".join(parts[:place]))
        if parts and parts[-1] == ICEBERG_FOLDER and is_iceberg(own):
            yield FoundTable(ICEBERG, "/".join(parts[:-1]))


def _advice(format_name: str) -> str:
    return (
        "its folder also has files of deleted and rewritten records; read it with an engine that supports "
        f"{format_name} (Spark, Trino or DuckDB) and export its records to Parquet or Delta"
    )


def _is_a_table(folder: Folder, format_name: str, inner: str = "") -> UnreadableTableError:
    return UnreadableTableError(
        folder.path(inner) if folder.is_local else f"{folder.uri.rstrip('/')}/{inner}".rstrip("/"),
        section="folder",
        expected="a Delta table or plain Parquet files",
        found=f"{'an' if format_name == ICEBERG else 'a'} {format_name} table",
        advice=_advice(format_name),
    )


def _is_inside(folder: Folder, found: FoundTable) -> UnreadableTableError:
    article = "an" if found.format == ICEBERG else "a"
    outer = found.folder if folder.is_local else f"{folder.uri.partition('://')[0]}://{found.folder}"
    if found.format == DELTA:
        advice = f"open {outer} instead, and name the partition in the search (--where, --since)"
    else:
        advice = _advice(found.format)
    return UnreadableTableError(
        folder.uri,
        section="folder",
        expected="a Delta table or plain Parquet files",
        found=f"a part of {article} {found.format} table at {outer}",
        advice=advice,
    )
