"""Prefix sums over small widths: where does element ``i`` of a sequence of variable widths begin, and how wide is it?

The paper (3.3) stores a total offset at an interval and the bit length of each entry in between. Here the lengths are
kept in a prefix code, which leaves about 3 bits of each, and every `INTERVAL` entries there is a sample: the total so
far, and the position in the codes. A look-up decodes half an interval of codes on average; only tokens that are present
pay for it.
"""

from typing import Final, NamedTuple

import numpy as np

from coprlake.bits.prefix_code import build_prefix_code, decode_symbol
from coprlake.bits.sequence import position_width, read_bits, words_for, write_bits
from coprlake.kernel import I64Array, U8Array, U64Array, i64, kernel

INTERVAL: Final = 128


class PrefixSums(NamedTuple):
    """As stored: three bit sequences. A sample is as wide as `elements` and `codes`, into which it points, need."""

    samples: U64Array
    codes: U64Array
    table: U64Array


@kernel
def find_span(sums: PrefixSums, elements: U64Array, index: int) -> tuple[int, int]:
    """``(sum(widths[:index]), widths[index])``; something of the same types for an index that does not exist.

    `elements` is the sequence whose widths these are.
    """
    start_width, code_width = position_width(len(elements)), position_width(len(sums.codes))
    sample = index // INTERVAL * (start_width + code_width)
    start = i64(read_bits(sums.samples, sample, start_width))
    position = i64(read_bits(sums.samples, sample + start_width, code_width))
    entry = decode_symbol(sums.table, sums.codes, position)
    for _ in range(index % INTERVAL):
        start += entry & 255
        position += entry >> 8
        entry = decode_symbol(sums.table, sums.codes, position)
    return start, entry & 255


@kernel
def _encode(
    widths: U8Array, lengths: I64Array, codes: U64Array, start_width: int, samples: U64Array, out: U64Array
) -> None:
    code_width = position_width(len(out))
    total, position = i64(0), i64(0)
    for i in range(len(widths)):
        if i % INTERVAL == 0:
            sample = i // INTERVAL * (start_width + code_width)
            write_bits(samples, sample, start_width, np.uint64(total))
            write_bits(samples, sample + start_width, code_width, np.uint64(position))
        width = widths[i]
        write_bits(out, position, lengths[width], codes[width])
        position += lengths[width]
        total += i64(width)


def sample_words(width_count: int, element_words: int, code_words: int) -> int:
    """How many words the samples take for so many widths, with sequences of so many words."""
    sample_bits = position_width(element_words) + position_width(code_words)
    return words_for(-(-width_count // INTERVAL) * sample_bits)


def build_prefix_sums(widths: U8Array, element_words: int) -> PrefixSums:
    """Store the widths of a sequence that is so many words long."""
    counts = np.bincount(widths, minlength=1).astype(np.int64)
    code = build_prefix_code(counts)
    codes = np.zeros(words_for(int(counts @ code.lengths)), np.uint64)
    samples = np.zeros(sample_words(len(widths), element_words, len(codes)), np.uint64)
    _encode(widths, code.lengths, code.codes, position_width(element_words), samples, codes)
    return PrefixSums(samples, codes, code.table.view(np.uint64))
