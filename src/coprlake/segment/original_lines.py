"""Writes records that came from JSON as they were: all keys in their order, with the values that they had."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa

from coprlake.records import ATTRIBUTES, CONTENT, JSON_REST, JSON_SHAPE, TIMESTAMP, TIMESTAMP_TYPE
from coprlake.segment.python_values import python_values
from coprlake.text.json_shapes import IS_CONTENT, Place, Shape, layout_of, parsed_shape
from coprlake.text.text_types import is_text

_NULL: Final = "null"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_MARKS: Final = {"0": 1_000_000, "3": 1000, "6": 1, "9": 1}
_encoded = json.JSONEncoder(ensure_ascii=False).encode


def json_lines(batch: pa.RecordBatch) -> list[str | None]:
    """The JSON of each record, in one line; None for records that did not come from JSON.

    The batch needs all columns of the table. The JSON means the same as what was read: it has the same keys in the same
    order, integers are exact, and other numbers have the same value. Blanks and escapes may differ.
    """
    out: list[str | None] = [None] * batch.num_rows
    if JSON_SHAPE not in batch.schema.names:
        return out
    column = batch.column(JSON_SHAPE)
    shapes = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    assert isinstance(shapes, pa.DictionaryArray), shapes.type
    codes = np.asarray(shapes.indices.fill_null(-1))
    for code, text in enumerate(shapes.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == code)
        if not len(rows) or text is None:
            continue
        for row, line in zip(rows.tolist(), _lines(text, batch.take(pa.array(rows))), strict=True):
            out[row] = line
    return out


def lines_of(batch: pa.RecordBatch) -> list[str]:
    """Each record as text: its JSON if it came from JSON, else its content."""
    contents = _values(batch, CONTENT, pa.string())
    return [
        (content or "") if line is None else line for line, content in zip(json_lines(batch), contents, strict=True)
    ]


def _lines(text: str, batch: pa.RecordBatch) -> Sequence[str | None]:
    """The JSON of records that have the same shape."""
    if text == IS_CONTENT:
        contents = _values(batch, CONTENT, pa.string())
        return [None if line is None else line.replace("\r", " ").replace("\n", " ") for line in contents]
    shape = parsed_shape(text)
    if shape is None:
        return [None] * batch.num_rows
    return _filled(shape, _Record(batch))


def _filled(shape: Shape, records: "_Record") -> Sequence[str]:
    parts: list[Sequence[str]] = [[shape.texts[0]] * records.count]
    for place, text in zip(shape.places, shape.texts[1:], strict=True):
        parts.append(records.texts(place))
        if text:
            parts.append([text] * records.count)
    return ["".join(row) for row in zip(*parts, strict=True)]


def _values(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> list[Any]:
    """The values of a column in a type; None where there are none, or none of this type."""
    if name not in batch.schema.names:
        return [None] * batch.num_rows
    column = batch.column(name)
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if is_text(column.type):
        kind = pa.string()  # what was not text before is read from it
    try:
        return python_values(column if column.type == kind else column.cast(kind))
    except pa.ArrowException:
        return [None] * batch.num_rows


class _Record:
    """Records of one shape, and what is at its places."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self.count = batch.num_rows
        self._rests = [iter((rest or "").split("\n")) for rest in _values(batch, JSON_REST, pa.string())]
        self._attributes: list[dict[str, str]] | None = None

    def texts(self, place: Place) -> list[str]:
        """The values at a place, as JSON."""
        mark = place.mark
        if mark == "r":
            return [next(rest, "") or _NULL for rest in self._rests]
        if mark == "c":
            return [_NULL if value is None else _encoded(value) for value in _values(self._batch, CONTENT, pa.string())]
        if mark in "sj":
            found = self._found(place.field, pa.string())
            return [_NULL if value is None else _encoded(value) if mark == "s" else value for value in found]
        if mark in "ifb":
            kind, write = _TYPES[mark]
            return [_NULL if value is None else write(value) for value in self._found(place.field, kind)]
        return self._times(place)

    def _found(self, name: str, kind: pa.DataType) -> list[Any]:
        """The values of a column, or of attributes where that has none."""
        values = _values(self._batch, name, kind)
        if None not in values:
            return values
        if self._attributes is None:
            maps: list[Any] = [None] * self.count
            if ATTRIBUTES in self._batch.schema.names:
                maps = self._batch.column(ATTRIBUTES).to_pylist()
            self._attributes = [dict(reversed(pairs or [])) for pairs in maps]  # the first of two values counts
        own = self._attributes
        return [own[row].get(name) if value is None else value for row, value in enumerate(values)]

    def _times(self, place: Place) -> list[str]:
        column = self._batch.column(TIMESTAMP).cast(TIMESTAMP_TYPE).cast(pa.int64())
        has_more, write = place.mark in "u9", _time_writer(place)
        digits = [next(rest, "") if has_more else "" for rest in self._rests]
        times = zip(column.to_pylist(), digits, strict=True)
        return [_NULL if micros is None else write(micros, more) for micros, more in times]


def _float_text(value: Any) -> str:
    return repr(float(value))


def _integer_text(value: Any) -> str:
    if isinstance(value, str):
        return value if value.lstrip("-").isdecimal() else str(int(float(value)))
    return str(int(value))


def _boolean_text(value: Any) -> str:
    return value if isinstance(value, str) else "true" if value else "false"


_TYPES: Final[dict[str, tuple[pa.DataType, Callable[[Any], str]]]] = {
    "i": (pa.int64(), _integer_text),
    "f": (pa.float64(), _float_text),
    "b": (pa.bool_(), _boolean_text),
}


def _time_writer(place: Place) -> Callable[[int, str], str]:
    """The function that writes microseconds, and digits that follow, as they were."""
    if place.mark in _EPOCH_MARKS:
        size = _EPOCH_MARKS[place.mark]
        return lambda micros, more: f"{micros // size}{more}"
    if place.mark in "FG":
        scale = 1e6 if place.mark == "F" else 1e3
        return lambda micros, more: repr(micros / scale)
    separator, digits, point, east, zone = layout_of(place.layout)
    shift = timedelta(minutes=east or 0)

    def write(micros: int, more: str) -> str:
        moment = _EPOCH + (timedelta(microseconds=micros) + shift)
        text = moment.strftime(f"%Y-%m-%d{separator}%H:%M:%S").zfill(19)
        fraction = f"{moment.microsecond:06}{more}".ljust(9, "0")[:digits]
        return f'"{text}{point if digits else ""}{fraction}{zone}"'

    return write
