"""Messages of a queue become records: each message is one, parsed by the same code as the lines of files.

A message is never joined with another and never split, whatever newlines it has. Line ends and blank lines at its end
are not part of its content.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.errors import UsageError
from coprlake.intake.fields.mapping import FileMapper, RecordMapper
from coprlake.intake.fields.timestamps import Clock
from coprlake.intake.formats.access import access_parts
from coprlake.intake.formats.detection import detect
from coprlake.intake.formats.ndjson import NdjsonReader
from coprlake.intake.formats.syslog import syslog_parts
from coprlake.intake.formats.text_lines import PartsOf, TextReader
from coprlake.intake.lines import BoolArray, Lines, newline_joined, spans_of, split_lines, text_column, trim_blank_lines
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.intake.sources.blocks import BlockReader
from coprlake.kernel import I64Array, U8Array, i64, long_kernel
from coprlake.records import CONTENT, SOURCE, TIMESTAMP, TIMESTAMP_TYPE
from coprlake.text.arrow_strings import bytes_of
from coprlake.text.byte_classes import BACKSLASH, BLANK, NEWLINE, OPEN_BRACE, QUOTE, RETURN, TAB

FORMATS: Final = ("auto", "text", "ndjson", "syslog", "access")
_PARTS: Final[dict[str, PartsOf | None]] = {"text": None, "syslog": syslog_parts, "access": access_parts}
_SAMPLE_MESSAGES: Final = 50
_SAMPLE_CHARACTERS: Final = 1024 * 1024
_NO_LIMIT_BYTES: Final = 1 << 29
_UNNAMED: Final = "\x00no source\x00"
"""Stands for a source until it is known which messages name one themselves."""

_FORBIDDEN: Final = 31


@long_kernel
def json_lines(data: U8Array, starts: I64Array, ends: I64Array, out_ends: I64Array, out: U8Array) -> int:
    """Each ``data[starts[i]:ends[i]]``, none empty, as a line that is the same object in JSON, or none as before.

    Where it begins with a brace, line ends become blanks, but in a string, which has none in JSON, a control character
    that keeps it wrong. Of anything else it is the first line, or a blank if that is empty. A newline follows each;
    `out` has room for two bytes more than each message. ``out_ends`` gets where each ends. Returns the bytes written.
    """
    written = 0
    for message in range(len(starts)):
        i, end, begin = i64(starts[message]), i64(ends[message]), written
        first = i
        while first < end - 1 and (data[first] == BLANK or TAB <= data[first] <= RETURN):
            first += 1
        is_object, in_string = data[first] == OPEN_BRACE, False
        while i < end and (is_object or data[i] != NEWLINE):
            byte = data[i]
            out[written] = byte
            if is_object and byte in (NEWLINE, RETURN):
                out[written] = _FORBIDDEN if in_string else BLANK
            elif byte == QUOTE:
                in_string = not in_string
            elif byte == BACKSLASH and in_string and i + 1 < end and data[i + 1] in (QUOTE, BACKSLASH):
                written += 1
                i += 1
                out[written] = data[i]
            written += 1
            i += 1
        while written > begin and out[written - 1] == RETURN:
            written -= 1
        if written == begin:
            out[written] = BLANK
            written += 1
        out_ends[message] = written
        out[written] = NEWLINE
        written += 1
    return written


class _Block(BlockReader):
    """Text that is in memory, as a file that is one block."""

    def __init__(self) -> None:
        self.text = b""

    def read(self, carry: bytes) -> tuple[bytes, bool]:
        """All of it."""
        return self.text, True


class _MessageMapper(FileMapper):
    """Also notes which rows have no timestamp; rows come in their order."""

    def begin(self, clock: Clock) -> None:
        """Forget the rows of the block before."""
        self._clock = clock
        self.unstamped: list[BoolArray] = []

    def _of_text(
        self,
        raw: pa.StringArray | None,
        broken: BoolArray | None,
        times: pa.Array | None,
        levels: pa.Array | None,
        count: int,
    ) -> tuple[pa.Array, pa.Array]:
        times, levels = super()._of_text(raw, broken, times, levels, count)
        self.unstamped.append(times.is_null().to_numpy(zero_copy_only=False))
        return times, levels

    def reorder(self, order: I64Array) -> None:
        """The last rows, as many as `order` has, belong in this order."""
        parts: list[BoolArray] = []
        while sum(map(len, parts)) < len(order):
            parts.insert(0, self.unstamped.pop())
        self.unstamped.append(np.concatenate(parts)[order])


class MessageReader:
    """Turns messages into records, batch after batch; a column has the same type in all of them.

    Args:
        options: how to read them. With the format ``auto`` each batch has the format of its first messages. Records
            are never cut, and `ReadOptions.multiline` does not matter.
        report: counts; a message is a line, and a call of `read` counts as a file of its format.

    Raises:
        UsageError: the format is one that only files have.
    """

    def __init__(self, options: ReadOptions, report: IntakeReport) -> None:
        if options.format not in FORMATS:
            raise UsageError(f"messages cannot have the format {options.format}; expected one of {', '.join(FORMATS)}")
        self._options = replace(options, multiline="", max_record_bytes=_NO_LIMIT_BYTES)
        self._report = report
        self._source = _UNNAMED if options.source is None else options.source
        encoding = codecs.lookup(options.encoding).name
        self._encoding = "utf-8" if encoding in ("ascii", "utf-8-sig") else encoding
        self._block = _Block()
        self._mapper = _MessageMapper(RecordMapper(self._options, report), self._source, Clock(options.zone))
        self._json = NdjsonReader(self._block, self._mapper, self._options, report)

    def read(
        self,
        values: pa.Array | pa.ChunkedArray,
        times: pa.Array | pa.ChunkedArray | None = None,
        sources: pa.Array | pa.ChunkedArray | None = None,
    ) -> list[pa.RecordBatch]:
        """The records of messages, in their order; null and empty messages have none.

        Args:
            values: the messages' bytes, or text.
            times: of the messages, for records without a timestamp of their own; null or before 1970 if not known,
                then it is the time of reading.
            sources: of the messages, for records that name none.
        """
        values = values.cast(pa.large_binary())
        batches: list[pa.RecordBatch] = []
        name = None
        for rows in _pieces(values, self._options.block_bytes):
            texts, kept = self._texts(_slice(values, rows))
            if not len(texts):
                continue
            if name is None:
                name = self._format(texts)
                self._report.formats[name] += 1
            micros = None if times is None else _micros(_slice(times, rows).filter(pa.array(kept)))
            batch, unstamped = self._records(texts, name, self._clock(micros))
            batch = _with_times(batch, unstamped, micros)
            if self._source is _UNNAMED:
                named = None if sources is None else _slice(sources, rows).filter(pa.array(kept)).cast(pa.string())
                batch = _with_sources(batch, named)
            batches.append(batch)
        return batches

    def _texts(self, values: pa.Array) -> tuple[pa.StringArray, BoolArray]:
        """The messages that are not empty, as text without a mark of the encoding and a line end; which these are."""
        size = int(pc.sum(pc.binary_length(values)).as_py() or 0)
        self._report.raw_bytes += size
        self._report.bytes_read += size
        try:
            texts = values.cast(pa.string()) if self._encoding == "utf-8" else self._decoded(values)
        except pa.ArrowInvalid:
            texts = self._decoded(values)
        data, spans = spans_of(texts)
        spans = _trimmed(data, spans)
        kept = spans.ends > spans.starts
        spans = spans[kept]
        self._report.empty += len(kept) - spans.count
        self._report.lines += spans.count
        return text_column(data, spans), kept

    def _decoded(self, values: pa.Array) -> pa.StringArray:
        """The messages as text, one by one, with U+FFFD for what is not in the encoding."""
        texts: list[str] = []
        for value in values.to_pylist():
            text = (value or b"").decode(self._encoding, "replace").encode("utf-8", "replace").decode()
            replaced = text.count("\ufffd")
            if replaced and self._encoding == "utf-8":
                replaced -= value.count("\ufffd".encode())
            self._report.replaced += replaced
            self._report.replaced_lines += replaced > 0
            texts.append(text)
        return pa.array(texts, pa.string())

    def _format(self, texts: pa.StringArray) -> str:
        """What the first messages have, each taken for a line."""
        if self._options.format != "auto":
            return self._options.format
        lines, size = [], 0
        for text in texts[:_SAMPLE_MESSAGES]:
            lines.append(re.sub(r"[\r\n]", " ", text.as_py()) + "\n")
            size += len(lines[-1])
            if size > _SAMPLE_CHARACTERS:
                break
        name = detect("".join(lines).encode(), "")
        return name if name in FORMATS else "text"

    def _clock(self, micros: I64Array | None) -> Clock:
        """For timestamps without a year: these are not later than the messages."""
        latest = -1 if micros is None or not len(micros) else int(micros.max())
        return Clock(self._options.zone, self._options.year, latest / 1_000_000 if latest >= 0 else None)

    def _records(self, texts: pa.StringArray, name: str, clock: Clock) -> tuple[pa.RecordBatch, BoolArray | None]:
        """A record for each text; which of them have no timestamp, or None if all have one."""
        before = self._report.without_timestamp
        if name == "ndjson":
            batch = self._objects(texts, clock)
            unstamped = np.concatenate(self._mapper.unstamped)
            return batch, unstamped if self._report.without_timestamp > before else None
        data, spans = spans_of(texts)
        self._block.text = newline_joined(text_column(data, _first_lines(data, spans))).to_pybytes()
        [batch] = TextReader(self._block, self._source, clock, self._options, self._report, _PARTS[name])
        batch = _with(batch, CONTENT, texts)
        if self._report.without_timestamp == before:
            return batch, None
        lines, _ = split_lines(bytes_of(self._block.text), last=True)
        return batch, clock.stamps(bytes_of(self._block.text), lines.starts, lines.ends).kinds == 0

    def _objects(self, texts: pa.StringArray, clock: Clock) -> pa.RecordBatch:
        """The records of messages that are JSON, or should be; what is none has the message as its content."""
        self._mapper.begin(clock)
        data, spans = spans_of(texts)
        if not ((data == NEWLINE) | (data == RETURN)).any():
            self._block.text = newline_joined(texts).to_pybytes()
            [batch] = self._json
            return batch
        out = np.empty(len(data) + 2 * spans.count, np.uint8)
        ends = np.empty(spans.count, np.int64)
        size = json_lines(data, spans.starts, spans.ends, ends, out)
        self._block.text = out[:size].tobytes()
        [batch] = self._json
        starts = np.append(np.zeros(1, np.int64), ends[:-1] + 1)
        lines = text_column(bytes_of(self._block.text), Lines(starts, ends))
        is_whole = pc.equal(batch.column(CONTENT), lines)  # no other content can be as long
        return _with(batch, CONTENT, pc.if_else(is_whole, texts, batch.column(CONTENT)))


def _pieces(values: pa.Array | pa.ChunkedArray, piece_bytes: int) -> Iterator[slice]:
    """Ranges of messages of about so many bytes."""
    sizes = pc.binary_length(values).fill_null(0).to_numpy()
    numbers = np.cumsum(sizes) // piece_bytes
    bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(sizes)]
    return (slice(first, last) for first, last in pairwise(bounds) if last > first)


def _slice(column: pa.Array | pa.ChunkedArray, rows: slice) -> pa.Array:
    part = column.slice(rows.start, rows.stop - rows.start)
    return part.combine_chunks() if isinstance(part, pa.ChunkedArray) else part


def _trimmed(data: U8Array, spans: Lines) -> Lines:
    """The spans without the mark of UTF-8 before them, and line ends and blank lines behind them."""
    starts, ends = spans.starts.copy(), spans.ends.copy()
    rows = np.flatnonzero(ends - starts >= 3)
    for offset, byte in enumerate(codecs.BOM_UTF8):
        rows = rows[data[starts[rows] + offset] == byte]
    starts[rows] += 3
    trim_blank_lines(data, starts, ends)
    return Lines(starts, ends)


def _first_lines(data: U8Array, spans: Lines) -> Lines:
    newlines = np.append(np.flatnonzero(data == NEWLINE), len(data))
    return Lines(spans.starts, np.minimum(spans.ends, newlines[np.searchsorted(newlines, spans.starts)]))


def _micros(times: pa.Array) -> I64Array:
    """Microseconds since 1970, negative where that is not known."""
    return np.asarray(times.cast(TIMESTAMP_TYPE).cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False))


def _with(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), name, column)


def _with_times(batch: pa.RecordBatch, unstamped: BoolArray | None, micros: I64Array | None) -> pa.RecordBatch:
    """The records with the times of their messages where they have none themselves."""
    if unstamped is None or micros is None:
        return batch
    own = batch.column(TIMESTAMP).cast(pa.int64()).to_numpy()
    return _with(batch, TIMESTAMP, pa.array(np.where(unstamped & (micros >= 0), micros, own), TIMESTAMP_TYPE))


def _with_sources(batch: pa.RecordBatch, sources: pa.Array | None) -> pa.RecordBatch:
    """The records with the sources of their messages where they name none themselves."""
    if sources is None:
        sources = pa.nulls(batch.num_rows, pa.string())
    own = batch.column(SOURCE)
    assert isinstance(own, pa.DictionaryArray), own.type
    if len(own.dictionary) > 1 or own.dictionary[0].as_py() != _UNNAMED:
        names = own.cast(pa.string())
        sources = pc.if_else(pc.equal(names, _UNNAMED), sources, names)
    return _with(batch, SOURCE, sources.dictionary_encode())
