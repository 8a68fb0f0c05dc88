"""Finds the tokens of each field in the records of a batch; every string column and attribute is indexed."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.config import FULL_SIGNATURE_BITS, PAPER_SIGNATURE_BITS, RULES, SIGNATURE_BITS, RuleSet
from coprlake.kernel import U32Array
from coprlake.predicate.deciding.nesting import leaves, whole
from coprlake.predicate.paths import is_nested, leaf_types
from coprlake.records import ATTRIBUTES, CONTENT
from coprlake.segment.sidecar import FIELD_LIMIT, UNINDEXED, Description, IndexPlan, kind_of
from coprlake.text.arrow_strings import as_binary
from coprlake.text.text_types import is_text
from coprlake.tokens.profile import Indexed
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

    def tokens(self, batch: pa.Table) -> Iterator[U32Array]:
        """The fingerprints of each field; each array is valid until the next one."""
        columns: list[pa.Array | pa.ChunkedArray] = [*batch.columns, *self._constants.values()]
        for name, column in zip((*batch.schema.names, *self._constants), columns, strict=True):
            if is_text(column.type):
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

    def describe(self, name: str, data_bytes: int, row_count: int, batch_count: int, raw_bytes: int) -> Description:
        """The sidecar's description of the data file."""
        typed = sorted(self.typed)
        name = name.rpartition("/")[2]
        return Description(name, data_bytes, row_count, batch_count, raw_bytes, self.fields, typed, self.complete)

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
