"""The data files that a thread has open: a few, because a scan may go through more than a process may have."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final

OPEN_LIMIT: Final = 16
"""Files a thread keeps open; neighbouring batches of a search are mostly of one file."""


class OpenFiles(threading.local):
    """The files that this thread used last; one that is pushed out is closed when nothing uses it any more.

    Each thread has its own: Arrow's readers are for one thread.
    """

    def __init__(self) -> None:
        self._files: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, opened: Callable[[], Any]) -> Any:
        """The file of this key, which is opened if it is not."""
        if key in self._files:
            self._files.move_to_end(key)
            return self._files[key]
        file = opened()
        self._files[key] = file
        while len(self._files) > OPEN_LIMIT:
            self._files.popitem(last=False)
        return file


OPEN_FILES: Final = OpenFiles()
