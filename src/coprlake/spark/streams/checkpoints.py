"""Identifies a stream by its checkpoint; the table's log records which batches it has committed."""

import json
from contextlib import suppress
from pathlib import Path

from coprlake.errors import NotFoundError, StorageError, UsageError
from coprlake.files import FileEntry, Folder
from coprlake.storage.log.delta_log import DeltaLog

_synced: dict[str, frozenset[FileEntry]] = {}
"""Files that this process has synced, by checkpoint folder; see `sync_checkpoint`."""


def application_of(checkpoint: str, log: DeltaLog, name: str = "") -> str:
    """The name of a stream's transactions: `name` if given, otherwise from the id of the query in its checkpoint.

    Args:
        checkpoint: the folder.
        log: the log of the table that the stream writes to.
        name: given by the user; must not be the name of a stream with another checkpoint.

    Raises:
        UsageError: there is no checkpoint, or it belongs to another table.
    """
    if name and not checkpoint:
        return name
    if not checkpoint:
        raise UsageError('a stream needs a checkpoint to resume after a crash; set .option("checkpointLocation", ...)')
    folder = _folder(checkpoint)
    try:
        identity = str(json.loads(folder.read("metadata"))["id"])
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"{checkpoint}: cannot read the id of the query from this checkpoint; {error}") from error
    application = name or f"coprlake-{identity}"
    check_belongs(folder, application, log)
    if name and log.transaction_version(name) is not None and not _has_batches(folder, "offsets"):
        raise UsageError(
            f"{checkpoint}: this checkpoint is new, but the table has batches of a stream named {name} and would "
            "mistake the new ones for them; choose another name, or the checkpoint of that stream"
        )
    return application


def sync_checkpoint(checkpoint: str) -> None:
    """Sync what Spark wrote to a local checkpoint, so that it survives a power loss; Spark itself syncs nothing.

    A batch must not be in the table before that: if the checkpoint then lost it, Spark would give its number to other
    records, which the table would skip as done, or it would start over under another id and duplicate everything.

    Files that this process has synced are not synced again while their name, size and time stay the same. The folders
    above the checkpoint are synced once, and again if the checkpoint is recreated.
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
            with suppress(StorageError):  # a folder that we may traverse but not read was not created by us
                Folder.of(parent).sync_file("")
    present |= {identity} if identity is not None else set()
    _synced[folder.root] = frozenset(entry for entry in present if entry.name not in gone)


def _metadata(folder: Folder) -> FileEntry | None:
    """The file with the id of the query, written once per checkpoint; None if it does not exist."""
    try:
        status = Path(folder.path("metadata")).stat()
    except OSError:
        return None
    return FileEntry("metadata", status.st_size, status.st_mtime_ns)


def _folder(checkpoint: str) -> Folder:
    return Folder.of(checkpoint.removeprefix("file:") if checkpoint.startswith("file:/") else checkpoint)


def _has_batches(checkpoint: Folder, log: str) -> bool:
    """Whether batches were started (``offsets``) or completed (``commits``)."""
    return any(entry.name.rpartition("/")[2].isdigit() for entry in checkpoint.list(log))


def check_belongs(checkpoint: Folder, application: str, log: DeltaLog) -> None:
    """Reject a checkpoint whose stream has written to another table: those records would be missing from this one.

    Raises:
        UsageError: its batches are not in the table's log.
    """
    if _has_batches(checkpoint, "commits") and log.transaction_version(application) is None:
        raise UsageError(
            f"{checkpoint.uri}: this checkpoint belongs to a stream into another table: {log.folder.uri} has "
            "none of its batches; choose a new checkpoint folder, or the table it was created with"
        )
