"""Makes commits and vacuums of a local table take turns."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from coprlake.files import Folder, storage_error
from coprlake.storage.log.commits import LOG


@contextmanager
def held(folder: Folder, *, alone: bool) -> Iterator[None]:
    """Lock the log of a local table: commits share the lock, a vacuum holds it `alone`.

    From the moment a commit checks that its files exist until it is in the log, no vacuum removes a file, whatever the
    retention or the clock. The lock of a dead process is released.
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
