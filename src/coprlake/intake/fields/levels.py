"""How bad it is: the level near the start of each line, under one of seven names."""

from typing import Final

import numpy as np
import pyarrow as pa

from coprlake.config import LEVELS as LEVELS
from coprlake.config import OTHER_LEVEL_NAMES
from coprlake.kernel import I64Array, U8Array, i64, kernel, long_kernel
from coprlake.text.byte_classes import BLANK, CASE_BIT, COLON, QUOTE, TAB, is_digit, is_letter
from coprlake.text.digits import digits_end

TRACE, DEBUG, INFO, NOTICE, WARN, ERROR, FATAL = range(7)
NO_LEVEL: Final = -1

WORDS: Final = {
    **{name: number for number, name in enumerate(LEVELS)},
    **{name: LEVELS.index(meant) for name, meant in OTHER_LEVEL_NAMES.items()},
}
"""Words of at most eight letters and what they mean."""

SYSLOG_SEVERITIES: Final = np.array([FATAL, FATAL, FATAL, ERROR, WARN, NOTICE, INFO, DEBUG], np.int8)

WINDOW_BYTES: Final = 128
_SLOT_BITS: Final = 7
_EQUALS: Final = 61


def _key(word: str) -> int:
    return int.from_bytes(word.encode(), "big")


def _perfect_multiplier() -> int:
    """The first odd number whose products give each word a slot of its own."""
    multiplier = 0x9E3779B97F4A7C15
    while len({_key(word) * multiplier % (1 << 64) >> (64 - _SLOT_BITS) for word in WORDS}) < len(WORDS):
        multiplier = (multiplier * 6364136223846793005 + 1442695040888963406 + 1) % (1 << 64) | 1
    return multiplier


_MULTIPLIER: Final = np.uint64(_perfect_multiplier())
_SHIFT: Final = np.uint64(64 - _SLOT_BITS)
_KEYS: Final = np.zeros(1 << _SLOT_BITS, np.uint64)
_MEANINGS: Final = np.full(1 << _SLOT_BITS, NO_LEVEL, np.int8)
for _word, _meaning in WORDS.items():
    _slot = _key(_word) * int(_MULTIPLIER) % (1 << 64) >> int(_SHIFT)
    _KEYS[_slot] = _key(_word)
    _MEANINGS[_slot] = _meaning
_JOINS: Final = np.array([byte >= 128 or chr(byte).isalnum() or byte == 95 for byte in range(256)], np.bool_)
_OPENS: Final = np.array([chr(byte) in "[<(|:" for byte in range(256)], np.bool_)
_CLOSES: Final = np.array([chr(byte) in "]>)|" for byte in range(256)], np.bool_)


@kernel
def _level_of(data: U8Array, start: int, end: int) -> int:
    """What the word means, in any case, or -1."""
    if end - start < 3 or end - start > 8:
        return NO_LEVEL
    key = np.uint64(0)
    for i in range(start, end):
        if not is_letter(data[i]):
            return NO_LEVEL
        key = (key << np.uint64(8)) | np.uint64(i64(data[i]) & 0xDF)
    slot = (key * _MULTIPLIER) >> _SHIFT
    return i64(_MEANINGS[slot]) if _KEYS[slot] == key else NO_LEVEL


@kernel
def _is_upper(data: U8Array, start: int, end: int) -> bool:
    for i in range(start, end):
        if data[i] > 90:
            return False
    return True


@kernel
def _is_value_of_level(data: U8Array, start: int, i: int) -> bool:
    """Whether ``level=``, ``lvl:``, ``"severity":"`` or the like stands before `i`."""
    while i > start and (data[i - 1] == QUOTE or data[i - 1] == BLANK):
        i -= 1
    if i == start or (data[i - 1] != _EQUALS and data[i - 1] != COLON):
        return False
    i -= 1
    if i > start and data[i - 1] == QUOTE:
        i -= 1
    if i - start < 3:
        return False
    last, third = i64(data[i - 1]) | CASE_BIT, i64(data[i - 3]) | CASE_BIT
    return (last == 108 and (third == 108 or third == 118)) or (last == 121 and third == 105)  # lvl, level; severity


@kernel
def _counts(data: U8Array, start: int, first: int, end: int, stop: int, after_time: bool) -> bool:
    """Whether the word at ``first:stop`` is meant as a level and is not a word of the message.

    Capitals always are; other words in brackets, behind ``level=``, between tabs, behind the timestamp at once, or
    as the first word of the line before a colon.
    """
    if _is_upper(data, first, stop):
        return True
    before = data[first - 1] if first > start else np.uint8(BLANK)
    after = data[stop] if stop < end else np.uint8(BLANK)
    if _OPENS[before] and _CLOSES[after]:
        return True
    if before == TAB and after == TAB:
        return True
    if after_time:
        return True
    if first == start and after == COLON:
        return True
    return _is_value_of_level(data, start, first)


@kernel
def _letter_level(data: U8Array, i: int, end: int) -> int:
    """Android's letter behind two numbers and the timestamp that ends at `i`: ``  1702  2395 D ``."""
    for _ in range(2):
        first = i
        while i < end and data[i] == BLANK:
            i += 1
        if i in (first, end) or not is_digit(data[i]):
            return NO_LEVEL
        i = digits_end(data, i, end)
    if i + 2 >= end or data[i] != BLANK or data[i + 2] != BLANK:
        return NO_LEVEL
    return _one_letter(data[i + 1])


@kernel
def _one_letter(letter: np.uint8) -> int:
    if letter == 86:
        return TRACE
    if letter == 68:
        return DEBUG
    if letter == 73:
        return INFO
    if letter == 87:
        return WARN
    if letter == 69:
        return ERROR
    return FATAL if letter == 70 else NO_LEVEL


@kernel
def _find_level(data: U8Array, start: int, first: int, stop: int, end: int) -> int:
    """The level of the line from `start` to `end` whose timestamp is at ``first:stop``, or -1."""
    has_time = stop > first
    if has_time and first <= start + 1 and is_letter(data[first]) and is_digit(data[first + 1]):
        return _one_letter(data[first])  # glog
    i = stop if has_time and first <= start + 1 else start
    last = min(end, max(start + WINDOW_BYTES, stop + WINDOW_BYTES // 2))
    words_after = 0
    while i < last:
        if not is_letter(data[i]) or (i > start and _JOINS[data[i - 1]]):
            i += 1
            continue
        word = i
        while i < end and _JOINS[data[i]]:
            i += 1
        words_after += word >= stop
        level = _level_of(data, word, i)
        if level != NO_LEVEL and _counts(data, start, word, end, i, has_time and word >= stop and words_after == 1):
            return level
    return NO_LEVEL


@long_kernel
def find_levels(
    data: U8Array, starts: I64Array, ends: I64Array, firsts: I64Array, stops: I64Array, out: I64Array
) -> None:
    """The number of the level in each ``data[starts[i]:ends[i]]``, whose timestamp is at ``firsts[i]:stops[i]``."""
    for line in range(len(starts)):
        start, end, stop = i64(starts[line]), i64(ends[line]), i64(stops[line])
        level = NO_LEVEL
        if stop > start and stop < end and data[stop] == BLANK:
            level = _letter_level(data, stop, end)
        if level == NO_LEVEL:
            level = _find_level(data, start, i64(firsts[line]), stop, end)
        out[line] = level


_NAMES: Final = pa.array(LEVELS, pa.string())


def level_column(numbers: I64Array) -> pa.DictionaryArray:
    """The names of levels, null for -1."""
    indices = pa.array(numbers.astype(np.int32), mask=numbers < 0)
    return pa.DictionaryArray.from_arrays(indices, _NAMES)


def level_named(text: str) -> str:
    """The usual name of a level that a structured log gives by name; names that are not known stay, in capitals."""
    word = text.strip().upper()
    if word in WORDS:
        return LEVELS[WORDS[word]]
    return {"INFORMATION": "INFO", "EMERGENCY": "FATAL", "INFORMATIONAL": "INFO"}.get(word, word)
