"""Classes of bytes, and eight bytes at a time."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coprlake.text.byte_classes import is_digit, is_letter
from coprlake.text.eight_bytes import TOPS, eight_times, line_end, marks_of_zeros

pytestmark = pytest.mark.kernels


def test_classes() -> None:
    for byte in range(256):
        character = chr(byte)
        assert is_digit(np.uint8(byte)) == (character in "0123456789")
        assert is_letter(np.uint8(byte)) == (character.isascii() and character.isalpha())


@given(st.integers(0, 255))
def test_a_byte_eight_times(byte: int) -> None:
    assert int(eight_times(np.uint8(byte))).to_bytes(8) == bytes([byte] * 8)


@given(st.lists(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0x81, 0xFF]), min_size=8, max_size=8).map(bytes))
def test_the_first_mark_is_the_first_zero(data: bytes) -> None:
    marks = int(marks_of_zeros(np.uint64(int.from_bytes(data, "little")))) & int(TOPS)
    assert (marks != 0) == (0 in data)
    if marks:
        assert (marks & -marks).bit_length() == 8 * (data.index(0) + 1)


@given(
    st.text(alphabet="a\n\x0b\t\x8a", max_size=40).map(str.encode), st.tuples(st.integers(0, 80), st.integers(0, 80))
)
@example(b"a" * 30 + b"\n", (3, 31))
@example(b"a" * 30 + b"\n", (3, 30))
def test_where_a_line_ends(text: bytes, bounds: tuple[int, int]) -> None:
    at, end = sorted(min(bound, len(text)) for bound in bounds)
    found = text.find(b"\n", at, end)
    assert line_end(np.frombuffer(text, np.uint8), at, end) == (end if found < 0 else found)
