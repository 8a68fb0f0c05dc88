"""The token map: from a fingerprint to its posting or posting list (paper 3.2, 4.1).

An entry is one 64-bit word, so that a probe touches one cache line: the fingerprint in the upper half, the value in the
lower. The two top bits of the value give its kind:

| top bits | value                                                       |
|----------|-------------------------------------------------------------|
| 00       | absent: the entry is free                                   |
| 01       | the only posting of the token, encoded directly             |
| 10       | the number of a posting list                                |

Collisions step to the next entry. The upper bits of the fingerprint give its home entry, so entries are
nearly in the order of fingerprints, and growing fills the larger map front to back.
"""

from typing import Final

import numpy as np

from coprlake.kernel import U32Array, U64Array, i64, kernel, long_kernel

DIRECT: Final = 1 << 30
LIST: Final = 1 << 31
PAYLOAD: Final = DIRECT - 1
"""The part of a value below the two top bits: a posting or a list number."""

_HALF: Final = np.uint64(32)
_LOWER: Final = np.uint64(0xFFFFFFFF)


@kernel
def find_entry(entries: U64Array, fingerprint: np.uint32) -> int:
    """The entry that holds the fingerprint, or the free entry where it belongs. There must be a free entry.

    The number of entries is a power of two.
    """
    mask = len(entries) - 1
    entry = i64(fingerprint) * len(entries) >> 32
    while entries[entry] != np.uint64(0) and np.uint32(entries[entry] >> _HALF) != fingerprint:
        entry = (entry + 1) & mask
    return entry


@kernel
def value_of(entries: U64Array, entry: int) -> int:
    """The value at an entry; 0 if it is free."""
    return i64(entries[entry] & _LOWER)


@kernel
def set_value(entries: U64Array, entry: int, fingerprint: np.uint32, value: int) -> None:
    """Write an entry."""
    entries[entry] = np.uint64(fingerprint) << _HALF | np.uint64(value)


@long_kernel
def find_values(entries: U64Array, fingerprints: U32Array, out: U32Array) -> None:
    """``out[i] = value of fingerprints[i]``, 0 if absent."""
    for i in range(len(fingerprints)):
        out[i] = value_of(entries, find_entry(entries, fingerprints[i])) if fingerprints[i] != 0 else 0


@long_kernel
def refill(old: U64Array, new: U64Array) -> None:
    """Copy every entry of `old` into the empty, larger map `new`."""
    mask = len(new) - 1
    for i in range(len(old)):
        if old[i] != np.uint64(0):
            entry = i64(old[i] >> _HALF) * len(new) >> 32
            while new[entry] != np.uint64(0):
                entry = (entry + 1) & mask
            new[entry] = old[i]
