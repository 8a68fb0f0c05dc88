"""Finds the columns of a table for which some records have an attribute instead.

A column keeps its first type, and values that do not fit it are attributes under its name. The index lists the
attributes of a segment. A segment without one is read, so that a query means the same without any index.
"""

from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from coprlake.errors import CoprlakeError
from coprlake.predicate.paths import is_nested, plain_type
from coprlake.records import ATTRIBUTES, SCHEMA
from coprlake.segment.sealed import SealedSegment
from coprlake.segment.searchable import Searchable
from coprlake.storage.snapshot import Snapshot
from coprlake.text.text_types import is_text_map, is_text_or_bytes

_KNOWN: Final[WeakKeyDictionary[Searchable, frozenset[str]]] = WeakKeyDictionary()
"""The attributes of committed segments without an index; a table keeps its open segments from query to query."""


def mixed_columns(snapshot: Snapshot, uncommitted: Sequence[Searchable], schema: pa.Schema) -> frozenset[str]:
    """The columns of numbers, times and the like that also occur as attributes; nested columns do not count.

    Args:
        snapshot: the records.
        uncommitted: further records.
        schema: the columns of both.
    """
    if ATTRIBUTES not in schema.names or not is_text_map(schema.field(ATTRIBUTES).type):
        return frozenset()
    typed = {item.name for item in schema if item.name not in SCHEMA.names and _is_single(plain_type(item.type))}
    if not typed:
        return frozenset()
    pool = snapshot.pool
    found = {name for profile in pool.profiles for name in typed.intersection(profile.fields)}
    for segment in uncommitted:
        found |= typed & _keys(segment)
    if not pool.is_complete or not all(profile.complete for profile in pool.profiles):
        for segment in snapshot.segments:
            if found != typed and not segment.profile.complete:
                found |= typed & _known_keys(segment)
    return frozenset(found)


def _is_single(kind: pa.DataType) -> bool:
    """Whether values of this type are neither text nor nested: the index lists text inside a value like attributes."""
    return not is_text_or_bytes(kind) and not is_nested(kind)


def _known_keys(segment: SealedSegment) -> frozenset[str]:
    known = _KNOWN.get(segment)
    if known is None:
        try:
            known = _keys(segment)
        except (CoprlakeError, OSError):
            return frozenset()  # reading its records will fail too, and say why
        _KNOWN[segment] = known
    return known


def _keys(segment: Searchable) -> frozenset[str]:
    """The attributes of a segment, from its records."""
    found: set[str] = set()
    for batch in range(segment.batch_count) if ATTRIBUTES in segment.schema.names else ():
        for column in segment.read(batch, (ATTRIBUTES,)).column(ATTRIBUTES).chunks:
            if isinstance(column, pa.MapArray) and column.null_count < len(column):
                found.update(str(key) for key in pc.unique(column.keys.cast(pa.string())).to_pylist())
    return frozenset(found)
