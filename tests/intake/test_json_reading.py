"""Blocks of JSON lines are read at once, and nothing else is taken for JSON."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coprlake.intake.fields.mapping import RecordMapper
from coprlake.intake.fields.timestamps import Clock
from coprlake.intake.formats import ndjson
from coprlake.intake.formats.json_reading import JsonBlockReader
from coprlake.intake.formats.json_scanning import Scanned, room_for
from coprlake.intake.formats.json_walking import Pieces, no_pieces, walk_lines
from coprlake.intake.formats.ndjson import NdjsonReader, flat_pairs
from coprlake.intake.lines import split_lines
from coprlake.intake.messages import MessageReader
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.intake.reading import Intake
from coprlake.records import JSON_REST, JSON_SHAPE
from coprlake.segment.original_lines import lines_of
from coprlake.text.arrow_strings import bytes_of

KEYS = st.sampled_from(["a", "b", "c", "a.b", "", 'q"', "é", "\\", "x y"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(-1e9, 1e9)
    | st.text(max_size=12)
    | st.sampled_from(["2024-05-06T07:08:09Z", "a\u2028\x00\n", "\U0001f600" * 3, "plain text of many bytes", '"\\/'])
)
NESTED = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=5
)
RECORDS = st.dictionaries(KEYS, NESTED, max_size=5)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "\r: ")])


def written(record: Any, separators: tuple[str, str] = (",", ":"), *, is_ascii: bool = True) -> str:
    return json.dumps(record, separators=separators, ensure_ascii=is_ascii)


def walked(lines: list[str], tree: Pieces | None = None) -> tuple[list[int], Scanned]:
    data = "".join(f"{line}\n" for line in lines).encode()
    spans, _ = split_lines(bytes_of(data), last=True)
    out, codes = room_for(len(data), len(lines)), np.empty(len(lines), np.int32)
    walk_lines(bytes_of(data), spans.starts, spans.ends, tree or no_pieces(), codes, out)
    return codes.tolist(), out


def mapper() -> RecordMapper:
    return RecordMapper(ReadOptions(content_key="no such key"), IntakeReport())


@pytest.mark.kernels
@given(st.lists(st.builds(written, RECORDS, SEPARATORS, is_ascii=st.booleans()), min_size=1, max_size=4), st.data())
def test_only_json_is_taken_for_json(lines: list[str], data: st.DataObject) -> None:
    """Lines with bytes removed, doubled or changed, in any order: what is read is what Python reads, too."""
    damaged = list(lines)
    for line in lines:
        at = data.draw(st.integers(0, len(line) - 1))
        change = data.draw(
            st.sampled_from(["", line[at] * 2, "0", "-", ".", "e", '"', "\\", "{", "]", ",", "\x01", "tru"])
        )
        damaged.append(line[:at] + change + line[at + 1 :])
    codes, _ = walked([line for line in damaged if "\n" not in line and "\r" not in line])
    for code, line in zip(codes, (line for line in damaged if "\n" not in line and "\r" not in line), strict=True):
        if code >= 0:
            assert isinstance(json.loads(line), dict), line


@pytest.mark.kernels
@pytest.mark.parametrize(
    "line",
    [
        *("", "x", "{", "}", "[]", '{"a"}', '{"a":}', '{"a":1', '{"a":1}x', '{"a":1,}', '{,"a":1}', '{"a":1 "b":2}'),
        *('{"a":01}', '{"a":-}', '{"a":1.}', '{"a":.5}', '{"a":1e}', '{"a":1e+}', '{"a":+1}', '{"a":NaN}', '{"a":--1}'),
        *('{"a":tru}', '{"a":fals}', '{"a":nul}', '{"a":trux}', '{"a":falsy}', '{"a":nulx}', '{"a":[tru]}'),
        *('{"a":"x}', '{"a":"\t"}', '{"a":"\\x"}', '{"a":"\\u12"}', '{"a":"\\u12g4"}', '{"a":"\\ud800"}', '{"a":"\\'),
        *('{"a":"\\ud800\\u0061"}', '{"a":"\\udc00"}', '{"\\ud800":1}', '{"a":[1}', '{"a":[1,]}', '{"a":[,1]}'),
        *('{"a":[{"b"}]}', '{"a":[{"b":}]}', '{"a":[{b:1}]}', '{"a":["\x01"]}', '{"a":[01]}', '{"a":[1 2]}', '{"a":[}'),
        *(
            '{"a":{"b":1}',
            '{"a":{"b":1}}}',
            "{a:1}",
            "{'a':1}",
            '{"a":1}{"a":1}',
            '{"a" 1}',
            '{"a":truefalse}',
            "{1:1}",
        ),
        *('{"a":9223372036854775808}', '{"a":1e400}', '{"a":' + "[" * 70 + "]" * 70 + "}"),
    ],
)
def test_what_is_left_to_others(line: str) -> None:
    known = ['{"a":1}', '{"a":"x"}', '{"a":[1]}', '{"a":true}', '{"a":{"b":1}}', '{"a":null}', line, '{"a":2}']
    codes, out = walked(known)
    assert codes[6] == -1
    assert codes[0] == codes[7] > 0
    assert out.integers[out.place_starts[7]] == 2


@pytest.mark.kernels
def test_lines_with_the_same_keys_and_kinds_end_in_the_same_node() -> None:
    tree = no_pieces()
    first, _ = walked(
        ['{"a":1,"b":"x"}', '{"a":-5,"b":"y\\n"}', '{"a":1,"b":2}', '{"a":null,"b":"x"}', '{"a":1}'], tree
    )
    assert first[0] == first[1]
    assert len({*first}) == 4
    again, _ = walked(['{"a":1}', '{"a":7,"b":""}'], tree)
    assert again == [first[4], first[0]]


@pytest.mark.kernels
def test_a_full_tree_leaves_lines_to_others() -> None:
    codes, _ = walked([f'{{"key{number}":1}}' for number in range(60)])
    assert min(codes[:48]) > 0
    assert {*codes[48:]} == {-1}


@pytest.mark.kernels
@given(st.lists(st.builds(written, RECORDS, SEPARATORS, is_ascii=st.booleans()), min_size=1, max_size=6))
@example(['{"a":"\\ud83d\\ude00\\u00e9\\/\\b"}', '{"a":["\\u0001\\u001f\\u0022\\u00e9\\n",1]}', '{"a":{}}'])
def test_columns_have_the_values(lines: list[str]) -> None:
    records = mapper()
    data = bytes_of("".join(f"{line}\n" for line in lines).encode())
    block = JsonBlockReader(records.for_file("f", Clock("UTC"))).read(data, split_lines(data, last=True)[0])
    assert block is not None
    if block.batch is None:
        assert block.odd.all()
        return
    kept = [line for line, odd in zip(lines, block.odd.tolist(), strict=True) if not odd]
    types = {field.name: field.type for field in block.batch.schema}
    rows = block.batch.to_pylist()
    for line, row in zip(kept, rows, strict=True):
        attributes = dict(row.get("attributes") or [])
        for key, value in flat_pairs(json.loads(line)):
            found = row[key] if row.get(key) is not None else attributes.get(key)
            if value == "{}" and found is None:
                has_keys = any(name.startswith(f"{key}.") for name in types)
                assert has_keys or types.get(key) != pa.string()  # the shape has it
            elif isinstance(value, str) and value[:1] in ("{", "[") and value != found:
                assert json.loads(str(found)) == json.loads(value)  # floats are as written
            elif isinstance(found, str) and not isinstance(value, str):
                assert json.loads(found) == value
            else:
                assert found == value, (key, types)
    for line, found in zip(kept, lines_of(block.batch), strict=True):
        assert json.loads(found) == json.loads(line)
        assert list(json.loads(found)) == list(json.loads(line))


def read(lines: list[str], block_bytes: int = 1 << 20) -> tuple[list[dict[str, Any]], IntakeReport]:
    report = IntakeReport()
    options = ReadOptions(format="ndjson", block_bytes=block_bytes)
    batches = MessageReader(options, report).read(pa.array(lines))
    rows = [row for batch in batches for row in batch.to_pylist()]
    for row in rows:
        row.pop(JSON_SHAPE, None)
        row.pop(JSON_REST, None)
        row["attributes"] = dict(row.get("attributes") or [])
    return [{key: value for key, value in row.items() if value is not None} for row in rows], report


_PLAIN = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab\n", max_size=3) | st.sampled_from([1.5, -2.25])


@example(['{"msg":""}', "text", '{"msg":false}'])
@example(['{"msg":5}', '{"a":', '{"msg":"x"}'])
@example(['{"a":null,"msg":""}', '{"msg":false,"a":false}', '{"msg":"","a":0}'])
@given(
    st.lists(
        st.builds(written, st.dictionaries(st.sampled_from(["a", "b", "msg", "c.d"]), _PLAIN | st.just({"x": 1})))
        | st.sampled_from(["text", '{"a":', '{"a":1,"a":2}', '{"t":18446744073709551615}']),
        min_size=1,
        max_size=12,
    )
)
def test_odd_lines_change_nothing_for_the_others(lines: list[str]) -> None:
    """Read at once or by the other reader: records come in order, with the same values, in a column or an attribute."""
    found, report = read(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ndjson, "_MISS_LIMIT", 0)
        expected, other = read(lines)
    assert [row["content"] for row in found] == [row["content"] for row in expected]
    assert (report.records, report.broken) == (other.records, other.broken)
    for row, known in zip(found, expected, strict=True):
        values = {**{key: str(value) for key, value in row.pop("attributes").items()}, **row}
        others = {**{key: str(value) for key, value in known.pop("attributes").items()}, **known}
        values.pop("timestamp"), others.pop("timestamp")
        assert {key: _text(value) for key, value in values.items()} == {
            key: _text(value) for key, value in others.items()
        }


def _text(value: Any) -> str:
    if isinstance(value, str) and value in ("true", "false"):
        return value
    try:
        return repr(float(value)) if not isinstance(value, bool) else str(value).lower()
    except ValueError:
        return str(value)


def test_lines_of_the_same_kind_are_never_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(NdjsonReader, "_one_by_one", fail)
    monkeypatch.setattr(NdjsonReader, "_by_pieces", fail)
    lines = [
        written(
            {"time": 1700000000 + number, "msg": f"m{number}", "tags": ["a"] * (number % 3), "n": {"x": number / 8}}
        )
        for number in range(500)
    ]
    found, _ = read(lines)
    assert [row["content"] for row in found] == [f"m{number}" for number in range(500)]
    assert [row["n.x"] for row in found] == [number / 8 for number in range(500)]


def test_keys_that_are_ids_are_left_to_the_other_reader() -> None:
    lines = [f'{{"msg":"x{number}","key{number}":{number}}}' for number in range(1500)]
    found, _ = read(lines)
    assert [row["content"] for row in found] == [f"x{number}" for number in range(1500)]


def test_keys_that_are_ids_make_no_columns_of_all_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time and memory grow with the lines, not with their square: 10,000 such lines took 27 s and 2 GB."""
    cells: list[int] = []

    def read_json(*arguments: Any, **options: Any) -> pa.Table:
        table = arrows(*arguments, **options)
        cells.append(table.num_rows * table.num_columns)
        return table

    arrows = pyarrow.json.read_json
    monkeypatch.setattr(pyarrow.json, "read_json", read_json)
    path = tmp_path / "ids.ndjson"
    for twice in (1, 2):
        path.write_text("".join(f'{{"msg":"x","key{number // twice}":{number}}}\n' for number in range(5000)))
        with Intake([path]) as intake:
            assert sum(batch.num_rows for batch in intake) == 5000
    assert cells, "so many shapes are not read by the kernel"
    assert max(cells) < 1000 * 1000


def test_times_of_different_types_in_odd_lines(tmp_path: Path) -> None:
    path = tmp_path / "times.ndjson"
    lines = ['{"ts":1763265300,"msg":"\\ud800"}', '{"ts":"2025-11-16T03:55:00Z","msg":"\\ud800"}', "{x"]
    path.write_text("\n".join(lines * 3))
    with Intake([path]) as intake:
        rows = [row for batch in intake for row in batch.to_pylist()]
    assert {row["timestamp"] for row in rows if row["content"] != "{x"} == {datetime(2025, 11, 16, 3, 55, tzinfo=UTC)}
