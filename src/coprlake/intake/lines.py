"""Lines of a block of bytes, and Arrow columns of spans of it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coprlake.kernel import I32Array, I64Array, U8Array, i64, long_kernel
from coprlake.text.arrow_strings import view_strings
from coprlake.text.byte_classes import BLANK, NEWLINE, RETURN, TAB

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Lines:
    """Where the lines of a block begin and end, without their line ends."""

    starts: I64Array
    ends: I64Array

    def __getitem__(self, index: slice | BoolArray) -> "Lines":
        """Some of the lines."""
        return Lines(self.starts[index], self.ends[index])

    @property
    def count(self) -> int:
        """How many."""
        return len(self.starts)


def split_lines(data: U8Array, *, last: bool) -> tuple[Lines, int]:
    r"""``data.split(b"\n")`` and where the part behind the last newline begins, which is a line only if `last`.

    A carriage return before the newline is not part of the line.
    """
    return spans_before(data, np.flatnonzero(data == NEWLINE), last=last)


def spans_before(data: U8Array, newlines: I64Array, *, last: bool) -> tuple[Lines, int]:
    """As `split_lines`, for the newlines that count."""
    used = int(newlines[-1]) + 1 if len(newlines) else 0
    starts = np.empty_like(newlines)
    starts[:1] = 0
    starts[1:] = newlines[:-1] + 1
    ends = newlines
    if len(newlines):
        ends = newlines - ((newlines > starts) & (data[newlines - 1] == RETURN))
    if last and used < len(data):
        return Lines(np.append(starts, used), np.append(ends, len(data))), len(data)
    return Lines(starts, ends), used


def split_long(data: U8Array, lines: Lines, limit_bytes: int) -> tuple[Lines, BoolArray]:
    """The lines with those that are too long cut into pieces, at characters; and which go on with the one before."""
    if not lines.count or int((lines.ends - lines.starts).max()) <= limit_bytes:
        return lines, np.zeros(lines.count, np.bool_)
    starts: list[int] = []
    ends: list[int] = []
    goes_on: list[bool] = []
    for first, end in zip(lines.starts.tolist(), lines.ends.tolist(), strict=True):
        start = first
        while end - start > limit_bytes:
            cut = start + limit_bytes
            while cut > start + 1 and data[cut] & 0xC0 == 0x80:
                cut -= 1
            starts.append(start)
            ends.append(cut)
            goes_on.append(start > first)
            start = cut
        starts.append(start)
        ends.append(end)
        goes_on.append(start > first)
    return Lines(np.array(starts, np.int64), np.array(ends, np.int64)), np.array(goes_on, np.bool_)


def split_pieces(data: U8Array, limit_bytes: int, *, last: bool) -> tuple[Lines, BoolArray, int]:
    """The complete lines, long ones in pieces; which pieces go on with the one before; and where the rest begins.

    The rest is less than a line, or than a piece of it, unless `last`; the flag behind those of the pieces is its own.
    What a piece is does not depend on how much of the file there is to see.
    """
    lines, used = split_lines(data, last=last)
    end = len(data) - (len(data) > used and data[-1] == RETURN)  # which may belong to the line's end
    has_rest = end - used > limit_bytes
    if has_rest:
        lines = Lines(np.append(lines.starts, used), np.append(lines.ends, end))
    pieces, goes_on = split_long(data, lines, limit_bytes)
    if has_rest:
        return pieces[:-1], goes_on, int(pieces.starts[-1])
    return pieces, np.append(goes_on, False), used


@long_kernel
def mark_blank_ends(data: U8Array, starts: I64Array, ends: I64Array, heads: BoolArray, kept: BoolArray) -> None:
    """``kept[i]``: whether line ``i`` begins a record, or the record has a line from there on that is not blank."""
    at_end = True
    for line in range(len(starts) - 1, -1, -1):
        at = i64(starts[line])
        end = i64(ends[line])
        if at_end:
            while at < end and (data[at] == BLANK or data[at] == TAB or data[at] == RETURN):
                at += 1
        is_blank = at_end and at >= end
        kept[line] = heads[line] or not is_blank
        at_end = bool(heads[line]) or is_blank


def without_blank_ends(data: U8Array, lines: Lines, heads: BoolArray) -> tuple[Lines, BoolArray]:
    """The lines, and which of them begin a record, without the blank lines at the ends of records."""
    kept = np.empty(lines.count, np.bool_)
    mark_blank_ends(data, lines.starts, lines.ends, heads, kept)
    return (lines, heads) if kept.all() else (lines[kept], heads[kept])


@long_kernel
def trim_blank_lines(data: U8Array, starts: I64Array, ends: I64Array) -> None:
    r"""``re.sub(rb"\r?\n[ \t\r\n]*\Z", b"", data[starts[i]:ends[i]])`` for each text: its end moves to the left."""
    for text in range(len(starts)):
        start, at = i64(starts[text]), i64(ends[text])
        end = at
        while at > start and data[at - 1] in (BLANK, TAB, RETURN, NEWLINE):
            at -= 1
            if data[at] == NEWLINE:
                end = at - 1 if at > start and data[at - 1] == RETURN else at
        ends[text] = end


@long_kernel
def gather(
    data: U8Array, starts: I64Array, ends: I64Array, heads: BoolArray, out_starts: I32Array, out: U8Array
) -> int:
    """Spans one behind the other, a newline before each that is no head; how many bytes that makes.

    ``out_starts`` gets where each head begins in `out`, and the end. A span that ends before it starts is empty.
    """
    written, record = 0, 0
    for line in range(len(starts)):
        if heads[line]:
            out_starts[record] = written
            record += 1
        else:
            out[written] = NEWLINE
            written += 1
        start = i64(starts[line])
        size = max(0, i64(ends[line]) - start)
        source, target = data[start : start + size], out[written : written + size]
        for i in range(size):  # over views, whose indices need no check for negative ones: LLVM makes it wide copies
            target[i] = source[i]
        written += size
    out_starts[record] = written
    return written


def spans_of(texts: pa.StringArray) -> tuple[U8Array, Lines]:
    """The bytes of a column and where each value is in them; nulls are empty."""
    strings = view_strings(texts.fill_null("") if texts.null_count else texts)
    return strings.data, Lines(strings.starts[:-1], strings.starts[1:])


def newline_joined(texts: pa.StringArray) -> pa.Buffer:
    r"""``"".join(text + "\n" for text in texts)``; the column has no nulls."""
    data, starts, _ = view_strings(texts)
    heads = np.zeros(len(texts) + 1, np.bool_)  # an empty text behind the last one gives its newline
    heads[0] = True
    joined = text_column(data, Lines(starts, np.append(starts[1:], starts[-1])), heads).buffers()[2]
    assert joined is not None
    return joined


def text_column(data: U8Array, lines: Lines, heads: BoolArray | None = None) -> pa.StringArray:
    """A string for each head: its span and those that follow it, joined by newlines.

    Spans whose start is negative are null. The bytes must be UTF-8, and the spans begin and end at characters.
    """
    missing = lines.starts < 0
    if heads is None:
        heads = np.ones(lines.count, np.bool_)
    size = int(np.maximum(lines.ends - lines.starts, 0).sum()) + lines.count
    out, count = np.empty(size, np.uint8), int(np.count_nonzero(heads))
    out_starts = np.empty(count + 1, np.int32)
    if missing.any():
        lines = Lines(np.where(missing, 0, lines.starts), np.where(missing, 0, lines.ends))
    written = gather(data, lines.starts, lines.ends, heads, out_starts, out)
    validity, nulls = None, 0
    if missing.any():
        validity, nulls = pa.py_buffer(np.packbits(~missing, bitorder="little")), int(missing.sum())
    buffers = [validity, pa.py_buffer(out_starts), pa.py_buffer(out[:written])]
    return pa.Array.from_buffers(pa.string(), count, buffers, nulls)
