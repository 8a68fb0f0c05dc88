"""A log record: the columns that every table has, and what each of them means."""

from typing import Final

import pyarrow as pa

TIMESTAMP: Final = "timestamp"
SOURCE: Final = "source"
LOGLEVEL: Final = "loglevel"
CONTENT: Final = "content"
ATTRIBUTES: Final = "attributes"
DAY: Final = "day"
"""The UTC day of the timestamp: a partition column for who wants one."""

JSON_SHAPE: Final = "_json_shape"
"""How the line of a record from JSON looks without its values (`coprlake.text.json_shapes`); null for other records."""
JSON_REST: Final = "_json_rest"
"""The values of that line that no other column gives back exactly, as they were written, each on a line."""
HIDDEN: Final = frozenset({JSON_SHAPE, JSON_REST})
"""Columns that say how a record was written. They are not searched, and not shown unless they are named."""

TIMESTAMP_TYPE: Final = pa.timestamp("us", tz="UTC")
INT96_UNIT: Final = "us"
"""The unit in which we read times that a Parquet file stores as INT96, as Spark does. Arrow's default is nanoseconds,
which silently turns the year 9999 into 1816."""
ATTRIBUTES_TYPE: Final = pa.map_(pa.string(), pa.string())

SCHEMA: Final = pa.schema(
    [
        (TIMESTAMP, TIMESTAMP_TYPE),
        (SOURCE, pa.string()),
        (LOGLEVEL, pa.string()),
        (CONTENT, pa.string()),
        (ATTRIBUTES, ATTRIBUTES_TYPE),
    ]
)
"""Time, source, level and text of a log line, and the values that have no column of their own.

Any column may be null. Further typed columns may follow; a key of the attributes means the same as a column of that
name.
"""

_VARYING: Final = {b"coprlake.type": b"varies"}


def varying(field: pa.Field) -> pa.Field:
    """The field, marked as having another type in some data files, where conditions on it may not apply."""
    return field.with_metadata(_VARYING)


def is_varying(field: pa.Field) -> bool:
    """Whether a field of a table has this mark."""
    return (field.metadata or {}).items() >= _VARYING.items()


_DERIVED: Final = {b"coprlake.value": b"derived"}


def derived(field: pa.Field) -> pa.Field:
    """The field, marked as one that is no part of what was logged: a partition column that we derived, or hidden."""
    return field.with_metadata(_DERIVED)


def is_derived(field: pa.Field) -> bool:
    """Whether a field of a table has this mark."""
    return (field.metadata or {}).items() >= _DERIVED.items()
