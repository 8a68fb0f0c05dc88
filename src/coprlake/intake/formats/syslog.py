"""Syslog lines of RFC 3164 (with or without its priority) and RFC 5424: host, process, severity."""

from typing import Final

import numpy as np
import pyarrow as pa

from coprlake.intake.fields.levels import NO_LEVEL, SYSLOG_SEVERITIES
from coprlake.intake.fields.timestamps import Stamps
from coprlake.intake.formats.text_lines import Parts, span_columns
from coprlake.intake.lines import Lines
from coprlake.kernel import I64Array, I64Matrix, U8Array, i64, kernel, long_kernel
from coprlake.text.byte_classes import BLANK, CLOSE_BRACKET, COLON, DASH, OPEN_BRACKET
from coprlake.text.digits import digits_end, number_at

HOST, PROCESS, MESSAGE_ID = 0, 2, 4
"""Columns of spans where each of them begins; the next column is where it ends. A start of -1 means there is none."""

PID, PRIORITY = 0, 1
_COLUMN_NAMES: Final = {HOST: "host_name", PROCESS: "process_name", MESSAGE_ID: "syslog_msgid"}
_LESS, _GREATER, _ONE = 60, 62, 49


@kernel
def word_end(data: U8Array, i: int, end: int) -> int:
    """Where the word at `i` ends."""
    while i < end and data[i] != BLANK:
        i += 1
    return i


@kernel
def number_of(data: U8Array, start: int, end: int) -> int:
    """The number that ``data[start:end]`` is, or -1."""
    return number_at(data, start, end, end - start) if 0 < end - start <= 18 else -1


@kernel
def _priority(data: U8Array, start: int, end: int) -> tuple[int, int]:
    """``<34>`` at the start of the line: the number, or -1, and where it ends."""
    if start == end or data[start] != _LESS:
        return -1, start
    stop = digits_end(data, start + 1, min(end, start + 4))
    priority = number_of(data, start + 1, stop)
    if stop == end or data[stop] != _GREATER or not 0 <= priority <= 191:
        return -1, start
    return priority, stop + 1


@kernel
def _put_word(data: U8Array, i: int, end: int, column: int, out: I64Array) -> int:
    """Note the word at `i` unless it is ``-``, which means none; where the next word begins."""
    stop = word_end(data, i, end)
    if stop > i and not (stop == i + 1 and data[i] == DASH):
        out[column] = i
        out[column + 1] = stop
    return min(stop + 1, end)


@kernel
def _modern(data: U8Array, i: int, end: int, spans: I64Array, numbers: I64Array) -> bool:
    """RFC 5424 from its timestamp on: ``TIMESTAMP HOST PROCESS PID MESSAGE_ID [DATA] text``."""
    i = min(word_end(data, i, end) + 1, end)
    i = _put_word(data, i, end, HOST, spans)
    i = _put_word(data, i, end, PROCESS, spans)
    stop = word_end(data, i, end)
    numbers[PID] = number_of(data, i, stop)
    i = min(stop + 1, end)
    _put_word(data, i, end, MESSAGE_ID, spans)
    return i < end


@kernel
def _classic(data: U8Array, i: int, end: int, spans: I64Array, numbers: I64Array) -> bool:
    """RFC 3164 behind its timestamp: `` HOST PROCESS[PID]: text``."""
    if i >= end or data[i] != BLANK:
        return False
    i = _put_word(data, i + 1, end, HOST, spans)
    stop = i
    while stop < end and data[stop] != COLON and data[stop] != OPEN_BRACKET and data[stop] != BLANK:
        stop += 1
    name_end = stop
    if stop < end and data[stop] == OPEN_BRACKET:
        close = digits_end(data, stop + 1, end)
        if close < end and data[close] == CLOSE_BRACKET:
            numbers[PID] = number_of(data, stop + 1, close)
            stop = close + 1
    if stop < end and data[stop] == COLON and name_end > i:
        spans[PROCESS] = i
        spans[PROCESS + 1] = name_end
    return bool(spans[HOST] >= 0)


@long_kernel
def parse_syslog(
    data: U8Array, starts: I64Array, ends: I64Array, stops: I64Array, spans: I64Matrix, out: I64Matrix
) -> int:
    """Fill `spans` and, for each line, its pid and priority into `out`, -1 for what is not there.

    `stops` is where each timestamp ends. Returns how many lines are no syslog; all of theirs is -1 but perhaps a host.
    """
    broken = 0
    for line in range(len(starts)):
        end, stop = i64(ends[line]), i64(stops[line])
        for column in range(spans.shape[1]):
            spans[line, column] = -1
        out[line, PID] = -1
        priority, i = _priority(data, i64(starts[line]), end)
        out[line, PRIORITY] = priority
        if priority >= 0 and i + 2 < end and data[i] == _ONE and data[i + 1] == BLANK:
            parsed = _modern(data, i + 2, end, spans[line], out[line])
        else:
            parsed = stop > starts[line] and _classic(data, stop, end, spans[line], out[line])
        if not parsed and priority < 0:
            broken += 1
            spans[line, HOST] = -1
            out[line, PID] = -1
            out[line, PRIORITY] = -2
    return broken


def syslog_parts(data: U8Array, lines: Lines, stamps: Stamps) -> Parts:
    """The columns of syslog lines; a column that would be all null is left out."""
    spans = np.empty((lines.count, 6), np.int64)
    numbers = np.empty((lines.count, 2), np.int64)
    parse_syslog(data, lines.starts, lines.ends, stamps.stops, spans, numbers)
    columns = span_columns(data, spans, _COLUMN_NAMES)
    pids, priorities = numbers[:, PID], numbers[:, PRIORITY]
    columns["process_pid"] = pa.array(pids, pa.int64(), mask=pids < 0)
    if (priorities >= 0).any():
        columns["syslog_facility"] = pa.array(priorities >> 3, pa.int64(), mask=priorities < 0)
    levels = np.where(priorities >= 0, SYSLOG_SEVERITIES[priorities & 7], NO_LEVEL).astype(np.int64)
    return columns, priorities > -2, levels
