"""Which stream is this? The checkpoint of a query says, and the table's log knows what it has done."""

import json
from contextlib import suppress
from pathlib import Path

from coprlake.errors import NotFoundError, StorageError, UsageError
from coprlake.files import FileEntry, Folder
from coprlake.storage.log.delta_log import DeltaLog

_synced: dict[str, frozenset[FileEntry]] = {}
"""What this process knows to be on disk, by the checkpoint's folder; see `sync_checkpoint`."""


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
    folder = _folder(checkpoint)
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


def sync_checkpoint(checkpoint: str) -> None:
    """Return when what Spark wrote to a local checkpoint will survive a loss of power; Spark itself syncs nothing.

    A batch must not be in the table before that: with a checkpoint that has lost it, Spark would give its number to
    other records, which would then be taken for done, or it would begin anew under another id, and double everything.

    What this process has synced and is as it was, by name, size and time, is not synced again. The folders above the
    checkpoint are synced once, and again if it was made anew.
    """
    folder = _folder(checkpoint)
    if not folder.is_local:
        return
    known = _synced.get(folder.root, frozenset())
    present = {entry for log in ("offsets", "sources", "commits") for entry in folder.list(log)}
    identity = _metadata(folder)
    new = sorted(present - known)
    above = {str(parent) for entry in new for parent in Path(entry.name).parents if str(parent) != "."}
    is_new = identity is None or identity not in known
    if not (new or is_new):
        return
    gone = set()
    for name in [*(["metadata"] if is_new else []), *(entry.name for entry in new), *sorted(above), ""]:
        try:
            folder.sync_file(name)
        except NotFoundError:  # Spark removes old files meanwhile
            gone.add(name)
    if is_new:
        for parent in Path(folder.root).parents:
            with suppress(StorageError):  # a folder that we may pass through and not read was not made by us
                Folder.of(parent).sync_file("")
    present |= {identity} if identity is not None else set()
    _synced[folder.root] = frozenset(entry for entry in present if entry.name not in gone)


def _metadata(folder: Folder) -> FileEntry | None:
    """The file with the id of the query, which is written once for a checkpoint; None if it is not there."""
    try:
        status = Path(folder.path("metadata")).stat()
    except OSError:
        return None
    return FileEntry("metadata", status.st_size, status.st_mtime_ns)


def _folder(checkpoint: str) -> Folder:
    return Folder.of(checkpoint.removeprefix("file:") if checkpoint.startswith("file:/") else checkpoint)


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
