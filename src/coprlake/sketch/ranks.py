"""Ranks: which posting list a token has, in few bits (paper 3.3).

Lists are ranked by how many tokens refer to them, most first, so that the lists most tokens have take the fewest bits.
Such codes cannot be told apart by themselves; prefix sums over their widths say where each begins. The paper spends
``floor(log2(max(rank, 1))) + 1`` bits on a rank. Because the prefix sums give the width, the highest bit tells nothing:
we write ``rank + 1`` without its leading one, ``floor(log2(rank + 1))`` bits, one less for nearly every token. Widths
and ranks together then come within 1 % of the entropy of the tokens' lists.
"""

import numpy as np

from coprlake.bits.prefix_code import decode_symbol
from coprlake.bits.prefix_sums import PrefixSums, build_prefix_sums, find_span
from coprlake.bits.sequence import read_bits, words_for, write_bits
from coprlake.bits.words import bit_length
from coprlake.kernel import U8Array, U32Array, U64Array, i64, kernel


@kernel
def rank_width(rank: int) -> int:
    """``floor(log2(rank + 1))``."""
    return bit_length(np.uint64(rank + 1)) - 1


@kernel
def _read_rank(ranks: U64Array, start: int, width: int) -> int:
    """The rank whose `width` bits begin at `start`; a width that no rank has, in a damaged file, is cut."""
    width = min(width, 31)
    return (1 << width | i64(read_bits(ranks, start, width))) - 1


@kernel
def find_rank(sums: PrefixSums, ranks: U64Array, index: int) -> int:
    """The rank of the token with this minimal hash."""
    start, width = find_span(sums, ranks, index)
    return _read_rank(ranks, start, width)


@kernel
def decode_ranks(sums: PrefixSums, ranks: U64Array, out: U32Array) -> None:
    """``out[i] = find_rank(sums, ranks, i)`` for all tokens, in one pass."""
    start, position = 0, 0
    for i in range(len(out)):
        entry = decode_symbol(sums.table, sums.codes, position)
        out[i] = np.uint32(_read_rank(ranks, start, entry & 255))
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
        write_bits(out, position, i64(widths[i]), np.uint64(i64(ranks[i]) + 1))
        position += i64(widths[i])


def build_ranks(ranks: U32Array) -> tuple[PrefixSums, U64Array]:
    """Store the rank of each token, in the order of the minimal hashes."""
    widths = np.zeros(len(ranks), np.uint8)
    out = np.zeros(words_for(_measure(ranks, widths)), np.uint64)
    _encode(ranks, widths, out)
    return build_prefix_sums(widths, len(out)), out
