"""A checksum as fast as memory, so that a whole sketch can be checked before it is first trusted."""

from typing import Final

import numpy as np

from coprlake.kernel import U64Array, long_kernel

_PRIME: Final = np.uint64(0x9E3779B185EBCA87)
_SEEDS: Final = np.array([0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89], np.uint64)
_SHIFT: Final = np.uint64(29)


@long_kernel
def checksum(words: U64Array) -> np.uint64:
    """Four lanes of ``lane = (lane ^ word) * PRIME``, mixed at the end.

    Each step is a bijection of the lane and of the word: inputs that differ in one word never have the same sum; others
    do with probability 2 ** -64. Four lanes, because each multiplication waits for the one before it.
    """
    a, b, c, d = _SEEDS[0], _SEEDS[1], _SEEDS[2], _SEEDS[3]
    whole = len(words) // 4 * 4
    for i in range(0, whole, 4):
        a = (a ^ words[i]) * _PRIME
        b = (b ^ words[i + 1]) * _PRIME
        c = (c ^ words[i + 2]) * _PRIME
        d = (d ^ words[i + 3]) * _PRIME
    for i in range(whole, len(words)):
        a = (a ^ words[i]) * _PRIME
    a = (a ^ (a >> _SHIFT) ^ b) * _PRIME
    a = (a ^ (a >> _SHIFT) ^ c) * _PRIME
    a = (a ^ (a >> _SHIFT) ^ d) * _PRIME
    return (a ^ (a >> _SHIFT) ^ np.uint64(len(words))) * _PRIME
