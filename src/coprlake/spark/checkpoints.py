"""Which stream is this? The checkpoint of a query says, and the table's log knows what it has done."""

import json

from coprlake.errors import UsageError
from coprlake.files import Folder
from coprlake.table.delta_log import DeltaLog


def application_of(checkpoint: str, log: DeltaLog) -> str:
    """The name of a stream's transactions: the id of the query, which lives in its checkpoint.

    Args:
        checkpoint: the folder.
        log: of the table that the stream goes to.

    Raises:
        UsageError: there is no checkpoint, or it belongs to another table.
    """
    if not checkpoint:
        raise UsageError('a stream needs a checkpoint to go on after a crash; say .option("checkpointLocation", ...)')
    folder = Folder.of(checkpoint.removeprefix("file:") if checkpoint.startswith("file:/") else checkpoint)
    try:
        identity = str(json.loads(bytes(folder.data("metadata")))["id"])
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"{checkpoint}: the id of the query cannot be read from this checkpoint; {error}") from error
    application = f"coprlake-{identity}"
    check_belongs(folder, application, log)
    return application


def check_belongs(checkpoint: Folder, application: str, log: DeltaLog) -> None:
    """Refuse a checkpoint whose stream has written to another table: its records would be missing in this one.

    Raises:
        UsageError: its batches are not in the table's log.
    """
    done = [name.name.rpartition("/")[2] for name in checkpoint.list("commits")]
    if any(name.isdigit() for name in done) and log.transaction_version(application) is None:
        raise UsageError(
            f"{checkpoint.uri}: this checkpoint belongs to a stream into another table: "
            f"{log.folder.uri} has none of its batches; choose a new checkpoint folder, or the table it was made with"
        )
