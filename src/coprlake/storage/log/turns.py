"""Commits and a vacuum of a table on this machine take turns."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from coprlake.files import Folder, storage_error
from coprlake.storage.log.commits import LOG


@contextmanager
def held(folder: Folder, *, alone: bool) -> Iterator[None]:
    """Hold the log of a table on this machine: commits hold it together, a vacuum `alone`.

    Between the moment at which a commit sees that its files are there and the moment at which it is in the log, no
    vacuum removes a file, whatever the retention is and whatever the clock says. A dead process holds nothing.
    """
    if not folder.is_local:
        yield
        return
    try:
        descriptor = os.open(folder.path(LOG), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise storage_error(folder.path(LOG), error) from error
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)
