"""Loops over the bytes of texts, against Python's own strings."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coprlake.language.functions.text.text_scanning import characters, distances, index_of

pytestmark = pytest.mark.kernels

TEXTS = st.none() | st.text(alphabet="abé😀", max_size=6)
ROWS = st.lists(st.tuples(TEXTS, TEXTS, st.none() | st.integers(-8, 8)), max_size=6)


def column(values: list[str | None]) -> pa.Array:
    """The values as a slice of a longer column."""
    return pa.array(["é", *values, "b"], pa.string()).slice(1, len(values))


def naive_index(text: str, part: str, start: int, backwards: bool) -> int:
    if start < 0:
        start = max(0, start + len(text))
    if backwards:
        return text.rfind(part, 0, start + len(part))
    return text.find(part, min(start, len(text))) if start <= len(text) else -1


def naive_distance(left: str, right: str) -> int:
    if not left or not right:
        return len(left) + len(right)
    same = naive_distance(left[1:], right[1:]) + (left[0] != right[0])
    return min(same, naive_distance(left[1:], right) + 1, naive_distance(left, right[1:]) + 1)


@pytest.mark.parametrize("backwards", [False, True], ids=["first", "last"])
@given(rows=ROWS)
def test_where_a_part_is(backwards: bool, rows: list[tuple[str | None, str | None, int | None]]) -> None:
    texts, parts, froms = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    found = index_of(column(texts), column(parts), pa.array(froms, pa.int64()), backwards)
    assert found.to_pylist() == [
        None if text is None or part is None or start is None else naive_index(text, part, start, backwards)
        for text, part, start in rows
    ]


@given(st.lists(st.tuples(*[st.none() | st.text(alphabet="abé😀", max_size=4)] * 2), max_size=4))
def test_edit_distances(rows: list[tuple[str | None, str | None]]) -> None:
    lefts, rights = [left for left, _ in rows], [right for _, right in rows]
    assert distances(column(lefts), column(rights)).to_pylist() == [
        None if left is None or right is None else naive_distance(left, right) for left, right in rows
    ]


@given(st.lists(TEXTS, max_size=6))
def test_characters(texts: list[str | None]) -> None:
    assert characters(column(texts)).to_pylist() == [None if text is None else list(text) for text in texts]
