"""Progress of running tasks: each task keeps a small file beside the table, which the driver reads while it waits.

Spark reports a task's counters only when the task is over, which is too late. The table's folder is within reach of all
processes on any cluster.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from coprlake.errors import CoprlakeError
from coprlake.files import UNFINISHED, Folder
from coprlake.segment.sidecar import FOLDER

INTERVAL_SECONDS: Final = 1.0


class Done(NamedTuple):
    """The work that all tasks have done so far."""

    rows: int = 0
    bytes: int = 0


JobProgress = Callable[[Done], None]


class TaskProgress:
    """In a task: counts rows and bytes, and writes the counts to a file, at first at once and then once a second."""

    def __init__(self, uri: str, job: str, task: int) -> None:
        self._folder = Folder.of(uri)
        self._name = f"{_folder_of(job)}/{task}"
        self._rows = self._bytes = 0
        self._last = time.monotonic() - INTERVAL_SECONDS

    def __call__(self, rows: int, size: int) -> None:
        """Add to the counts."""
        self._rows += rows
        self._bytes += size
        if time.monotonic() - self._last < INTERVAL_SECONDS:
            return
        self._last = time.monotonic()
        with suppress(CoprlakeError, OSError):  # others tell of a full disk
            self._folder.write(self._name, [json.dumps([self._rows, self._bytes]).encode()], synced=False)


def _folder_of(job: str) -> str:
    return f"{FOLDER}/progress/{job}"


@contextmanager
def watching(uri: str, job: str, progress: JobProgress | None) -> Iterator[None]:
    """On the driver: call `progress` periodically with the tasks' counts, and remove their files at the end."""
    folder = Folder.of(uri)
    if progress is None:
        try:
            yield
        finally:
            _remove(folder, job)
        return
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(folder, job, progress, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        _remove(folder, job)


def _watch(folder: Folder, job: str, progress: JobProgress, over: threading.Event) -> None:
    is_over = False
    while not is_over:
        is_over = over.wait(INTERVAL_SECONDS / 2)  # then look once more: a short job may have begun and ended meanwhile
        with suppress(CoprlakeError, OSError):  # the next read may succeed
            names = [entry.name for entry in folder.list(_folder_of(job)) if not entry.name.endswith(UNFINISHED)]
            done = [_counts(folder, name) for name in names]
            progress(Done(sum(own.rows for own in done), sum(own.bytes for own in done)))


def _counts(folder: Folder, name: str) -> Done:
    """Read the counts of one task; zeros if the file is gone, half written or not valid."""
    with suppress(CoprlakeError, OSError, ValueError):
        own = json.loads(folder.read(name))
        if isinstance(own, list) and len(own) == 2 and all(type(number) is int for number in own):
            return Done(*own)
    return Done()


def _remove(folder: Folder, job: str) -> None:
    with suppress(CoprlakeError, OSError):
        if folder.exists(_folder_of(job)):
            folder.filesystem.delete_dir(folder.path(_folder_of(job)))
