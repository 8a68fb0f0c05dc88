"""Prefix sums over small widths: where element ``i`` of a sequence starts, and how wide it is.

The paper (3.3) stores a total offset at an interval and the bit length of each entry in between. Here the lengths are
kept in a prefix code, which leaves about 3 bits of each, and every `INTERVAL` entries there is a sample: the total so
far, and the position in the codes. A look-up decodes half an interval of codes on average; only tokens that are present
pay for it.

Elements may also be *marked*. A marked element has no bits; all that is known of it is how many marked ones precede it.
If there are any, each sample has that count too.
"""

from typing import Final, NamedTuple

import numpy as np

from coprlake.bits.prefix_code import build_prefix_code, decode_symbol
from coprlake.bits.sequence import position_width, read_bits, words_for, write_bits
from coprlake.bits.words import bit_length
from coprlake.kernel import I64Array, U8Array, U64Array, i64, kernel, long_kernel

INTERVAL: Final = 128
MARK: Final = 32
"""The width of a marked element; no other element is that wide."""


class PrefixSums(NamedTuple):
    """As stored: three bit sequences, and how many elements are marked.

    A sample is as wide as that number and `elements` and `codes`, into which it points, need.
    """

    samples: U64Array
    codes: U64Array
    table: U64Array
    mark_count: int


@kernel
def find_span(sums: PrefixSums, elements: U64Array, index: int) -> tuple[int, int, int]:
    """``(sum(unmarked widths[:index]), widths[index], count of MARK in widths[:index])``.

    For an index that does not exist the result is undefined. For damaged bytes it is three numbers that are not
    negative, the second below 256. `elements` is the sequence whose widths these are.
    """
    start_width, code_width = position_width(len(elements)), position_width(len(sums.codes))
    mark_width = bit_length(np.uint64(sums.mark_count))
    sample = index // INTERVAL * (start_width + code_width + mark_width)
    start = i64(read_bits(sums.samples, sample, start_width))
    position = i64(read_bits(sums.samples, sample + start_width, code_width))
    marks = i64(read_bits(sums.samples, sample + start_width + code_width, mark_width))
    entry = decode_symbol(sums.table, sums.codes, position)
    for _ in range(index % INTERVAL):
        is_mark = (entry & 255) == MARK
        start += 0 if is_mark else entry & 255
        marks += 1 if is_mark else 0
        position += entry >> 8
        entry = decode_symbol(sums.table, sums.codes, position)
    return start, entry & 255, marks


@long_kernel
def _encode(
    widths: U8Array,
    lengths: I64Array,
    codes: U64Array,
    start_width: int,
    mark_width: int,
    samples: U64Array,
    out: U64Array,
) -> None:
    """Write the codes of the widths to `out`, and the samples."""
    code_width = position_width(len(out))
    total, position, marks = i64(0), i64(0), i64(0)
    for i in range(len(widths)):
        if i % INTERVAL == 0:
            sample = i // INTERVAL * (start_width + code_width + mark_width)
            write_bits(samples, sample, start_width, np.uint64(total))
            write_bits(samples, sample + start_width, code_width, np.uint64(position))
            write_bits(samples, sample + start_width + code_width, mark_width, np.uint64(marks))
        width = widths[i]
        write_bits(out, position, lengths[width], codes[width])
        position += lengths[width]
        if width == MARK:
            marks += 1
        else:
            total += i64(width)


def sample_words(width_count: int, element_words: int, code_words: int, mark_count: int = 0) -> int:
    """The number of words that the samples take."""
    sample_bits = position_width(element_words) + position_width(code_words) + mark_count.bit_length()
    return words_for(-(-width_count // INTERVAL) * sample_bits)


def build_prefix_sums(widths: U8Array, element_words: int) -> PrefixSums:
    """Store the widths, or marks, of a sequence of `element_words` words."""
    counts = np.bincount(widths, minlength=1).astype(np.int64)
    mark_count = int(counts[MARK]) if len(counts) > MARK else 0
    code = build_prefix_code(counts)
    codes = np.zeros(words_for(int(counts @ code.lengths)), np.uint64)
    samples = np.zeros(sample_words(len(widths), element_words, len(codes), mark_count), np.uint64)
    start_width, mark_width = position_width(element_words), mark_count.bit_length()
    _encode(widths, code.lengths, code.codes, start_width, mark_width, samples, codes)
    return PrefixSums(samples, codes, code.table.view(np.uint64), mark_count)
