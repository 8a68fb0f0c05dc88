"""Ranks: which posting list a token has, in few bits (paper 3.3).

Lists are ranked by how many tokens refer to them, most first, so that the most common lists take the fewest bits.
These codes do not mark their own ends; prefix sums over their widths say where each starts. The paper spends
``floor(log2(max(rank, 1))) + 1`` bits on a rank. Because the prefix sums give the width, the highest bit is redundant:
we write ``rank + 1`` without its leading one, ``floor(log2(rank + 1))`` bits, one fewer for nearly every token. Widths
and ranks together then come within 1 % of the entropy of the tokens' lists.

Most lists have a single token. These *own lists* would take the longest ranks. But lists with the same number of
tokens may be in any order: if own lists are in the order of their tokens, the rank of one is the first rank of an own
list plus the number of earlier tokens with own lists. The prefix sums count those, and the token stores no rank at all
(format 1.1).
"""

from typing import Final

import numpy as np

from coprlake.bits.prefix_code import decode_symbol
from coprlake.bits.prefix_sums import MARK, PrefixSums, build_prefix_sums, find_span
from coprlake.bits.sequence import read_bits, words_for, write_bits
from coprlake.bits.words import bit_length
from coprlake.kernel import U8Array, U32Array, U64Array, i64, kernel, long_kernel

OWN: Final = MARK
"""Used instead of a rank's width: the token's list is its own."""
_WIDEST: Final = 31
_LARGEST: Final = (1 << 32) - 1


@kernel
def rank_width(rank: int) -> int:
    """``floor(log2(rank + 1))``."""
    return bit_length(np.uint64(rank + 1)) - 1


@kernel
def _read_rank(ranks: U64Array, start: int, width: int) -> int:
    """The rank whose `width` bits start at `start`; an impossible width, in a damaged file, is capped."""
    width = min(width, _WIDEST)
    return (1 << width | i64(read_bits(ranks, start, width))) - 1


@kernel
def find_rank(sums: PrefixSums, ranks: U64Array, first_own: int, index: int) -> int:
    """The rank of the token with this minimal hash; `first_own` is the first rank of an own list.

    If the bytes are damaged, any nonnegative number.
    """
    start, width, own_count = find_span(sums, ranks, index)
    return first_own + own_count if width == OWN else _read_rank(ranks, start, width)


@kernel
def decode_ranks(sums: PrefixSums, ranks: U64Array, first_own: int, out: U32Array) -> int:
    """``out[i] = find_rank(sums, ranks, first_own, i)`` for all tokens, in one pass; returns how many have own lists.

    If the bytes are damaged, that may be more than there are own lists; ranks beyond 32 bits become the 32-bit maximum.
    """
    start, position, own_count = i64(0), i64(0), i64(0)
    for i in range(len(out)):
        entry = decode_symbol(sums.table, sums.codes, position)
        position += entry >> 8
        width = entry & 255
        if width == OWN:
            out[i] = np.uint32(min(first_own + own_count, _LARGEST))
            own_count += 1
        else:
            out[i] = np.uint32(_read_rank(ranks, start, width))
            start += width
    return own_count


@long_kernel
def _measure(ranks: U32Array, first_own: int, widths: U8Array) -> int:
    """Write the widths of the ranks, or OWN; returns the sum of the widths."""
    total = i64(0)
    for i in range(len(ranks)):
        if i64(ranks[i]) >= first_own:
            widths[i] = OWN
        else:
            width = rank_width(i64(ranks[i]))
            widths[i] = width
            total += width
    return total


@long_kernel
def _encode(ranks: U32Array, widths: U8Array, out: U64Array) -> None:
    position = i64(0)
    for i in range(len(ranks)):
        width = 0 if widths[i] == OWN else i64(widths[i])
        write_bits(out, position, width, np.uint64(i64(ranks[i]) + 1))
        position += width


def build_ranks(ranks: U32Array, first_own: int) -> tuple[PrefixSums, U64Array]:
    """Store the rank of each token, in the order of the minimal hashes.

    Ranks from `first_own` on occur once each and increase in this order: they are not stored.
    """
    widths = np.zeros(len(ranks), np.uint8)
    out = np.zeros(words_for(_measure(ranks, first_own, widths)), np.uint64)
    _encode(ranks, widths, out)
    return build_prefix_sums(widths, len(out)), out
