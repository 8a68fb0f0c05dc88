"""Which of some files were ingested before, or have grown since, by their contents.

A file counts as ingested if the table has all of its bytes, read as the same source and format, from a file of the same
path, or from one that is not there any more and of which this is the rotated one by its name: in the same folder, with
a number, a date or a compression at its end. A number that has grown shows it only if there is a log that goes on, as
app.log for app.log.1. A copy of a file that still is where it was is a file of its own.
"""

import os
import re
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from coprlake.errors import CoprlakeError
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.intake.sources.archives import archive_kind, members
from coprlake.intake.sources.compression import ByteStream, DamagedError
from coprlake.intake.sources.contents import (
    ARCHIVE,
    HEAD_BYTES,
    ContentHash,
    FileContent,
    file_content,
    key_of,
    keys_of,
    path_text,
)
from coprlake.intake.sources.continuing import AHEAD_BYTES, BEFORE_BYTES, Seam, continuation
from coprlake.intake.sources.inputs import InputFile
from coprlake.storage.ledger import Ledger

_ROTATED: Final = re.compile(r"(?:[-._][0-9]+|\.(?:gz|bz2|xz|zst|lz4|old|bak))+$")
"""What rotation adds to the name of a log: ``app.log.1``, ``app.log-20261118.gz``, ``app.old``."""
_INDEX: Final = re.compile(r"[-._]([0-9]+)")
_DATE_DIGITS: Final = 6
_WHOLE: Final = (ARCHIVE, "parquet")
"""Formats that do not grow at their end."""


def without_known(
    files: Sequence[InputFile], ledger: Ledger, options: ReadOptions, report: IntakeReport
) -> list[InputFile]:
    """The files of which something is new, each with what is to be left out; what is passed over is counted.

    Args:
        files: as `list_inputs` gives them.
        ledger: what is in the table.
        options: how the files will be read.
        report: gets the counts.
    """
    if ledger.problem is not None:
        report.warn(ledger.problem, "files that were ingested before may be ingested again")
    if not ledger:
        return list(files)
    found: list[InputFile] = []
    comparison = _Comparison(ledger, options, report)
    for file in files:
        new: InputFile | None = file
        if file.size and file.is_first and file.end is None:
            with suppress(OSError):  # who reads it will say so
                new = comparison.new_part(file)
        if new is None:
            report.known += 1
        else:
            found.append(new)
    return found


class _Comparison:
    """Compares files with the list; a content that is gone from its place stands for one other file at most."""

    def __init__(self, ledger: Ledger, options: ReadOptions, report: IntakeReport) -> None:
        self._ledger = ledger
        self._options = options
        self._report = report
        self._claimed: set[FileContent] = set()

    def new_part(self, file: InputFile) -> InputFile | None:
        """What is to be read of a file; None if nothing is."""
        with closing(ByteStream(file, max_expansion=self._options.max_expansion)) as stream:
            kind = archive_kind(stream.head)
            if kind is None:
                return self._compared(file, stream)
            whole, identity = file_content(file.path)
            for one in self._with_key(whole.key):
                if one.digest == whole.digest and one.format == ARCHIVE and self._is_of(one, whole.path):
                    return None
            if not identity or identity != stream.identity:
                return file  # it is being written
            if not any(one.path.startswith(whole.path + "/") for one in self._ledger.contents):
                return file
            return replace(file, known=self._known_members(file, stream, kind), known_in=identity)

    def _with_key(self, key: bytes) -> list[FileContent]:
        """The contents with this key that were read as the options say."""
        wanted = self._options.source, self._options.format
        return [one for one in self._ledger.with_key(key) if one.was_read_as(*wanted)]

    def _is_of(self, one: FileContent, path: str) -> bool:
        """Whether a content is that of the file which is at `path` now."""
        if one.path == path:
            return True
        if one in self._claimed or not _may_be_rotated(one.path, path) or not _is_gone(one):
            return False
        if not self._goes_on(one.path, path):
            return False
        self._claimed.add(one)
        return True

    def _goes_on(self, before: str, now: str) -> bool:
        """Whether there is a log of which both names can be, if a number has grown: app.log, or a new app.log.1.

        Without one, job.1 and job.2 are rather the logs of two jobs, of which the first was removed.
        """
        base, digits, digits_now = _numbered(before, now)
        if not digits or len(digits) >= _DATE_DIGITS or digits_now == digits:
            return True
        log = os.path.join(os.path.dirname(before), base)  # noqa: PTH118, PTH120
        return Path(before).is_file() or Path(log).is_file() or any(one.path == log for one in self._ledger.contents)

    def _known_members(self, file: InputFile, stream: ByteStream, kind: str) -> frozenset[int]:
        """The numbers of the members of an archive that has changed which are as they were."""
        found: set[int] = set()
        try:
            for number, member in enumerate(members(file, stream, kind)):
                if member.raw is not None:
                    inner = ByteStream(member.file, raw=member.raw)
                    while inner.read(1 << 20):
                        pass
                    own = inner.content.content(path_text(member.file.path), "")
                    if any(one.digest == own.digest and one.path == own.path for one in self._with_key(own.key)):
                        found.add(number)
        except (DamagedError, OSError, CoprlakeError):
            return frozenset()
        return frozenset(found)

    def _compared(self, file: InputFile, stream: ByteStream) -> InputFile | None:
        """What is to be read of a file that is no archive."""
        alike = [one for key in keys_of(stream.head) for one in self._with_key(key) if one.format != ARCHIVE]
        if stream.compression is None:
            alike = [one for one in alike if one.size <= (file.size or 0)]
        if not alike:
            return file
        seams, total = _seams(stream, {one.size for one in alike})
        path = path_text(file.path)
        alike.sort(key=lambda one: (one.size, one.path == path), reverse=True)
        for one in alike:
            digest, seam = seams.get(one.size, (b"", None))
            if digest != one.digest or seam is None:
                continue
            if one.size == total:
                if self._is_of(one, path):
                    return None
            elif one.format not in _WHOLE and self._is_of(one, path):
                return self._continued(file, one, seam)
        return file

    def _continued(self, file: InputFile, one: FileContent, seam: Seam) -> InputFile:
        """What is to be read of a file that goes on with a content."""
        place = continuation(seam, one.format, file.modified, self._options)
        if place is None:
            self._report.warn(file.path, "has grown, but cannot be continued where it ended; read from its beginning")
            return file
        self._report.continued += 1
        if place.skip < one.size:
            self._report.warn(file.path, "has grown; its last record had been cut, and is stored again, whole")
        return replace(
            file, skip=place.skip, prefix=place.prefix, format=one.format, after=one.digest, after_size=one.size
        )


def _seams(stream: ByteStream, sizes: set[int]) -> tuple[dict[int, tuple[bytes, Seam]], int]:
    """The digest of the first bytes of a content and what is around their end, for each size; and the whole size."""
    found: dict[int, tuple[bytes, Seam]] = {}
    content = ContentHash()
    before, ahead, head = b"", b"", stream.head
    quotes = 0
    for size in sorted(sizes):
        while content.size < size:
            ahead = ahead or stream.read(1 << 20)
            if not ahead:
                return found, content.size
            part, ahead = ahead[: size - content.size], ahead[size - content.size :]
            content.update(part)
            quotes += part.count(b'"')
            before = (before + part)[-BEFORE_BYTES:]
        if len(ahead) < AHEAD_BYTES:
            ahead += stream.read(AHEAD_BYTES)
        in_quotes = (quotes - before.count(b'"')) % 2 == 1
        found[size] = content.digest(), Seam(size, head[:size], before, ahead[:AHEAD_BYTES], in_quotes)
    return found, content.size + len(ahead)  # exact if nothing follows the last size


def _may_be_rotated(before: str, now: str) -> bool:
    """Whether rotation may have given a file another name: numbers grow, a date stays once it is there."""
    folder, (folder_now, name_now) = os.path.dirname(before), os.path.split(now)  # noqa: PTH120
    base, digits, digits_now = _numbered(before, now)
    if folder != folder_now or base != _ROTATED.sub("", name_now) or not base:
        return False
    if len(digits) >= _DATE_DIGITS:
        return digits_now.startswith(digits)
    return int(digits_now or 0) >= int(digits or 0)


def _numbered(before: str, now: str) -> tuple[str, str, str]:
    """The name of a log without what rotation adds, and the digits that two rotated names of it have there."""
    name, name_now = os.path.basename(before), os.path.basename(now)  # noqa: PTH119
    base = _ROTATED.sub("", name)
    digits, digits_now = ("".join(_INDEX.findall(one[len(base) :])) for one in (name, name_now))
    return base, digits, digits_now


def _is_gone(content: FileContent) -> bool:
    """Whether a content is no longer where it was ingested from, so that a file with the same may be that one."""
    path = content.path
    while not os.path.lexists(path) and os.path.dirname(path) not in ("", path):  # noqa: PTH120
        path = os.path.dirname(path)  # noqa: PTH120 (a member is where its archive is)
        if Path(path).is_dir():
            return True
    try:
        with closing(ByteStream(InputFile(path, path, Path(path).stat().st_size, None))) as stream:
            if archive_kind(stream.head) is not None and content.format != ARCHIVE:
                return False
            return key_of(stream.head[:HEAD_BYTES], content.size) != content.key or len(stream.head) < min(
                content.size, HEAD_BYTES
            )
    except OSError:
        return True
