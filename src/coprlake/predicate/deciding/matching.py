"""Decides exactly which records of a batch match."""

from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute

from coprlake.kernel import I64Array
from coprlake.predicate.deciding.batch_texts import Attributes, Texts, texts_in_rows, texts_of
from coprlake.predicate.deciding.conditions import Condition, new_condition
from coprlake.predicate.deciding.finding import Mask as Mask
from coprlake.predicate.deciding.nesting import Values, follow, leaves, plain, whole
from coprlake.predicate.deciding.record_values import is_attribute_map, is_searched, is_written, record_values
from coprlake.predicate.deciding.typed import valid_rows
from coprlake.predicate.paths import Path, is_nested, leaf_types, path_of, plain_type
from coprlake.predicate.predicates import ALL_FIELDS, ANY_VALUE, And, Exists, Leaf, Not, Or, Predicate, TextPredicate
from coprlake.records import ATTRIBUTES, CONTENT, SCHEMA
from coprlake.text.text_types import is_text_map, is_text_or_bytes


class Matcher:
    """A predicate prepared for batches of one schema; any number of threads may use it.

    Args:
        predicate: what to look for.
        schema: of the batches. A batch may have more columns than `columns`, in any order.

    Raises:
        UsageError: a regular expression is not valid.
    """

    columns: tuple[str, ...]
    """The columns to read for `mask`, in the order of the schema."""

    def __init__(self, predicate: Predicate, schema: pa.Schema) -> None:
        self._root = _compiled(predicate, schema)
        needed = set(self._root.columns)
        self.columns = tuple(name for name in schema.names if name in needed)

    def mask(self, batch: pa.RecordBatch | pa.Table) -> Mask:
        """Whether each row matches."""
        if isinstance(batch, pa.Table):
            parts = [self.mask(part) for part in batch.to_batches()] if self.columns else []
            return np.concatenate(parts) if parts else self._root.rows(_Rows(batch), None)
        return self._root.rows(_Rows(batch), None)

    def count(self, batch: pa.RecordBatch | pa.Table) -> int:
        """The number of rows that match."""
        return int(np.count_nonzero(self.mask(batch)))


class _Rows:
    """The columns of a batch, each decoded once."""

    def __init__(self, batch: pa.RecordBatch | pa.Table) -> None:
        self._batch = batch
        self.count = int(batch.num_rows)
        self._texts: dict[tuple[str, bool], Texts] = {}
        self._leaves: dict[Path, list[tuple[pa.Array, I64Array, Texts | None]]] = {}
        self._values: dict[str, list[Texts]] = {}

    def column(self, name: str) -> pa.Array:
        column = self._batch.column(name)
        if isinstance(column, pa.ChunkedArray):  # only of tables without rows
            column = pa.array([], column.type) if column.num_chunks == 0 else column.chunk(0)
        return _plain(column)

    @cached_property
    def attributes(self) -> Attributes:
        column = self.column(ATTRIBUTES)
        assert isinstance(column, pa.MapArray), column.type
        return Attributes(column)

    def at(self, path: Path) -> Values:
        """The values that a path leads to, with their rows; for a path without steps, the column."""
        return follow(whole(self.column(path.column)), path.steps)

    def leaves(self, path: Path) -> list[tuple[pa.Array, I64Array, Texts | None]]:
        """All values inside what a path leads to, with their rows, and the ones that are text."""
        found = self._leaves.get(path)
        if found is None:
            found = [
                (array, rows, texts_in_rows(array, rows, self.count) if is_text_or_bytes(array.type) else None)
                for array, rows in leaves(self.at(path))
            ]
            self._leaves[path] = found
        return found

    def values(self, name: str) -> list[Texts]:
        """The values in a column that a plain search looks at, as text."""
        found = self._values.get(name)
        if found is None:
            column = self.column(name)
            if is_text_or_bytes(column.type):
                found = [self.texts(name, is_attribute=False)]
            else:
                found = [texts_in_rows(array, rows, self.count) for array, rows in record_values(name, column)]
            self._values[name] = found
        return found

    def texts(self, field: str, *, is_attribute: bool) -> Texts:
        texts = self._texts.get((field, is_attribute))
        if texts is None:
            if not is_attribute:
                texts = texts_of(self.column(field))
            else:
                texts = self.attributes.all_values() if field == ALL_FIELDS else self.attributes.values_of(field)
            self._texts[field, is_attribute] = texts
        return texts


def _plain(column: pa.Array) -> pa.Array:
    """The column as a type that Arrow can compute with; dictionaries of text stay."""
    column = plain(column)
    if isinstance(column, pa.DictionaryArray) and not is_text_or_bytes(column.type):
        column = column.dictionary_decode()
    return column


class _Node(Protocol):
    """A prepared predicate."""

    cost: int
    columns: tuple[str, ...]

    def rows(self, rows: _Rows, wanted: Mask | None) -> Mask:
        """Whether each wanted row matches; the values for other rows are undefined."""


class _LeafNode:
    """A condition on a field: on its column or path and, where that has no value, on the attribute of that name."""

    def __init__(self, predicate: Leaf, schema: pa.Schema) -> None:
        self._condition: Condition = new_condition(predicate)
        self._is_exists = isinstance(predicate, Exists)
        self._field = predicate.field
        self.cost = self._condition.cost
        has_map = ATTRIBUTES in schema.names and is_text_map(schema.field(ATTRIBUTES).type)
        self._plain_columns: tuple[str, ...] = ()
        self._paths: tuple[Path, ...] = ()
        self._has_attributes = has_map and self._field not in SCHEMA.names
        if self._field == ALL_FIELDS:
            kinds = {name: schema.field(number).type for number, name in enumerate(schema.names)}
            self._plain_columns = tuple(name for name, kind in kinds.items() if is_text_or_bytes(plain_type(kind)))
            self._paths = tuple(Path(name) for name, kind in kinds.items() if _has_text_inside(name, kind))
        else:
            path = path_of(self._field, schema)
            if path is not None and not path.steps and not is_nested(schema.field(path.column).type):
                self._plain_columns = (path.column,)
            elif path is not None:
                self._paths = (path,)
        inside = [path.column for path in self._paths]
        self.columns = (*self._plain_columns, *inside, *((ATTRIBUTES,) if self._has_attributes else ()))

    def rows(self, rows: _Rows, wanted: Mask | None) -> Mask:
        found = np.zeros(rows.count, np.bool_)
        lacking: Mask | None = None  # rows for which the attributes count; None for all
        asks_values = self._has_attributes and self._field != ALL_FIELDS
        for name in self._plain_columns:
            column = rows.column(name)
            found |= self._in_column(rows, name, column, wanted)
            if asks_values:
                lacking = ~_has_value(rows, name, column)
        for path in self._paths:
            found |= self._inside(rows, path, wanted)
            if asks_values:
                lacking = ~_has_value_at(rows, path)
        if self._has_attributes and (lacking is None or lacking.any()):
            texts = rows.texts(self._field, is_attribute=True)
            hits = self._on_texts(texts, wanted)
            found |= hits if lacking is None else hits & lacking
        return found

    def _in_column(self, rows: _Rows, name: str, column: pa.Array, wanted: Mask | None) -> Mask:
        if is_text_or_bytes(column.type):
            return self._on_texts(rows.texts(name, is_attribute=False), wanted)
        return self._condition.on_typed(column)

    def _inside(self, rows: _Rows, path: Path, wanted: Mask | None) -> Mask:
        """The rows in which at least one value inside is accepted."""
        if self._is_exists and self._field != ALL_FIELDS:
            return _has_value_at(rows, path)
        found = np.zeros(rows.count, np.bool_)
        for array, places, texts in rows.leaves(path):
            if texts is not None:
                found |= self._on_texts(texts, wanted)
            elif self._field != ALL_FIELDS:
                found[places[self._condition.on_typed(_plain(array))]] = True
        return found

    def _on_texts(self, texts: Texts, wanted: Mask | None) -> Mask:
        return texts.spread(self._condition.on_texts(texts, texts.wanted_strings(wanted)))


def _has_text_inside(name: str, kind: pa.DataType) -> bool:
    """Whether a column is nested and contains text; the attributes do not count, they are handled separately."""
    if not is_nested(kind) or (name == ATTRIBUTES and is_text_map(plain_type(kind))):
        return False
    return any(is_text_or_bytes(leaf) for leaf in leaf_types(kind))


def _has_value(rows: _Rows, name: str, column: pa.Array) -> Mask:
    if is_text_or_bytes(column.type):
        texts = rows.texts(name, is_attribute=False)
        return texts.spread(np.ones(len(texts.strings), np.bool_))
    return valid_rows(column)


def _has_value_at(rows: _Rows, path: Path) -> Mask:
    values = rows.at(path)
    found = np.zeros(rows.count, np.bool_)
    found[values.rows[valid_rows(values.array)]] = True
    return found


class _AnyValueNode:
    """A condition on any value of a record, the content first."""

    def __init__(self, predicate: Leaf, schema: pa.Schema) -> None:
        self._condition: Condition = new_condition(predicate)
        self._is_on_text = isinstance(predicate, TextPredicate)
        self.cost = self._condition.cost
        names = [name for name, kind in zip(schema.names, schema.types, strict=True) if is_searched(name, kind)]
        self.columns = tuple(sorted(dict.fromkeys(names), key=lambda name: name != CONTENT))

    def rows(self, rows: _Rows, wanted: Mask | None) -> Mask:
        found = np.zeros(rows.count, np.bool_)
        for name in self.columns:
            found |= self._in_column(rows, name, wanted)
        return found

    def _in_column(self, rows: _Rows, name: str, wanted: Mask | None) -> Mask:
        column = rows.column(name)
        if not self._is_on_text and is_written(column.type):
            return self._condition.on_typed(column)
        found = np.zeros(rows.count, np.bool_)
        if self._is_on_text or is_text_or_bytes(column.type) or is_attribute_map(name, column.type):
            for texts in rows.values(name):
                found |= texts.spread(self._condition.on_texts(texts, texts.wanted_strings(wanted)))
            return found
        for array, places, inside in rows.leaves(Path(name)):
            if inside is not None:
                found |= inside.spread(self._condition.on_texts(inside, inside.wanted_strings(wanted)))
            elif is_written(array.type):
                found[places[self._condition.on_typed(_plain(array))]] = True
        return found


class _AllNode:
    """All parts, cheapest first, each only on the rows that the ones before it accepted."""

    def __init__(self, parts: list[_Node]) -> None:
        self._parts = sorted(parts, key=lambda part: part.cost)
        self.cost = sum(part.cost for part in parts)
        self.columns = tuple(name for part in parts for name in part.columns)

    def rows(self, rows: _Rows, wanted: Mask | None) -> Mask:
        left = np.ones(rows.count, np.bool_) if wanted is None else wanted
        for i, part in enumerate(self._parts):
            left = left & part.rows(rows, wanted if i == 0 else left)
            if not left.any():
                break
        return left


class _AnyNode:
    """At least one part, cheapest first, each only on the rows that the ones before it did not accept."""

    def __init__(self, parts: list[_Node]) -> None:
        self._parts = sorted(parts, key=lambda part: part.cost)
        self.cost = sum(part.cost for part in parts)
        self.columns = tuple(name for part in parts for name in part.columns)

    def rows(self, rows: _Rows, wanted: Mask | None) -> Mask:
        found = np.zeros(rows.count, np.bool_)
        left = wanted
        for part in self._parts:
            found = found | part.rows(rows, left)
            left = ~found if wanted is None else wanted & ~found
            if not left.any():
                break
        return found


class _NotNode:
    """The opposite of the part."""

    def __init__(self, part: _Node) -> None:
        self._part = part
        self.cost = part.cost
        self.columns = part.columns

    def rows(self, rows: _Rows, wanted: Mask | None) -> Mask:
        return ~self._part.rows(rows, wanted)


def _compiled(predicate: Predicate, schema: pa.Schema) -> _Node:
    if isinstance(predicate, And):
        return _AllNode([_compiled(part, schema) for part in predicate.parts])
    if isinstance(predicate, Or):
        return _AnyNode([_compiled(part, schema) for part in predicate.parts])
    if isinstance(predicate, Not):
        return _NotNode(_compiled(predicate.part, schema))
    return _AnyValueNode(predicate, schema) if predicate.field == ANY_VALUE else _LeafNode(predicate, schema)
