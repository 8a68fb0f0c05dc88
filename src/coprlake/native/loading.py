"""Puts the code of a bundle into memory, and makes Python functions of it."""

import ctypes
import mmap
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from coprlake.native.bundle import Bundle, is_enabled, places, read_bundle
from coprlake.native.interpreter import SLOTS, addresses, is_as_expected

_FASTCALL: Final = 0x80
_NO_ADDRESS: Final = ctypes.c_void_p(-1).value


class _Method(ctypes.Structure):
    """Python's description of a built-in function."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_new_function: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
_kept: Final[list[_Method]] = []
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))  # functions may be called until the very end of the process


def bundled_function(kernel: Any) -> Any:
    """A `Kernel` as a built-in function, or None if no bundle has it as its sources are now."""
    if not is_enabled():
        return None
    module, name = kernel.function.__module__, kernel.function.__name__
    for bundle, start in _loaded():
        offset = bundle.entry_offset(module, name)
        if offset is not None:
            text = (kernel.function.__doc__ or "").encode()
            method = _Method(name.encode(), start + offset, _FASTCALL, text)
            _kept.append(method)
            return _new_function(ctypes.addressof(method), kernel, module)
    return None


def forget() -> None:
    """Look for bundles again: one has been built."""
    _bundle_at.cache_clear()


def _loaded() -> Iterator[tuple[Bundle, int]]:
    """The bundles for this machine, and where their code is in memory."""
    for file in places():
        found = _bundle_at(file)
        if found is not None:
            yield found


@cache
def _bundle_at(file: Any) -> tuple[Bundle, int] | None:
    bundle = read_bundle(file)
    if bundle is None or bundle.index["slots"] != list(SLOTS) or not is_as_expected():
        return None
    start = _in_memory(bundle)
    return None if start is None else (bundle, start)


def _in_memory(bundle: Bundle) -> int | None:
    """The code where the processor can run it, followed by the table; None if the system does not allow that.

    The memory is never given back: its functions may be called until the process ends.
    """
    library = ctypes.CDLL(None, use_errno=True)
    try:
        externals = [getattr(library, name) for name in bundle.index["externals"]]
    except AttributeError:  # not in this C library
        return None
    table = bytes(addresses()) + b"".join(bytes(ctypes.cast(each, ctypes.c_void_p)) for each in externals)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    size = len(bundle.code) + len(table)
    written = mmap.PROT_READ | mmap.PROT_WRITE
    start = library.mmap(None, size, written, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if start == _NO_ADDRESS:
        return None
    ctypes.memmove(start, bundle.code, len(bundle.code))
    ctypes.memmove(start + len(bundle.code), table, len(table))
    if library.mprotect(start, len(bundle.code), mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        return None
    return int(start)
