"""Zones and offsets, against regular expressions."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coprlake.text.zones import is_utc_at, offset_at

pytestmark = pytest.mark.kernels

OFFSET = re.compile(r"([+-])(\d\d)(?::?(\d\d))?")


def naive_offset(text: str) -> tuple[int, int]:
    match = OFFSET.match(text)
    if not match or int(match[2]) > 15 or int(match[3] or 0) > 59:
        return 0, -1
    east = int(match[2]) * 60 + int(match[3] or 0)
    return -east if match[1] == "-" else east, match.end()


@given(st.from_regex(r"[+-]?[01][0-9]?:?[0-6]?[0-9]?[x:]?", fullmatch=True))
@example("+02:")
@example("+023")
@example("-15:59")
@example("+16:00")
@example("+02:60")
@example("+")
def test_offsets(text: str) -> None:
    data = np.frombuffer(b"x" + text.encode(), np.uint8)
    east, stop = naive_offset(text)
    assert offset_at(data, 1, len(data)) == (east, stop + 1 if stop >= 0 else -1)


@given(st.text(alphabet="UTCGMZ ", max_size=4))
@example("UTC")
@example("GMT")
def test_names_of_utc(text: str) -> None:
    data = np.frombuffer(b"x" + text.encode(), np.uint8)
    assert is_utc_at(data, 1, len(data)) == (text[:3] in ("UTC", "GMT"))
