"""Checkpoints of a log on this machine: made beside the log, and given their names when they are on disk.

delta-rs writes a checkpoint without syncing it, and then a file that points to it. After a loss of power the pointer
may lead to half a checkpoint, and no reader opens the table any more. So delta-rs works in a folder that holds links to
the log's files, and what it made there joins the log in a safe order: the checkpoint, then the pointer.
"""

import json
import os
import re
import shutil
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from deltalake import DeltaTable

from coprlake import files
from coprlake.files import LOG_UNFINISHED, Folder, written_aside
from coprlake.segment.sidecar import FOLDER
from coprlake.storage.log.commits import LOG

POINTER: Final = "_last_checkpoint"
CHECKPOINT_INTERVAL: Final = 100
"""Commits from one checkpoint to the next, unless the table says otherwise; as in delta-rs."""
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(
    r"(\d{20})\.checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.[0-9a-fA-F-]{36})?\.(?:parquet|json)"
)


class LogNames(NamedTuple):
    """The files of a log, by what they are."""

    commits: dict[int, str]
    checkpoints: dict[int, list[str]]
    """Only complete ones: a checkpoint in several parts has all of them."""

    @classmethod
    def of(cls, names: list[str]) -> "LogNames":
        """Sort the names of a log's files."""
        commits: dict[int, str] = {}
        parts: dict[tuple[int, str], list[str]] = {}
        for name in sorted(names):
            if commit := _COMMIT.fullmatch(name):
                commits[int(commit[1])] = name
            elif found := _CHECKPOINT.fullmatch(name):
                key = found["parts"] or name
                parts.setdefault((int(found[1]), key), []).append(name)
        checkpoints: dict[int, list[str]] = {}
        for (number, key), own in parts.items():
            if not key.isdigit() or len(own) == int(key):
                checkpoints.setdefault(number, []).extend(own)
        return cls(commits, checkpoints)


def names_in(folder: Folder) -> LogNames:
    """The files of a log on this machine."""
    try:
        return LogNames.of(os.listdir(folder.path(LOG)))  # noqa: PTH208
    except FileNotFoundError:
        return LogNames({}, {})


def newest_checkpoint(folder: Folder, names: LogNames, *, before: int = sys.maxsize) -> int:
    """The version of the newest checkpoint of which no part is empty; -1 if there is none."""
    log = Path(folder.path(LOG))
    whole = (number for number, own in names.checkpoints.items() if all((log / name).stat().st_size for name in own))
    return max((number for number in whole if number < before), default=-1)


def checkpoint_interval(configuration: Mapping[str, str]) -> int:
    """Commits from one checkpoint to the next, by the properties of a table."""
    try:
        interval = int(configuration.get("delta.checkpointInterval", CHECKPOINT_INTERVAL))
    except ValueError:
        return CHECKPOINT_INTERVAL
    return interval if interval > 0 else sys.maxsize


def write_checkpoint(folder: Folder, version: int) -> None:
    """Make the checkpoint of a version; raises the errors of delta-rs and of the file system."""
    log = Path(folder.path(LOG))
    private = Path(folder.path(f"{FOLDER}/checkpoint-{uuid.uuid4().hex}"))
    own_log = private / LOG
    try:
        linked = _link_log(folder, own_log, version)
        DeltaTable(str(private), version=version).create_checkpoint()
        made = sorted(
            path.relative_to(own_log).as_posix()
            for path in own_log.rglob("*")
            if path.is_file() and path.relative_to(own_log).as_posix() not in linked
        )
        made.sort(key=lambda name: "/" not in name)  # what others refer to comes first
        for name in made:
            if name != POINTER:
                files.sync_path(str(own_log / name))
                (log / name).parent.mkdir(exist_ok=True)
                (own_log / name).replace(log / name)  # over one that was cut short, too
                folder.sync_names(f"{LOG}/{name}")
        pointer = (own_log / POINTER).read_bytes()
    finally:
        shutil.rmtree(private, ignore_errors=True)
    if _pointed(log) < version:
        with written_aside(str(log / POINTER), ending=LOG_UNFINISHED) as unfinished:
            Path(unfinished).write_bytes(pointer)
        folder.sync_names(f"{LOG}/{POINTER}")


def _link_log(folder: Folder, own_log: Path, version: int) -> set[str]:
    """Give a private log what it takes to read a version; returns the names."""
    log = Path(folder.path(LOG))
    own_log.mkdir(parents=True)
    names = names_in(folder)
    start = newest_checkpoint(folder, names, before=version)
    wanted = [name for number, name in names.commits.items() if start <= number <= version]
    wanted += names.checkpoints.get(start, [])
    beside = log / "_sidecars"
    if beside.is_dir():
        (own_log / "_sidecars").mkdir()
        wanted += [f"_sidecars/{path.name}" for path in beside.iterdir()]
    for name in wanted:
        os.link(log / name, own_log / name)
    return set(wanted)


def _pointed(log: Path) -> int:
    """The version that the pointer leads to; -1 if it leads nowhere."""
    try:
        return int(json.loads((log / POINTER).read_bytes())["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return -1
