"""NDJSON: one object a line, read by Arrow; lines that Arrow cannot take with the others are read by themselves."""

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from coprlake.intake.fields.flattening import DEPTH, Attribute, json_text
from coprlake.intake.fields.keys import CONTENT_KEYS, TIMESTAMP_KEYS
from coprlake.intake.fields.mapping import FileMapper
from coprlake.intake.formats.json_reading import JsonBlockReader
from coprlake.intake.formats.json_shaping import JsonShaper
from coprlake.intake.lines import Lines, newline_joined, split_pieces, text_column
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.intake.sources.blocks import BlockReader
from coprlake.kernel import U8Array
from coprlake.records import ATTRIBUTES
from coprlake.text.arrow_strings import bytes_of
from coprlake.text.json_shapes import field_name

_FEW_LINES: Final = 64
"""So many lines of which one is broken are read one by one: cheaper than to look further where it is."""

_PIECE_LINES: Final = 512
"""So many lines are read together where keys may be ids: each line then brings columns that no other has."""
_FEW_COLUMNS: Final = 150

_FAILURE_LIMIT: Final = 8
"""After so many failures in a block its types do not agree, and looking for single lines does not pay."""

_MISS_LIMIT: Final = 3
"""After this many blocks in a row that the kernels cannot read, they are not tried again in this file."""

_SCHEMA_LIMIT: Final = 400
_TYPES: Final = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}


def _without_times(kind: pa.DataType) -> pa.DataType | None:
    """The type with the texts that Arrow takes for times as texts again; None if no value was seen yet."""
    types = pa.types
    if types.is_null(kind):
        return None
    if types.is_timestamp(kind) or types.is_date(kind) or types.is_time(kind):
        return pa.string()
    if types.is_list(kind):
        inner = _without_times(kind.value_type)
        return None if inner is None else pa.list_(inner)
    if types.is_struct(kind):
        fields = [(field.name, _without_times(field.type)) for field in kind]
        return pa.struct([(name, inner) for name, inner in fields if inner is not None])
    return kind


def _has_times(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_list(kind):
        return _has_times(kind.value_type)
    if types.is_struct(kind):
        return any(_has_times(field.type) for field in kind)
    return types.is_timestamp(kind) or types.is_date(kind) or types.is_time(kind)


def _is_doubtful(column: pa.ChunkedArray | pa.Array) -> bool:
    """Whether it has numbers so large that they may be integers which lost their last digits.

    Raises:
        pa.ArrowException: it is no valid array, which Arrow 26 makes of lists that begin with null.
    """
    if pa.types.is_struct(column.type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        structs = (chunk for chunk in chunks if isinstance(chunk, pa.StructArray))
        return any(_is_doubtful(child) for chunk in structs for child in chunk.flatten())
    if pa.types.is_list(column.type):
        column.validate(full=True)
        return _is_doubtful(pc.list_flatten(column))
    if not pa.types.is_floating(column.type):
        return False
    extremes = pc.min_max(column).as_py()
    return max(abs(extremes["min"] or 0), abs(extremes["max"] or 0)) >= 1 << 53


def flat_pairs(record: dict[str, Any], depth: int = DEPTH, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The keys of an object and of those inside it, dotted, as `flattened` does for columns."""
    for key, value in record.items():
        if isinstance(value, dict) and value and depth:
            yield from flat_pairs(value, depth - 1, f"{prefix}{key}.")
        elif isinstance(value, dict | list):
            yield prefix + key, json_text(value)
        elif value is not None:
            yield prefix + key, value


def _no_surrogates(text: str) -> str:
    r"""JSON can spell half a character (``\ud800``), which no UTF-8 can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class NdjsonReader:
    """Turns blocks of NDJSON into records."""

    def __init__(self, blocks: BlockReader, mapper: FileMapper, options: ReadOptions, report: IntakeReport) -> None:
        self._blocks = blocks
        self._mapper = mapper
        self._limit_bytes = options.max_record_bytes
        self._report = report
        self._schema = pa.schema([])
        self._failures = 0
        self._misses = 0
        self._block_reader = JsonBlockReader(mapper)
        self._shaper = JsonShaper()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        carry, last = b"", False
        while not last:
            block, last = self._blocks.read(carry)
            data = bytes_of(block)
            lines, cuts, used = split_pieces(data, self._limit_bytes, last=last)
            carry = block[used:]
            self._report.split += int(np.count_nonzero(cuts))
            lines = lines[lines.ends > lines.starts]
            if lines.count:
                yield self._batch(data, lines)

    def _batch(self, data: U8Array, lines: Lines) -> pa.RecordBatch:
        block = self._block_reader.read(data, lines) if self._misses < _MISS_LIMIT else None
        if block is None:
            self._misses += 1
            return self._by_pieces(data, lines)
        self._misses = 0
        batches = [] if block.batch is None else [block.batch]
        if not block.odd.any():
            return joined(batches)
        batches.append(self._one_by_one(data, lines[block.odd]))
        order = np.argsort(np.argsort(block.odd, kind="stable"))
        self._mapper.reorder(order)
        return joined(batches).take(pa.array(order))

    def _by_pieces(self, data: U8Array, lines: Lines) -> pa.RecordBatch:
        """The records of lines that are not alike."""
        self._failures = 0
        sound = (data[lines.starts] == 123) & (data[lines.ends - 1] == 125)  # {...}
        changes = np.flatnonzero(np.diff(sound)) + 1
        if len(changes) > 2 * _FAILURE_LIMIT:
            return joined([self._one_by_one(data, lines)])
        batches: list[pa.RecordBatch] = []
        size, first = _PIECE_LINES, 0
        ends = [*changes.tolist(), lines.count]
        while first < lines.count:
            last = min(first + size, next(end for end in ends if end > first))
            piece = lines[first:last]
            found = self._pieces(data, piece) if sound[first] else [self._one_by_one(data, piece)]
            few = all(batch.num_columns < _FEW_COLUMNS and ATTRIBUTES not in batch.schema.names for batch in found)
            size = 4 * size if few else _PIECE_LINES
            batches += found
            first = last
        return joined(batches)

    def _pieces(self, data: U8Array, lines: Lines) -> list[pa.RecordBatch]:
        """The records of lines that look like objects, by halves if they cannot be read together."""
        raw = text_column(data, lines)
        table = self._parsed(raw)
        if table is not None:
            columns = [
                (name, column.combine_chunks()) for name, column in zip(table.schema.names, table.columns, strict=True)
            ]
            return [self._shaper.shaped(self._mapper.batch(columns, raw, lines.count), raw)]
        self._failures += 1
        if lines.count <= _FEW_LINES or self._failures > _FAILURE_LIMIT:
            return [self._one_by_one(data, lines)]
        half = lines.count // 2
        return self._pieces(data, lines[:half]) + self._pieces(data, lines[half:])

    def _parsed(self, raw: pa.StringArray) -> pa.Table | None:
        """The lines as a table with the types that the lines before had; None if that is not possible."""
        text = newline_joined(raw)
        try:
            table = self._read(text)
            if any(_has_times(field.type) for field in table.schema):
                self._learn(table.schema)
                table = self._read(text)
            if table.num_rows != len(raw) or any(_is_doubtful(column) for column in table.columns):
                return None  # an object that spans lines, several in one, or what Arrow does not keep
        except (pa.ArrowException, IndexError):
            return None
        self._learn(table.schema)
        return table

    def _read(self, text: pa.Buffer) -> pa.Table:
        return pa.json.read_json(
            pa.BufferReader(text),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=text.size + 1),
            parse_options=pa.json.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="infer"),
        )

    def _learn(self, schema: pa.Schema) -> None:
        """Remember the types of the first keys: the next block has to read them alike."""
        fields = [(field.name, _without_times(field.type)) for field in list(schema)[:_SCHEMA_LIMIT]]
        self._schema = pa.schema([(name, kind) for name, kind in fields if kind is not None])

    def _one_by_one(self, data: U8Array, lines: Lines) -> pa.RecordBatch:
        """The records of lines of which some are broken, or have values of different types under the same key."""
        starts = range(0, lines.count, _PIECE_LINES)
        return joined([self._few_by_one(data, lines[start : start + _PIECE_LINES]) for start in starts])

    def _few_by_one(self, data: U8Array, lines: Lines) -> pa.RecordBatch:
        raw = text_column(data, lines)
        broken = np.zeros(lines.count, np.bool_)
        rows: list[dict[str, Any]] = []
        for number, line in enumerate(raw.to_pylist()):
            record = _object(line)
            broken[number] = record is None
            rows.append(dict(flat_pairs(record or {})))
        self._report.broken += int(np.count_nonzero(broken))
        columns, attributes = self._columns(rows)
        batch = self._mapper.batch(columns, raw, lines.count, broken=broken, attributes=attributes)
        return self._shaper.shaped(batch, raw, broken)

    def _columns(self, rows: list[dict[str, Any]]) -> tuple[list[tuple[str, pa.Array]], list[Attribute]]:
        """A column for each key, with the values of its first type; the others as attributes."""
        keys = dict.fromkeys(key for row in rows for key in row)
        columns: list[tuple[str, pa.Array]] = []
        attributes: list[Attribute] = []
        for key in keys:
            name = _no_surrogates(key)
            values = [row.get(key) for row in rows]
            kind = self._mapper.types.type_of(name)
            found = {type(value) for value in values if value is not None}
            if (key.lower() in TIMESTAMP_KEYS and len(found) > 1) or (key.lower() in CONTENT_KEYS and str in found):
                kind = pa.string()  # times are read from numbers and texts alike, and the content is text
            elif kind is None or kind not in _TYPES.values():
                kind = next(_TYPES[type(value)] for value in values if value is not None)
            fits = np.array([_fits(value, kind) for value in values])
            if key.lower() in CONTENT_KEYS and kind == pa.string():  # only text can be the content
                fits = np.array([isinstance(value, str) for value in values])
            chosen = [_as(value, kind) if fit else None for value, fit in zip(values, fits, strict=True)]
            columns.append((name, pa.array(chosen, kind)))
            others = np.flatnonzero([not fit and value is not None for value, fit in zip(values, fits, strict=True)])
            if len(others):
                self._report.misfits += len(others)
                texts = [_as(values[row], pa.string()) for row in others]
                attributes.append(Attribute(field_name(name), others, pa.array(texts, pa.string())))
        return columns, attributes


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _fits(value: Any, kind: pa.DataType) -> bool:
    if kind == pa.string():
        return value is not None
    if isinstance(value, int) and not isinstance(value, bool):
        limit = 1 << (63 if kind == pa.int64() else 53)
        return kind in (pa.int64(), pa.float64()) and -limit <= value < limit
    return _TYPES.get(type(value)) == kind


def _as(value: Any, kind: pa.DataType) -> Any:
    if kind != pa.string():
        return float(value) if kind == pa.float64() else value
    return _no_surrogates(value) if isinstance(value, str) else json_text(value)


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of several that have the same types, but not the same columns."""
    if len(batches) == 1:
        return batches[0]
    table = pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="default")
    return table.unify_dictionaries().combine_chunks().to_batches()[0]
