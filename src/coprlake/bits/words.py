"""Operations on 64-bit words that take one instruction and that NumPy lacks."""

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

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


def bit_length(word: np.uint64) -> int:
    """``int(word).bit_length()``, one instruction."""
    return int(word).bit_length()


@intrinsic  # type: ignore[untyped-decorator]
def _leading_zeros(_typing: Any, _word: Any) -> Any:
    signature = types.int64(types.uint64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.IntType(1)(0))

    return signature, generate


@overload(bit_length, inline="always")  # type: ignore[untyped-decorator]
def _bit_length_in_kernel(word: Any) -> Any:
    def count(word: Any) -> Any:
        return 64 - _leading_zeros(np.uint64(word))

    return count
