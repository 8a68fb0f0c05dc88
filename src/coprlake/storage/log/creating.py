"""The first commit of a table."""

import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from coprlake.errors import CoprlakeError, StorageError
from coprlake.files import Folder
from coprlake.storage.log.commits import LOG, commit_name, create_commit
from coprlake.storage.log.refusals import cause_of, check_name, table_exists_error


def create_log(folder: Folder, schema: pa.Schema, partition_by: Sequence[str], configuration: dict[str, str]) -> None:
    """Create an empty table; it is on disk when this returns.

    Raises:
        ConflictError: there is already a table.
    """
    check_name(folder)
    try:
        if folder.is_local:
            _create_here(folder, schema, partition_by, configuration)
            return
        DeltaTable.create(
            folder.uri,
            Schema.from_arrow(schema),
            mode="error",
            partition_by=list(partition_by),
            configuration=configuration,
            raise_if_key_not_exists=False,
        )
    except DeltaError as error:
        if DeltaTable.is_deltatable(folder.uri):
            raise table_exists_error(folder) from error
        raise StorageError(f"{folder.uri}: the table could not be created; {cause_of(error)}") from error


def _create_here(folder: Folder, schema: pa.Schema, partition_by: Sequence[str], configuration: dict[str, str]) -> None:
    try:
        folder.make()
    except (OSError, CoprlakeError) as error:
        reason = getattr(error.__cause__, "strerror", None) or cause_of(error)
        raise StorageError(f"{folder.root}: the folder cannot be created; {reason}") from error
    if DeltaTable.is_deltatable(folder.uri):
        raise table_exists_error(folder)
    data = create_commit(folder.root, schema, partition_by, configuration, uuid.uuid4().hex)
    try:
        Path(folder.path(LOG)).mkdir(exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder.path(LOG)}: the folder cannot be created; {error.strerror}") from error
    if not folder.place(commit_name(0), data):
        raise table_exists_error(folder)
    folder.sync_names(commit_name(0))
