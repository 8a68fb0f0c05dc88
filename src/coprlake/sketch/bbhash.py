"""BBHash: a minimal perfect hash function made of bit vectors (paper 4.2; Limasset et al., SEA 2017).

Level 0 is a vector of as many bits as there are keys. Each key is hashed to a bit; a bit that exactly one key hits is
set, and those keys are done. The others go to the next, smaller level, and so on. The minimal hash of a key is the
number of ones before its bit, counted over all levels. Keys left after the last level go into a sorted
list. With one bit per key in each level ("gamma" of 1) the vectors take e = 2.72 bits per key; the counts that make
ranks fast add 0.09.
"""

from typing import Final, NamedTuple

import numpy as np

from coprlake.bits.sequence import read_bits, words_for
from coprlake.bits.words import count_ones
from coprlake.kernel import I64Array, U32Array, U64Array, i64, kernel, long_kernel

LEVEL_LIMIT: Final = 48
"""After this many levels about one key in a billion is left."""
RANK_WORDS: Final = 16
"""The ones are counted in advance up to every RANK_WORDS-th word, so that a lookup counts at most 15 words."""
RANK_BITS: Final = 32

ABSENT: Final = -1

_ONE: Final = np.uint64(1)
_ZERO: Final = np.uint64(0)
_HALF: Final = np.uint64(32)
_SPREAD1: Final = np.uint64(0x9FB21C651E98DF25)
_SPREAD2: Final = np.uint64(0xA24BAED4963EE407)
_SPREAD3: Final = np.uint64(0x9E3779B97F4A7C15)


class PerfectHash(NamedTuple):
    """The function as stored; `level_starts` are bit positions in `levels`, one more than there are levels."""

    level_starts: U64Array
    levels: U64Array
    rank_samples: U64Array
    fallback: U64Array


@kernel
def level_position(fingerprint: np.uint32, level: int, bit_count: int) -> int:
    """The bit of the key in a level: two multiplicative hashes, combined differently in each level."""
    spread = np.uint64(fingerprint) * _SPREAD1
    spread ^= spread >> _HALF
    mixed = spread * _SPREAD2 + np.uint64(level) * (spread * _SPREAD3 | _ONE)
    mixed ^= mixed >> np.uint64(29)
    mixed *= _SPREAD2
    return i64(((mixed >> _HALF) * np.uint64(bit_count)) >> _HALF)


@kernel
def _rank(levels: U64Array, rank_samples: U64Array, position: int) -> int:
    """The number of ones before `position`."""
    word = position >> 6
    first = word // RANK_WORDS * RANK_WORDS
    rank = i64(read_bits(rank_samples, word // RANK_WORDS * RANK_BITS, RANK_BITS))
    for i in range(first, word):
        rank += count_ones(levels[i])
    return rank + count_ones(levels[word] & ((_ONE << np.uint64(position & 63)) - _ONE))


@kernel
def find_index(function: PerfectHash, level_count: int, fallback_count: int, fingerprint: np.uint32) -> int:
    """The minimal hash of a key that the function was built with.

    Any number or ABSENT for another key; any number if the stored bytes are damaged.
    """
    for level in range(level_count):
        start = i64(function.level_starts[level])
        bit_count = i64(function.level_starts[level + 1]) - start
        position = start + level_position(fingerprint, level, bit_count)
        if (function.levels[position >> 6] >> np.uint64(position & 63)) & _ONE != _ZERO:
            return _rank(function.levels, function.rank_samples, position)
    for i in range(fallback_count):
        if np.uint32(read_bits(function.fallback, 32 * i, 32)) == fingerprint:
            ones = (i64(function.level_starts[level_count]) >> 6) // RANK_WORDS
            total = i64(read_bits(function.rank_samples, (ones + 1) * RANK_BITS, RANK_BITS))
            return total + i
    return ABSENT


@long_kernel
def _place(keys: U32Array, level: int, bit_count: int, bits: U64Array, collisions: U64Array) -> None:
    """Set the bits that exactly one key hits."""
    for i in range(len(keys)):
        position = level_position(keys[i], level, bit_count)
        bit = _ONE << np.uint64(position & 63)
        collisions[position >> 6] |= bits[position >> 6] & bit
        bits[position >> 6] |= bit
    for i in range(len(bits)):
        bits[i] &= ~collisions[i]


@long_kernel
def _keep_collided(
    keys: U32Array, ids: U32Array, level: int, start: int, bit_count: int, bits: U64Array, positions: I64Array
) -> int:
    """Record each key's position, and move keys without a bit of their own to the front; returns how many these are.

    A key that goes on to the next level overwrites its position there.
    """
    count = 0
    for i in range(len(keys)):
        key, own_id = keys[i], ids[i]
        position = level_position(key, level, bit_count)
        positions[own_id] = start + position
        keys[count] = key
        ids[count] = own_id
        count += 1 - i64((bits[position >> 6] >> np.uint64(position & 63)) & _ONE)  # no branch: it would be a coin toss
    return count


@long_kernel
def _rank_positions(levels: U64Array, rank_samples: U64Array, positions: I64Array) -> None:
    """Replace each position by its rank, the minimal hash."""
    for i in range(len(positions)):
        positions[i] = _rank(levels, rank_samples, positions[i])


@long_kernel
def _sample_ranks(levels: U64Array, rank_samples: U32Array) -> None:
    """Store the number of ones before every RANK_WORDS-th word, and the total at the end."""
    rank = 0
    for i in range(len(levels)):
        if i % RANK_WORDS == 0:
            rank_samples[i // RANK_WORDS] = rank
        rank += count_ones(levels[i])
    rank_samples[len(levels) // RANK_WORDS + 1] = rank


def build_perfect_hash(fingerprints: U32Array, level_limit: int = LEVEL_LIMIT) -> tuple[PerfectHash, I64Array]:
    """The function for distinct keys, and its value for each of them.

    The same set gives the same function, whatever the order of the keys.
    """
    keys = fingerprints.copy()
    ids = np.arange(len(keys), dtype=np.uint32)
    indexes = np.zeros(len(keys), np.int64)
    levels: list[U64Array] = []
    level_starts = [0]
    while len(keys) and len(levels) < level_limit:
        level, start, word_count = len(levels), level_starts[-1], words_for(len(keys))
        bits = np.zeros(word_count, np.uint64)
        _place(keys, level, 64 * word_count, bits, np.zeros(word_count, np.uint64))
        left = _keep_collided(keys, ids, level, start, 64 * word_count, bits, indexes)
        keys, ids = keys[:left], ids[:left]
        levels.append(bits)
        level_starts.append(start + 64 * word_count)
    vector = np.concatenate(levels) if levels else np.zeros(0, np.uint64)
    rank_samples = np.zeros((len(vector) // RANK_WORDS + 3) // 2 * 2, np.uint32)
    _sample_ranks(vector, rank_samples)
    packed_samples = rank_samples.view(np.uint64)
    if len(vector):
        _rank_positions(vector, packed_samples, indexes)
    order = np.argsort(keys)
    indexes[ids[order]] = np.arange(len(fingerprints) - len(keys), len(fingerprints))
    fallback = np.zeros((len(keys) + 1) // 2 * 2, np.uint32)
    fallback[: len(keys)] = keys[order]
    return PerfectHash(np.array(level_starts, np.uint64), vector, packed_samples, fallback.view(np.uint64)), indexes
