"""A group of lines on disk: templates and stamps, dictionaries, data, and the lines that fit no template.

A group is one piece of a file: a *head* (the texts of templates, how many lines each has, and of each column its fields
and stamp), then blocks. A block holds the dictionary parts or the data parts of some columns that follow each other; the
last block holds the other lines. All are compressed with zstd, each on its own, so that a question opens what it needs.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.stores.batches import LEVEL
from benchmarks.stores.dictionary.columns import (
    DATA,
    DICTIONARY,
    DISTINCT,
    FIELD_COUNT,
    Columns,
    Values,
    encode_columns,
    new_columns,
    new_scratch,
    read_codes,
    read_values,
)
from benchmarks.stores.dictionary.parsing import (
    MARK,
    NO_TEMPLATE,
    POOL_BYTES,
    TEMPLATE_COUNT,
    VARIABLE_COUNT,
    Parsed,
    parse,
)
from coprlake.kernel import I64Array, U8Array, U64Array
from coprlake.predicate.finding import Mask
from coprlake.tokens.columns import string_buffers

LEAST_LINES: Final = 12
"""A template with fewer lines in a group is none: what is said of its columns would be longer than they are."""
BLOCK_BYTES: Final = 128 * 1024
"""A block is closed by the column that brings it to this size."""
_CODEC: Final = pa.Codec("zstd", compression_level=LEVEL)


def _packed(data: bytes | U8Array | memoryview) -> bytes:
    return bytes(_CODEC.compress(pa.py_buffer(data), asbytes=True))


def _unpacked(data: memoryview, size: int) -> U8Array:
    if size == 0:
        return np.zeros(0, np.uint8)
    return np.frombuffer(_CODEC.decompress(pa.py_buffer(data), size), np.uint8)


def _cuts(sizes: I64Array) -> list[int]:
    """The columns at which blocks begin, and the number of columns."""
    ends = np.cumsum(sizes)
    cuts, done = [0], 0
    while cuts[-1] < len(sizes):
        last = min(int(np.searchsorted(ends, done + BLOCK_BYTES)) + 1, len(sizes))
        done = int(ends[last - 1])
        cuts.append(last)
    return cuts


class _HeadWriter:
    """Arrays one after the other, each with its length."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def add(self, values: object, dtype: type[np.generic]) -> None:
        array = np.ascontiguousarray(values, dtype)
        self._parts += [len(array).to_bytes(8, "little"), array.tobytes()]

    def bytes(self) -> bytes:
        return b"".join(self._parts)


class _HeadReader:
    """The same arrays again."""

    def __init__(self, data: U8Array) -> None:
        self._data = data.tobytes()
        self._at = 0

    def next(self, dtype: type[np.generic]) -> np.ndarray:
        count = int.from_bytes(self._data[self._at : self._at + 8], "little")
        array = np.frombuffer(self._data, dtype, count, self._at + 8)
        self._at += 8 + array.nbytes
        return array


def _blocks(parts: U8Array, sizes: I64Array) -> tuple[list[int], list[bytes]]:
    """The columns at which blocks begin, and the blocks."""
    cuts = _cuts(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    blocks = [
        _packed(parts[offsets[first] : offsets[last]]) if offsets[last] > offsets[first] else b""
        for first, last in zip(cuts, cuts[1:], strict=False)
    ]
    return cuts, blocks


def encode_group(lines: pa.Array) -> bytes:
    """The bytes of a group with these lines."""
    data, starts = string_buffers(lines)
    parsed = parse(data, starts)
    chosen, order, ends = _chosen_templates(parsed, len(lines))
    variable_counts = [int(np.count_nonzero(_template_text(parsed, template) == MARK)) for template in chosen]
    columns = new_columns(sum(variable_counts), int(parsed.sizes[VARIABLE_COUNT]), int(starts[-1] - starts[0]))
    scratch = new_scratch(len(lines))
    for i, variable_count in enumerate(variable_counts):
        encode_columns(data, parsed, order[ends[i] : ends[i + 1]], variable_count, scratch, columns)
    texts = [_template_text(parsed, template) for template in chosen]
    others = lines.take(pa.array(order[ends[-1] :]))
    return _written(texts, np.diff(ends), columns, others)


def _template_text(parsed: Parsed, template: int) -> U8Array:
    return parsed.pool[parsed.template_starts[template] : parsed.template_starts[template + 1]]


def _chosen_templates(parsed: Parsed, line_count: int) -> tuple[list[int], I64Array, I64Array]:
    """The templates with enough lines, most first; the lines in their order, others last; where those of each end."""
    template_count = int(parsed.sizes[TEMPLATE_COUNT])
    assert parsed.sizes[POOL_BYTES] == parsed.template_starts[template_count]
    counts = np.bincount(parsed.templates[parsed.templates != NO_TEMPLATE], minlength=template_count)
    by_count = np.argsort(-counts, kind="stable")
    chosen = by_count[: int(np.count_nonzero(counts >= LEAST_LINES))]
    ranks = np.full(template_count + 1, len(chosen), np.int32)  # the last one is for NO_TEMPLATE
    ranks[chosen] = np.arange(len(chosen))
    order = np.argsort(ranks[parsed.templates], kind="stable")
    ends = np.concatenate([[0], np.cumsum(counts[chosen])]).astype(np.int64)
    assert len(order) == line_count
    return chosen.tolist(), order, ends


def _written(texts: list[U8Array], line_counts: I64Array, columns: Columns, others: pa.Array) -> bytes:
    other_data, other_starts = string_buffers(others)
    other_sizes = np.diff(other_starts).astype(np.uint32).view(np.uint8)
    other_block = np.concatenate([other_sizes, other_data[other_starts[0] : other_starts[-1]]])
    dictionary_cuts, dictionary_blocks = _blocks(columns.dictionary, columns.fields[:, DICTIONARY])
    data_cuts, data_blocks = _blocks(columns.data, columns.fields[:, DATA])
    blocks = [*dictionary_blocks, *data_blocks, _packed(other_block) if len(others) else b""]
    head = _HeadWriter()
    head.add(np.concatenate([*texts, np.zeros(0, np.uint8)]), np.uint8)
    head.add([len(text) for text in texts], np.uint32)
    head.add(line_counts, np.uint32)
    for field in range(FIELD_COUNT):
        head.add(columns.fields[:, field], np.uint32)
    head.add(columns.masks.T.reshape(-1), np.uint64)
    head.add(dictionary_cuts, np.uint32)
    head.add(data_cuts, np.uint32)
    head.add([len(block) for block in blocks], np.uint32)
    head.add([len(others), len(other_block)], np.uint32)
    raw = head.bytes()
    packed = _packed(raw)
    sizes = len(raw).to_bytes(4, "little") + len(packed).to_bytes(4, "little")
    return b"".join([sizes, packed, *blocks])


@dataclass
class _Part:
    """One kind of part of all columns: where each is, in which block."""

    cuts: I64Array
    offsets: I64Array  # of each column in all parts
    first_block: int


class Group:
    """A group as it is on disk. What is decompressed stays for as long as the question does: see `forget`."""

    def __init__(self, data: memoryview) -> None:
        raw_size, size = (int.from_bytes(data[at : at + 4], "little") for at in (0, 4))
        head = _HeadReader(_unpacked(data[8 : 8 + size], raw_size))
        self.texts = head.next(np.uint8).tobytes()
        self.text_starts: I64Array = np.concatenate([[0], np.cumsum(head.next(np.uint32), dtype=np.int64)])
        self.line_counts: I64Array = head.next(np.uint32).astype(np.int64)
        self.fields: I64Array = np.stack([head.next(np.uint32).astype(np.int64) for _ in range(FIELD_COUNT)], axis=1)
        self.masks: U64Array = head.next(np.uint64).reshape(2, -1)
        cuts = [head.next(np.uint32).astype(np.int64) for _ in range(2)]
        blocks: I64Array = np.concatenate([[8 + size], head.next(np.uint32)]).astype(np.int64)
        self._other_count, self._other_bytes = head.next(np.uint32).tolist()
        self._data = data
        self._block_starts = np.cumsum(blocks)
        offsets = [np.concatenate([[0], np.cumsum(self.fields[:, field])]) for field in (DICTIONARY, DATA)]
        self._dictionaries = _Part(cuts[0], offsets[0], 0)
        self._columns = _Part(cuts[1], offsets[1], len(cuts[0]) - 1)
        self._open: dict[int, U8Array] = {}
        self.opened = False
        """Whether more than templates, stamps and dictionaries was decompressed since `forget`."""

    @cached_property
    def folded_texts(self) -> bytes:
        """The texts of all templates, each with a line end behind it, without case."""
        starts = self.text_starts.tolist()
        parts = [self.texts[first:last] for first, last in zip(starts, starts[1:], strict=False)]
        return b"".join(part + b"\n" for part in parts).lower()

    @cached_property
    def folded_starts(self) -> I64Array:
        """Where the text of each template begins in `folded_texts`, and the end of all."""
        return self.text_starts + np.arange(len(self.text_starts))

    @cached_property
    def marks(self) -> I64Array:
        """The place of each column's mark in `folded_texts`."""
        return np.flatnonzero(np.frombuffer(self.folded_texts, np.uint8) == MARK)

    @cached_property
    def first_columns(self) -> I64Array:
        """The first column of each template, and the number of all."""
        return np.searchsorted(self.marks, self.folded_starts)

    def template_of(self, column: int) -> int:
        """The template that has the column."""
        return int(np.searchsorted(self.first_columns, column, "right")) - 1

    def forget(self) -> None:
        """Let go of what was decompressed."""
        self._open.clear()
        self.opened = False

    def _block(self, number: int, raw_size: int) -> U8Array:
        block = self._open.get(number)
        if block is None:
            packed = self._data[self._block_starts[number] : self._block_starts[number + 1]]
            block = self._open[number] = _unpacked(packed, raw_size)
        return block

    def _part(self, part: _Part, column: int) -> U8Array:
        index = int(np.searchsorted(part.cuts, column, "right")) - 1
        first, last = part.offsets[part.cuts[index]], part.offsets[part.cuts[index + 1]]
        block = self._block(part.first_block + index, int(last - first))
        return block[part.offsets[column] - first : part.offsets[column + 1] - first]

    def has_dictionary(self, column: int) -> bool:
        """Whether the column's values are in a dictionary."""
        return bool(self.fields[column, DISTINCT])

    def values(self, column: int) -> Values:
        """The values of a column: of its dictionary, or of each line."""
        if self.has_dictionary(column):
            part = self._part(self._dictionaries, column)
            return read_values(part, int(self.fields[column, DISTINCT]), self.fields[column])
        self.opened = True
        count = int(self.line_counts[self.template_of(column)])
        return read_values(self._part(self._columns, column), count, self.fields[column])

    def codes(self, column: int) -> I64Array:
        """For each line the number of its value."""
        count = int(self.line_counts[self.template_of(column)])
        if not self.has_dictionary(column):
            return np.arange(count)
        self.opened = True
        return read_codes(self._part(self._columns, column), count, int(self.fields[column, DISTINCT]))

    def lines(self, template: int, rows: Mask | None = None) -> pa.Array:
        """The lines of a template, or those of some rows."""
        self.opened = True
        count = int(self.line_counts[template])
        chosen = np.arange(count) if rows is None else np.flatnonzero(rows)
        text = self.texts[self.text_starts[template] : self.text_starts[template + 1]]
        pieces = text.split(bytes([MARK]))
        first = int(self.first_columns[template])
        joined: list[pa.Array | pa.Scalar] = [pa.array([pieces[0]], pa.binary()).take(pa.array(chosen * 0))]
        for column, piece in enumerate(pieces[1:], first):
            joined.append(self.values(column).array().take(pa.array(self.codes(column)[chosen])))
            if piece:
                joined.append(pa.scalar(piece, pa.binary()))
        if len(joined) == 1:
            return joined[0].view(pa.string())
        return pc.binary_join_element_wise(*joined, pa.scalar(b"", pa.binary())).view(pa.string())

    def others(self) -> pa.Array:
        """The lines without a template."""
        count = self._other_count
        if count == 0:
            return pa.array([], pa.string())
        self.opened = True
        block = self._block(len(self._block_starts) - 2, self._other_bytes)
        starts = np.zeros(count + 1, np.int32)
        np.cumsum(block[: 4 * count].view(np.uint32), out=starts[1:])
        return pa.StringArray.from_buffers(count, pa.py_buffer(starts), pa.py_buffer(block[4 * count :]))
