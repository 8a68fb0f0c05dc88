"""The values of a record that a plain search looks at, as text: `ANY_VALUE`.

These are all values of all columns and attributes, at any depth, but for times, and for the source and the level: those
two name the file and rate the line, and what the record itself says of them is in its content or in another column.
Numbers are text as they are written. The keys of maps and the names of members are not values.

The index takes the values of a record from here too, so that it never lacks one that a search would accept.
"""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute

from coprlake.predicate.deciding.batch_texts import Attributes
from coprlake.predicate.deciding.nesting import Values, leaves, plain, whole
from coprlake.predicate.paths import is_nested, plain_type
from coprlake.records import ATTRIBUTES, DAY
from coprlake.text.text_types import is_text_map, is_text_or_bytes
from coprlake.tokens.profile import NOT_SEARCHED

_WHOLE_NUMBER: Final = r"^-?[0-9]+$"


def is_searched(name: str, kind: pa.DataType) -> bool:
    """Whether a column can have values that a plain search looks at."""
    if name in NOT_SEARCHED:
        return False
    kind = plain_type(kind)
    return is_text_or_bytes(kind) or (name != DAY and (is_nested(kind) or is_written(kind)))


def is_written(kind: pa.DataType) -> bool:
    """Whether values of this type are not text, but are searched as they are written: numbers and booleans."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def written(column: pa.Array) -> Iterator[pa.Array]:
    """The ways to write each number or boolean of a column; nulls stay nulls.

    A float that is a whole number is written with and without a point, since a log may have had either.
    """
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    texts = column.cast(pa.string())
    yield texts
    if pa.types.is_floating(column.type):
        is_whole = pa.compute.match_substring_regex(texts, _WHOLE_NUMBER)
        yield pa.compute.if_else(
            is_whole, pa.compute.binary_join_element_wise(texts, ".0", ""), pa.scalar(None, pa.string())
        )


def record_values(name: str, column: pa.Array) -> Iterator[Values]:
    """The texts in a column that a plain search looks at, each with its row; nulls do not count.

    A row may have any number of them. Arrays are of strings or bytes of any Arrow type.
    """
    if not is_searched(name, column.type):
        return
    column = plain(column)
    if isinstance(column, pa.MapArray) and is_attribute_map(name, column.type):
        yield Values(*Attributes(column).values_beside(NOT_SEARCHED))
        return
    for array, rows in leaves(whole(column)):
        if is_text_or_bytes(array.type):
            yield Values(array, rows)
        elif is_written(array.type):
            for texts in written(array):
                yield Values(texts, rows)


def is_attribute_map(name: str, kind: pa.DataType) -> bool:
    """Whether the column is the attributes of each record."""
    return name == ATTRIBUTES and is_text_map(plain_type(kind))
