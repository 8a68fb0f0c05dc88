"""Writes random tables with our writer and others; a recipe says how, so that a table can be written again.

Columns of types that a writer does not support are dropped first.
"""

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from coprlake.config import RuleSet
from coprlake.errors import UsageError
from coprlake.predicate.predicates import OneOf, Predicate
from coprlake.records import ATTRIBUTES, ATTRIBUTES_TYPE, CONTENT, DAY, LOGLEVEL, SCHEMA, SOURCE, TIMESTAMP
from coprlake.segment.mutable import SegmentOptions
from coprlake.table import Table, create_table, open_table
from coprlake.testing.torture.answers import spark_writer
from coprlake.testing.torture.answers.foreign_data import ID
from coprlake.testing.torture.answers.plain_rows import is_valid_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Recipe:
    """How a table is written."""

    writer: str
    parts: int
    """The number of commits or files."""
    group_rows: int
    """Rows per row group; for our writer, bytes per batch divided by 40."""
    partition_by: str | None
    rules: RuleSet
    index: bool
    spills: bool = False
    optimizes: bool = False
    lacks: bool = False
    """Whether the last part lacks a column."""
    pages: str = "1.0"
    deleted: Predicate | None = None


@dataclass
class Written:
    """A table on disk: opened by us, and as an independent reader reads its files."""

    table: Table
    data: pa.Table
    files: list[str]
    partition_by: list[str]


def random_recipe(chance: random.Random, data: pa.Table) -> Recipe:
    """A recipe with any writer and any layout."""
    writer = chance.choice(["ours", "ours", "ours", *_WRITERS])
    names = set(data.schema.names)
    can_split = [SOURCE, LOGLEVEL, *(["userapp"] if "userapp" in names else [])]
    partition = chance.choice([None, None, DAY if writer == "ours" else None, *can_split])
    deleted = None
    if writer == "ours" and data.num_rows and chance.random() < 0.3:
        deleted = OneOf(ID, tuple(chance.sample(range(data.num_rows), chance.randint(1, max(1, data.num_rows // 3)))))
    return Recipe(
        writer,
        parts=chance.choice([1, 2, 3, 5]),
        group_rows=chance.choice([1, 3, 10, 10, 50, 1000]),
        partition_by=partition,
        rules=chance.choice([RuleSet.WINNOWED, RuleSet.WINNOWED, RuleSet.PAPER]),
        index=chance.random() < 0.75,
        spills=chance.random() < 0.3,
        optimizes=chance.random() < 0.3,
        lacks=chance.random() < 0.2,
        pages=chance.choice(["1.0", "2.0"]),
        deleted=deleted,
    )


def fitted(recipe: Recipe, data: pa.Table) -> tuple[Recipe, pa.Table]:
    """The recipe and the data without what the writer does not support."""
    takes = _TAKES[recipe.writer]
    names = [f.name for f in data.schema if f.name == ID or takes(f.type)]
    if recipe.writer == "ours":  # rejects other types for its own columns
        names = [name for name in names if name not in SCHEMA.names or data.schema.field(name).type in _OURS[name]]
    if recipe.writer != "ours" and recipe.writer not in _FOLDERS:
        names = [name for name in names if not set(name) & set(_NOT_IN_DELTA) and name.isprintable()]
    if recipe.writer in _VALIDATING and not is_valid_text(data):
        names = [name for name in names if name != CONTENT]
    data = data.select(names)
    column = recipe.partition_by
    is_odd = column is not None and column != DAY and not _can_part(data, column)
    if is_odd or recipe.writer == SPARK:
        recipe = replace(recipe, partition_by=None)
    return recipe, data


def _can_part(data: pa.Table, column: str) -> bool:
    return column in data.schema.names and data.schema.field(column).type == pa.string() and data.num_columns > 1


def write(recipe: Recipe, data: pa.Table, folder: Path, spark: "SparkSession | None" = None) -> Written:
    """Write the table, open it, and read its files independently; only recipes for Spark need a session."""
    shutil.rmtree(folder, ignore_errors=True)
    if recipe.writer == "ours":
        table = _write_ours(recipe, data, folder)
    else:
        if recipe.writer == SPARK:
            assert spark is not None
            spark_writer.write_parquet(spark, _parts(replace(recipe, lacks=False), data), folder)
        else:
            _WRITERS[recipe.writer](recipe, data, folder)
        table = open_table(folder)
        if recipe.index:
            table.index(rules=recipe.rules)
    return _read_back(recipe, table, folder)


def _parts(recipe: Recipe, data: pa.Table) -> list[pa.Table]:
    size = max(1, -(-data.num_rows // recipe.parts))
    parts = [data.slice(start, size) for start in range(0, max(1, data.num_rows), size)]
    if recipe.lacks and len(parts) > 1:
        spare = [name for name in data.schema.names if name not in (ID, recipe.partition_by, TIMESTAMP)]
        parts[-1] = parts[-1].drop_columns(spare[-1:])
    return parts


# --- ours ---


def _write_ours(recipe: Recipe, data: pa.Table, folder: Path) -> Table:
    partition = recipe.partition_by
    grams = [SOURCE] if recipe.spills else []
    schema = pa.schema([(ID, pa.int64())])
    table = create_table(folder, schema=schema, partition_by=partition, rules=recipe.rules, grams=grams)
    options = SegmentOptions(batch_bytes=40 * recipe.group_rows, slot_count=2)
    for part in _parts(recipe, data):
        with table.writer(options=options, searchable=False) as writer:
            for batch in part.to_batches(max_chunksize=max(1, part.num_rows // 3)):
                writer.append(batch)
                if recipe.spills:
                    for segment in writer._segmenter._open.values():
                        segment._sketch._spill()
    if recipe.deleted is not None:
        table.delete(recipe.deleted)
    if recipe.optimizes:
        table.optimize()
    if recipe.index:
        table.index(rules=RuleSet.PAPER if recipe.rules is RuleSet.WINNOWED and recipe.spills else None)
    return table


# --- others ---

_NOT_IN_DELTA: Final = " ,;{}()\n\t="


def _by_pyarrow(recipe: Recipe, data: pa.Table, folder: Path) -> None:
    for number, part in enumerate(_parts(recipe, data)):
        # partitions without rows have no files
        for values, rows in _partitions(recipe.partition_by, part):
            target = folder / values if values else folder
            target.mkdir(parents=True, exist_ok=True)
            with pq.ParquetWriter(
                target / f"part-{number}.parquet",
                rows.schema,
                compression=("zstd", "snappy", "none")[number % 3],
                use_dictionary=number % 2 == 0,
                data_page_version=recipe.pages,
                write_statistics=number % 3 != 1,
            ) as writer:
                try:
                    writer.write_table(rows, row_group_size=recipe.group_rows)
                except pa.ArrowInvalid as error:  # Parquet has no seconds, and not all of them fit as milliseconds
                    raise UsageError(f"pyarrow cannot write these values: {error}") from error
                if recipe.lacks:
                    writer.write_table(rows.slice(0, 0))


def _partitions(column: str | None, data: pa.Table) -> list[tuple[str, pa.Table]]:
    """The rows by Hive-style folder name."""
    if column is None or not data.num_rows:
        return [("", data)]
    values = data.column(column).to_pylist()
    found: dict[str, list[int]] = {}
    for number, value in enumerate(values):
        shown = "__HIVE_DEFAULT_PARTITION__" if not value else quote(value, safe="")
        found.setdefault(f"{column}={shown}", []).append(number)
    rest = data.drop_columns([column])  # Arrow cannot `take` from views of text
    return [(name, pa.concat_tables([rest.slice(row, 1) for row in rows])) for name, rows in found.items()]


def _by_duckdb(recipe: Recipe, data: pa.Table, folder: Path) -> None:
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        for number, part in enumerate(_parts(recipe, data)):
            connection.register("part", part)
            connection.execute(f"COPY part TO '{folder}/{number}.parquet' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
            connection.unregister("part")


def _by_polars(recipe: Recipe, data: pa.Table, folder: Path) -> None:
    import polars

    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(_parts(recipe, data)):
        frame = polars.from_arrow(part)
        assert isinstance(frame, polars.DataFrame)
        frame.write_parquet(folder / f"{number}.parquet", row_group_size=recipe.group_rows, use_pyarrow=False)


def _delta_by_polars(recipe: Recipe, data: pa.Table, folder: Path) -> None:
    import polars

    for part in _parts(replace(recipe, lacks=False), data):
        frame = polars.from_arrow(part)
        assert isinstance(frame, polars.DataFrame)
        frame.write_delta(str(folder), mode="append")


def _by_deltalake(recipe: Recipe, data: pa.Table, folder: Path) -> None:
    partition = None if recipe.partition_by is None else [recipe.partition_by]
    for part in _parts(recipe, data):
        write_deltalake(str(folder), part, mode="append", partition_by=partition, schema_mode="merge")


def _takes_all(kind: pa.DataType) -> bool:
    return True


def _every(kind: pa.DataType, good: Callable[[pa.DataType], bool]) -> bool:
    """Whether a type and all types inside it are good."""
    if pa.types.is_dictionary(kind):
        return _every(kind.value_type, good)
    if pa.types.is_map(kind):
        return _every(kind.key_type, good) and _every(kind.item_type, good)
    if pa.types.is_struct(kind):
        return all(_every(field.type, good) for field in kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _every(kind.value_type, good)
    return good(kind)


def _takes_delta(kind: pa.DataType) -> bool:
    def good(leaf: pa.DataType) -> bool:
        types = pa.types
        if types.is_timestamp(leaf):
            return leaf.unit == "us" and leaf.tz in (None, "UTC")
        plain = types.is_signed_integer(leaf) or leaf in (pa.float32(), pa.float64(), pa.string(), pa.binary())
        return bool(plain or types.is_boolean(leaf) or types.is_date32(leaf) or types.is_decimal(leaf))

    is_dictionary = pa.types.is_dictionary(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind)
    return not is_dictionary and _every(kind, good)


def _takes_duckdb(kind: pa.DataType) -> bool:
    def good(leaf: pa.DataType) -> bool:
        types = pa.types
        if types.is_timestamp(leaf):
            return leaf.tz is None
        odd = types.is_float16(leaf) or types.is_null(leaf) or types.is_duration(leaf) or types.is_date64(leaf)
        return not (odd or leaf == pa.time64("ns"))

    # pyarrow cannot read files with null fixed-size lists
    return not pa.types.is_fixed_size_list(kind) and _every(kind, good)


def _takes_polars(kind: pa.DataType) -> bool:
    def good(leaf: pa.DataType) -> bool:
        types = pa.types
        if types.is_timestamp(leaf):
            return leaf.unit != "s" and leaf.tz in (None, "UTC")
        odd = types.is_fixed_size_binary(leaf) or types.is_time(leaf) or types.is_null(leaf) or types.is_float16(leaf)
        return not (odd or types.is_date64(leaf) or types.is_duration(leaf))

    is_odd = pa.types.is_map(kind) or pa.types.is_dictionary(kind) or pa.types.is_fixed_size_list(kind)
    return not is_odd and _every(kind, good)


_WRITERS: Final[dict[str, Callable[[Recipe, pa.Table, Path], None]]] = {
    "pyarrow": _by_pyarrow,
    "deltalake": _by_deltalake,
    "duckdb": _by_duckdb,
    "polars": _by_polars,
    "polars delta": _delta_by_polars,
}
SPARK: Final = "spark"
_FOLDERS: Final = ("pyarrow", "duckdb", "polars", SPARK)
_TEXTS: Final = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.int16())
_OURS: Final[dict[str, tuple[pa.DataType, ...]]] = {
    TIMESTAMP: (*(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")), pa.date64()),
    SOURCE: _TEXTS,
    LOGLEVEL: _TEXTS,
    CONTENT: _TEXTS,
    ATTRIBUTES: (ATTRIBUTES_TYPE, pa.struct([("a", pa.string()), ("B c", pa.string())])),
}
_VALIDATING: Final = (SPARK, "duckdb", "polars", "polars delta", "deltalake")
_TAKES: Final[dict[str, Callable[[pa.DataType], bool]]] = {
    "ours": _takes_all,
    "pyarrow": _takes_all,
    "deltalake": _takes_delta,
    "duckdb": _takes_duckdb,
    "polars": _takes_polars,
    SPARK: spark_writer.takes,
    "polars delta": lambda kind: _takes_delta(kind) and _takes_polars(kind),
}


# --- the contents of the files, without our own reader ---


def _read_back(recipe: Recipe, table: Table, folder: Path) -> Written:
    if recipe.writer in _FOLDERS:
        files = sorted(str(path) for path in folder.rglob("*.parquet"))
        parts = [_read_file(Path(path), folder) for path in files]
        data = pa.concat_tables(parts, promote_options="default")
    else:
        delta = DeltaTable(str(folder))
        files = delta.file_uris()
        data = delta.to_pyarrow_table()
    return Written(table, data, files, table.partition_by)


def _read_file(path: Path, folder: Path) -> pa.Table:
    data = pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read()  # as Spark meant them
    for part in path.relative_to(folder).parts[:-1]:
        name, _, shown = part.partition("=")
        value = None if shown == "__HIVE_DEFAULT_PARTITION__" else unquote(shown)
        data = data.append_column(unquote(name), pa.array([value] * data.num_rows, pa.string()))
    return data
