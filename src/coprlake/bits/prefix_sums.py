"""Prefix sums over small widths: where does element ``i`` of a sequence of variable widths begin, and how wide is it?

The paper (3.3) stores a total offset at an interval and the bit length of each entry in between. Here the lengths are
kept in a prefix code, which leaves about 2.5 bits of each, and every `INTERVAL` entries there is a sample: the total
so far, and the position in the codes. A look-up decodes half an interval of codes on average; only tokens that are
present pay for it.
"""

from typing import Final, NamedTuple

import numpy as np

from coprlake.bits.prefix_code import build_prefix_code, decode_symbol
from coprlake.bits.sequence import read_bits, words_for, write_bits
from coprlake.kernel import I64Array, U8Array, U64Array, i64, kernel

INTERVAL: Final = 128
SAMPLE_BITS: Final = 32
"""A sample is two numbers of this width, which limits the sequence to 2**32 bits."""


class PrefixSums(NamedTuple):
    """As stored: three bit sequences."""

    samples: U64Array
    codes: U64Array
    table: U64Array


@kernel
def find_span(sums: PrefixSums, index: int) -> tuple[int, int]:
    """``(sum(widths[:index]), widths[index])``; something of the same types for an index that does not exist."""
    block = index // INTERVAL
    start = i64(read_bits(sums.samples, 2 * block * SAMPLE_BITS, SAMPLE_BITS))
    position = i64(read_bits(sums.samples, (2 * block + 1) * SAMPLE_BITS, SAMPLE_BITS))
    entry = decode_symbol(sums.table, sums.codes, position)
    for _ in range(index % INTERVAL):
        start += entry & 255
        position += entry >> 8
        entry = decode_symbol(sums.table, sums.codes, position)
    return start, entry & 255


@kernel
def _encode(widths: U8Array, lengths: I64Array, codes: U64Array, samples: U64Array, out: U64Array) -> None:
    total, position = i64(0), i64(0)
    for i in range(len(widths)):
        if i % INTERVAL == 0:
            sample = 2 * (i // INTERVAL) * SAMPLE_BITS
            write_bits(samples, sample, SAMPLE_BITS, np.uint64(total))
            write_bits(samples, sample + SAMPLE_BITS, SAMPLE_BITS, np.uint64(position))
        width = widths[i]
        write_bits(out, position, lengths[width], codes[width])
        position += lengths[width]
        total += i64(width)


def build_prefix_sums(widths: U8Array) -> PrefixSums:
    """Store the widths of a sequence."""
    counts = np.bincount(widths, minlength=1).astype(np.int64)
    code = build_prefix_code(counts)
    samples = np.zeros(words_for(2 * SAMPLE_BITS * (-(-len(widths) // INTERVAL))), np.uint64)
    codes = np.zeros(words_for(int(counts @ code.lengths)), np.uint64)
    _encode(widths, code.lengths, code.codes, samples, codes)
    return PrefixSums(samples, codes, code.table.view(np.uint64))
