"""The ways to store rows, all of which obey the law of `coprlake.testing.conformance`.

A variant takes a folder and rows, and returns a table with the rows that a search must find; `VARIANTS` holds those of
this package.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from coprlake.config import RuleSet
from coprlake.predicate.predicates import OneOf
from coprlake.records import ATTRIBUTES, SOURCE, TIMESTAMP
from coprlake.segment.mutable import SegmentOptions
from coprlake.segment.sidecar import sidecar_name
from coprlake.storage.writer import TableWriter
from coprlake.table import Table, create_table, open_table
from coprlake.testing.predicate_strategies import ROW_SCHEMA, STATUS, USERAPP, Row

ID: Final = "id"
SCHEMA: Final = pa.schema([*ROW_SCHEMA, (ID, pa.int64())])
START: Final = datetime(2024, 6, 1, tzinfo=UTC)
SMALL: Final = SegmentOptions(batch_bytes=40, slot_count=2)
"""Two or three rows per batch, so that a few rows fill many batches."""


@dataclass
class Stored:
    """A table and the rows that it must hold; the writer stays open as long as this does."""

    table: Table
    rows: list[Row]
    writer: TableWriter | None = None
    is_indexed: bool = True
    segments: list[list[int]] = field(default_factory=list)  # the numbers of the rows in each segment, where it matters

    def __enter__(self) -> "Stored":
        return self

    def __exit__(self, *_: object) -> None:
        if self.writer is not None:
            self.writer.abandon()


Variant: TypeAlias = Callable[[Path, list[Row]], Stored]
VARIANTS: Final[dict[str, Variant]] = {}


def _variant(store: Variant) -> Variant:
    VARIANTS[store.__name__] = store
    return store


def numbered(rows: Iterable[Row], *, fill_time: bool = True) -> list[Row]:
    """The rows with a number each, and with a time, because a writer would fill in the current time."""
    found = []
    for number, row in enumerate(rows):
        time = row[TIMESTAMP] or (START + timedelta(hours=7 * number) if fill_time else None)
        found.append(row | {ID: number, TIMESTAMP: time})
    return found


def record_batch(rows: Sequence[Row], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    """The rows as an Arrow batch."""
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def _halves(rows: list[Row]) -> list[list[Row]]:
    return [rows[: len(rows) // 2], rows[len(rows) // 2 :]]


def _append(table: Table, rows: Sequence[Row], options: SegmentOptions = SMALL) -> None:
    with table.writer(options=options) as writer:
        writer.append(record_batch(rows))


def _open_writer(table: Table, rows: list[Row], options: SegmentOptions, segment_bytes: int = 1 << 30) -> Stored:
    writer = table.writer(options=options, segment_bytes=segment_bytes)
    for half in _halves(rows):
        writer.append(record_batch(half))
    return Stored(table, rows, writer)


@_variant
def in_open_batches(folder: Path, rows: list[Row]) -> Stored:
    """Nothing is committed, no batch is full."""
    return _open_writer(create_table(folder), rows, SegmentOptions())


@_variant
def in_open_and_closed_batches(folder: Path, rows: list[Row]) -> Stored:
    """Nothing is committed, some batches are full."""
    return _open_writer(create_table(folder, partition_by=None), rows, SMALL)


@_variant
def in_closed_batches_of_spilled_sketches(folder: Path, rows: list[Row]) -> Stored:
    """Every closed batch is in its own temporary sketch."""
    table = create_table(folder, partition_by=None)
    writer = table.writer(options=SMALL)
    for row in rows:
        writer.append(record_batch([row]))
        for segment in writer._segmenter._open.values():
            segment._sketch._spill()
    return Stored(table, rows, writer)


@_variant
def spilled_and_sealed(folder: Path, rows: list[Row]) -> Stored:
    """Temporary sketches were merged at seal."""
    stored = in_closed_batches_of_spilled_sketches(folder, rows)
    assert stored.writer is not None
    stored.writer.close()
    return stored


@_variant
def sealed_and_not_committed(folder: Path, rows: list[Row]) -> Stored:
    """The writer has sealed segments that are not in the log yet, and perhaps an open one."""
    return _open_writer(create_table(folder), rows, SMALL, segment_bytes=60)


@_variant
def partly_committed(folder: Path, rows: list[Row]) -> Stored:
    """Half of the rows are in the log, half in the writer."""
    table = create_table(folder)
    writer = table.writer(options=SMALL)
    first, second = _halves(rows)
    writer.append(record_batch(first))
    writer.commit()
    writer.append(record_batch(second))
    return Stored(table, rows, writer)


@_variant
def sealed(folder: Path, rows: list[Row]) -> Stored:
    """Partitioned by day, with small batches, and reopened."""
    _append(create_table(folder), rows)
    return Stored(open_table(folder), rows)


@_variant
def sealed_with_one_batch(folder: Path, rows: list[Row]) -> Stored:
    """Written by `Table.append`."""
    table = create_table(folder, partition_by=None)
    table.append(rows)
    return Stored(table, rows)


@_variant
def sealed_with_short_signatures(folder: Path, rows: list[Row]) -> Stored:
    """Half of all absent tokens seem to be present."""
    table = create_table(folder, partition_by=None, grams=[USERAPP, SOURCE])
    _append(table, rows, SegmentOptions(batch_bytes=40, slot_count=2, signature_bits=1))
    return Stored(table, rows)


@_variant
def sealed_by_the_rules_of_the_paper(folder: Path, rows: list[Row]) -> Stored:
    """Rules 1-8 and no winnowed grams, as in tables of earlier versions."""
    table = create_table(folder, partition_by=None, rules="paper")
    _append(table, rows)
    return Stored(open_table(folder), rows)


@_variant
def of_mixed_rules(folder: Path, rows: list[Row]) -> Stored:
    """Old and new segments in one table."""
    table = create_table(folder, partition_by=None, grams=[USERAPP])
    rules = [RuleSet.PAPER, RuleSet.WINNOWED]
    for number in range(0, len(rows), 2):
        _append(table, rows[number : number + 2], replace(SMALL, rules=rules[number // 2 % 2]))
    return Stored(table, rows)


@_variant
def of_mixed_rules_optimized(folder: Path, rows: list[Row]) -> Stored:
    """Old and new segments, merged into one with the table's rules."""
    stored = of_mixed_rules(folder, rows)
    stored.table.optimize()
    return stored


@_variant
def several_segments(folder: Path, rows: list[Row]) -> Stored:
    """A commit for every two rows."""
    table = create_table(folder, partition_by=None)
    for start in range(0, len(rows), 2):
        _append(table, rows[start : start + 2])
    return Stored(table, rows)


def without_empty_text(rows: Iterable[Row], *columns: str) -> list[Row]:
    """The rows as Delta stores them: an empty string in a partition column is null."""
    return [row | {name: row[name] or None for name in columns} for row in rows]


@_variant
def partitioned_by_source(folder: Path, rows: list[Row]) -> Stored:
    """Values that need quoting become names of folders."""
    table = create_table(folder, partition_by=SOURCE)
    _append(table, rows)
    return Stored(table, without_empty_text(rows, SOURCE))


@_variant
def partitioned_by_two_columns(folder: Path, rows: list[Row]) -> Stored:
    """Partitioned by a text column, whose nulls an attribute may replace, and a number."""
    table = create_table(folder, schema=SCHEMA, partition_by=[USERAPP, STATUS])
    _append(table, rows)
    return Stored(open_table(folder), without_empty_text(rows, USERAPP))


@_variant
def optimized(folder: Path, rows: list[Row]) -> Stored:
    """Sketches were merged."""
    stored = several_segments(folder, rows)
    stored.table.optimize()
    return stored


@_variant
def optimized_fully(folder: Path, rows: list[Row]) -> Stored:
    """Sketches were merged and whole fingerprints dropped."""
    stored = several_segments(folder, rows)
    stored.table.optimize(full=True)
    return stored


@_variant
def optimized_twice(folder: Path, rows: list[Row]) -> Stored:
    """A merged segment is merged again with new ones; some have lost their sidecars."""
    stored = several_segments(folder, _halves(rows)[0])
    stored.table.optimize(full=True)
    for row in _halves(rows)[1]:
        _append(stored.table, [row])
    if len(stored.table.snapshot().segments) > 1:
        _drop_sidecars(stored.table, every=3)
    table = open_table(folder)
    table.optimize()
    return Stored(table, rows)


def _drop_sidecars(table: Table, every: int = 1) -> None:
    for segment in table.snapshot().segments[::every]:
        Path(table.uri, sidecar_name(segment.name)).unlink()


@_variant
def unindexed(folder: Path, rows: list[Row]) -> Stored:
    """All sidecars are lost."""
    stored = sealed(folder, rows)
    _drop_sidecars(stored.table)
    return Stored(open_table(folder), rows, is_indexed=not rows)


@_variant
def indexed_again(folder: Path, rows: list[Row]) -> Stored:
    """All sidecars were lost and rewritten."""
    stored = unindexed(folder, rows)
    stored.table.index(grams=[USERAPP])
    return Stored(stored.table, rows)


def _foreign_folder(folder: Path, rows: list[Row]) -> None:
    """Write files as other programs do: other names, other types of text, Hive-style folders."""
    kinds = [pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.string()]
    for number in range(max(1, len(rows))):
        text = pa.field(USERAPP, kinds[number % 3])
        schema = SCHEMA.set(SCHEMA.get_field_index(USERAPP), text)
        place = folder / f"n={number % 2}"
        place.mkdir(parents=True, exist_ok=True)
        part = [row | {USERAPP: row[USERAPP]} for row in rows[number : number + 1]]
        pq.write_table(pa.Table.from_pylist(part, schema=schema), place / f"part-{number}.parquet")


@_variant
def foreign_folder(folder: Path, rows: list[Row]) -> Stored:
    """Parquet files without a log, scanned."""
    _foreign_folder(folder, rows)
    return Stored(open_table(folder), [row | {"n": str(row[ID] % 2)} for row in rows], is_indexed=False)


@_variant
def foreign_folder_indexed(folder: Path, rows: list[Row]) -> Stored:
    """Parquet files without a log, with sidecars."""
    stored = foreign_folder(folder, rows)
    stored.table.index()
    return Stored(open_table(folder), stored.rows)


@_variant
def foreign_delta(folder: Path, rows: list[Row]) -> Stored:
    """Written by delta-rs, partitioned, scanned; times may be missing."""
    rows = [row | ({TIMESTAMP: None} if row[ID] % 4 == 1 else {}) for row in rows]
    for half in _halves(rows):
        table = pa.Table.from_pylist(half, schema=SCHEMA)
        write_deltalake(str(folder), table, mode="append", partition_by=["loglevel"])
    return Stored(open_table(folder), rows, is_indexed=not rows)


@_variant
def foreign_delta_indexed(folder: Path, rows: list[Row]) -> Stored:
    """Written by delta-rs, with sidecars."""
    stored = foreign_delta(folder, rows)
    stored.table.index()
    return Stored(stored.table, stored.rows)


@_variant
def foreign_delta_appended_to(folder: Path, rows: list[Row]) -> Stored:
    """Half written by delta-rs, half by us, then merged."""
    first, second = _halves(rows)
    write_deltalake(str(folder), pa.Table.from_pylist(first, schema=SCHEMA))
    table = open_table(folder)
    _append(table, second)
    table.optimize()
    return Stored(table, rows)


@_variant
def grown(folder: Path, rows: list[Row]) -> Stored:
    """Each commit has only the columns for which its row has a value, so the table gains columns."""
    table = create_table(folder)
    for row in rows:
        table.append([{name: value for name, value in row.items() if value is not None}])
    return Stored(table, rows)


@_variant
def grown_while_open(folder: Path, rows: list[Row]) -> Stored:
    """Like `grown`, with nothing committed."""
    table = create_table(folder, partition_by=None)
    writer = table.writer(options=SMALL)
    for row in rows:
        writer.append([{name: value for name, value in row.items() if value is not None}])
    return Stored(table, rows, writer)


@_variant
def of_conflicting_types(folder: Path, rows: list[Row]) -> Stored:
    """The table has numbers where the rows have text: text that is not a number becomes the first attribute."""
    kinds = [field if field.name != USERAPP else pa.field(USERAPP, pa.int64()) for field in SCHEMA]
    table = create_table(folder, schema=pa.schema(kinds), partition_by=None)
    expected = []
    for row in rows:
        _append(table, [row])
        number = _as_number(row[USERAPP])
        moved = [] if number is not None or row[USERAPP] is None else [(USERAPP, row[USERAPP])]
        expected.append(row | {USERAPP: number, ATTRIBUTES: [*moved, *(row[ATTRIBUTES] or [])]})
    return Stored(table, expected)


def _as_number(text: str | None) -> int | None:
    try:
        return pa.scalar(text, pa.string()).cast(pa.int64()).as_py()
    except pa.ArrowInvalid:
        return None


@_variant
def after_a_delete(folder: Path, rows: list[Row]) -> Stored:
    """Every third row is gone."""
    stored = several_segments(folder, rows)
    doomed = {row[ID] for row in rows[::3]}
    stored.table.delete(OneOf(ID, tuple(doomed)))
    return Stored(stored.table, [row for row in rows if row[ID] not in doomed])


@_variant
def after_everything(folder: Path, rows: list[Row]) -> Stored:
    """Grown, deleted from, merged, vacuumed and reindexed, with more rows in the writer."""
    first, second = _halves(rows)
    stored = grown(folder, first)
    doomed = {row[ID] for row in first[::3]}
    table = stored.table
    table.delete(OneOf(ID, tuple(doomed)))
    table.optimize()
    table.vacuum(retention_hours=0)
    table.index(rebuild=True)
    rest = _open_writer(table, second, SMALL)
    return Stored(table, [row for row in rows if row[ID] not in doomed], rest.writer)
