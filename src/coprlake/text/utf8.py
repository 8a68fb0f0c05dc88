"""Characters of UTF-8: how long they are, which they are, and how they are written."""

import numpy as np

from coprlake.kernel import U8Array, i64, kernel


@kernel
def is_continuation(byte: np.uint8) -> bool:
    """Whether the byte goes on with a character that began before it."""
    return bool((byte & 0xC0) == 0x80)


@kernel
def next_char(data: U8Array, at: int, end: int) -> int:
    """Where the character that begins at ``at < end`` ends, all continuation bytes included."""
    byte = data[at]
    at += 1
    if byte >= 0xC0:
        while at < end and is_continuation(data[at]):
            at += 1
    return at


@kernel
def character_end(data: U8Array, start: int, end: int) -> int:
    """Where the character at `start` ends, in valid UTF-8 and in anything else.

    Unlike in `next_char`, a lead byte takes at most as many continuation bytes as it announces; a continuation byte
    without a lead is a character of its own. So the cut depends on nothing before `start`, and a piece of a run is cut
    as the run is.
    """
    lead = data[start]
    if lead < 0xC0:
        return start + 1
    most = 2 if lead < 0xE0 else (3 if lead < 0xF0 else 4)
    stop = start + 1
    while stop < end and stop < start + most and is_continuation(data[stop]):
        stop += 1
    return stop


@kernel
def char_before(data: U8Array, at: int, start: int) -> int:
    """Where the character before ``at > start`` begins."""
    at -= 1
    while at > start and is_continuation(data[at]):
        at -= 1
    return at


@kernel
def count_chars(data: U8Array, start: int, end: int) -> int:
    """``len(data[start:end].decode())``."""
    count = 0
    for i in range(start, end):
        if not is_continuation(data[i]):
            count += 1
    return count


@kernel
def end_of_chars(data: U8Array, at: int, end: int, most: int) -> int:
    """Where the `most` characters from `at` on end, or `end` if there are fewer."""
    if end - at <= most:
        return end
    stop, counted, continuations = at + most, at, 0
    while counted < stop:  # each continuation byte makes room for one more
        for i in range(counted, stop):
            continuations += is_continuation(data[i])
        counted = stop
        stop = min(end, at + most + continuations)
    while stop < end and is_continuation(data[stop]):
        stop += 1
    return stop


@kernel
def character_at(data: U8Array, at: int, end: int) -> int:
    """``ord`` of the character beyond ASCII that begins at `at`."""
    byte = i64(data[at])
    number = byte & 0x1F if byte < 0xE0 else (byte & 0x0F if byte < 0xF0 else byte & 0x07)
    at += 1
    while at < end and is_continuation(data[at]):
        number = number << 6 | i64(data[at]) & 0x3F
        at += 1
    return number


@kernel
def put_character(number: int, out: U8Array, size: int) -> int:
    """``out[size:] = chr(number).encode()``; returns where it ends."""
    if number < 0x80:
        out[size] = number
        return size + 1
    if number < 0x800:
        out[size] = 0xC0 | number >> 6
        out[size + 1] = 0x80 | number & 0x3F
        return size + 2
    if number < 0x10000:
        out[size] = 0xE0 | number >> 12
        out[size + 1] = 0x80 | number >> 6 & 0x3F
        out[size + 2] = 0x80 | number & 0x3F
        return size + 3
    out[size] = 0xF0 | number >> 18
    out[size + 1] = 0x80 | number >> 12 & 0x3F
    out[size + 2] = 0x80 | number >> 6 & 0x3F
    out[size + 3] = 0x80 | number & 0x3F
    return size + 4
