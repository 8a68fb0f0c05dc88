"""Tables as text: comma-separated values and their relatives, with a first line that names the columns."""

import csv
from collections.abc import Iterator
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from coprlake.intake.fields.flattening import Attribute
from coprlake.intake.fields.mapping import FileMapper
from coprlake.intake.formats.detection import delimiter_of
from coprlake.intake.formats.ndjson import joined
from coprlake.intake.lines import Lines, newline_joined, spans_before, split_long, text_column
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.intake.sources.blocks import BlockReader
from coprlake.kernel import I64Array, U8Array, long_kernel
from coprlake.text.arrow_strings import bytes_of
from coprlake.text.byte_classes import NEWLINE

_QUOTE: Final = 34
_FEW: Final = 64
"""Values that are looked at first: Arrow reads a whole column before it says that its first value is no number."""
_TYPES: Final = (pa.int64(), pa.float64(), pa.bool_())


@long_kernel
def row_ends(data: U8Array, out: I64Array) -> int:
    """The newlines that are not inside quotes, in their order; how many."""
    count, quoted = 0, False
    for i in range(len(data)):
        if data[i] == _QUOTE:
            quoted = not quoted
        elif data[i] == NEWLINE and not quoted:
            out[count] = i
            count += 1
    return count


def split_rows(data: U8Array, *, last: bool) -> tuple[Lines, int]:
    """As `split_lines`, but a quoted newline does not end a row."""
    newlines = np.flatnonzero(data == NEWLINE)
    ends = newlines
    if len(newlines) and (data == _QUOTE).any():
        ends = np.empty(len(newlines), np.int64)
        ends = ends[: row_ends(data, ends)]
    return spans_before(data, ends, last=last)


class CsvReader:
    """Turns blocks of CSV into records."""

    def __init__(
        self, blocks: BlockReader, name: str, mapper: FileMapper, options: ReadOptions, report: IntakeReport
    ) -> None:
        self._blocks = blocks
        self._mapper = mapper
        self._limit_bytes = options.max_record_bytes
        self._report = report
        lines = [line for line in blocks.head.decode("utf-8", "replace").splitlines() if line.strip()][:50]
        self._delimiter = (
            delimiter_of(lines, name or "x.csv") or delimiter_of(lines, "x.csv") if lines else None
        ) or ","
        self._names: list[str] | None = None
        self._kinds: dict[str, pa.DataType] = {}

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        carry, last = b"", False
        while not last:
            block, last = self._blocks.read(carry)
            data = bytes_of(block)
            rows, used = split_rows(data, last=last)
            if len(data) - used > self._limit_bytes:  # a quote that nobody closed
                rows, used = Lines(np.append(rows.starts, used), np.append(rows.ends, len(data))), len(data)
            carry = block[used:]
            rows, goes_on = split_long(data, rows, self._limit_bytes)
            self._report.split += int(np.count_nonzero(goes_on))
            rows = rows[rows.ends > rows.starts]
            if rows.count and self._names is None:
                first = text_column(data, rows[:1])
                self._names = self._header(first[0].as_py())
                rows = rows[1:]
                if "\n" in first[0].as_py():  # perhaps a quote that nobody closed has taken in some lines, or all
                    yield self._plain(first)
            if rows.count:
                yield self._batch(text_column(data, rows))

    def _header(self, line: str) -> list[str]:
        """The names in the first row; a name that is empty or comes again gets a number."""
        names: list[str] = []
        try:
            cells = next(csv.reader([line], delimiter=self._delimiter))
        except csv.Error:
            cells = line.split(self._delimiter)
        for number, cell in enumerate(cells):
            name = cell.strip() or f"column_{number + 1}"
            names.append(name if name not in names else f"{name}_{number + 1}")
        return names

    def _table(self, raw: pa.StringArray, names: list[str], invalid: list[int]) -> pa.Table:
        """The rows as texts; the numbers of those with too many or too few cells go to `invalid`."""

        def note(row: pyarrow.csv.InvalidRow) -> Literal["skip"]:
            assert row.number is not None  # only unknown if threads read
            invalid.append(row.number)
            return "skip"

        text = newline_joined(raw)
        return pyarrow.csv.read_csv(
            pa.BufferReader(text),
            read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=text.size + 1, column_names=names),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=note, ignore_empty_lines=False
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
                quoted_strings_can_be_null=False,
            ),
        )

    def _batch(self, raw: pa.StringArray) -> pa.RecordBatch:
        assert self._names is not None
        invalid: list[int] = []
        try:
            table = self._table(raw, self._names, invalid)
        except pa.ArrowInvalid:
            table = None
        if table is None or table.num_rows != len(raw) - len(invalid):  # quotes that do not pair
            return self._halves(raw)
        broken = np.zeros(len(raw), np.bool_)
        broken[np.array(invalid, np.int64) - 1] = True
        sound = np.flatnonzero(~broken)
        places = np.where(broken, 0, np.cumsum(~broken) - 1)
        columns: list[tuple[str, pa.Array]] = []
        attributes: list[Attribute] = []
        for name, column in zip(self._names, table.columns, strict=True):
            texts = column.combine_chunks().cast(pa.string())
            typed, misfits = self._typed(name, texts)
            if len(misfits):
                self._report.misfits += len(misfits)
                attributes.append(Attribute(name, sound[misfits], texts.take(pa.array(misfits))))
            columns.append((name, typed.take(pa.array(places, mask=broken)) if broken.any() else typed))
        self._report.broken += len(invalid)
        return self._mapper.batch(columns, raw, len(raw), broken=broken, attributes=attributes)

    def _halves(self, raw: pa.StringArray) -> pa.RecordBatch:
        """Rows that cannot be read together, by halves; a single one that cannot be read is plain text."""
        if len(raw) > 1:
            half = len(raw) // 2
            return joined([self._batch(raw[:half]), self._batch(raw[half:])])
        return self._plain(raw)

    def _plain(self, raw: pa.StringArray) -> pa.RecordBatch:
        """One row as plain text."""
        self._report.broken += 1
        return self._mapper.batch([], raw, 1, broken=np.ones(1, np.bool_))

    def _typed(self, name: str, texts: pa.StringArray) -> tuple[pa.Array, I64Array]:
        """The column in the type that all its values had first, and the rows whose values do not fit."""
        kind = self._kinds.get(name) or self._mapper.types.type_of(name)
        nothing = np.zeros(0, np.int64)
        if kind is None and texts.null_count < len(texts):
            few = texts.drop_null()[:_FEW]
            likely = [kind for kind in _TYPES if _cast(few, kind) is not None]
            kind = next((kind for kind in likely if _cast(texts, kind) is not None), pa.string())
            self._kinds[name] = kind
        if kind not in _TYPES:
            return texts, nothing
        typed = _cast(texts, kind)
        if typed is not None:
            return typed, nothing
        fits = np.array(
            [value is None or _cast(pa.array([value], pa.string()), kind) is not None for value in texts.to_pylist()],
            np.bool_,
        )
        typed = _cast(pc.if_else(pa.array(fits), texts, pa.scalar(None, pa.string())), kind)
        assert typed is not None  # each value fits by itself
        return typed, np.flatnonzero(~fits)


def _cast(texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """The values in another type; None if that would change one of them (``007`` is no number)."""
    try:
        typed = texts.cast(kind)
    except pa.ArrowInvalid:
        return None
    if kind == pa.bool_():
        plain = pc.is_in(texts, pa.array(["true", "false", "True", "False", None], pa.string()))
        return typed if pc.all(plain, min_count=0).as_py() else None
    if kind == pa.int64():
        same = pc.equal(typed.cast(pa.string()), texts)
    else:
        same = pc.match_substring_regex(texts, r"^-?(0|[1-9]\d{0,14})(\.\d+)?([eE][+-]?\d{1,2})?$")
    return typed if pc.all(pc.or_kleene(same, texts.is_null()), min_count=0).as_py() else None
