"""All access to the files of a table: one folder on any file system that pyarrow knows.

Names are relative to the folder and use ``/``. Data files are read at positions; only sidecars may be mapped
(`coprlake.unchanging`). Nothing is ever changed in place: a file is written whole, or streamed to a name that nobody
knows yet.
"""

import fcntl
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
from pyarrow import fs

from coprlake.errors import CoprlakeError, NotFoundError, StorageError, UsageError
from coprlake.unchanging import unchanging_bytes

UNFINISHED: Final = ".unfinished"
"""How the name of a file ends that is still being written."""

LOG_UNFINISHED: Final = ".tmp"
"""The same for a file of the log; readers of Delta tables pass over it."""


READ_ERRORS: Final = (OSError, pa.ArrowException, UnicodeDecodeError)
"""What Arrow raises for a damaged Parquet file; the last is for names of columns that are not UTF-8."""


class FileEntry(NamedTuple):
    """One file of a listing."""

    name: str
    size_bytes: int
    modified_ns: int


class Folder:
    """A folder, local or in an object store."""

    def __init__(self, filesystem: fs.FileSystem, root: str, uri: str) -> None:
        self.filesystem = filesystem
        self.root = root.rstrip("/") or "/"
        self.uri = uri
        self.is_local = isinstance(filesystem, fs.LocalFileSystem)

    @classmethod
    def of(cls, uri: str | os.PathLike[str]) -> "Folder":
        """The folder at a path or URI; it need not be there yet."""
        text = os.fspath(uri)
        if not text:
            raise UsageError("the table's path is empty; name a folder, such as ./logs")
        if text.startswith("file:/") and not text.startswith("file://"):
            text = f"file://{text[5:]}"  # as Hadoop writes it
        if "://" not in text:
            path = str(Path(text).absolute())
            return cls(fs.LocalFileSystem(), path, path)
        try:
            filesystem, root = fs.FileSystem.from_uri(text)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise UsageError(f"{text}: cannot be opened as a folder; {_first_line(error)}") from error
        return cls(filesystem, root, root if isinstance(filesystem, fs.LocalFileSystem) else text)

    def __repr__(self) -> str:
        return f"Folder({self.uri!r})"

    def path(self, name: str) -> str:
        """The file's path on its file system."""
        return f"{self.root}/{name}" if name else self.root

    def exists(self, name: str = "") -> bool:
        """Whether there is a file or folder of this name."""
        return bool(self._info(name).type != fs.FileType.NotFound)

    def entry(self, name: str) -> FileEntry | None:
        """Size and time of one file, None if there is none."""
        info = self._info(name)
        return None if info.type != fs.FileType.File else FileEntry(name, info.size or 0, info.mtime_ns or 0)

    def list(self, under: str = "") -> list[FileEntry]:
        """All files in this folder and the folders below, by name; none if there is no such folder.

        Symbolic links to folders are followed, except back to a folder above them.
        """
        if self.is_local:
            with _storage_errors(self.path(under)):
                return sorted(_files_below(self.path(under), f"{under.rstrip('/')}/" if under else "", frozenset()))
        selector = fs.FileSelector(self.path(under), allow_not_found=True, recursive=True)
        with _storage_errors(self.path(under)):
            found = self.filesystem.get_file_info(selector)
        start = len(self.root.rstrip("/")) + 1
        files = [info for info in found if info.type == fs.FileType.File]
        return sorted(FileEntry(info.path[start:], info.size or 0, info.mtime_ns or 0) for info in files)

    def open(self, name: str) -> pa.NativeFile:
        """A file to read at random, at positions: whoever changes it meanwhile spoils what is read, not the process."""
        with _storage_errors(self.path(name)):
            if self.is_local:
                return pa.OSFile(self.path(name))  # has a descriptor to ask about the file that is open
            return self.filesystem.open_input_file(self.path(name))

    def read(self, name: str) -> bytes:
        """The bytes of a small file, as they are now."""
        with _storage_errors(self.path(name)), self.filesystem.open_input_file(self.path(name)) as file:
            return bytes(file.read())

    def data(self, name: str, *, may_copy: bool = True) -> memoryview:
        """The bytes of a whole file that nobody writes into (`coprlake.unchanging`): a copy, or mapped.

        Neither takes a descriptor: a table may have more sidecars than a process may have open files.
        """
        with _storage_errors(self.path(name)):
            if not self.is_local:
                with self.filesystem.open_input_file(self.path(name)) as file:
                    return memoryview(file.readall())
            return unchanging_bytes(self.path(name), may_copy=may_copy)

    def create(self, name: str) -> pa.NativeFile:
        """A new file to write from its beginning; the folders above it are made."""
        with _storage_errors(self.path(name)):
            parent = self.path(name).rpartition("/")[0]
            self.filesystem.create_dir(parent, recursive=True)
            return self.filesystem.open_output_stream(self.path(name), compression=None)

    def write(self, name: str, pieces: Iterable[bytes], *, synced: bool = True) -> None:
        """Write a small file whole; a reader sees the old one, the new one or none, never a part.

        Args:
            name: the file; the folders above it are made.
            pieces: its bytes.
            synced: False for what nobody misses after a loss of power.
        """
        with _storage_errors(self.path(name)), self._aside(name, synced) as unfinished, self.create(unfinished) as file:
            for piece in pieces:
                file.write(piece)
        if synced:
            self.sync_names(name)

    @contextmanager
    def _aside(self, name: str, synced: bool) -> Iterator[str]:
        """The name to write a file under; an object appears when its stream is closed, so it needs no other name."""
        if self.is_local:
            with written_aside(self.path(name), synced=synced) as path:
                yield path[len(self.path("")) + 1 :]
            return
        try:
            yield name
        except BaseException:
            self.remove(name)
            raise

    def sync(self, name: str) -> None:
        """Return when a file that was written, and its name, will survive a loss of power."""
        if self.is_local:  # an object store has it when the stream is closed
            with _storage_errors(self.path(name)):
                sync_path(self.path(name))
                self._sync_folder(name)

    def place(self, name: str, data: bytes) -> bool:
        """Put a new file where nobody has one, whole and synced; False if the name is taken. For local folders.

        The folder above must be there. A reader, or a loss of power, finds the whole file or none. The name itself is
        safe when `sync_names` has returned.
        """
        path = self.path(name)
        with _storage_errors(path):
            try:
                with written_aside(path, must_be_new=True, ending=LOG_UNFINISHED) as unfinished:
                    Path(unfinished).write_bytes(data)
            except FileExistsError:
                return False
            return True

    def sync_file(self, name: str) -> None:
        """Return when the bytes of a local file will survive; its name may not."""
        with _storage_errors(self.path(name)):
            sync_path(self.path(name))

    def sync_names(self, name: str, *, above: bool = True) -> None:
        """Return when the names in the folder of this file, and `above` it up to the table's, will survive."""
        if self.is_local:
            with _storage_errors(self.path(name)):
                if above:
                    self._sync_folder(name)
                else:
                    sync_path(self.path(name).rpartition("/")[0])

    def make(self) -> None:
        """Make this folder and those above it, if it is local; their names survive a loss of power."""
        if not self.is_local:
            return
        with _storage_errors(self.root):
            missing = Path(self.root)
            while not missing.exists() and missing != missing.parent:
                missing = missing.parent
            Path(self.root).mkdir(parents=True, exist_ok=True)
            parent = Path(self.root).parent
            while True:
                with suppress(PermissionError):  # a folder that we may pass through and not read was not made by us
                    sync_path(str(parent))
                if parent in (missing, parent.parent) or missing == Path(self.root):
                    return
                parent = parent.parent

    def holds(self, name: str) -> bool:
        """Whether a file lies in this folder itself: neither it nor a folder on the way to it is a symbolic link."""
        if not self.is_local:
            return True
        parts = name.split("/")
        places = [self.path("/".join(parts[: number + 1])) for number in range(len(parts))]
        return ".." not in parts and Path(places[-1]).is_file() and not any(map(os.path.islink, places))

    def remove(self, name: str) -> None:
        """Delete a file if it is there."""
        with _storage_errors(self.path(name)):
            if self._info(name).type == fs.FileType.File:
                self.filesystem.delete_file(self.path(name))

    def _sync_folder(self, name: str) -> None:
        """The names of a new file and of new folders above it, up to the table's own."""
        parent = Path(self.path(name)).parent
        while True:
            sync_path(str(parent))
            if str(parent) == self.root or parent == parent.parent:
                return
            parent = parent.parent

    def _info(self, name: str) -> fs.FileInfo:
        with _storage_errors(self.path(name)):
            return self.filesystem.get_file_info(self.path(name))


@contextmanager
def written_aside(
    path: str, *, synced: bool = True, must_be_new: bool = False, ending: str = UNFINISHED
) -> Iterator[str]:
    """Write a local file under another name, and give it its own when the block ends without an error.

    The block writes to the path that it is given, which nobody else writes to. A reader, or a loss of power, finds the
    whole file under its name, or what was there before. The name itself is safe when its folder is synced, which is up
    to the caller (`Folder.sync_names`, `sync_path`).

    Args:
        path: the file, in an existing folder.
        synced: False for what nobody misses after a loss of power.
        must_be_new: never replace a file of this name.
        ending: how the other name ends.

    Raises:
        FileExistsError: the file must be new, and the name is taken.
    """
    parent, name = os.path.split(path)
    unfinished = os.path.join(parent, f".{name}.{uuid.uuid4().hex}{ending}")  # noqa: PTH118
    try:
        yield unfinished
        if synced:
            sync_path(unfinished)
        if must_be_new:
            _link(unfinished, path)
        else:
            Path(unfinished).replace(path)
    finally:
        Path(unfinished).unlink(missing_ok=True)


def _link(unfinished: str, path: str) -> None:
    try:
        os.link(unfinished, path)
    except OSError:
        if not _is_same_file(unfinished, path):  # a network may say that it failed although it did not
            raise


def _is_same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False


def sync_path(path: str) -> None:
    """Return when the bytes of a local file, or the names in a local folder, will survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    """Wait until the disk itself has the bytes; on macOS, `fsync` alone leaves them in the cache of the drive."""
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:
        try:
            fcntl.fcntl(descriptor, full_sync)
        except OSError:  # a file system, or a folder, that only knows the other call
            pass
        else:
            return
    os.fsync(descriptor)


def _files_below(path: str, prefix: str, above: frozenset[tuple[int, int]]) -> Iterator[FileEntry]:
    """The files in a local folder and below; pyarrow's listing would follow links in circles.

    Args:
        path: the folder.
        prefix: what its files' names begin with.
        above: device and inode of the folders that lead to it.

    Raises:
        ValueError: a name is not UTF-8.
    """
    try:
        own = Path(path).stat()
        entries = list(os.scandir(path))
    except (FileNotFoundError, NotADirectoryError):
        return
    here = (own.st_dev, own.st_ino)
    if here in above:
        return
    for entry in entries:
        entry.name.encode()
        try:
            if entry.is_dir():
                yield from _files_below(entry.path, f"{prefix}{entry.name}/", above | {here})
            elif entry.is_file():
                status = entry.stat()
                yield FileEntry(prefix + entry.name, status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            continue  # removed since the folder was read


@contextmanager
def _storage_errors(path: str) -> Iterator[None]:
    """What the file system says, as an error of ours that names the file."""
    try:
        yield
    except CoprlakeError:
        raise
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: no such file") from error
    except OSError as error:  # pyarrow's own errors of files are OSErrors, too
        raise storage_error(path, error) from error
    except ValueError as error:  # a zero byte in the name, which a damaged log may have
        raise NotFoundError(f"{path!r}: not a valid path; {_first_line(error)}") from error


def storage_error(path: str, error: OSError) -> StorageError:
    """The error for a failed read or write, with advice where the cause is known."""
    reason = error.strerror or _first_line(error)
    advice = "free some space and try again" if "space" in reason.lower() else "check the path and its permissions"
    return StorageError(f"{path}: {reason}; {advice}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
