"""Finds the tokens in the records of a batch; every string column and attribute is indexed.

The content and all other values that a plain search looks at have one set of tokens: whatever is asked of one field,
some value of the record must have. Fields that a plain search does not look at, and those that somebody wants grams
of, have tokens under their own names.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

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
from coprlake.segment.sidecar import FIELD_LIMIT, KINDS, UNINDEXED, Description, IndexPlan, kind_of
from coprlake.text.arrow_strings import as_binary, string_buffers
from coprlake.text.text_types import is_text
from coprlake.tokens.inside import INSIDE, OUTSIDE, mark_inside
from coprlake.tokens.profile import NOT_TOGETHER, OWN_TOKENS, Indexed
from coprlake.tokens.rules import field_rules
from coprlake.tokens.scanner import BatchScanner


def is_typed(kind: pa.DataType) -> bool:
    """Whether a column of this type cannot hold text: numbers, booleans, times."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_temporal, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _is_plain_map(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) and is_text(kind.key_type) and is_text(kind.item_type)


def attribute_columns(
    attributes: pa.Array | pa.ChunkedArray, wanted: Callable[[str], bool] = lambda key: True
) -> Iterator[tuple[str, pa.Array]]:
    """The values of each key that occurs in the map; none for keys whose values are not wanted."""
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
        names = [key.decode("utf-8", "surrogateescape") for key in keys.dictionary.to_pylist()]  # some may be invalid
        is_wanted = [wanted(name) for name in names]
        if not any(is_wanted):
            yield from ((name, items.slice(0, 0)) for name in names)
            continue
        order = np.argsort(np.asarray(keys.indices), kind="stable")
        ends = np.cumsum(np.bincount(np.asarray(keys.indices), minlength=len(names))).tolist()
        for name, takes, start, end in zip(names, is_wanted, [0, *ends], ends, strict=False):
            yield name, items.take(pa.array(order[start:end])) if takes else items.slice(0, 0)


class OtherValues(NamedTuple):
    """The values of a batch that a plain search looks at, apart from its content.

    Attributes:
        arrays: those whose tokens are not surely among those of the content of their record, as large binary.
        all_in_content: whether each value is a part of the content of its record.
    """

    arrays: list[pa.Array]
    all_in_content: bool


def other_values(batch: pa.RecordBatch) -> OtherValues:
    """The values of all fields that a plain search looks at, apart from the content."""
    content = batch.column(CONTENT) if CONTENT in batch.schema.names else None
    no_content: Mask | None = None
    if content is None or not is_text(content.type):  # a content of bytes has no tokens of its own
        lines = pa.array([b""] * batch.num_rows, pa.large_binary())
        no_content = np.ones(batch.num_rows, np.bool_)
    else:
        lines = as_binary(content).cast(pa.large_binary())
        if lines.null_count:
            no_content = ~valid_rows(lines)
            lines = lines.fill_null(b"")
    hay, hay_starts = string_buffers(lines)
    cursors = hay_starts[:-1].astype(np.int64)
    found: list[pa.Array] = []
    all_in_content = True
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name == CONTENT and is_text(column.type):
            continue
        for array, rows in record_values(name, column):
            values = as_binary(array).cast(pa.large_binary())
            data, starts = string_buffers(values)
            inside = np.empty(len(values), np.uint8)
            mark_inside(data, starts, rows, hay, hay_starts, cursors, inside)
            if no_content is not None:
                inside[no_content[rows]] = OUTSIDE  # not even an empty value is in a content that is missing
            if values.null_count:
                inside[~valid_rows(values)] = INSIDE
            others = np.flatnonzero(inside != INSIDE)
            if len(others):
                all_in_content = all_in_content and bool((inside[others] != OUTSIDE).all())
                found.append(values if len(others) == len(values) else values.take(pa.array(others)))
    return OtherValues(found, all_in_content)


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
        self.all_in_content = True

    @property
    def any_value(self) -> str:
        """How the values of all fields are indexed together, as in `Profile.any_value`."""
        return self._plan.rules.value if self._plan.values else NOT_TOGETHER

    def tokens(self, batch: pa.Table) -> Iterator[U32Array]:
        """The fingerprints of the batch, in parts; each array is valid until the next one."""
        columns: list[pa.Array | pa.ChunkedArray] = [*batch.columns, *self._constants.values()]
        for name, column in zip((*batch.schema.names, *self._constants), columns, strict=True):
            if name in HIDDEN:
                self._note(name, UNINDEXED)
            elif is_text(column.type):
                yield from self._scan(name, column)
            elif name == ATTRIBUTES and _is_plain_map(column.type):
                for key, values in attribute_columns(column, self._has_own_tokens):
                    yield from self._scan(key, values)
            elif is_typed(column.type):
                self.typed.add(name)
            elif is_nested(column.type) and name != ATTRIBUTES:
                yield from self._scan_inside(name, column)
            else:
                self._note(name, UNINDEXED)
        if self._plan.values:
            yield from self._scan_together(batch)

    def describe(self, name: str, data_bytes: int, row_count: int, batch_count: int, raw_bytes: int) -> Description:
        """The sidecar's description of the data file."""
        typed = sorted(self.typed)
        name = name.rpartition("/")[2]
        return Description(
            name,
            data_bytes,
            row_count,
            batch_count,
            raw_bytes,
            self.fields,
            typed,
            self.complete,
            any_value=self.any_value,
            all_in_content=self._plan.values and self.all_in_content,
        )

    def _has_own_tokens(self, name: str) -> bool:
        return not KINDS[planned_kind(name, self._plan)].with_content and (name != CONTENT or not self._plan.values)

    def _scan(self, name: str, values: pa.Array | pa.ChunkedArray) -> Iterator[U32Array]:
        """The tokens under the field's own name, if it has any."""
        self._note(name, planned_kind(name, self._plan))
        if not self._has_own_tokens(name):
            return
        grams = name in self._gram_fields
        scanner = self._scanner if grams else self._field_scanner
        yield scanner.scan(values, name, grams=grams, whole_values=name != CONTENT, rules=self._plan.rules)

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
                    yield from self._scan(name, array)

    def _scan_together(self, batch: pa.Table) -> Iterator[U32Array]:
        """The content, and the values that a plain search looks at and whose tokens the content does not have."""
        names = [name for name in batch.schema.names if is_searched(name, batch.schema.field(name).type)]
        columns = [name for name in names if batch.column(name).null_count < batch.num_rows]
        found: list[pa.Array] = []
        if any(name != CONTENT for name in columns):
            for part in batch.select(columns).combine_chunks().to_batches():
                others = other_values(part)
                found += others.arrays
                self.all_in_content = self.all_in_content and others.all_in_content
        for name, column in self._constants.items():
            arrays = [as_binary(array).cast(pa.large_binary()) for array, _ in record_values(name, column)]
            arrays = [array for array in arrays if array.null_count < len(array)]
            found += arrays
            self.all_in_content = self.all_in_content and not arrays
        content = batch.column(CONTENT) if CONTENT in columns else None
        parts = content.chunks if content is not None and is_text(content.type) else []
        if found:
            parts = [*parts, pa.concat_arrays(found)]
        if parts:
            yield self._scanner.scan(parts, CONTENT, grams=True, whole_values=False, rules=self._plan.rules)

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
    if plan.values and not grams and name not in OWN_TOKENS:
        return kind_of(Indexed(plan.rules, whole_values=False, with_content=True))
    return kind_of(Indexed(field_rules(plan.rules, grams=grams), whole_values=name != CONTENT))


def signature_bits(rules: RuleSet, *, mergeable: bool) -> int:
    """How many bits of a fingerprint a sealed sketch keeps: all of them if it shall be merged later (paper 4.3)."""
    if mergeable:
        return FULL_SIGNATURE_BITS
    return SIGNATURE_BITS if rules == RULES else PAPER_SIGNATURE_BITS
