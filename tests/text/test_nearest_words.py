"""Which word a misspelt one means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coprlake.text.nearest_words import hint, nearest

FIELDS = ("timestamp", "source", "loglevel", "content", "status", "user_id", "http.status_code", "duration_ms")
LEVELS = ("TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "ERROR", "FATAL")


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("statsu", FIELDS, "status"),  # swapped
        ("staus", FIELDS, "status"),  # missing
        ("sstatus", FIELDS, "status"),  # added
        ("STATUS", FIELDS, "status"),
        ("userId", FIELDS, "user_id"),
        ("http_status_code", FIELDS, "http.status_code"),
        ("log_level", FIELDS, "loglevel"),
        ("level", FIELDS, "loglevel"),
        ("time", FIELDS, "timestamp"),
        ("contents", FIELDS, "content"),
        ("status_code", FIELDS, "http.status_code"),
        ("durration_msec", FIELDS, "duration_ms"),
        ("eror", LEVELS, "ERROR"),
        ("wran", LEVELS, "WARN"),
        ("ino", LEVELS, "INFO"),
        ("idd", ("id", "message"), "id"),
        ("bsh", ("zsh", "bash"), "bash"),
        ("foo", FIELDS, None),
        ("host", FIELDS, None),
        ("x", LEVELS, None),
        ("ts", ("st", "id"), None),
        ("audit", LEVELS, None),
        ("", FIELDS, None),
        ("x" * 10_000, FIELDS, None),
        ("status", (), None),
    ],
)
def test_the_nearest_word(word: str, known: tuple[str, ...], meant: str | None) -> None:
    assert nearest(word, known) == meant
    assert hint(word, known) == (f"; did you mean {meant}?" if meant else "")


@given(st.text(max_size=80), st.lists(st.text(max_size=20), max_size=5))
def test_any_text_is_answered_and_a_known_word_means_itself(word: str, known: list[str]) -> None:
    assert nearest(word, known) in (None, *known)
    if word.strip() and len(word) <= 20:
        found = nearest(word, [*known, word])
        assert found is not None
        assert found.casefold() == word.casefold() or found in known
