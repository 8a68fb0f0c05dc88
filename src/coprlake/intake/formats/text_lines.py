"""Formats of which each line is text: plain text, syslog and access logs."""

import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from coprlake.intake.fields.levels import NO_LEVEL, find_levels, level_column
from coprlake.intake.fields.timestamps import Clock, Stamps
from coprlake.intake.lines import BoolArray, Lines, split_pieces, text_column, without_blank_ends
from coprlake.intake.multiline import RecordStarts
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.intake.sources.blocks import BlockReader
from coprlake.kernel import I64Array, U8Array
from coprlake.records import CONTENT, LOGLEVEL, SOURCE, TIMESTAMP, TIMESTAMP_TYPE
from coprlake.text.arrow_strings import bytes_of

Columns = dict[str, pa.Array]
Parts = tuple[Columns, BoolArray, I64Array | None]
"""Further columns, which lines could be parsed, and the level of each line that says it by a number (else -1).

None instead of the levels means that the format has none, and words that look like one are something else.
"""

PartsOf = Callable[[U8Array, Lines, Stamps], Parts]


def span_columns(data: U8Array, spans: I64Array, names: Mapping[int, str]) -> Columns:
    """The texts whose places are in `spans`, under their names; a column that would be all null is left out.

    Args:
        data: the bytes.
        spans: a row for each line; where each text begins, or -1, and in the next column where it ends.
        names: of the columns of `spans` in which texts begin.
    """
    return {
        name: text_column(data, Lines(spans[:, column].copy(), spans[:, column + 1].copy()))
        for column, name in names.items()
        if (spans[:, column] >= 0).any()
    }


def now_micros() -> int:
    """The time of reading."""
    return time.time_ns() // 1000


def constant(text: str, count: int) -> pa.DictionaryArray:
    """A column that says the same in every row, in four bytes each."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text], pa.string()))


def times_or_now(micros: I64Array, known: BoolArray, report: IntakeReport) -> pa.Array:
    """The timestamps, and the time of reading for records without one."""
    missing = len(known) - int(np.count_nonzero(known))
    report.without_timestamp += missing
    return pa.array(np.where(known, micros, now_micros()) if missing else micros, TIMESTAMP_TYPE)


class TextReader:
    """Turns blocks of text into records whose content is the line, or the lines, as in the file.

    Blank lines at the end of a record are not part of it.

    Args:
        blocks: the text.
        source: of its records.
        clock: for its timestamps.
        options: for the rest.
        report: counts.
        parts_of: finds further columns in a structured format.
    """

    def __init__(
        self,
        blocks: BlockReader,
        source: str,
        clock: Clock,
        options: ReadOptions,
        report: IntakeReport,
        parts_of: PartsOf | None = None,
    ) -> None:
        self._blocks = blocks
        self._source = source
        self._clock = clock
        self._limit_bytes = options.max_record_bytes
        self._starts = RecordStarts(options.multiline, options.max_record_bytes)
        self._goes_on = False
        self._report = report
        self._parts_of = parts_of

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        carry, last = b"", False
        while not last:
            block, last = self._blocks.read(carry)
            data = bytes_of(block)
            batch, used = self._batch(data, last)
            carry = block[used:]
            if batch is not None:
                yield batch

    def _batch(self, data: U8Array, last: bool) -> tuple[pa.RecordBatch | None, int]:
        """The records that are complete, and how many bytes these took."""
        lines, cuts, used = split_pieces(data, self._limit_bytes, last=last)
        if not lines.count:
            return None, used
        stamps = self._clock.stamps(data, lines.starts, lines.ends)
        heads = self._starts.heads(data, lines, stamps, goes_on=self._goes_on)
        kept = lines.count
        if self._starts.joins and not last:  # the last record may go on in the next block
            kept = int(np.flatnonzero(heads)[-1])
            if kept == 0:
                return None, 0
            used = int(lines.starts[kept])
            self._goes_on = bool(heads[kept] == 2)
        cuts[:-1] |= heads == 2
        self._report.split += int(np.count_nonzero(cuts[: kept + 1]))
        return self._records(data, lines[:kept], heads[:kept] != 0, stamps.part(slice(kept))), used

    def _records(self, data: U8Array, lines: Lines, heads: BoolArray, stamps: Stamps) -> pa.RecordBatch:
        if heads.all():
            content = text_column(data, lines)
        else:
            content = text_column(data, *without_blank_ends(data, lines, heads))
            lines = lines[heads]
            stamps = stamps.part(heads)
        count = lines.count
        columns: Columns = {}
        given: I64Array | None = np.full(count, NO_LEVEL, np.int64)
        if self._parts_of:
            columns, parsed, given = self._parts_of(data, lines, stamps)
            self._report.broken += count - int(np.count_nonzero(parsed))
        levels = np.full(count, NO_LEVEL, np.int64)
        if given is not None:
            find_levels(data, lines.starts, lines.ends, stamps.firsts, stamps.stops, levels)
            levels = np.where(given != NO_LEVEL, given, levels)
        micros = self._clock.utc_micros(stamps.micros, stamps.kinds)
        self._report.records += count
        return pa.RecordBatch.from_pydict(
            {
                TIMESTAMP: times_or_now(micros, stamps.kinds != 0, self._report),
                SOURCE: constant(self._source, count),
                LOGLEVEL: level_column(levels),
                CONTENT: content,
                **columns,
            }
        )
