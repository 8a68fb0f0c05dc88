"""Archives are read member by member: ``.zip``, and ``.tar`` with any compression.

Nothing is unpacked to disk, so the names of members are only names. Members that are archives themselves, encrypted or
not files are passed over and named.
"""

import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import IO, BinaryIO, Final, NamedTuple, cast

from coprlake.intake.sources.compression import EXPANSION_FREE_BYTES, ByteStream, DamagedError
from coprlake.intake.sources.inputs import InputFile

ZIP_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06")
_TAR_MAGIC: Final = b"ustar"
_TAR_MAGIC_PLACE: Final = 257
_DOCUMENTS: Final = ("[Content_Types].xml", "META-INF/MANIFEST.MF", "mimetype", "AndroidManifest.xml")
"""Members by which a zip archive is a document or a program."""

_DAMAGE: Final = (
    zipfile.BadZipFile,
    tarfile.TarError,
    EOFError,
    OSError,
    zlib.error,
    NotImplementedError,
    RuntimeError,
)


class Member(NamedTuple):
    """A member of an archive: what it is, its bytes, or why these are not read."""

    file: InputFile
    raw: BinaryIO | None
    problem: str | None = None


def archive_kind(head: bytes) -> str | None:
    """Whether a content that begins so is an archive: ``zip``, ``tar`` or None."""
    if head.startswith(ZIP_MAGICS):
        return "zip"
    if head[_TAR_MAGIC_PLACE : _TAR_MAGIC_PLACE + len(_TAR_MAGIC)] == _TAR_MAGIC:
        return "tar"
    return None


def is_document(file: InputFile) -> bool:
    """Whether a zip archive is a document or program of an office, of Java or of Android."""
    try:
        with zipfile.ZipFile(file.path) as archive:
            return any(name in archive.NameToInfo for name in _DOCUMENTS)
    except (*_DAMAGE, ValueError):
        return False


def members(file: InputFile, stream: ByteStream, kind: str, max_expansion: int = 0) -> Iterator[Member]:
    """The members of an archive, each to be read before the next is asked for.

    Args:
        file: the archive.
        stream: its bytes, decompressed.
        kind: as `archive_kind` says.
        max_expansion: see `ReadOptions`; all members count together.

    Raises:
        DamagedError: the archive ends or breaks here.
    """
    try:
        if kind == "zip":
            yield from _of_zip(file, stream, _Allowance(max_expansion, lambda: file.size or 0))
        else:
            yield from _of_tar(file, stream, _Allowance(max_expansion, lambda: stream.bytes_read))
    except _DAMAGE as error:
        raise DamagedError(f"the archive is broken or cut off ({error})") from error


class _Allowance:
    """How much all members of an archive may expand to."""

    def __init__(self, max_expansion: int, packed_bytes: Callable[[], int]) -> None:
        self._max_expansion = max_expansion
        self._packed_bytes = packed_bytes
        self._expanded = 0

    def take(self, count: int) -> None:
        """Count bytes that were read; an error once the archive turns out to be a bomb."""
        self._expanded += count
        limit = max(EXPANSION_FREE_BYTES, self._max_expansion * self._packed_bytes())
        if self._max_expansion and self._expanded > limit:
            raise OSError(
                f"the archive expands to more than {self._max_expansion} times its size, which looks like a bomb; if "
                "it is none, raise --max-expansion (max_expansion of ReadOptions), or set it to 0"
            )


class _MemberReader:
    """The bytes of a member; whatever is wrong with them is an `OSError`."""

    def __init__(self, raw: IO[bytes], allowance: _Allowance) -> None:
        self._raw = raw
        self._allowance = allowance

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        try:
            data = self._raw.read(size)
        except OSError:
            raise
        except _DAMAGE as error:
            raise OSError(f"the archive is broken or cut off ({error})") from error
        self._allowance.take(len(data))
        return data


def _of_zip(file: InputFile, stream: ByteStream, allowance: _Allowance) -> Iterator[Member]:
    if file.size is None:
        raise DamagedError("a zip archive is read from its end, so it cannot come through a pipe; save it to a file")
    with zipfile.ZipFile(stream.raw) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16
            if info.is_dir() or (stat.S_IFMT(mode) and not stat.S_ISREG(mode)):
                continue
            member = _member(file, info.filename, info.file_size, _moment(info.date_time))
            if info.flag_bits & 1:
                yield Member(member, None, "is encrypted, and was not read")
                continue
            try:
                opened = archive.open(info)
            except _DAMAGE as error:
                yield Member(member, None, f"cannot be read: {error}")
                continue
            with opened:
                yield Member(member, cast("BinaryIO", _MemberReader(opened, allowance)))


def _of_tar(file: InputFile, stream: ByteStream, allowance: _Allowance) -> Iterator[Member]:
    with tarfile.open(fileobj=cast("IO[bytes]", _Reader(stream)), mode="r|") as archive:
        for info in archive:
            opened = archive.extractfile(info) if info.isreg() else None
            if opened is not None:
                with closing(opened):
                    member = _member(file, info.name, info.size, info.mtime)
                    yield Member(member, cast("BinaryIO", _MemberReader(opened, allowance)))


class _Reader:
    """A stream for `tarfile`, which wants exactly as much as it asks for."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        while len(data) < size and not self._stream.is_empty:
            more = self._stream.read(size - len(data))
            if not more:
                break
            data += more
        return data


def _member(file: InputFile, name: str, size: int, modified: float | None) -> InputFile:
    """A member as a file; its name, which may be anything, only serves to show and to recognize it."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    name = "/".join("%2E%2E" if part == ".." else part for part in parts)
    return replace(
        file,
        path=f"{file.path}/{name}",
        source=f"{file.source}/{name}",
        size=size,
        modified=modified if modified is not None and modified > 0 else file.modified,
        known=frozenset(),
        known_in=(),
    )


def _moment(parts: tuple[int, int, int, int, int, int]) -> float | None:
    """When a member of a zip archive was changed, in seconds since 1970: it has the local time without a zone."""
    try:
        year, month, day, hour, minute, second = parts
        return time.mktime((year, month, day, hour, minute, second, 0, 0, -1)) if year > 1980 else None
    except (OverflowError, ValueError):
        return None
