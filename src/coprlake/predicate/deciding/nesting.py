"""Values inside structs, lists and maps, each with its row, without a loop over rows."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from coprlake.errors import UsageError
from coprlake.kernel import I64Array
from coprlake.predicate.deciding.typed import valid_rows
from coprlake.predicate.paths import Member, Step, is_list, is_nested
from coprlake.text.arrow_strings import as_binary
from coprlake.text.text_types import is_text_or_bytes
from coprlake.tokens.fingerprint import as_bytes


class Values(NamedTuple):
    """Values of one type with their row numbers, in order; a row may have any number of values."""

    array: pa.Array
    rows: I64Array


def whole(column: pa.Array) -> Values:
    """A column as it is: one value per row."""
    return Values(column, np.arange(len(column)))


def follow(values: Values, steps: Sequence[Step]) -> Values:
    """The values that a path leads to, for all rows that have any."""
    for step in steps:
        values = _opened(values)
        if isinstance(step, Member):
            assert isinstance(values.array, pa.StructArray), values.array.type
            values = Values(values.array.flatten()[step.number], values.rows)
        else:
            values = _of_key(values, step.name)
    return values


def leaves(values: Values) -> Iterator[Values]:
    """All innermost values: struct members, list elements, and the values of maps, but not their keys."""
    values = _opened(values)
    kind = values.array.type
    if isinstance(values.array, pa.StructArray):
        for member in values.array.flatten():
            yield from leaves(Values(member, values.rows))
    elif pa.types.is_map(kind):
        yield from leaves(_entries(values)[1])
    else:
        yield values


def plain(column: pa.Array) -> pa.Array:
    """The values, decoded from dictionaries and the like."""
    if isinstance(column, pa.ExtensionArray):
        return plain(column.storage)
    if pa.types.is_run_end_encoded(column.type):
        return plain(pa.compute.run_end_decode(column))
    if isinstance(column, pa.DictionaryArray) and is_nested(column.type.value_type):
        return plain(column.dictionary_decode())
    return column


def _opened(values: Values) -> Values:
    """The values without the lists around them."""
    array, rows = plain(values.array), values.rows
    while is_list(array.type):
        array, rows = _elements(array, rows)
    return Values(array, rows)


def _elements(array: pa.Array, rows: I64Array) -> Values:
    if isinstance(array, pa.FixedSizeListArray):
        return Values(plain(array.flatten()), np.repeat(rows[valid_rows(array)], array.type.list_size))
    assert isinstance(array, pa.ListArray | pa.LargeListArray), array.type
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    (inside,), places = _between(array, offsets, (array.values,))
    return Values(plain(inside), rows[places])


def _entries(values: Values) -> tuple[pa.Array, Values]:
    """The keys and values of all maps."""
    array = values.array
    assert isinstance(array, pa.MapArray), array.type
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    (keys, items), places = _between(array, offsets, (array.keys, array.items))
    return keys, Values(plain(items), values.rows[places])


def _between(array: pa.Array, offsets: I64Array, children: Sequence[pa.Array]) -> tuple[list[pa.Array], I64Array]:
    """The values between the offsets, and which element each belongs to; values under a null do not count."""
    first, last = int(offsets[0]), int(offsets[-1])
    places = np.repeat(np.arange(len(array)), np.diff(offsets))
    found = [child.slice(first, last - first) for child in children]
    if array.null_count:
        kept = np.flatnonzero(valid_rows(array)[places])
        found, places = [child.take(pa.array(kept)) for child in found], places[kept]
    return found, places


def _of_key(values: Values, key: str) -> Values:
    """The value that each map has for a key; the first one, if there are several."""
    array = values.array
    keys, items = _entries(Values(array, np.arange(len(array))))
    binary = as_binary(_key_texts(plain(keys)))
    entries = np.flatnonzero(
        pa.compute.equal(binary, pa.scalar(as_bytes(key), binary.type)).to_numpy(zero_copy_only=False)
    )
    maps = items.rows[entries]
    is_first = np.ones(len(maps), np.bool_)
    is_first[1:] = maps[1:] != maps[:-1]
    return Values(plain(items.array.take(pa.array(entries[is_first]))), values.rows[maps[is_first]])


def _key_texts(keys: pa.Array) -> pa.Array:
    """Keys as a path spells them: numbers, times and so on as text.

    Raises:
        UsageError: the keys are structs, lists or maps, which a path cannot spell.
    """
    if is_text_or_bytes(keys.type):
        return keys
    try:
        return keys.cast(pa.string())
    except pa.ArrowException as error:
        raise UsageError(
            f"a map with keys of type {keys.type} cannot be asked for a key; search the column as a whole, or all "
            "fields"
        ) from error
