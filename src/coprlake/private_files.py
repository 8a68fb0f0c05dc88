"""Files of the user's cache that are run or trusted: only this user, or root, can have written them.

They have a folder of their own that nobody else can write to. Both are checked through open descriptors, so what was
checked is what is read, and a symbolic link in place of the file is not followed.
"""

import os
import stat
from pathlib import Path

from coprlake.config import cache_folder


def private_folder() -> Path:
    """The folder in the cache for such files; it need not be there.

    Raises:
        OSError: the user that `COPRLAKE_CACHE` names has no home.
    """
    try:
        return cache_folder() / "private"
    except RuntimeError as error:
        raise FileNotFoundError(str(error)) from error


def make_private(folder: Path) -> None:
    """Create the folder if it is missing.

    Raises:
        PermissionError: others can write to it.
        OSError: it cannot be created.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    os.close(_opened_folder(folder))


def read_private(file: Path) -> bytes:
    """The content of a file.

    Raises:
        PermissionError: somebody else owns or can write to the file or its folder.
        OSError: it cannot be read, or is a symbolic link.
    """
    folder = _opened_folder(file.parent)
    try:
        opened = os.open(file.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(opened, "rb") as source:
        _check(opened, file)
        return source.read()


def replace_file(file: Path, content: bytes) -> None:
    """Write a file whole or not at all. Others may read it.

    Raises:
        OSError: it cannot be written.
    """
    import tempfile  # every command imports this module, and few write

    descriptor, name = tempfile.mkstemp(prefix=f"{file.name}.", suffix=".tmp", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as out:
            os.fchmod(descriptor, 0o644)
            out.write(content)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _opened_folder(folder: Path) -> int:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _check(opened, folder)
    except BaseException:
        os.close(opened)
        raise
    return opened


def _check(opened: int, path: Path) -> None:
    found = os.fstat(opened)
    if found.st_uid not in (os.geteuid(), 0) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{path} is not used: it belongs to another user, or others can write to it")
