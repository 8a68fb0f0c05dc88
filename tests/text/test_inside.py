"""Which strings are inside the string of their row, against Python's ``in``."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coprlake.text.arrow_strings import string_buffers
from coprlake.text.inside import mark_inside

pytestmark = pytest.mark.kernels

WORDS = st.text("ab", max_size=4)


@given(st.lists(st.tuples(st.text("ab", max_size=9), st.lists(WORDS, max_size=5)), max_size=4))
def test_what_is_inside(rows: list[tuple[str, list[str]]]) -> None:
    hay, hay_starts = string_buffers(pa.array([line for line, _ in rows], pa.large_string()))
    pairs = [(row, word) for row, (_, words) in enumerate(rows) for word in words]
    data, starts = string_buffers(pa.array([word for _, word in pairs], pa.large_string()))
    found = np.empty(len(pairs), np.uint8)
    cursors = hay_starts[:-1].astype(np.int64)
    mark_inside(data, starts, np.array([row for row, _ in pairs], np.int64), hay, hay_starts, cursors, found)
    assert found.tolist() == [word in rows[row][0] for row, word in pairs]
