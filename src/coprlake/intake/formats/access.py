"""Access logs of web servers, the common and the combined format."""

from typing import Final

import numpy as np
import pyarrow as pa

from coprlake.intake.fields.timestamps import Stamps
from coprlake.intake.formats.syslog import number_of, word_end
from coprlake.intake.formats.text_lines import Parts, span_columns
from coprlake.intake.lines import Lines
from coprlake.kernel import I64Array, I64Matrix, U8Array, i64, kernel, long_kernel
from coprlake.text.byte_classes import BACKSLASH, CLOSE_BRACKET, DASH, QUOTE

CLIENT, USER, METHOD, PATH, REFERER, AGENT = 0, 2, 4, 6, 8, 10
STATUS, SIZE = 0, 1
_COLUMN_NAMES: Final = {
    CLIENT: "client_ip",
    USER: "user_name",
    METHOD: "http_method",
    PATH: "url_path",
    REFERER: "http_referer",
    AGENT: "user_agent",
}


@kernel
def _quote_end(data: U8Array, i: int, end: int) -> int:
    """Where the quoted text ends whose first byte, behind the quote, is at `i`; `end` if it does not."""
    while i < end and data[i] != QUOTE:
        i += 2 if data[i] == BACKSLASH else 1
    return min(i, end)


@kernel
def _put(data: U8Array, start: int, end: int, column: int, out: I64Array) -> None:
    """Note a span unless it is empty or ``-``."""
    if end > start and not (end == start + 1 and data[start] == DASH):
        out[column] = start
        out[column + 1] = end


@kernel
def _request(data: U8Array, i: int, end: int, spans: I64Array) -> None:
    """``GET /path HTTP/1.1``; whatever else stands there (a probe's bytes) is a path."""
    stop = word_end(data, i, end)
    if stop == end:
        _put(data, i, end, PATH, spans)
        return
    _put(data, i, stop, METHOD, spans)
    _put(data, stop + 1, word_end(data, stop + 1, end), PATH, spans)


@kernel
def _parse_line(data: U8Array, start: int, stop: int, end: int, spans: I64Array, numbers: I64Array) -> bool:
    """The parts of one line whose timestamp ends at `stop`; whether it is an access log's."""
    if stop <= start or stop + 3 > end or data[stop] != CLOSE_BRACKET or data[stop + 2] != QUOTE:
        return False
    request_end = _quote_end(data, stop + 3, end)
    if request_end + 2 > end:
        return False
    i = request_end + 2
    status_end = word_end(data, i, end)
    numbers[STATUS] = number_of(data, i, status_end)
    if numbers[STATUS] < 0:
        return False
    client_end = word_end(data, start, end)
    _put(data, start, client_end, CLIENT, spans)
    user = word_end(data, client_end + 1, end) + 1
    _put(data, user, word_end(data, user, end), USER, spans)
    _request(data, stop + 3, request_end, spans)
    size_end = word_end(data, min(status_end + 1, end), end)
    numbers[SIZE] = number_of(data, status_end + 1, size_end)
    column = REFERER
    i = size_end + 1
    while column <= AGENT and i < end and data[i] == QUOTE:
        quote_end = _quote_end(data, i + 1, end)
        _put(data, i + 1, quote_end, column, spans)
        i = quote_end + 2
        column += 2
    return True


@long_kernel
def parse_access(
    data: U8Array, starts: I64Array, ends: I64Array, stops: I64Array, spans: I64Matrix, out: I64Matrix
) -> int:
    """Fill `spans` and, for each line, its status and size into `out`, -1 for what is not there.

    `stops` is where each timestamp ends. Returns how many lines have another format; all of theirs is -1.
    """
    broken = 0
    for line in range(len(starts)):
        for column in range(spans.shape[1]):
            spans[line, column] = -1
        out[line, STATUS] = -1
        out[line, SIZE] = -1
        if not _parse_line(data, i64(starts[line]), i64(stops[line]), i64(ends[line]), spans[line], out[line]):
            broken += 1
            out[line, STATUS] = -1
    return broken


def access_parts(data: U8Array, lines: Lines, stamps: Stamps) -> Parts:
    """The columns of an access log; a column that would be all null is left out."""
    spans = np.empty((lines.count, 12), np.int64)
    numbers = np.empty((lines.count, 2), np.int64)
    parse_access(data, lines.starts, lines.ends, stamps.stops, spans, numbers)
    columns = span_columns(data, spans, _COLUMN_NAMES)
    for column, name in ((STATUS, "http_status"), (SIZE, "http_bytes")):
        columns[name] = pa.array(numbers[:, column], pa.int64(), mask=numbers[:, column] < 0)
    return columns, numbers[:, STATUS] >= 0, None
