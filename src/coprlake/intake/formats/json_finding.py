"""Finds out whether a record gives back the values of the JSON line that it was made of, and where it has them."""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.intake.formats import json_scanning as scanning
from coprlake.intake.formats.json_comparing import BoolArray, mark_times, same_json, same_strings
from coprlake.intake.formats.json_scanning import Scanned
from coprlake.intake.lines import Lines, text_column
from coprlake.kernel import I64Array, U8Array
from coprlake.records import ATTRIBUTES, CONTENT, TIMESTAMP
from coprlake.text.arrow_strings import Strings, view_strings

REST_MARK, CONTENT_MARK, _FLOAT_SECONDS, _FLOAT_MILLIS, LONG_TIME, NANOS = b"rcFGu9"
_EPOCHS: Final = ((b"0"[0], 1_000_000), (b"3"[0], 1000), (b"6"[0], 1))
"""Marks of the timestamp as an integer, and how many microseconds one is."""
_TO_MICROS: Final = 27
"""Bytes of a time in ISO 8601 up to the sixth digit of its fraction, with the quote before it."""
_EXACT_FLOATS: Final = 1 << 53


class Places(NamedTuple):
    """The values of one field and kind."""

    data: U8Array
    scanned: Scanned
    kind: int
    numbers: I64Array  # of the values, among all
    rows: I64Array  # of the batch

    def part(self, mask: BoolArray) -> "Places":
        """Some of the values."""
        return self._replace(numbers=self.numbers[mask], rows=self.rows[mask])

    def texts(self) -> pa.StringArray:
        """The values as written."""
        firsts, lasts = self.scanned.firsts[self.numbers], self.scanned.lasts[self.numbers]
        return text_column(self.data, Lines(firsts.astype(np.int64), lasts.astype(np.int64)))


class _Attributes:
    """The attributes of a batch by key."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._parts: dict[str, I64Array] = {}
        if ATTRIBUTES not in batch.schema.names:
            return
        maps = batch.column(ATTRIBUTES)
        assert isinstance(maps, pa.MapArray), maps.type
        offsets = np.asarray(maps.offsets)
        first, last = int(offsets[0]), int(offsets[-1])
        keys = pc.dictionary_encode(maps.keys.slice(first, last - first))
        codes = np.asarray(keys.indices)
        rows = np.repeat(np.arange(batch.num_rows), np.diff(offsets))
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(keys.dictionary) + 1))
        for number, key in enumerate(keys.dictionary.to_pylist()):
            self._parts[key] = order[bounds[number] : bounds[number + 1]]
        self._rows = rows
        self._items = view_strings(maps.items.slice(first, last - first))

    def found(self, key: str, rows: I64Array) -> tuple[Strings, I64Array] | None:
        """All values, and which of them each row has first under the key, or -1."""
        items = self._parts.get(key)
        if items is None:
            return None
        places = np.minimum(np.searchsorted(self._rows[items], rows), len(items) - 1)
        return self._items, np.where(self._rows[items[places]] == rows, items[places], -1)


def _of_texts(places: Places, texts: Strings, rows: I64Array) -> BoolArray:
    """Which values a column of text has in these rows."""
    out = np.zeros(len(rows), np.bool_)
    if places.kind in (scanning.STRING, scanning.TIME):
        same_strings(places.data, places.scanned, places.numbers, texts, rows, out)
    elif places.kind != scanning.FLOAT:
        same_json(places.data, places.scanned, places.numbers, texts, rows, out)
    else:
        known = rows >= 0
        if len(texts.valid):
            known &= texts.valid[rows] != 0
        spans = Lines(texts.starts[rows], np.where(known, texts.starts[rows + 1], texts.starts[rows]))
        out = _same_floats(places, _as_floats(text_column(texts.data, spans))) & known
    return out


def _as_floats(texts: pa.StringArray) -> pa.Array:
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.nulls(len(texts), pa.float64())


def _same_floats(places: Places, values: pa.Array) -> BoolArray:
    return np.asarray(pc.equal(values, _as_floats(places.texts())).fill_null(False))


def _of_column(places: Places, column: pa.Array) -> BoolArray:
    """Which values a column has in their rows."""
    kind = places.kind
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if isinstance(column, pa.StringArray):
        return _of_texts(places, view_strings(column), places.rows)
    own = column.take(pa.array(places.rows))
    if kind == scanning.BOOLEAN and pa.types.is_boolean(column.type):
        return np.asarray(
            pc.equal(own, pa.array(places.data[places.scanned.firsts[places.numbers]] == b"t"[0])).fill_null(False)
        )
    if kind == scanning.INTEGER and pa.types.is_int64(column.type):
        return np.asarray(pc.equal(own, pa.array(places.scanned.integers[places.numbers])).fill_null(False))
    if kind == scanning.INTEGER and pa.types.is_float64(column.type):
        values = places.scanned.integers[places.numbers]
        is_exact = (values > -_EXACT_FLOATS) & (values < _EXACT_FLOATS)
        return is_exact & np.asarray(pc.equal(own, pa.array(values.astype(np.float64))).fill_null(False))
    if kind == scanning.FLOAT and pa.types.is_float64(column.type):
        return _same_floats(places, own)
    return np.zeros(len(places.rows), np.bool_)


def _of_time(places: Places, micros: I64Array) -> U8Array:
    """The mark with which the timestamp gives back each value, or that of the rest."""
    out = np.full(len(places.rows), REST_MARK, np.uint8)
    if places.kind == scanning.TIME:
        mark_times(places.data, places.scanned, places.numbers, micros, out)
    elif places.kind == scanning.INTEGER:
        values = places.scanned.integers[places.numbers]
        out[(values > 1000) & (values // 1000 == micros)] = NANOS
        for mark, size in _EPOCHS:
            out[(micros % size == 0) & (micros // size == values)] = mark
    elif places.kind == scanning.FLOAT:
        values = _as_floats(places.texts()).to_numpy(zero_copy_only=False)
        out[values == micros / 1e3] = _FLOAT_MILLIS
        out[values == micros / 1e6] = _FLOAT_SECONDS
    return out


def is_left(marks: U8Array) -> BoolArray:
    """Which values with these marks the rest has, all of a value or a part."""
    return (marks == REST_MARK) | (marks == LONG_TIME) | (marks == NANOS)


class Finder:
    """Finds the values of lines in their records."""

    def __init__(self, batch: pa.RecordBatch, data: U8Array, out: Scanned) -> None:
        self._batch = batch
        self._data = data
        self._out = out
        self._attributes = _Attributes(batch)
        self._content: Strings | None = None
        self._micros = np.asarray(batch.column(TIMESTAMP).cast(pa.int64()))

    def places(self, kind: int, numbers: I64Array, rows: I64Array) -> Places:
        """Values of one field and kind, by their numbers, and the rows that have them."""
        return Places(self._data, self._out, kind, numbers, rows)

    def shorten(self, long_times: I64Array, nanos: I64Array) -> None:
        """Leave only the digits for the rest that the timestamp does not have."""
        firsts, lasts, shapes = self._out.firsts, self._out.lasts, self._out.shapes
        digits = ((shapes[self._out.marks[long_times] + 1] | 32) - 97) % 10
        firsts[long_times] += _TO_MICROS
        lasts[long_times] = firsts[long_times] + digits - 6
        firsts[nanos] = lasts[nanos] - 3

    def marks(self, places: Places, name: str) -> U8Array:
        """The mark of each value of a field."""
        marks = np.full(len(places.rows), REST_MARK, np.uint8)
        if places.kind == scanning.REST:
            return marks
        own_mark = scanning.MARKS[scanning.STRING if places.kind == scanning.TIME else places.kind]
        found = np.zeros(len(marks), np.bool_)
        missing = ~found
        if name in self._batch.schema.names:
            column = self._batch.column(name)
            found = _of_column(places, column)
            missing = np.asarray(column.is_null())[places.rows] if column.null_count else found & False
        attributes = self._attributes.found(name, places.rows) if missing.any() else None
        if attributes is not None:
            found |= missing & _of_texts(places, *attributes)
        marks[found] = own_mark
        if not found.all():
            rest = ~found
            marks[rest] = self._elsewhere(places.part(rest))
        return marks

    def _elsewhere(self, places: Places) -> U8Array:
        """The marks of values that are the timestamp or the content, or of the rest."""
        marks = _of_time(places, self._micros[places.rows])
        left = marks == REST_MARK
        if places.kind in (scanning.STRING, scanning.TIME) and left.any():
            if self._content is None:
                self._content = view_strings(self._batch.column(CONTENT))
            marks[left & _of_texts(places, self._content, places.rows)] = CONTENT_MARK
        return marks
