"""Checks a table's log: if a writer does not sync, a power loss may truncate a commit that it reported as done.

An empty commit is the worst case: every Delta reader takes it for a commit that did nothing.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from coprlake.errors import CoprlakeError, NotFoundError, UnreadableTableError
from coprlake.files import FileEntry, Folder
from coprlake.storage.log.checkpointing import POINTER, LogNames, names_in, newest_checkpoint
from coprlake.storage.log.commits import LOG, NOTE, commit_name, path_text

_READ_COMMITS: Final = 100
"""The number of newest commits that are read when a table is opened."""
_LINES: Final = re.compile(rb'\\"lines\\": ?(\d+)\}"')
"""The number of lines after the first, in the note of one of our commits."""


def log_problems(folder: Folder, *, read: bool = True) -> list[UnreadableTableError]:
    """All problems with the files of a log: empty, truncated or missing files, or a pointer to nothing.

    Args:
        folder: the table's folder.
        read: False to check only names and sizes.
    """
    sizes = {entry.name.removeprefix(f"{LOG}/"): entry for entry in folder.list(LOG)}
    names = LogNames.of([name for name in sizes if "/" not in name])
    problems = [*_commit_problems(folder, names, sizes, read=read)]
    broken = dict(_broken_checkpoints(folder, names, sizes, read=read))
    whole = [number for number, own in names.checkpoints.items() if not broken.keys() & set(own)]
    problems += [
        _problem(folder, name, "a whole checkpoint", what, _checkpoint_advice(folder, names, whole, name))
        for name, what in broken.items()
    ]
    problems += _pointer_problems(folder, names, whole, sizes)
    return problems + _gaps(folder, names, whole)


def damaged_commits(folder: Folder, numbers: Iterable[int] | None = None) -> dict[int, str]:
    """The commits on this machine that are empty, or truncated at the end of a line, and what is wrong with each.

    Nothing else notices these: to a Delta reader the commit simply did less. This checks the sizes of all commits, and
    reads the newest ones since the last checkpoint, at most as many as slow down opening by a millisecond.

    Args:
        folder: the table's folder.
        numbers: the versions to check; by default all in the log, because another writer may have made a checkpoint
            on top of a damaged commit without noticing.
    """
    last = -1
    if numbers is None:
        names = names_in(folder)
        last = max(names.checkpoints, default=-1)
        numbers = names.commits
    chosen = sorted(numbers)
    start = max([last + 1, *chosen[-_READ_COMMITS:][:1]])
    faults = ((number, commit_damage(folder, number, read=number >= start)) for number in chosen)
    return {number: what for number, what in faults if what}


def commit_damage(folder: Folder, number: int, *, read: bool = True) -> str | None:
    """What is wrong with a local commit, as far as `damaged_commits` checks; None if nothing is, or it is gone."""
    path = folder.path(commit_name(number))
    try:
        if os.stat(path).st_size == 0:  # noqa: PTH116
            return "an empty file"
        if not read:
            return None
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            data = file.read()
    except OSError:
        return None
    told = _LINES.search(data.partition(b"\n")[0])  # our note is on the first line
    if told is None or int(told[1]) + 1 == data.count(b"\n"):
        return None
    return _commit_fault(data)


def may_be_condensed(folder: Folder) -> bool:
    """Whether all commits of a local log since its newest checkpoint are undamaged; this reads them.

    A checkpoint replaces all commits before it: made on top of a damaged one, it would hide the loss for good.
    """
    names = names_in(folder)
    last = newest_checkpoint(folder, names)
    recent = (name for number, name in names.commits.items() if number > last)
    return not any(_unless_gone(partial(_commit_file_fault, folder, name)) for name in recent)


def damaged_commit(folder: Folder, number: int, what: str) -> UnreadableTableError:
    """The error for a commit that `damaged_commits` found, and what to do."""
    return _commit_problem(folder, number, what, names_in(folder))


def _commit_problems(
    folder: Folder, names: LogNames, sizes: dict[str, FileEntry], *, read: bool
) -> Iterator[UnreadableTableError]:
    for number, name in sorted(names.commits.items()):
        if sizes[name].size_bytes == 0:
            yield _commit_problem(folder, number, "an empty file", names)
        elif read and (what := _unless_gone(partial(_commit_file_fault, folder, name))):
            yield _commit_problem(folder, number, what, names)


def _commit_file_fault(folder: Folder, name: str) -> str | None:
    return _commit_fault(_bytes(folder, name))


def _commit_fault(data: bytes) -> str | None:
    """What is wrong with the text of a commit."""
    lines: list[Any] = []
    for number, line in enumerate(data.split(b"\n")):
        if not line.strip():
            continue
        try:
            lines.append(json.loads(line))
        except ValueError:
            return f"line {number + 1} cut short or damaged"
        if not isinstance(lines[-1], dict):
            return f"line {number + 1} that is not an action"
    if not lines:
        return "nothing but blanks"
    notes = [line["commitInfo"].get(NOTE) for line in lines if isinstance(line.get("commitInfo"), dict)]
    try:
        told = next((json.loads(note).get("lines") for note in notes if note), None)
    except (ValueError, AttributeError, TypeError):
        return "a note of ours that is damaged"
    if isinstance(told, int) and told != len(lines) - 1:
        return f"{len(lines) - 1} of {told} actions"
    return None


def _broken_checkpoints(
    folder: Folder, names: LogNames, sizes: dict[str, FileEntry], *, read: bool
) -> Iterator[tuple[str, str]]:
    """The damaged files of checkpoints; reads the newest checkpoint completely, and only the footers of others."""
    newest = max(names.checkpoints, default=-1)
    own = [(name, number == newest) for number, found in names.checkpoints.items() for name in found]
    beside = [(name, False) for name in sizes if name.startswith("_sidecars/") and name.endswith(".parquet")]
    for name, whole in [*own, *beside]:
        if sizes[name].size_bytes == 0:
            yield name, "an empty file"
        elif read and (what := _unless_gone(partial(_checkpoint_fault, folder, name, whole))):
            yield name, what


def _checkpoint_fault(folder: Folder, name: str, whole: bool) -> str | None:
    if name.endswith(".json"):
        return _commit_file_fault(folder, name)
    try:
        # not mapped: it may be another writer's, and may be replaced while we read it
        with folder.filesystem.open_input_file(folder.path(f"{LOG}/{name}")) as source, pq.ParquetFile(source) as file:
            for group in range(file.metadata.num_row_groups if whole else 0):
                file.read_row_group(group)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, ValueError) as error:
        return f"a file that is not readable Parquet ({str(error).partition(chr(10))[0]})"
    return None


def _pointer_problems(
    folder: Folder, names: LogNames, whole: list[int], sizes: dict[str, FileEntry]
) -> list[UnreadableTableError]:
    if POINTER not in sizes:
        return []
    advice = f"remove {folder.path(LOG)}/{POINTER}: readers find the checkpoints without it"
    if not _is_readable(names, whole):
        advice = "restore the checkpoint from a backup"
    try:
        number = int(json.loads(_bytes(folder, POINTER))["version"])
    except NotFoundError:
        return []
    except (ValueError, KeyError, TypeError):
        return [_problem(folder, POINTER, "the version of a checkpoint", "an empty or damaged file", advice)]
    if number in names.checkpoints:
        return []
    return [_problem(folder, POINTER, f"the checkpoint of version {number}", "no such file", advice)]


def _gaps(folder: Folder, names: LogNames, whole: list[int]) -> list[UnreadableTableError]:
    """The missing commits among those that a reader needs."""
    start = max(whole, default=-1)
    needed = [number for number in names.commits if number > start]
    missing = [number for number in range(start + 1, max(needed, default=start) + 1) if number not in names.commits]
    if len(missing) > 10:
        found = f"no such file, nor {len(missing) - 1} others up to version {missing[-1]}"
        name = commit_name(missing[0]).removeprefix(f"{LOG}/")
        return [_problem(folder, name, "a whole commit", found, "restore them, or a checkpoint, from a backup")]
    return [_commit_problem(folder, number, "no such file", names) for number in missing]


def _is_readable(names: LogNames, whole: list[int]) -> bool:
    """Whether the newest version can be read from the commits and the undamaged checkpoints."""
    start = max(whole, default=-1)
    last = max(names.commits, default=-1)
    return (bool(whole) or 0 in names.commits) and all(n in names.commits for n in range(start + 1, last + 1))


def _checkpoint_advice(folder: Folder, names: LogNames, whole: list[int], name: str) -> str:
    if _is_readable(names, whole):
        log = folder.path(LOG)
        return f"remove it and {log}/{POINTER}: the commits give the same"
    return "restore it from a backup: the commits that it replaces are gone"


def _commit_problem(folder: Folder, number: int, what: str, names: LogNames) -> UnreadableTableError:
    if number == 0:
        advice = (
            "restore it from a backup; if nothing was ever written to this table, remove the folder _delta_log and "
            "create the table again"
        )
    else:
        advice = (
            f"{_restoring(folder, number, names)}, or, to continue without the records or columns of that commit, "
            """write {"commitInfo":{}} into it"""
        )
    return _problem(folder, commit_name(number).removeprefix(f"{LOG}/"), "a whole commit", what, advice)


def _restoring(folder: Folder, number: int, names: LogNames) -> str:
    """How to restore the records of a commit: a later checkpoint may have been made without them."""
    later = [checkpoint for checkpoint in names.checkpoints if checkpoint >= number]
    if not later:
        return "restore it from a backup"
    start = max((checkpoint for checkpoint in names.checkpoints if checkpoint < number), default=-1)
    if all(needed in names.commits for needed in range(start + 1, max(names.commits) + 1)):
        log = folder.path(LOG)
        return f"restore it from a backup and remove {log}/{POINTER} and the checkpoints of version {number} and later"
    return f"restore it and the checkpoints of version {number} and later from a backup"


def _problem(folder: Folder, name: str, expected: str, found: str, advice: str) -> UnreadableTableError:
    return UnreadableTableError(
        folder.path(f"{LOG}/{name}"), section="log", expected=expected, found=found, advice=advice
    )


def _bytes(folder: Folder, name: str) -> bytes:
    return folder.read(f"{LOG}/{name}")


def _unless_gone(check: Callable[[], str | None]) -> str | None:
    """The result of a check; None if a writer has removed the file in the meantime."""
    try:
        return check()
    except FileNotFoundError:
        return None
    except CoprlakeError as error:
        return str(error)
    except OSError as error:
        return f"a file that cannot be read ({error.strerror or error})"


def check_whole(folder: Folder) -> None:
    """Raise if a commit or checkpoint is damaged: it may be the only one that names a file, so none may be removed.

    Raises:
        UnreadableTableError: a commit or checkpoint is damaged.
    """
    for problem in log_problems(folder, read=folder.is_local):
        if not problem.file.endswith(POINTER):
            raise UnreadableTableError(
                problem.file,
                section=problem.section,
                expected=problem.expected,
                found=f"{problem.found}, which may name files that nothing else does: none was removed",
                advice=problem.advice,
            )


def is_named(folder: Folder, name: str, version: int) -> bool:
    """Whether a commit up to this version, made since a data file was written, names it: old versions may need it."""
    entry = folder.entry(name)
    if entry is None:
        return False
    wanted = path_text(name.rpartition("/")[2]).encode()
    for number in range(version, -1, -1):
        commit = folder.entry(commit_name(number))
        if commit is None or commit.modified_ns < entry.modified_ns:
            return False
        if wanted in folder.read(commit_name(number)):
            return True
    return False
