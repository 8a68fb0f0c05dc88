"""Rule 9: winnowed grams, which find substrings of digits and across words (not in the paper).

The paper's 3-grams end at word boundaries, and any three digits are in every batch: that is why COPR "falls back to
a full scan" for parts of addresses and numbers (paper 5.2.2). Longer grams are rarer, but there are far too many to
index them all. Winnowing (Schleimer, Wilkerson, Aiken, SIGMOD 2003) indexes few and still never misses: of all
grams in a *window* of `WINDOW_BYTES` bytes, one is chosen by a rule that looks only at the window. A search
text that contains a whole window chooses the same gram, so every batch with that text has it.

* A gram has `GRAM_BYTES` symbols, or one more if these are only digits and dots: there are ten digits, but 36
  letters and digits, and people search for numbers and addresses.
* Any gram of a window may be chosen, and choosing the same one in many windows makes the index small. A random
  order chooses 2 of 7 grams; the *open-closed* order (Groot Koerkamp, Liu, Pibiri, 2025) chooses 15 % fewer: first
  come grams whose least pair of symbols is in the middle, then those that have it at an end, then the others.
* Windows do not cross blanks: runs between blanks repeat, and the scanner skips a run that the batch already has.
"""

from typing import Final

import numpy as np

from coprlake.kernel import U8Array, i64, kernel, word_of
from coprlake.tokens.fingerprint import mix, upper_half
from coprlake.tokens.rules import SYMBOLS, WINDOW_BYTES
from coprlake.tokens.seen import WINNOW_BYTES, Seen, Winnow, add_fingerprint

GRAM_BYTES: Final = 6

_SALT: Final = np.uint64(0xB5026F5AA96619E9)
"""Keeps grams distinct from words with the same symbols."""
_PAIR_ORDER: Final = np.uint32(0x9E3779B1)
_NUMERIC: Final = -np.isin(np.arange(256), list(b"0123456789.")).astype(np.int64)
"""All bits for digits and the dot, none for other bytes."""
_EIGHT: Final = np.uint32(8)
_SIX_SYMBOLS: Final = np.uint64((1 << 48) - 1)
_SEVEN_SYMBOLS: Final = np.uint64((1 << 56) - 1)
_NO_GRAM: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_TWO: Final = np.uint64(2)
_LOW_30: Final = np.uint64((1 << 30) - 1)
_LOW_32: Final = np.uint64((1 << 32) - 1)
_HALF: Final = np.uint64(32)
_CLASS_AT: Final = np.uint64(62)


@kernel
def _read_symbols(data: U8Array, start: int, size: int, winnow: Winnow) -> None:
    """Write the symbols of ``data[start:start + size]``, their pairs, and where six digits and dots end."""
    run, last = 0, np.uint32(0)
    for i in range(size):
        byte = data[start + i]
        symbol = SYMBOLS[byte]
        winnow.symbols[i] = symbol
        run = (run + 1) & _NUMERIC[byte]  # no branch: digits are hard to predict
        winnow.is_numeric[i] = run >= GRAM_BYTES
        winnow.pairs[i] = (last | np.uint32(symbol) << _EIGHT) * _PAIR_ORDER
        last = np.uint32(symbol)


@kernel
def _order_grams(size: int, seed: np.uint64, winnow: Winnow) -> None:
    """Write the key of the gram that starts at each symbol: its class, then 30 random bits, then its fingerprint.

    So comparing grams compares numbers. We do not order by fingerprint: all chosen fingerprints would be small.
    """
    pairs = winnow.pairs
    for i in range(size - GRAM_BYTES + 1):
        least = min(min(min(pairs[i + 1], pairs[i + 2]), min(pairs[i + 3], pairs[i + 4])), pairs[i + 5])
        at_end = least in (pairs[i + 1], pairs[i + 5])
        gram_class = _ZERO if least == pairs[i + 3] else (_ONE if at_end else _TWO)
        symbols = word_of(winnow.symbols, i)
        gram = symbols & (_SEVEN_SYMBOLS if winnow.is_numeric[i + GRAM_BYTES - 1] else _SIX_SYMBOLS)
        mixed = mix(gram, seed)
        winnow.keys[i] = gram_class << _CLASS_AT | (mixed & _LOW_30) << _HALF | np.uint64(upper_half(mixed))


@kernel
def add_winnowed(data: U8Array, start: int, end: int, seed: np.uint64, seen: Seen) -> None:
    """Add the gram of each window of ``data[start:end]``, which has no blanks; nothing if it has no whole window.

    `seen` has room for ``end - start`` more tokens. Works on blocks that stay in the L1 cache, in steps without
    dependencies between grams, so that the processor can work on many grams at a time.
    """
    keys, is_numeric = seen.winnow.keys, seen.winnow.is_numeric
    chosen = _ZERO
    while end - start >= WINDOW_BYTES:
        size = min(end - start, WINNOW_BYTES)
        _read_symbols(data, start, size, seen.winnow)
        _order_grams(size, seed ^ _SALT, seen.winnow)
        count = 0
        for i in range(size - WINDOW_BYTES + 1):
            least = min(min(min(keys[i], keys[i + 1]), min(keys[i + 2], keys[i + 3])), keys[i + 4])
            last = keys[i + 5] | _NO_GRAM * np.uint64(is_numeric[i + WINDOW_BYTES - 1])  # seven: not in the window
            least = min(least, last)
            keys[count] = least  # overwrites only what has been read
            count += i64(least != chosen)
            chosen = least
        for i in range(count):
            add_fingerprint(np.uint32(keys[i] & _LOW_32), seen)
        start += size - WINDOW_BYTES + 1
