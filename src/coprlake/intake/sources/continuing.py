"""Files that have grown since they were read: where the new part begins.

A record may have been cut at the earlier end: its line was not complete, or it had more lines than were written by
then. So the new part begins where that record does, unless the first new line begins a record itself. A record that
had been cut is then stored twice, once cut and once whole; none is lost, and none is split.
"""

import codecs
from typing import Final, NamedTuple

import numpy as np

from coprlake.intake.fields.timestamps import Clock
from coprlake.intake.formats.csv import split_rows
from coprlake.intake.lines import split_lines
from coprlake.intake.multiline import RecordStarts
from coprlake.intake.options import ReadOptions
from coprlake.intake.sources.splitting import is_cut_safe
from coprlake.kernel import U8Array
from coprlake.text.arrow_strings import bytes_of

BEFORE_BYTES: Final = 1 << 20
AHEAD_BYTES: Final = 64 * 1024
_LINE_FORMATS: Final = ("text", "ndjson", "syslog", "access")
_UTF16: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class Seam(NamedTuple):
    """The bytes around the end of what was read before.

    Attributes:
        size: how many bytes were read before.
        head: the first of them, up to 64 KiB.
        before: the last of them, up to 1 MiB.
        ahead: the first new bytes, up to 64 KiB.
        in_quotes: whether the last of them begin inside a quoted cell, if it is a table.
    """

    size: int
    head: bytes
    before: bytes
    ahead: bytes
    in_quotes: bool = False


class Continuation(NamedTuple):
    """How to go on: leave out so many bytes, and read a prefix instead of them."""

    skip: int
    prefix: bytes = b""


def continuation(seam: Seam, name: str, modified: float | None, options: ReadOptions) -> Continuation | None:
    """Where the new part of a file begins; None if that cannot be told, so that all of it has to be read.

    Args:
        seam: the place where it has grown.
        name: its format.
        modified: when it was written last.
        options: how it is read.
    """
    mark = next((mark for mark in _UTF16 if seam.head.startswith(mark)), None)
    if mark is not None and codecs.lookup(options.encoding).name == "utf-8":
        return _of_utf16(seam, mark) if name in _LINE_FORMATS else None
    if not is_cut_safe(options.encoding):
        return None
    if name == "csv":
        return _of_table(seam)
    return Continuation(_of_lines(seam, name, modified, options)) if name in _LINE_FORMATS else None


def _of_utf16(seam: Seam, mark: bytes) -> Continuation | None:
    """The new part begins with the line that was not complete."""
    newline = "\n".encode(_UTF16[mark])
    if seam.size % 2:
        return None
    before = seam.before[len(seam.before) % 2 :]
    place = before.rfind(newline)
    while place > 0 and place % 2:  # two halves of other characters
        place = before.rfind(newline, 0, place + 1)
    if place < 0:
        return None
    return Continuation(seam.size - len(before) + place + 2, mark)


def _of_table(seam: Seam) -> Continuation | None:
    """The new part begins with the row that was not complete, behind the line with the names of the columns."""
    opened = b'"' if seam.in_quotes else b""
    rows, used = split_rows(bytes_of(opened + seam.before), last=False)
    header, header_end = split_rows(bytes_of(seam.head), last=False)
    if not header.count or not rows.count:
        return None
    ends = seam.head.find(b"\n", int(header.ends[0]))
    place = seam.size - len(seam.before) + used - len(opened)
    if ends < 0 or header_end == 0 or place <= ends or not seam.head[:ends].strip(b"\xef\xbb\xbf\r\n "):
        return None
    return Continuation(place, seam.head[: ends + 1])


def _of_lines(seam: Seam, name: str, modified: float | None, options: ReadOptions) -> int:
    start, before, end = seam.size - len(seam.before), seam.before, seam.size
    if not before.endswith((b"\n", b"\r")):
        for newline in (b"\n", b"\r\n"):
            if seam.ahead.startswith(newline):  # the line was complete but for its end
                before, end = before + newline, end + len(newline)
    ahead = seam.ahead[end - seam.size :]
    first = ahead.find(b"\n") + 1 or len(ahead)
    if start > 0:  # how the first line began is not known
        cut = before.find(b"\n") + 1
        start, before = start + cut, before[cut:]
    heads, starts = _heads(before + ahead[:first], name, modified, options, is_sure=start == 0)
    places = starts + start
    if end in places[heads]:
        return end
    earlier = places[heads & (places < end)]
    if len(earlier):
        return int(earlier[-1])
    lines = places[places <= end]
    return int(lines[-1]) if len(lines) else end


def _heads(
    raw: bytes, name: str, modified: float | None, options: ReadOptions, *, is_sure: bool
) -> tuple["np.ndarray[tuple[int], np.dtype[np.bool_]]", "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """Which lines begin a record, and where each line begins.

    If it is not sure that the first one does, only those count from the first on that is sure to.
    """
    lines, _ = split_lines(bytes_of(raw), last=True)
    starts = lines.starts
    text: bytes = raw
    if not raw.isascii():
        encoding = codecs.lookup(options.encoding).name
        encoding = "utf-8" if encoding in ("ascii", "utf-8-sig") else encoding
        text = raw.decode(encoding, "replace").encode("utf-8", "replace")
    data: U8Array = bytes_of(text)
    lines, _ = split_lines(data, last=True)
    stamps = Clock(options.zone, options.year, modified).stamps(data, lines.starts, lines.ends)
    rule = RecordStarts("" if name == "ndjson" else options.multiline, options.max_record_bytes)
    heads = np.zeros(lines.count, np.bool_)
    first = 0
    if not is_sure:
        sure = np.flatnonzero(rule.sure_heads(data, lines, stamps))
        first = int(sure[0]) if len(sure) else lines.count
    if first < lines.count:
        rest = lines[first:]
        stamps = Clock(options.zone, options.year, modified).stamps(data, rest.starts, rest.ends)
        heads[first:] = rule.heads(data, rest, stamps) != 0
    return heads, starts
