"""Reads a block of JSON lines at once: their values become columns, and what is between them becomes their shapes.

Each value is looked at once. A column that the record has as it was made here needs no comparison with the lines: its
values are theirs. Only what the record has elsewhere, such as the timestamp, is compared.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.intake.fields.keys import CONTENT_KEYS
from coprlake.intake.fields.mapping import FileMapper
from coprlake.intake.formats import json_scanning as scanning
from coprlake.intake.formats.json_columns import TYPES, column_of, spread
from coprlake.intake.formats.json_comparing import BoolArray
from coprlake.intake.formats.json_finding import CONTENT_MARK, LONG_TIME, NANOS, Finder, is_left
from coprlake.intake.formats.json_scanning import Scanned
from coprlake.intake.formats.json_shaping import rest_column
from coprlake.intake.formats.json_walking import END, Pieces, is_full, no_pieces, walk_lines
from coprlake.intake.lines import Lines, text_column
from coprlake.kernel import I32Array, I64Array, U8Array
from coprlake.records import CONTENT, JSON_REST, JSON_SHAPE
from coprlake.text.arrow_strings import string_buffers
from coprlake.text.json_shapes import IS_CONTENT, field_name, parsed_shape

_MANY_SHAPES: Final = 512
"""If a block has more, and they do not repeat, its keys are ids."""
_MOST_CELLS: Final = 1 << 24
"""Fields times lines of a block."""
_FEW_LINES: Final = 64
_MOST_ODD: Final = 0.2
"""The part of lines that may be left to another reader. If there are more, it gets the whole block."""
_BLANKS: Final = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')
_LAYOUT_MARKS: Final = "tu"


class _LineShape(NamedTuple):
    """What lines with the same last node have in common."""

    texts: Sequence[str]  # before, between and behind the values
    paths: Sequence[str]  # of the values
    kinds: Sequence[int]
    layouts: Sequence[str]
    empties: Sequence[str]


def _line_shape(tree: Pieces, leaf: int) -> _LineShape | None:
    """The shape to which a path through the tree leads; None if a field has two values."""
    nodes: list[int] = []
    while leaf > 0:
        nodes.append(leaf)
        leaf = int(tree.parents[leaf])
    nodes.reverse()
    texts, kinds, layouts = [], [], []
    for node in nodes:
        piece = tree.texts[tree.starts[node] : tree.ends[node]].tobytes().decode()
        texts.append(_BLANKS.sub(r"\1", piece))
        kind = int(tree.kinds[node])
        if kind != END:
            kinds.append(kind & 0xFF)
            layouts.append((kind >> 8).to_bytes(4, "little").decode() if kind >> 8 else "")
    marks = [f"{chr(scanning.MARKS[kind])}{layout}" for kind, layout in zip(kinds, layouts, strict=True)]
    shape = parsed_shape("".join(text + mark for text, mark in zip(texts, [*marks, ""], strict=True)))
    if shape is None or len(shape.places) != len(kinds):
        return None
    fields = [*(place.field for place in shape.places), *map(field_name, shape.empties)]
    if len({*fields}) < len(fields):
        return None
    return _LineShape(texts, [place.path for place in shape.places], kinds, layouts, shape.empties)


class _Field:
    """A field of the lines of a block."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = field_name(path)
        self.kinds: dict[int, None] = {}
        self.column: pa.Array | None = None

    @property
    def is_string(self) -> bool:
        """Whether all values are strings."""
        return self.kinds.keys() <= {scanning.STRING, scanning.TIME}

    def type_for(self, known: pa.DataType | None) -> pa.DataType:
        """The type of its column, if that of the records before is `known`: text has room for all values."""
        types = list(dict.fromkeys(TYPES[kind] for kind in self.kinds))
        if known is not None and (known in types or known == pa.string() or _are_numbers(types, known)):
            return known
        return pa.float64() if _are_numbers(types, pa.float64()) and len(types) > 1 else types[0]


def _are_numbers(types: Sequence[pa.DataType], column: pa.DataType) -> bool:
    """Whether a column of floats can have values of these types."""
    return column == pa.float64() and {*types} <= {pa.int64(), pa.float64()}


def _fits(kind: int, column: pa.DataType) -> bool:
    return column == pa.string() or TYPES[kind] == column or _are_numbers([TYPES[kind]], column)


class Block(NamedTuple):
    """The records of the lines that could be read, and which lines are odd and have to be read by others."""

    batch: pa.RecordBatch | None
    odd: BoolArray


class JsonBlockReader:
    """Reads blocks of lines of one file; what it learns from one helps with the next."""

    def __init__(self, mapper: FileMapper) -> None:
        self._mapper = mapper
        self._tree = no_pieces()
        self._shapes: dict[int, _LineShape | None] = {}
        self._room = scanning.room_for(0, 0)

    def read(self, data: U8Array, lines: Lines) -> Block | None:
        """The records of lines, with how these were written; None if too few of them are alike."""
        self._room = scanning.enough_room(self._room, len(data), lines.count)
        out = scanning.of_lines(self._room, lines.count)
        if is_full(self._tree):
            self._tree = no_pieces()
            self._shapes.clear()
        codes = np.empty(lines.count, np.int32)
        walk_lines(data, lines.starts, lines.ends, self._tree, codes, out)
        used = np.flatnonzero(np.bincount(codes + 1, minlength=2)[1:])
        if len(used) > _MANY_SHAPES and 2 * len(used) > lines.count:
            return None
        shapes = {code: self._shape(code) for code in used.tolist()}
        fields = _fields(shape for shape in shapes.values() if shape)
        types = {field.path: field.type_for(self._mapper.types.type_of(field.name)) for field in fields.values()}
        dense = np.full(int(used[-1]) + 1 if len(used) else 1, -1, np.int32)
        kept = [shape for shape in shapes.values() if shape and _is_of(shape, types)]
        dense[[code for code, shape in shapes.items() if shape and _is_of(shape, types)]] = np.arange(len(kept))
        codes = np.where(codes < 0, np.int32(-1), dense[codes])
        odd = codes < 0
        odd_count = int(np.count_nonzero(odd & (data[lines.starts] == 123) & (data[lines.ends - 1] == 125)))
        if odd_count > max(_FEW_LINES, _MOST_ODD * lines.count):
            return None
        firsts = out.place_starts[:-1]
        if odd.any():
            codes, firsts, lines = codes[~odd], firsts[~odd], lines[~odd]
        if not lines.count:
            return Block(None, odd)
        block = _BlockColumns(data, out, kept, codes)
        if not block.make(list(fields.values()), types, firsts):
            return None
        raw = text_column(data, lines)
        batch = self._mapper.batch(block.named(), raw, lines.count)
        return Block(block.shaped(batch, lines), odd)

    def _shape(self, code: int) -> _LineShape | None:
        if code not in self._shapes:
            self._shapes[code] = _line_shape(self._tree, code)
        return self._shapes[code]


def _fields(shapes: Iterable[_LineShape]) -> dict[str, _Field]:
    fields: dict[str, _Field] = {}
    for shape in shapes:
        for path, kind in zip(shape.paths, shape.kinds, strict=True):
            fields.setdefault(path, _Field(path)).kinds[kind] = None
    return fields


def _is_of(shape: _LineShape, types: Mapping[str, pa.DataType]) -> bool:
    """Whether the values have the types of the columns; what may be the content has to be text."""
    return all(
        TYPES[kind] == types[path] if path.lower() in CONTENT_KEYS else _fits(kind, types[path])
        for path, kind in zip(shape.paths, shape.kinds, strict=True)
    )


class _BlockColumns:
    """The values of the lines of a block as columns, and the shapes of the lines."""

    def __init__(self, data: U8Array, out: Scanned, shapes: Sequence[_LineShape], codes: I32Array) -> None:
        self._data = data
        self._out = out
        self._shapes = shapes
        self._codes = codes
        self._fields: list[_Field] = []
        self._places = np.zeros((0, 0), np.int32)

    def make(self, fields: Sequence[_Field], types: Mapping[str, pa.DataType], firsts: I32Array) -> bool:
        """Make the columns of the fields; whether that was possible.

        Args:
            fields: of all lines.
            types: of their columns, by path.
            firsts: the number of the first value of each line.
        """
        count = len(self._codes)
        if count * len(fields) > _MOST_CELLS:
            return False
        numbers = {field.path: number for number, field in enumerate(fields)}
        flat = np.array([numbers[path] for shape in self._shapes for path in shape.paths], np.int32)
        starts = np.cumsum([0, *(len(shape.paths) for shape in self._shapes)]).astype(np.int32)
        places, sizes = np.full(count * len(fields), -1, np.int32), np.zeros(len(fields), np.int64)
        spread(self._codes, firsts, starts, flat, self._out, places, sizes)
        self._places = places.reshape(len(fields), count)
        for own, field, size in zip(self._places, fields, sizes.tolist(), strict=True):
            if size:
                field.column = column_of(self._data, own, self._out, size, types[field.path])
                if field.column is None:
                    return False
        self._fields = list(fields)
        return True

    def named(self) -> list[tuple[str, pa.Array]]:
        """The columns by path. An object without keys is ``{}`` as text, unless others under this path have keys."""
        columns = {field.path: field for field in self._fields if field.column is not None}
        for path in dict.fromkeys(path for shape in self._shapes for path in shape.empties):
            if any(other.startswith(f"{path}.") for other in columns):
                continue
            has = np.array([path in shape.empties for shape in self._shapes])[self._codes]
            texts = pa.array(["{}"]).take(pa.array(np.zeros(len(has), np.int8), mask=~has))
            field = columns.setdefault(path, _Field(path))
            if field.column is None:
                field.column = texts
            elif field.column.type == pa.string():
                field.column = pc.coalesce(field.column, texts)
        return [(path, field.column) for path, field in columns.items() if field.column is not None]

    def shaped(self, batch: pa.RecordBatch, lines: Lines) -> pa.RecordBatch:
        """The records with the two columns that say how their lines were written."""
        finder = Finder(batch, self._data, self._out)
        is_line = _is_whole(batch.column(CONTENT), self._data, lines)
        marks: dict[str, U8Array | int] = {}
        left_places: list[I64Array] = []
        left_rows: list[I64Array] = []
        for field, places in zip(self._fields, self._places, strict=True):
            if field.column is None or _is_same(field.column, batch, field.name):
                continue
            if field.is_string and field.column.null_count == 0 and _is_same(field.column, batch, CONTENT):
                marks[field.path] = CONTENT_MARK
                continue
            own = self._marks(finder, field, places, is_line)
            rows = np.flatnonzero(is_left(own))
            left_places.append(places[rows].astype(np.int64))
            left_rows.append(rows)
            chosen = own[own != 0]
            is_varying = len(chosen) > 0 and bool((chosen != chosen[0]).any())
            marks[field.path] = own if is_varying else int(chosen[:1].sum())
        shapes = self._shape_column(marks, is_line)
        rests = pa.nulls(len(self._codes), pa.string())
        if left_places:
            numbers, rows = np.concatenate(left_places), np.concatenate(left_rows)
            order = np.argsort(numbers, kind="stable")
            rests = rest_column(self._data, self._out, numbers[order], rows[order], len(self._codes))
        return batch.append_column(JSON_SHAPE, shapes).append_column(JSON_REST, rests)

    def _marks(self, finder: Finder, field: _Field, places: I32Array, is_line: BoolArray) -> U8Array:
        """The mark of the value of each line; 0 for lines that have none or need none."""
        marks = np.zeros(len(places), np.uint8)
        rows = np.flatnonzero((places >= 0) & ~is_line)
        numbers = places[rows].astype(np.int64)
        kinds = self._out.kinds[numbers]
        for kind in field.kinds:
            own = slice(None) if len(field.kinds) == 1 else kinds == kind
            found = finder.marks(finder.places(kind, numbers[own], rows[own]), field.name)
            marks[rows[own]] = found
            finder.shorten(numbers[own][found == LONG_TIME], numbers[own][found == NANOS])
        return marks

    def _shape_column(self, marks: Mapping[str, U8Array | int], is_line: BoolArray) -> pa.DictionaryArray:
        """The shape of each line with the marks of fields that are not those of their kinds."""
        keys = self._codes.astype(np.int64)
        varying = [mark for mark in marks.values() if not isinstance(mark, int)]
        if is_line.any():
            varying.append(is_line.view(np.uint8))
        for mark in varying:
            _, keys = np.unique(keys * 256 + mark, return_inverse=True)
        if varying:
            _, rows, keys = np.unique(keys, return_index=True, return_inverse=True)
        else:
            rows = np.full(len(self._shapes), -1)
            rows[keys] = np.arange(len(keys))
        texts: dict[str, int] = {}
        numbers: list[int] = []
        for row in rows.tolist():
            text = "" if row < 0 else IS_CONTENT if is_line[row] else self._text(row, marks)
            numbers.append(texts.setdefault(text, len(texts)))
        indices = pa.array(np.array(numbers, np.int32)[keys])
        return pa.DictionaryArray.from_arrays(indices, pa.array(list(texts), pa.string()))

    def _text(self, row: int, marks: Mapping[str, U8Array | int]) -> str:
        """The shape of one line."""
        shape = self._shapes[self._codes[row]]
        parts = [shape.texts[0]]
        for path, kind, layout, text in zip(shape.paths, shape.kinds, shape.layouts, shape.texts[1:], strict=True):
            mark = marks.get(path)
            if mark is None:
                parts.append("s" if kind == scanning.TIME else chr(scanning.MARKS[kind]))
            else:
                own = chr(mark if isinstance(mark, int) else mark[row])
                parts.append(own + layout if own in _LAYOUT_MARKS else own)
            parts.append(text)
        return "".join(parts)


def _is_same(column: pa.Array, batch: pa.RecordBatch, name: str) -> bool:
    """Whether a column of the batch is this one, and not another with equal values."""
    index = batch.schema.get_field_index(name)
    if index < 0 or batch.column(index).type != column.type:
        return False
    other = batch.column(index)
    return other.offset == column.offset and _addresses(other) == _addresses(column)


def _addresses(column: pa.Array) -> list[int]:
    return [0 if buffer is None else buffer.address for buffer in column.buffers()]


def _is_whole(content: pa.Array, data: U8Array, lines: Lines) -> BoolArray:
    """Which contents are the lines themselves."""
    _, starts = string_buffers(content)
    whole: BoolArray = np.diff(starts) == lines.ends - lines.starts
    rows = np.flatnonzero(whole)
    if len(rows):
        own = content.take(pa.array(rows))
        whole[rows] = np.asarray(pc.equal(own, text_column(data, lines[whole])).fill_null(False))
    return whole
