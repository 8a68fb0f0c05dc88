"""Errors for logs that cannot be opened, including those of delta-rs in our words."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from deltalake.exceptions import DeltaError

from coprlake.errors import ConflictError, StorageError, UnreadableTableError, UsageError
from coprlake.files import Folder
from coprlake.storage.log.panics import panics_refused
from coprlake.storage.log.protocol import FEATURE_VERSION

READER_VERSION: Final = 3
_COLOR: Final = re.compile(r"\x1b\[[0-9;]*m")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_CAUSE: Final = "\N{DOWNWARDS ARROW WITH TIP RIGHTWARDS}"


def check_name(folder: Folder) -> None:
    """Raise if delta-rs would mistake the path for another one.

    Raises:
        UsageError: it has a character that delta-rs decodes or rejects.
    """
    if folder.is_local and "%" in folder.root:  # delta-rs 1.6 decodes it once or twice, and looks elsewhere
        raise UsageError(f"{folder.root}: a table's path must not have a percent sign; choose another folder")
    if folder.is_local and "\\" in folder.root:  # delta-rs takes it for a slash, and looks elsewhere
        raise UsageError(f"{folder.root}: a table's path must not have a backslash; choose another folder")
    if folder.is_local and _CONTROL.search(folder.root):  # delta-rs rejects them, with a different error in each call
        raise UsageError(f"{folder.root!r}: a table's path must not have control characters; choose another folder")


def check_spelling(folder: Folder, fields: Sequence[pa.Field], present: pa.Schema) -> None:
    """Raise if new columns differ from existing ones only in case: Delta does not tell them apart.

    Raises:
        ConflictError: another writer has added one.
    """
    spelt = {name.lower(): name for name in present.names}
    for field in fields:
        if spelt.get(field.name.lower(), field.name) != field.name:
            raise ConflictError(
                f"{folder.uri}: another writer has added the column {spelt[field.name.lower()]}, which "
                f"Delta does not distinguish from {field.name}; nothing was committed, try again"
            )


def table_exists_error(folder: Folder) -> ConflictError:
    """The error for creating a table where there is one."""
    return ConflictError(f"{folder.uri}: there is already a table; open it instead")


def why_no_table(folder: Folder) -> str:
    """Why a folder cannot be opened as a table."""
    if not folder.exists():
        return "no such folder; `coprlake ingest FILES --into TABLE` creates a table"
    return "there is no table in this folder (no _delta_log); check the path"


def too_new(folder: Folder, found: str) -> UnreadableTableError:
    """The error for a table that needs features that we do not support."""
    return UnreadableTableError(
        folder.uri,
        section="protocol",
        expected=f"Delta reader version {READER_VERSION} and writer version {FEATURE_VERSION} at most",
        found=found,
        advice="upgrade coprlake, or read the table with the engine that wrote it",
    )


@contextmanager
def log_read_errors(folder: Folder) -> Iterator[None]:
    """Raise what delta-rs says when it cannot read the log as an error of ours."""
    try:
        with panics_refused(folder.uri):
            yield
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise StorageError(f"{folder.uri}: the table's log cannot be read; {cause_of(error)}") from error


def cause_of(error: Exception) -> str:
    """The first line of an error of delta-rs, and the last of the causes listed below it."""
    first, *rest = _COLOR.sub("", str(error)).splitlines() or [""]
    causes = [line.partition(_CAUSE)[2].strip() for line in rest if _CAUSE in line]
    return f"{first}: {causes[-1]}" if causes else first
