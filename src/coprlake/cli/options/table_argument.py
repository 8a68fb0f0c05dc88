"""Opening the table that a command line names."""

from typing import TYPE_CHECKING

from coprlake.errors import CoprlakeError, NotFoundError, UsageError

if TYPE_CHECKING:
    from coprlake.files import Folder
    from coprlake.table import Table


def opened(name: str, *, may_be_text: bool = False) -> "Table":
    """The table.

    Args:
        name: its path or URI.
        may_be_text: whether it was the only argument of a command that takes a text too.

    Raises:
        CoprlakeError: there is none, or it cannot be read.
    """
    from coprlake.files import Folder
    from coprlake.table import open_table

    folder = Folder.of(name)
    if folder.entry("") is not None:
        raise UsageError(
            f"{name}: expected the folder of a table, found a file; `coprlake ingest` makes a table of logs"
        )
    if not folder.exists():
        hint = "if this is the text to look for, name the table behind it" if may_be_text else "check the path"
        raise NotFoundError(f"{name}: there is no such table; {hint}")
    if not folder.exists("_delta_log"):
        _refuse_folder_of_tables(folder, name)
    try:
        return open_table(name)
    except CoprlakeError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # what the Delta library makes of a damaged log
        first = str(error).partition("\n")[0]
        raise UsageError(f"{name}: cannot be opened as a table: {first}") from error


def _refuse_folder_of_tables(folder: "Folder", name: str) -> None:
    """A folder of Parquet files can be searched, but not the files of tables: some of them are of old versions."""
    inside = next((file.name for file in folder.list() if "/_delta_log/" in file.name), None)
    if inside is not None:
        table = inside.partition("/_delta_log/")[0]
        raise UsageError(
            f"{name}: this folder is no table but has some inside; name one of them, such as {name}/{table}"
        )


def total_bytes(table: "Table") -> int:
    """Of all data files."""
    return sum(segment.entry.data_bytes for segment in table.snapshot().segments)
