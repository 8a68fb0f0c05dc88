"""Which task reads what: small files together, large ones cut where a record begins.

The records of all groups, one behind the other, are those of the files. A cut is therefore only made at a line that
begins a record whatever stands before it: any line of NDJSON, or if each line is a record; a line that a person's
pattern matches; by the default rule one with a timestamp of its own, or one that can belong to no stack trace. What a
group does not know of the others is the type that a structured log's column got there.
"""

import codecs
import functools
import itertools
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from coprlake.errors import UsageError
from coprlake.intake.fields.timestamps import Clock
from coprlake.intake.formats.detection import detect, wanted_format
from coprlake.intake.formats.parquet import PARQUET_MAGIC
from coprlake.intake.lines import BoolArray, split_pieces
from coprlake.intake.multiline import RecordStarts
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.intake.sources.archives import archive_kind
from coprlake.intake.sources.binaries import why_binary
from coprlake.intake.sources.blocks import BlockReader
from coprlake.intake.sources.compression import ByteStream, compression_of
from coprlake.intake.sources.inputs import InputFile
from coprlake.text.arrow_strings import bytes_of
from coprlake.text.byte_classes import NEWLINE

CUT_FACTOR: Final = 1.5
"""A file of so many times the target is cut."""

COMPRESSED_FACTOR: Final = 8
PARQUET_FACTOR: Final = 4
"""How much more text there is than bytes on disk, by experience."""

FILE_LIMIT: Final = 1000
"""Files in a group: to open one takes time as well."""

_WINDOW_BYTES: Final = 64 * 1024
_CUT_FORMATS: Final = ("text", "ndjson", "syslog", "access")


def plan_splits(files: Sequence[InputFile], options: ReadOptions, target_bytes: int) -> list[list[InputFile]]:
    """Groups of files and ranges of files with about `target_bytes` of text each, in the order of the files.

    Not cut are streams, compressed files, Parquet, CSV (a quoted cell may have newlines), encodings in which a newline
    is not that byte alone, and text in which no line surely begins a record. These are groups by themselves if they
    are large. Reads the head of each file, and of those that are cut a little around each cut.

    Args:
        files: as `list_inputs` gives them; ranges stay as they are.
        options: how they will be read; the groups depend on it.
        target_bytes: of text after decompression.
    """
    if target_bytes < 1:
        raise UsageError(f"target_bytes is {target_bytes}; expected at least 1")
    groups: list[list[InputFile]] = []
    total = 0.0
    for file in files:
        parts, factor = _parts(file, options, target_bytes)
        for part in parts:
            size = max(target_bytes if part.length is None else factor * part.length, target_bytes / FILE_LIMIT)
            if not groups or total + size > target_bytes:
                groups.append([])
                total = 0.0
            groups[-1].append(part)
            total += size
    return groups


def _parts(file: InputFile, options: ReadOptions, target_bytes: int) -> tuple[list[InputFile], int]:
    """The file or its ranges, and how much more text these have than bytes."""
    if not file.length or file.start != 0 or file.end is not None:
        return [file], 1
    try:
        with Path(file.path).open("rb") as raw:
            head = raw.read(512)
        if compression_of(head) or archive_kind(head) == "zip":
            return [file], COMPRESSED_FACTOR
        wanted = wanted_format(file, options)
        if wanted == "parquet" or (wanted == "auto" and head.startswith(PARQUET_MAGIC)):
            return [file], PARQUET_FACTOR
        if archive_kind(head) or file.length - file.skip <= CUT_FACTOR * target_bytes:
            return [file], 1
        return cut_file(file, options, target_bytes), 1
    except OSError:
        return [file], 1  # who reads it will say so


def cut_file(file: InputFile, options: ReadOptions, target_bytes: int) -> list[InputFile]:
    """Ranges of about `target_bytes` of a file that is neither compressed nor Parquet; the file if it cannot be cut."""
    assert file.size is not None
    with closing(ByteStream(file)) as stream:
        if why_binary(stream.head, options) or stream.is_continued != bool(file.after):
            return [file]
        blocks = BlockReader(stream, options, IntakeReport())
        name = wanted_format(file, options)
        name = detect(blocks.head, file.path) if name == "auto" else name
    if name not in _CUT_FORMATS or not is_cut_safe(blocks.encoding):
        return [file]
    with Path(file.path).open("rb") as raw:
        cuts = _cuts(_RecordFinder(raw, file, options, name, blocks.encoding), file.size, target_bytes)
    cuts = [cut for cut in cuts if cut > file.skip]
    if not cuts:
        return [file]
    bounds = [file.skip, *cuts, file.size]
    whole = replace(file, format=name, skip=0)
    ranges = [replace(whole, start=start, end=end) for start, end in itertools.pairwise(bounds)]
    return [replace(ranges[0], hashed_from=0), *ranges[1:]]


def _cuts(finder: "_RecordFinder", size: int, target_bytes: int) -> list[int]:
    """Where records begin, about `target_bytes` from one to the next as far as possible."""
    count = -(-size // target_bytes)
    cuts: list[int] = []
    number = 1
    while number < count:
        place, found = finder.find(number * size // count)
        if found and place > (cuts[-1] if cuts else 0):
            cuts.append(place)
            place += size // count // 2  # no slivers
        number = max(number + 1, place * count // size + 1)
    return cuts


@functools.cache
def is_cut_safe(encoding: str) -> bool:
    """Whether a file may be cut behind each newline byte: in UTF-8, and in ASCII with 128 more characters."""
    name = codecs.lookup(encoding).name
    if name in ("utf-8", "utf-8-sig", "ascii"):
        return True
    try:
        characters = [bytes([byte]).decode(name, "replace") for byte in range(256)]
        if characters[:128] != [chr(byte) for byte in range(128)] or "\n" in "".join(characters[128:]):
            return False
        pairs = bytes(byte for first in range(256) for second in range(256) for byte in (first, second))
        return pairs.decode(name, "replace") == "".join(characters[byte] for byte in pairs)
    except UnicodeError:  # of codecs with ideas of their own, such as idna
        return False


class _RecordFinder:
    """Finds where records begin in a file, from anywhere inside it.

    Args:
        raw: its bytes.
        file: what it is.
        options: how it will be read.
        name: its format.
        encoding: one in which it may be cut.
    """

    def __init__(self, raw: BinaryIO, file: InputFile, options: ReadOptions, name: str, encoding: str) -> None:
        assert file.size is not None
        self._raw = raw
        self._size = file.size
        self._encoding = "utf-8" if encoding in ("utf-8-sig", "ascii") else encoding
        self._clock = Clock(options.zone, options.year, file.modified)
        self._starts = RecordStarts("" if name == "ndjson" else options.multiline, options.max_record_bytes)
        self._limit_bytes = options.max_record_bytes
        self._window_bytes = min(_WINDOW_BYTES, options.block_bytes)

    def find(self, offset: int) -> tuple[int, bool]:
        """The first place behind `offset` where a record surely begins, and True.

        If there is none within the size of a record, how far the search went, and False.
        """
        stop = min(self._size, offset + self._limit_bytes + _WINDOW_BYTES)
        self._raw.seek(offset - 1)  # a line may begin right at the offset
        base, data, in_first = offset - 1, b"", True
        while base + len(data) < stop:
            piece = self._raw.read(min(stop - base - len(data), max(self._window_bytes, len(data))))
            if not piece:
                break
            data += piece
            if in_first:  # how this line began is not known
                skipped = data.find(b"\n") + 1 or len(data)
                in_first = not data[:skipped].endswith(b"\n")
                base, data = base + skipped, data[skipped:]
            used, found = self._look(data)
            if found:
                return base + used, base + used < self._size
            base, data = base + used, data[used:]
        return stop, False

    def _look(self, data: bytes) -> tuple[int, bool]:
        """Where the first sure record begins, and True; else where the last complete line does, and False."""
        ends = np.flatnonzero(bytes_of(data) == NEWLINE) + 1
        if not len(ends):
            return 0, False
        starts = np.append(0, ends[:-1])
        sure = np.flatnonzero(self._sure(data[: int(ends[-1])]))
        return (int(starts[sure[0]]), True) if len(sure) else (int(starts[-1]), False)

    def _sure(self, raw_lines: bytes) -> BoolArray:
        """Which of the lines surely begin a record."""
        text = raw_lines
        if not text.isascii():
            text = raw_lines.decode(self._encoding, "replace").encode("utf-8", "replace")
        data = bytes_of(text)
        pieces, goes_on, _ = split_pieces(data, self._limit_bytes, last=True)
        stamps = self._clock.stamps(data, pieces.starts, pieces.ends)
        return self._starts.sure_heads(data, pieces, stamps)[~goes_on[:-1]]
