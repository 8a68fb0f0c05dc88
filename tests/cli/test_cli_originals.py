"""Records that came from JSON are given back as they were: through ingest and search, and after optimize."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import Result
from hypothesis import given, settings
from hypothesis import strategies as st

from coprlake.ingestion import ingest
from coprlake.intake.messages import MessageReader
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.predicate.build import contains
from coprlake.records import JSON_REST, JSON_SHAPE
from coprlake.segment.original_lines import lines_of
from coprlake.table import Table, open_table

_WORDS = """a b a.b A msg message ts time timestamp level severity source content loglevel day attributes _json_shape
    _json_rest a.b.c b.c tags log event timestamp_value { = r null é"""
_ODD = ["", "x y", 'k"q', "k\\n", "\n", "\x7f", "\ud800"]
_KEYS = st.sampled_from([*_WORDS.split(), *_ODD]) | st.text(max_size=3)
_TIMES = st.sampled_from(
    [
        "2024-05-06T07:08:09Z",
        "2024-05-06T07:08:09.1Z",
        "2024-05-06T07:08:09.123456789Z",
        "2024-05-06T07:08:09.123456000Z",
        "2024-05-06 07:08:09,123",
        "2024-05-06T07:08:09+02:00",
        "2024-05-06T07:08:09.5-0330",
        "2024-05-06T07:08:09-00:00",
        "2024-13-06T07:08:09Z",
        "2024-05-06T07:08:60Z",
        "06/May/2024:07:08:09 +0000",
        "1700000000",
        1700000000,
        1700000000123,
        1700000000123456,
        1700000000123456789,
        1700000000.5,
        1700000000.123456789,
        1700000000123.25,
    ]
)
_NUMBERS = (
    st.integers(-5, 5)
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([-0.0, 1.0, 2**53 + 1, 2**63, 2**63 - 1, -(2**63), 1e22, 123456789012345680.0, 5e-324])
)
_TEXTS = st.sampled_from(["\ud800", "INFO", "Warn", "30", "\u2028", "\x00", "a\nb", "007", "1e5", "true", "{}", "[]"])
_SCALARS = st.none() | st.booleans() | _NUMBERS | st.text(max_size=6) | _TIMES | _TEXTS
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3), max_leaves=6
)
_STYLES: Sequence[Callable[[Any], str]] = (
    json.dumps,
    lambda record: json.dumps(record, ensure_ascii=False).encode(errors="backslashreplace").decode(),
    lambda record: json.dumps(record, separators=(",", ":")),
    lambda record: json.dumps(record, separators=(" ,\t", " : ")).replace("e+", "E+"),
)
_LINES = st.builds(
    lambda record, style: style(record), st.dictionaries(_KEYS, _VALUES, max_size=5), st.sampled_from(_STYLES)
)


def pairs(text: str) -> Any:
    """The object with its keys in order, duplicates too, and with the type of each value."""

    def typed(value: Any) -> Any:
        if isinstance(value, list):
            return [typed(item) for item in value]
        return value if isinstance(value, tuple) else (type(value).__name__, value)

    return json.loads(text, object_pairs_hook=lambda found: tuple((key, typed(value)) for key, value in found))


def same(found: Sequence[str], expected: Sequence[str]) -> None:
    assert sorted(repr(pairs(line)) for line in found) == sorted(repr(pairs(line)) for line in expected)


def ingested(folder: Path, *files: Sequence[str], **options: Any) -> Table:
    for number, lines in enumerate(files):
        path = folder / f"{number}.ndjson"
        path.write_text("".join(f"{line}\n" for line in lines))
        ingest(str(path), into=str(folder / "table"), format="ndjson", again=True, **options)
    return open_table(folder / "table")


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(_LINES, min_size=1, max_size=10), st.lists(_LINES, min_size=1, max_size=4), st.booleans())
def test_any_record_comes_back(
    tmp_path_factory: pytest.TempPathFactory, first: list[str], second: list[str], attributes: bool
) -> None:
    table = ingested(tmp_path_factory.mktemp("json"), first, second, attributes=attributes)
    same(list(table.search().lines()), first + second)
    table.optimize()
    same(list(table.search().lines()), first + second)


LINES = [
    '{"ts":"2024-05-06T07:08:09.123Z","level":"warn","msg":"a \\"b\\" \\u00e9","http":{"status":200,"took":1.50}}',
    '{"time":1700000000,"message":"m","ok":true,"n":null,"e":{},"a":[],"tags":["x", "y"]}',
    '{"time":"2024-05-06T07:08:09.123456789Z","log":"x\\n","stream":"stdout"}',
    '{"time_unix_nano":1700000000123456789,"body":"b","trace":18446744073709551615}',
    '{"a.b":1,"a":{"b":2},"msg":"dotted"}',
    '{"a":1,"a":2,"msg":"twice"}',
    '{"msg":"deep","a":{"b":{"c":{"d":{"e":{"f":[1,null]}}}}}}',
    '{"no":"message","n":12345678901234567890}',
    '{"source":"web","content":"c","loglevel":30,"day":"x","attributes":"y","timestamp":"not a time"}',
    '{"objects":[{"a":1,"b":null},{"b":2.0}],"msg":"o"}',
]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return ingested(tmp_path, [*LINES, "not JSON"])


def test_these_come_back(table: Table) -> None:
    lines = list(table.search().lines())
    assert "not JSON" in lines
    same([line for line in lines if line != "not JSON"], LINES)


def test_little_is_kept_besides_the_columns(tmp_path: Path) -> None:
    table = ingested(tmp_path, ['{"time":"2024-05-06T07:08:09.123456789Z","log":"x","stream":"stdout"}'])
    rests = table.search("stdout", columns=[JSON_SHAPE, JSON_REST]).arrow().to_pylist()
    assert rests == [{JSON_SHAPE: '{"time":ujZ00,"log":c,"stream":s}', JSON_REST: "789"}]
    assert table.search("789").count() == table.search("ujZ00").count() == 0  # neither is searched


def test_json_of_the_command_line(table: Table, run: Callable[..., Result]) -> None:
    found = run("search", "-o", "json", table.uri).stdout.splitlines()
    same([line for line in found if "not JSON" not in line], LINES)
    [other] = [json.loads(line) for line in found if "not JSON" in line]
    assert other.pop("attributes", {}) == {}
    assert set(other) == {"timestamp", "source", "content"}


@pytest.mark.parametrize("options", [(), ("-o", "lines"), ("--raw",)])
def test_a_pipe_gets_lines_for_jq(table: Table, run: Callable[..., Result], options: Sequence[str]) -> None:
    found = run("search", *options, table.uri).stdout.splitlines()
    assert "not JSON" in found
    same([line for line in found if line != "not JSON"], LINES)


def test_chosen_columns_are_as_ever(table: Table, run: Callable[..., Result]) -> None:
    assert run("search", "--columns", "content", "-F", "dotted", table.uri).stdout == "dotted\n"
    found = run("search", "-o", "json", "--columns", "content,http.status", "-F", 'a "b"', table.uri).stdout
    assert json.loads(found) == {"content": 'a "b" é', "http.status": 200}


@pytest.mark.parametrize("other", [("-o", "csv"), ("--json",), ("--columns", "content")])
def test_raw_contradicts_other_formats(table: Table, run: Callable[..., Result], other: Sequence[str]) -> None:
    result = run("search", "--raw", *other, table.uri)
    assert result.exit_code == 2
    assert "contradict" in result.stderr


def test_the_columns_are_hidden(table: Table, run: Callable[..., Result]) -> None:
    assert {JSON_SHAPE, JSON_REST} <= set(table.schema.names)
    assert not {JSON_SHAPE, JSON_REST} & set(table.search().columns)
    assert not {JSON_SHAPE, JSON_REST} & set(table.query("fetch logs").columns)
    for output in ("csv", "json", "table"):
        assert JSON_SHAPE not in run("search", "-o", output, table.uri).stdout
    assert JSON_SHAPE not in run("info", table.uri).stdout
    assert JSON_SHAPE not in run("info", "--json", table.uri).stdout


def test_text_that_is_not_quite_a_number_stays_text(tmp_path: Path) -> None:
    lines = ['{"code":7,"msg":"x"}'], ['{"code":"007","msg":"x"}', '{"code":"8","msg":"x"}']
    table = ingested(tmp_path, *lines)
    same(list(table.search().lines()), [line for file in lines for line in file])
    assert table.search("007").count() == 1


def test_a_fraction_is_not_looked_for_in_nulls(tmp_path: Path) -> None:
    """A column of text may have bytes where it is null: those of a value that became the timestamp or the content."""
    lines = ['{"time":"abc","msg":"x"}', '{"time":1763265300.123,"msg":"y"}', '{"time":1763265301.5,"msg":2.5}']
    same(list(ingested(tmp_path, lines).search().lines()), lines)


def test_values_of_reserved_keys_are_found_whatever_their_type(tmp_path: Path) -> None:
    lines = ['{"_json_rest":123456789012345678901,"msg":"a"}', '{"_json_rest":"first","msg":"b"}']
    table = ingested(tmp_path, ['{"_json_rest":5,"msg":"c"}'], lines)
    assert table.search("123456789012345678901").count() == table.search("first").count() == 1
    assert table.search("_json_rest_value:123456789012345678901").count() == 1


def test_lines_of_which_each_has_keys_of_its_own(tmp_path: Path) -> None:
    lines = [f'{{"msg":"x","key{number}":{number}}}' for number in range(1500)]
    same(list(ingested(tmp_path, lines).search().lines()), lines)


def test_messages_of_a_queue() -> None:
    texts = ['{"msg":"a",\n "n":1}', '{"n":2,\r\n"x":[1,\n2]}', "text"]
    [batch] = MessageReader(ReadOptions(format="ndjson"), IntakeReport()).read(pa.array(texts))
    found = lines_of(batch)
    same(found[:2], texts[:2])
    assert found[2] == "text"
    assert not any("\n" in line for line in found)


def test_a_deletion_and_an_index_keep_them(table: Table) -> None:
    table.delete(contains("dotted"))
    table.index(rebuild=True)
    kept = [line for line in LINES if "dotted" not in line]
    same([line for line in table.search().lines() if line != "not JSON"], kept)


def test_shapes_of_other_programs_do_no_harm() -> None:
    batch = pa.record_batch(
        {
            "timestamp": pa.array([0, None, None], pa.timestamp("us", tz="UTC")),
            "content": ["a", "b", None],
            JSON_SHAPE: ["nonsense", '{"x":i,"t":0,"r":r,"f":f}', "="],
        }
    )
    assert lines_of(batch) == ["a", '{"x":null,"t":null,"r":null,"f":null}', ""]
