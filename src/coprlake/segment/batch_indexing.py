"""Finds the tokens of each field in the records of a batch; every string column and attribute is indexed."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.config import FULL_SIGNATURE_BITS, PAPER_SIGNATURE_BITS, RULES, SIGNATURE_BITS, RuleSet
from coprlake.kernel import U32Array
from coprlake.predicate.deciding.nesting import leaves, whole
from coprlake.predicate.deciding.record_values import is_searched, record_values
from coprlake.predicate.deciding.typed import Mask, valid_rows
from coprlake.predicate.paths import is_nested, leaf_types
from coprlake.records import ATTRIBUTES, CONTENT, HIDDEN
from coprlake.segment.sidecar import FIELD_LIMIT, UNINDEXED, Description, IndexPlan, kind_of
from coprlake.text.arrow_strings import as_binary, string_buffers
from coprlake.text.inside import mark_inside
from coprlake.text.text_types import is_text, is_text_or_bytes
from coprlake.tokens.profile import IN_CONTENT, NOT_TOGETHER, VALUES_FIELD, Indexed
from coprlake.tokens.rules import field_rules
from coprlake.tokens.scanner import BatchScanner


def is_typed(kind: pa.DataType) -> bool:
    """Whether a column of this type cannot hold text: numbers, booleans, times."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_temporal, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _is_plain_map(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) and is_text(kind.key_type) and is_text(kind.item_type)


def attribute_columns(attributes: pa.Array | pa.ChunkedArray) -> Iterator[tuple[str, pa.Array]]:
    """The values of each key that occurs in the map."""
    chunks = attributes.chunks if isinstance(attributes, pa.ChunkedArray) else [attributes]
    for chunk in chunks:
        if len(chunk) == chunk.null_count:
            continue
        assert isinstance(chunk, pa.MapArray), chunk.type
        first, last = chunk.offsets[0].as_py(), chunk.offsets[len(chunk)].as_py()
        if first == last:
            continue
        keys = pc.dictionary_encode(as_binary(chunk.keys.slice(first, last - first)))
        items = chunk.items.slice(first, last - first)
        order = np.argsort(np.asarray(keys.indices), kind="stable")
        found, starts = np.unique(np.asarray(keys.indices)[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        for key, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True):
            name = keys.dictionary[key].as_py().decode("utf-8", "surrogateescape")  # other writers' keys may be invalid
            yield name, items.take(pa.array(order[start:end]))


def values_outside_content(batch: pa.RecordBatch) -> Iterator[pa.Array]:
    """The values of each field that a plain search looks at, less those that are in the content of their record."""
    content = batch.column(CONTENT) if CONTENT in batch.schema.names else None
    no_content: Mask | None = None
    if content is None or not is_text_or_bytes(content.type):
        lines = pa.array([b""] * batch.num_rows, pa.large_binary())
        no_content = np.ones(batch.num_rows, np.bool_)
    else:
        lines = as_binary(content).cast(pa.large_binary())
        if lines.null_count:
            no_content = ~valid_rows(lines)
            lines = lines.fill_null(b"")
    hay, hay_starts = string_buffers(lines)
    cursors = hay_starts[:-1].astype(np.int64)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name == CONTENT and content is not None and is_text_or_bytes(column.type):
            continue
        for array, rows in record_values(name, column):
            values = as_binary(array).cast(pa.large_binary())
            data, starts = string_buffers(values)
            inside = np.empty(len(values), np.uint8)
            mark_inside(data, starts, rows, hay, hay_starts, cursors, inside)
            if no_content is not None:
                inside[no_content[rows]] = 0  # not even an empty value is in a content that is missing
            outside = np.flatnonzero(inside == 0)
            if len(outside):
                yield values if len(outside) == len(values) else values.take(pa.array(outside))


class BatchIndexer:
    """Finds the tokens of batch after batch, and keeps a list of the fields it met.

    Args:
        plan: what is indexed, and how.
        constants: columns with one value for all batches, which are not in the data file.
    """

    def __init__(self, plan: IndexPlan | None = None, constants: Mapping[str, pa.Scalar] | None = None) -> None:
        self._plan = plan or IndexPlan()
        self._constants = {name: pa.array([value], value.type) for name, value in (constants or {}).items()}
        self._gram_fields = self._plan.gram_fields | {CONTENT}
        self._scanner = BatchScanner()
        self._field_scanner = BatchScanner()
        self.fields: dict[str, str] = {}
        self.typed: set[str] = set()
        self.complete = True
        self._has_values_elsewhere = False

    @property
    def values(self) -> str:
        """How the values of all fields are indexed together so far, as in `Profile.values`."""
        if not self._plan.values:
            return NOT_TOGETHER
        return self._plan.rules.value if self._has_values_elsewhere else IN_CONTENT

    def tokens(self, batch: pa.Table) -> Iterator[U32Array]:
        """The fingerprints of each field; each array is valid until the next one."""
        columns: list[pa.Array | pa.ChunkedArray] = [*batch.columns, *self._constants.values()]
        for name, column in zip((*batch.schema.names, *self._constants), columns, strict=True):
            if name in HIDDEN:
                self._note(name, UNINDEXED)
            elif is_text(column.type):
                yield self._scan(name, column)
            elif name == ATTRIBUTES and _is_plain_map(column.type):
                for key, values in attribute_columns(column):
                    yield self._scan(key, values)
            elif is_typed(column.type):
                self.typed.add(name)
            elif is_nested(column.type) and name != ATTRIBUTES:
                yield from self._scan_inside(name, column)
            else:
                self._note(name, UNINDEXED)
        if self._plan.values:
            yield from self._scan_values(batch)

    def describe(self, name: str, data_bytes: int, row_count: int, batch_count: int, raw_bytes: int) -> Description:
        """The sidecar's description of the data file."""
        typed = sorted(self.typed)
        name = name.rpartition("/")[2]
        return Description(
            name, data_bytes, row_count, batch_count, raw_bytes, self.fields, typed, self.complete, values=self.values
        )

    def _scan(self, name: str, values: pa.Array | pa.ChunkedArray) -> U32Array:
        grams = name in self._gram_fields
        whole_values = name != CONTENT
        self._note(name, planned_kind(name, self._plan))
        scanner = self._scanner if grams else self._field_scanner
        return scanner.scan(values, name, grams=grams, whole_values=whole_values, rules=self._plan.rules)

    def _scan_inside(self, name: str, column: pa.Array | pa.ChunkedArray) -> Iterator[U32Array]:
        """All text inside a nested column, under the name of the column; other values are not indexed."""
        kinds = [kind for kind in leaf_types(column.type) if not pa.types.is_null(kind)]
        if not all(is_text(kind) or is_typed(kind) for kind in kinds):
            self._note(name, UNINDEXED)
            return
        if any(is_typed(kind) for kind in kinds):
            self.typed.add(name)
        if any(is_text(kind) for kind in kinds):
            self._note(name, planned_kind(name, self._plan))
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            for array, _ in leaves(whole(chunk)):
                if is_text(array.type):
                    yield self._scan(name, array)

    def _scan_values(self, batch: pa.Table) -> Iterator[U32Array]:
        """The values that a plain search looks at and that are not in the content of their record, all together."""
        names = [name for name in batch.schema.names if is_searched(name, batch.schema.field(name).type)]
        columns = [name for name in names if batch.column(name).null_count < batch.num_rows]
        found: list[pa.Array] = []
        if any(name != CONTENT for name in columns):
            parts = batch.select(columns).combine_chunks().to_batches()
            found = [values for part in parts for values in values_outside_content(part)]
        found += [
            as_binary(array).cast(pa.large_binary())
            for name, column in self._constants.items()
            for array, _ in record_values(name, column)
        ]
        found = [array for array in found if array.null_count < len(array)]
        if found:
            self._has_values_elsewhere = True
            values = pa.chunked_array(found, pa.large_binary())
            yield self._scanner.scan(values, VALUES_FIELD, grams=True, whole_values=False, rules=self._plan.rules)

    def _note(self, name: str, kind: str) -> None:
        if name in self.fields:
            if self.fields[name] != kind:  # a column that is not indexed, and an attribute of the same name
                self.fields[name] = UNINDEXED
        elif len(self.fields) < FIELD_LIMIT:
            self.fields[name] = kind
        else:
            self.complete = False


def planned_kind(name: str, plan: IndexPlan) -> str:
    """How a plan indexes a field, as a name from `KINDS`."""
    grams = name == CONTENT or name in plan.gram_fields
    return kind_of(Indexed(field_rules(plan.rules, grams=grams), whole_values=name != CONTENT))


def signature_bits(rules: RuleSet, *, mergeable: bool) -> int:
    """How many bits of a fingerprint a sealed sketch keeps: all of them if it shall be merged later (paper 4.3)."""
    if mergeable:
        return FULL_SIGNATURE_BITS
    return SIGNATURE_BITS if rules == RULES else PAPER_SIGNATURE_BITS
