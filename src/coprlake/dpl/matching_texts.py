"""Run patterns over columns: each function takes a column of strings and returns a column of results."""

import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coprlake.dpl.compiling import opcodes as op
from coprlake.dpl.export_columns import Columns, empty_structs
from coprlake.dpl.pattern import Pattern
from coprlake.dpl.running.leaves import Work
from coprlake.dpl.running.machine import ALL, FIRST, Events, run_texts
from coprlake.dpl.running.numerals import LATEST, YEAR
from coprlake.dpl.span_strings import strings_of
from coprlake.errors import UsageError
from coprlake.kernel import I64Array, U8Array
from coprlake.text.arrow_strings import bytes_of, view_strings
from coprlake.text.civil_time import DAY_MICROS
from coprlake.text.text_types import is_text


class _MatchedTexts(NamedTuple):
    """The result of a run over a column. The last event is a placeholder that rows without an event point to."""

    data: U8Array
    starts: I64Array
    null_rows: npt.NDArray[np.bool_]
    matched: U8Array
    events: Events


def _new_events(size: int) -> Events:
    return Events(
        np.empty(size, np.int64),
        np.empty(size, np.int32),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )


def _grown(events: Events, count: int) -> Events:
    """The first `count` events in arrays of twice the size."""
    larger = _new_events(2 * len(events.rows))
    for old, new in zip(events, larger, strict=True):
        new[:count] = old[:count]  # type: ignore[index]  # zip forgets the types of a tuple
    return larger


def _trimmed(events: Events, count: int) -> Events:
    return Events(
        events.rows[:count], events.sites[:count], events.starts[:count], events.stops[:count], events.values[:count]
    )


def _run(pattern: Pattern, texts: pa.Array, mode: int) -> _MatchedTexts:
    if not (is_text(texts.type) or pa.types.is_null(texts.type)):
        raise UsageError(f"patterns are matched with strings, not with {texts.type}")
    views = view_strings(texts)
    data, starts, valid = views
    program = pattern.program
    out = np.zeros(4, np.int64)
    latest = np.datetime64(time.time_ns() // 1000 + DAY_MICROS, "us")
    out[YEAR], out[LATEST] = latest.astype("datetime64[Y]").astype(np.int64) + 1970, latest.astype(np.int64)
    stack = np.zeros(op.MOST_FRAMES * op.FRAME_WIDTH, np.int64)
    work = Work(stack, out, out.view(np.float64), program.code.rows.reshape(-1).view(np.float64))
    row_count = len(starts) - 1
    events = _new_events(max(64, row_count * (1 + len(program.sites))))
    matched = np.zeros(row_count, np.uint8)
    row, count = 0, 0
    while True:
        row, count = run_texts(program.code, views, mode, row, count, work, events, matched)
        if row == row_count:
            break
        events = _grown(events, count)
    if count == len(events.rows):
        events = _grown(events, count)
    events.rows[count] = events.starts[count] = events.stops[count] = events.values[count] = 0
    events.sites[count] = len(program.sites)
    null_rows = valid == 0 if len(valid) else np.zeros(row_count, np.bool_)
    return _MatchedTexts(data, starts, null_rows, matched, _trimmed(events, count + 1))


def _joined(texts: Any) -> pa.Array:
    if isinstance(texts, pa.ChunkedArray):
        if texts.num_chunks == 1:
            return texts.chunk(0)
        return texts.combine_chunks() if texts.num_chunks else pa.array([], texts.type)
    return texts


def arrow_type(pattern: Pattern) -> pa.StructType:
    """The type that `parse` returns."""
    return pa.struct([pa.field(export.name, export.type.arrow()) for export in pattern.exports])


def parse(pattern: Pattern, texts: pa.Array | pa.ChunkedArray) -> pa.StructArray:
    """Match the pattern at the start of each text and return a struct with a child for each export.

    If a text is null or does not match, all children are null; the structs themselves are never null.
    """
    texts = _joined(texts)
    if isinstance(texts, pa.DictionaryArray):  # match each distinct text once
        parsed = parse(pattern, texts.dictionary)
        children = [child.take(texts.indices) for child in parsed.flatten()]
        if not children:
            return empty_structs(len(texts))
        return pa.StructArray.from_arrays(children, fields=list(parsed.type))
    found = _run(pattern, texts, FIRST)
    columns = Columns(pattern.program, found.data, found.events, len(found.matched), all_matches=False)
    return columns.struct(pattern.program.columns)


def matches(pattern: Pattern, texts: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
    """Whether the pattern matches at the start of each text; null for null."""
    texts = _joined(texts)
    if isinstance(texts, pa.DictionaryArray):
        return matches(pattern, texts.dictionary).take(texts.indices)
    found = _run(pattern, texts, FIRST)
    return pa.array(found.matched != 0, pa.bool_(), mask=found.null_rows)


def parse_all(pattern: Pattern, texts: pa.Array | pa.ChunkedArray) -> pa.ListArray:
    """Find all matches in each text and return a list of structs with their exports; null for null.

    Matches do not overlap; empty matches are ignored.
    """
    texts = _joined(texts)
    if isinstance(texts, pa.DictionaryArray):
        return parse_all(pattern, texts.dictionary).take(texts.indices)
    found = _run(pattern, texts, ALL)
    columns = Columns(pattern.program, found.data, found.events, len(found.matched), all_matches=True)
    return columns.lists(pattern.program.columns, len(found.matched), found.null_rows)


def _pieces(found: _MatchedTexts) -> tuple[I64Array, I64Array, I64Array]:
    """The starts and stops of the pieces before, between and after matches, and the number of pieces per text."""
    events = found.events
    is_match = events.sites < 0
    rows = events.rows[is_match]
    counts = np.bincount(rows, minlength=len(found.matched)) + 1
    counts[found.null_rows] = 0
    firsts = np.cumsum(counts) - counts
    total = int(counts.sum())
    starts, stops = np.zeros(total, np.int64), np.zeros(total, np.int64)
    kept = ~found.null_rows
    starts[firsts[kept]] = found.starts[:-1][kept]
    stops[(firsts + counts - 1)[kept]] = found.starts[1:][kept]
    places = np.arange(len(rows)) + rows - np.cumsum(found.null_rows)[rows]  # the piece before each match
    stops[places] = events.starts[is_match]
    starts[places + 1] = events.stops[is_match]
    return starts, stops, counts


def split(pattern: Pattern, texts: pa.Array | pa.ChunkedArray) -> pa.ListArray:
    """Split each text at the matches; null for null. Rejects patterns that may match an empty string."""
    if pattern.program.may_be_empty:
        problem = f"cannot split at an empty match, and {pattern.text!r} may match an empty string"
        raise UsageError(f"{problem}; add a matcher that is not optional")
    texts = _joined(texts)
    if isinstance(texts, pa.DictionaryArray):
        return split(pattern, texts.dictionary).take(texts.indices)
    found = _run(pattern, texts, ALL)
    starts, stops, counts = _pieces(found)
    strings = strings_of(found.data, starts, stops, np.zeros(len(starts), np.uint8))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    mask = pa.array(found.null_rows) if found.null_rows.any() else None
    return pa.ListArray.from_arrays(offsets, strings, mask=mask)


def replace(pattern: Pattern, texts: pa.Array | pa.ChunkedArray, replacement: str) -> pa.StringArray:
    """Replace each match in each text by `replacement`, taken literally; null for null."""
    texts = _joined(texts)
    if isinstance(texts, pa.DictionaryArray):
        return replace(pattern, texts.dictionary, replacement).take(texts.indices)
    found = _run(pattern, texts, ALL)
    starts, stops, counts = _pieces(found)
    # Pieces and replacements alternate. All are spans of one buffer: the texts followed by the replacement.
    new = np.frombuffer(replacement.encode(), np.uint8)
    data = np.concatenate([found.data, new])
    data.setflags(write=False)
    spans = np.empty((2, 2 * len(starts)), np.int64)
    spans[0, ::2], spans[1, ::2] = starts, stops
    spans[0, 1::2], spans[1, 1::2] = len(found.data), len(data)
    ends = np.cumsum(counts)
    last = 2 * ends[counts > 0] - 1
    spans[1, last] = spans[0, last]  # no replacement after the last piece of a text
    if int((spans[1] - spans[0]).sum()) > np.iinfo(np.int32).max:
        raise UsageError("the replaced texts are too long for one column of strings; use smaller batches")
    joined = strings_of(data, spans[0], spans[1], np.zeros(2 * len(starts), np.uint8))
    offsets = bytes_of(joined.buffers()[1]).view(np.int32)
    bounds = np.concatenate([[0], offsets[2 * ends]]).astype(np.int32)
    nulls = pa.py_buffer(np.packbits(~found.null_rows, bitorder="little")) if found.null_rows.any() else None
    return pa.StringArray.from_buffers(len(found.matched), pa.py_buffer(bounds), joined.buffers()[2], nulls)
