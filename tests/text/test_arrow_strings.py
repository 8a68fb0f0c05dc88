"""The bytes and offsets of a column give its values, whatever type, nulls and slices it has."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coprlake.errors import UsageError
from coprlake.text.arrow_strings import (
    as_binary,
    as_strings,
    bytes_of,
    occurring_strings,
    string_buffers,
    view_strings,
    with_offsets,
)

pytestmark = pytest.mark.kernels

KINDS = [
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary_view()),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.large_binary()),
]
TEXTS = st.lists(st.none() | st.text(alphabet="aé😀\n", max_size=4), max_size=8)


def column_of(texts: list[str | None], kind: pa.DataType) -> pa.Array:
    """The texts as some type, which are a slice of a longer column."""
    padded = ["before", None, *texts, "behind"]
    if pa.types.is_dictionary(kind):
        column: pa.Array = pa.array(padded, pa.string()).cast(kind.value_type).dictionary_encode()
    else:
        column = pa.array(padded, pa.string()).cast(kind)
    return column.slice(2, len(texts))


def values_in(data: np.ndarray, starts: np.ndarray) -> list[bytes]:
    raw = data.tobytes()
    return [raw[start:end] for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(texts=TEXTS)
def test_views_have_the_values(kind: pa.DataType, texts: list[str | None]) -> None:
    column = column_of(texts, kind)
    data, starts = string_buffers(column)
    assert not data.flags.writeable
    assert not starts.flags.writeable
    found = [value for value, text in zip(values_in(data, starts), texts, strict=True) if text is not None]
    assert found == [text.encode() for text in texts if text is not None]
    strings = view_strings(column)
    assert strings.starts.dtype == np.int64
    assert strings.starts.tolist() == starts.tolist()
    assert strings.valid.tolist() == ([int(text is not None) for text in texts] if None in texts else [])


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(texts=TEXTS)
def test_only_what_occurs(kind: pa.DataType, texts: list[str | None]) -> None:
    found = values_in(*string_buffers(occurring_strings(column_of(texts, kind))))
    present = [text.encode() for text in texts if text is not None]
    assert found == (list(dict.fromkeys(present)) if pa.types.is_dictionary(kind) else present)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(texts=TEXTS)
def test_one_type_for_text_and_one_for_bytes(kind: pa.DataType, texts: list[str | None]) -> None:
    column = column_of(texts, kind)
    assert as_strings(column).to_pylist() == texts
    assert as_binary(column).to_pylist() == [None if text is None else text.encode() for text in texts]


def test_bytes_that_are_not_utf8() -> None:
    column = as_strings(pa.array([b"\xff\xfe"], pa.binary()))
    assert column.type == pa.string()
    assert values_in(*string_buffers(column)) == [b"\xff\xfe"]


def test_fixed_sizes_and_nulls() -> None:
    assert values_in(*string_buffers(pa.array([b"ab", b"cd"], pa.binary(2)))) == [b"ab", b"cd"]
    assert values_in(*string_buffers(pa.nulls(2))) == [b"", b""]
    assert view_strings(pa.nulls(2)).valid.tolist() == [0, 0]
    assert len(occurring_strings(pa.nulls(2))) == 0
    assert string_buffers(pa.array([], pa.string()))[1].tolist() == [0]


def test_other_types_are_rejected() -> None:
    for column in (pa.array([1]), pa.array([["a"]]), pa.array([1]).dictionary_encode()):
        with pytest.raises(UsageError, match="cannot find text in a column of type"):
            with_offsets(column)


def test_bytes_in_place() -> None:
    assert bytes_of(None).tolist() == bytes_of(b"").tolist() == bytes_of(pa.py_buffer(b"")).tolist() == []
    assert bytes_of(b"ab").tolist() == [97, 98]
    memory = np.array([1, 2], np.uint8)
    view = bytes_of(pa.py_buffer(memory))
    memory[0] = 7
    assert view.tolist() == [7, 2]
    assert not view.flags.writeable
