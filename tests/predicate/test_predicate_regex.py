"""Regular expressions: folding ASCII only, RE2's errors, and the literals that matches must have."""

import re

import pyarrow as pa
import pyarrow.compute
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from coprlake.errors import UsageError
from coprlake.predicate.patterns.literals import (
    NO_REQUIREMENT,
    AllOf,
    AnyOf,
    LiteralPiece,
    Requirement,
    literals_to_look_for,
    pieces_of,
    required_literals,
)
from coprlake.predicate.patterns.regex import parse_pattern
from coprlake.predicate.predicates import Regex
from coprlake.testing.naive import class_of
from coprlake.testing.naive_search import matches
from coprlake.testing.predicate_strategies import patterns
from coprlake.testing.strategies import text_lines

pytestmark = pytest.mark.kernels


def found_by_re2(pattern: str, text: str) -> bool:
    return bool(pa.compute.match_substring_regex(pa.array([text]), pattern)[0].as_py())


def is_there(requirement: Requirement, text: str) -> bool:
    """Whether a text has what is required of it."""
    if isinstance(requirement, LiteralPiece):
        return _has_piece(requirement, text.encode().lower())
    combine = all if isinstance(requirement, AllOf) else any
    return combine(is_there(part, text) for part in requirement.parts)


def _has_piece(piece: LiteralPiece, line: bytes) -> bool:
    sought = piece.text.encode().lower()
    for match in re.finditer(b"(?=" + re.escape(sought) + b")", line):
        start, end = match.start(), match.start() + len(sought)
        left = piece.left_open or start == 0 or class_of(line[start - 1]) != class_of(sought[0])
        right = piece.right_open or end == len(line) or class_of(line[end]) != class_of(sought[-1])
        if left and right:
            return True
    return False


@settings(max_examples=20 if config.DISABLE_JIT else 300)
@given(st.data(), st.booleans())
def test_the_rewritten_pattern_means_what_the_oracle_says(data: st.DataObject, case_sensitive: bool) -> None:
    lines = data.draw(st.lists(text_lines(max_pieces=4), min_size=1, max_size=3))
    pattern = data.draw(patterns(lines))
    parsed = parse_pattern(pattern, case_sensitive=case_sensitive)
    assert parsed.tree is not None
    requirement = required_literals(parsed.tree)
    for line in lines:
        expected = matches(Regex(pattern, "content", case_sensitive), {"content": line})
        assert found_by_re2(parsed.source, line) == expected
        if expected:
            assert is_there(requirement, line)
            looked_for = literals_to_look_for(requirement)
            assert not looked_for or any(text.encode().lower() in line.encode().lower() for text in looked_for)


SYNTAX = [
    r"[]a]b", r"[^]a]b", r"[-a]b", r"[a-]b", r"[[:upper:]]b", r"[[:^digit:]]b", r"[\]a]b", r"[^\w]b", r"a{", r"a{,2}",
    r"a{2}", r"a{2,}b", r"a{0}b", r"\Qa.b\E", r"\Qa\E+b", r"(?P<name>a)b", r"(?<name>a)b", r"(?i:a)b", r"(?-i:a)b",
    r"(?s).b", r"(?m)^b$", r"(?is-m:a.b)", r"a(?i)b|c", r"(a(?i)b)c", r"\x41b", r"\x{62}", r"\101b", r"\pLb",
    r"\p{Lu}b",
    r"[\p{Lu}0]b", r"\d\D\s\S\w\W", r"\Aab\z", r"\Bb", r"a??b", r"a*?b", r"(?U)a*b", r"\.b", r"\t\n", r"a||b", r"()b",
    r"(?:)*b", r"[^a]b", r"[a-z]-[A-Z]", r"\C", r"[ab][ab][ab][ab][ab][ab]", r"(?:ab){3}", r"^^b$$", r"(^a|b$)", "ä+ß",
    r"[äb]+", r"(?:a|b|c|)x", r"((a)(b))", r"\b_b\b", r"x*\bb", r"ab(?i)*-c", r"ab(?m)?", r"ab(?i){0}", r"xa(?i)*_b",
    r"ab(?s-i)(?m)*?", r"(?:ab(?i)?)b",
]  # fmt: skip
TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "AB",
    "aB-Cx",
    "a.b",
    "A\nb",
    "]b",
    "-b",
    "x_b y",
    "ä b",
    "äss",
    "aab",
    "ABABAB",
    "1b",
    "^b",
    "a-c",
    "x_b",
]


@pytest.mark.parametrize("pattern", SYNTAX)
def test_syntax_keeps_its_meaning(pattern: str) -> None:
    for case_sensitive in (True, False):
        parsed = parse_pattern(pattern, case_sensitive=case_sensitive, by_line=False)
        plain = pattern if case_sensitive else f"(?i){pattern}"
        for text in TEXTS:
            found = found_by_re2(parsed.source, text)
            assert found == found_by_re2(plain, text), text
            assert not found or is_there(required_literals(parsed.tree), text), text


@pytest.mark.parametrize("pattern", ["k", "[k]", "[j-l]", r"\x6b", r"\Qk\E", "(?i:k)", "s", "[[:alpha:]]", r"\w"])
def test_only_ascii_letters_fold(pattern: str) -> None:
    source = parse_pattern(pattern, case_sensitive=False).source
    assert not found_by_re2(source, "\u212a")
    assert not found_by_re2(source, "\u017f")
    assert found_by_re2(source, "K") or found_by_re2(source, "S")


def test_negated_classes_fold_before_they_are_negated() -> None:
    source = parse_pattern("[^k]", case_sensitive=False).source
    assert not found_by_re2(source, "kK")
    assert found_by_re2(source, "\u212a")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(abc", r"missing \): \(abc \(at character 1\)"),
        ("ab**", r"bad repetition operator: \*\* \(at character 3\)"),
        ("x[z-a]", r"invalid character class range: z-a \(at character 3\)"),
        ("(?=x)", r"invalid perl operator: \(\?="),
        ("\\", "trailing"),
        ("\udc80", "not valid UTF-8"),
    ],
)
def test_bad_patterns_are_refused_in_re2s_words(pattern: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_pattern(pattern, case_sensitive=False)


@pytest.mark.parametrize(
    "pattern", [r"\PLabc", "(" * 60 + "abc" + ")" * 60, "abc" * 1000, r"[[:^upper:]]abc", "foo(?i)*bar"]
)
def test_what_is_not_understood_is_run_as_it_is(pattern: str) -> None:
    parsed = parse_pattern(pattern, case_sensitive=False)
    assert parsed.source.startswith("(?im)")
    assert parse_pattern(pattern, case_sensitive=False, by_line=False).source == f"(?i){pattern}"
    assert required_literals(parsed.tree) == NO_REQUIREMENT


def piece(text: str, ends: str = "<>") -> LiteralPiece:
    """A piece whose ends are open where there is an arrow."""
    return LiteralPiece(text, "<" in ends, ">" in ends)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("foo.*bar", AllOf((piece("foo"), piece("bar")))),
        ("colou?r", AnyOf((piece("color"), piece("colour")))),
        (r"\d+ms", piece("ms")),
        (r"\s+ms", piece("ms", ">")),
        (r"error: \d", piece("error: ", "<")),
        ("(^|,)foo(,|$)", AnyOf((piece("foo", ""), piece("foo,"), piece(",foo"), piece(",foo,")))),
        (r"(^|\s)foo(\s|$)", piece("foo", "")),
        (r"^\s*foo", piece("foo", ">")),
        (r"(?m)^foo$", piece("foo", "")),
        (r"^foo$", piece("foo", "")),
        (r"\Afoo\z", piece("foo", "")),
        (r"foo$\n^bar", piece("foo\nbar")),
        (r"foo[^x]bar", AllOf((piece("foo"), piece("bar")))),
        (r"\bfoo\b", piece("foo", "")),
        (r"\b_foo", piece("_foo")),
        (r"\bäh", piece("äh", ">")),
        ("(?:foo.|bar.)+", AnyOf((piece("foo"), piece("bar")))),
        ("(foo)+", piece("foo")),
        ("(?:foo|.*)", NO_REQUIREMENT),
        ("(?:foo)*", NO_REQUIREMENT),
        ("x{0,3}", NO_REQUIREMENT),
        ("(a|b|c|d|e)(1|2|3|4|5)", AllOf((AnyOf(tuple(map(piece, "abcde"))), AnyOf(tuple(map(piece, "12345")))))),
    ],
)
def test_literals(pattern: str, expected: Requirement) -> None:
    found = required_literals(parse_pattern(pattern, case_sensitive=False).tree)
    if pattern.startswith("(a|b") or ("," in pattern and "(^" in pattern):  # cuts and order are not the point
        assert {p.text.strip(",") for p in pieces_of(found)} == {p.text.strip(",") for p in pieces_of(expected)}
    else:
        assert found == expected


def test_alternatives_do_not_explode() -> None:
    pattern = "(a|b)" * 30 + "".join(f"(x{i}|y{i}.)" for i in range(40))
    requirement = required_literals(parse_pattern(pattern, case_sensitive=False).tree)
    assert len(list(pieces_of(requirement))) <= 64
