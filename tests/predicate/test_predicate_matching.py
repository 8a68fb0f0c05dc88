"""The exact filter finds what plain Python finds, whatever the type of the column."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import config

from coprlake.predicate.deciding.matching import Matcher
from coprlake.predicate.predicates import (
    ALL_FIELDS,
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
from coprlake.records import ATTRIBUTES, CONTENT, SCHEMA
from coprlake.testing.naive_search import matches
from coprlake.testing.predicate_strategies import ROW_SCHEMA, STATUS, USERAPP, Row, searches_of_rows, text_predicates

pytestmark = pytest.mark.kernels
many = settings(max_examples=12 if config.DISABLE_JIT else 200)
TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
]


def content_mask(predicate: Predicate, lines: Sequence[str | None], kind: pa.DataType | None = None) -> list[bool]:
    batch = pa.record_batch([pa.array(lines, kind or pa.string())], [CONTENT])
    return list(map(bool, Matcher(predicate, batch.schema).mask(batch)))


@many
@given(searches_of_rows(), st.integers(0, 3))
def test_the_mask_is_what_the_oracle_says(search: tuple[list[Row], Predicate], skipped: int) -> None:
    rows, predicate = search
    batch = pa.RecordBatch.from_pylist(rows, ROW_SCHEMA).slice(min(skipped, len(rows)))
    matcher = Matcher(predicate, batch.schema)
    mask = matcher.mask(batch.select(matcher.columns) if matcher.columns else batch)
    assert mask.dtype == np.bool_
    assert mask.tolist() == [matches(predicate, row) for row in rows[skipped:]]
    assert matcher.count(batch) == mask.sum()


@settings(max_examples=8 if config.DISABLE_JIT else 100)
@given(st.data(), st.sampled_from(TEXT_TYPES))
def test_every_type_of_text_is_searched_alike(data: st.DataObject, kind: pa.DataType) -> None:
    rows, _ = data.draw(searches_of_rows())
    lines = [row[CONTENT] for row in rows]
    predicate = data.draw(text_predicates([line for line in lines if line]))
    column: pa.Array = pa.array([None, "in front", *lines, "behind"], pa.string())
    column = column.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else column.cast(kind)
    batch = pa.record_batch([column], [CONTENT]).slice(2, len(lines))
    expected = [matches(predicate, {CONTENT: line}) for line in lines]
    assert Matcher(predicate, batch.schema).mask(batch).tolist() == expected


@settings(max_examples=5 if config.DISABLE_JIT else 60)
@given(searches_of_rows(max_rows=8), st.integers(1, 4))
def test_a_table_is_searched_chunk_by_chunk(search: tuple[list[Row], Predicate], size: int) -> None:
    rows, predicate = search
    table = pa.Table.from_pylist(rows, ROW_SCHEMA)
    chunked = pa.Table.from_batches(table.to_batches(max_chunksize=size), ROW_SCHEMA)
    assert Matcher(predicate, table.schema).mask(chunked).tolist() == [matches(predicate, row) for row in rows]


@settings(max_examples=10 if config.DISABLE_JIT else 200)
@given(st.lists(st.text("abAB\u212a", max_size=90), max_size=8), st.text("abAB", min_size=1, max_size=3), st.booleans())
@example(["a" * 200, "b" * 63 + "ab", "x" * 500], "ab", False)
def test_needles_are_found_across_blocks_but_not_across_lines(lines: list[str], needle: str, exact: bool) -> None:
    expected = [matches(Contains(needle, CONTENT, exact), {CONTENT: line}) for line in lines]
    assert content_mask(Contains(needle, CONTENT, exact), lines) == expected


PHRASE_LINE = "User 'käärmanü' failed to login from 192.168.0.1"


@pytest.mark.parametrize(
    ("phrase", "line", "expected"),
    [
        ("192.168.0.1", PHRASE_LINE, True),
        ("192.168.0.1", PHRASE_LINE + "23", False),
        ("192.168.0.1*", PHRASE_LINE + "23", True),
        ("failed to login", PHRASE_LINE, True),
        ("failed to log", PHRASE_LINE, False),
        ("failed to log*", PHRASE_LINE, True),
        ("ed to login", PHRASE_LINE, False),
        ("*ed to login", PHRASE_LINE, True),
        ("*ed to log*", PHRASE_LINE, True),
        ("käärmanü failed", PHRASE_LINE, False),
        ("rmanü' failed", PHRASE_LINE, True),
        (" 'käärmanü' failed", PHRASE_LINE, True),
        ("Austria", "Linz, Austria", True),
        ("Pol*", "Gdansk, Poland", True),
        ("world", "Hello World", True),
        ("world", "HelloWorld", False),
        ("a_b", "x a_b-", True),
        ("b", "a_b", False),
        ("*", "", True),
        ("", "x", True),
    ],
)
def test_phrases_as_documented(phrase: str, line: str, expected: bool) -> None:
    assert content_mask(Phrase(phrase), [line]) == [expected]
    assert matches(Phrase(phrase), {CONTENT: line}) is expected


@pytest.mark.parametrize(
    ("predicate", "matching", "others"),
    [
        (Term("error"), ["an ERROR.", "error"], ["errors", "myerror", ""]),
        (Term("10.0.0.1"), ["ip 10.0.0.1:80"], ["10.0.0.12", "110.0.0.1"]),
        (Wildcard("conn*refused"), ["connection refused", "conn=1 was REFUSED!"], ["reconn refused", "conn\nrefused"]),
        (Wildcard("err?r*"), ["error", "errors", "an errxr"], ["err\nr", "terror"]),
        (Wildcard("*rror"), ["terror", "error"], ["errors"]),
        (Wildcard(r"a\*b"), ["a*b", "x a*b y"], ["axb", "xa*b"]),
        (Wildcard(r"C:\temp"), [r"in C:\temp now"], [r"C:\temps", "C:temp"]),
        (Wildcard("?"), ["x", " x", "ä b", "a-"], ["", "xx", "--", "\n"]),
        (Wildcard("*"), ["", "x"], []),
        (Wildcard(""), ["", "x"], []),
        (Regex(r"time ?out|refused \d+"), ["TIMEOUT", "Refused 5"], ["time  out", "refused x"]),
        (Regex("K"), ["k", "K"], ["\u212a"]),
        (Regex("(?i)s", case_sensitive=True), ["s", "S"], ["\u017f"]),
        (Regex("[^k]"), ["\u212a", "x"], ["kK"]),
        (Prefix("Start"), ["starting"], ["restart", "star"]),
        (Suffix(".exe"), ["a.EXE"], ["a.exe ", "exe"]),
        (Contains("Ä"), ["Ä"], ["ä"]),
        (Contains(""), ["", "x"], []),
        (Equals(CONTENT, "a b"), ["A B"], ["a b ", "a"]),
        (OneOf(CONTENT, ("x", 5, True, "")), ["X", "5", "TRUE", ""], ["xx", "1"]),
        (Compare(CONTENT, ">=", 500), ["500", "5.1e2", "+501"], ["499", "x500", "", "nan"]),
        (Compare(CONTENT, "<", "b"), ["B", "a", ""], ["b", "c"]),
    ],
    ids=str,
)
def test_examples(predicate: Predicate, matching: list[str], others: list[str]) -> None:
    lines = [*matching, *others, None]
    expected = [True] * len(matching) + [False] * (len(others) + 1)
    assert content_mask(predicate, lines) == expected
    assert content_mask(~predicate, lines) == [not answer for answer in expected]


def test_everything_nothing_and_what_has_to_be_read() -> None:
    batch = pa.RecordBatch.from_pylist([{}, {}], ROW_SCHEMA)
    assert Matcher(EVERYTHING, ROW_SCHEMA).mask(batch).tolist() == [True, True]
    assert Matcher(NOTHING, ROW_SCHEMA).mask(pa.table(batch.to_pydict(), ROW_SCHEMA)).tolist() == [False, False]
    assert Matcher(EVERYTHING, ROW_SCHEMA).columns == ()
    assert Matcher(Contains("x") & Exists(STATUS), ROW_SCHEMA).columns == (CONTENT, ATTRIBUTES, STATUS)
    assert Matcher(Contains("x"), ROW_SCHEMA).columns == (CONTENT,)
    assert Matcher(Contains("x", "region"), ROW_SCHEMA).columns == (ATTRIBUTES,)
    assert Matcher(Contains("x", ALL_FIELDS), SCHEMA).columns == ("source", "loglevel", CONTENT, ATTRIBUTES)
    assert Matcher(Contains("x", "absent"), SCHEMA.remove(4)).columns == ()
    assert Matcher(Contains("x", "absent"), SCHEMA.remove(4)).count(batch) == 0


def test_an_attribute_counts_where_its_column_is_null() -> None:
    rows: list[Row] = [
        {USERAPP: "shop", ATTRIBUTES: [(USERAPP, "cart")]},
        {USERAPP: None, ATTRIBUTES: [("x", "shop"), (USERAPP, "cart"), (USERAPP, "shop")]},
        {USERAPP: None, ATTRIBUTES: [(USERAPP, None)]},
        {USERAPP: None, ATTRIBUTES: None},
    ]
    batch = pa.RecordBatch.from_pylist(rows, ROW_SCHEMA)
    assert Matcher(Equals(USERAPP, "shop"), ROW_SCHEMA).mask(batch).tolist() == [True, False, False, False]
    assert Matcher(Equals(USERAPP, "cart"), ROW_SCHEMA).mask(batch).tolist() == [False, True, False, False]
    assert Matcher(Exists(USERAPP), ROW_SCHEMA).mask(batch).tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("kind", "values", "predicate"),
    [
        (pa.uint64(), [0, 2**64 - 1], Compare("x", ">", 2**63)),
        (pa.int8(), [-128, 127], Compare("x", "<=", 1000)),
        (pa.float32(), [0.5, float("nan")], Compare("x", ">=", 0.5)),
        (pa.float64(), [404.0, 0.1], Equals("x", "404")),
        (pa.decimal128(5, 2), [1, 2], Compare("x", "<", 1.5)),
        (pa.bool_(), [True, False], Equals("x", "TRUE")),
        (pa.bool_(), [True, False], Equals("x", 1)),
        (pa.timestamp("s"), [0, 1], Compare("x", "<", "1970-01-01T00:00:00.5")),
        (pa.timestamp("ns", "UTC"), [0, 1000], Compare("x", ">=", "1970-01-01T00:00:00.000001Z")),
        (pa.date32(), [0, 1], Compare("x", ">", "1970-01-01T12:00:00")),
        (pa.date64(), [0, 86_400_000], OneOf("x", ("1970-01-02",))),
        (pa.dictionary(pa.int8(), pa.int64()), [1, 2], Compare("x", ">", 1)),
        (pa.list_(pa.string()), [["a"], []], Contains("a", "x")),
        (pa.null(), [None, None], Equals("x", "a")),
        (pa.binary(2), [b"ab", b"cd"], Equals("x", "AB")),
    ],
    ids=str,
)
def test_typed_columns(kind: pa.DataType, values: list[Any], predicate: Predicate) -> None:
    column = pa.array([*values, None], kind)
    batch = pa.record_batch([column], ["x"])
    plain = column.cast(pa.float64()).to_pylist() if pa.types.is_decimal(kind) else column.to_pylist()
    rows = [{"x": value.to_pydatetime() if hasattr(value, "to_pydatetime") else value} for value in plain]
    expected = [matches(predicate, row) if row["x"] is not None else False for row in rows]
    assert Matcher(predicate, batch.schema).mask(batch).tolist() == expected


def test_encoded_columns_and_odd_attributes() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["ab", "c"]))
    batch = pa.record_batch([runs], [CONTENT])
    assert Matcher(Contains("b"), batch.schema).mask(batch).tolist() == [True, True, False]
    numbers = pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))
    batch = pa.record_batch([numbers], [ATTRIBUTES])
    assert Matcher(Equals("k", 1), batch.schema).mask(batch).tolist() == [False]
    assert Matcher(Exists(ATTRIBUTES), batch.schema).mask(batch).tolist() == [True]
