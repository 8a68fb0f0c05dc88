"""Which columns are text: the three meanings, side by side."""

import pyarrow as pa
import pytest

from coprlake.text.text_types import is_bytes, is_text, is_text_map, is_text_or_bytes

STRINGS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]
FIXED = [pa.binary(4)]
OTHERS = [pa.int64(), pa.null(), pa.bool_(), pa.timestamp("us"), pa.list_(pa.string()), pa.struct([("a", pa.string())])]


@pytest.mark.parametrize("kind", [*STRINGS, *BYTES, *FIXED, *OTHERS], ids=str)
@pytest.mark.parametrize("in_dictionary", [False, True], ids=["plain", "dictionary"])
def test_what_counts_as_text(kind: pa.DataType, in_dictionary: bool) -> None:
    column = pa.dictionary(pa.int32(), kind) if in_dictionary else kind
    assert is_text(column) == (kind in STRINGS)
    assert is_bytes(column) == (kind in BYTES)
    assert is_text_or_bytes(column) == (kind in [*STRINGS, *BYTES, *FIXED])


def test_maps_of_text() -> None:
    assert is_text_map(pa.map_(pa.string(), pa.binary()))
    assert is_text_map(pa.map_(pa.large_string(), pa.dictionary(pa.int8(), pa.string())))
    assert not is_text_map(pa.map_(pa.string(), pa.int64()))
    assert not is_text_map(pa.map_(pa.int64(), pa.string()))
    assert not is_text_map(pa.string())
