"""Numbers in digits, against Python's own."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coprlake.kernel import U8Array
from coprlake.text.digits import (
    digit_of,
    digits_at,
    digits_end,
    fraction_micros_at,
    hex_digit_of,
    hex_number_at,
    number_at,
)

pytestmark = pytest.mark.kernels

TEXTS = st.text(alphabet="0129a:", min_size=1, max_size=20)


def array(text: str) -> U8Array:
    return np.frombuffer(text.encode(), np.uint8)


def leading(text: str, most: int) -> str:
    """The digits that a text begins with, at most so many."""
    found = re.match(r"\d*", text[:most])
    assert found
    return found[0]


def test_digits() -> None:
    for byte in range(256):
        character = chr(byte)
        assert digit_of(np.uint8(byte)) == (int(character) if character in "0123456789" else -1)
        assert hex_digit_of(np.uint8(byte)) == (int(character, 16) if character in "0123456789abcdefABCDEF" else -1)


@given(TEXTS, st.integers(0, 18), st.data())
def test_numbers(text: str, count: int, draw: st.DataObject) -> None:
    end = draw.draw(st.integers(0, len(text)))
    at = draw.draw(st.integers(0, end))
    data, part = array(text), text[at:end]
    digits = leading(part, count)
    assert digits_end(data, at, end) == at + len(leading(part, len(part)))
    assert digits_at(data, at, end, count) == (int(digits or "0"), at + len(digits))
    assert number_at(data, at, end, count) == (int(digits or "0") if len(digits) == count else -1)


@given(TEXTS, st.integers(0, 20), st.data())
def test_fractions(text: str, most: int, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(0, len(text)))
    digits = leading(text[at:], most)
    wanted = int(digits[:6].ljust(6, "0")), at + len(digits)
    assert fraction_micros_at(array(text), at, len(text), most) == wanted


@given(st.text(alphabet="09aAfFgG", min_size=1, max_size=8), st.integers(1, 8))
def test_hexadecimal_numbers(text: str, count: int) -> None:
    is_number = re.fullmatch(rf"[0-9a-fA-F]{{{count}}}", text[:count])
    assert hex_number_at(array(text), 0, len(text), count) == (int(text[:count], 16) if is_number else -1)
