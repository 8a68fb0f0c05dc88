"""Writes search results in each output format, batch by batch, without keeping any."""

import bisect
import contextlib
import csv
import io
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from coprlake.cli.printing.harmless import harmless, harmless_json, one_line
from coprlake.cli.printing.row_values import (
    cell,
    is_printed_as_text,
    local_moments,
    moments,
    plain_values,
    raw_texts,
    values,
)
from coprlake.errors import UsageError
from coprlake.files import written_aside
from coprlake.records import CONTENT, LOGLEVEL, SOURCE, TIMESTAMP

if TYPE_CHECKING:
    from coprlake.predicate.predicates import Predicate

SHOWN = (TIMESTAMP, LOGLEVEL, SOURCE, CONTENT)
"""The columns of the table format, if the table has them."""

_MATCH, _GROUP = -2, -1
"""The indexes of the two columns that context adds."""
_SEPARATOR = "--"
_WIDEST = 32
_MOST_LINES = 6
"""Of a folded record."""
LEVEL_COLORS = {
    "FATAL": "91;1",
    "ERROR": "31;1",
    "WARN": "33",
    "NOTICE": "36",
    "INFO": "32",
    "DEBUG": "34",
    "TRACE": "2",
}
LEVEL_COLORS |= {"WARNING": "33", "CRITICAL": "91;1", "ERR": "31;1"}


class Writer(Protocol):
    """A writer of search results."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch of records."""

    def close(self) -> None:
        """Finish after the last batch."""


def painted(text: str, code: str) -> str:
    """Colour a text."""
    return f"\x1b[{code}m{text}\x1b[0m" if text else text


def highlighted(text: str, spans: Sequence[tuple[int, int]], *, dim: bool = False) -> str:
    """Highlight spans of a text, and make its control characters harmless."""
    text = harmless(text)
    pieces, end = [], 0
    for start, stop in spans:
        pieces += [painted(text[end:start], "2") if dim else text[end:start], painted(text[start:stop], "1;31")]
        end = stop
    return "".join([*pieces, painted(text[end:], "2") if dim else text[end:]])


class _Groups:
    """Tells where one group of adjacent records ends and the next begins."""

    def __init__(self, has_context: bool) -> None:
        self._has_context = has_context
        self._last: tuple[Any, ...] | None = None

    def starts(self, batch: pa.RecordBatch) -> list[bool]:
        """Whether a separator precedes each record; never without context."""
        if not self._has_context:
            return [False] * batch.num_rows
        keys = [batch.columns[_GROUP], *([batch.column(SOURCE)] if SOURCE in batch.schema.names else [])]
        found = []
        for key in zip(*map(values, keys), strict=True):
            found.append(self._last is not None and key != self._last)
            self._last = key
        return found


class LinesWriter:
    """Writes only the log line, byte for byte; several columns are separated by tabs.

    Args:
        out: the stream to write to.
        columns: the columns to write.
        predicate: what to highlight; None for no colours.
        is_terminal: whether control characters must be made harmless.
        has_context: whether the results have the two columns that context adds.
        are_originals: whether records that came from JSON are written as JSON.
    """

    def __init__(
        self,
        out: IO[bytes],
        columns: Sequence[str],
        predicate: "Predicate | None",
        *,
        is_terminal: bool,
        has_context: bool,
        are_originals: bool = False,
    ) -> None:
        self._out = out
        self._columns = columns
        self._predicate = predicate
        self._is_terminal = is_terminal
        self._has_context = has_context
        self._groups = _Groups(has_context)
        self._are_originals = are_originals

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch of records."""
        lines = self._lines(batch)
        if self._are_originals:
            lines = [
                line if own is None else harmless_json(own).encode(errors="replace")
                for own, line in zip(_originals(batch), lines, strict=True)
            ]
        if self._has_context:
            separated = zip(self._groups.starts(batch), lines, strict=True)
            lines = [part for starts, line in separated for part in ([_SEPARATOR.encode()] if starts else []) + [line]]
        self._out.write(b"\n".join(lines) + b"\n" if lines else b"")
        self._out.flush()

    def _lines(self, batch: pa.RecordBatch) -> list[bytes]:
        columns = [batch.column(name) for name in self._columns]
        if self._predicate is None and not self._is_terminal:
            if len(columns) == 1 and is_printed_as_text(columns[0].type):
                return [text or b"" for text in raw_texts(columns[0])]
            return ["\t".join(map(cell, row)).encode() for row in zip(*map(values, columns), strict=True)]
        paint = [_painter(self._predicate if name == CONTENT else None) for name in self._columns]
        rows = zip(*map(values, columns), strict=True)
        return ["\t".join(p(cell(v)) for p, v in zip(paint, row, strict=True)).encode() for row in rows]

    def close(self) -> None:
        """Do nothing: every batch has been written."""


def _painter(predicate: "Predicate | None") -> Any:
    if predicate is None:
        return harmless
    from coprlake.predicate.deciding.highlighting import highlights

    return lambda text: highlighted(text, highlights(predicate, text))


def folded_lines(text: str, predicate: "Predicate | None") -> tuple[str, int]:
    """The first line of a text and those in which the predicate finds something, and the number of the others."""
    lines = text.split("\n")
    kept = {0}
    if predicate is not None:
        from coprlake.predicate.deciding.highlighting import highlights

        ends = list(itertools.accumulate(len(line) + 1 for line in lines))
        for start, end in highlights(predicate, text):
            kept.update(range(bisect.bisect_right(ends, start), bisect.bisect_right(ends, end - 1) + 1))
    chosen = sorted(kept)[:_MOST_LINES]
    return "\n".join(lines[number] for number in chosen), len(lines) - len(chosen)


class ColumnWriter:
    """Writes aligned columns for people: time, level, source, content.

    Widths fit the first batch and grow as needed, since output does not wait for later batches. The last column,
    usually the content, is never cut off, and its further lines are indented; the others are cut at a maximum width.

    Args:
        out: the stream to write to.
        columns: the columns to write.
        predicate: what to highlight; None for no colours.
        header: whether to write the names of the columns first.
        has_context: whether the results have the two columns that context adds.
        folded: shows the first line of each record, and those in which this predicate finds something; None shows all.
        local_times: whether to show the time of a record in the local zone, with its offset, instead of in UTC.
    """

    def __init__(
        self,
        out: IO[bytes],
        columns: Sequence[str],
        predicate: "Predicate | None",
        *,
        header: bool,
        has_context: bool,
        folded: "Predicate | None" = None,
        local_times: bool = False,
    ) -> None:
        self._out = out
        self._columns = columns
        self._predicate = predicate
        self._header = header
        self._folded = folded
        self._moments = local_moments if local_times else partial(moments, unit="ms")
        self._widths = [0] * len(columns)
        self._has_context = has_context
        self._groups = _Groups(has_context)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch of records."""
        columns = [self._cells(batch, name) for name in self._columns]
        for place, texts in enumerate(columns):
            width = max([self._widths[place], *(min(len(text), _WIDEST) for text in texts)])
            self._widths[place] = width
        lines = []
        if self._header:
            names = [one_line(name) for name in self._columns]
            self._widths = [max(w, len(name)) for w, name in zip(self._widths, names, strict=True)]
            heads = (name.ljust(width) for name, width in zip(names, self._widths, strict=True))
            lines.append(self._paint("  ".join(heads).rstrip(), "1"))
            self._header = False
        marks = values(batch.columns[_MATCH]) if self._has_context else [True] * batch.num_rows
        for row, matched, starts in zip(zip(*columns, strict=True), marks, self._groups.starts(batch), strict=True):
            if starts:
                lines.append(self._paint(_SEPARATOR, "2"))
            lines.append(self._line(row, matched))
        self._out.write("".join(f"{line}\n" for line in lines).encode(errors="replace"))
        self._out.flush()

    def _cells(self, batch: pa.RecordBatch, name: str) -> list[str]:
        column = batch.column(name)
        if name == TIMESTAMP and pa.types.is_timestamp(column.type):
            return [text or "" for text in self._moments(column)]
        return [cell(value) for value in values(column)]

    def _line(self, row: Sequence[str], matched: bool) -> str:
        parts = []
        for name, text, width in zip(self._columns[:-1], row[:-1], self._widths[:-1], strict=True):
            text = harmless(text).replace("\n", " ")
            text = text if len(text) <= _WIDEST else "…" + text[1 - _WIDEST :]
            parts.append(self._paint(text, self._code(name, text, matched)) + " " * (width - len(text)))
        parts.append(self._last(self._columns[-1], row[-1], matched))
        return "  ".join(parts).rstrip(" ")

    def _last(self, name: str, text: str, matched: bool) -> str:
        hidden = 0
        if self._folded is not None and "\n" in text:
            text, hidden = folded_lines(text, self._folded if name == CONTENT and matched else None)
        if self._predicate is None:
            shown = harmless(text)
        elif name == CONTENT and matched:
            from coprlake.predicate.deciding.highlighting import highlights

            shown = highlighted(text, highlights(self._predicate, text))
        else:
            shown = highlighted(text, (), dim=not matched)
        more = self._paint(f" +{hidden:,} line{'' if hidden == 1 else 's'}", "2") if hidden else ""
        return shown.replace("\n", "\n    ") + more

    def _code(self, name: str, text: str, matched: bool) -> str:
        if name == LOGLEVEL and matched:
            return LEVEL_COLORS.get(text.upper(), "35")
        if name == SOURCE and matched:
            return "36"
        return "2" if name == TIMESTAMP or not matched else "0"

    def _paint(self, text: str, code: str) -> str:
        return text if self._predicate is None or code == "0" else painted(text, code)

    def close(self) -> None:
        """Do nothing: every batch has been written."""


def _originals(batch: pa.RecordBatch) -> list[str | None]:
    """The JSON of each record that came from JSON, as it was."""
    from coprlake.segment.original_lines import json_lines

    return json_lines(batch)


class JsonWriter:
    """Writes one JSON object per line, without the fields that are null.

    Args:
        out: the stream to write to.
        columns: the columns to write.
        are_originals: whether records that came from JSON are written as they were.
    """

    def __init__(self, out: IO[bytes], columns: Sequence[str], *, are_originals: bool = False) -> None:
        self._out = out
        self._columns = columns
        self._are_originals = are_originals

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch of records."""
        names = self._columns
        encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        originals = _originals(batch) if self._are_originals else [None] * batch.num_rows
        others = (
            batch.filter(pa.array([own is None for own in originals], pa.bool_())) if self._are_originals else batch
        )
        rows = zip(*(plain_values(others.column(name)) for name in names), strict=True)
        lines = []
        for own in originals:
            if own is None:
                row = next(rows)
                own = encode({name: value for name, value in zip(names, row, strict=True) if value is not None})
            lines.append(harmless_json(own) + "\n")
        self._out.write("".join(lines).encode(errors="replace"))
        self._out.flush()

    def close(self) -> None:
        """Do nothing: every batch has been written."""


class CsvWriter:
    """Writes comma-separated values with a header, as in RFC 4180 but with plain line feeds."""

    def __init__(self, out: IO[bytes], columns: Sequence[str], is_terminal: bool) -> None:
        self._out = out
        self._columns = columns
        self._is_terminal = is_terminal
        self._write_rows([columns])

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch of records."""
        self._write_rows(zip(*(map(cell, values(batch.column(name))) for name in self._columns), strict=True))

    def _write_rows(self, rows: Any) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        shown = harmless(text.getvalue()) if self._is_terminal else text.getvalue()
        self._out.write(shown.encode(errors="replace"))
        self._out.flush()

    def close(self) -> None:
        """Do nothing: every batch has been written."""


class ParquetWriter:
    """Writes a Parquet file with the column types of the table."""

    def __init__(self, out: IO[bytes], columns: Sequence[str], schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._columns = columns
        schema = pa.schema([schema.field(name) for name in columns])
        self._writer: pq.ParquetWriter = pq.ParquetWriter(out, schema, compression="zstd")

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch of records."""
        self._writer.write_batch(batch.select(self._columns))

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


@contextlib.contextmanager
def destination(path: str | None) -> Iterator[IO[bytes]]:
    """Open standard output, or a file that appears under its name only once it is complete."""
    if path is None or path == "-":
        yield sys.stdout.buffer
        return
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{path}: is a folder; name a file")
    if not target.parent.is_dir():
        raise UsageError(f"{path}: no such folder: {target.parent}")
    if target.exists() and not target.is_file():  # a pipe or a device, which must not be replaced
        with target.open("wb") as file:
            yield file
        return
    with written_aside(path, synced=False) as unfinished, Path(unfinished).open("wb") as file:
        yield file
