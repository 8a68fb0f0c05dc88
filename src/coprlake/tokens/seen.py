"""The tokens already seen in a batch: with them, repeating a token costs only a few cycles."""

from typing import Final, NamedTuple

import numpy as np

from coprlake.kernel import I64Array, U8Array, U32Array, U64Array, i64, kernel
from coprlake.tokens.fingerprint import finish

_ONE: Final = np.uint64(1)
_ZERO: Final = np.uint64(0)

COUNT, LONG_COUNT = 0, 1
"""Indexes into `Seen.sizes`: the number of fingerprints in `out`, and how many of them are in `long_tokens`."""


WINNOW_BYTES: Final = 512
"""The number of bytes of a run that rule 9 processes at a time."""


class Winnow(NamedTuple):
    """The working memory of rule 9, with an entry for each byte of a block."""

    symbols: U8Array  # with room to load eight from the last one on
    is_numeric: U8Array  # whether six digits and dots end here
    pairs: U32Array  # a number for comparing pairs: this symbol and the one before
    keys: U64Array  # a number for comparing grams: the gram that starts here


def new_winnow() -> Winnow:
    """Working memory that can be reused."""
    size = WINNOW_BYTES
    return Winnow(
        np.zeros(size + 8, np.uint8), np.zeros(size, np.uint8), np.zeros(size, np.uint32), np.zeros(size, np.uint64)
    )


class Seen(NamedTuple):
    """The tokens already seen in the batch, and the memory needed to find them."""

    word_grams: U64Array  # a bit for each gram number of word symbols
    mark_grams: U64Array  # a bit for each gram number of marks
    long_tokens: U32Array  # open-addressed set of fingerprints, 0 = free; its length is a power of two
    chunks: U64Array  # direct-mapped cache of scanned chunks of up to 16 bytes, two words each
    long_chunks: I64Array  # the same for longer ones: start and size of each
    sizes: I64Array
    out: U32Array
    winnow: Winnow


@kernel
def is_new_gram(bits: U64Array, number: int) -> bool:
    """Set bit `number`; returns whether it was not set before."""
    bit = _ONE << np.uint64(number & 63)
    word = bits[number >> 6]
    bits[number >> 6] = word | bit
    return (word & bit) == _ZERO


@kernel
def is_new_token(table: U32Array, fingerprint: np.uint32) -> bool:
    """Add `fingerprint` to the set; returns whether it was not there before. The set must have a free slot."""
    mask = len(table) - 1
    slot = i64(fingerprint) & mask
    while table[slot] != 0:
        if table[slot] == fingerprint:
            return False
        slot = (slot + 1) & mask
    table[slot] = fingerprint
    return True


@kernel
def add_fingerprint(fingerprint: np.uint32, seen: Seen) -> None:
    """Add a token of more than three symbols to `out` unless the batch already has it."""
    if is_new_token(seen.long_tokens, fingerprint):
        seen.out[seen.sizes[COUNT]] = fingerprint
        seen.sizes[COUNT] += 1
        seen.sizes[LONG_COUNT] += 1


@kernel
def add_token(polynomial: np.uint64, seed: np.uint64, seen: Seen) -> None:
    """`add_fingerprint` for the polynomial of a token."""
    add_fingerprint(finish(polynomial, seed), seen)


@kernel
def add_gram(bits: U64Array, number: int, polynomial: np.uint64, seed: np.uint64, seen: Seen) -> None:
    """Add a token of one to three symbols to `out` unless the batch already has it."""
    if is_new_gram(bits, number):
        seen.out[seen.sizes[COUNT]] = finish(polynomial, seed)
        seen.sizes[COUNT] += 1
