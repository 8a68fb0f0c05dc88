"""The text of a batch: strings as kernels read them, and the rows they belong to.

A column has a string for each row. A dictionary has each string once and says which one a row has. Attributes are a
map: all its values are strings, and each belongs to some row. So a condition is decided for strings, and the answers
are spread over the rows.
"""

from collections.abc import Collection
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from coprlake.kernel import I64Array
from coprlake.predicate.deciding.finding import Mask
from coprlake.predicate.deciding.typed import valid_rows
from coprlake.text.arrow_strings import as_binary, as_strings, string_buffers
from coprlake.tokens.fingerprint import as_bytes


class Texts:
    """Strings and their rows: row ``i`` has string ``i``, or ``string_of_row[i]``, or string ``i`` has ``rows[i]``."""

    def __init__(
        self,
        strings: pa.Array,
        row_count: int,
        *,
        string_of_row: npt.NDArray[Any] | None = None,
        row_of_string: I64Array | None = None,
    ) -> None:
        self.strings = strings
        """Of type string or large_string, perhaps with nulls."""
        self.row_count = row_count
        self._string_of_row = string_of_row
        self._row_of_string = row_of_string

    @cached_property
    def buffers(self) -> tuple[Any, Any]:
        """Bytes and offsets, also of strings that are null: those have bytes of no meaning."""
        return string_buffers(self.strings)

    def spread(self, hits: Mask) -> Mask:
        """From an answer for each string to one for each row; a null is never a hit."""
        if self.strings.null_count:
            hits = hits & valid_rows(self.strings)
        if self._string_of_row is not None:
            return np.append(hits, False)[self._string_of_row]  # a row without a string has -1: the last
        if self._row_of_string is not None:
            found = np.zeros(self.row_count, np.bool_)
            found[self._row_of_string[hits]] = True
            return found
        return hits

    def wanted_strings(self, wanted_rows: Mask | None) -> Mask | None:
        """Which strings matter if only these rows do; None for all."""
        if wanted_rows is None or self._string_of_row is not None:
            return None
        return wanted_rows if self._row_of_string is None else wanted_rows[self._row_of_string]


def texts_of(column: pa.Array) -> Texts:
    """A column of text."""
    if not isinstance(column, pa.DictionaryArray):
        return Texts(as_strings(column), len(column))
    indices = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return Texts(as_strings(column.dictionary), len(column), string_of_row=indices)


def texts_in_rows(values: pa.Array, rows: I64Array, row_count: int) -> Texts:
    """Strings of which a row may have any number, with the row of each."""
    return Texts(as_strings(values), row_count, row_of_string=rows)


class Attributes:
    """The map column of a batch, opened without looking at single rows."""

    def __init__(self, column: pa.MapArray) -> None:
        self.row_count = len(column)
        offsets = np.asarray(column.offsets.to_numpy(zero_copy_only=False), np.int64)
        first, last = int(offsets[0]), int(offsets[-1])
        self._keys = as_binary(column.keys.slice(first, last - first))
        self._items = as_strings(column.items.slice(first, last - first))
        self._row_of_entry = np.repeat(np.arange(self.row_count), np.diff(offsets))
        if column.null_count:  # what lies under a null has no meaning
            kept = np.flatnonzero(valid_rows(column)[self._row_of_entry])
            self._keys, self._items = self._keys.take(pa.array(kept)), self._items.take(pa.array(kept))
            self._row_of_entry = self._row_of_entry[kept]

    def values_of(self, key: str) -> Texts:
        """The value that each row has for a key: the first, should it have several."""
        equal = pa.compute.equal(self._keys, pa.scalar(as_bytes(key), self._keys.type))
        entries = np.flatnonzero(equal.to_numpy(zero_copy_only=False))
        rows = self._row_of_entry[entries]
        is_first = np.ones(len(rows), np.bool_)
        is_first[1:] = rows[1:] != rows[:-1]
        return Texts(self._items.take(pa.array(entries[is_first])), self.row_count, row_of_string=rows[is_first])

    def all_values(self) -> Texts:
        """The values of all keys."""
        return Texts(self._items, self.row_count, row_of_string=self._row_of_entry)

    def values_beside(self, keys: Collection[str]) -> tuple[pa.Array, I64Array]:
        """The values of all keys but these, and the row of each."""
        left_out = pa.array([key.encode() for key in sorted(keys)], self._keys.type)
        is_left_out = pa.compute.is_in(self._keys, left_out).to_numpy(zero_copy_only=False)
        if not is_left_out.any():
            return self._items, self._row_of_entry
        kept = np.flatnonzero(~is_left_out)
        return self._items.take(pa.array(kept)), self._row_of_entry[kept]
