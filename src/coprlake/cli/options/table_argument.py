"""Opening the table that a command line names."""

from typing import TYPE_CHECKING

from coprlake.errors import CoprlakeError, NotFoundError, UsageError

if TYPE_CHECKING:
    from coprlake.files import Folder
    from coprlake.table import Table


def opened(name: str, *, may_be_text: bool = False) -> "Table":
    """Open a table.

    Args:
        name: the path or URI of the table.
        may_be_text: whether the name may be a search text whose table is missing, for the message.

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
        hint = "if this is the text to search for, name the table after it" if may_be_text else "check the path"
        raise NotFoundError(f"{name}: no such table; {hint}")
    if not folder.exists("_delta_log"):
        _refuse_folder_of_tables(folder, name)
    try:
        return open_table(name)
    except CoprlakeError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # how delta-rs reports a damaged log
        first = str(error).partition("\n")[0]
        raise UsageError(f"{name}: cannot be opened as a table: {first}") from error


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
