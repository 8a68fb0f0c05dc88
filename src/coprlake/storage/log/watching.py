"""Whether a log has changed, for the price of one look at its folder."""

import os
import time
from typing import Final

from coprlake.files import Folder
from coprlake.storage.log.commits import LOG

_FRESH_NS: Final = 100_000_000


class LogWatch:
    """Watches the folder of a log, if it is on this machine."""

    def __init__(self, folder: Folder) -> None:
        self._path = folder.path(LOG) if folder.is_local else None

    def state(self, last: int | None) -> int | None:
        """Return a number that changes with every commit; None where only asking the log tells.

        The time of a folder is coarse: two commits in one tick look like one, so a fresh time that differs from the
        `last` state is not trusted.
        """
        if self._path is None:
            return None
        try:
            changed = os.stat(self._path).st_mtime_ns  # noqa: PTH116 (called for every search)
        except OSError:
            return None
        return changed if changed == last or time.time_ns() - changed > _FRESH_NS else None
