"""The bytes of files that are never changed in place: sketches and sidecars, copied into memory or mapped.

The system kills a process that touches a mapped page beyond the end of its file (SIGBUS), and no library can catch that
for its caller. So a file that others may change is never mapped: it is read at offsets. We write our own sketches and
sidecars under a temporary name, sync them, and rename them; we never write to one again. What remains are accidents:
``rsync --inplace``, ``cp`` onto an existing file, a shell's ``>``.

* Files are *copied* until the copies of this process take `COPY_BYTES`. A copy is safe: whatever happens to the file,
  the bytes are those that the checksum was compared with.
* Beyond that they are *mapped*, so that the sketches of a table may be larger than memory. `is_cut_short` tells
  whether a mapped file has become shorter; a search checks that before it reads (`coprlake.storage.snapshot`). A file
  that is truncated between the check and the read, within a second, still ends the process.
"""

import ctypes
import errno
import mmap
import os
import stat
import threading
import weakref
from typing import Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

COPY_BYTES: Final = int(os.environ.get("COPRLAKE_SKETCH_COPY_BYTES", "").strip() or 256 * 1024 * 1024)
"""The most that all copies of a process may take together; 0 maps everything."""

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_MAP_FAILED: Final = ctypes.c_void_p(-1).value
_READ_BYTES: Final = 1 << 24


class _Place(NamedTuple):
    """Identifies the file that was mapped, whatever its name refers to now."""

    device: int
    inode: int
    size: int


class CopyBudget:
    """Counts the bytes of the copies; thread-safe."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._used_bytes = 0
        self._returned: list[int] = []
        self._lock = threading.Lock()

    @property
    def used_bytes(self) -> int:
        """The bytes that the copies take now."""
        return self._used_bytes - sum(self._returned)

    def take(self, size: int) -> bool:
        """Reserve room for a copy; False if there is not enough."""
        with self._lock:
            while self._returned:
                self._used_bytes -= self._returned.pop()
            if self._used_bytes + size > self.limit_bytes:
                return False
            self._used_bytes += size
            return True

    def give_back(self, size: int) -> None:
        """Release the room of a copy. Takes no lock: the garbage collector may call this in the middle of `take`."""
        self._returned.append(size)


BUDGET: Final = CopyBudget(COPY_BYTES)


def read_at(descriptor: int, size: int, offset: int = 0) -> npt.NDArray[np.uint8]:
    """Read `size` bytes of a file from `offset` on, or fewer if it ends before."""
    out = np.empty(size, np.uint8)
    view, done = out.data, 0
    while done < size:
        count = _read_into(descriptor, view[done : done + _READ_BYTES], offset + done)
        if count == 0:
            break
        done += count
    return out[:done]


def _read_into(descriptor: int, out: memoryview, offset: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [out], offset)
    data = os.pread(descriptor, len(out), offset)  # macOS before version 11
    out[: len(data)] = data
    return len(data)


def unchanging_bytes(path: str | os.PathLike[str], *, may_copy: bool = True) -> memoryview:
    """Return the bytes of a file that nobody writes into: a copy while there is room for one, else mapped.

    The bytes stay until the last view of them is gone, and take no descriptor.

    Raises:
        OSError: the file cannot be read, or the path leads to something that is not a file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # opening a pipe would wait otherwise
    try:
        return _bytes_of(descriptor, may_copy)
    finally:
        os.close(descriptor)


def _bytes_of(descriptor: int, may_copy: bool) -> memoryview:
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "a directory")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "something else than a file")
    size = status.st_size
    if size == 0:
        return memoryview(b"")
    if may_copy and BUDGET.take(size):
        try:
            copy = read_at(descriptor, size)
        except BaseException:
            BUDGET.give_back(size)
            raise
        whole = copy if copy.base is None else copy.base
        weakref.finalize(whole, BUDGET.give_back, size)
        return copy.data.toreadonly()
    return _mapped(descriptor, _Place(status.st_dev, status.st_ino, size))


def _mapped(descriptor: int, place: _Place) -> memoryview:
    """Map a file without `mmap.mmap`, which keeps a descriptor open for each file (always, before Python 3.13)."""
    address = _LIBC.mmap(None, place.size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address is None or address == _MAP_FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    data = (ctypes.c_ubyte * place.size).from_address(address)
    _places[address] = place
    weakref.finalize(data, _unmap, address)
    return memoryview(data).cast("B").toreadonly()


_places: dict[int, _Place] = {}
"""The mapped files by address."""


def _unmap(address: int) -> None:
    _LIBC.munmap(address, _places.pop(address).size)


def is_mapped(data: memoryview | bytes) -> bool:
    """Whether the bytes are mapped from a file."""
    return isinstance(data, memoryview) and isinstance(data.obj, ctypes.Array)


def is_cut_short(data: memoryview, path: str) -> bool:
    """Whether the file that these bytes were mapped from, at `path`, has become shorter: then do not touch them.

    If `path` is a different file now, the mapped one has lost its name and stays intact.
    """
    place = _places[ctypes.addressof(cast("ctypes.Array[ctypes.c_ubyte]", data.obj))]
    try:
        status = os.stat(path)  # noqa: PTH116 (called for every mapped sketch of a search)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == place[:2] and status.st_size < place.size
