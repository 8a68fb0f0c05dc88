"""Binary Interpolative Coding of posting lists (paper 4.2; Moffat and Stuiver 2000).

The middle posting of a sorted list is coded first, as an offset into the values it can have given that the postings to
its left and right need room too; then come the halves, each in the narrower range that the middle leaves. A run of
consecutive postings takes no bits at all. A number below ``r`` takes ``floor(log2(r))`` bits or one more ("truncated
binary"). The list's length comes first, as an exponential Golomb code of order 2.
"""

from typing import Final

import numpy as np

from coprlake.bits.sequence import read_bits, write_bits
from coprlake.bits.words import bit_length
from coprlake.kernel import I64Array, U16Array, U64Array, i64, kernel

STACK_SIZE: Final = 4 * 64
"""Stack size for halves still to be coded: four numbers each, and one half for each time a list can be split."""
CORRUPT: Final = -1
_COUNT_ORDER: Final = 2


@kernel
def _write_below(out: U64Array, position: int, number: int, bound: int) -> int:
    """Write ``0 <= number < bound``; returns the end position."""
    short_width = bit_length(np.uint64(bound)) - 1
    short_codes = (2 << short_width) - bound
    if number < short_codes:
        write_bits(out, position, short_width, np.uint64(number))
        return position + short_width
    number += short_codes  # its lowest bit comes last, so that a reader knows from the others whether there is one more
    write_bits(out, position, short_width + 1, np.uint64((number & 1) << short_width | number >> 1))
    return position + short_width + 1


@kernel
def _write_count(out: U64Array, position: int, count: int) -> int:
    """Write a length of one or more; returns the end position."""
    number = count - 1 + (1 << _COUNT_ORDER)
    zeros = bit_length(np.uint64(number)) - 1 - _COUNT_ORDER
    write_bits(out, position + zeros, 1, np.uint64(1))
    write_bits(out, position + zeros + 1, zeros + _COUNT_ORDER, np.uint64(number))
    return position + 2 * zeros + 1 + _COUNT_ORDER


@kernel
def read_count(words: U64Array, position: int) -> tuple[int, int]:
    """The length of the list at `position`, and where that ends; a length of CORRUPT if there is none."""
    zeros = 0
    while zeros <= 16 and read_bits(words, position + zeros, 1) == np.uint64(0):
        zeros += 1
    if zeros > 16:
        return CORRUPT, position
    width = zeros + _COUNT_ORDER
    number = 1 << width | i64(read_bits(words, position + zeros + 1, width))
    return number + 1 - (1 << _COUNT_ORDER), position + 2 * zeros + 1 + _COUNT_ORDER


@kernel
def encode(postings: U16Array, posting_count: int, out: U64Array, position: int, stack: I64Array) -> int:
    """Write a sorted list of one or more distinct postings below `posting_count`; returns the end position.

    Needs zeroed room for 18 bits per posting and 40 more.
    """
    count = len(postings)
    position = _write_count(out, position, count)
    stack[0], stack[1], stack[2], stack[3] = 0, count, 0, posting_count
    top = 1
    while top > 0:
        top -= 1
        first, last = stack[4 * top], stack[4 * top + 1]
        low, high = stack[4 * top + 2], stack[4 * top + 3]
        while first < last:  # code the middle, keep the right half for later, continue with the left
            middle = (first + last) >> 1
            value = i64(postings[middle])
            position = _write_below(out, position, value - low - (middle - first), high - low - (last - first) + 1)
            at = 4 * top
            stack[at], stack[at + 1], stack[at + 2], stack[at + 3] = middle + 1, last, value + 1, high
            top += 1
            last, high = middle, value
    return position


@kernel
def decode(words: U64Array, position: int, posting_count: int, out: U16Array, stack: I64Array) -> tuple[int, int]:
    """Write the postings of the list at `position` to `out`, ascending; returns how many, and the end position.

    The number is CORRUPT if the bits are not a list of postings below `posting_count`. `out` has room for
    `posting_count`.
    """
    count, position = read_count(words, position)
    if count <= 0 or count > posting_count:
        return CORRUPT, position
    stack[0], stack[1], stack[2], stack[3] = 0, count, 0, posting_count
    top = 1
    while top > 0:
        top -= 1
        first, last = stack[4 * top], stack[4 * top + 1]
        low, high = stack[4 * top + 2], stack[4 * top + 3]
        while first < last:
            middle = (first + last) >> 1
            bound = high - low - (last - first) + 1
            if bound <= 0:
                return CORRUPT, position
            width = bit_length(np.uint64(bound)) - 1
            short_codes = (2 << width) - bound
            number = i64(read_bits(words, position, width))
            position += width
            if number >= short_codes:
                number = (number << 1 | i64(read_bits(words, position, 1))) - short_codes
                position += 1
            value = low + (middle - first) + number
            out[middle] = value
            at = 4 * top
            stack[at], stack[at + 1], stack[at + 2], stack[at + 3] = middle + 1, last, value + 1, high
            top += 1
            last, high = middle, value
    return count, position
