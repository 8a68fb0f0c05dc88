"""Operations on 64-bit words that take one instruction and that NumPy lacks."""

from typing import Final

import numpy as np

from coprlake.kernel import bit_length as bit_length
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
