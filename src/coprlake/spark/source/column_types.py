"""Maps Arrow types to Spark; files of other writers may have types that Spark lacks."""

from inspect import signature

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from coprlake.predicate.deciding.moments import microseconds_of
from coprlake.storage.conforming import lake_type


def spark_schema(schema: pa.Schema) -> StructType:
    """The columns as a Spark schema."""
    return from_arrow_schema(spark_kinds(schema), prefer_timestamp_ntz=True)  # the default since PySpark 4.2


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns of a Spark schema, with times in UTC."""
    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)  # PySpark 4.0 and 4.1: always UTC


def spark_kinds(schema: pa.Schema) -> pa.Schema:
    """The columns with Arrow types that Spark accepts and that hold the same values."""
    return pa.schema([pa.field(field.name, _spark_kind(field.type)) for field in schema])


def _spark_kind(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _spark_kind(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)  # a time without a zone stays without one
    if kind == pa.uint64():
        return pa.decimal128(20, 0)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return lake_type(kind)


def as_spark_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert a batch to types that Spark accepts; nanoseconds round down, and times beyond 64 bits are clamped."""
    kinds = spark_kinds(batch.schema)
    if kinds == batch.schema.remove_metadata():
        return batch
    columns = [_cast(column, field.type) for column, field in zip(batch.columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=kinds)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(kind):
        return microseconds_of(column).cast(kind)
    try:
        return column.cast(kind, safe=not pa.types.is_timestamp(kind))
    except pa.ArrowNotImplementedError:
        if not pa.types.is_string(kind):
            raise
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], kind)
