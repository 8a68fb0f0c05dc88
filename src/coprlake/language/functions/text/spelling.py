"""Convert values to text: each type in one way, on its own and within JSON."""

import json
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.language.functions.array_functions import by_distinct
from coprlake.language.types import STRING, Type

FIRST_US: Final = -62_135_596_800_000_000
"""The start of the year 1, in microseconds."""
LAST_US: Final = 253_402_300_799_999_999
"""The end of the year 9999, in microseconds."""

_UNITS: Final = (
    ("d", 86_400 * 10**9),
    ("h", 3600 * 10**9),
    ("m", 60 * 10**9),
    ("s", 10**9),
    ("ms", 10**6),
    ("us", 1000),
    ("ns", 1),
)


def spell(values: pa.Array, kind: Type = STRING) -> pa.Array:
    """Values as text; null for null. Arrays, records and maps are JSON."""
    if kind.kind in ("array", "record", "map"):
        return _json(values, kind)
    if kind.kind == "timestamp":
        return spell_times(values)
    if kind.kind == "duration":
        return spell_durations(values)
    if kind.kind == "double":
        return by_distinct(values, pa.string(), repr)
    return values.cast(pa.string())


def in_range(times: pa.Array) -> pa.Array:
    """The times in the years 1 to 9999; others become null."""
    is_known = pc.and_(pc.greater_equal(times, FIRST_US), pc.less_equal(times, LAST_US))
    return pc.if_else(is_known, times, pa.scalar(None, pa.int64()))


def spell_times(times: pa.Array) -> pa.Array:
    """``2026-01-31T12:00:00Z``, with milliseconds or microseconds if they are not 0."""
    texts = pc.strftime(in_range(times).cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%SZ")
    return pc.replace_substring_regex(texts, r"(?:\.000000|000)Z$", "Z")


def spell_durations(durations: pa.Array) -> pa.Array:
    """``1h 30m``: the units that are not zero, from days to nanoseconds."""
    numbers = durations.fill_null(0).to_numpy(zero_copy_only=False)
    is_negative = numbers < 0
    left = np.where(is_negative, -numbers.astype(np.uint64), numbers.astype(np.uint64))  # also correct for -2**63
    parts = []
    for unit, size in _UNITS:
        count, left = np.divmod(left, np.uint64(size))
        texts = pc.binary_join_element_wise(pa.array(count).cast(pa.string()), unit, "")
        is_said = (count > 0) | ((numbers == 0) & (unit == "s"))
        parts.append(pc.if_else(pa.array(is_said), texts, pa.scalar(None, pa.string())))
    joined = pc.binary_join_element_wise(
        *parts, " ", null_handling="skip"
    )  # drops rows in which all are null; here none is
    signed = pc.binary_join_element_wise(pc.if_else(pa.array(is_negative), "-", ""), joined, "")
    return pc.if_else(durations.is_valid(), signed, pa.scalar(None, pa.string()))


# JSON


def _json(values: pa.Array, kind: Type) -> pa.Array:
    """Values as JSON without blanks; null for null."""
    if kind.kind == "array":
        assert kind.element is not None
        assert isinstance(values, pa.ListArray | pa.LargeListArray), values.type
        return _around("[", joined_lists(_lists(values), _json_or_null(values.flatten(), kind.element), ","), "]")
    if kind.kind == "record":
        return _json_record(values, kind)
    if kind.kind == "map":
        return _json_map(values)
    if kind.kind in ("boolean", "long"):
        return values.cast(pa.string())
    if kind.kind == "double":
        is_number = pc.is_finite(values)
        return pc.if_else(is_number, spell(values, kind), pa.scalar(None, pa.string()))
    return _quoted(spell(values, kind))


def _json_or_null(values: pa.Array, kind: Type) -> pa.Array:
    return _json(values, kind).fill_null("null")


def _quoted(texts: pa.Array) -> pa.Array:
    is_odd = pc.match_substring_regex(texts, r'["\\\x00-\x1f]')
    plain = _around('"', texts, '"')
    if not pc.any(is_odd).as_py():
        return plain
    odd = by_distinct(texts.filter(is_odd), pa.string(), lambda text: json.dumps(text, ensure_ascii=False))
    return pc.replace_with_mask(plain, is_odd.fill_null(False), odd)


def _around(left: str, texts: pa.Array, right: str) -> pa.Array:
    return pc.binary_join_element_wise(left, texts, right, "")


def _lists(values: pa.Array) -> pa.Array:
    """The lengths of lists; null for null."""
    return pc.list_value_length(values)


def joined_lists(lengths: pa.Array, elements: pa.Array, delimiter: str) -> pa.Array:
    """Join consecutive non-null strings, `lengths` at a time; null for a null length."""
    offsets = np.concatenate([[0], np.cumsum(lengths.fill_null(0).to_numpy(zero_copy_only=False))])
    mask = pc.is_null(lengths) if lengths.null_count else None
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, mask=mask)
    return pc.binary_join(lists, delimiter)


def _json_record(values: pa.Array, kind: Type) -> pa.Array:
    assert isinstance(values, pa.StructArray), values.type
    pieces: list[pa.Array | str] = []
    for child, (name, member) in zip(values.flatten(), kind.members, strict=True):
        pieces += [f"{',' if pieces else ''}{json.dumps(name, ensure_ascii=False)}:", _json_or_null(child, member)]
    if not pieces:
        return pc.if_else(values.is_valid(), "{}", pa.scalar(None, pa.string()))
    joined = pc.binary_join_element_wise("{", *pieces, "}", "")
    return pc.if_else(values.is_valid(), joined, pa.scalar(None, pa.string()))


def _json_map(values: pa.Array) -> pa.Array:
    entries = values.cast(pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])))
    elements = entries.flatten()
    assert isinstance(elements, pa.StructArray), elements.type
    keys, items = elements.flatten()
    pairs = pc.binary_join_element_wise(_quoted(keys), _json_or_null(items, STRING), ":")
    return _around("{", joined_lists(_lists(entries), pairs, ","), "}")
