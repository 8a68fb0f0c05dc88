"""Eight bytes as one word, each of them looked at in the same instructions."""

from typing import Final

import numpy as np

from coprlake.kernel import U8Array, kernel, word_of
from coprlake.text.byte_classes import NEWLINE

ONES: Final = np.uint64(0x0101010101010101)
TOPS: Final = np.uint64(0x8080808080808080)
NO_BITS: Final = np.uint64(0)
_NEWLINES: Final = np.uint64(NEWLINE * 0x0101010101010101)


@kernel
def eight_times(byte: np.uint8) -> np.uint64:
    """``int.from_bytes([byte] * 8)``."""
    return np.uint64(byte) * ONES


@kernel
def marks_of_zeros(word: np.uint64) -> np.uint64:
    """A word in which a top bit (`TOPS`) is set if, and only if, a byte of `word` is 0; other bits mean nothing.

    The lowest top bit that is set belongs to the first byte that is 0. Higher ones may be set for other bytes.
    """
    return (word - ONES) & ~word


@kernel
def line_end(data: U8Array, at: int, end: int) -> int:
    r"""``data.find(b"\n", at, end)``, or `end` if there is none."""
    while at + 8 <= end:
        if marks_of_zeros(word_of(data, at) ^ _NEWLINES) & TOPS != NO_BITS:
            break
        at += 8
    while at < end and data[at] != NEWLINE:
        at += 1
    return at
