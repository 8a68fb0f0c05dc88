"""Single 64-bit words: what the processor does in one instruction and NumPy has no name for."""

from typing import Final

import numpy as np

from coprlake.kernel import i64, kernel

_M1: Final = np.uint64(0x5555555555555555)
_M2: Final = np.uint64(0x3333333333333333)
_M4: Final = np.uint64(0x0F0F0F0F0F0F0F0F)
_H1: Final = np.uint64(0x0101010101010101)


@kernel
def count_ones(word: np.uint64) -> int:
    """``bin(word).count("1")``; LLVM recognises the pattern and emits one instruction."""
    word = word - ((word >> np.uint64(1)) & _M1)
    word = (word & _M2) + ((word >> np.uint64(2)) & _M2)
    word = (word + (word >> np.uint64(4))) & _M4
    return i64((word * _H1) >> np.uint64(56))


@kernel
def bit_length(word: np.uint64) -> int:
    """``int(word).bit_length()``: the ones of the word with all bits below its highest set."""
    word |= word >> np.uint64(1)
    word |= word >> np.uint64(2)
    word |= word >> np.uint64(4)
    word |= word >> np.uint64(8)
    word |= word >> np.uint64(16)
    word |= word >> np.uint64(32)
    return count_ones(word)
