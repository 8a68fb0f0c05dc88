"""Fingerprints: the 4 bytes that represent a token everywhere in the sketch (paper 4.1).

A token's *polynomial* is the sum of ``symbol(byte_i) * BASE ** (n - 1 - i)`` modulo 2**64. It can be extended one
byte at a time and joined from the polynomials of two parts, so rules 4 and 5 cost a multiplication instead of a
second pass. The fingerprint is the polynomial, xored with the seed of its field, mixed and truncated to its upper 32
bits. It is never 0: that value means "no token" wherever fingerprints are stored.
"""

from typing import Final

import numpy as np

from coprlake.kernel import U8Array, kernel
from coprlake.records import CONTENT
from coprlake.tokens.rules import SYMBOLS

FINGERPRINT_BITS: Final = 32

BASE: Final = np.uint64(0xD6E8FEB86659FD93)
_MIX1: Final = np.uint64(0xFF51AFD7ED558CCD)
_MIX2: Final = np.uint64(0xC4CEB9FE1A85EC53)
_HALF: Final = np.uint64(32)
_ZERO: Final = np.uint64(0)


@kernel
def mix(polynomial: np.uint64, seed: np.uint64) -> np.uint64:
    """64 bits that depend on all bits of both arguments: the finalizer of MurmurHash3, with shifts of 32."""
    mixed = polynomial ^ seed
    mixed = (mixed ^ (mixed >> _HALF)) * _MIX1
    return (mixed ^ (mixed >> _HALF)) * _MIX2


@kernel
def upper_half(mixed: np.uint64) -> np.uint32:
    """The fingerprint from the result of `mix`."""
    half = np.uint32(mixed >> _HALF)
    return half if half != 0 else np.uint32(1)


@kernel
def finish(polynomial: np.uint64, seed: np.uint64) -> np.uint32:
    """The fingerprint of a polynomial in a field."""
    return upper_half(mix(polynomial, seed))


@kernel
def polynomial_of(data: U8Array, start: int, end: int) -> np.uint64:
    """``sum(SYMBOLS[b] * BASE ** (end - 1 - i) for i, b in enumerate(data[start:end], start)) % 2 ** 64``."""
    polynomial = _ZERO
    for i in range(start, end):
        polynomial = polynomial * BASE + np.uint64(SYMBOLS[data[i]])
    return polynomial


@kernel
def _fingerprint_of(data: U8Array, seed: np.uint64) -> np.uint32:
    return finish(polynomial_of(data, 0, len(data)), seed)


@kernel
def _seed_of(data: U8Array) -> np.uint64:
    seed = polynomial_of(data, 0, len(data)) * _MIX2
    return seed ^ (seed >> _HALF)


def as_bytes(text: str | bytes) -> bytes:
    """The text as UTF-8; lone surrogates that stand for bytes, as in command arguments, become those bytes again."""
    if isinstance(text, bytes):
        return text
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair: no text has one, but searching for it is not an error
        return text.encode("utf-8", "surrogatepass")


def field_seed(field: str) -> np.uint64:
    """The seed that ties a token to its field: 0 for the log line itself, a hash of the name for every other field.

    Names that differ only in case share a seed, even if they are different fields: that may cause a false positive,
    but never misses a match.
    """
    if field == CONTENT:
        return _ZERO
    return np.uint64(_seed_of(np.frombuffer(as_bytes(field), np.uint8)))


def fingerprint(token: bytes | str, field: str = CONTENT) -> int:
    """The fingerprint of one whole token; ASCII case does not matter."""
    data = as_bytes(token)
    return int(_fingerprint_of(np.frombuffer(data, np.uint8), field_seed(field)))
