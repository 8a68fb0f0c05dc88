"""The variables of a template in columns: each as a dictionary of its values and their codes, or as plain values.

A column has two parts. The *dictionary* part is the values that repeat (lengths, then bytes); the *data* part is the
codes, or the values themselves where most are different. Of each column a *stamp* is known without either (as in
LogGrep): the shortest and the longest value, and which bytes occur, without case.
"""

from typing import Final, NamedTuple

import numpy as np

from benchmarks.stores.dictionary.parsing import Parsed, hash_of
from coprlake.kernel import I32Array, I64Array, U8Array, U64Array, i64, kernel

DISTINCT, LEAST, MOST, TEXT, DICTIONARY, DATA = 0, 1, 2, 3, 4, 5
"""Fields of a column: values in the dictionary (0: there is none), their least and most bytes, bytes of all values that
are kept, bytes of the dictionary part and of the data part."""
FIELD_COUNT: Final = 6
MOST_CODES: Final = 65536
_ONE: Final = np.uint64(1)
_HALF: Final = np.uint64(32)


class Scratch(NamedTuple):
    """What encoding works with: a table of values, emptied by counting `epoch` up."""

    slots: I32Array  # value numbers; its length is a power of two
    epochs: I32Array  # of each slot: the column that it was filled for
    starts: I32Array  # of each value
    ends: I32Array
    codes: I32Array  # of each line


class Columns(NamedTuple):
    """Encoded columns."""

    fields: I64Array  # a row for each
    masks: U64Array  # two words for each: a bit for each ASCII byte, the last one for all others
    dictionary: U8Array  # all dictionary parts
    data: U8Array  # all data parts
    sizes: I64Array  # how many columns there are, and bytes of either kind of part


@kernel
def folded(byte: int) -> int:
    """The byte without case, and 127 for all that are not ASCII."""
    if byte >= 127:
        return 127
    return byte + 32 if 65 <= byte <= 90 else byte


@kernel
def _same(data: U8Array, first: int, second: int, size: int) -> bool:
    for i in range(size):
        if data[first + i] != data[second + i]:
            return False
    return True


@kernel
def _code_values(data: U8Array, parsed: Parsed, lines: I64Array, number: int, epoch: int, scratch: Scratch) -> int:
    """Number the different values of variable `number` of these lines; -1 if there are too many for a dictionary."""
    size = 2  # of the part of the table that is used: a small one stays in the cache
    while size < 2 * len(lines):
        size <<= 1
    mask = size - 1
    most = min(max(len(lines) // 2, 1), MOST_CODES)
    count = 0
    for row in range(len(lines)):
        variable = parsed.first_variables[lines[row]] + number
        start, end = i64(parsed.starts[variable]), i64(parsed.ends[variable])
        slot = i64(hash_of(data, start, end) >> _HALF) & mask
        code = -1
        while scratch.epochs[slot] == epoch:
            known = i64(scratch.slots[slot])
            first = i64(scratch.starts[known])
            if i64(scratch.ends[known]) - first == end - start and _same(data, first, start, end - start):
                code = known
                break
            slot = (slot + 1) & mask
        if code < 0:
            if count == most:
                return -1
            scratch.epochs[slot], scratch.slots[slot] = epoch, count
            scratch.starts[count], scratch.ends[count] = start, end
            code = count
            count += 1
        scratch.codes[row] = code
    return count


@kernel
def _list_values(parsed: Parsed, lines: I64Array, number: int, scratch: Scratch) -> None:
    """All values of variable `number`, one for each line."""
    for row in range(len(lines)):
        variable = parsed.first_variables[lines[row]] + number
        scratch.starts[row], scratch.ends[row] = parsed.starts[variable], parsed.ends[variable]


@kernel
def _write_values(
    data: U8Array, count: int, scratch: Scratch, fields: I64Array, masks: U64Array, out: U8Array, at: int
) -> int:
    """Write the first `count` values: lengths if they differ (a byte each, or lower and upper ones), then bytes."""
    least, most, text = 1 << 62, 0, 0
    for i in range(count):
        size = i64(scratch.ends[i]) - i64(scratch.starts[i])
        least, most, text = min(least, size), max(most, size), text + size
    if least != most:
        for i in range(count):
            size = i64(scratch.ends[i]) - i64(scratch.starts[i])
            out[at + i] = size & 0xFF
            if most > 0xFF:
                out[at + count + i] = size >> 8
        at += count * (2 if most > 0xFF else 1)
    for i in range(count):
        for k in range(i64(scratch.starts[i]), i64(scratch.ends[i])):
            byte = i64(data[k])
            out[at] = byte
            at += 1
            bit = folded(byte)
            masks[bit >> 6] |= _ONE << np.uint64(bit & 63)
    fields[LEAST], fields[MOST], fields[TEXT] = least, most, text
    return at


@kernel
def _write_codes(codes: I32Array, line_count: int, count: int, out: U8Array, at: int) -> int:
    """Nothing for a single value, a byte for each line, or first the lower and then the upper bytes."""
    if count == 1:
        return at
    for row in range(line_count):
        out[at + row] = codes[row] & 0xFF
    if count > 256:
        for row in range(line_count):
            out[at + line_count + row] = codes[row] >> 8
        return at + 2 * line_count
    return at + line_count


@kernel
def encode_columns(
    data: U8Array, parsed: Parsed, lines: I64Array, variable_count: int, scratch: Scratch, columns: Columns
) -> None:
    """Append the columns of a template, whose lines these are; there is room, see `new_columns`."""
    for number in range(variable_count):
        column, dictionary_at, data_at = columns.sizes[0], columns.sizes[1], columns.sizes[2]
        fields, masks = columns.fields[column], columns.masks[column]
        count = _code_values(data, parsed, lines, number, column + 1, scratch)
        if count > 0:
            fields[DISTINCT] = count
            end = _write_values(data, count, scratch, fields, masks, columns.dictionary, dictionary_at)
            fields[DICTIONARY] = end - dictionary_at
            columns.sizes[1] = end
            end = _write_codes(scratch.codes, len(lines), count, columns.data, data_at)
        else:
            _list_values(parsed, lines, number, scratch)
            end = _write_values(data, len(lines), scratch, fields, masks, columns.data, data_at)
        fields[DATA] = end - data_at
        columns.sizes[2] = end
        columns.sizes[0] = column + 1


def new_scratch(line_count: int) -> Scratch:
    """Room for columns of so many lines."""
    slots = 1 << (2 * line_count + 1).bit_length()
    rows = np.empty((3, line_count + 1), np.int32)
    return Scratch(np.empty(slots, np.int32), np.zeros(slots, np.int32), rows[0], rows[1], rows[2])


def new_columns(column_count: int, variable_count: int, text_bytes: int) -> Columns:
    """Room for so many columns, with so many variables of all lines."""
    return Columns(
        fields=np.zeros((column_count, FIELD_COUNT), np.int64),
        masks=np.zeros((column_count, 2), np.uint64),
        dictionary=np.empty(2 * variable_count + text_bytes + 8, np.uint8),
        data=np.empty(2 * variable_count + text_bytes + 8, np.uint8),
        sizes=np.zeros(3, np.int64),
    )
