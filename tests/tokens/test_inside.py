"""Which strings are inside the string of their row, against Python's ``in``, and whether their tokens are too."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coprlake.config import RuleSet
from coprlake.text.arrow_strings import string_buffers
from coprlake.tokens.inside import CUT, INSIDE, OUTSIDE, mark_inside
from coprlake.tokens.required_tokens import piece_tokens
from coprlake.tokens.scanner import BatchScanner

pytestmark = pytest.mark.kernels

WORDS = st.text("ab", max_size=4)
TEXTS = st.text('a1.-:"=é \n', max_size=14)


def marks(rows: list[tuple[str, list[str]]]) -> list[int]:
    """What `mark_inside` says of the words of each row."""
    hay, hay_starts = string_buffers(pa.array([line for line, _ in rows], pa.large_string()))
    pairs = [(row, word) for row, (_, words) in enumerate(rows) for word in words]
    data, starts = string_buffers(pa.array([word for _, word in pairs], pa.large_string()))
    found = np.empty(len(pairs), np.uint8)
    cursors = hay_starts[:-1].astype(np.int64)
    mark_inside(data, starts, np.array([row for row, _ in pairs], np.int64), hay, hay_starts, cursors, found)
    return found.tolist()


@given(st.lists(st.tuples(st.text("ab", max_size=9), st.lists(WORDS, max_size=5)), max_size=4))
def test_what_is_inside(rows: list[tuple[str, list[str]]]) -> None:
    assert [found != OUTSIDE for found in marks(rows)] == [word in line for line, words in rows for word in words]


@pytest.mark.parametrize(
    ("line", "value", "expected"),
    [
        ("user=bob", "bob", INSIDE),
        ("user=bobby", "bob", CUT),
        ("kebob", "bob", CUT),
        ('"agent (X11)"', "agent (X11)", INSIDE),
        ("a=-----", "----", CUT),
        ("xéé", "é", CUT),
        ("any", "", INSIDE),
        ("any", "other", OUTSIDE),
    ],
)
def test_a_value_inside_a_word_is_cut(line: str, value: str, expected: int) -> None:
    assert marks([(line, [value])]) == [expected]


@pytest.mark.parametrize("rules", RuleSet)
@given(before=TEXTS, value=TEXTS, after=TEXTS, data=st.data())
@example(before="", value="1.1", after=".1", data=None)
def test_all_tokens_that_a_search_needs_are_in_the_line(
    rules: RuleSet, before: str, value: str, after: str, data: st.DataObject | None
) -> None:
    """Any part of a value that is `INSIDE` has its tokens in the line, be its ends open or at a border of a run."""
    line = before + value + after
    if marks([(line, [value])]) != [INSIDE]:
        return
    start = data.draw(st.integers(0, len(value))) if data else 0
    end = data.draw(st.integers(start, len(value))) if data else len(value)
    scanned = BatchScanner().scan(pa.array([line]), rules=rules).tolist()
    for left_open in [True, False] if _is_border(value, start) else [True]:
        for right_open in [True, False] if _is_border(value, end) else [True]:
            tokens = piece_tokens(value[start:end], left_open=left_open, right_open=right_open, rules=rules)
            assert set(tokens.tolist()) <= set(scanned), (line, value[start:end], left_open, right_open)


def _is_border(text: str, place: int) -> bool:
    """Whether a term can begin or end here."""
    return place in (0, len(text)) or _class(text[place - 1]) != _class(text[place])


def _class(character: str) -> str:
    return "foreign" if not character.isascii() else "word" if character.isalnum() else "blank" * character.isspace()
