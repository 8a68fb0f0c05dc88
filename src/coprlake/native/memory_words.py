"""Ways to read memory and words that NumPy lacks: in kernels, each is an instruction or two (`numba_kernels.py`)."""

import ctypes

import numpy as np
import numpy.typing as npt


def words_at(address: int, word_count: int) -> npt.NDArray[np.uint64]:
    """The `word_count` words at an address: how one kernel call reads many mapped files.

    Only inside kernels. The caller keeps the memory alive and guarantees the length.
    """
    pointer = ctypes.cast(int(address), ctypes.POINTER(ctypes.c_uint64))
    return np.ctypeslib.as_array(pointer, shape=(int(word_count),))


def word_of(data: npt.NDArray[np.uint8], offset: int) -> np.uint64:
    """The eight bytes of `data` at `offset`, as one little-endian word: ``data[offset:offset + 8]``.

    The caller guarantees that they are inside. In a kernel this is a single unaligned load.
    """
    assert 0 <= offset <= len(data) - 8
    return np.uint64(int.from_bytes(data[offset : offset + 8].tobytes(), "little"))


def bit_length(word: np.uint64) -> int:
    """``int(word).bit_length()``; in a kernel one instruction."""
    return int(word).bit_length()
