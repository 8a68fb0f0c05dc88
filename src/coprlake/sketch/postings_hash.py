"""The postings hash: one number for a set of postings, in whatever order they arrived (definitions 3.1 and 3.2).

The hash of one posting is one step of a linear congruential generator modulo 2**64 from that posting; we keep
the upper half, because the low bits of these generators have short periods. The hash of a set is the XOR of the hashes
of its elements, so a posting is added in constant time. Different sets may share a hash; the lookup map compares the
sets themselves.
"""

from typing import Final

import numpy as np

from coprlake.kernel import I64Array, U16Array, U64Array, i64, kernel

_MULTIPLIER: Final = np.uint64(6364136223846793005)  # Knuth's MMIX generator
_INCREMENT: Final = np.uint64(1442695040888963407)


@kernel
def posting_hash(posting: int) -> np.uint32:
    """``hash_element(posting)``: the hash of the set with only this posting."""
    return np.uint32((np.uint64(posting) * _MULTIPLIER + _INCREMENT) >> np.uint64(32))


@kernel
def postings_hash(postings: U16Array) -> np.uint32:
    """``functools.reduce(operator.xor, map(posting_hash, postings), 0)``; the postings must be distinct."""
    result = np.uint32(0)
    for i in range(len(postings)):
        result ^= posting_hash(i64(postings[i]))
    return result


@kernel
def hash_each(postings: I64Array, out: U64Array) -> None:
    """``out[i] = posting_hash(postings[i])``."""
    for i in range(len(postings)):
        out[i] = np.uint64(posting_hash(postings[i]))
