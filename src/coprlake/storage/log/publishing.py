"""Puts commits into a local log: synced before they get their name, and acknowledged when the name is synced."""

import os
import time
from typing import Final

from coprlake.errors import NotFoundError, StorageError
from coprlake.files import Folder
from coprlake.storage.log.commits import commit_name

_YOUNG_SECONDS: Final = 300
"""The operating system has long written older files to disk."""
_ALWAYS_SYNCED: Final = 10
"""The number of newest commits that are synced whatever their time: a clock may jump."""


class CommitPublisher:
    """Writes the commits of one log, and tracks up to which version it is on disk."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._synced_version = -1  # this version and all before it are certainly on disk

    def swap(self, version: int, data: bytes) -> bool:
        """Put a commit into the log of a local table; False if another writer has taken that version."""
        self.sync_to(version - 1)
        return self._folder.place(commit_name(version), data)

    def confirm(self, version: int) -> None:
        """Wait until the name of a commit in the log will survive a power loss."""
        try:
            self._folder.sync_names(commit_name(version), above=self._synced_version < 0)
        except OSError as error:
            reason = str(error).partition("\n")[0]
            raise StorageError(
                f"{self._folder.uri}: version {version} is in the log, but the disk did not confirm it; "
                f"{reason}; check the disk, and whether the records are there before you add them again"
            ) from error
        self._synced_version = max(self._synced_version, version)

    def sync_to(self, version: int) -> None:
        """Ensure that other writers' commits up to this version are on disk: without them ours would be worthless."""
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
                break  # removed: a checkpoint has it
            self._folder.sync_file(commit_name(number))
        self._folder.sync_names(commit_name(version), above=self._synced_version < 0)
        self._synced_version = version

    def find(self, identity: str, since: int) -> int | None:
        """The first version from `since` on whose commit has this id; None if there is none."""
        wanted = identity.encode()
        version = since
        while True:
            try:
                if wanted in self._folder.read(commit_name(version)):
                    return version
            except NotFoundError:
                return None
            version += 1
