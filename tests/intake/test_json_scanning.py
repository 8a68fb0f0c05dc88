"""JSON lines are taken apart into shapes and values."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coprlake.intake.formats import json_scanning as scanning
from coprlake.intake.formats.json_comparing import same_json, same_strings
from coprlake.intake.formats.json_scanning import Scanned, room_for, scan_objects
from coprlake.text.arrow_strings import Strings, bytes_of
from coprlake.text.json_shapes import parsed_shape

pytestmark = pytest.mark.kernels


def scanned(*lines: str, mode: int = scanning.SCAN) -> tuple[bytes, Scanned]:
    texts = [line.encode() for line in lines]
    starts = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    data = b"".join(texts)
    out = room_for(len(data), len(lines))
    scan_objects(bytes_of(data), starts, np.full(len(lines), mode, np.uint8), out)
    return data, out


def shape_and_values(line: str, mode: int = scanning.SCAN) -> tuple[str, list[str]]:
    data, out = scanned(line, mode=mode)
    shape = out.shapes[: out.shape_starts[1]].tobytes().decode()
    places = range(out.place_starts[1])
    return shape, [data[out.firsts[place] : out.lasts[place]].decode() for place in places]


@pytest.mark.parametrize(
    ("line", "shape", "values"),
    [
        ("{}", "{}", []),
        (' { "a" : "x" } ', '{"a":s}', ['"x"']),
        ('{"a":1,"b":-2.5e3,"c":true,"d":false,"e":null}', '{"a":i,"b":f,"c":b,"d":b,"e":null}', None),
        ('{"a":{ },"b":[ ],"c":{"d":{}}}', '{"a":{},"b":[],"c":{"d":{}}}', []),
        ('{"a":[1,{"b":"]}"}]}', '{"a":j}', ['[1,{"b":"]}"}]']),
        ('{"a":{"b":{"c":{"d":{"e":1}}}}}', '{"a":{"b":{"c":{"d":{"e":i}}}}}', ["1"]),
        ('{"a":{"b":{"c":{"d":{"e":{"f":1}}}}}}', '{"a":{"b":{"c":{"d":{"e":j}}}}}', ['{"f":1}']),
        (r'{"a\"b":"c\\"}', r'{"a\"b":s}', [r'"c\\"']),
        ('{"a":"2024-05-06T07:08:09.123-03:30"}', '{"a":td:82}', None),
        ('{"a":"2024-05-06 07:08:09,5"}', '{"a":tL-00}', None),
        ('{"a":"2024-05-06T07:08:09-00:00"}', '{"a":s}', None),
        ('{"a":9223372036854775807,"b":9223372036854775808}', '{"a":i,"b":i}', None),
        ('{"a":1e400}', '{"a":r}', ["1e400"]),
    ],
)
def test_shapes(line: str, shape: str, values: list[str] | None) -> None:
    found, texts = shape_and_values(line)
    assert found == shape
    assert values is None or texts == values


@pytest.mark.parametrize(
    "line", ["x", "{", '{"a"}', '{"a":}', '{"a":1', '{"a":1}x', '{"a":NaN}', '{"a":1,}', '{"a":"x}', '{"a":[1}', "[1]"]
)
def test_what_is_not_an_object_is_kept_as_a_whole(line: str) -> None:
    assert shape_and_values(line) == ("r", [line])


def test_what_need_not_be_taken_apart() -> None:
    assert shape_and_values('{"a":1}', scanning.CONTENT_LINE) == ("=", [])
    assert shape_and_values('{"a":1}', scanning.REST_LINE) == ("r", ['{"a":1}'])
    assert shape_and_values('{"a":1}', scanning.NO_LINE) == ("", [])


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(st.dictionaries(st.text(max_size=4), _VALUES, max_size=5), st.sampled_from([(",", ":"), (" , ", " : ")]))
@example({"": {"": "2024-05-06T07:08:09Z"}}, (",", ":"))
def test_values_in_their_shape_are_the_object(record: dict[str, Any], separators: tuple[str, str]) -> None:
    shape_text, values = shape_and_values(json.dumps(record, separators=separators))
    shape = parsed_shape(shape_text)
    assert shape is not None
    assert len(values) == len(shape.places)
    text = shape.texts[0] + "".join(value + after for value, after in zip(values, shape.texts[1:], strict=True))
    assert json.loads(text) == record
    assert list(json.loads(text)) == list(record)


def _compared(kernel: Any, value: str, text: bytes) -> bool:
    data, out = scanned(f'{{"k":{value}}}')
    texts = Strings(bytes_of(text), np.array([0, len(text)], np.int64), np.zeros(0, np.uint8))
    is_same = np.zeros(1, np.bool_)
    kernel(bytes_of(data), out, np.zeros(1, np.int64), texts, np.zeros(1, np.int64), is_same)
    return bool(is_same[0])


_TEXTS = st.text(alphabet='ab"\\/\n\x01\x7fé\u2028\U0001f600', max_size=20)


@given(_TEXTS, _TEXTS, st.booleans())
def test_strings_are_compared_as_they_are_meant(text: str, other: str, is_ascii: bool) -> None:
    value = json.dumps(text, ensure_ascii=is_ascii)
    assert _compared(same_strings, value, text.encode())
    assert _compared(same_strings, value, other.encode()) == (text == other)
    assert _compared(same_strings, value, value[1:-1].encode()) == (value[1:-1] == text)


@pytest.mark.parametrize("value", [r'"\ud800"', r'"\udc00"', r'"\ud800\u0061"', r'"\ud800x"'])
def test_half_a_character_is_never_the_same(value: str) -> None:
    assert not _compared(same_strings, value, "\ufffd".encode())
    assert not _compared(same_strings, value, b"?")


@given(_VALUES, _VALUES)
def test_nested_values_are_the_same_without_blanks(value: Any, other: Any) -> None:
    compact = json.dumps([value], separators=(",", ":"), ensure_ascii=False).encode()
    for separators in ((",", ":"), (", ", ": "), (" ,\t", " : ")):
        text = json.dumps([value], separators=separators, ensure_ascii=False)
        assert _compared(same_json, text, compact)
        different = json.dumps([other], separators=(",", ":"), ensure_ascii=False).encode()
        assert _compared(same_json, text, different) == (compact == different)
