"""Rule 9: winnowed grams, which make substrings of digits and across words findable (beyond the paper).

The paper's 3-grams end at the border of a word, and three digits are in every batch: that is why COPR "falls back to
a full scan" for parts of addresses and numbers (paper 5.2.2). Longer grams are rarer, but there are far too many of
them to index all. Winnowing (Schleimer, Wilkerson, Aiken, SIGMOD 2003) indexes few and still never misses: of all
grams in a *window* of `WINDOW_BYTES` bytes, one is chosen by a rule that looks at nothing but the window. A search
text that has a whole window in it chooses the same gram, so every batch with that text has it.

* A gram has `GRAM_BYTES` symbols, or one more if these are digits and dots only: there are ten digits, but 36
  letters and digits, and numbers and addresses are what people look for.
* Which gram of a window is chosen is free, and choosing the same one in many windows makes the index small. A random
  order chooses 2 of 7 grams; the *open-closed* order (Groot Koerkamp, Liu, Pibiri, 2025) chooses 15 % fewer: first
  come grams whose least pair of symbols is in the middle, then those that have it at an end, then the others.
* Windows do not cross blanks: runs between blanks repeat, and the scanner skips a run that the batch has had.
"""

from typing import Final

import numpy as np

from coprlake.kernel import U8Array, kernel
from coprlake.tokens.fingerprint import BASE, mix, upper_half
from coprlake.tokens.rules import DOT, LAST_DIGIT, SYMBOLS, WINDOW_BYTES
from coprlake.tokens.seen import Seen, add_fingerprint

GRAM_BYTES: Final = 6

_SALT: Final = np.uint64(0xB5026F5AA96619E9)
"""Keeps grams apart from words that read the same."""
_PAIR_ORDER: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST_POWER: Final = np.uint64(pow(int(BASE), GRAM_BYTES, 1 << 64))
_NO_GRAM: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_TWO: Final = np.uint64(2)
_EIGHT: Final = np.uint64(8)
_LAST_DIGIT: Final = np.uint64(LAST_DIGIT)
_LOW_32: Final = np.uint64((1 << 32) - 1)
_LOW_30: Final = np.uint64((1 << 30) - 1)
_HALF: Final = np.uint64(32)
_CLASS_AT: Final = np.uint64(62)


@kernel
def _key(polynomial: np.uint64, seed: np.uint64, gram_class: np.uint64) -> np.uint64:
    """What grams are compared by: their class, then 30 random bits; below these, the fingerprint.

    The order is not that of the fingerprints: those that are chosen would all be small ones.
    """
    mixed = mix(polynomial, seed)
    return gram_class << _CLASS_AT | (mixed & _LOW_30) << _HALF | np.uint64(upper_half(mixed))


@kernel
def add_winnowed(data: U8Array, start: int, end: int, seed: np.uint64, seen: Seen) -> None:
    """Add the gram of each window of ``data[start:end]``, which has no blank; nothing if it has no whole window.

    `seen` has room for ``end - start`` tokens more. Pairs and keys stay in registers: that is why they have names and
    no array. Cost: some 40 cycles a byte.
    """
    if end - start < WINDOW_BYTES:
        return
    seed = seed ^ _SALT
    polynomial = _ZERO  # of the last six symbols
    gram_class = _ZERO
    numeric = 0  # how many digits and dots end here
    last_symbol = _ZERO
    pair1 = pair2 = pair3 = pair4 = pair5 = _ZERO  # of the last six symbols
    key1 = key2 = key3 = key4 = key5 = key6 = _NO_GRAM  # of the grams of the window
    chosen = _ZERO
    for i in range(start, end):
        symbol = np.uint64(SYMBOLS[data[i]])
        if numeric >= GRAM_BYTES:  # the gram that was read last has seven symbols, and ends here
            key6 = _key(polynomial * BASE + symbol, seed, gram_class)
        polynomial = polynomial * BASE + symbol
        if i - start >= GRAM_BYTES:
            polynomial -= np.uint64(SYMBOLS[data[i - GRAM_BYTES]]) * _FIRST_POWER
        numeric = numeric + 1 if symbol <= _LAST_DIGIT or data[i] == DOT else 0
        pair1, pair2, pair3, pair4 = pair2, pair3, pair4, pair5
        pair5 = (last_symbol << _EIGHT | symbol) * _PAIR_ORDER
        last_symbol = symbol
        if i - start < GRAM_BYTES - 1:
            continue
        least_pair = min(min(min(pair1, pair2), min(pair3, pair4)), pair5)
        at_end = least_pair in (pair1, pair5)
        gram_class = _ZERO if least_pair == pair3 else (_ONE if at_end else _TWO)
        key1, key2, key3, key4, key5 = key2, key3, key4, key5, key6
        key6 = _NO_GRAM if numeric >= GRAM_BYTES else _key(polynomial, seed, gram_class)
        least = min(min(min(key1, key2), min(key3, key4)), min(key5, key6))
        if least != chosen and i - start >= WINDOW_BYTES - 1:
            chosen = least
            add_fingerprint(np.uint32(least & _LOW_32), seen)
