"""xxHash, as its specification (Yann Collet, version 0.1.1) has it, with seed 0.

Four lanes take 4 (or 8) bytes each of every 16 (or 32); what remains is mixed in word by word, then byte by byte.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.kernel import U8Array, U64Array, i64, kernel
from coprlake.language.functions.text.text_scanning import views
from coprlake.text.arrow_strings import Strings

_P1: Final = np.uint64(0x9E3779B185EBCA87)
_P2: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_P3: Final = np.uint64(0x165667B19E3779F9)
_P4: Final = np.uint64(0x85EBCA77C2B2AE63)
_P5: Final = np.uint64(0x27D4EB2F165667C5)
_Q1: Final = np.uint64(0x9E3779B1)
_Q2: Final = np.uint64(0x85EBCA77)
_Q3: Final = np.uint64(0xC2B2AE3D)
_Q4: Final = np.uint64(0x27D4EB2F)
_Q5: Final = np.uint64(0x165667B1)
_LOW: Final = np.uint64(0xFFFFFFFF)
_MINUS_P1: Final = np.uint64(2**64 - 0x9E3779B185EBCA87)
_P1_P2: Final = np.uint64((0x9E3779B185EBCA87 + 0xC2B2AE3D27D4EB4F) % 2**64)
_MINUS_Q1: Final = np.uint64(2**32 - 0x9E3779B1)
_Q1_Q2: Final = np.uint64((0x9E3779B1 + 0x85EBCA77) % 2**32)
_ZERO: Final = np.uint64(0)


@kernel
def _word(data: U8Array, at: int, size: int) -> np.uint64:
    """Bytes as a little-endian number."""
    word = _ZERO
    for i in range(size):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return word


@kernel
def _turn(value: np.uint64, count: int) -> np.uint64:
    return value << np.uint64(count) | value >> np.uint64(64 - count)


@kernel
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _turn(lane + word * _P2, 31) * _P1


@kernel
def _merge(value: np.uint64, lane: np.uint64) -> np.uint64:
    return (value ^ _round(_ZERO, lane)) * _P1 + _P4


@kernel
def _hash_64(data: U8Array, start: int, end: int) -> np.uint64:
    at = start
    if end - start >= 32:
        a, b, c, d = _P1_P2, _P2, _ZERO, _MINUS_P1
        while at + 32 <= end:
            a = _round(a, _word(data, at, 8))
            b = _round(b, _word(data, at + 8, 8))
            c = _round(c, _word(data, at + 16, 8))
            d = _round(d, _word(data, at + 24, 8))
            at += 32
        value = _turn(a, 1) + _turn(b, 7) + _turn(c, 12) + _turn(d, 18)
        value = _merge(_merge(_merge(_merge(value, a), b), c), d)
    else:
        value = _P5
    value = value + np.uint64(end - start)
    while at + 8 <= end:
        value = _turn(value ^ _round(_ZERO, _word(data, at, 8)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        value = _turn(value ^ (_word(data, at, 4) * _P1), 23) * _P2 + _P3
        at += 4
    while at < end:
        value = _turn(value ^ (np.uint64(data[at]) * _P5), 11) * _P1
        at += 1
    value = (value ^ (value >> np.uint64(33))) * _P2
    value = (value ^ (value >> np.uint64(29))) * _P3
    return value ^ (value >> np.uint64(32))


@kernel
def _turn_32(value: np.uint64, count: int) -> np.uint64:
    return (value << np.uint64(count) | value >> np.uint64(32 - count)) & _LOW


@kernel
def _round_32(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _turn_32((lane + word * _Q2) & _LOW, 13) * _Q1 & _LOW


@kernel
def _hash_32(data: U8Array, start: int, end: int) -> np.uint64:
    at = start
    if end - start >= 16:
        a, b, c, d = _Q1_Q2, _Q2, _ZERO, _MINUS_Q1
        while at + 16 <= end:
            a = _round_32(a, _word(data, at, 4))
            b = _round_32(b, _word(data, at + 4, 4))
            c = _round_32(c, _word(data, at + 8, 4))
            d = _round_32(d, _word(data, at + 12, 4))
            at += 16
        value = _turn_32(a, 1) + _turn_32(b, 7) + _turn_32(c, 12) + _turn_32(d, 18)
    else:
        value = _Q5
    value = (value + np.uint64(end - start)) & _LOW
    while at + 4 <= end:
        value = _turn_32((value + _word(data, at, 4) * _Q3) & _LOW, 17) * _Q4 & _LOW
        at += 4
    while at < end:
        value = _turn_32((value + np.uint64(data[at]) * _Q5) & _LOW, 11) * _Q1 & _LOW
        at += 1
    value = (value ^ (value >> np.uint64(15))) * _Q2 & _LOW
    value = (value ^ (value >> np.uint64(13))) * _Q3 & _LOW
    return value ^ (value >> np.uint64(16))


@kernel
def hash_texts(texts: Strings, bits: int, out: U64Array) -> None:
    """``out[i] = xxhash(text)``, of 32 or 64 bits."""
    for row in range(len(out)):
        start, end = i64(texts.starts[row]), i64(texts.starts[row + 1])
        out[row] = _hash_64(texts.data, start, end) if bits == 64 else _hash_32(texts.data, start, end)


def hashes(texts: pa.Array, bits: int) -> pa.Array:
    """The hash of each text in hexadecimal digits; null for null."""
    out = np.empty(len(texts), np.uint64)
    hash_texts(views(texts), bits, out)
    digits = bits // 4
    octets = out.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - digits // 2 :]
    signs = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.stack([signs[octets >> 4], signs[octets & 15]], axis=2).reshape(-1)
    offsets = np.arange(len(texts) + 1, dtype=np.int32) * digits
    shown = pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(text))
    return shown if not texts.null_count else pc.if_else(texts.is_valid(), shown, pa.scalar(None, pa.string()))
