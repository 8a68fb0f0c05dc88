"""Whether a table may be read here, and whether a change to it is allowed, by its protocol and its properties."""

from typing import Final

import pyarrow as pa
from deltalake import DeltaTable

from coprlake.files import Folder
from coprlake.storage.log import features
from coprlake.storage.log.protocol import Change, Rules, check_change, unknown_features
from coprlake.storage.log.refusals import READER_VERSION, log_read_errors, too_new

READER_FEATURES: Final = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors"})


def check_readable(table: DeltaTable, folder: Folder) -> None:
    """Refuse a table that a reader must know more about than is known here.

    Raises:
        UnreadableTableError: its protocol is newer, its columns are mapped, or records are deleted by vectors.
    """
    protocol, configuration = table.protocol(), dict(table.metadata().configuration)
    is_mapped = configuration.get("delta.columnMapping.mode", "none").lower() != "none"
    needed = set(protocol.reader_features or ())
    unknown = needed - READER_FEATURES - (set() if is_mapped else {"columnMapping"})
    if protocol.min_reader_version > READER_VERSION or unknown:
        found = f"reader version {protocol.min_reader_version} {', '.join(sorted(unknown))}".strip()
        raise too_new(folder, found)
    if is_mapped:
        raise too_new(folder, "columns that are mapped to other names")
    if "deletionVectors" in needed and _has_deletion_vectors(table, folder):
        raise too_new(folder, "deletion vectors: run REORG TABLE ... APPLY (PURGE) in Spark first")
    features.check_readable(folder.uri, configuration)


def _has_deletion_vectors(table: DeltaTable, folder: Folder) -> bool:
    with log_read_errors(folder):
        return bool(pa.RecordBatchReader.from_stream(table.deletion_vectors()).read_all().num_rows)


def check_writable(table: DeltaTable, folder: Folder, change: Change) -> None:
    """Refuse a change that the table's protocol or one of its rules forbids; see `protocol`.

    Raises:
        UnreadableTableError: a writer must understand something that is not understood here.
        UsageError: a rule of the table forbids it, or cannot be kept here.
    """
    protocol, configuration = table.protocol(), dict(table.metadata().configuration)
    features.check_writable(folder.uri, configuration)
    names = protocol.writer_features or ()
    rules = Rules(protocol.min_writer_version, names, configuration, table.schema().to_json())
    unknown = unknown_features(rules)
    if unknown:
        raise too_new(folder, f"writer features {', '.join(unknown)}")
    check_change(folder.uri, rules, change)
