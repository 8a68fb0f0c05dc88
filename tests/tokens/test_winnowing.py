"""Rule set 2: what it indexes against the naive twin, and the guarantee of winnowing, whatever the text is."""

import random

import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numba import config

from coprlake.config import RuleSet
from coprlake.records import CONTENT
from coprlake.testing import naive
from coprlake.testing.strategies import lines, searches
from coprlake.tokens.fingerprint import field_seed, fingerprint
from coprlake.tokens.required_tokens import contains_tokens, piece_tokens, term_tokens
from coprlake.tokens.rules import (
    LONG_WORD_BYTES,
    PAPER,
    WINDOW_BYTES,
    WINNOWED,
    WORDS,
    field_rules,
    kernel_rules,
    rule_set,
)
from coprlake.tokens.scanner import BatchScanner

pytestmark = pytest.mark.kernels
many = settings(max_examples=100 if config.DISABLE_JIT else 400)
some = settings(max_examples=10 if config.DISABLE_JIT else 60)

PIECES = st.sampled_from(
    [b"10.0.0.1", b"123.456.789", b"20261116", b"8f3a2b1c-9d4e", b"/var/log/", b"user=", b"a", b".", b"0", b":", b"--",
     "ä".encode(), "漢字".encode(), "😀".encode(), b"\xff", b"\x80", b" ", b"\t", b"\x7f", b"ERROR", b"Connection",
     b"aaaaaaaaaaaa", b"000000000000", b"............", b"0.0.0.0.0.0.", b"blk_-1608999687919862906"]
)  # fmt: skip
LINES = st.one_of(
    lines(),
    st.lists(PIECES, max_size=8).map(b"".join),
    st.text("0123456789.", max_size=40).map(str.encode),
    st.text("0123456789abcdef", max_size=40).map(str.encode),
    st.text("aB1.", max_size=40).map(str.encode),
    st.builds(lambda byte, count: bytes([byte]) * count, st.integers(0, 255), st.integers(0, 40)),
)


def expected_of(line: bytes, field: str = CONTENT) -> set[int]:
    seed = int(field_seed(field))
    tokens, grams = naive.rule_set_2_of(line, seed)
    return {fingerprint(token, field) for token in tokens} | {naive.gram_fingerprint(gram, seed) for gram in grams}


def scanned(*batch: bytes, field: str = CONTENT) -> set[int]:
    return set(BatchScanner().scan(pa.array(batch, pa.binary()), field, grams=True, whole_values=False).tolist())


@many
@given(LINES)
@example(b"x" * 10)
@example(b"x" * 11)
@example(b"1234567.890")
@example(b"12:34:56,789")
@example(b"0123456789abcdef")
@example(b"0123456789abcde")
@example(b"connectionmanagerimpl")
def test_a_line_has_the_tokens_of_the_naive_rules(line: bytes) -> None:
    assert scanned(line) == expected_of(line)


@some
@given(st.lists(LINES, max_size=20))
def test_a_batch_has_the_tokens_of_its_lines(batch: list[bytes]) -> None:
    assert scanned(*batch) == set[int]().union(*map(expected_of, batch))


@some
@given(LINES)
def test_tokens_are_scoped_to_their_field(line: bytes) -> None:
    assert scanned(line, field="message") == expected_of(line, "message")


@many
@given(LINES, st.data())
def test_every_piece_of_a_line_requires_only_what_the_line_has(line: bytes, data: st.DataObject) -> None:
    """No false negative, at any alignment: the law of the index."""
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, len(line)))
    piece = line[start:end].swapcase()
    assert set(contains_tokens(piece).tolist()) <= scanned(line)
    required = piece_tokens(piece, left_open=start > 0, right_open=end < len(line), rules=RuleSet.WINNOWED)
    assert set(required.tolist()) <= scanned(line)


@many
@given(searches())
def test_a_line_that_has_a_text_as_a_term_has_all_its_tokens(search: tuple[bytes, str | bytes]) -> None:
    line, text = search
    assume(naive.matches_term(line, text))
    assert set(term_tokens(text).tolist()) <= scanned(line)


@many
@given(st.one_of(st.binary(min_size=WINDOW_BYTES, max_size=60), LINES), st.data())
def test_a_window_anywhere_in_a_line_has_a_gram_of_the_line(line: bytes, data: st.DataObject) -> None:
    """The guarantee of winnowing: eleven bytes without a blank find a gram that was indexed."""
    assume(len(line) >= WINDOW_BYTES)
    start = data.draw(st.integers(0, len(line) - WINDOW_BYTES))
    window = line[start : start + WINDOW_BYTES].lower()
    assume(all(byte > 0x20 for byte in window))
    (gram,) = naive.winnowed_of(window)
    assert naive.gram_fingerprint(gram) in set(contains_tokens(window).tolist())
    assert naive.gram_fingerprint(gram) in scanned(line)


@pytest.mark.parametrize("alphabet", [b"0123456789", b"0123456789abcdef", b"0123456789.", b"abcdefghijklmnopqrst"])
def test_one_gram_in_four_is_chosen(alphabet: bytes) -> None:
    """The open-closed order; at random it would be 2 of 7, and 2 of 6 where grams have seven bytes."""
    run = bytes(random.Random(1).choices(alphabet, k=20_000))
    chosen = sum(1 for _ in _places(run))
    assert 0.2 < chosen / len(run) < (0.32 if b"0" in alphabet and b"a" not in alphabet else 0.26)


def _places(run: bytes) -> set[int]:
    """Where the grams begin that windows choose."""
    found = set()
    for start in range(len(run) - 10):
        (gram,) = naive.winnowed_of(run[start : start + 11])
        found.add(run.index(gram, start))
    return found


def test_runs_shorter_than_a_window_have_no_grams() -> None:
    assert naive.winnowed_of(b"0123456789") == set()
    assert scanned(b"10.20.30.4 8f3a2b1c9d") == {
        fingerprint(token) for token in naive.rule_set_2_of(b"10.20.30.4 8f3a2b1c9d")[0]
    }


def test_a_gram_is_no_word() -> None:
    (gram,) = naive.winnowed_of(b"abcdefghijk")
    assert naive.gram_fingerprint(gram) != fingerprint(gram)


def test_long_words_with_a_digit_are_found_by_their_grams() -> None:
    word = b"4bf92f3577b34da6"
    assert len(word) == LONG_WORD_BYTES
    assert fingerprint(word) not in scanned(word)
    assert fingerprint(word[1:]) in scanned(word[1:])
    assert fingerprint(b"internationalization") in scanned(b"internationalization")
    grams = {naive.gram_fingerprint(gram) for gram in naive.winnowed_of(word)}
    assert grams <= set(term_tokens(word).tolist())
    assert len(grams) >= 1


@pytest.mark.parametrize(
    ("pair", "is_indexed"),
    [
        ("node-7", True),
        ("host:8080", True),
        ("user_42", True),
        ("a.b", True),
        ("12:34", False),  # two numbers: times, mostly
        ("10.20", False),  # or fractions
        ("10.20.", True),  # but not in a chain
        (".10.20", True),
        ("v1.2", False),
        ("server-1234", False),  # eleven bytes: a window
        ("server-123", True),
    ],
)
def test_short_pairs_with_a_word_without_digits_are_tokens(pair: str, is_indexed: bool) -> None:
    assert (fingerprint(pair.strip(".")) in scanned(pair.encode())) is is_indexed
    assert (fingerprint(pair.strip(".")) in set(term_tokens(pair).tolist())) is is_indexed


@pytest.mark.parametrize(
    ("address", "is_indexed"), [("1.2.3", False), ("h1.z2.r3", True), ("123.456.789", True), ("www.example.org", True)]
)
def test_three_dotted_words_are_a_token_unless_they_are_short_numbers(address: str, is_indexed: bool) -> None:
    assert (fingerprint(address) in scanned(address.encode())) is is_indexed
    assert (fingerprint(address) in set(term_tokens(address).tolist())) is is_indexed


def test_a_part_of_an_address_requires_its_whole_pairs() -> None:
    assert fingerprint("20.30") in set(contains_tokens("10.20.30.").tolist())
    assert fingerprint("20.30") in scanned(b"from 110.20.30.4:80")
    assert fingerprint("20.30") not in set(contains_tokens("10.20.30").tolist())  # it may go on: 20.301


@pytest.mark.parametrize(
    ("text", "pair"), [(".20.30.", "20.30"), ("ip 77.123.", "77.123"), ("10.20.30.", "20.30"), (".20.30 ok", "20.30")]
)
def test_dots_at_an_open_end_are_known(text: str, pair: str) -> None:
    assert fingerprint(pair) in set(contains_tokens(text).tolist())


@many
@given(st.lists(LINES, max_size=6), st.sampled_from([CONTENT, "trace"]), st.booleans())
@example([b"4bf92f3577b34da6a3ce929d0e0e4736"], "trace", True)
@example([b"1234567890123456", b"a b", b"...", b"..............."], "trace", True)
def test_whole_values_are_tokens_also_if_they_are_long_words(batch: list[bytes], field: str, grams: bool) -> None:
    """Equality asks for the value as one token, whatever other rules leave out."""
    found = BatchScanner().scan(pa.array(batch, pa.binary()), field, grams=grams, whole_values=True)
    values = {fingerprint(value, field) for value in batch if value.strip(bytes(range(0x21)) + b"\x7f")}
    assert values <= set(found.tolist())
    if grams:
        expected = set[int]().union(*(expected_of(value, field) for value in batch))
        assert set(found.tolist()) == expected | {fingerprint(value, field) for value in batch}


def test_fields_without_grams_have_the_words_of_the_paper() -> None:
    """Nothing stands in for the long words and pairs of a field that has no winnowed grams."""
    scanner = BatchScanner()
    line = pa.array(["4bf92f3577b34da6a3ce929d0e0e4736 10.20:8080 12:34"])
    expected = {fingerprint(token, "trace") for token in naive.tokens_of(line[0].as_py().encode(), grams=False)}
    for rules in RuleSet:
        found = scanner.scan(line, "trace", grams=False, whole_values=False, rules=rules)
        assert set(found.tolist()) == expected


def test_rule_sets_have_names() -> None:
    assert [rule_set("paper"), rule_set(RuleSet.WINNOWED)] == [RuleSet.PAPER, RuleSet.WINNOWED] == ["paper", "winnowed"]
    assert (field_rules("paper", grams=True), field_rules("paper", grams=False)) == (RuleSet.PAPER, None)
    assert [kernel_rules(rules) for rules in (*RuleSet, None)] == [WINNOWED, PAPER, WORDS]
    assert not any(isinstance(rules, int) for rules in RuleSet)
    with pytest.raises(ValueError, match="there are no token rules 'other'; expected winnowed or paper"):
        field_rules("other", grams=False)


def test_a_long_line_without_blanks_fits() -> None:
    """More grams than the scanner has room for at first."""
    random_bytes = random.Random(2).randbytes(30_000).hex().encode()
    line = random_bytes if not config.DISABLE_JIT else random_bytes[:3_000]
    assert scanned(line, b"other", line[:-5]) == expected_of(line) | expected_of(b"other") | expected_of(line[:-5])
