"""Change the type of values but not their shape: numbers become times again, members get their user-given names."""

from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.language.types import Type, carried_type, member_names
from coprlake.predicate.deciding.moments import microseconds_of
from coprlake.predicate.paths import is_list


@overload
def relabeled(values: pa.Array, kind: pa.DataType) -> pa.Array: ...
@overload
def relabeled(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray: ...
def relabeled(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """The array with another type of the same shape; record members are matched by position."""
    if values.type == kind:
        return values
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([relabeled(chunk, kind) for chunk in values.chunks], kind)
    if pa.types.is_null(kind):
        return pa.nulls(len(values), kind)
    if pa.types.is_struct(kind) and isinstance(values, pa.StructArray):
        children = [relabeled(child, field.type) for child, field in zip(values.flatten(), kind, strict=True)]
        mask = pc.is_null(values) if values.null_count else None
        if not children:
            return pa.array([None if missing else {} for missing in pc.is_null(values).to_pylist()], kind)
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_list(kind) and (pa.types.is_list(values.type) or pa.types.is_large_list(values.type)):
        lists = values.cast(pa.list_(values.type.value_type)) if pa.types.is_large_list(values.type) else values
        assert isinstance(lists, pa.ListArray), lists.type
        return _with_elements(lists, relabeled(lists.flatten(), kind.value_type)).cast(kind)
    return values.cast(kind)


def carried(values: pa.Array, kind: Type) -> pa.Array:
    """A column of a table in the engines' representation of a type; record members are matched by position."""
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    if kind.kind == "timestamp":
        if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
            return microseconds_of(values)
        return values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    if kind.kind == "duration":
        return values.cast(pa.duration("ns"), safe=False).cast(pa.int64())
    if kind.kind == "array" and kind.element is not None:
        assert is_list(values.type), values.type
        lists = values.cast(pa.list_(values.type.value_type))
        return _with_elements(lists, carried(lists.flatten(), kind.element))
    if kind.kind == "record":
        assert isinstance(values, pa.StructArray), values.type
        parts = zip(values.flatten(), (member for _, member in kind.members), strict=True)
        children = [carried(child, member) for child, member in parts]
        mask = pc.is_null(values) if values.null_count else None
        return pa.StructArray.from_arrays(children, names=member_names(kind), mask=mask)
    if kind.kind == "map":
        maps = values.cast(carried_type(kind), safe=False)
        assert isinstance(maps, pa.MapArray), maps.type
        return _with_keys_once(maps)
    return values.cast(carried_type(kind), safe=False)


def _with_keys_once(maps: pa.MapArray) -> pa.MapArray:
    """The maps with only the first value of each key: DuckDB rejects maps with duplicate keys."""
    offsets = np.asarray(maps.offsets, np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    keys, items = maps.keys.slice(first, last - first), maps.items.slice(first, last - first)
    codes = np.asarray(keys.dictionary_encode().indices, np.int64)
    rows = np.repeat(np.arange(len(maps)), np.diff(offsets))
    kept = np.unique(rows * (int(codes.max(initial=0)) + 1) + codes, return_index=True)[1]
    if len(kept) == len(codes):
        return maps
    kept.sort()
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=len(maps)))]).astype(np.int32)
    mask = pc.is_null(maps) if maps.null_count else None
    places = pa.array(kept)
    return pa.MapArray.from_arrays(pa.array(starts), keys.take(places), items.take(places), type=maps.type, mask=mask)


def _with_elements(lists: pa.Array, elements: pa.Array) -> pa.Array:
    """The lists with their elements replaced."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    mask = pc.is_null(lists) if lists.null_count else None
    return pa.ListArray.from_arrays(offsets, elements, type=pa.list_(elements.type), mask=mask)
