"""From lines to fingerprints and from searches to fingerprints, against the naive eight rules of the paper."""

import random
from collections.abc import Iterable, Sequence
from functools import partial, partialmethod

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numba import config

from coprlake.errors import UsageError
from coprlake.kernel import U32Array
from coprlake.records import CONTENT
from coprlake.sketch.mutable import MutableSketch
from coprlake.testing import naive
from coprlake.testing.strategies import lines, searches, text_lines
from coprlake.tokens import required_tokens as query
from coprlake.tokens import scanner
from coprlake.tokens.fingerprint import fingerprint
from coprlake.tokens.required_tokens import symbol_class, value_tokens
from coprlake.tokens.rules import PAPER, SEPARATORS, SYMBOLS, WORDS
from coprlake.tokens.scanner import CHUNK_CACHE_BITS, new_seen

pytestmark = pytest.mark.kernels
needs_jit = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="too slow without the JIT")
many = settings(max_examples=100 if config.DISABLE_JIT else 300)
some = settings(max_examples=10 if config.DISABLE_JIT else 60)


contains_tokens = partial(query.contains_tokens, rules="paper")
term_tokens = partial(query.term_tokens, rules="paper")


def piece_tokens(text: str | bytes, *, left_open: bool, right_open: bool, grams: bool = True) -> U32Array:
    rules = PAPER if grams else WORDS
    return query.piece_tokens(text, left_open=left_open, right_open=right_open, rules=rules)


class BatchScanner(scanner.BatchScanner):
    scan = partialmethod(scanner.BatchScanner.scan, rules="paper")


def fingerprints_of(tokens: Iterable[bytes | str], field: str = CONTENT) -> set[int]:
    return {fingerprint(token, field) for token in tokens}


def expected_of(batch: Iterable[bytes | str | None], field: str = CONTENT, *, grams: bool = True) -> set[int]:
    """The fingerprints of a batch by the naive rules."""
    tokens: set[bytes] = set()
    for line in batch:
        if line is not None:
            tokens |= naive.tokens_of(line.encode() if isinstance(line, str) else line, grams)
    return fingerprints_of(tokens, field)


def as_set(fingerprints: U32Array) -> set[int]:
    """The fingerprints that a scan returned, which must all differ.

    Only a gram and a longer token whose fingerprints are equal by chance may come twice: tests with so many tokens
    that this happens compare sets.
    """
    found = fingerprints.tolist()
    assert len(set(found)) == len(found)
    return set(found)


def scanned(line: bytes | str, *, grams: bool = True) -> set[int]:
    return as_set(BatchScanner().scan(pa.array([line]), grams=grams))


# The oracle itself: what the paper says, spelled out.

EXAMPLES: list[tuple[bytes | str, set[bytes | str]]] = [
    ("", set()),
    (" \t\r\n\0\x7f", set()),
    ("a", {"a"}),
    ("ab", {"ab"}),
    ("warning", {"warning", "war", "arn", "rni", "nin", "ing"}),
    ("WaRnInG", {"warning", "war", "arn", "rni", "nin", "ing"}),
    ("${{", {"${{", "$", "{", "${", "{{"}),
    ("${{!", {"${{!", "$", "{", "!", "${", "{{", "{!", "${{", "{{!"}),
    ("äöü", {"äöü", "äö", "öü"}),
    ("ä", {"ä"}),
    ("Äö", {"Äö"}),  # only ASCII is lower-cased
    ("漢字😀", {"漢字😀", "漢字", "字😀"}),
    ("aäb", {"a", "ä", "b"}),
    ("n@co", {"n", "@", "co", "n@co"}),
    ("name@company", {"name", "nam", "ame", "@", "company", "com", "omp", "mpa", "pan", "any", "name@company"}),
    ("192.0.0", {"192", ".", "0", "192.0", "0.0", "192.0.0"}),
    ("1.2.3.4", {"1", "2", "3", "4", ".", "1.2", "2.3", "3.4", "1.2.3", "2.3.4"}),
    ("1.2-3.4", {"1", "2", "3", "4", ".", "-", "1.2", "2-3", "3.4"}),  # triples need dots on both sides
    ("1-2.3.4", {"1", "2", "3", "4", ".", "-", "1-2", "2.3", "3.4", "2.3.4"}),
    ("1:2:3", {"1", "2", "3", ":", "1:2", "2:3"}),  # only dots make triples
    ("a..b", {"a", "b", ".", ".."}),  # two separators do not link
    ("a.:b", {"a", "b", ".", ":", ".:"}),
    ("a. b", {"a", "b", "."}),
    ("a .b", {"a", "b", "."}),
    ("a.\x7fb", {"a", "b", "."}),
    (".a.", {"a", "."}),
    ("a.ä", {"a", ".", "ä"}),  # links join words only
    ("ä.a.b", {"ä", ".", "a", "b", "a.b"}),
    ("a,b", {"a", "b", ","}),  # not a separator
    ("a\0b", {"a", "b"}),
    ("a\x7fb", {"a", "b"}),
    (b"\x80\xbf", {b"\x80\xbf"}),  # continuation bytes without a lead: two characters, and their 2-gram is the run
    (b"\x80\xbf\x80", {b"\x80\xbf\x80", b"\x80\xbf", b"\xbf\x80"}),
    (b"\xc3\xa4\xa4\xc3", {b"\xc3\xa4\xa4\xc3", b"\xc3\xa4\xa4", b"\xa4\xc3"}),  # one continuation too many; cut short
    (b"\xe6\xc3\xa4", {b"\xe6\xc3\xa4"}),  # a lead ends a character that is not complete
    (b"\xff\x80\x80\x80\x80", {b"\xff\x80\x80\x80\x80"}),  # four bytes at the most: two characters
]


@pytest.mark.parametrize(("line", "tokens"), EXAMPLES, ids=repr)
def test_examples_of_the_rules(line: bytes | str, tokens: set[bytes | str]) -> None:
    expected = {token.encode() if isinstance(token, str) else token for token in tokens}
    assert naive.tokens_of(line.encode() if isinstance(line, str) else line) == expected
    assert scanned(line) == fingerprints_of(expected)


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("warning", {"warning"}),
        ("${{!", {"${{!"}),
        ("äöü", {"äöü"}),
        ("1.2.3", {"1", "2", "3", ".", "1.2", "2.3", "1.2.3"}),
        ("a--b", {"a", "--", "b"}),
    ],
)
def test_without_grams_only_rules_1_to_5_apply(line: str, tokens: set[str]) -> None:
    assert naive.tokens_of(line.encode(), grams=False) == {token.encode() for token in tokens}
    assert scanned(line, grams=False) == fingerprints_of(tokens)


@pytest.mark.parametrize("separator", list(SEPARATORS), ids=chr)
def test_each_separator_links_two_words(separator: int) -> None:
    mark = bytes([separator])
    assert naive.tokens_of(b"ab" + mark + b"cd") == {b"ab", mark, b"cd", b"ab" + mark + b"cd"}
    assert scanned(b"ab" + mark + b"cd") == fingerprints_of([b"ab", mark, b"cd", b"ab" + mark + b"cd"])


def test_every_byte_between_two_words_is_treated_as_its_class_demands() -> None:
    for byte in range(256):
        line = b"ab" + bytes([byte]) + b"cd"
        assert scanned(line) == expected_of([line]), line


def test_every_lead_byte_takes_as_many_bytes_as_it_announces() -> None:
    for lead in range(0x80, 0x100):
        line = bytes([lead, 0x80, 0xBF, 0x80, 0xA4, lead, 0xBF, lead, lead])
        assert scanned(line) == expected_of([line]), line


def test_an_address_of_four_groups_has_three_pairs_and_two_triples() -> None:
    links = {token for token in naive.tokens_of(b"10.20.30.40") if b"." in token and token != b"."}
    assert links == {b"10.20", b"20.30", b"30.40", b"10.20.30", b"20.30.40"}
    assert scanned("10.20.30.40") == expected_of(["10.20.30.40"])


def test_symbols_put_every_byte_into_the_class_of_the_oracle() -> None:
    for byte in range(256):
        assert ["word", "mark", "blank", "foreign"][symbol_class(int(SYMBOLS[byte]))] == naive.class_of(byte)


def test_symbols_differ_except_for_the_case_of_letters() -> None:
    alike = {bytes([byte]).lower() for byte in range(256)}
    assert len(set(SYMBOLS.tolist())) == len(alike)
    assert 0 not in SYMBOLS


# The scanner equals the oracle, for whatever Arrow holds lines in.

TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "dictionary of string": pa.dictionary(pa.int32(), pa.string()),
    "dictionary of large_binary": pa.dictionary(pa.int8(), pa.large_binary()),
}


def lines_for(type_name: str) -> st.SearchStrategy[bytes | str]:
    return lines() if "binary" in type_name else text_lines()


@many
@given(st.lists(lines(), max_size=6), st.booleans())
@example([b"a.b", b"", b"c"], True)  # no link from line to line
def test_a_scan_finds_each_token_of_the_batch_once(batch: list[bytes], grams: bool) -> None:
    found = BatchScanner().scan(pa.array(batch, pa.binary()), grams=grams)
    assert as_set(found) == expected_of(batch, grams=grams)


@pytest.mark.parametrize("type_name", TYPES)
@some
@given(st.data())
def test_every_arrow_type_of_strings_is_scanned_alike(type_name: str, data: st.DataObject) -> None:
    batch = data.draw(st.lists(lines_for(type_name), max_size=5))
    start, stop = sorted(data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5))))
    array = pa.array(batch, TYPES[type_name])
    assert as_set(BatchScanner().scan(array)) == expected_of(batch)
    assert as_set(BatchScanner().scan(array[start:stop])) == expected_of(batch[start:stop])


@pytest.mark.parametrize("type_name", TYPES)
@some
@given(st.data())
def test_nulls_are_no_lines_in_any_type(type_name: str, data: st.DataObject) -> None:
    batch = data.draw(st.lists(st.one_of(st.none(), lines_for(type_name)), min_size=1, max_size=5))
    assume(None in batch)
    start, stop = sorted(data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5))))
    array = pa.array(batch, TYPES[type_name])[start:stop]
    values = {value for value in batch[start:stop] if value is not None}
    found = as_set(BatchScanner().scan(array, whole_values=True))
    assert found == expected_of(batch[start:stop]) | fingerprints_of(values)


@some
@given(st.lists(st.lists(lines(), max_size=3), max_size=4), st.booleans())
def test_a_chunked_array_is_one_batch(chunks: list[list[bytes]], encoded: bool) -> None:
    kind = TYPES["dictionary of large_binary"] if encoded else pa.binary()
    array = pa.chunked_array([pa.array(chunk, kind) for chunk in chunks], kind)
    found = as_set(BatchScanner().scan(array))
    assert found == expected_of(line for chunk in chunks for line in chunk)


def test_bytes_of_fixed_size_are_lines_too() -> None:
    batch = [b"a.b", b"c d", b"\xff\x80 ", None]
    assert as_set(BatchScanner().scan(pa.array(batch, pa.binary(3)))) == expected_of(batch)


def test_a_value_of_a_dictionary_that_no_row_uses_is_not_scanned() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array(["used", "spare"]))
    assert as_set(BatchScanner().scan(array)) == expected_of(["used"])


@pytest.mark.parametrize(
    "array",
    [pa.array([], kind) for kind in TYPES.values()]
    + [pa.array([], pa.null()), pa.array([None, None]), pa.chunked_array([], pa.string()), pa.array(["", "", None])],
    ids=lambda array: f"{len(array)} x {array.type}",
)
def test_a_batch_without_text_has_no_tokens(array: pa.Array) -> None:
    assert len(BatchScanner().scan(array)) == 0


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 2]),
        pa.array([True]),
        pa.array([["a"]]),
        pa.array([{"a": "b"}]),
        pa.array([1, 2]).dictionary_encode(),
        pa.chunked_array([pa.array([1.5])]),
    ],
    ids=lambda array: str(array.type),
)
def test_a_column_of_anything_else_is_refused(array: pa.Array) -> None:
    with pytest.raises(UsageError, match="cannot find text in a column of type"):
        BatchScanner().scan(array)


def test_fingerprints_come_in_the_order_of_first_occurrence() -> None:
    found = BatchScanner().scan(pa.array(["b a b", "c long a"]), grams=False)
    assert found.tolist() == [fingerprint(token) for token in ("b", "a", "c", "long")]


@some
@given(st.lists(st.tuples(st.lists(lines(), max_size=4), st.sampled_from([CONTENT, "host"]), st.booleans())))
def test_a_scanner_remembers_nothing_of_earlier_batches(batches: list[tuple[list[bytes], str, bool]]) -> None:
    scanner = BatchScanner()
    for batch, field, grams in batches:
        array = pa.array(batch, pa.binary())
        reused = scanner.scan(array, field, grams=grams).tolist()
        assert reused == BatchScanner().scan(array, field, grams=grams).tolist()


# Whole values and fields.


@some
@given(st.lists(lines(), max_size=5), st.sampled_from([CONTENT, "host"]), st.booleans())
@example([b""], "host", True)
@example([b"a.b", b"a.b.c", b"ab", b"{{", b"a b"], "host", False)
def test_whole_values_adds_each_value_as_one_token(batch: list[bytes], field: str, grams: bool) -> None:
    found = as_set(BatchScanner().scan(pa.array(batch, pa.binary()), field, grams=grams, whole_values=True))
    assert found == expected_of(batch, field, grams=grams) | fingerprints_of(batch, field)
    for value in batch:
        assert set(value_tokens(value, field).tolist()) <= found


def test_a_value_with_spaces_is_no_token_unless_whole_values_are_asked_for() -> None:
    array = pa.array(["GET /a b"])
    assert fingerprint("GET /a b", "request") not in as_set(BatchScanner().scan(array, "request", whole_values=False))
    assert fingerprint("get /A B", "request") in as_set(BatchScanner().scan(array, "request", whole_values=True))


def test_a_null_is_not_an_empty_value() -> None:
    scanner = BatchScanner()
    assert as_set(scanner.scan(pa.array([None], pa.string()), "f", whole_values=True)) == set()
    assert as_set(scanner.scan(pa.array([""]), "f", whole_values=True)) == {fingerprint("", "f")}


def test_more_whole_values_than_the_scanner_has_room_for_are_all_added() -> None:
    spare = len(new_seen().long_tokens) // 2
    values = [f"{i:x} {i % 7}" for i in range(spare + 5000)]
    found = as_set(BatchScanner().scan(pa.array(values), grams=False, whole_values=True))
    assert found == expected_of(values, grams=False) | fingerprints_of(values)


def test_the_same_word_in_two_fields_has_two_fingerprints() -> None:
    scanner = BatchScanner()
    array = pa.array(["error a.b ${{ äöü"])
    found = [as_set(scanner.scan(array, field, grams=True, whole_values=False)) for field in (CONTENT, "level", "host")]
    assert found == [expected_of(array.to_pylist(), field) for field in (CONTENT, "level", "host")]
    assert not found[0] & found[1]
    assert not found[0] & found[2]
    assert not found[1] & found[2]


def test_the_case_of_letters_matters_only_outside_of_ascii() -> None:
    assert scanned("ERROR Name@Company") == scanned("error nAME@cOMPANY")
    assert fingerprint("ERROR", "Level") == fingerprint("error", "level")
    assert fingerprint("Ä") != fingerprint("ä")
    assert scanned("ÄÖ") != scanned("äö")


def test_the_edges_of_letters_and_digits_are_not_folded() -> None:
    assert len(fingerprints_of("@AZ[`az{/09:")) == 10  # A and a, Z and z


# Large batches: the scanner has to grow, and its cache of chunks has to forget.


@needs_jit
def test_a_token_of_three_megabytes_is_one_token() -> None:
    token = b"abc" * 2**20
    found = as_set(BatchScanner().scan(pa.array([token, b"x", token])))
    assert found == fingerprints_of([token, b"abc", b"bca", b"cab", b"x"])


@needs_jit
def test_a_line_of_a_megabyte_of_distinct_tokens_is_scanned_whole() -> None:
    line = " ".join(f"{i:x}q{i * 7919:x}" for i in range(90_000))
    assert len(line) > 1_000_000
    tokens = naive.tokens_of(line.encode())
    assert len(tokens) > 2**16
    assert set(BatchScanner().scan(pa.array(["before", line, "after"])).tolist()) == fingerprints_of(
        tokens | naive.tokens_of(b"before after")
    )


@needs_jit
def test_a_megabyte_of_distinct_foreign_characters_is_scanned_whole() -> None:
    line = "".join(map(chr, [*range(0x80, 0xD800), *range(0x10000, 0x46000)]))
    assert len(line.encode()) > 1_000_000
    assert set(BatchScanner().scan(pa.array([line])).tolist()) == expected_of([line])


@needs_jit
@pytest.mark.parametrize("kind", ["word", "mark"])
def test_every_gram_there_is_can_come_in_one_batch(kind: str) -> None:
    symbols = sorted({bytes([byte]).lower() for byte in range(256) if naive.class_of(byte) == kind})
    grams = [a + b + c for a in symbols for b in symbols for c in symbols]
    random.Random(3).shuffle(grams)
    assert set(BatchScanner().scan(pa.array(grams)).tolist()) == expected_of(grams)  # as tokens of their own
    runs = [b"".join(grams[i : i + 50]) for i in range(0, len(grams), 50)]
    assert set(BatchScanner().scan(pa.array(runs)).tolist()) == expected_of(runs)  # inside of longer ones


def test_a_batch_with_more_tokens_than_room_grows_the_scanner_and_loses_none() -> None:
    spare = len(new_seen().long_tokens) // 2
    batch = [f"{i:05x}.{i % 3}" for i in range(spare // 2 + 2000)]
    scanner = BatchScanner()
    expected = expected_of(batch, grams=False)
    assert len(expected) > spare
    assert as_set(scanner.scan(pa.array(batch), grams=False)) == expected
    assert as_set(scanner.scan(pa.array(batch[:50]))) == expected_of(batch[:50])


def test_a_foreign_run_that_is_longer_than_the_room_grows_the_scanner() -> None:
    slots = len(new_seen().long_tokens)
    batch = ["ab ä", "".join(map(chr, range(0x800, 0x800 + slots + 100))), "ä ü"]
    assert as_set(BatchScanner().scan(pa.array(batch))) == expected_of(batch)


@pytest.mark.parametrize(
    "form", ["{:05d}", "longname{:05d}", "longname{:05d}-name-tail", "a-name-of-16-and-{:05d}-more"], ids=len
)
def test_tokens_are_reported_once_though_the_caches_of_chunks_forget(form: str) -> None:
    chunks = [form.format(i) for i in range((1 << CHUNK_CACHE_BITS) + 3000)]
    if config.DISABLE_JIT:
        chunks = chunks[:4000]
    found = as_set(BatchScanner().scan(pa.array([" ".join(chunks), " ".join(reversed(chunks))]), grams=False))
    assert found == expected_of(chunks, grams=False)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 17, 19, 23, 24, 25, 40])
def test_chunks_that_differ_in_one_byte_or_in_length_are_not_taken_for_each_other(size: int) -> None:
    chunks = [b"x" * k + b"y" + b"x" * (size - k - 1) for k in range(size)] + [b"x" * k for k in range(1, size + 1)]
    batch = [b" ".join(chunks), *chunks, b" ".join(reversed(chunks)), b"-" * 20]
    expected = fingerprints_of([*chunks, b"-" * 20])
    assert as_set(BatchScanner().scan(pa.array(batch), grams=False)) == expected


def test_a_chunk_is_not_taken_for_one_that_stood_at_its_place_in_another_buffer() -> None:
    batch = [b"x" * 16 + middle + b"y" * 8 for middle in (b"a", b"b", b"a", b"c")]
    scanner = BatchScanner()
    found = as_set(scanner.scan(pa.chunked_array([[line] for line in batch]), grams=False))
    assert found == fingerprints_of(batch)
    for line in batch:
        assert as_set(scanner.scan(pa.array([line]), grams=False)) == fingerprints_of([line])


def test_a_chunk_that_ends_with_its_line_is_not_taken_for_one_that_goes_on() -> None:
    text = b"abcdefghijklmn 0123456 abcdefghijklmnopqrstuvwxyz end of it all"  # chunks of up to 8, 16 and more bytes
    for cut in range(1, len(text)):
        for batch in ([text[:cut], text[cut:], text], [text, text[:cut], text[cut:]]):
            found = as_set(BatchScanner().scan(pa.array(batch), grams=False))  # one after another in Arrow's buffer
            assert found == expected_of(batch, grams=False), batch


@pytest.mark.parametrize("form", ["{:05d}", "a-name-of-16-and-{:05d}-more"], ids=len)
def test_a_line_that_is_scanned_again_after_growing_loses_no_chunk(form: str) -> None:
    spare = len(new_seen().long_tokens) // 2
    line = " ".join(form.format(i) for i in range(spare + 10 if form == "{:05d}" else spare // 8))
    batch = [line, line]
    assert as_set(BatchScanner().scan(pa.array(batch), grams=False)) == expected_of(batch, grams=False)


def test_a_gram_and_a_long_token_with_one_fingerprint_are_one_token_of_a_sketch() -> None:
    assert fingerprint("eos") == fingerprint("tok142185")  # found by trying
    found = BatchScanner().scan(pa.array(["eos tok142185 eos"]), grams=False)
    assert set(found.tolist()) == {fingerprint("eos")}
    sketch = MutableSketch()
    for posting in (3, 3, 5):
        sketch.insert(found, posting)
    assert sketch.token_count == 1
    assert sketch.candidate_postings("eos").tolist() == [3, 5]


# What a search requires is there in every line that matches: the law.


@many
@given(searches(), st.booleans())
def test_a_line_that_contains_a_text_has_all_tokens_that_are_required(
    search: tuple[bytes, str | bytes], grams: bool
) -> None:
    line, text = search
    assume(naive.contains(line, text))
    assert set(contains_tokens(text, grams=grams).tolist()) <= expected_of([line], grams=grams)


@many
@given(searches(), st.booleans())
def test_a_line_that_has_a_text_as_a_term_has_all_its_tokens(search: tuple[bytes, str | bytes], grams: bool) -> None:
    line, text = search
    assume(naive.matches_term(line, text))
    assert set(term_tokens(text, grams=grams).tolist()) <= expected_of([line], grams=grams)


@many
@given(lines(), st.data(), st.booleans(), st.booleans())
def test_a_line_that_begins_or_ends_with_a_text_has_all_tokens_that_are_required(
    line: bytes, data: st.DataObject, at_start: bool, grams: bool
) -> None:
    cut = data.draw(st.integers(0, len(line)))
    text = (line[:cut] if at_start else line[cut:]).swapcase()
    assert naive.starts_with(line, text) if at_start else naive.ends_with(line, text)
    required = piece_tokens(text, left_open=not at_start, right_open=at_start, grams=grams)
    assert set(required.tolist()) <= expected_of([line], grams=grams)


@pytest.mark.parametrize("lead", [0x80, 0xBF, 0xC0, 0xDF, 0xE0, 0xEF, 0xF0, 0xFF], ids=hex)
def test_a_cut_anywhere_in_a_run_of_foreign_bytes_requires_only_what_is_there(lead: int) -> None:
    for continuation_count in range(5):
        run = bytes([lead, *[0xA4] * continuation_count, 0xC3, 0xB6, lead, *[0xA4] * continuation_count])
        there = expected_of([run])
        for start in range(len(run)):
            for end in range(start, len(run) + 1):
                required = piece_tokens(run[start:end], left_open=start > 0, right_open=end < len(run))
                assert set(required.tolist()) <= there, run[start:end]


@many
@given(lines(), st.booleans())
def test_a_whole_term_requires_exactly_its_own_tokens(text: bytes, grams: bool) -> None:
    assert set(term_tokens(text, grams=grams).tolist()) == expected_of([text], grams=grams)


@some
@given(lines(), st.booleans())
def test_blanks_around_a_text_make_it_a_whole_term(text: bytes, grams: bool) -> None:
    required = contains_tokens(b" " + text + b"\t", grams=grams)
    assert set(required.tolist()) == expected_of([text], grams=grams)


@some
@given(searches(), st.sampled_from(["host", "level"]))
def test_a_search_in_a_field_requires_tokens_of_that_field(search: tuple[bytes, str | bytes], field: str) -> None:
    line, text = search
    assume(naive.contains(line, text))
    assert set(contains_tokens(text, field).tolist()) <= expected_of([line], field)


# And it requires enough to prune: exact sets.

CONTAINS: list[tuple[str | bytes, Sequence[str | bytes]]] = [
    ("", []),
    ("a", []),
    ("ab", []),
    (" ", []),
    (" \t\0", []),
    ("abc", ["abc"]),
    ("Error", ["err", "rro", "ror"]),
    ("x error y", ["error", "err", "rro", "ror"]),  # whole between blanks
    (" error", ["err", "rro", "ror"]),
    ("error ", ["err", "rro", "ror"]),
    (" error ", ["error", "err", "rro", "ror"]),
    ("$", ["$"]),
    ("${", ["${"]),
    ("${{", ["${{"]),
    ("${{!", ["${{", "{{!"]),
    ("a${{b", ["${{", "$", "{", "${", "{{"]),  # a whole run of marks
    ("abcd.efgh", ["abc", "bcd", ".", "efg", "fgh"]),  # cut words make no pair
    (" abc.de ", ["abc", "de", ".", "abc.de"]),
    ("x.1.2.3.x", ["1", "2", "3", ".", "1.2", "2.3", "1.2.3"]),
    ("x..", [".."]),
    ("äöü", ["äö", "öü"]),
    ("ä", []),
    ("xäöüx", ["äöü", "äö", "öü"]),
    ("äöx", ["äö"]),
    ("x漢", []),
    ("äö"[:2].encode()[:-1], []),  # the second character is cut
    ("äöü".encode()[1:], ["öü"]),  # the first one is
    (b"\xa4\xa4", []),  # continuation bytes that may belong to a character before
    (b"x\xa4\xa4\xa4", [b"\xa4\xa4"]),  # here none can
    (b"\xc3\xa4\xc3 ", [b"\xc3\xa4\xc3"]),  # a character that is cut short, but not by the search
    (b"\xf0\x9f\x98\x80\xf0\x9f\x98", []),
    (b"\xf0\x9f\x98\x80\xf0\x9f\x98\x80", [b"\xf0\x9f\x98\x80\xf0\x9f\x98\x80"]),
]


@pytest.mark.parametrize(("text", "tokens"), CONTAINS, ids=repr)
def test_contains_requires_whole_inner_tokens_and_grams_of_cut_ones(
    text: str | bytes, tokens: Sequence[str | bytes]
) -> None:
    assert set(contains_tokens(text).tolist()) == fingerprints_of(tokens)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" ", []),
        ("a", ["a"]),
        ("Error", ["error", "err", "rro", "ror"]),
        ("1.2.3", ["1", "2", "3", ".", "1.2", "2.3", "1.2.3"]),
        (".a.", [".", "a"]),
        ("ä", ["ä"]),
        (b"\xa4\xc3", [b"\xa4\xc3"]),
    ],
    ids=repr,
)
def test_a_term_requires_all_its_tokens(text: str | bytes, tokens: list[str | bytes]) -> None:
    assert set(term_tokens(text).tolist()) == fingerprints_of(tokens)


def test_a_prefix_is_cut_only_at_its_end() -> None:
    required = piece_tokens("GET /inde", left_open=False, right_open=True)
    assert set(required.tolist()) == fingerprints_of(["get", "/", "ind", "nde"])
    required = piece_tokens("error", left_open=False, right_open=True)
    assert set(required.tolist()) == fingerprints_of(["err", "rro", "ror"])
    required = piece_tokens("ä漢".encode()[:-1], left_open=False, right_open=True)
    assert set(required.tolist()) == set()
    required = piece_tokens(b"\xa4\xa4", left_open=False, right_open=True)
    assert set(required.tolist()) == fingerprints_of([b"\xa4\xa4"])


def test_a_suffix_is_cut_only_at_its_start() -> None:
    required = piece_tokens("x.html", left_open=True, right_open=False)
    assert set(required.tolist()) == fingerprints_of([".", "html", "htm", "tml"])
    required = piece_tokens("ä漢字".encode()[1:], left_open=True, right_open=False)
    assert set(required.tolist()) == fingerprints_of(["漢字"])
    required = piece_tokens(b"\xc3\xa4\xc3", left_open=True, right_open=False)  # the line ends inside a character
    assert set(required.tolist()) == fingerprints_of([b"\xc3\xa4\xc3"])


def test_without_grams_cut_words_require_nothing() -> None:
    assert len(contains_tokens("error", grams=False)) == 0
    assert len(contains_tokens("${{", grams=False)) == 0
    assert set(contains_tokens("an error in", grams=False).tolist()) == fingerprints_of(["error"])
    assert set(term_tokens("Error", grams=False).tolist()) == fingerprints_of(["error"])


def test_a_search_is_scoped_to_its_field() -> None:
    assert set(contains_tokens("Error", "level", grams=True).tolist()) == fingerprints_of(
        ["err", "rro", "ror"], "level"
    )
    assert set(term_tokens("a.b", "level").tolist()) == fingerprints_of(["a", ".", "b", "a.b"], "level")
    assert value_tokens("A b", "level").tolist() == [fingerprint("a b", "level")]


def test_a_very_long_text_requires_all_its_tokens() -> None:
    count = 300 if config.DISABLE_JIT else 30_000
    text = " ".join(f"{i * 7919:x}.{i}:{{{i % 50}ä{chr(0x100 + i % 3000)}" for i in range(count))
    expected = expected_of([text])
    assert set(term_tokens(text).tolist()) == expected
    assert set(contains_tokens(f"x {text} x").tolist()) == expected


# Fingerprints: what is stored in files.

GOLDEN: list[tuple[str | bytes, str, int]] = [
    ("", CONTENT, 0x00000001),
    ("a", CONTENT, 0x3D3AF88A),
    ("0", CONTENT, 0x4C8BACD9),
    ("warning", CONTENT, 0xC67EC1B1),
    ("${{", CONTENT, 0x49114969),
    ("~", CONTENT, 0x1643FAF0),
    ("name@company", CONTENT, 0xAAFB863C),
    ("192.0.0", CONTENT, 0x9B7A3779),
    ("äöü", CONTENT, 0xDFC442FE),
    ("漢字", CONTENT, 0x82A89F54),
    (b"\xff\x80", CONTENT, 0x5144722B),
    (b"\0 \x7f", CONTENT, 0x976E6487),
    ("a" * 1000, CONTENT, 0x734685A1),
    ("", "level", 0x96B4F0D9),
    ("error", "level", 0x45BEBFF3),
    ("GET /index.html", "request", 0x90478E33),
    ("error", "größe", 0x87EA5895),
]
"""Sketches are full of these: who changes one needs a new RULES_VERSION, and has to keep reading the old one."""


@pytest.mark.parametrize(("token", "field", "value"), GOLDEN, ids=lambda part: repr(part)[:20])
def test_fingerprints_never_change(token: str | bytes, field: str, value: int) -> None:
    assert fingerprint(token, field) == value


@given(st.binary(max_size=20), st.sampled_from([CONTENT, "level"]))
def test_a_fingerprint_is_four_bytes_and_never_zero(token: bytes, field: str) -> None:
    assert 0 < fingerprint(token, field) < 2**32
    assert fingerprint(token.swapcase(), field) == fingerprint(token, field)


@pytest.mark.parametrize(
    "form", ["{}", "req-{:08d}", "{:x}", "ä{:b}"], ids=["decimal", "padded", "hexadecimal", "binary"]
)
def test_fingerprints_of_similar_tokens_are_spread_evenly(form: str) -> None:
    count = 10_000 if config.DISABLE_JIT else 200_000
    fingerprints = np.array([fingerprint(form.format(i)) for i in range(count)], np.uint32)
    pairs = count**2 / 2**33  # how many pairs share a fingerprint if it is random
    assert abs(count - len(np.unique(fingerprints)) - pairs) <= 6 * np.sqrt(pairs)
    for shift in (0, 8, 24):
        seen = np.bincount(fingerprints >> np.uint32(shift) & np.uint32(255), minlength=256)
        chi_square = ((seen - count / 256) ** 2 / (count / 256)).sum()
        assert abs(chi_square - 255) <= 6 * np.sqrt(2 * 255)


def test_dictionaries_of_views_and_values_that_do_not_occur() -> None:
    values = pa.array(["used", "unused", None], pa.string_view())
    column = pa.DictionaryArray.from_arrays(pa.array([0, None, 0, 2]), values)
    assert set(BatchScanner().scan(column, grams=False).tolist()) == {fingerprint("used")}


def test_a_column_without_chunks_is_judged_by_its_type() -> None:
    assert len(BatchScanner().scan(pa.chunked_array([], pa.string()))) == 0
    with pytest.raises(UsageError, match="int64"):
        BatchScanner().scan(pa.chunked_array([], pa.int64()))


def test_bytes_in_an_argument_that_is_no_utf8_are_searched_as_bytes() -> None:
    argument = b"a \xff\xfe b".decode("utf-8", "surrogateescape")
    assert contains_tokens(argument).tolist() == contains_tokens(b"a \xff\xfe b").tolist()
    assert fingerprint(argument) == fingerprint(b"a \xff\xfe b")


def test_a_field_is_asked_as_it_is_indexed_by_default() -> None:
    indexed = set(BatchScanner().scan(pa.array(["frontend-7 canary"]), "userapp").tolist())
    assert fingerprint("frontend-7 canary", "userapp") in indexed
    for text in ("frontend", "frontend-7", "frontend-7 canary"):
        assert set(term_tokens(text, "userapp").tolist()) <= indexed
    assert contains_tokens("ronten", "userapp").tolist() == []
    assert term_tokens("frontend", "userapp").tolist() == [fingerprint("frontend", "userapp")]


def test_half_a_surrogate_pair_can_be_asked_for() -> None:
    assert contains_tokens("\ud800x\udfff").dtype == np.uint32
    assert fingerprint("x", "\udc80") != fingerprint("x")
