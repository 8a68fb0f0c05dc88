"""Removes files that are no longer needed: old versions, and leftovers of interrupted writers."""

import re
import time
from dataclasses import dataclass, field
from typing import Final

from coprlake.config import VACUUM_HOURS
from coprlake.files import FileEntry
from coprlake.segment.sidecar import FOLDER, data_name_of
from coprlake.storage.ledger import LEDGER_FOLDER, Ledger
from coprlake.storage.log.commits import LOG
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.summary import Report

_UNFINISHED: Final = re.compile(rf"{LOG}/\.(\d{{20}}\.json|_last_checkpoint)\.[0-9a-f]{{32}}\.tmp")
"""The unfinished commit of a killed writer."""
_LEDGER_NS: Final = 24 * 3600 * 10**9
"""How long a page of the list of ingested files stays that no commit names yet, whatever the retention."""
STREAMS_FOLDER: Final = f"{FOLDER}/streams"
"""The default folder for checkpoints of streams."""


@dataclass(repr=False)
class VacuumReport(Report):
    """What `vacuum` removed, or would remove."""

    always_shown = ("dry_run", "bytes")

    dry_run: bool
    data_files: list[str] = field(default_factory=list)
    sidecars: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    bytes: int = 0


def vacuum(log: DeltaLog, *, retention_hours: float = VACUUM_HOURS, dry_run: bool = False) -> VacuumReport:
    """Delete what no version of the last `retention_hours` needs: data files, sidecars, leftovers of killed writers.

    Never touches younger files, which a writer may be about to commit, nor files behind symbolic links, which may be
    outside the table.

    Raises:
        UnreadableTableError: a commit or checkpoint is damaged, and may name files that nothing else does.
    """
    report = VacuumReport(dry_run)
    sizes = {entry.name: entry.size_bytes for entry in log.folder.list()}
    named = log.vacuum(retention_hours, dry_run=dry_run)
    report.data_files = [name for name in named if name in sizes]  # delta-rs also lists files removed long ago
    report.bytes = sum(sizes.get(name, 0) for name in report.data_files)
    gone = set(report.data_files)
    youngest_ns = time.time_ns() - int(retention_hours * 3600e9)
    ledger = Ledger(log)
    for entry in log.folder.list(FOLDER):
        if entry.name.startswith(f"{LEDGER_FOLDER}/"):
            if ledger.problem is None and entry.name not in ledger.live_names():
                _remove(log, entry, report, report.leftovers, min(youngest_ns, time.time_ns() - _LEDGER_NS))
            continue  # or files would be ingested twice
        if entry.name.startswith(f"{STREAMS_FOLDER}/"):
            continue  # a stream that pauses for a month continues where it was
        data_name = data_name_of(entry.name)
        if data_name is None:
            _remove(log, entry, report, report.leftovers, youngest_ns)
        elif data_name in gone or not log.folder.exists(data_name):
            _remove(log, entry, report, report.sidecars, youngest_ns if data_name not in gone else time.time_ns())
    for entry in log.folder.list(LOG):
        if _UNFINISHED.fullmatch(entry.name):
            _remove(log, entry, report, report.leftovers, youngest_ns)
    return report


def _remove(log: DeltaLog, entry: FileEntry, report: VacuumReport, names: list[str], youngest_ns: int) -> None:
    if entry.modified_ns > youngest_ns or not log.folder.holds(entry.name):
        return
    names.append(entry.name)
    report.bytes += entry.size_bytes
    if not report.dry_run:
        log.folder.remove(entry.name)
