"""What a person may say about the logs that are to be read, and the report of what was found in them."""

import codecs
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from encodings.aliases import aliases
from typing import Final

from coprlake.errors import UsageError
from coprlake.summary import Report
from coprlake.text.nearest_words import hint, nearest

FORMATS: Final = ("auto", "text", "ndjson", "csv", "syslog", "access", "parquet")
WARNING_LIMIT: Final = 100
"""Warnings kept word for word; a folder of a million broken files shall not fill the memory."""


@dataclass(frozen=True)
class ReadOptions:
    """How to read raw logs.

    Attributes:
        format: one of `FORMATS`; ``auto`` looks at the first 64 KiB of each file.
        zone: of timestamps that name none: an IANA name or an offset such as ``+02:00``.
        source: of all records; by default the path of the file.
        multiline: regular expression, searched in each line, that says where a record begins; None for the default
            (`coprlake.intake.multiline`), the empty string to make each line a record.
        encoding: any codec of Python's; what it cannot decode becomes U+FFFD and is counted.
        content_key: the key or column that is the content; by default the first of a list of usual names, and
            without any of them the raw line.
        timestamp_key: likewise for the timestamp.
        level_key: likewise for the log level.
        source_key: likewise for the source.
        attributes: put all other keys into the attributes instead of typed columns.
        year: of timestamps that have none; by default the year of the file's modification time, or the one before
            where that would lie in the future.
        max_record_bytes: longer lines and records are split, and counted.
        block_bytes: how much is read at a time.
        max_expansion: a compressed file that gives more than 1 GiB and more than this many times the bytes read from it
            is taken for a bomb: the rest is not read, and the file is named as damaged. 0 for no limit.
        text: also read files that look binary, as text; else they are passed over, and named in the report.
    """

    format: str = "auto"
    zone: str = "UTC"
    source: str | None = None
    multiline: str | None = None
    encoding: str = "utf-8"
    content_key: str | None = None
    timestamp_key: str | None = None
    level_key: str | None = None
    source_key: str | None = None
    attributes: bool = False
    year: int | None = None
    max_record_bytes: int = 16 * 1024 * 1024
    block_bytes: int = 4 * 1024 * 1024
    max_expansion: int = 250
    text: bool = False

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            known = hint(self.format, FORMATS) or f"; expected one of {', '.join(FORMATS)}"
            raise UsageError(f"unknown format {self.format!r}{known}")
        if not 64 <= self.max_record_bytes <= 1 << 29:
            raise UsageError(f"max_record_bytes is {self.max_record_bytes}; expected 64 bytes to 512 MiB")
        if not 1 <= self.block_bytes <= 1 << 29:
            raise UsageError(f"block_bytes is {self.block_bytes}; expected 1 byte to 512 MiB")
        if self.max_expansion < 0:
            raise UsageError(f"max_expansion is {self.max_expansion}; expected a factor, or 0 for no limit")
        if self.year is not None and not 1970 <= self.year <= 2200:
            raise UsageError(f"year is {self.year}; expected 1970 to 2200")
        try:
            codecs.lookup(self.encoding)
            b"x".decode(self.encoding, "replace")  # refuses those that are not of text, such as base64
        except (LookupError, ValueError) as error:
            raise UsageError(
                f"{self.encoding!r} is not a text encoding that Python knows; try {_nearest_encoding(self.encoding)}"
            ) from error
        try:
            re.compile(self.multiline or "")
        except re.error as error:
            raise UsageError(f"multiline: {self.multiline!r} is no regular expression: {error}") from error


def _nearest_encoding(name: str) -> str:
    """The encoding that was probably meant, or the usual ones."""
    return nearest(name, ("utf-8", "utf-16", "latin-1", *sorted(aliases))) or "utf-8 or latin-1"


@dataclass(repr=False)
class IntakeReport(Report):
    """What was read, and what was wrong with it; grows while reading.

    Attributes:
        files: begun so far; of one that is read in ranges only the first counts.
        bytes_read: as on disk, compressed files by their compressed bytes.
        raw_bytes: of text after decompression.
        lines: with or without a final newline.
        records: handed on so far.
        without_timestamp: records that have the time of reading because none was found.
        broken: lines that a structured format could not parse; kept with the line as content.
        replaced: characters U+FFFD that took the place of bytes that are not in the encoding.
        replaced_lines: lines that have such a replacement.
        split: times that a record was cut because it was too long.
        empty: messages of a queue without any content, which give no record.
        misfits: values that went into the attributes because their column has another type.
        unreadable: files, or ranges of one, that could not be read to their end.
        binary: files that are not text and were passed over.
        known: files that were ingested before and were passed over.
        continued: files that had grown since, and of which only what is new was read.
        skipped_links: symbolic links that lead out of a folder that was to be read, and were not followed.
        formats: files by format.
        warnings: the first hundred, each of which names its file.
        warning_count: all of them.
    """

    always_shown = ("files", "records")

    files: int = 0
    bytes_read: int = 0
    raw_bytes: int = 0
    lines: int = 0
    records: int = 0
    without_timestamp: int = 0
    broken: int = 0
    replaced: int = 0
    replaced_lines: int = 0
    split: int = 0
    empty: int = 0
    misfits: int = 0
    unreadable: int = 0
    binary: int = 0
    known: int = 0
    continued: int = 0
    skipped_links: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    warning_count: int = 0

    def warn(self, file: str, message: str) -> None:
        """Note what is wrong with a file."""
        self.warning_count += 1
        if len(self.warnings) < WARNING_LIMIT:
            self.warnings.append(f"{file}: {message}")

    def passed_over(self, skipped: Sequence[str], links: Sequence[str]) -> None:
        """Note what stands in folders and was not read: what is no file, and links that lead outside."""
        for path in skipped:
            self.warn(path, "passed over because it is no file")
        self.skipped_links += len(links)
        for path in links:
            self.warn(path, "a link that leads out of the folder, not followed; --follow-links does")

    def merge(self, other: "IntakeReport") -> None:
        """Add what was read elsewhere."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
        del self.warnings[WARNING_LIMIT:]
