"""The law of pruning: no batch with a matching row is ruled out; and what cannot be pruned is said."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from coprlake.config import RuleSet
from coprlake.predicate.narrowing.demand import demand_of
from coprlake.predicate.narrowing.required import required_tokens
from coprlake.predicate.predicates import (
    ALL_FIELDS,
    ANY_VALUE,
    EVERYTHING,
    NOTHING,
    Compare,
    Contains,
    Equals,
    Exists,
    OneOf,
    Phrase,
    Predicate,
    Prefix,
    Regex,
    Suffix,
    Term,
    Wildcard,
)
from coprlake.records import ATTRIBUTES, CONTENT, SOURCE, TIMESTAMP
from coprlake.sketch import algebra
from coprlake.sketch.algebra import Expression, Token, all_tokens
from coprlake.testing.naive_search import matches
from coprlake.testing.predicate_strategies import (
    STATUS,
    Row,
    predicates,
    rows,
    texts_in,
)
from coprlake.testing.strategies import text_lines
from coprlake.tokens.profile import Indexed, Profile
from coprlake.tokens.required_tokens import contains_tokens, piece_tokens, term_tokens, value_tokens
from coprlake.tokens.scanner import BatchScanner

pytestmark = pytest.mark.kernels

GRAMS, WHOLE = Indexed(RuleSet.WINNOWED, whole_values=False), Indexed(None, whole_values=True)
OLD_GRAMS = Indexed(RuleSet.PAPER, whole_values=False)
PROFILE = Profile({CONTENT: GRAMS, SOURCE: WHOLE, "payload": None}, complete=True, typed=frozenset({TIMESTAMP, STATUS}))
ANY_INDEX = st.sampled_from([Indexed(rules, whole) for rules in (*RuleSet, None) for whole in (False, True)] + [None])
SCANNER = BatchScanner()


def texts_by_field(batch: list[Row]) -> dict[str, list[str]]:
    """All text of a batch as an index sees it: a column and an attribute of one name are one field."""
    found: dict[str, list[str]] = {}
    for row in batch:
        pairs = [(name, value) for name, value in row.items() if isinstance(value, str)]
        for field, text in [*pairs, *(row[ATTRIBUTES] or ())]:
            if text is not None:
                found.setdefault(field, []).append(text)
    return found


def fingerprints_of(batch: list[Row], profile: Profile) -> set[int]:
    found: set[int] = set()
    for field, texts in texts_by_field(batch).items():
        indexed = profile.fields.get(field)
        if indexed is not None:
            tokens = SCANNER.scan(
                pa.array(texts),
                field,
                grams=indexed.rules is not None,
                whole_values=indexed.whole_values,
                rules=indexed.rules or RuleSet.WINNOWED,
            )
            found.update(tokens.tolist())
    return found


def holds(expression: Expression, fingerprints: set[int]) -> bool:
    if isinstance(expression, Token):
        return expression.fingerprint in fingerprints
    combine = all if isinstance(expression, algebra.And) else any
    return combine(holds(part, fingerprints) for part in expression.parts)


@st.composite
def profiled_searches(draw: st.DrawFn) -> tuple[list[list[Row]], Predicate, Profile]:
    batches = draw(st.lists(st.lists(rows(), max_size=3), min_size=1, max_size=3))
    everything = [row for batch in batches for row in batch]
    predicate = draw(predicates(texts_in(everything)))
    names = {field for batch in batches for field in texts_by_field(batch)}
    complete = draw(st.booleans())
    if not complete:
        names = {name for name in sorted(names) if draw(st.booleans())}
    fields = {name: draw(ANY_INDEX) for name in sorted(names)}
    return batches, predicate, Profile(fields, complete, frozenset({TIMESTAMP, STATUS}))


@settings(max_examples=10 if config.DISABLE_JIT else 150)
@given(profiled_searches())
def test_no_batch_with_a_matching_row_is_ruled_out(search: tuple[list[list[Row]], Predicate, Profile]) -> None:
    batches, predicate, profile = search
    expression, _ = required_tokens(predicate, profile)
    for batch in batches:
        if any(matches(predicate, row) for row in batch):
            assert holds(expression, fingerprints_of(batch, profile))


@settings(max_examples=10 if config.DISABLE_JIT else 150)
@given(st.data())
def test_no_matching_line_is_ruled_out(data: st.DataObject) -> None:
    """The same for log lines alone, where most tokens are required and most mistakes would show."""
    lines = data.draw(st.lists(text_lines(max_pieces=5), max_size=2))
    predicate = data.draw(predicates(lines, max_leaves=1))
    profile = Profile({CONTENT: data.draw(st.sampled_from([GRAMS, OLD_GRAMS, WHOLE]))}, complete=True)
    for line in lines:
        row = {CONTENT: line, ATTRIBUTES: None}
        if matches(predicate, row):
            expression, _ = required_tokens(predicate, profile)
            assert holds(expression, fingerprints_of([row], profile))


def tokens(text: str, ends: str = "", field: str = CONTENT) -> Callable[[], Expression]:
    """All tokens of a piece whose ends are open where there is an arrow; not computed while tests are collected."""
    left, right = "<" in ends, ">" in ends
    rules = RuleSet.WINNOWED if field == CONTENT else None
    return lambda: all_tokens(piece_tokens(text, field, left_open=left, right_open=right, rules=rules))


def source_is(text: str) -> Expression:
    return all_tokens(np.append(value_tokens(text, SOURCE), term_tokens(text, SOURCE)))


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Term("refused"), tokens("refused")),
        (Contains("refused"), tokens("refused", "<>")),
        (Prefix("refused"), tokens("refused", ">")),
        (Suffix("refused"), tokens("refused", "<")),
        (Phrase("refused"), tokens("refused")),
        (Phrase("refused*"), tokens("refused", ">")),
        (Phrase("_refused_"), tokens("_refused_", "<>")),
        (Wildcard("refused"), tokens("refused")),
        (Wildcard("refused*"), tokens("refused", ">")),
        (Wildcard("*refused"), tokens("refused", "<")),
        (Wildcard("?refused"), tokens("refused", "<")),
        (Regex(r"\brefused\b"), tokens("refused")),
        (Regex(r"refused.*"), tokens("refused", "<>")),
        (Regex(r"(^|\s)refused"), tokens("refused", ">")),
        (Regex(r"refused$"), tokens("refused", "<")),
        (Regex("(?i)re[fF]used", case_sensitive=True), tokens("refused", "<>")),
        (Equals(SOURCE, "a b"), lambda: source_is("a b")),
        (OneOf(SOURCE, (404, "x")), lambda: algebra.batches_in_any(source_is("404"), source_is("x"))),
        (Contains("x", "absent"), lambda: algebra.NOTHING),
        (Exists("absent"), lambda: algebra.NOTHING),
        (EVERYTHING, lambda: algebra.ANYTHING),
        (NOTHING, lambda: algebra.NOTHING),
        (~NOTHING, lambda: algebra.ANYTHING),
        (~~Term("refused"), tokens("refused")),
        (~(~Term("refused") | Exists(STATUS)), tokens("refused")),
    ],
    ids=lambda value: "tokens" if callable(value) else str(value),
)
def test_what_is_required(predicate: Predicate, expected: Callable[[], Expression]) -> None:
    assert required_tokens(predicate, PROFILE).expression == expected()


@pytest.mark.parametrize(
    ("predicate", "note"),
    [
        (Contains("ab"), 'contains(content, "ab"): shorter than 3 letters'),
        (Contains("abc", SOURCE), 'contains(source, "abc"): cuts words, and source is indexed by whole words'),
        (~Term("x"), 'not(term(content, "x")) rules nothing out'),
        (Regex("a*"), 'regex(content, "a*"): no literal that every match has'),
        (Regex(r"\PLabc"), r'regex(content, "\\PLabc"): no literal that every match has'),
        (Equals(STATUS, 404), "status is not indexed"),
        (Equals("payload", "x"), "payload is not indexed"),
        (Exists(ATTRIBUTES), "attributes is not indexed"),
        (Compare(SOURCE, "<", "x"), 'source < "x" rules nothing out'),
        (Exists(SOURCE), "exists(source) rules nothing out"),
        (Term("x", ALL_FIELDS), 'term(*, "x"): payload not indexed'),
    ],
    ids=str,
)
def test_what_cannot_be_pruned_is_said(predicate: Predicate, note: str) -> None:
    expression, notes = required_tokens(predicate, PROFILE)
    assert expression == algebra.ANYTHING
    assert notes == (note,)


def test_fields_that_are_not_listed() -> None:
    open_profile = Profile({CONTENT: GRAMS}, complete=False)
    assert required_tokens(Term("x", "other"), open_profile).expression == algebra.ANYTHING
    assert required_tokens(Term("x", ALL_FIELDS), open_profile).expression == algebra.ANYTHING
    assert all("may" in note for note in required_tokens(Term("x", ALL_FIELDS), open_profile).notes)
    closed = Profile({CONTENT: GRAMS, SOURCE: WHOLE, STATUS: None}, complete=True, typed=frozenset({STATUS}))
    both = algebra.batches_in_any(all_tokens(term_tokens("x")), all_tokens(term_tokens("x", SOURCE)))
    assert required_tokens(Term("x", ALL_FIELDS), closed).expression == both


def test_any_value_and_fields_share_the_tokens_of_the_content() -> None:
    together = Indexed(RuleSet.WINNOWED, whole_values=False, with_content=True)
    profile = Profile({CONTENT: GRAMS, "user": together, SOURCE: WHOLE}, complete=True, any_value="winnowed")
    for text in ("refused by", "bob-7", "0123456789abcdef0123"):
        for field in (ANY_VALUE, CONTENT, "user"):
            inside, term = Contains(text, field), Term(text, field)
            assert required_tokens(inside, profile) == (all_tokens(contains_tokens(text)), ())
            assert required_tokens(term, profile) == (all_tokens(term_tokens(text)), ())
            assert demand_of(inside, profile).program.fingerprints.tolist() == contains_tokens(text).tolist()
            assert demand_of(term, profile).program.fingerprints.tolist() == term_tokens(text).tolist()
        assert required_tokens(Equals("user", text), profile).expression == all_tokens(term_tokens(text))
        everywhere = algebra.batches_in_any(all_tokens(term_tokens(text)), all_tokens(term_tokens(text, SOURCE)))
        assert required_tokens(Term(text, ALL_FIELDS), profile).expression == everywhere
    assert required_tokens(Equals("user", ""), profile).notes == ('equals(user, ""): a value without a word',)
    assert demand_of(Contains("re", ANY_VALUE), profile).kind == "always"
    old = Profile({CONTENT: GRAMS, "user": WHOLE}, complete=True)
    assert demand_of(Contains("refused", ANY_VALUE), old).kind == "always"
    lines = Profile({CONTENT: GRAMS, SOURCE: WHOLE}, complete=True)
    only = demand_of(Contains("refused", ANY_VALUE), lines).program.fingerprints
    assert only.tolist() == contains_tokens("refused").tolist()
