"""From the keys of a structured log to the columns of a record: which key is the timestamp, and what has no column.

A column keeps the type that it got first, over all files of an intake. Values of another type, keys beyond the first
two hundred and names that a table cannot have become attributes: nothing is lost, and no file can change the schema.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.intake.fields.flattening import Attribute, as_text, attribute, attribute_maps, flattened, json_text
from coprlake.intake.fields.keys import CONTENT_KEYS, LEVEL_KEYS, SOURCE_KEYS, TIMESTAMP_KEYS
from coprlake.intake.fields.levels import find_levels, level_column, level_named
from coprlake.intake.fields.timestamps import Clock, epoch_micros
from coprlake.intake.formats.text_lines import constant, times_or_now
from coprlake.intake.lines import BoolArray, spans_of
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.kernel import I64Array
from coprlake.records import ATTRIBUTES, CONTENT, LOGLEVEL, SOURCE, TIMESTAMP
from coprlake.text.json_shapes import field_name

COLUMN_LIMIT: Final = 200
"""Distinct keys that become columns; a log whose keys are ids would make a million."""

_NAME: Final = re.compile(r"[^\s,;{}()=\x00-\x1f]{1,128}")
"""What Delta Lake takes as the name of a column."""

_PINO_LEVELS: Final = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}
Convert = Callable[[pa.Array], pa.Array | None]


class ColumnTypes:
    """The columns there are so far, and their types."""

    def __init__(self) -> None:
        self._types: dict[str, tuple[str, pa.DataType]] = {}

    def fitted(self, name: str, column: pa.Array) -> pa.Array | None:
        """The column in the type that its name has, or None if it cannot be a column. Case makes no other name."""
        known = self._types.get(name.lower())
        if known is None:
            if len(self._types) >= COLUMN_LIMIT or not _NAME.fullmatch(name):
                return None
            self._types[name.lower()] = (name, column.type)
            return column
        if known[0] != name:
            return None
        if column.type == known[1]:
            return column
        if known[1] == pa.string():
            return as_text(column)
        if known[1] == pa.float64() and column.type == pa.int64():
            try:
                return column.cast(known[1])
            except pa.ArrowInvalid:
                return None
        return None

    def type_of(self, name: str) -> pa.DataType | None:
        """The type of the column with exactly this name."""
        known = self._types.get(name.lower())
        return known[1] if known and known[0] == name else None


def _text_only(column: pa.Array) -> pa.Array | None:
    return column if pa.types.is_string(column.type) else None


def _levels(column: pa.Array) -> pa.Array | None:
    """The names of levels: given by name, or by pino's numbers."""
    if not pa.types.is_string(column.type) and not pa.types.is_integer(column.type):
        return None
    coded = column.dictionary_encode()
    values = coded.dictionary.to_pylist()
    if pa.types.is_integer(column.type):
        names = [_PINO_LEVELS.get(value) for value in values]
    else:
        names = [level_named(value) or None for value in values]
    return pa.array(names, pa.string()).take(coded.indices)


class RecordMapper:
    """What all files of an intake have in common: the options and the types of the columns."""

    def __init__(self, options: ReadOptions, report: IntakeReport) -> None:
        self.options = options
        self.report = report
        self.types = ColumnTypes()

    def for_file(self, source: str, clock: Clock) -> "FileMapper":
        """The mapper for one file."""
        return FileMapper(self, source, clock)


class FileMapper:
    """Makes records of the rows of one file."""

    def __init__(self, mapper: RecordMapper, source: str, clock: Clock) -> None:
        self._options = mapper.options
        self._report = mapper.report
        self._source = source
        self._clock = clock
        self.types = mapper.types

    def batch(
        self,
        columns: Sequence[tuple[str, pa.Array]],
        raw: pa.StringArray | None,
        count: int,
        *,
        broken: BoolArray | None = None,
        attributes: Sequence[Attribute] = (),
    ) -> pa.RecordBatch:
        """Records.

        Args:
            columns: what the rows have, by key; any types.
            raw: the rows as in the file, the content of those that have no other; None where there is no such text.
            count: of rows.
            broken: rows that could not be parsed and are only text.
            attributes: what already is known to have no column.
        """
        others, kept = _by_name(columns, count)
        kept += attributes
        batch = self._roles(others, raw, count, broken)
        for name, column in others.items():
            self._place(name, column, batch, kept)
        if kept:
            batch[ATTRIBUTES] = attribute_maps(kept, count)
        self._report.records += count
        return pa.RecordBatch.from_pydict(batch)

    def reorder(self, order: I64Array) -> None:
        """Say that the last rows, as many as `order` has, belong in this order: nothing here depends on it."""

    def _roles(
        self, columns: dict[str, pa.Array], raw: pa.StringArray | None, count: int, broken: BoolArray | None
    ) -> dict[str, pa.Array]:
        """The columns that every record has; what they were made of is taken out of `columns`.

        The level and the source stay there too, as they are written: a plain search looks for what a record says.
        """
        options, everything = self._options, dict(columns)
        times = self._role(columns, options.timestamp_key, TIMESTAMP_KEYS, self._micros)
        levels = self._role(columns, options.level_key, LEVEL_KEYS, _levels, is_kept=True)
        sources = None
        if options.source is None:
            sources = self._role(columns, options.source_key, SOURCE_KEYS, as_text, is_kept=True)
        content = self._role(columns, options.content_key, CONTENT_KEYS, as_text if options.content_key else _text_only)
        if content is None or content.null_count:
            text = raw if raw is not None else _rows_as_json(everything, count)
            content = text if content is None else pc.coalesce(content, text)
        times, levels = self._of_text(raw, broken, times, levels, count)
        known = times.is_valid().to_numpy(zero_copy_only=False)
        if sources is None:
            sources = constant(self._source, count)
        else:
            sources = sources.fill_null(self._source).dictionary_encode()
        return {
            TIMESTAMP: times_or_now(times.fill_null(0).to_numpy(), known, self._report),
            SOURCE: sources,
            LOGLEVEL: levels.dictionary_encode(),
            CONTENT: content,
        }

    def _place(self, name: str, column: pa.Array, batch: dict[str, pa.Array], kept: list[Attribute]) -> None:
        """Make `column` a column of the batch, or attributes."""
        name = field_name(name)
        fitted = None if self._options.attributes or name in batch else self.types.fitted(name, column)
        if fitted is not None:
            batch[name] = fitted
            return
        if self.types.type_of(name) is not None:
            self._report.misfits += len(column) - column.null_count
        kept.append(attribute(name, column))

    def _role(
        self,
        columns: dict[str, pa.Array],
        key: str | None,
        usual: Sequence[str],
        convert: Convert,
        *,
        is_kept: bool = False,
    ) -> pa.Array | None:
        """The first value that each row has under one of the names, taken out of `columns` unless `is_kept`."""
        by_lower = {name.lower(): name for name in reversed(columns)}
        names = [key] if key is not None else [by_lower[name] for name in usual if name in by_lower]
        found: pa.Array | None = None
        for name in names:
            if name not in columns:
                continue
            column = columns[name]
            values = convert(column)
            if values is None or values.null_count == len(values):
                continue
            taken = values.is_valid() if found is None else pc.and_(found.is_null(), values.is_valid())
            found = values if found is None else pc.coalesce(found, values)
            if not is_kept:
                rest = pc.if_else(taken, pa.scalar(None, column.type), column)
                del columns[name]
                if rest.null_count < len(rest):
                    columns[name] = rest
            if found.null_count == 0:
                break
        return found

    def _micros(self, column: pa.Array) -> pa.Array | None:
        """Microseconds UTC of a column of timestamps, texts or numbers; null where it is none."""
        types = pa.types
        if types.is_timestamp(column.type):
            micros = column.cast(pa.int64())
            if column.type.tz is None:
                naive = np.full(len(column), 1, np.uint8)
                moved = self._clock.utc_micros(micros.fill_null(0).to_numpy(), naive)
                return pa.array(moved, mask=column.is_null().to_numpy(zero_copy_only=False))
            return micros
        if types.is_date(column.type):
            return self._micros(column.cast(pa.timestamp("us")))
        if types.is_integer(column.type) or types.is_floating(column.type):
            return epoch_micros(column)
        if not isinstance(column, pa.StringArray):
            return None
        data, spans = spans_of(column)
        stamps = self._clock.stamps(data, spans.starts, spans.ends)
        known = (stamps.kinds != 0) & (stamps.firsts == spans.starts)
        return pa.array(self._clock.utc_micros(stamps.micros, stamps.kinds), mask=~known)

    def _of_text(
        self,
        raw: pa.StringArray | None,
        broken: BoolArray | None,
        times: pa.Array | None,
        levels: pa.Array | None,
        count: int,
    ) -> tuple[pa.Array, pa.Array]:
        """Timestamps and levels with those of broken rows, which are found in their text."""
        times = pa.nulls(count, pa.int64()) if times is None else times
        levels = pa.nulls(count, pa.string()) if levels is None else levels
        if broken is None or raw is None or not broken.any():
            return times, levels
        rows = np.flatnonzero(broken)
        data, spans = spans_of(raw.take(pa.array(rows)))
        stamps = self._clock.stamps(data, spans.starts, spans.ends)
        numbers = np.empty(len(rows), np.int64)
        find_levels(data, spans.starts, spans.ends, stamps.firsts, stamps.stops, numbers)
        micros = pa.array(self._clock.utc_micros(stamps.micros, stamps.kinds), mask=stamps.kinds == 0)
        mask = pa.array(broken)
        return (
            pc.replace_with_mask(times, mask, micros),
            pc.replace_with_mask(levels, mask, level_column(numbers).cast(pa.string())),
        )


def _by_name(columns: Sequence[tuple[str, pa.Array]], count: int) -> tuple[dict[str, pa.Array], list[Attribute]]:
    """The columns that have values, taken apart; those whose name is taken already as attributes."""
    found: dict[str, pa.Array] = {}
    again: list[Attribute] = []
    for name, column in flattened(columns):
        if column.null_count == count:
            continue
        if name in found:
            again.append(attribute(name, column))
        else:
            found[name] = column
    return found, again


def _rows_as_json(columns: dict[str, pa.Array], count: int) -> pa.StringArray:
    """The rows of a format that has no text of its own."""
    if not columns:
        return pa.array(["{}"] * count, pa.string())
    rows = pa.Table.from_pydict(columns).to_pylist()
    texts = (json_text({name: value for name, value in row.items() if value is not None}) for row in rows)
    return pa.array(texts, pa.string())
