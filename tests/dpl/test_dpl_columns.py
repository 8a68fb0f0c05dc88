"""Columns of texts of every kind, and the functions that look for all matches."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba import config

from coprlake.dpl.matching_texts import arrow_type, matches, parse, parse_all, replace, split
from coprlake.dpl.pattern import compile_pattern
from coprlake.errors import UsageError

pytestmark = pytest.mark.kernels

EVERYTHING = compile_pattern(
    "WORD:w '=' (INT:i | DQS:s | BOOLEAN:b | DOUBLE:d)? ' '? ARRAY{INT:n ','?}{0,9}:l KVP{LD:key ':' LD:value ';'}?:m "
    "STRUCTURE{'<' INT:a ARRAY{ALPHA:x ' '?}+:b '>'}?:r"
)
TEXTS = [
    'a="x" 1,2k:v;',
    None,
    "b=5",
    "",
    "?",
    "c=true 3<7x y>",
    'dé="é"',
    "e=",
    'f="é€😀\\n" 1k:v;l:w;<2z>',
    "a=" + "1" * 99,
]


def as_columns(texts: list[str | None]) -> list[Any]:
    plain = pa.array(texts, pa.string())
    padded = pa.array(["zz=1", None, *texts, "yy=2"], pa.string())
    half = len(texts) // 2
    return [
        plain,
        padded.slice(2, len(texts)),
        pa.array(texts, pa.large_string()),
        padded.cast(pa.large_string()).slice(2, len(texts)),
        pa.array(texts, pa.string_view()),
        plain.dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([*range(len(texts)), None], pa.int16()), plain).slice(0, len(texts)),
        pa.chunked_array([plain.slice(0, half), plain.slice(half)]),
        pa.chunked_array([plain]),
        pa.chunked_array([plain.slice(0, half).dictionary_encode(), plain.slice(half).dictionary_encode()]),
    ]


@pytest.mark.parametrize("kind", range(len(as_columns([]))))
def test_all_kinds_of_columns_give_the_same(kind: int) -> None:
    column = as_columns(TEXTS)[kind]
    one_by_one = [parse(EVERYTHING, pa.array([text], pa.string())).to_pylist()[0] for text in TEXTS]
    parsed = parse(EVERYTHING, column)
    parsed.validate(full=True)
    assert parsed.type == arrow_type(EVERYTHING)
    assert parsed.null_count == 0
    assert parsed.to_pylist() == one_by_one
    assert one_by_one[0] == {
        "w": "a", "i": None, "s": "x", "b": None, "d": None, "l": [1, 2], "m": [("k", "v")], "r": None,
    }  # fmt: skip
    assert one_by_one[5]["r"] == {"a": 7, "b": ["x", "y"]}
    assert set(one_by_one[1].values()) == set(one_by_one[4].values()) == {None}
    expected = [None if text is None else row["w"] is not None for text, row in zip(TEXTS, one_by_one, strict=True)]
    assert matches(EVERYTHING, column).to_pylist() == expected


@pytest.mark.parametrize("kind", range(len(as_columns([]))))
def test_columns_without_rows(kind: int) -> None:
    column = as_columns([])[kind]
    assert parse(EVERYTHING, column).type == arrow_type(EVERYTHING)
    assert [len(parse(EVERYTHING, column)), len(matches(EVERYTHING, column))] == [0, 0]
    assert len(parse_all(EVERYTHING, column)) == len(split(EVERYTHING, column)) == 0
    assert replace(EVERYTHING, column, "x").to_pylist() == []


def test_columns_of_nulls() -> None:
    for column in (pa.nulls(3), pa.nulls(3, pa.string()), pa.nulls(3, pa.dictionary(pa.int32(), pa.string()))):
        assert parse(compile_pattern("LD:x"), column).to_pylist() == [{"x": None}] * 3
        assert matches(compile_pattern("LD:x"), column).to_pylist() == [None] * 3
        assert parse_all(compile_pattern("LD:x"), column).to_pylist() == [None] * 3
        assert split(compile_pattern("LD:x"), column).to_pylist() == [None] * 3
        assert replace(compile_pattern("LD:x"), column, "").to_pylist() == [None] * 3


def test_a_pattern_without_exports() -> None:
    column = pa.array(["a", "b", None])
    for texts in (column, column.dictionary_encode()):
        assert parse(compile_pattern("'a'"), texts).to_pylist() == [{}, {}, {}]
        assert matches(compile_pattern("'a'"), texts).to_pylist() == [True, False, None]


def test_only_strings_are_parsed() -> None:
    with pytest.raises(UsageError, match="not with int64"):
        parse(EVERYTHING, pa.array([1]))
    with pytest.raises(UsageError, match="not with binary"):
        parse(EVERYTHING, pa.array([b"a"]))


def test_all_matches() -> None:
    pattern = compile_pattern("INT:a '=' LD:b (';' | EOS)")
    column = pa.array(["1=x;2=y", "", None, "zz 5=äö;;6=z", "7"])
    found = parse_all(pattern, column)
    found.validate(full=True)
    assert found.type == pa.list_(arrow_type(pattern))
    assert found.to_pylist() == [
        [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
        [],
        None,
        [{"a": 5, "b": "äö"}, {"a": 6, "b": "z"}],
        [],
    ]
    assert parse_all(pattern, column.dictionary_encode()).to_pylist() == found.to_pylist()
    nested = parse_all(compile_pattern("ARRAY{INT:i ','?}+:l"), pa.array(["1,2;3", "x"]))
    assert nested.to_pylist() == [[{"l": [1, 2]}, {"l": [3]}], []]
    assert parse_all(compile_pattern("'a'"), pa.array(["aba"])).to_pylist() == [[{}, {}]]
    assert parse_all(compile_pattern("ALPHA*:x"), pa.array(["é1a"])).to_pylist() == [[{"x": "a"}]]


def test_split_and_replace() -> None:
    column = pa.array(["1; 2;3", None, "", ";", "é;;ü"])
    pattern = compile_pattern("';' BLANK*")
    pieces = [["1", "2", "3"], None, [""], ["", ""], ["é", "", "ü"]]
    assert split(pattern, column).to_pylist() == pieces
    assert split(pattern, column.slice(2)).to_pylist() == pieces[2:]
    for new in ("", "<ü>"):
        expected = [None if parts is None else new.join(parts) for parts in pieces]
        assert replace(pattern, column, new).to_pylist() == expected
        assert replace(pattern, column.dictionary_encode(), new).to_pylist() == expected
    assert replace(compile_pattern("ALPHA*"), column, "x").to_pylist() == column.to_pylist()
    with pytest.raises(UsageError, match="cannot split at an empty match"):
        split(compile_pattern("' '*"), column)


def test_texts_of_a_megabyte() -> None:
    size = 10_000 if config.DISABLE_JIT else 1_000_000
    column = pa.array(["a" * size, "x" * size + "\n", "1," * (size // 2)])
    assert [len(x or "") for x in parse(compile_pattern("LD:x"), column).field(0).to_pylist()] == [4096] * 3
    assert parse(compile_pattern("LD:x 'b'"), column).field(0).null_count == 3
    found = parse_all(compile_pattern("INT:x ','"), column)
    assert [len(row) for row in found.to_pylist()] == [0, 0, size // 2]


def test_more_events_than_there_was_room_for() -> None:
    row = ",".join(map(str, range(200)))
    found = parse(compile_pattern("ARRAY{INT:i ','?}{1,4096}:l EOS"), pa.array([row, "x", row, None, row]))
    assert found.to_pylist() == [{"l": list(range(200))}, {"l": None}] * 2 + [{"l": list(range(200))}]


def test_a_time_zone_is_applied_where_the_text_names_none() -> None:
    pattern = compile_pattern(
        "(TIMESTAMP('yyyy-MM-dd HH:mm', tz='Europe/Vienna'):t EOS | TIMESTAMP('yyyy-MM-dd HH:mm Z', tz='Asia/Tokyo'):t)"
    )
    texts = ["2024-07-01 12:00", "2024-07-01 12:00 +0000", "2024-03-31 02:30", "2024-10-27 02:30", "x"]
    expected = ["2024-07-01T10:00", "2024-07-01T12:00", "2024-03-31T01:00", "2024-10-27T00:30", None]
    values = parse(pattern, pa.array(texts)).field(0)
    wanted = [None if text is None else int(np.datetime64(text, "us").astype(np.int64)) for text in expected]
    assert values.to_pylist() == wanted
