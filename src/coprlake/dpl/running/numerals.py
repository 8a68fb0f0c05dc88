"""Kernels for what is written in digits: numbers, addresses, identifiers.

Each returns where the match that begins at `at` ends, or -1, and leaves the value in `out`.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from coprlake.kernel import I64Array, U8Array, cold_kernel, i64, kernel
from coprlake.text.byte_classes import BLANK, CASE_BIT, COLON, DASH, DOT, PLUS, ZERO, is_digit, is_letter
from coprlake.text.digits import digit_of, digits_at, hex_digit_of

F64Array = npt.NDArray[np.float64]

VALUE, COST, YEAR, LATEST = 0, 1, 2, 3
"""Where `out` holds the value of a match, and how many steps it took beyond the usual few.

And what is put there before: the year of timestamps without one, and the latest such.
"""

_X, _E = 120, 101
_LOWEST: Final = np.iinfo(np.int64).min
_TENTH_OF_LOWEST: Final = -(922337203685477580)
_LONGEST_DIGITS: Final = 4096
_EXACT_MANTISSA: Final = 1 << 53
_EXACT_POWER: Final = 22
_MOST_EXPONENT: Final = 400
_POWERS: Final = np.array([10.0**power for power in range(_EXACT_POWER + 1)])


@kernel
def integer_at(data: U8Array, at: int, end: int, low: int, high: int, out: I64Array) -> int:
    """``[+-]?[0-9]+`` between two bounds. Summed up below zero, where there is one number more."""
    negative = False
    if at < end and (data[at] == DASH or data[at] == PLUS):
        negative = bool(data[at] == DASH)
        at += 1
    first = at
    stop = min(end, at + _LONGEST_DIGITS)
    total = 0
    while at < stop:
        digit = digit_of(data[at])
        if digit < 0:
            break
        if total < _TENTH_OF_LOWEST or (total == _TENTH_OF_LOWEST and digit > 8):
            return -1
        total = total * 10 - digit
        at += 1
    if at == first or (not negative and total == _LOWEST) or (at == stop and at < end and digit_of(data[at]) >= 0):
        return -1
    value = total if negative else -total
    if not low <= value <= high:
        return -1
    out[VALUE] = value
    return at


@cold_kernel
def hex_at(data: U8Array, at: int, end: int, low: int, high: int, most: int, out: I64Array) -> int:
    """Hexadecimal digits, at most so many, perhaps behind ``0x``."""
    if at + 2 < end and data[at] == ZERO and (i64(data[at + 1]) | CASE_BIT) == _X and hex_digit_of(data[at + 2]) >= 0:
        at += 2
    total, count = 0, 0
    while at < end and count <= most:
        digit = hex_digit_of(data[at])
        if digit < 0:
            break
        total = _shifted(total, digit)
        count += 1
        at += 1
    if count == 0 or count > most or not low <= total <= high:
        return -1
    out[VALUE] = total
    return at


@kernel
def _shifted(total: int, digit: int) -> int:
    """``total * 16 + digit`` in 64 bits, as two's complement has it."""
    if total >= 1 << 59 or total < 0:
        total = (total & ((1 << 60) - 1)) - (1 << 60) if total & (1 << 59) else total & ((1 << 60) - 1)
    return total * 16 + digit


@cold_kernel
def real_at(data: U8Array, at: int, end: int, point: int, out: I64Array, reals: F64Array) -> int:
    """``[+-]?[0-9]+(.[0-9]+)?([eE][+-]?[0-9]+)?``.

    The value is exact where 53 bits and a power of ten up to 22 make it so. Else it is near, and ``out[COST]`` is -1.
    """
    negative = False
    if at < end and (data[at] == DASH or data[at] == PLUS):
        negative = bool(data[at] == DASH)
        at += 1
    first = at
    stop = min(end, at + _LONGEST_DIGITS)
    mantissa, power, dropped = 0, 0, 0
    seen_point = False
    while at < stop:
        digit = digit_of(data[at])
        if digit < 0:
            if seen_point or at == first or data[at] != point or at + 1 >= stop or digit_of(data[at + 1]) < 0:
                break
            seen_point = True
            at += 1
            continue
        if mantissa < 10**17:
            mantissa = mantissa * 10 + digit
            power -= seen_point
        else:
            dropped |= digit
            power += not seen_point
        at += 1
    if at == first or (at == stop and at < end and digit_of(data[at]) >= 0):
        return -1
    if at < end and (i64(data[at]) | CASE_BIT) == _E:
        sign = at + 1 if at + 1 < end and (data[at + 1] == DASH or data[at + 1] == PLUS) else at
        exponent, place = 0, sign + 1
        while place < stop and digit_of(data[place]) >= 0:
            exponent = min(exponent * 10 + digit_of(data[place]), 100_000)
            place += 1
        if place > sign + 1:
            power += -exponent if data[sign] == DASH else exponent
            at = place
    value, exact = _scaled(mantissa, power)
    reals[VALUE] = -value if negative else value
    out[COST] = 0 if exact and dropped == 0 else -1
    return at


@kernel
def _scaled(mantissa: int, power: int) -> tuple[float, bool]:
    """``mantissa * 10 ** power``, and whether that is exact."""
    value = float(mantissa)
    if mantissa == 0:
        return 0.0, True
    if -_EXACT_POWER <= power <= _EXACT_POWER:
        exact = mantissa <= _EXACT_MANTISSA
        return (value * _POWERS[power] if power >= 0 else value / _POWERS[-power]), exact
    for _ in range(min(abs(power), _MOST_EXPONENT)):
        value = value * 10.0 if power > 0 else value / 10.0
    return value, False


@kernel
def no_address_up_to(data: U8Array, at: int, end: int) -> int:
    """The last place from `at` on up to which surely no address begins, or ``at - 1`` if one may begin here.

    Behind the first number of an address stands a dot or a colon; words of the letters a to f are told apart by that,
    all places in them at once.
    """
    stop = at
    while stop < end and hex_digit_of(data[stop]) >= 0:
        stop += 1
    if stop >= end or (data[stop] != COLON and data[stop] != DOT):
        return max(at, stop - 1)
    if stop == at and (at + 1 >= end or data[at + 1] != COLON):
        return at
    return at - 1 if stop - at <= 4 else stop - 5


@cold_kernel
def ipv4_at(data: U8Array, at: int, end: int) -> int:
    """Four numbers up to 255 with dots between, and no digit behind."""
    for part in range(4):
        if part > 0:
            if at >= end or data[at] != DOT:
                return -1
            at += 1
        value, stop = digits_at(data, at, end, 4)
        if stop == at or stop > at + 3 or value > 255:
            return -1
        at = stop
    return at


@cold_kernel
def ipv6_at(data: U8Array, at: int, end: int) -> int:
    """Eight groups of hexadecimal digits, or fewer and ``::`` once; the last two may be written as IPv4.

    No letter, digit or colon may stand behind it, so that ``add::`` of ``add::later`` is none.
    """
    groups = 0
    gap = False
    if at + 1 < end and data[at] == COLON and data[at + 1] == COLON:
        gap = True
        at += 2
    while groups < 8:
        count = 0
        while at + count < end and count < 5 and hex_digit_of(data[at + count]) >= 0:
            count += 1
        if count == 0:
            if not gap:
                return -1
            break
        if count > 4:
            return -1
        if at + count < end and data[at + count] == DOT and (groups == 6 or (gap and groups < 6)):
            stop = ipv4_at(data, at, end)
            if stop >= 0:
                at = stop
                groups += 2
                break
        at += count
        groups += 1
        if at + 1 < end and data[at] == COLON and data[at + 1] == COLON and not gap:
            gap = True
            at += 2
        elif at + 1 < end and data[at] == COLON and hex_digit_of(data[at + 1]) >= 0 and groups < 8:
            at += 1
        else:
            break
    if (gap and groups > 7) or (not gap and groups != 8):
        return -1
    if at >= end:
        return at
    if data[at] == COLON:  # a single one is punctuation
        return at if at + 1 >= end or (data[at + 1] != COLON and hex_digit_of(data[at + 1]) < 0) else -1
    return -1 if is_digit(data[at]) or is_letter(data[at]) else at


@cold_kernel
def uuid_at(data: U8Array, at: int, end: int) -> int:
    """``8-4-4-4-12`` hexadecimal digits."""
    if at + 36 > end:
        return -1
    for i in range(36):
        if i == 8 or i == 13 or i == 18 or i == 23:
            if data[at + i] != DASH:
                return -1
        elif hex_digit_of(data[at + i]) < 0:
            return -1
    return at + 36


@cold_kernel
def card_at(data: U8Array, at: int, end: int) -> int:
    """13 to 19 digits with Luhn's check digit; each but the first may have one blank or dash before it."""
    count, doubled_odd, doubled_even = 0, 0, 0
    while at < end and count < 20:
        step = 1 if count > 0 and at + 1 < end and (data[at] == BLANK or data[at] == DASH) else 0
        digit = digit_of(data[at + step])
        if digit < 0:
            break
        double = digit * 2 - 9 if digit > 4 else digit * 2
        doubled_even += double if count % 2 == 0 else digit
        doubled_odd += double if count % 2 == 1 else digit
        count += 1
        at += step + 1
    total = doubled_even if count % 2 == 0 else doubled_odd
    return at if 13 <= count <= 19 and total % 10 == 0 else -1


@kernel
def boolean_at(data: U8Array, at: int, end: int, out: I64Array) -> int:
    """``true`` or ``false`` in any case."""
    if at + 4 <= end and _folded(data, at) == 0x74727565:
        out[VALUE] = 1
        return at + 4
    if at + 5 <= end and _folded(data, at) == 0x66616C73 and (i64(data[at + 4]) | CASE_BIT) == _E:
        out[VALUE] = 0
        return at + 5
    return -1


@kernel
def _folded(data: U8Array, at: int) -> int:
    """Four letters in lower case as one number. Bytes that are no letters become none: all have bit 0x40."""
    word = 0
    for i in range(4):
        byte = i64(data[at + i])
        word = word << 8 | (byte | CASE_BIT if byte >= 65 else 0)
    return word
