"""The text of a commit in Delta's protocol: what delta-rs would write, so that we can write it safely ourselves.

We build commits that change files here. For commits that create a table or change its columns, delta-rs makes the text
in a private folder, because it knows which protocol the columns need.
"""

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction

from coprlake import __version__
from coprlake.errors import StorageError, UsageError
from coprlake.storage.log.layouts import metadata_of
from coprlake.storage.log.protocol import FEATURE_VERSION, READER_FEATURE_VERSION

LOG: Final = "_delta_log"
NOTE: Final = "coprlake"
"""The key of our own note on what a commit did."""
IDENTITY: Final = "txnId"
"""The key of a commit's own id, as Spark names it."""
_SAFE: Final = "/!$&'()+,:;=@"
"""The characters that delta-rs does not quote in a path, besides letters, digits and ``_.-~``."""


def commit_name(number: int) -> str:
    """The name of a version's commit file."""
    return f"{LOG}/{number:020d}.json"


def path_text(name: str) -> str:
    """A data file's name as spelled in the log."""
    return quote(name, safe=_SAFE)


def add_line(action: AddAction) -> dict[str, Any]:
    """The line that adds a data file."""
    return {
        "add": {
            "path": path_text(action.path),
            "partitionValues": dict(action.partition_values),
            "size": action.size,
            "modificationTime": action.modification_time,
            "dataChange": action.data_change,
            "stats": action.stats,
        }
    }


def remove_line(
    path: str, size: int, partition: Mapping[str, str | None], *, moment: int, data_change: bool
) -> dict[str, Any]:
    """The line that removes a data file; the path is spelled as in the line that added it."""
    return {
        "remove": {
            "path": path,
            "deletionTimestamp": moment,
            "dataChange": data_change,
            "extendedFileMetadata": True,
            "partitionValues": dict(partition),
            "size": size,
        }
    }


def transaction_line(application: str, number: int) -> dict[str, Any]:
    """The line that records a step of an application."""
    return {"txn": {"appId": application, "version": number, "lastUpdated": _now()}}


def data_commit(
    lines: Sequence[Mapping[str, Any]], note: Mapping[str, Any], identity: str, partition_by: Sequence[str]
) -> bytes:
    """A whole commit that changes files.

    Args:
        lines: what it adds and removes.
        note: our note on what it does; the number of lines is added, so that a truncated commit is noticed.
        identity: a unique id.
        partition_by: the table's partition columns.
    """
    info = {
        "timestamp": _now(),
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": json.dumps(list(partition_by))},
        "engineInfo": f"coprlake/{__version__}",
        IDENTITY: identity,
        NOTE: json.dumps({**note, "lines": len(lines)}),
    }
    return _text([{"commitInfo": info}, *lines])


def create_commit(
    uri: str, schema: pa.Schema, partition_by: Sequence[str], configuration: Mapping[str, str], identity: str
) -> bytes:
    """The first commit of a table; raises delta-rs's errors."""
    with _private_folder() as folder:
        DeltaTable.create(
            folder,
            Schema.from_arrow(schema),
            mode="error",
            partition_by=list(partition_by),
            configuration=dict(configuration),
            raise_if_key_not_exists=False,
        )
        return _reworded(Path(folder, commit_name(0)), identity, uri)


def columns_commit(table: DeltaTable, fields: pa.Schema, identity: str) -> bytes:
    """The commit that adds columns to a table of this version; raises delta-rs's errors."""
    protocol = table.protocol()
    versions: dict[str, Any] = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
    }
    if protocol.min_reader_version >= READER_FEATURE_VERSION:  # delta-rs gives an empty list as None
        versions["readerFeatures"] = protocol.reader_features or []
    if protocol.min_writer_version >= FEATURE_VERSION:
        versions["writerFeatures"] = protocol.writer_features or []
    with _private_folder() as folder:
        Path(folder, LOG).mkdir()
        Path(folder, commit_name(0)).write_bytes(_text([{"protocol": versions}, {"metaData": metadata_of(table)}]))
        DeltaTable(folder).alter.add_columns(Schema.from_arrow(fields).fields)
        return _reworded(Path(folder, commit_name(1)), identity)


@contextmanager
def _private_folder() -> Iterator[str]:
    try:
        with tempfile.TemporaryDirectory(prefix="coprlake-log-") as folder:
            yield folder
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"{tempfile.gettempdir()}: a commit could not be prepared; {error.strerror or error}; free some space there"
        ) from error


def _reworded(file: Path, identity: str, uri: str | None = None) -> bytes:
    """A commit of delta-rs with our id, and with the table's location instead of the private folder's."""
    lines = [json.loads(line) for line in file.read_text().splitlines() if line]
    for line in lines:
        info = line.get("commitInfo")
        if info is not None:
            info[IDENTITY] = identity
            if uri is not None:
                info["operationParameters"]["location"] = f"{Path(uri).as_uri()}/"
    return _text(lines)


def _text(lines: Sequence[Mapping[str, Any]]) -> bytes:
    text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
    try:
        return text.encode()
    except UnicodeEncodeError as error:  # a lone surrogate: no reader would accept the log after that
        raise UsageError(f"{text[error.start - 20 : error.end]!r}: not valid Unicode; nothing was committed") from error


def _now() -> int:
    return int(time.time() * 1000)
