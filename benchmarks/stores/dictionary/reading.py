"""Reading a group: its head at once, blocks as they are needed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.stores.dictionary.columns import DATA, DICTIONARY, DISTINCT, FIELD_COUNT
from benchmarks.stores.dictionary.decoding import Layout, Shapes, concatenated, end_lines, start_values, write_lines
from benchmarks.stores.dictionary.parsing import MARK
from coprlake.kernel import I32Array, I64Array, U8Array, U64Array
from coprlake.predicate.deciding.finding import Mask

_CODEC = pa.Codec("zstd")


def _unpacked(data: memoryview, size: int) -> U8Array:
    if size == 0:
        return np.zeros(0, np.uint8)
    return np.frombuffer(memoryview(_CODEC.decompress(pa.py_buffer(data), size)), np.uint8)


class _HeadReader:
    """The arrays of a head, in order."""

    def __init__(self, data: U8Array) -> None:
        self._data = data.tobytes()
        self._at = 0

    def next(self, dtype: type[np.generic]) -> Any:
        count = int.from_bytes(self._data[self._at : self._at + 8], "little")
        array = np.frombuffer(self._data, dtype, count, self._at + 8)
        self._at += 8 + array.nbytes
        return array

    def numbers(self) -> I64Array:
        numbers: I64Array = self.next(np.uint32).astype(np.int64)
        return numbers


@dataclass(frozen=True)
class _Parts:
    """The parts of one kind of all columns."""

    starts: I64Array  # of each column
    cuts: I64Array  # the columns at which blocks begin, and the number of columns
    first_block: int


class Group:
    """What is known of a group without decompressing more than its head."""

    def __init__(self, data: memoryview) -> None:
        raw_size, size = (int.from_bytes(data[at : at + 4], "little") for at in (0, 4))
        head = _HeadReader(_unpacked(data[8 : 8 + size], raw_size))
        texts: U8Array = head.next(np.uint8)
        text_starts = concatenated(head.numbers())
        line_counts = head.numbers()
        self.fields: I64Array = np.ascontiguousarray(np.stack([head.numbers() for _ in range(FIELD_COUNT)], axis=1))
        self.masks: U64Array = head.next(np.uint64).reshape(2, -1)
        dictionary_cuts, data_cuts = head.numbers(), head.numbers()
        self.block_starts = 8 + size + concatenated(head.numbers())
        self.other_count, self.other_bytes = head.numbers().tolist()
        self.data = data
        first_columns: I64Array = concatenated(np.equal(texts, MARK))[text_starts]
        self.shapes = Shapes(texts, text_starts, first_columns, concatenated(line_counts))
        self.folded_texts: U8Array = np.where((texts >= ord("A")) & (texts <= ord("Z")), texts + np.uint8(32), texts)
        self.column_lines: I64Array = np.repeat(line_counts, np.diff(first_columns))
        value_counts = np.where(self.fields[:, DISTINCT] > 0, self.fields[:, DISTINCT], self.column_lines)
        self.first_values = concatenated(value_counts + 1)
        self.dictionaries = _Parts(concatenated(self.fields[:, DICTIONARY]), dictionary_cuts, 0)
        self.columns = _Parts(concatenated(self.fields[:, DATA]), data_cuts, len(dictionary_cuts) - 1)

    @property
    def template_count(self) -> int:
        """How many there are."""
        return len(self.shapes.text_starts) - 1

    @property
    def line_count(self) -> int:
        """How many lines have a template."""
        return int(self.shapes.first_lines[-1])


class OpenGroup:
    """A group while a question is asked: holds what was decompressed for it."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.is_opened = False
        """Whether more than the head and dictionaries was decompressed."""
        self._is_open = np.zeros(len(group.block_starts), np.bool_)
        self.layout = Layout(
            np.empty(int(group.dictionaries.starts[-1]), np.uint8),
            np.empty(int(group.columns.starts[-1]), np.uint8),
            group.dictionaries.starts,
            group.columns.starts,
            group.fields,
            group.column_lines,
            group.first_values,
        )

    def open_dictionaries(self, columns: I64Array) -> None:
        """Have the dictionaries of these columns, as far as they have one."""
        self._open(self.group.dictionaries, columns[self.group.fields[columns, DICTIONARY] > 0], self.layout.dictionary)

    def open_data(self, columns: I64Array) -> None:
        """Have the codes or plain values of these columns."""
        columns = columns[self.group.fields[columns, DATA] > 0]
        self.is_opened |= len(columns) > 0
        self._open(self.group.columns, columns, self.layout.data)

    def _open(self, parts: _Parts, columns: I64Array, out: U8Array) -> None:
        for block in np.unique(np.searchsorted(parts.cuts, columns, "right") - 1).tolist():
            number = parts.first_block + block
            if not self._is_open[number]:
                first, last = (int(parts.starts[parts.cuts[cut]]) for cut in (block, block + 1))
                out[first:last] = self._block(number, last - first)
                self._is_open[number] = True

    def _block(self, number: int, raw_size: int) -> U8Array:
        group = self.group
        return _unpacked(group.data[group.block_starts[number] : group.block_starts[number + 1]], raw_size)

    def lines(self, selected: Mask) -> pa.Array:
        """The lines of templates that are selected, by template and row."""
        shapes = self.group.shapes
        lines = np.flatnonzero(selected)
        if len(lines) == 0:
            return pa.array([], pa.string())
        self.is_opened = True
        is_needed = np.zeros(self.group.template_count, np.bool_)
        is_needed[np.searchsorted(shapes.first_lines, lines, "right") - 1] = True
        columns = np.flatnonzero(np.repeat(is_needed, np.diff(shapes.first_columns)))
        self.open_dictionaries(columns)
        self.open_data(columns)
        starts = np.empty(int(self.group.first_values[-1]), np.int64)
        start_values(self.layout, columns, starts)
        ends = np.empty(len(lines) + 1, np.int32)
        out = np.empty(end_lines(self.layout, shapes, lines, starts, ends), np.uint8)
        write_lines(self.layout, shapes, lines, starts, out)
        return _strings(ends, out)

    def others(self) -> pa.Array:
        """The lines without a template."""
        count = self.group.other_count
        if count == 0:
            return pa.array([], pa.string())
        self.is_opened = True
        block = self._block(len(self.group.block_starts) - 2, self.group.other_bytes)
        return _strings(concatenated(block[: 4 * count].view(np.uint32)).astype(np.int32), block[4 * count :])


def _strings(starts: I32Array, data: U8Array) -> pa.Array:
    return pa.StringArray.from_buffers(len(starts) - 1, pa.py_buffer(starts), pa.py_buffer(data))
