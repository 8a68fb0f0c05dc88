"""Folders that are not to be read file by file, since they belong to a table whose metadata says which files count.

A table of Delta, Iceberg or Hudi keeps the files of deleted and rewritten records until they are cleaned away, and its
metadata beside them. Whoever reads its folder like one of logs gets the former back, and the latter as records.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from coprlake.errors import UsageError
from coprlake.table_formats import DELTA, ICEBERG, ICEBERG_FOLDER, MARKS, FoundTable, is_iceberg


def refuse_tables_above(given: str, folders: Iterable[str]) -> None:
    """Refuse folders that are tables or lie inside one. Folders that cannot be looked at are passed over.

    Args:
        given: what the user named, for the error.
        folders: which are to be read; each is also looked at without the symbolic links in its path.

    Raises:
        UsageError: one is.
    """
    seen: set[str] = set()
    for folder in folders:
        for start in dict.fromkeys([os.path.abspath(folder), os.path.realpath(folder)]):  # noqa: PTH100
            for path in [start, *map(str, Path(start).parents)]:
                if path in seen:
                    break  # and so are those above
                seen.add(path)
                name = _format_of(path)
                if name is not None:
                    raise _refusal(given, FoundTable(name, path))


def refuse_listed(given: str, folder: str, folders: Iterable[str], files: Iterable[str]) -> None:
    """Refuse a folder by the names that it holds: it is a table, or the metadata of one.

    Args:
        given: what the user named, for the error.
        folder: the folder.
        folders: the names of the folders in it, of hidden ones, too.
        files: those of the files.

    Raises:
        UsageError: it is.
    """
    mark = next((MARKS[name] for name in folders if name in MARKS), None)
    if mark is not None:
        raise _refusal(given, FoundTable(mark, folder))
    if os.path.basename(folder) == ICEBERG_FOLDER and any(map(is_iceberg, files)):  # noqa: PTH119
        raise _refusal(given, FoundTable(ICEBERG, os.path.dirname(folder)))  # noqa: PTH120


def refuse_tables_within(given: str) -> None:
    """Refuse a folder that is a table, lies inside one or holds one; hidden folders are not looked into.

    Raises:
        UsageError: it does.
    """
    refuse_tables_above(given, [given])
    for parent, folders, names in os.walk(given):
        refuse_listed(given, parent, folders, names)
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]


def _format_of(folder: str) -> str | None:
    """The format of the table in a folder; None if there is none, or if it cannot be looked at."""
    for mark, name in MARKS.items():
        if os.path.isdir(os.path.join(folder, mark)):  # noqa: PTH112, PTH118
            return name
    try:
        names = os.listdir(os.path.join(folder, ICEBERG_FOLDER))  # noqa: PTH118, PTH208
    except OSError:
        return None
    return ICEBERG if any(map(is_iceberg, names)) else None


def _refusal(given: str, found: FoundTable) -> UsageError:
    own, table = os.path.realpath(given), os.path.realpath(found.folder)
    if own == table:
        place = f"this folder is {found.noun}"
    elif own.startswith(table.rstrip("/") + "/"):
        place = f"this folder is a part of {found.noun} at {found.folder}"
    else:
        place = f"there is {found.noun} in it, at {found.folder}"
    if found.format == DELTA:
        advice = f"read it with `coprlake search {found.folder}`, after `coprlake index` if it has no index, or export"
    else:
        advice = f"read it with an engine that knows {found.format} (Spark, Trino or DuckDB), and export"
    return UsageError(
        f"{given}: {place}, whose files also hold deleted and rewritten records; {advice} its records and ingest those"
    )
