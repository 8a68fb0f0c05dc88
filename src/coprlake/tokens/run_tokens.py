"""The tokens of a run of text, by each rule set: words, marks and text beyond ASCII, their pairs, triples and grams."""

from typing import Final, TypeAlias

import numpy as np

from coprlake.kernel import U8Array, i64, kernel
from coprlake.text.utf8 import character_end
from coprlake.tokens.fingerprint import BASE, finish, polynomial_of
from coprlake.tokens.rules import (
    DOT,
    GRAM_RADIX,
    IS_SEPARATOR,
    LAST_BLANK,
    LAST_DIGIT,
    LAST_MARK,
    LAST_WORD,
    LONG_WORD_BYTES,
    SYMBOLS,
    WINDOW_BYTES,
    WINNOWED,
    WORDS,
)
from coprlake.tokens.seen import COUNT, LONG_COUNT, Seen, add_gram, add_token, is_new_gram

_ONE: Final = np.uint64(1)
_ZERO: Final = np.uint64(0)
ROOM: Final = 1 << 16
"""What one run of ASCII can add at the most: every gram of its class, and its own tokens."""

Word: TypeAlias = tuple[int, int, int, np.uint64, np.uint64]
"""Where a word ends, how many digits it has, the gram number of its last three symbols, its polynomial, and the power
of the base by which a polynomial before it is multiplied."""


@kernel
def _scan_marks(data: U8Array, start: int, end: int, seed: np.uint64, rules: int, seen: Seen) -> int:
    """Rules 2 and 7 for the run of marks at `start`; returns where the run ends."""
    polynomial = _ZERO
    last, last_two, number = 0, 0, 0
    i = start
    while i < end:
        symbol = i64(SYMBOLS[data[i]])
        if symbol <= LAST_WORD or symbol > LAST_MARK:
            break
        mark = symbol - LAST_WORD
        number = last_two * GRAM_RADIX + mark
        polynomial = polynomial * BASE + np.uint64(symbol)
        if rules > WORDS:
            one = np.uint64(symbol)
            add_gram(seen.mark_grams, mark, one, seed, seen)
            if last > 0:
                two = np.uint64(last + LAST_WORD) * BASE + one
                add_gram(seen.mark_grams, last * GRAM_RADIX + mark, two, seed, seen)
                if last_two > GRAM_RADIX:
                    three = np.uint64(last_two // GRAM_RADIX + LAST_WORD) * BASE * BASE + two
                    add_gram(seen.mark_grams, number, three, seed, seen)
        last_two = last * GRAM_RADIX + mark
        last = mark
        i += 1
    if i - start > 3:
        add_token(polynomial, seed, seen)
    else:
        add_gram(seen.mark_grams, number, polynomial, seed, seen)
    return i


@kernel
def add_character_pairs(data: U8Array, start: int, end: int, seed: np.uint64, seen: Seen) -> None:
    """Rule 8 for the characters of ``data[start:end]``."""
    second = character_end(data, start, end)
    while second < end:
        third = character_end(data, second, end)
        add_token(polynomial_of(data, start, third), seed, seen)
        start, second = second, third


@kernel
def _scan_foreign(data: U8Array, start: int, end: int, seed: np.uint64, rules: int, seen: Seen) -> int:
    """Rules 3 and 8 for the non-ASCII run `data[start:end]`; returns `end`."""
    add_token(polynomial_of(data, start, end), seed, seen)
    if rules > WORDS:
        add_character_pairs(data, start, end, seed, seen)
    return end


@kernel
def _foreign_end(data: U8Array, start: int, end: int) -> int:
    """Where the run of non-ASCII bytes at `start` ends."""
    while start < end and data[start] >= 0x80:
        start += 1
    return start


@kernel
def _keeps_pair(
    data: U8Array,
    low: int,
    previous_start: int,
    previous_digits: int,
    start: int,
    digits: int,
    stop: int,
    high: int,
) -> bool:
    """Whether rule set 2 has the pair ``data[previous_start:stop]``, of which the second word begins at `start`.

    It has pairs that are shorter than a window, unless there are digits in both words: times and fractions would be
    most of them. But two numbers in a longer chain of dots are a part of an address, and stay.
    """
    if digits == 0 or previous_digits == 0:
        return stop - previous_start < WINDOW_BYTES
    if data[start - 1] != DOT or digits < stop - start or previous_digits < start - 1 - previous_start:
        return False
    return (stop < high and data[stop] == DOT) or (previous_start > low and data[previous_start - 1] == DOT)


@kernel
def _keeps_triple(size: int, numbers: int) -> bool:
    """Whether rule set 2 has a triple of `size` bytes, of whose words the last `numbers` are numbers.

    The pairs of a short triple of numbers say as much as the triple.
    """
    return size >= WINDOW_BYTES or numbers < 3


@kernel
def _has_room(seen: Seen) -> bool:
    """Whether the tokens of another run of ASCII surely fit."""
    return len(seen.out) - seen.sizes[COUNT] >= ROOM and seen.sizes[LONG_COUNT] <= len(seen.long_tokens) // 2 - 4


@kernel
def _scan_between(data: U8Array, i: int, end: int, seed: np.uint64, rules: int, seen: Seen) -> int:
    """Add the tokens of what is not a word at `i`: marks or non-ASCII text; blanks have none.

    Returns where it ends, or -1 if `seen` has no room.
    """
    symbol = i64(SYMBOLS[data[i]])
    if symbol > LAST_MARK and symbol <= LAST_BLANK:
        return i + 1
    if not _has_room(seen):
        return -1
    if symbol <= LAST_MARK:
        return _scan_marks(data, i, end, seed, rules, seen)
    stop = _foreign_end(data, i, end)
    most = stop - i
    if seen.sizes[LONG_COUNT] + most > len(seen.long_tokens) // 2 or len(seen.out) - seen.sizes[COUNT] < most:
        return -1
    return _scan_foreign(data, i, stop, seed, rules, seen)


@kernel
def _scan_word(data: U8Array, i: int, end: int, seed: np.uint64, rules: int, seen: Seen) -> Word:
    """Read the word at `i` (rule 1), and add its 3-grams on the way (rule 6)."""
    polynomial = _ZERO
    power = _ONE
    digits, last, last_two = 0, 0, 0
    symbol = i64(SYMBOLS[data[i]])
    while True:
        number = last_two * GRAM_RADIX + symbol
        polynomial = polynomial * BASE + np.uint64(symbol)
        power = power * BASE
        digits += 1 if symbol <= LAST_DIGIT else 0
        if rules > WORDS and last_two > GRAM_RADIX and is_new_gram(seen.word_grams, number):
            upper = np.uint64(last_two // GRAM_RADIX) * BASE + np.uint64(last)
            seen.out[seen.sizes[COUNT]] = finish(upper * BASE + np.uint64(symbol), seed)
            seen.sizes[COUNT] += 1
        last_two = last * GRAM_RADIX + symbol
        last = symbol
        i += 1
        if i == end:
            break
        symbol = i64(SYMBOLS[data[i]])
        if symbol > LAST_WORD:
            break
    return i, digits, number, polynomial, power


@kernel
def _link(data: U8Array, i: int, end: int, linked: int, separator: np.uint64) -> int:
    """How the word that ends at `i` is linked with the next: 0 not, 1 by a single separator, 2 by a second dot."""
    if i + 1 >= end or not IS_SEPARATOR[data[i]] or SYMBOLS[data[i + 1]] > LAST_WORD:
        return 0
    return 2 if data[i] == DOT and linked > 0 and separator == np.uint64(SYMBOLS[DOT]) else 1


@kernel
def _scan_published(data: U8Array, i: int, end: int, seed: np.uint64, rules: int, seen: Seen) -> bool:
    """`scan_chunk` by the rules as they are published: 1-5, and 6-8 unless `rules` is WORDS."""
    linked = 0
    separator, previous, previous_pair = _ZERO, _ZERO, _ZERO
    while i < end:
        if SYMBOLS[data[i]] > LAST_WORD:
            i = _scan_between(data, i, end, seed, rules, seen)
            if i < 0:
                return False
            continue
        if not _has_room(seen):
            return False
        start = i
        i, _, number, polynomial, power = _scan_word(data, i, end, seed, rules, seen)
        if i - start <= 3:
            add_gram(seen.word_grams, number, polynomial, seed, seen)
        else:
            add_token(polynomial, seed, seen)
        pair = _ZERO
        if linked > 0:
            joint = separator * power + polynomial
            pair = previous * BASE * power + joint
            add_token(pair, seed, seen)  # rule 4
            if linked > 1:
                add_token(previous_pair * BASE * power + joint, seed, seen)  # rule 5
        linked = _link(data, i, end, linked, separator)
        if linked > 0:
            separator = np.uint64(SYMBOLS[data[i]])
            previous, previous_pair = polynomial, pair
            add_gram(seen.mark_grams, i64(SYMBOLS[data[i]]) - LAST_WORD, separator, seed, seen)
            i += 1
    return True


@kernel
def _scan_winnowed(data: U8Array, i: int, end: int, low: int, high: int, seed: np.uint64, seen: Seen) -> bool:
    """`scan_chunk` by rule set 2, which leaves out words, pairs and triples that rule 9 makes superfluous."""
    linked = 0
    separator, previous, previous_pair = _ZERO, _ZERO, _ZERO
    numbers = 0  # linked words up to this one that are numbers, one after another
    start, previous_start, first_start = i, i, i
    digits, previous_digits = 0, 0
    while i < end:
        if SYMBOLS[data[i]] > LAST_WORD:
            i = _scan_between(data, i, end, seed, WINNOWED, seen)
            if i < 0:
                return False
            continue
        if not _has_room(seen):
            return False
        first_start, previous_start, previous_digits = previous_start, start, digits
        start = i
        i, digits, number, polynomial, power = _scan_word(data, i, end, seed, WINNOWED, seen)
        if i - start <= 3:
            add_gram(seen.word_grams, number, polynomial, seed, seen)
        elif i - start < LONG_WORD_BYTES or digits == 0:
            add_token(polynomial, seed, seen)
        numbers = numbers + 1 if digits == i - start else 0
        pair = _ZERO
        if linked > 0:
            joint = separator * power + polynomial
            pair = previous * BASE * power + joint
            if _keeps_pair(data, low, previous_start, previous_digits, start, digits, i, high):
                add_token(pair, seed, seen)  # rule 4
            if linked > 1 and _keeps_triple(i - first_start, numbers):
                add_token(previous_pair * BASE * power + joint, seed, seen)  # rule 5
        linked = _link(data, i, end, linked, separator)
        if linked > 0:
            separator = np.uint64(SYMBOLS[data[i]])
            previous, previous_pair = polynomial, pair
            add_gram(seen.mark_grams, i64(SYMBOLS[data[i]]) - LAST_WORD, separator, seed, seen)
            i += 1
        else:
            numbers = 0
    return True


@kernel
def scan_chunk(data: U8Array, i: int, end: int, low: int, high: int, seed: np.uint64, rules: int, seen: Seen) -> bool:
    """Add the tokens of ``data[i:end]``, whose words are whole; False if `seen` has no room for them.

    ``data[low:high]`` is what may be looked at around it: the run in a line, or the whole of a search text.
    """
    if rules == WINNOWED:
        return _scan_winnowed(data, i, end, low, high, seed, seen)
    return _scan_published(data, i, end, seed, rules, seen)
