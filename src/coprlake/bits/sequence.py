"""Bit sequences: numbers of any width, one after another, in an array of 64-bit words.

Bit ``i`` of a sequence is bit ``i % 64`` of word ``i // 64``; a number's lowest bit comes first. Sequences come from
files: reading outside one gives 0, never a fault.
"""

from typing import Final

import numpy as np

from coprlake.bits.words import bit_length
from coprlake.kernel import U64Array, kernel

_ONE: Final = np.uint64(1)
_ZERO: Final = np.uint64(0)
_ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def low_mask(width: int) -> np.uint64:
    """``2 ** width - 1`` for a width of 0 to 64."""
    return _ALL if width >= 64 else (_ONE << np.uint64(width)) - _ONE


@kernel
def read_bits(words: U64Array, position: int, width: int) -> np.uint64:
    """The `width` (0 to 64) bits at `position` as a number; 0 if some of them are outside."""
    if width <= 0 or position < 0 or position + width > len(words) << 6:
        return _ZERO
    index = position >> 6
    shift = position & 63
    value = words[index] >> np.uint64(shift)
    if shift + width > 64:
        value |= words[index + 1] << np.uint64(64 - shift)
    return value & low_mask(width)


@kernel
def write_bits(words: U64Array, position: int, width: int, value: np.uint64) -> None:
    """Write the low `width` bits of `value` to bits that are inside and still 0."""
    if width <= 0:
        return
    index = position >> 6
    shift = position & 63
    value &= low_mask(width)
    words[index] |= value << np.uint64(shift)
    if shift + width > 64:
        words[index + 1] |= value >> np.uint64(64 - shift)


@kernel
def position_width(word_count: int) -> int:
    """The number of bits that a position in a sequence of `word_count` words takes, including its end."""
    return bit_length(np.uint64(word_count << 6))


def words_for(bit_count: int) -> int:
    """The number of words that hold `bit_count` bits."""
    return (bit_count + 63) // 64
