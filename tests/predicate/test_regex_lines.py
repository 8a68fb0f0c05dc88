"""Regular expressions of a search go by lines: a record matches if ripgrep would find one of its lines."""

import re

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import config

from coprlake.predicate.build import regex
from coprlake.predicate.deciding.highlighting import highlights
from coprlake.predicate.deciding.matching import Matcher
from coprlake.predicate.patterns.literals import literals_to_look_for, required_literals
from coprlake.predicate.patterns.regex import for_whole_text, parse_pattern
from coprlake.predicate.predicates import Predicate
from coprlake.testing.naive_search import accepts
from tests.predicate.test_predicate_regex import found_by_re2, is_there

pytestmark = pytest.mark.kernels

# Each is read alike by RE2 and by Python; \B is not, on an empty text.
ATOMS = [
    *("a", "b", "B", "ab", "1", " ", ",", "-", "ä", ".", "^", "$", r"\b", r"\s", r"\S", r"\w", r"\W", r"\d"),
    *(r"\D", "[^a]", "[^-]", "[^]b]", r"[^\s]", r"[\s,]", r"[\W]", r"[\D]", r"[^\w,]", r"[\x00-\x20]", r"[\t-\r]"),
    *(r"[\s\d-]", r"[^\x0b-ÿ]", "[ -~]", r"[\W1]", r"[^\n]", r"[^a\n]", r"[^\t-\n]"),
]
SIGNS = ["", "", "", "", "*", "+", "?", "{0,2}", "*?", "+?"]
ASSERTIONS = ("^", "$", r"\b")
TEXT = st.lists(st.sampled_from(["a", "b", "B", "ab", "1", " ", ",", "-", "\t", "ä", "\n", "\n", "\r"]), max_size=9)


@st.composite
def line_patterns(draw: st.DrawFn, extra: tuple[str, ...] = ()) -> str:
    """A pattern of groups, choices and repetitions."""

    def sequence(depth: int) -> str:
        found = ""
        for _ in range(draw(st.integers(0, 4))):
            if depth < 2 and draw(st.integers(0, 5)) == 0:
                found += f"(?:{choice(depth + 1)})"
            else:
                atom = draw(st.sampled_from([*ATOMS, *extra]))
                found += f"(?:{atom})" if atom in ASSERTIONS else atom
            found += draw(st.sampled_from(SIGNS))
        return found

    def choice(depth: int) -> str:
        return "|".join(sequence(depth) for _ in range(draw(st.sampled_from([1, 1, 2]))))

    return choice(0)


def found_by_line(pattern: str, text: str, case_sensitive: bool) -> bool:
    flags = re.ASCII | (0 if case_sensitive else re.IGNORECASE)
    return any(re.search(pattern, line, flags) for line in text.split("\n"))


def decided(condition: Predicate, text: str) -> bool:
    batch = pa.record_batch({"content": [text]})
    return bool(Matcher(condition, batch.schema).mask(batch)[0])


def check(pattern: str, text: str, case_sensitive: bool, expected: bool) -> None:
    parsed = parse_pattern(pattern, case_sensitive=case_sensitive)
    assert parsed.tree is not None
    assert found_by_re2(parsed.source, text) == expected
    condition = regex(pattern, case_sensitive=case_sensitive)
    assert accepts(condition, text) == expected
    assert decided(condition, text) == expected
    if expected:
        requirement = required_literals(parsed.tree)
        assert is_there(requirement, text)
        sought = literals_to_look_for(requirement)
        assert not sought or any(literal.encode().lower() in text.encode().lower() for literal in sought)


@settings(max_examples=20 if config.DISABLE_JIT else 500, deadline=None)
@given(line_patterns(), TEXT.map("".join), st.booleans())
@example(r"a\s+b", "a\nb", True)
@example("^b$", "a\nb\n1", True)
@example("^$", "a\n", True)
@example("a[^x]b", "a\nb", False)
@example(r"[^\n]*a\sb", "a\nb", True)
def test_a_pattern_finds_the_records_that_have_a_line_with_it(pattern: str, text: str, case_sensitive: bool) -> None:
    check(pattern, text, case_sensitive, found_by_line(pattern, text, case_sensitive))


@settings(max_examples=20 if config.DISABLE_JIT else 300, deadline=None)
@given(line_patterns((r"\n", r"[\n,]", r"[\t-\n]", "\n")), TEXT.map("".join), st.booleans(), st.booleans())
def test_a_pattern_that_asks_for_it_may_match_across_lines(
    pattern: str, text: str, dot_is_any: bool, case_sensitive: bool
) -> None:
    pattern = f"(?s){pattern}" if dot_is_any else f"{pattern}\n?"
    flags = re.ASCII | re.MULTILINE | (0 if case_sensitive else re.IGNORECASE)
    check(pattern, text, case_sensitive, re.search(pattern, text, flags) is not None)


@settings(max_examples=20 if config.DISABLE_JIT else 300, deadline=None)
@given(line_patterns((r"\n", "(?s:.)")), TEXT.map("".join), st.booleans())
def test_the_query_language_looks_at_the_whole_text(pattern: str, text: str, case_sensitive: bool) -> None:
    """What prunes for `matchesRegex` is true of every text that it accepts."""
    plain = pattern if case_sensitive else f"(?i){pattern}"
    exact = parse_pattern(pattern, case_sensitive=case_sensitive, by_line=False).source
    found = found_by_re2(plain, text)
    assert found_by_re2(exact, text) == found
    assert (
        decided(regex(for_whole_text(pattern, case_sensitive=case_sensitive), case_sensitive=case_sensitive), text)
        == found
    )


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\Aa", "b\na", False),
        (r"\Ab", "b\na", True),
        (r"b\z", "b\na", False),
        (r"a\z", "b\na", True),
        ("(?-m)^a", "b\na", False),
        ("(?-m:^)b", "b\na", True),
        (r"\PL", "a\nb", False),
        (r"[\PLx]", "a\nb", False),
        (r"[[:space:]]", "a\nb", False),
        (r"[[:^alpha:]]", "a\nb", False),
        (r"[[:space:]x]", "a\nb ", True),
        (r"\p{Cc}", "a\nb", False),
        (r"\p{Cc}", "a\nb\t", True),
        (r"a\x0ab", "a\nb", True),
        (r"a\012b", "a\nb", True),
        (r"a\x{a}b", "a\nb", True),
        (r"a\s\Qb", "a\nb", False),
        ("a\\Q\nb\\E", "a\nb", True),
        ("(?s)a.b", "a\nb", True),
        ("(?s:a.)b", "a\nb", True),
        ("(?-s)a.b", "a\nb", False),
        (r"^java\.", "ERROR failed\njava.io.IOException: closed\n\tat a.b(C.java:1)", True),
        (r"closed$", "ERROR failed\njava.io.IOException: closed\n\tat a.b(C.java:1)", True),
        ("(" * 60 + "^a" + ")" * 60, "b\na", True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("case_sensitive", [True, False])
def test_anchors_classes_and_flags(pattern: str, text: str, found: bool, case_sensitive: bool) -> None:
    assert found_by_re2(parse_pattern(pattern, case_sensitive=case_sensitive).source, text) == found


def test_what_matched_is_highlighted_at_lines() -> None:
    text = "one\ntwo one\none"
    assert highlights(regex("^one$"), text) == [(0, 3), (12, 15)]


def test_the_text_of_a_plain_pattern_stays_as_it_is() -> None:
    assert for_whole_text("order [0-9]+", case_sensitive=True) == "order [0-9]+"
    assert for_whole_text("^order", case_sensitive=True) != "^order"
