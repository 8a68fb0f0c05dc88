"""A Huffman code for a small alphabet, with codes of at most eight bits.

Decoding is one look-up of the next eight bits in a table of 256 entries, or of fewer bits in a smaller table if no code
is longer. The table itself is stored, so a reader builds nothing.
"""

import heapq
from dataclasses import dataclass
from typing import Final

import numpy as np

from coprlake.bits.sequence import read_bits
from coprlake.kernel import I64Array, U16Array, U64Array, i64, kernel

LONGEST_CODE_BITS: Final = 8
TABLE_SIZE: Final = 1 << LONGEST_CODE_BITS
_SYMBOL_BITS: Final = 8


@dataclass(frozen=True)
class PrefixCode:
    """``codes[s]``, of ``lengths[s]`` bits, is the code of symbol ``s``; length 0: it does not occur."""

    lengths: I64Array
    codes: U64Array
    table: U16Array


@kernel
def decode_symbol(table: U64Array, codes: U64Array, position: int) -> int:
    """The table's entry for the code at `position`: ``entry >> 8`` is its length in bits, ``entry & 255`` the symbol.

    At the sequence's end the missing bits count as 0. The table has 4, 8, 16, ... or `TABLE_SIZE` entries.
    """
    available = min(LONGEST_CODE_BITS, (len(codes) << 6) - position)
    bits = i64(read_bits(codes, position, available)) & ((len(table) << 2) - 1)
    return i64(read_bits(table, 16 * bits, 16))


def build_prefix_code(counts: I64Array) -> PrefixCode:
    """The code for symbols with these counts; at most 256 symbols."""
    lengths = _code_lengths(counts)
    codes = np.zeros(len(counts), np.uint64)
    table = np.zeros(TABLE_SIZE, np.uint16)
    next_code = 0
    for length in range(1, LONGEST_CODE_BITS + 1):
        next_code <<= 1
        for symbol in np.flatnonzero(lengths == length):
            reversed_code = int(f"{next_code:0{length}b}"[::-1], 2)  # the first bit of a code is the lowest
            codes[symbol] = reversed_code
            table[reversed_code :: 1 << length] = length << _SYMBOL_BITS | int(symbol)
            next_code += 1
    return PrefixCode(lengths, codes, table)


def shortest_table(table: U64Array) -> U64Array:
    """The first entries of a table, as many as its longest code needs: the others repeat them."""
    longest = int(table.view(np.uint16).max()) >> _SYMBOL_BITS
    return table[: max(1 << longest, 4) // 4]


def _code_lengths(counts: I64Array) -> I64Array:
    """Huffman's lengths; when one is too long the counts are flattened until all fit."""
    present = np.flatnonzero(counts)
    lengths = np.zeros(len(counts), np.int64)
    if len(present) == 1:
        lengths[present] = 1
    weights = counts.copy()
    while len(present) > 1:
        heap = [(int(weights[symbol]), [int(symbol)]) for symbol in present]
        heapq.heapify(heap)
        lengths[:] = 0
        while len(heap) > 1:
            light, some = heapq.heappop(heap)
            heavy, others = heapq.heappop(heap)
            lengths[some + others] += 1
            heapq.heappush(heap, (light + heavy, some + others))
        if lengths.max() <= LONGEST_CODE_BITS:
            break
        weights[present] = weights[present] // 4 + 1
    return lengths
