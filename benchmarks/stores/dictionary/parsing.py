"""From lines to templates and variables.

A line is cut into tokens, the runs of ASCII letters, digits and non-ASCII bytes, and what stands between them. What
stands between is always a part of the template. A token is a part of it, too, if it has no digit (as in CLP) and is
frequent in a sample of the lines (as LogGrep finds its patterns); all others are variables, of which the template has
only the mark. So whether a token is a variable is known from the token alone, and a mistake costs space, never a line.
"""

from typing import Final, NamedTuple

import numpy as np

from coprlake.kernel import I32Array, I64Array, U8Array, U64Array, i64, kernel

MARK: Final = 0x11
"""Stands for a variable in a template. Lines that have it are kept as they are."""
MOST_VARIABLES: Final = 1000
MOST_BYTES: Final = 65535
"""Of a variable: lines with longer ones are kept as they are."""
SAMPLE_LINES: Final = 16384
SAMPLE_SHARE: Final = 0.01
"""So often, as a part of the sampled lines, a word stands at least if it belongs to templates. More words in templates
make more templates: with 0.0005 a sixth of generated lines has one that too few others have, with 0.01 one in 22."""
WORD_SLOTS: Final = 1 << 17
NO_TEMPLATE: Final = -1

LINES_DONE, TEMPLATE_COUNT, POOL_BYTES, VARIABLE_COUNT = 0, 1, 2, 3
"""Where `Parsed.sizes` has how much there is."""


def _kinds() -> U8Array:
    kinds = np.zeros(256, np.uint8)
    kinds[0x80:] = 1
    kinds[np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", np.uint8)] = 1
    kinds[np.frombuffer(b"0123456789", np.uint8)] = 2
    return kinds


KINDS: Final = _kinds()
"""0 for bytes between tokens, 1 for letters and non-ASCII bytes, 2 for digits."""
_BASE: Final = np.uint64(0xD6E8FEB86659FD93)
_MIX: Final = np.uint64(0xFF51AFD7ED558CCD)
_HALF: Final = np.uint64(32)
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)

Starts = I32Array | I64Array
"""Offsets of lines, as Arrow has them."""


class Words(NamedTuple):
    """How often words without digits are in the sample: an open-addressed table, 0 = free."""

    hashes: U64Array
    counts: I64Array


class Parsed(NamedTuple):
    """Templates, and the variables of lines."""

    pool: U8Array  # the texts of templates, one after the other
    template_starts: I64Array  # where each begins in the pool, and the end of the last
    slots: I32Array  # open-addressed table of template numbers + 1; its length is a power of two
    hashes: U64Array  # of each template
    templates: I32Array  # of each line, or NO_TEMPLATE
    first_variables: I64Array  # of each line
    starts: I32Array  # of each variable, in the bytes of all lines
    ends: I32Array
    sizes: I64Array


@kernel
def finished(polynomial: np.uint64) -> np.uint64:
    """A hash, never 0."""
    word = (polynomial ^ (polynomial >> _HALF)) * _MIX
    return (word ^ (word >> _HALF)) | _ONE


@kernel
def hash_of(data: U8Array, start: int, end: int) -> np.uint64:
    """A hash of these bytes, never 0."""
    polynomial = np.uint64(end - start)
    for i in range(start, end):
        polynomial = polynomial * _BASE + np.uint64(data[i])
    return finished(polynomial)


@kernel
def _word_slot(words: Words, hashed: np.uint64) -> int:
    """Where the word is, or the free slot where it would be."""
    mask = len(words.hashes) - 1
    slot = i64(hashed >> _HALF) & mask
    while words.hashes[slot] != _ZERO and words.hashes[slot] != hashed:
        slot = (slot + 1) & mask
    return slot


@kernel
def _token_end(data: U8Array, start: int, end: int) -> tuple[int, bool]:
    """Where the token that begins at `start` ends, and whether it has a digit."""
    has_digit = False
    while start < end and KINDS[data[start]] != 0:
        has_digit |= KINDS[data[start]] == 2
        start += 1
    return start, has_digit


@kernel
def count_words(data: U8Array, starts: Starts, step: int, words: Words) -> None:
    """Count the words without digits of every `step`-th line; when the table is half full, only those it has."""
    used = 0
    for line in range(0, len(starts) - 1, step):
        i, end = i64(starts[line]), i64(starts[line + 1])
        while i < end:
            if KINDS[data[i]] == 0:
                i += 1
                continue
            stop, has_digit = _token_end(data, i, end)
            if not has_digit:
                hashed = hash_of(data, i, stop)
                slot = _word_slot(words, hashed)
                if words.hashes[slot] != _ZERO:
                    words.counts[slot] += 1
                elif 2 * used < len(words.hashes):
                    words.hashes[slot] = hashed
                    words.counts[slot] = 1
                    used += 1
            i = stop


@kernel
def _same(pool: U8Array, first: int, second: int, size: int) -> bool:
    for i in range(size):
        if pool[first + i] != pool[second + i]:
            return False
    return True


@kernel
def _template_number(parsed: Parsed, size: int, hashed: np.uint64) -> int:
    """The number of the template whose text was just put at the end of the pool; it stays there if it is new."""
    mask = len(parsed.slots) - 1
    count, text = parsed.sizes[TEMPLATE_COUNT], parsed.sizes[POOL_BYTES]
    slot = i64(hashed >> _HALF) & mask
    while parsed.slots[slot] != 0:
        number = i64(parsed.slots[slot]) - 1
        start = parsed.template_starts[number]
        if (
            parsed.hashes[number] == hashed
            and parsed.template_starts[number + 1] - start == size
            and _same(parsed.pool, start, text, size)
        ):
            return number
        slot = (slot + 1) & mask
    parsed.slots[slot] = count + 1
    parsed.hashes[count] = hashed
    parsed.template_starts[count + 1] = text + size
    parsed.sizes[POOL_BYTES] = text + size
    parsed.sizes[TEMPLATE_COUNT] = count + 1
    return count


@kernel
def _parse_line(data: U8Array, i: int, end: int, words: Words, least_count: int, parsed: Parsed) -> int:
    """The template of ``data[i:end]``, whose variables are added; or NO_TEMPLATE."""
    pool, out = parsed.pool, parsed.sizes[POOL_BYTES]
    begin, variable = out, parsed.sizes[VARIABLE_COUNT]
    most = variable + MOST_VARIABLES
    polynomial = _ZERO
    while i < end:
        byte = data[i]
        if KINDS[byte] == 0:
            if byte == MARK:
                return NO_TEMPLATE
            pool[out] = byte
            polynomial = polynomial * _BASE + np.uint64(byte)
            out += 1
            i += 1
            continue
        stop, has_digit = _token_end(data, i, end)
        is_static = False
        if not has_digit:
            slot = _word_slot(words, hash_of(data, i, stop))
            is_static = words.hashes[slot] != _ZERO and words.counts[slot] >= least_count
        if is_static:
            while i < stop:
                pool[out] = data[i]
                polynomial = polynomial * _BASE + np.uint64(data[i])
                out += 1
                i += 1
            continue
        if stop - i > MOST_BYTES or variable == most:
            return NO_TEMPLATE
        parsed.starts[variable], parsed.ends[variable] = i, stop
        variable += 1
        pool[out] = MARK
        polynomial = polynomial * _BASE + np.uint64(MARK)
        out += 1
        i = stop
    number = _template_number(parsed, out - begin, finished(polynomial))
    parsed.sizes[VARIABLE_COUNT] = variable
    return number


@kernel
def parse_lines(data: U8Array, starts: Starts, words: Words, least_count: int, parsed: Parsed) -> None:
    """``templates[i], variables[i] = split(data[starts[i]:starts[i + 1]])``; there is room, see `new_parsed`."""
    for line in range(len(starts) - 1):
        parsed.first_variables[line] = parsed.sizes[VARIABLE_COUNT]
        number = _parse_line(data, i64(starts[line]), i64(starts[line + 1]), words, least_count, parsed)
        parsed.templates[line] = number
        parsed.sizes[LINES_DONE] = line + 1


def new_parsed(line_count: int, text_bytes: int) -> Parsed:
    """Room for so many lines: a template is no longer than its line, and at most every second byte is a variable."""
    starts = np.zeros(line_count + 2, np.int64)
    variables = text_bytes // 2 + line_count + 1
    return Parsed(
        pool=np.empty(text_bytes + 1, np.uint8),
        template_starts=starts,
        slots=np.zeros(1 << (2 * line_count + 1).bit_length(), np.int32),
        hashes=np.empty(line_count + 1, np.uint64),
        templates=np.empty(line_count, np.int32),
        first_variables=np.empty(line_count, np.int64),
        starts=np.empty(variables, np.int32),
        ends=np.empty(variables, np.int32),
        sizes=np.zeros(4, np.int64),
    )


def parse(data: U8Array, starts: Starts) -> Parsed:
    """The templates and variables of these lines, by a sample of them."""
    line_count = len(starts) - 1
    words = Words(np.zeros(WORD_SLOTS, np.uint64), np.zeros(WORD_SLOTS, np.int64))
    step = max(line_count // SAMPLE_LINES, 1)
    count_words(data, starts, step, words)
    least_count = max(int(line_count / step * SAMPLE_SHARE), 2)
    parsed = new_parsed(line_count, int(starts[-1] - starts[0]))
    parse_lines(data, starts, words, least_count, parsed)
    return parsed
