"""The records around a match, like ``grep -C``: those of the same source, in their original order."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.errors import UsageError
from coprlake.kernel import I64Array
from coprlake.predicate.deciding.finding import Mask
from coprlake.predicate.deciding.matching import Matcher
from coprlake.predicate.narrowing.required import required_tokens
from coprlake.predicate.predicates import Equals
from coprlake.query.ordering import Unit
from coprlake.records import SOURCE
from coprlake.segment.searchable import Searchable
from coprlake.sketch.algebra import ANYTHING, compile_expression
from coprlake.text.arrow_strings import as_binary

MATCH: Final = (pa.field("match", pa.bool_()), pa.field("group", pa.int64()))
"""Two extra columns of the result: whether the record matched, and the group of adjacent records it belongs to."""

NEIGHBOURS: Final = 8
"""The number of neighbouring batches to read for the rest of a context if the sketch cannot name them."""


class Context(NamedTuple):
    """The number of records of the same source to show before and after a match; falsy if both are 0."""

    before: int = 0
    after: int = 0

    def __bool__(self) -> bool:
        return self.before > 0 or self.after > 0


class _Stretch(NamedTuple):
    """Adjacent records of one source: places in the order by source, and the number missing at either end."""

    first: int
    last: int
    missing_before: int
    missing_after: int


class Surroundings(NamedTuple):
    """What `with_context` needs to know.

    Attributes:
        context: the number of records before and after a match.
        columns: the columns to read from other batches.
        matches: tells whether each record matches.
        numbers: yields a new number for each group.
        places: gives the place of each record in the order of the results.
    """

    context: Context
    columns: Sequence[str]
    matches: Callable[[pa.Table], Mask]
    numbers: Iterator[int]
    places: Callable[[pa.Table], I64Array]


def with_context(unit: Unit, records: pa.Table, mask: Mask, around: Surroundings) -> tuple[pa.Table, I64Array]:
    """The matches of a batch and the records around them, including those in other batches of the segment.

    A record near the border of a batch may be shown twice: beside one match and as another. Also returns the place of
    each record in the order of the results, which is that of the first match in its group.
    """
    codes = _source_codes(records)
    order = np.argsort(codes, kind="stable")
    columns = records.schema.names
    own_places = around.places(records)
    pieces, places = [], []
    for stretch in _stretches(codes, order, mask, around.context):
        rows = order[stretch.first : stretch.last + 1]
        own = records.take(pa.array(rows))
        source = own.column(SOURCE).slice(0, 1) if SOURCE in columns else None
        before = _from_other_batches(unit, around, source, stretch.missing_before, step=-1)
        after = _from_other_batches(unit, around, source, stretch.missing_after, step=1)
        parts = [(part, around.matches(part)) for part in (before, after) if part is not None]
        parts.insert(0 if before is None else 1, (own, mask[rows]))
        table = pa.concat_tables([part.select(columns).cast(own.schema) for part, _ in parts])
        table = table.append_column(MATCH[0], pa.array(np.concatenate([marks for _, marks in parts])))
        group = next(around.numbers)
        pieces.append(table.append_column(MATCH[1], pa.array(np.full(table.num_rows, group, np.int64))))
        places.append(np.full(table.num_rows, own_places[rows[mask[rows]]].min(), np.int64))
    return pa.concat_tables(pieces), np.concatenate(places)


def _source_codes(records: pa.Table) -> I64Array:
    """A number for each record that identifies its source."""
    if SOURCE not in records.schema.names:
        return np.zeros(records.num_rows, np.int64)
    column = records.column(SOURCE).combine_chunks()
    encoded = column if isinstance(column, pa.DictionaryArray) else pc.dictionary_encode(column)
    return np.asarray(encoded.indices.cast(pa.int64()).fill_null(-1))


def _stretches(codes: I64Array, order: I64Array, mask: Mask, context: Context) -> Iterator[_Stretch]:
    """The stretches to show, with overlapping and adjacent contexts merged."""
    ordered = codes[order]
    starts = np.searchsorted(ordered, ordered, side="left")
    ends = np.searchsorted(ordered, ordered, side="right") - 1
    waiting: _Stretch | None = None
    for place in np.flatnonzero(mask[order]).tolist():
        start, end = int(starts[place]), int(ends[place])
        first, last = max(start, place - context.before), min(end, place + context.after)
        stretch = _Stretch(first, last, context.before - (place - first), context.after - (last - place))
        if waiting is not None and ordered[waiting.last] == ordered[first] and first <= waiting.last + 1:
            stretch = _Stretch(waiting.first, last, waiting.missing_before, stretch.missing_after)
        elif waiting is not None:
            yield waiting
        waiting = stretch
    if waiting is not None:
        yield waiting


def _from_other_batches(
    unit: Unit, around: Surroundings, source: pa.ChunkedArray | None, count: int, *, step: int
) -> pa.Table | None:
    """Up to `count` records of the source from the batches before (after) this one, in their order.

    `source` is a column of one value, which may be null; None if the segment has no source column.
    """
    found: list[pa.Table] = []
    for batch in _batches_of(unit.segment, source, unit.batch, step) if count > 0 else ():
        records = unit.segment.read(batch, around.columns)
        if source is not None:
            records = records.filter(_is_from(records, _value(source)))
        taken = records.slice(max(0, records.num_rows - count)) if step < 0 else records.slice(0, count)
        found.insert(0 if step < 0 else len(found), taken)
        count -= taken.num_rows
        if count <= 0:
            break
    return pa.concat_tables(found) if found else None


def _value(source: pa.ChunkedArray) -> Any:
    """The first value, even if it is not valid UTF-8."""
    try:
        return source[0].as_py()
    except UnicodeDecodeError:
        chunk = next(chunk for chunk in source.chunks if len(chunk))
        return as_binary(chunk)[0].as_py().decode("utf-8", "surrogateescape")


def _is_from(records: pa.Table, source: str | None) -> pa.Array | pa.ChunkedArray:
    if source is None:
        return records.column(SOURCE).is_null()
    return pa.array(Matcher(Equals(SOURCE, source, case_sensitive=True), records.schema).mask(records))


def _batches_of(segment: Searchable, source: pa.ChunkedArray | None, batch: int, step: int) -> list[int]:
    """The batches that may hold records of the source, nearest first."""
    near = range(batch + step, batch + (NEIGHBOURS + 1) * step, step)
    if source is None or not source[0].is_valid:
        return [other for other in near if 0 <= other < segment.batch_count]
    expression = required_tokens(Equals(SOURCE, _value(source)), segment.profile).expression
    if expression == ANYTHING:
        return [other for other in near if 0 <= other < segment.batch_count]
    found = segment.candidates(compile_expression(expression)).tolist()
    return [other for other in found[::step] if (other - batch) * step > 0]


_NO_CONTEXT: Final = Context()


def context_of(given: int | tuple[int, int]) -> Context:
    """The context that a caller asks for: a number of records, or one before and one after."""
    if given == 0:
        return _NO_CONTEXT
    around = given if isinstance(given, tuple) else (given, given)
    if len(around) != 2 or not all(map(is_count, around)):
        raise UsageError(f"the context is {given!r}; expected a whole number, 0 or more, or a pair of them")
    return Context(*around)


def is_count(value: object, *, least: int = 0) -> bool:
    """Whether a value is a whole number and not less than this one."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)
