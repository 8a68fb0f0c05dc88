"""Kernels over the columns of a group: which values have a piece, which rows have these values, and their lines."""

from typing import Final, NamedTuple

import numpy as np

from benchmarks.stores.dictionary.columns import DISTINCT, LEAST, MOST
from benchmarks.stores.dictionary.parsing import MARK
from coprlake.kernel import I32Array, I64Array, U8Array, i64, kernel
from coprlake.predicate.deciding.finding import SUFFIX, WHOLE, Mask, Needle

ANYWHERE: Final = 3
"""Besides PREFIX, SUFFIX and WHOLE: where in its token a piece stands."""


class Layout(NamedTuple):
    """Where things are in a group. Parts have content only where their blocks were opened."""

    dictionary: U8Array  # the dictionary parts of all columns
    data: U8Array  # the data parts
    dictionary_starts: I64Array  # of each column in the dictionary parts
    data_starts: I64Array
    fields: I64Array  # of each column
    line_counts: I64Array  # of the template of each column
    first_values: I64Array  # of each column among those of all


class Shapes(NamedTuple):
    """The templates of a group, one after the other; what begins with each has one more entry, the end."""

    texts: U8Array  # of all templates
    text_starts: I64Array
    first_columns: I64Array
    first_lines: I64Array  # lines are numbered by template, and in it by row


@kernel
def _value_count(layout: Layout, column: int) -> int:
    distinct = layout.fields[column, DISTINCT]
    return distinct if distinct > 0 else layout.line_counts[column]


@kernel
def _value_size(part: U8Array, at: int, count: int, least: int, most: int, number: int) -> int:
    """Bytes of a value, by the lengths that begin at `at`."""
    if least == most:
        return least
    if most > 0xFF:
        return i64(part[at + number]) | i64(part[at + count + number]) << 8
    return i64(part[at + number])


@kernel
def _text_start(at: int, count: int, least: int, most: int) -> int:
    """Where the bytes of values begin behind their lengths."""
    if least == most:
        return at
    return at + count * (2 if most > 0xFF else 1)


@kernel
def _code(layout: Layout, column: int, row: int) -> int:
    """The number of a row's value."""
    distinct = layout.fields[column, DISTINCT]
    if distinct == 0:
        return row
    if distinct == 1:
        return 0
    at = layout.data_starts[column] + row
    if distinct > 256:
        return i64(layout.data[at]) | i64(layout.data[at + layout.line_counts[column]]) << 8
    return i64(layout.data[at])


@kernel
def _is_at(data: U8Array, place: int, needle: Needle) -> bool:
    for i in range(len(needle.bytes)):
        if (data[place + i] | needle.folds[i]) != needle.bytes[i]:
            return False
    return True


@kernel
def _has_piece(data: U8Array, start: int, end: int, needle: Needle, edge: int) -> bool:
    """Whether ``data[start:end]`` has the needle in its place."""
    last = end - len(needle.bytes)
    if last < start or (edge == WHOLE and last != start):
        return False
    if edge == SUFFIX:
        return _is_at(data, last, needle)
    if edge != ANYWHERE:
        return _is_at(data, start, needle)
    for place in range(start, last + 1):
        if _is_at(data, place, needle):
            return True
    return False


@kernel
def _match_values(part: U8Array, at: int, layout: Layout, column: int, needle: Needle, edge: int, out: Mask) -> bool:
    """``out[first_value + i] = value_i has the needle``; whether any has."""
    least, most = layout.fields[column, LEAST], layout.fields[column, MOST]
    count, first = _value_count(layout, column), layout.first_values[column]
    start = _text_start(at, count, least, most)
    any_has = False
    for i in range(count):
        end = start + _value_size(part, at, count, least, most, i)
        if _has_piece(part, start, end, needle, edge):
            out[first + i] = True
            any_has = True
        start = end
    return any_has


@kernel
def match_columns(layout: Layout, columns: I64Array, needle: Needle, edge: int, out: Mask, has: Mask) -> None:
    """``out[v]`` for each value ``v`` of these columns, ``has[c]`` for each column: whether (some) has the needle."""
    for i in range(len(columns)):
        column = columns[i]
        if layout.fields[column, DISTINCT] > 0:
            at = layout.dictionary_starts[column]
            has[column] = _match_values(layout.dictionary, at, layout, column, needle, edge, out)
        else:
            has[column] = _match_values(layout.data, layout.data_starts[column], layout, column, needle, edge, out)


@kernel
def _holds(layout: Layout, columns: I64Array, matching: Mask, row: int) -> bool:
    for k in range(len(columns)):
        column = columns[k]
        if column >= 0 and not matching[k, layout.first_values[column] + _code(layout, column, row)]:
            return False
    return True


@kernel
def select_lines(
    layout: Layout, shapes: Shapes, templates: I64Array, columns: I64Array, matching: Mask, out: Mask
) -> None:
    """``out[line of row r] |= all(matching[k][value of columns[i, k] in r] for k)`` for each alignment ``i``."""
    for i in range(len(templates)):
        first = shapes.first_lines[templates[i]]
        for line in range(first, shapes.first_lines[templates[i] + 1]):
            if not out[line]:
                out[line] = _holds(layout, columns[i], matching, line - first)


class Parts(NamedTuple):
    """A text as it is laid over templates."""

    text: U8Array  # without case
    starts: I64Array  # of each part, and the end of the text
    is_token: Mask
    has_digit: Mask


@kernel
def _lay(
    texts: U8Array, place: int, end: int, column: int, parts: Parts, fits: Mask, out: I64Array
) -> tuple[bool, bool]:
    """Whether the text fits at `place` of a template, and whether a variable is needed; `out` has them by token."""
    token, needed = 0, False
    for k in range(len(parts.is_token)):
        if parts.is_token[k]:
            out[token] = -1
            if place < end and texts[place] == MARK:
                if not fits[token, column]:
                    return False, False
                out[token] = column
                needed = True
                column += 1
                place += 1
                token += 1
                continue
            if parts.has_digit[k]:
                return False, False
            token += 1
        for i in range(parts.starts[k], parts.starts[k + 1]):
            if place == end or texts[place] != parts.text[i]:
                return False, False
            place += 1
    return True, needed


@kernel
def find_alignments(
    texts: U8Array,
    text_starts: I64Array,
    parts: Parts,
    fits: Mask,
    templates: I64Array,
    columns: I64Array,
) -> int:
    """All places of templates where the text fits, as the template and the columns that meet its tokens (-1: none).

    ``fits[k][c]`` is whether token ``k`` may be in column ``c``. Of a template that needs no variable only one
    alignment is given, its last. Returns how many there are; `templates` and `columns` have room for one a byte and
    one a template more.
    """
    count, column = 0, 0
    for template in range(len(text_starts) - 1):
        end = text_starts[template + 1]
        done = False
        for place in range(text_starts[template], end + 1):
            if not done:
                is_found, needed = _lay(texts, place, end, column, parts, fits, columns[count])
                if is_found:
                    templates[count] = template
                    count += 1
                    done = not needed
            if place < end and texts[place] == MARK:
                column += 1
    return count


@kernel
def start_values(layout: Layout, columns: I64Array, starts: I64Array) -> None:
    """``starts[first_value + i]`` for each value of these columns, and one more: where it begins in its part."""
    for k in range(len(columns)):
        column = columns[k]
        least, most = layout.fields[column, LEAST], layout.fields[column, MOST]
        count, first = _value_count(layout, column), layout.first_values[column]
        is_coded = layout.fields[column, DISTINCT] > 0
        part = layout.dictionary if is_coded else layout.data
        at = layout.dictionary_starts[column] if is_coded else layout.data_starts[column]
        start = _text_start(at, count, least, most)
        for i in range(count):
            starts[first + i] = start
            start += _value_size(part, at, count, least, most, i)
        starts[first + count] = start


@kernel
def end_lines(layout: Layout, shapes: Shapes, lines: I64Array, starts: I64Array, ends: I32Array) -> int:
    """``ends[i + 1]``: where line ``lines[i]`` ends if all are written one after the other; returns the last."""
    template, end = 0, 0
    ends[0] = 0
    for i in range(len(lines)):
        while lines[i] >= shapes.first_lines[template + 1]:
            template += 1
        row = lines[i] - shapes.first_lines[template]
        first, last = shapes.first_columns[template], shapes.first_columns[template + 1]
        end += shapes.text_starts[template + 1] - shapes.text_starts[template] - (last - first)
        for column in range(first, last):
            value = layout.first_values[column] + _code(layout, column, row)
            end += starts[value + 1] - starts[value]
        ends[i + 1] = end
    return end


@kernel
def write_lines(layout: Layout, shapes: Shapes, lines: I64Array, starts: I64Array, out: U8Array) -> None:
    """Write these lines one after the other: the template's text, with the values at its marks."""
    template, at = 0, 0
    for i in range(len(lines)):
        while lines[i] >= shapes.first_lines[template + 1]:
            template += 1
        row = lines[i] - shapes.first_lines[template]
        column = shapes.first_columns[template]
        for k in range(shapes.text_starts[template], shapes.text_starts[template + 1]):
            if shapes.texts[k] != MARK:
                out[at] = shapes.texts[k]
                at += 1
                continue
            value = layout.first_values[column] + _code(layout, column, row)
            start, end = starts[value], starts[value + 1]
            part = layout.dictionary if layout.fields[column, DISTINCT] > 0 else layout.data
            for place in range(start, end):
                out[at + place - start] = part[place]
            at += end - start
            column += 1


def concatenated(sizes: I64Array) -> I64Array:
    """Where things of these sizes begin, one after the other, and the end of the last."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
