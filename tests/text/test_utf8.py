"""Characters of UTF-8, against Python's own."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coprlake.kernel import U8Array
from coprlake.text.utf8 import (
    char_before,
    character_at,
    character_end,
    count_chars,
    end_of_chars,
    is_continuation,
    next_char,
    put_character,
)

pytestmark = pytest.mark.kernels

TEXTS = st.text(alphabet="a\nzß\u07ff\u0800€\uffff\U00010000😀\U0010ffff", min_size=1, max_size=12)


def array(text: str | bytes) -> U8Array:
    return np.frombuffer(text if isinstance(text, bytes) else text.encode(), np.uint8)


@given(TEXTS)
def test_steps_are_characters(text: str) -> None:
    data, at = array(text), 0
    for character in text:
        stop = at + len(character.encode())
        assert next_char(data, at, len(data)) == stop
        assert character_end(data, at, len(data)) == stop
        assert char_before(data, stop, 0) == at
        if character > "\x7f":
            assert character_at(data, at, len(data)) == ord(character)
        at = stop


@given(TEXTS, st.integers(0, 13), st.data())
def test_counting(text: str, most: int, draw: st.DataObject) -> None:
    first = draw.draw(st.integers(0, len(text)))
    data, at = array(text), len(text[:first].encode())
    assert count_chars(data, at, len(data)) == len(text) - first
    assert end_of_chars(data, at, len(data), most) == len(text[: first + most].encode())


@given(st.characters(exclude_categories=["Cs"]))
@example("\x7f")
@example("\x80")
@example("\u07ff")
@example("\uffff")
def test_writing(character: str) -> None:
    out = np.zeros(6, np.uint8)
    end = put_character(ord(character), out, 1)
    assert out[1:end].tobytes().decode() == character


def naive_end(data: bytes, start: int) -> int:
    """At most as many continuation bytes as the lead announces."""
    announced = {0b110: 1, 0b1110: 2, 0b1111: 3}
    lead = data[start]
    most = announced.get(lead >> 5 if lead < 0xE0 else lead >> 4, 0) if lead >= 0xC0 else 0
    end = start + 1
    while most and end < len(data) and 0x80 <= data[end] < 0xC0:
        end, most = end + 1, most - 1
    return end


@given(st.lists(st.sampled_from([0x41, 0x80, 0xBF, 0xC3, 0xDF, 0xE2, 0xEF, 0xF0, 0xFF]), min_size=1, max_size=9))
def test_any_bytes_are_cut_alike_from_any_place(numbers: list[int]) -> None:
    data = bytes(numbers)
    for start in range(len(data)):
        end = character_end(array(data), start, len(data))
        assert end == naive_end(data, start)
        assert end == start + character_end(array(data[start:]), 0, len(data) - start)


def test_continuation_bytes() -> None:
    assert [byte for byte in range(256) if is_continuation(np.uint8(byte))] == list(range(0x80, 0xC0))
