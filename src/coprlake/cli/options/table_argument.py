"""Opening the table that a command line names."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coprlake.cli.options.filters import is_local_table
from coprlake.errors import CoprlakeError, NotFoundError, UsageError
from coprlake.text.nearest_words import nearest

if TYPE_CHECKING:
    from coprlake.files import Folder
    from coprlake.table import Table

_MOST_SEEN: Final = 20_000
"""Files and folders that are looked at for a first Parquet file."""


def opened(name: str, *, texts: Sequence[str] | None = None) -> "Table":
    """Open a table.

    Args:
        name: the path or URI of the table.
        texts: the texts to search for, for the message: one of them may be the table, and the name a text.

    Raises:
        CoprlakeError: there is no such table, or it cannot be read.
    """
    from coprlake.files import Folder
    from coprlake.table import open_table

    folder = Folder.of(name)
    if folder.entry("") is not None:
        raise UsageError(
            f"{name}: expected the folder of a table, found a file; use `coprlake ingest` to read logs into a table"
        )
    if not folder.exists():
        raise NotFoundError(f"{name}: no such table; {_advice(name, may_be_text=texts is not None and not texts)}")
    if not folder.exists("_delta_log"):
        _refuse_ordinary_folder(folder, name)
        _refuse_folder_of_tables(folder, name)
    try:
        return open_table(name)
    except CoprlakeError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # how delta-rs reports a damaged log
        first = str(error).partition("\n")[0]
        raise UsageError(f"{name}: cannot be opened as a table: {first}") from error


def _advice(name: str, *, may_be_text: bool) -> str:
    """What to do about a table that does not exist: take the one beside it with nearly this name, if there is one."""
    path = Path(name)
    beside = [other for other in path.parent.iterdir() if is_local_table(other)] if path.parent.is_dir() else []
    near = nearest(path.name, [other.name for other in beside])
    if near is not None:
        return f"did you mean {path.with_name(near)}?"
    return "if this is the text to search for, name the table after it" if may_be_text else "check the path"


def _refuse_ordinary_folder(folder: "Folder", name: str) -> None:
    """Reject a large folder without Parquet files early: listing all of a disk to find that out takes minutes."""
    if not folder.is_local:
        return
    seen = 0
    for _, _, files in os.walk(folder.root):
        if any(file.endswith(".parquet") for file in files):
            return
        seen += 1 + len(files)
        if seen > _MOST_SEEN:
            raise UsageError(
                f"{name}: not a table, and no Parquet file is among its first {_MOST_SEEN:,} files and folders; "
                "check the path, or use `coprlake ingest` to read logs into a table"
            )


def _refuse_folder_of_tables(folder: "Folder", name: str) -> None:
    """Reject a folder that contains tables: some of their Parquet files belong to old versions."""
    inside = next((file.name for file in folder.list() if "/_delta_log/" in file.name), None)
    if inside is not None:
        table = inside.partition("/_delta_log/")[0]
        raise UsageError(
            f"{name}: not a table, but a folder that contains tables; name one of them, such as {name}/{table}"
        )


def total_bytes(table: "Table") -> int:
    """Return the size of all data files."""
    return sum(segment.entry.data_bytes for segment in table.snapshot().segments)
