"""Put commits into a log on this machine: synced before they have a name, and acknowledged when the name is synced."""

import os
import time
from typing import Final

from coprlake.errors import NotFoundError, StorageError
from coprlake.files import Folder
from coprlake.storage.log.commits import commit_name

_YOUNG_SECONDS: Final = 300
"""A file that is older has long been written to disk by the operating system."""
_ALWAYS_SYNCED: Final = 10
"""So many commits are synced whatever their time is: a clock may jump."""


class CommitPublisher:
    """Writes commits of one log, and knows how far the log is on disk."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._synced_version = -1  # this one and those before it are on disk for sure

    def swap(self, version: int, data: bytes) -> bool:
        """Put a commit into the log of a table on this machine; False if somebody else has that version."""
        self.sync_to(version - 1)
        return self._folder.place(commit_name(version), data)

    def confirm(self, version: int) -> None:
        """Return when the name of a commit that was put into the log will survive a loss of power."""
        try:
            self._folder.sync_names(commit_name(version), above=self._synced_version < 0)
        except OSError as error:
            reason = str(error).partition("\n")[0]
            raise StorageError(
                f"{self._folder.uri}: version {version} is in the log, but the disk does not say that it will stay; "
                f"{reason}; check the disk, and whether the records are there before you add them again"
            ) from error
        self._synced_version = max(self._synced_version, version)

    def sync_to(self, version: int) -> None:
        """See that other writers' commits, up to this version, are on disk: ours would be worthless without them."""
        if not self._folder.is_local or version <= self._synced_version:
            return
        oldest = time.time() - _YOUNG_SECONDS
        for number in range(version, self._synced_version, -1):
            path = self._folder.path(commit_name(number))
            try:
                is_old = os.stat(path).st_mtime < oldest  # noqa: PTH116
                if is_old and number <= version - _ALWAYS_SYNCED:
                    break
            except FileNotFoundError:
                break  # cleaned away: a checkpoint has it
            self._folder.sync_file(commit_name(number))
        self._folder.sync_names(commit_name(version), above=self._synced_version < 0)
        self._synced_version = version

    def find(self, identity: str, since: int) -> int | None:
        """The version, of those from `since` on, whose commit has this id; None if there is none."""
        wanted = identity.encode()
        version = since
        while True:
            try:
                if wanted in self._folder.read(commit_name(version)):
                    return version
            except NotFoundError:
                return None
            version += 1
