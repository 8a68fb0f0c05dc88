"""Which of some files were ingested before, or have grown since, by their contents.

A file counts as ingested if the table has all of its bytes from a file of the same path, or from one that is not there
any more: renamed, rotated or compressed since. A copy of a file that still is where it was is a file of its own.
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

_MOVED_BYTES: Final = 1024
"""A file goes on with one of quite another name that is gone only if that had so many bytes: short ones begin alike."""
_ROTATED: Final = re.compile(r"[-._]?\d+|\.(?:gz|bz2|xz|zst|lz4|old|bak)$")
"""What rotation adds to the name of a log: ``app.log.1``, ``app.log-20261118.gz``, ``app.old``."""
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
    for file in files:
        new: InputFile | None = file
        if file.size and file.is_first and file.end is None:
            with suppress(OSError):  # who reads it will say so
                new = _new_part(file, ledger, options, report)
        if new is None:
            report.known += 1
        else:
            found.append(new)
    return found


def _new_part(file: InputFile, ledger: Ledger, options: ReadOptions, report: IntakeReport) -> InputFile | None:
    """What is to be read of a file; None if nothing is."""
    with closing(ByteStream(file, max_expansion=options.max_expansion)) as stream:
        kind = archive_kind(stream.head)
        if kind is None:
            return _compared(file, stream, ledger, options, report)
        path = path_text(file.path)
        if not any(content.path == path for content in ledger.contents if content.format == ARCHIVE):
            whole = file_content(file.path)
            same = [one for one in ledger.with_key(whole.key) if one.digest == whole.digest]
            return None if any(_is_gone(one) for one in same) else file
        whole = file_content(file.path)
        if any(one.digest == whole.digest and one.path == path for one in ledger.with_key(whole.key)):
            return None
        return replace(file, known=_known_members(file, stream, kind, ledger))


def _known_members(file: InputFile, stream: ByteStream, kind: str, ledger: Ledger) -> frozenset[str]:
    """The members of an archive that has changed which are as they were."""
    found: set[str] = set()
    try:
        for member in members(file, stream, kind):
            if member.raw is not None:
                with closing(ByteStream(member.file, raw=member.raw)) as inner:
                    while inner.read(1 << 20):
                        pass
                    assert inner.content is not None
                    own = inner.content.content(path_text(member.file.path), "")
                    if any(one.digest == own.digest and one.path == own.path for one in ledger.with_key(own.key)):
                        found.add(member.file.path)
    except (DamagedError, OSError, CoprlakeError):
        return frozenset()
    return frozenset(found)


def _compared(
    file: InputFile, stream: ByteStream, ledger: Ledger, options: ReadOptions, report: IntakeReport
) -> InputFile | None:
    """What is to be read of a file that is no archive."""
    alike = [one for key in keys_of(stream.head) for one in ledger.with_key(key) if one.format != ARCHIVE]
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
            if one.path == path or _is_gone(one):
                return None
        elif one.format not in _WHOLE and (one.path == path or (_may_be_moved(one, path) and _is_gone(one))):
            name = one.format if options.format == "auto" else options.format
            place = continuation(seam, name, file.modified, options) if name == one.format else None
            if place is None:
                report.warn(file.path, "has grown, but cannot be continued where it ended; read from its beginning")
                return file
            report.continued += 1
            if place.skip < one.size:
                report.warn(file.path, "has grown; its last record had been cut, and is stored again, whole")
            return replace(file, skip=place.skip, prefix=place.prefix, format=name, after=one.digest)
    return file


def _seams(stream: ByteStream, sizes: set[int]) -> tuple[dict[int, tuple[bytes, Seam]], int]:
    """The digest of the first bytes of a content and what is around their end, for each size; and the whole size."""
    found: dict[int, tuple[bytes, Seam]] = {}
    content = ContentHash()
    before, ahead, head = b"", b"", stream.head
    for size in sorted(sizes):
        while content.size < size:
            ahead = ahead or stream.read(1 << 20)
            if not ahead:
                return found, content.size
            part, ahead = ahead[: size - content.size], ahead[size - content.size :]
            content.update(part)
            before = (before + part)[-BEFORE_BYTES:]
        if len(ahead) < AHEAD_BYTES:
            ahead += stream.read(AHEAD_BYTES)
        found[size] = content.digest(), Seam(size, head[:size], before, ahead[:AHEAD_BYTES])
    return found, content.size + len(ahead)  # exact if nothing follows the last size


def _may_be_moved(content: FileContent, path: str) -> bool:
    """Whether a file that begins as an earlier one did, and is longer, may be that one under another name."""
    names = [_ROTATED.sub("", one) for one in (content.path, path)]
    return content.size >= _MOVED_BYTES or names[0] == names[1]


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
