"""Which stream is this? The checkpoint of a query says, and the table's log knows what it has done."""

import json

from coprlake.errors import UsageError
from coprlake.files import Folder
from coprlake.table.delta_log import DeltaLog


def application_of(checkpoint: str, log: DeltaLog, name: str = "") -> str:
    """The name of a stream's transactions: the id of the query, which lives in its checkpoint, or what was given.

    Args:
        checkpoint: the folder.
        log: of the table that the stream goes to.
        name: given by the user; it must not be that of a stream with another checkpoint.

    Raises:
        UsageError: there is no checkpoint, or it belongs to another table.
    """
    if name and not checkpoint:
        return name
    if not checkpoint:
        raise UsageError('a stream needs a checkpoint to go on after a crash; say .option("checkpointLocation", ...)')
    folder = Folder.of(checkpoint.removeprefix("file:") if checkpoint.startswith("file:/") else checkpoint)
    try:
        identity = str(json.loads(folder.read("metadata"))["id"])
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"{checkpoint}: the id of the query cannot be read from this checkpoint; {error}") from error
    application = name or f"coprlake-{identity}"
    check_belongs(folder, application, log)
    if name and log.transaction_version(name) is not None and not _has_batches(folder, "offsets"):
        raise UsageError(
            f"{checkpoint}: this checkpoint is new, but the table has batches of a stream named {name}, and would take "
            "the new ones for these; choose another name, or the checkpoint of that stream"
        )
    return application


def _has_batches(checkpoint: Folder, log: str) -> bool:
    """Whether batches were begun (``offsets``) or completed (``commits``)."""
    return any(entry.name.rpartition("/")[2].isdigit() for entry in checkpoint.list(log))


def check_belongs(checkpoint: Folder, application: str, log: DeltaLog) -> None:
    """Refuse a checkpoint whose stream has written to another table: its records would be missing in this one.

    Raises:
        UsageError: its batches are not in the table's log.
    """
    if _has_batches(checkpoint, "commits") and log.transaction_version(application) is None:
        raise UsageError(
            f"{checkpoint.uri}: this checkpoint belongs to a stream into another table: "
            f"{log.folder.uri} has none of its batches; choose a new checkpoint folder, or the table it was made with"
        )
