"""Numbers that are written in digits."""

from typing import Final

import numpy as np

from coprlake.kernel import U8Array, i64, kernel
from coprlake.text.byte_classes import ZERO, is_digit

_HEX_DIGITS: Final = "0123456789abcdefABCDEF"
_HEX_VALUES: Final = np.array([int(chr(byte), 16) if chr(byte) in _HEX_DIGITS else -1 for byte in range(256)], np.int8)


@kernel
def digit_of(byte: np.uint8) -> int:
    """The value of a decimal digit, or -1."""
    return i64(byte) - ZERO if is_digit(byte) else -1


@kernel
def hex_digit_of(byte: np.uint8) -> int:
    """The value of a hexadecimal digit, or -1."""
    return i64(_HEX_VALUES[byte])


@kernel
def digits_end(data: U8Array, at: int, end: int) -> int:
    """Where the digits that begin at `at` end; `at` if there are none."""
    while at < end and is_digit(data[at]):
        at += 1
    return at


@kernel
def digits_at(data: U8Array, at: int, end: int, most: int) -> tuple[int, int]:
    """The number that the first digits from `at` on make, at most `most` of them, and where they end.

    Without digits it is 0, and ends at `at`. More than 18 digits may overflow.
    """
    value, stop = 0, at
    last = min(end, at + most)
    while stop < last and is_digit(data[stop]):
        value = value * 10 + i64(data[stop]) - ZERO
        stop += 1
    return value, stop


@kernel
def number_at(data: U8Array, at: int, end: int, count: int) -> int:
    """``int(data[at:at + count])``, or -1 where these are not `count` digits before `end`."""
    if at + count > end:
        return -1
    value = 0
    for i in range(at, at + count):
        if not is_digit(data[i]):
            return -1
        value = value * 10 + i64(data[i]) - ZERO
    return value


@kernel
def hex_number_at(data: U8Array, at: int, end: int, count: int) -> int:
    """``int(data[at:at + count], 16)``, or -1 where these are not `count` hexadecimal digits before `end`."""
    if at + count > end:
        return -1
    value = 0
    for i in range(at, at + count):
        digit = hex_digit_of(data[i])
        if digit < 0:
            return -1
        value = value * 16 + digit
    return value


@kernel
def fraction_micros_at(data: U8Array, at: int, end: int, most: int) -> tuple[int, int]:
    """The digits of a fraction of a second, at most `most` of them, as microseconds, and where they end.

    Digits behind the sixth are dropped.
    """
    micros, scale, stop = 0, 100_000, at
    last = min(end, at + most)
    while stop < last and is_digit(data[stop]):
        micros += scale * (i64(data[stop]) - ZERO)
        scale //= 10
        stop += 1
    return micros, stop
