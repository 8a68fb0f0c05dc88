"""Predicates as data: how they are made, combined, shown and refused, and what of a line is highlighted."""

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

from coprlake.errors import UsageError
from coprlake.predicate import build
from coprlake.predicate.deciding.highlighting import highlights
from coprlake.predicate.predicates import (
    ALL_FIELDS,
    ANY_VALUE,
    EVERYTHING,
    NOTHING,
    And,
    Compare,
    Contains,
    Equals,
    Exists,
    Not,
    OneOf,
    Or,
    Phrase,
    Predicate,
    Prefix,
    Regex,
    Suffix,
    Term,
    Wildcard,
)


def wrong(value: Any) -> Any:
    """What the types forbid, and a user does all the same."""
    return value


A, B, C = Contains("a"), Term("b"), Exists("c")


def test_combinations_stay_flat() -> None:
    assert And((A, B, C)) == A & B & C
    assert Or((A, B, C)) == A | (B | C)
    assert And((Or((A, B)), C)) == (A | B) & C
    assert Not(A) == ~A
    assert And((A,)) == EVERYTHING & A
    assert Or((A,)) == NOTHING | A
    assert pickle.loads(pickle.dumps(~A & B)) == ~A & B
    assert len({Contains("a"), Contains("a"), Term("a"), Phrase("a")}) == 3


@pytest.mark.parametrize(
    ("predicate", "shown"),
    [
        (Contains("refused"), 'contains(content, "refused")'),
        (Regex('a"ä\n', "source", True), r'regex(source, "a\"ä\n", case_sensitive)'),
        (Equals("status", 404), "equals(status, 404)"),
        (Equals("ok", True), "equals(ok, true)"),
        (OneOf("x", tuple(range(8))), "one_of(x, 0, 1, 2, 3, 4, 3 more)"),
        (Compare("t", ">=", datetime(2024, 6, 1, tzinfo=UTC)), "t >= 2024-06-01T00:00:00+00:00"),
        (~A & (B | C), 'and(not(contains(content, "a")), or(term(content, "b"), exists(c)))'),
        (EVERYTHING, "everything"),
        (NOTHING, "nothing"),
    ],
    ids=str,
)
def test_predicates_are_shown_as_a_user_would_write_them(predicate: Predicate, shown: str) -> None:
    assert str(predicate) == shown


def test_the_words_for_users() -> None:
    assert build.contains("x") == Contains("x", ANY_VALUE)
    assert str(build.contains("x")) == 'contains(any value, "x")'
    assert str(build.contains("x", "any value")) == 'contains("any value", "x")'
    assert str(build.less_than(ANY_VALUE, 5)) == "any value < 5"
    assert build.term("x", "f") == Term("x", "f")
    assert build.phrase("x*", case_sensitive=True) == Phrase("x*", ANY_VALUE, case_sensitive=True)
    assert (build.prefix("x"), build.suffix("x")) == (Prefix("x", ANY_VALUE), Suffix("x", ANY_VALUE))
    assert build.wildcard(pattern="x*") == Wildcard("x*", ANY_VALUE)
    assert build.regex(pattern="x+") == Regex("x+", ANY_VALUE)
    assert (Wildcard("x*").pattern, Regex("x+").pattern) == ("x*", "x+")
    assert build.equals("f", 1) == Equals("f", 1)
    assert build.one_of("f", [1, "x"]) == OneOf("f", (1, "x"))
    assert build.one_of("f", "xy") == OneOf("f", ("xy",))
    assert build.exists("f") == Exists("f")
    assert build.compare("f", "<", 1) == build.less_than("f", 1) == Compare("f", "<", 1)
    assert build.at_most("f", 1) == Compare("f", "<=", 1)
    assert build.more_than("f", 1) == Compare("f", ">", 1)
    assert build.at_least("f", 1) == Compare("f", ">=", 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Contains(wrong(b"x")), "expected a text to look for, found b'x'"),
        (lambda: Contains("x", ""), "expected the name of a field, found ''"),
        (lambda: Equals("f", wrong(None)), r"use ~exists\('f'\)"),
        (lambda: Equals("f", wrong([1])), "f cannot be compared with a list"),
        (lambda: OneOf("f", wrong("xy")), "expected a tuple of values"),
        (lambda: OneOf("f", (wrong(None),)), "nothing equals a missing value"),
        (lambda: Compare("f", wrong("="), 1), "expected one of <, <=, >, >=, found '='"),
        (lambda: A & wrong("x"), "expected a predicate, found 'x'"),
        (lambda: And(wrong([A])), "expected a tuple of predicates"),
        (lambda: Not(wrong("x")), "expected a predicate"),
        (lambda: build.regex("(a"), r"bad regular expression '\(a': missing \)"),
    ],
)
def test_mistakes_are_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(UsageError, match=message):
        call()


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Contains("re"), "[re]fused: Über 10.0.0.1 [re]-[re]fused"),
        (Contains("refused") | Term("10.0.0.1"), "[refused]: Über [10.0.0.1] re-[refused]"),
        (Contains("RE", case_sensitive=True), "refused: Über 10.0.0.1 re-refused"),
        (Term("re"), "refused: Über 10.0.0.1 [re]-refused"),
        (Phrase("ref*"), "[ref]used: Über 10.0.0.1 re-[ref]used"),
        (Phrase("ref"), "refused: Über 10.0.0.1 re-refused"),
        (Prefix("REFUSED"), "[refused]: Über 10.0.0.1 re-refused"),
        (Suffix("refused", ALL_FIELDS), "refused: Über 10.0.0.1 re-[refused]"),
        (Wildcard("ref*"), "[ref]used: Über 10.0.0.1 re-[ref]used"),
        (Wildcard("10*1"), "refused: Über [10.0.0.1] re-refused"),
        (Regex(r"\d+|ü?ber"), "refused: Ü[ber] [10].[0].[0].[1] re-refused"),
        (Regex("x*"), "refused: Über 10.0.0.1 re-refused"),
        (Equals("content", "refused: Über 10.0.0.1 RE-refused"), "[refused: Über 10.0.0.1 re-refused]"),
        (~Contains("re") & Exists("content"), "refused: Über 10.0.0.1 re-refused"),
        (Contains("re", "source"), "refused: Über 10.0.0.1 re-refused"),
        (Contains("refused") & Contains("fused: Ü"), "[refused: Ü]ber 10.0.0.1 re-[refused]"),
    ],
    ids=str,
)
def test_highlights(predicate: Predicate, expected: str) -> None:
    line = expected.replace("[", "").replace("]", "")
    shown, last = "", 0
    for start, end in highlights(predicate, line):
        shown += f"{line[last:start]}[{line[start:end]}]"
        last = end
    assert shown + line[last:] == expected
