"""What a search needs from a segment, whatever its state."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from coprlake.kernel import I64Array
from coprlake.predicate.deciding.moments import microseconds_of as microseconds_of
from coprlake.records import TIMESTAMP
from coprlake.sketch.algebra import TokenProgram
from coprlake.tokens.profile import Profile

NO_PROFILE = Profile({}, complete=False)
"""The profile of a segment without an index: nothing can be ruled out."""

ALWAYS = (np.iinfo(np.int64).min, np.iinfo(np.int64).max)
"""The range for records whose times are not known."""


class Searchable(Protocol):
    """A segment, mutable or sealed: batches by number, and an index that rules some of them out."""

    @property
    def name(self) -> str:
        """The name used in reports."""

    @property
    def profile(self) -> Profile:
        """The fields in its index, and how they are indexed."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of its records."""

    @property
    def batch_count(self) -> int:
        """The number of batches."""

    def candidates(self, program: TokenProgram) -> I64Array:
        """The batches that may match, ascending."""

    def times(self, column: str = TIMESTAMP) -> tuple[I64Array, I64Array]:
        """The first and last time of a column in each batch, in microseconds; `ALWAYS` where not known."""

    def read(self, batch: int, columns: Sequence[str]) -> pa.Table:
        """The given columns of a batch, as far as it has them."""

    def stored_bytes(self, batch: int, columns: Sequence[str]) -> int:
        """The bytes that `read` reads."""


def is_before(times: Any, until: int) -> Any:
    """Whether a time, or each of many, is before `until`; always if that is the end of `ALWAYS`."""
    return (times < until) | (until == ALWAYS[1])


def has_times(schema: pa.Schema, column: str = TIMESTAMP) -> bool:
    """Whether records of this schema have this column, and it holds times."""
    if column not in schema.names:
        return False
    kind = schema.field(column).type
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def time_range(records: pa.Table | pa.RecordBatch, column: str) -> tuple[int, int]:
    """The first and the last timestamp in microseconds; `ALWAYS` if there is none or some are missing."""
    if column not in records.schema.names:
        return ALWAYS
    values = records.column(column)
    if values.null_count or not len(values) or not pa.types.is_timestamp(values.type):
        return ALWAYS
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    numbers = [np.asarray(microseconds_of(chunk)) for chunk in chunks if len(chunk)]
    return min(int(array.min()) for array in numbers), max(int(array.max()) for array in numbers)
