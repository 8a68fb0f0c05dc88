"""The data files that a thread has open: only a few, because a scan may read more than a process can have open."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final

OPEN_LIMIT: Final = 16
"""The number of files a thread keeps open; neighbouring batches of a search are mostly in one file."""


class OpenFiles(threading.local):
    """The files that this thread used last; a file that is evicted is closed once nothing uses it.

    Each thread has its own, because Arrow's readers are not thread-safe.
    """

    def __init__(self) -> None:
        self._files: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, opened: Callable[[], Any]) -> Any:
        """The file with this key, opened if necessary."""
        if key in self._files:
            self._files.move_to_end(key)
            return self._files[key]
        file = opened()
        self._files[key] = file
        while len(self._files) > OPEN_LIMIT:
            self._files.popitem(last=False)
        return file


OPEN_FILES: Final = OpenFiles()
