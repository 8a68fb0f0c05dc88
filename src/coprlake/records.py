"""A log record: the columns that every table has, and what each of them means."""

from typing import Final

import pyarrow as pa

TIMESTAMP: Final = "timestamp"
SOURCE: Final = "source"
LOGLEVEL: Final = "loglevel"
CONTENT: Final = "content"
ATTRIBUTES: Final = "attributes"
DAY: Final = "day"
"""The day of the timestamp, UTC: what a table is partitioned by unless another column is named."""

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
"""When it happened, where the line came from, how bad it is, the line itself, and what has no column of its own.

Any column may be null. Further typed columns may follow; a key of the attributes means the same as a column of that
name.
"""

_VARYING: Final = {b"coprlake.type": b"varies"}


def varying(field: pa.Field) -> pa.Field:
    """The field, marked as having another type in some data files: what is asked of it here may not hold there."""
    return field.with_metadata(_VARYING)


def is_varying(field: pa.Field) -> bool:
    """Whether a field of a table is so marked."""
    return (field.metadata or {}).items() >= _VARYING.items()


_DERIVED: Final = {b"coprlake.value": b"derived"}


def derived(field: pa.Field) -> pa.Field:
    """The field, marked as the day of the timestamp that a table of ours is partitioned by, which nobody wrote."""
    return field.with_metadata(_DERIVED)


def is_derived(field: pa.Field) -> bool:
    """Whether a field of a table is so marked."""
    return (field.metadata or {}).items() >= _DERIVED.items()
