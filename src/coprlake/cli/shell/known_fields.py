"""The fields that a table has: its columns, the attributes of a few of its records, and frequent values."""

from typing import TYPE_CHECKING

from coprlake.records import ATTRIBUTES, DAY, HIDDEN, LOGLEVEL, SOURCE

if TYPE_CHECKING:
    from coprlake.table import Table

_LOOKED_AT = 5_000
_VALUES_LOOKED_AT = 50_000
_MOST_VALUES = 50


def fields_of(table: "Table") -> dict[str, str]:
    """The columns that queries can name, and their types."""
    from coprlake.language.types import from_arrow

    kinds = {field.name: from_arrow(field.type) for field in table.schema if field.name not in (DAY, *HIDDEN)}
    return {name: str(kind) for name, kind in kinds.items() if kind is not None}


def attributes_seen(table: "Table") -> list[str]:
    """The attributes of a few records; there may be more."""
    import pyarrow as pa

    if ATTRIBUTES not in table.schema.names or not pa.types.is_map(table.schema.field(ATTRIBUTES).type):
        return []
    keys: set[str] = set()
    for batch in table.search(columns=[ATTRIBUTES], limit=_LOOKED_AT, threads=1):
        maps = batch.column(ATTRIBUTES)
        assert isinstance(maps, pa.MapArray), maps.type
        keys.update(maps.keys.unique().to_pylist())
    return sorted(keys - set(table.schema.names))


def values_seen(table: "Table") -> dict[str, list[str]]:
    """Values of the level and the source in a few records."""
    names = [name for name in (LOGLEVEL, SOURCE) if name in table.schema.names]
    found: dict[str, set[str]] = {name: set() for name in names}
    if names:
        for batch in table.search(columns=names, limit=_VALUES_LOOKED_AT, threads=1):
            for name in names:
                found[name].update(str(value) for value in batch.column(name).unique().to_pylist() if value is not None)
    return {name: sorted(values)[:_MOST_VALUES] for name, values in found.items()}
