"""A total order of values that both engines share, so that a query returns the same rows on both.

Both engines order numbers, times, booleans and strings (by their bytes) alike, and NaN is greater than any number.
Three kinds need keys to be ordered alike:

- a loose string is ordered as a number if it spells one; other strings follow the numbers;
- 0.0 and -0.0 are equal, so their text decides;
- arrays, records and maps, which engines order differently or not at all, are ordered by text that we generate.
"""

import json
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from coprlake.language.functions.array_functions import array_function, by_distinct
from coprlake.language.functions.text.spelling import joined_lists
from coprlake.language.functions.values.operators import from_text
from coprlake.language.sql.dialect import Dialect
from coprlake.language.types import DOUBLE, STRING, Type, carried_type

NESTED: Final = frozenset({"array", "record", "map"})
_ENTRIES: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))


def sort_keys(d: Dialect, value: exp.Expression, kind: Type) -> list[exp.Expression]:
    """The keys to sort a value by, most significant first; nulls come last, ascending or descending."""
    if kind.kind == "null":
        return []
    if kind.is_loose:
        return [from_text(d, value.copy(), DOUBLE), value.copy()]
    return [_order_text(d, value, kind) if kind.kind in NESTED else value.copy()]


def tie_keys(d: Dialect, value: exp.Expression, kind: Type) -> list[exp.Expression]:
    """The keys that order any two different values, to break ties between records with equal sort keys."""
    if kind.kind == "double":
        is_zero = d.equal(value.copy(), d.double(0.0))
        return [value.copy(), d.case((is_zero, d.cast(value.copy(), STRING)), default=d.null(STRING))]
    if kind.is_loose:
        return [value.copy()]
    return sort_keys(d, value, kind)


def _order_text(d: Dialect, value: exp.Expression, kind: Type) -> exp.Expression:
    return d.apply(array_function(order_texts, (carried_type(kind),), pa.string(), kind=kind), value.copy())


def order_texts(values: pa.Array, kind: Type = STRING) -> pa.Array:
    """A distinct text for each distinct value; null for null. The order of a map's keys is ignored."""
    if kind.kind == "array":
        assert kind.element is not None
        assert isinstance(values, pa.ListArray | pa.LargeListArray), values.type
        elements = order_texts(values.flatten(), kind.element).fill_null("null")
        lengths = pc.list_value_length(values)
        return pc.binary_join_element_wise("[", joined_lists(lengths, elements, ","), "]", "")
    if kind.kind == "record":
        assert isinstance(values, pa.StructArray), values.type
        parts = [
            order_texts(child, member).fill_null("null")
            for child, (_, member) in zip(values.flatten(), kind.members, strict=True)
        ]
        joined = pc.binary_join_element_wise("{", *_separated(parts), "}", "")
        return pc.if_else(values.is_valid(), joined, pa.scalar(None, pa.string()))
    if kind.kind == "map":
        return _map_texts(values)
    if kind.kind == "double":
        return by_distinct(values, pa.string(), repr)
    if kind.kind in ("string", "ip"):
        return _quoted(values)
    return values.cast(pa.string())


def _separated(parts: list[pa.Array]) -> list[pa.Array | str]:
    return [piece for part in parts for piece in (part, ",")]


def _quoted(texts: pa.Array) -> pa.Array:
    """Strings in quotes, escaped so that joining them stays unambiguous."""
    is_odd = pc.match_substring_regex(texts, r'["\\]')
    plain = pc.binary_join_element_wise('"', texts, '"', "")
    if not pc.any(is_odd).as_py():
        return plain
    odd = by_distinct(texts.filter(is_odd), pa.string(), lambda text: json.dumps(text, ensure_ascii=False))
    return pc.replace_with_mask(plain, is_odd.fill_null(False), odd)


def _map_texts(values: pa.Array) -> pa.Array:
    entries = values.cast(_ENTRIES)
    elements = entries.flatten()
    assert isinstance(elements, pa.StructArray), elements.type
    keys, items = elements.flatten()
    rows = pc.list_parent_indices(entries)
    order = pc.sort_indices(
        pa.table({"row": rows, "key": keys}), sort_keys=[("row", "ascending"), ("key", "ascending")]
    )
    pairs = pc.binary_join_element_wise(_quoted(keys), _quoted(items).fill_null("null"), ":").take(order)
    lengths = pc.list_value_length(entries)
    return pc.binary_join_element_wise("{", joined_lists(lengths, pairs, ","), "}", "")
