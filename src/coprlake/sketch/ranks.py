"""Ranks: which posting list a token has, in few bits (paper 3.3).

Lists are ranked by how many tokens refer to them, most first. A rank takes ``floor(log2(max(rank, 1))) + 1`` bits, so
the lists that most tokens have take least. Such codes cannot be told apart by themselves; prefix sums over their
widths say where each begins.
"""

import numpy as np

from coprlake.bits.prefix_code import decode_symbol
from coprlake.bits.prefix_sums import PrefixSums, build_prefix_sums, find_span
from coprlake.bits.sequence import read_bits, words_for, write_bits
from coprlake.bits.words import bit_length
from coprlake.kernel import U8Array, U32Array, U64Array, i64, kernel


@kernel
def rank_width(rank: int) -> int:
    """``floor(log2(max(rank, 1))) + 1``."""
    return bit_length(np.uint64(max(rank, 1)))


@kernel
def find_rank(sums: PrefixSums, ranks: U64Array, index: int) -> int:
    """The rank of the token with this minimal hash."""
    start, width = find_span(sums, index)
    return i64(read_bits(ranks, start, min(width, 32)))


@kernel
def decode_ranks(sums: PrefixSums, ranks: U64Array, out: U32Array) -> None:
    """``out[i] = find_rank(sums, ranks, i)`` for all tokens, in one pass."""
    start, position = 0, 0
    for i in range(len(out)):
        entry = decode_symbol(sums.table, sums.codes, position)
        out[i] = np.uint32(read_bits(ranks, start, min(entry & 255, 32)))
        start += entry & 255
        position += entry >> 8


@kernel
def _measure(ranks: U32Array, widths: U8Array) -> int:
    """Write the widths of the ranks; returns their sum."""
    total = i64(0)
    for i in range(len(ranks)):
        width = rank_width(i64(ranks[i]))
        widths[i] = width
        total += width
    return total


@kernel
def _encode(ranks: U32Array, widths: U8Array, out: U64Array) -> None:
    position = i64(0)
    for i in range(len(ranks)):
        write_bits(out, position, i64(widths[i]), np.uint64(ranks[i]))
        position += i64(widths[i])


def build_ranks(ranks: U32Array) -> tuple[PrefixSums, U64Array]:
    """Store the rank of each token, in the order of the minimal hashes."""
    widths = np.zeros(len(ranks), np.uint8)
    out = np.zeros(words_for(_measure(ranks, widths)), np.uint64)
    _encode(ranks, widths, out)
    return build_prefix_sums(widths), out
