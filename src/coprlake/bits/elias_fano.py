"""Elias-Fano coding of a rising sequence: about ``2 + log2(largest / count)`` bits each, any one found at once.

Each number is cut in two. The lower `low_width` bits are stored as they are. The upper parts rise slowly and are
stored as a bit vector: number ``i`` with upper part ``u`` sets bit ``u + i``. To find number ``i`` is to find the one
with number ``i`` in that vector; every `INTERVAL`-th one has its position noted.
"""

from typing import Final, NamedTuple

import numpy as np

from coprlake.bits.sequence import read_bits, words_for, write_bits
from coprlake.bits.words import count_ones
from coprlake.kernel import I64Array, U64Array, i64, kernel

INTERVAL: Final = 128
SAMPLE_BITS: Final = 32


class RisingSequence(NamedTuple):
    """As stored: three bit sequences, of which only `low_width` must be known beside."""

    samples: U64Array
    low: U64Array
    high: U64Array


@kernel
def _position_of_one(samples: U64Array, high: U64Array, index: int) -> int:
    """Where the one with number `index` stands, or -1 if the vector has not so many."""
    start = i64(read_bits(samples, index // INTERVAL * SAMPLE_BITS, SAMPLE_BITS))
    missing = index % INTERVAL
    at = start >> 6
    if at >= len(high):
        return -1
    word = high[at] & ~((np.uint64(1) << np.uint64(start & 63)) - np.uint64(1))
    while True:
        ones = count_ones(word)
        if missing < ones:
            break
        missing -= ones
        at += 1
        if at == len(high):
            return -1
        word = high[at]
    for _ in range(missing):
        word &= word - np.uint64(1)
    return (at << 6) + count_ones((word - np.uint64(1)) & ~word)


@kernel
def find_number(sequence: RisingSequence, low_width: int, index: int) -> int:
    """``numbers[index]``, or -1 if the sequence does not reach so far."""
    position = _position_of_one(sequence.samples, sequence.high, index)
    if position < 0:
        return -1
    return (position - index) << low_width | i64(read_bits(sequence.low, index * low_width, low_width))


@kernel
def _encode(numbers: I64Array, low_width: int, samples: U64Array, low: U64Array, high: U64Array) -> None:
    for i in range(len(numbers)):
        position = (numbers[i] >> low_width) + i
        write_bits(low, i * low_width, low_width, np.uint64(numbers[i]))
        write_bits(high, position, 1, np.uint64(1))
        if i % INTERVAL == 0:
            write_bits(samples, i // INTERVAL * SAMPLE_BITS, SAMPLE_BITS, np.uint64(position))


def build_rising_sequence(numbers: I64Array) -> tuple[RisingSequence, int]:
    """Store numbers that never fall and begin at 0 or above; also returns the `low_width`."""
    count = len(numbers)
    largest = int(numbers[-1]) if count else 0
    low_width = max((largest // max(count, 1)).bit_length() - 1, 0)
    samples = np.zeros(words_for(SAMPLE_BITS * (-(-count // INTERVAL))), np.uint64)
    low = np.zeros(words_for(low_width * count), np.uint64)
    high = np.zeros(words_for((largest >> low_width) + count + 1), np.uint64)
    _encode(numbers, low_width, samples, low, high)
    return RisingSequence(samples, low, high), low_width
