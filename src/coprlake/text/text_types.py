"""Which Arrow types hold text, and which hold numbers. Dictionaries count as what their values are."""

import pyarrow as pa


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds strings. Bytes do not count: only strings are indexed."""
    kind = _value_type(kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether a column of this type holds bytes, as many for each value as it likes."""
    kind = _value_type(kind)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def is_text_or_bytes(kind: pa.DataType) -> bool:
    """Whether a search for text looks into a column of this type: strings, and bytes of any kind."""
    return is_text(kind) or is_bytes(kind) or bool(pa.types.is_fixed_size_binary(_value_type(kind)))


def is_text_map(kind: pa.DataType) -> bool:
    """Whether a column of this type can be the attributes: a map from text to text."""
    return pa.types.is_map(kind) and is_text_or_bytes(kind.key_type) and is_text_or_bytes(kind.item_type)


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers; booleans and times do not count."""
    kind = _value_type(kind)
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
