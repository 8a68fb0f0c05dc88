"""The same values under another type: numbers become times again, members get the names that users gave them."""

import pyarrow as pa
import pyarrow.compute as pc


def relabeled(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """An array as another type of the same shape; members of records go by their place."""
    if values.type == kind:
        return values
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([relabeled(chunk, kind) for chunk in values.chunks], kind)
    if pa.types.is_null(kind):
        return pa.nulls(len(values), kind)
    if pa.types.is_struct(kind) and pa.types.is_struct(values.type):
        children = [relabeled(child, field.type) for child, field in zip(values.flatten(), kind, strict=True)]
        mask = pc.is_null(values) if values.null_count else None
        if not children:
            return pa.array([None if missing else {} for missing in pc.is_null(values).to_pylist()], kind)
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_list(kind) and (pa.types.is_list(values.type) or pa.types.is_large_list(values.type)):
        lists = values.cast(pa.list_(values.type.value_type)) if pa.types.is_large_list(values.type) else values
        elements = relabeled(lists.flatten(), kind.value_type)
        lengths = pc.fill_null(pc.list_value_length(lists), 0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
        mask = pc.is_null(lists) if lists.null_count else None
        return pa.ListArray.from_arrays(offsets, elements, type=kind, mask=mask)
    return values.cast(kind)
