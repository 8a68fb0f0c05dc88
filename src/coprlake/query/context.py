"""The records around a match: those of the same source, in the order in which they came, as ``grep -C`` shows them."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.kernel import I64Array
from coprlake.predicate.finding import Mask
from coprlake.predicate.matching import Matcher
from coprlake.predicate.predicates import Equals
from coprlake.predicate.required import required_tokens
from coprlake.query.ordering import Unit
from coprlake.records import SOURCE
from coprlake.segment.searchable import Searchable
from coprlake.sketch.algebra import ANYTHING, compile_expression

MATCH: Final = (pa.field("match", pa.bool_()), pa.field("group", pa.int64()))
"""Two more columns of the result: whether the record matched, and which records stand together."""

NEIGHBOURS: Final = 8
"""Batches of a segment without a sketch that are looked through for the rest of a context."""


class Context(NamedTuple):
    """How many records of the same source are wanted before and after a match; none is false."""

    before: int = 0
    after: int = 0

    def __bool__(self) -> bool:
        return self.before > 0 or self.after > 0


class _Stretch(NamedTuple):
    """Records of one source that stand together: places in the order by source, and what is missing at the ends."""

    first: int
    last: int
    missing_before: int
    missing_after: int


def with_context(unit: Unit, records: pa.Table, mask: Mask, context: Context, schema: pa.Schema) -> pa.Table:
    """The matches of a batch and the records around them, also those in other batches of the segment."""
    codes = _source_codes(records)
    order = np.argsort(codes, kind="stable")
    columns = [name for name in dict.fromkeys([*schema.names, SOURCE]) if name in records.schema.names]
    records = records.select(columns)
    pieces = []
    for number, stretch in enumerate(_stretches(codes, order, mask, context)):
        rows = order[stretch.first : stretch.last + 1]
        source = records.column(SOURCE)[int(rows[0])].as_py() if SOURCE in columns else None
        own = records.take(pa.array(rows))
        before = _from_other_batches(unit, columns, source, stretch.missing_before, step=-1)
        after = _from_other_batches(unit, columns, source, stretch.missing_after, step=1)
        parts = [part for part in (before, own, after) if part is not None]
        marks = [np.zeros(part.num_rows, bool) if part is not own else mask[rows] for part in parts]
        table = pa.concat_tables([part.cast(own.schema) for part in parts])
        table = table.append_column(MATCH[0], pa.array(np.concatenate(marks)))
        group = (unit.batch << 24) + number
        pieces.append(table.append_column(MATCH[1], pa.array(np.full(table.num_rows, group))))
    return _aligned(pa.concat_tables(pieces), schema)


def _aligned(records: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        records.column(field.name).cast(field.type)
        if field.name in records.schema.names
        else pa.nulls(records.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _source_codes(records: pa.Table) -> I64Array:
    """A number for each record that tells its source from others."""
    if SOURCE not in records.schema.names:
        return np.zeros(records.num_rows, np.int64)
    column = records.column(SOURCE).combine_chunks()
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    return np.asarray(encoded.indices.cast(pa.int64()).fill_null(-1))


def _stretches(codes: I64Array, order: I64Array, mask: Mask, context: Context) -> Iterator[_Stretch]:
    """What to show, with contexts that touch made one."""
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
    unit: Unit, columns: list[str], source: str | None, count: int, *, step: int
) -> pa.Table | None:
    """Up to `count` records of the source from the batches before (after) this one, in their order."""
    found: list[pa.Table] = []
    for batch in _batches_of(unit.segment, source, unit.batch, step) if count > 0 else ():
        records = unit.segment.read(batch, columns)
        if source is not None:
            same = Matcher(Equals(SOURCE, source, case_sensitive=True), records.schema).mask(records)
            records = records.filter(pa.array(same))
        taken = records.slice(max(0, records.num_rows - count)) if step < 0 else records.slice(0, count)
        found.insert(0 if step < 0 else len(found), taken)
        count -= taken.num_rows
        if count <= 0:
            break
    return pa.concat_tables(found) if found else None


def _batches_of(segment: Searchable, source: str | None, batch: int, step: int) -> list[int]:
    """The batches that may hold records of the source, beginning with the nearest."""
    if source is None:
        return [batch + step] if 0 <= batch + step < segment.batch_count else []
    expression = required_tokens(Equals(SOURCE, source), segment.profile).expression
    if expression == ANYTHING:
        near = range(batch + step, batch + (NEIGHBOURS + 1) * step, step)
        return [other for other in near if 0 <= other < segment.batch_count]
    found = segment.candidates(compile_expression(expression)).tolist()
    return [other for other in found[::step] if (other - batch) * step > 0]
