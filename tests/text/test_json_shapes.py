"""Shapes of JSON objects are taken apart."""

import pytest

from coprlake.text.json_shapes import Place, Shape, field_name, layout_of, parsed_shape


def test_a_shape_has_texts_and_places() -> None:
    shape = parsed_shape('{"ts":taZ00,"msg":c,"http":{"status":i,"none":null,"x":{}},"b":[]}')
    assert shape == Shape(
        ('{"ts":', ',"msg":', ',"http":{"status":', ',"none":null,"x":{}},"b":[]}'),
        (Place("t", "ts", "aZ00"), Place("c", "msg"), Place("i", "http.status")),
        ("http.x",),
    )


def test_paths_end_with_their_objects() -> None:
    shape = parsed_shape('{"a":{"b":{"c":s},"d":s},"e":s}')
    assert shape is not None
    assert [place.field for place in shape.places] == ["a.b.c", "a.d", "e"]


def test_blanks_have_no_meaning() -> None:
    shape = parsed_shape('{"a b":s    ,"c":r    }')
    assert shape == Shape(('{"a b":', ',"c":', "}"), (Place("s", "a b"), Place("r", "c")))


def test_keys_are_read_as_json() -> None:
    shape = parsed_shape(r'{"\u00e9\"}":s,"timestamp":s,"Content":{"x":s}}')
    assert shape is not None
    assert [place.field for place in shape.places] == ['é"}', "timestamp_value", "Content.x"]


def test_names_that_a_table_needs_itself_are_others() -> None:
    assert [field_name(name) for name in ("day", "Source", "_json_rest", "level")] == [
        "day_value",
        "Source_value",
        "_json_rest_value",
        "level",
    ]


def test_the_rest_may_be_the_line() -> None:
    assert parsed_shape("r") == Shape(("", ""), (Place("r", ""),))


@pytest.mark.parametrize("text", ["x", '{"a":q}', "{s}", '{"a""b":s}', '{"a":tzZ00}', '{"\\x":s}'])
def test_what_is_not_a_shape(text: str) -> None:
    assert parsed_shape(text) is None


@pytest.mark.parametrize(
    ("layout", "meaning"),
    [
        ("aZ00", ("T", 0, ".", None, "Z")),
        ("m-00", (" ", 2, ".", None, "")),
        ("D:E0", ("T", 3, ",", 540, "+09:00")),
        ("k+82", (" ", 0, ".", -210, "-0330")),
    ],
)
def test_layouts_of_times(layout: str, meaning: tuple[object, ...]) -> None:
    assert layout_of(layout) == meaning
