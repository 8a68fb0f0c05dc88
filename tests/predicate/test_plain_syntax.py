"""The syntax of plain searches: what is an item, and what is text."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coprlake.predicate.plain_syntax import STAR, Item, Value, has_open_quote, parse, render

PAGE = Path(__file__).parents[2] / "docs" / "search-syntax.md"
TEXTS = re.findall(r"^\| `(.+)` \| `(.+)` \|$", PAGE.read_text().split("## What is text")[1], re.MULTILINE)

PIECES = st.sampled_from(["a", "bc", "-", "*", '"', "\\", ":", " ", "5", ">", "<=", "_", "/", "\n", "ü", "//", "@"])


@given(st.lists(PIECES, max_size=9).map("".join))
@example("\\-*")
@example('-"5"')
@example('"a":"b c" -f:*x')
def test_a_search_survives_being_rendered(text: str) -> None:
    items = parse(text)
    assert parse(render(items)) == items


NAMES = st.sampled_from(["user", "http.status", "a b", "x-y", 'q"', "@t", "1", "-x"])
WORDS = st.lists(st.sampled_from(["a", "-", '"', "\\", " ", ":", "*", ">", "5", "ü"]), max_size=5).map("".join)
ITEMS = st.builds(Item, st.builds(Value, WORDS.map(lambda text: (text,))), st.none() | NAMES, st.booleans())


@given(st.lists(ITEMS, max_size=4).map(tuple))
def test_any_text_can_be_asked_for(items: tuple[Item, ...]) -> None:
    assert parse(render(items)) == items


@given(st.text())
def test_every_text_is_a_search(text: str) -> None:
    items = parse(text)
    assert (not items) == (not text.strip() and not re.search(r"\S", text))


@pytest.mark.parametrize(("search", "text"), TEXTS)
def test_what_the_page_says_is_text_is_text(search: str, text: str) -> None:
    (item,) = parse(search)
    assert not item.is_negated
    assert (item.as_text or item.value).text == text


def test_there_are_examples_on_the_page() -> None:
    assert len(TEXTS) > 12


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("a  b\t c", [(None, ("a",)), (None, ("b",)), (None, ("c",))]),
        ("user:bob", [("user", ("bob",))]),
        ('"user":"bob b"', [("user", ("bob b",))]),
        ("a*b**c*", [(None, ("a", STAR, "b", STAR, "c", STAR))]),
        ("f:*", [("f", (STAR,))]),
        ('f:"*"', [("f", ("*",))]),
    ],
)
def test_items(search: str, expected: list[tuple[str | None, tuple[str | None, ...]]]) -> None:
    assert [(item.name, item.value.parts) for item in parse(search)] == expected


def test_negation_and_comparison() -> None:
    assert [item.is_negated for item in parse('-a -"b c" -f:x -10.0.0.1 -5 -1.5 -- -/x')] == [True] * 4 + [False] * 4
    assert [item.value.comparison for item in parse('a:>5 a:>=5 a:<5 a:<=5 a:">5" a:=5')] == [
        ">",
        ">=",
        "<",
        "<=",
        "",
        "",
    ]


def test_open_quotes_are_noticed() -> None:
    assert [has_open_quote(text) for text in ('"a', '"a b', '-"a', 'f:"a', '"a"', 'a"', '5"', 'k="v')] == [True] * 4 + [
        False
    ] * 4
