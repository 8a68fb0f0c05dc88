"""Keeps with records from JSON how their lines were written: two columns, `JSON_SHAPE` and `JSON_REST`.

Every value of a line is compared with what the record has of it. Where the record gives it back exactly, the shape says
where; else the value is kept as it was written. So nothing depends on what happened to a value on its way.
"""

from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.intake.formats import json_scanning as scanning
from coprlake.intake.formats.json_comparing import BoolArray
from coprlake.intake.formats.json_finding import LONG_TIME, NANOS, Finder, is_left
from coprlake.intake.formats.json_scanning import Scanned
from coprlake.intake.lines import Lines, text_column
from coprlake.kernel import I64Array, U8Array
from coprlake.records import CONTENT, JSON_REST, JSON_SHAPE
from coprlake.text.arrow_strings import view_strings
from coprlake.text.json_shapes import IS_CONTENT, parsed_shape

_MANY_SHAPES: Final = 512
"""If a block has more, and they do not repeat, lines are kept as a whole."""

_BLANK: Final = 32


def _check(finder: Finder, out: Scanned, lines: I64Array, field_numbers: I64Array, names: list[str]) -> BoolArray:
    """Change the marks in the shapes to where records have the values; which of these are left for the rest.

    Args:
        finder: of the records.
        out: the values and shapes.
        lines: of each value.
        field_numbers: of each value, in `names`.
        names: of fields.
    """
    count = len(lines)
    keys = field_numbers * scanning.KINDS + out.kinds[:count]
    if len(names) * scanning.KINDS < 1 << 16:
        keys = keys.astype(np.uint16)  # which are sorted in two passes
    order = np.argsort(keys, kind="stable")
    bounds = [0, *np.cumsum(np.bincount(keys)).tolist()]
    left = np.zeros(count, np.bool_)
    for first, last in pairwise(bounds):
        if first == last:
            continue
        own = order[first:last]
        kind = int(out.kinds[own[0]])
        places = finder.places(kind, own, lines[own])
        marks = finder.marks(places, names[int(field_numbers[own[0]])])
        changed = marks != scanning.MARKS[kind]
        if not changed.any():
            continue
        own, marks = own[changed], marks[changed]
        out.shapes[out.marks[own]] = marks
        if kind == scanning.TIME:
            other = out.marks[own[marks != LONG_TIME]]
            for offset in range(1, 5):
                out.shapes[other + offset] = _BLANK
        left[own] = is_left(marks)
        finder.shorten(own[marks == LONG_TIME], own[marks == NANOS])
    left |= out.kinds[:count] == scanning.REST
    return left


class JsonShaper:
    """Adds the two columns to the records of JSON lines."""

    def __init__(self) -> None:
        self._room = scanning.room_for(0, 0)

    def shaped(self, batch: pa.RecordBatch, raw: pa.StringArray, broken: BoolArray | None = None) -> pa.RecordBatch:
        """The records with the two columns.

        Args:
            batch: the records.
            raw: their lines.
            broken: which of these are not JSON.
        """
        data_bytes = sum(buffer.size for buffer in raw.buffers()[2:] if buffer)
        self._room = scanning.enough_room(self._room, data_bytes, len(raw))
        return _shaped(batch, raw, broken, scanning.of_lines(self._room, len(raw)))


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
        left = np.flatnonzero(_check(Finder(batch, data, out), out, lines, fields, names))
        shapes = _shape_column(out, modes)
        rests = rest_column(data, out, left, lines[left], len(raw))
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


def rest_column(data: U8Array, out: Scanned, places: I64Array, rows: I64Array, count: int) -> pa.StringArray:
    """For each of `count` rows its values that are left, one on a line; null if there are none.

    Args:
        data: the lines.
        out: the values.
        places: the numbers of those that are left, in order.
        rows: of each of them, in order too.
        count: of rows.
    """
    if not len(places):
        return pa.nulls(count, pa.string())
    heads = np.diff(rows, prepend=-1) != 0
    spans = Lines(out.firsts[places].astype(np.int64), out.lasts[places].astype(np.int64))
    texts = text_column(data, spans, heads)
    index = np.full(count, -1)
    index[rows[heads]] = np.arange(len(texts))
    return texts.take(pa.array(index, mask=index < 0))
