"""Keeps with records from JSON how their lines were written: two columns, `JSON_SHAPE` and `JSON_REST`.

Every value of a line is compared with what the record has of it. Where the record gives it back exactly, the shape says
where; else the value is kept as it was written. So nothing depends on what happened to a value on its way.
"""

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.intake.formats import json_scanning as scanning
from coprlake.intake.formats.json_comparing import BoolArray, mark_times, same_json, same_strings
from coprlake.intake.formats.json_scanning import Scanned
from coprlake.intake.lines import Lines, text_column
from coprlake.kernel import I64Array, U8Array
from coprlake.records import ATTRIBUTES, CONTENT, JSON_REST, JSON_SHAPE, TIMESTAMP
from coprlake.text.arrow_strings import Strings, view_strings
from coprlake.text.json_shapes import IS_CONTENT, parsed_shape

_MANY_SHAPES: Final = 512
"""If a block has more, and they do not repeat, lines are kept as a whole."""

_REST, _CONTENT, _FLOAT_SECONDS, _FLOAT_MILLIS, _LONG_TIME, _NANOS = b"rcFGu9"
_EPOCHS: Final = ((b"0"[0], 1_000_000), (b"3"[0], 1000), (b"6"[0], 1))
"""Marks of the timestamp as an integer, and how many microseconds one is."""
_TO_MICROS: Final = 27
"""Bytes of a time in ISO 8601 up to the sixth digit of its fraction, with the quote before it."""
_BLANK: Final = 32
_EXACT_FLOATS: Final = 1 << 53


class _Places(NamedTuple):
    """The values of one field and kind."""

    data: U8Array
    scanned: Scanned
    kind: int
    numbers: I64Array  # of the values, among all
    rows: I64Array  # of the batch

    def part(self, mask: BoolArray) -> "_Places":
        return self._replace(numbers=self.numbers[mask], rows=self.rows[mask])

    def texts(self) -> pa.StringArray:
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


def _of_texts(places: _Places, texts: Strings, rows: I64Array) -> BoolArray:
    """Which values a column of text has in these rows."""
    out = np.zeros(len(rows), np.bool_)
    if places.kind in (scanning.STRING, scanning.TIME):
        same_strings(places.data, places.scanned, places.numbers, texts, rows, out)
    elif places.kind != scanning.FLOAT:
        same_json(places.data, places.scanned, places.numbers, texts, rows, out)
    else:
        spans = Lines(texts.starts[rows], np.where(rows < 0, texts.starts[rows], texts.starts[rows + 1]))
        out = _same_floats(places, _as_floats(text_column(texts.data, spans))) & (rows >= 0)
    return out


def _as_floats(texts: pa.StringArray) -> pa.Array:
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.nulls(len(texts), pa.float64())


def _same_floats(places: _Places, values: pa.Array) -> BoolArray:
    return np.asarray(pc.equal(values, _as_floats(places.texts())).fill_null(False))


def _of_column(places: _Places, column: pa.Array) -> BoolArray:
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


def _of_time(places: _Places, micros: I64Array) -> U8Array:
    """The mark with which the timestamp gives back each value, or that of the rest."""
    out = np.full(len(places.rows), _REST, np.uint8)
    if places.kind == scanning.TIME:
        mark_times(places.data, places.scanned, places.numbers, micros, out)
    elif places.kind == scanning.INTEGER:
        values = places.scanned.integers[places.numbers]
        out[(values > 1000) & (values // 1000 == micros)] = _NANOS
        for mark, size in _EPOCHS:
            out[(micros % size == 0) & (micros // size == values)] = mark
    elif places.kind == scanning.FLOAT:
        values = _as_floats(places.texts()).to_numpy(zero_copy_only=False)
        out[values == micros / 1e3] = _FLOAT_MILLIS
        out[values == micros / 1e6] = _FLOAT_SECONDS
    return out


class _Checking:
    """Finds out which values of lines their records give back, and changes the marks in the shapes accordingly."""

    def __init__(self, batch: pa.RecordBatch, data: U8Array, out: Scanned) -> None:
        self._batch = batch
        self._data = data
        self._out = out
        self._attributes = _Attributes(batch)
        self._content = view_strings(batch.column(CONTENT))
        self._micros = np.asarray(batch.column(TIMESTAMP).cast(pa.int64()))

    def check(self, lines: I64Array, field_numbers: I64Array, names: list[str]) -> BoolArray:
        """Check all values; which of them are left for the rest.

        Args:
            lines: of each value.
            field_numbers: of each value, in `names`.
            names: of fields.
        """
        count = len(lines)
        keys = field_numbers * scanning.KINDS + self._out.kinds[:count]
        if len(names) * scanning.KINDS < 1 << 16:
            keys = keys.astype(np.uint16)  # which are sorted in two passes
        order = np.argsort(keys, kind="stable")
        bounds = [0, *np.cumsum(np.bincount(keys)).tolist()]
        left = np.zeros(count, np.bool_)
        for first, last in pairwise(bounds):
            if first == last:
                continue
            own = order[first:last]
            kind = int(self._out.kinds[own[0]])
            places = _Places(self._data, self._out, kind, own, lines[own])
            marks = self._marks(places, names[int(field_numbers[own[0]])])
            changed = marks != scanning.MARKS[kind]
            if not changed.any():
                continue
            own, marks = own[changed], marks[changed]
            self._out.shapes[self._out.marks[own]] = marks
            if kind == scanning.TIME:
                other = self._out.marks[own[marks != _LONG_TIME]]
                for offset in range(1, 5):
                    self._out.shapes[other + offset] = _BLANK
            left[own] = (marks == _REST) | (marks == _LONG_TIME) | (marks == _NANOS)
            self._shorten(own[marks == _LONG_TIME], own[marks == _NANOS])
        left |= self._out.kinds[:count] == scanning.REST
        return left

    def _shorten(self, long_times: I64Array, nanos: I64Array) -> None:
        """Leave only the digits for the rest that the timestamp does not have."""
        firsts, lasts, shapes = self._out.firsts, self._out.lasts, self._out.shapes
        digits = ((shapes[self._out.marks[long_times] + 1] | 32) - 97) % 10
        firsts[long_times] += _TO_MICROS
        lasts[long_times] = firsts[long_times] + digits - 6
        firsts[nanos] = lasts[nanos] - 3

    def _marks(self, places: _Places, name: str) -> U8Array:
        """The mark of each value of a field."""
        marks = np.full(len(places.rows), _REST, np.uint8)
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

    def _elsewhere(self, places: _Places) -> U8Array:
        """The marks of values that are the timestamp or the content, or of the rest."""
        marks = _of_time(places, self._micros[places.rows])
        if places.kind in (scanning.STRING, scanning.TIME):
            marks[(marks == _REST) & _of_texts(places, self._content, places.rows)] = _CONTENT
        return marks


class JsonShaper:
    """Adds the two columns to the records of JSON lines."""

    def __init__(self) -> None:
        self._room = scanning.room_for(0, 0)

    def _room_for(self, data_bytes: int, line_count: int) -> Scanned:
        """Arrays that are large enough; used again, since fresh memory is slow."""
        if len(self._room.shapes) < data_bytes + line_count or len(self._room.shape_starts) < line_count + 1:
            self._room = scanning.room_for(data_bytes, line_count)
        room = self._room
        return room._replace(
            shape_starts=room.shape_starts[: line_count + 1], place_starts=room.place_starts[: line_count + 1]
        )

    def shaped(self, batch: pa.RecordBatch, raw: pa.StringArray, broken: BoolArray | None = None) -> pa.RecordBatch:
        """The records with the two columns.

        Args:
            batch: the records.
            raw: their lines.
            broken: which of these are not JSON.
        """
        out = self._room_for(sum(buffer.size for buffer in raw.buffers()[2:] if buffer), len(raw))
        return _shaped(batch, raw, broken, out)


def _shaped(batch: pa.RecordBatch, raw: pa.StringArray, broken: BoolArray | None, out: Scanned) -> pa.RecordBatch:
    data, starts, _ = view_strings(raw)
    modes = np.zeros(len(raw), np.uint8)
    modes[np.asarray(pc.equal(batch.column(CONTENT), raw))] = scanning.CONTENT_LINE
    if broken is not None:
        modes[broken] = scanning.NO_LINE
    count = scanning.scan_objects(data, starts, modes, out)
    shapes = _shape_column(out, modes)
    fields, names, odd = _fields(shapes, out)
    while odd.any():
        modes[odd] = scanning.REST_LINE
        count = scanning.scan_objects(data, starts, modes, out)
        shapes = _shape_column(out, modes)
        fields, names, odd = _fields(shapes, out)
    rests = pa.nulls(len(raw), pa.string())
    if count:
        lines = np.repeat(np.arange(len(raw)), np.diff(out.place_starts))
        left = _Checking(batch, data, out).check(lines, fields, names)
        shapes = _shape_column(out, modes)
        rests = _rests(data, out, lines, left, len(raw))
    return batch.append_column(JSON_SHAPE, shapes).append_column(JSON_REST, rests)


def _shape_column(out: Scanned, modes: U8Array) -> pa.DictionaryArray:
    """The shapes, with the marks that they have now; null for lines that have none."""
    starts = out.shape_starts.astype(np.int64)
    is_none = modes == scanning.NO_LINE
    spans = Lines(np.where(is_none, -1, starts[:-1]), np.where(is_none, -1, starts[1:]))
    column = text_column(out.shapes, spans).dictionary_encode()
    assert isinstance(column, pa.DictionaryArray), column.type
    return column


def _fields(shapes: pa.DictionaryArray, out: Scanned) -> tuple[I64Array, list[str], BoolArray]:
    """The number of each value's field, the names of fields, and which lines cannot be taken apart, or need not be.

    These are lines of which each has a shape of its own, as when keys are ids.
    """
    codes = np.asarray(shapes.indices.fill_null(0)).astype(np.int64)
    counts = np.diff(out.place_starts)
    texts = shapes.dictionary.to_pylist()
    uses = np.bincount(codes, minlength=len(texts))
    odd = np.zeros(len(codes), np.bool_)
    if len(texts) > _MANY_SHAPES and 2 * len(texts) > len(codes):
        odd = (uses[codes] == 1) & (counts > 0) & ~_is_rest(out)
    if odd.any():
        return np.zeros(0, np.int64), [], odd
    numbers: dict[str, int] = {}
    flat: list[int] = []
    firsts = []
    for text in texts:
        firsts.append(len(flat))
        shape = None if text == IS_CONTENT else parsed_shape(text)
        flat += [numbers.setdefault(place.field, len(numbers)) for place in (shape.places if shape else ())]
    sizes = np.diff(np.array([*firsts, len(flat)], np.int64))
    if len(texts):
        odd = (sizes[codes] != counts) & (counts > 0)
    if odd.any():
        return np.zeros(0, np.int64), [], odd
    within = np.arange(int(counts.sum())) - np.repeat(out.place_starts[:-1].astype(np.int64), counts)
    places = np.repeat(np.array(firsts, np.int64)[codes], counts) + within if len(texts) else within
    return np.array(flat, np.int64)[places], list(numbers), odd


def _is_rest(out: Scanned) -> BoolArray:
    """Which lines are kept as a whole."""
    return np.diff(out.shape_starts) == 1


def _rests(data: U8Array, out: Scanned, lines: I64Array, left: BoolArray, count: int) -> pa.StringArray:
    """For each line its values that are left, one on a line; null if there are none."""
    places = np.flatnonzero(left)
    if not len(places):
        return pa.nulls(count, pa.string())
    own = lines[places]
    heads = np.diff(own, prepend=-1) != 0
    spans = Lines(out.firsts[places].astype(np.int64), out.lasts[places].astype(np.int64))
    texts = text_column(data, spans, heads)
    index = np.full(count, -1)
    index[own[heads]] = np.arange(len(texts))
    return texts.take(pa.array(index, mask=index < 0))
