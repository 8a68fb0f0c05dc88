"""What a file held when it was read: its size and a hash of its bytes, by which it is known again.

The hash is made of the hashes of pieces, so that several tasks can compute it, and that of a file's first part can be
compared with that of a file that was shorter. Compressed files are known by what is in them.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from coprlake.intake.sources.inputs import InputFile

PIECE_BYTES: Final = 1 << 20
HEAD_BYTES: Final = 4096
_DIGEST_BYTES: Final = 16
_KEY_BYTES: Final = 8
ARCHIVE: Final = "archive"
"""The format of an archive as a whole; its bytes are those on disk."""


@dataclass(frozen=True)
class FileContent:
    """What was read from one file.

    Attributes:
        path: the absolute path; for a member of an archive that of the archive, a slash, and its name.
        size: the bytes, decompressed.
        key: of its first bytes, to find it by; see `keys_of`.
        digest: the hash of all bytes.
        format: as it was read.
        after: the digest of the content of which this is the continuation; empty if everything was read.
        source: the source that was asked for; None if it was left to the path.
        wanted: the format that was asked for.
    """

    path: str
    size: int
    key: bytes
    digest: bytes
    format: str
    after: bytes = b""
    source: str | None = None
    wanted: str = "auto"

    def was_read_as(self, source: str | None, wanted: str) -> bool:
        """Whether to read it with this source and format now would give the same records."""
        return self.source == source and wanted in (self.wanted, self.format)


@dataclass(frozen=True)
class RangeContent:
    """What was read from a range of a file that is not compressed.

    Attributes:
        path: of the file.
        start: where the range begins.
        end: where it ends.
        head: the file's first bytes.
        digests: of the pieces that begin in the range; in that where the file's reading begins, of all before, too.
        format: as it was read.
        after: see `FileContent`.
        source: see `FileContent`.
        wanted: see `FileContent`.
        inode: of the file that was read; ranges of different ones make no content.
    """

    path: str
    start: int
    end: int
    head: bytes
    digests: bytes
    format: str
    after: bytes = b""
    source: str | None = None
    wanted: str = "auto"
    inode: int = 0


def joined_ranges(ranges: Iterable[RangeContent]) -> list[FileContent]:
    """The contents of files of which all ranges were read."""
    found: list[FileContent] = []
    by_path: dict[str, list[RangeContent]] = {}
    for one in ranges:
        by_path.setdefault(one.path, []).append(one)
    for path, own in by_path.items():
        own.sort(key=lambda one: one.start)
        last = own[-1]
        digests = b"".join(one.digests for one in own)
        is_whole = len(digests) == -(-last.end // PIECE_BYTES) * _DIGEST_BYTES  # else a range could not be read
        if is_whole and len({(one.inode, one.head) for one in own}) == 1:
            key, first = key_of(own[0].head, last.end), own[0]
            whole = combined([digests])
            found.append(FileContent(path, last.end, key, whole, last.format, first.after, first.source, first.wanted))
    return found


class ContentHash:
    """The hash of bytes that come one after the other.

    Attributes:
        size: how many there were.
        head: the first of them.
    """

    def __init__(self) -> None:
        self.size = 0
        self.head = b""
        self._digests = bytearray()
        self._piece = hashlib.sha256()

    def update(self, data: bytes) -> None:
        """Add bytes."""
        if len(self.head) < HEAD_BYTES:
            self.head += data[: HEAD_BYTES - len(self.head)]
        view = memoryview(data)
        while len(view):
            part = view[: PIECE_BYTES - self.size % PIECE_BYTES]
            self._piece.update(part)
            self.size += len(part)
            view = view[len(part) :]
            if self.size % PIECE_BYTES == 0:
                self._digests += self._piece.digest()[:_DIGEST_BYTES]
                self._piece = hashlib.sha256()

    def digest(self) -> bytes:
        """The hash of what was added so far."""
        last = self._piece.digest()[:_DIGEST_BYTES] if self.size % PIECE_BYTES else b""
        return combined([bytes(self._digests), last])

    def content(self, path: str, name: str, after: bytes = b"") -> FileContent:
        """What was read of the file at `path`."""
        return FileContent(path, self.size, key_of(self.head, self.size), self.digest(), name, after)


def identity_of(raw: BinaryIO) -> tuple[int, ...]:
    """Which file on disk this is, and in what state: it changes when the file is written; empty if it is none."""
    try:
        status = os.fstat(raw.fileno())
    except (OSError, AttributeError):
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def file_content(path: str) -> tuple[FileContent, tuple[int, ...]]:
    """What an archive is as a whole, the bytes on disk; and which file that is, nothing if it changed meanwhile."""
    found = ContentHash()
    with Path(path).open("rb") as raw:
        before = identity_of(raw)
        while data := raw.read(PIECE_BYTES):
            found.update(data)
        identity = before if identity_of(raw) == before else ()
    return found.content(path_text(path), ARCHIVE), identity


def range_content(file: InputFile, raw: BinaryIO, read: "ContentHash", path: str, name: str) -> RangeContent | None:
    """What a range of a plain file held; it is read once more, from the system's cache as a rule.

    Args:
        file: the range.
        raw: the open file that it was read from.
        read: what was read.
        path: of the file.
        name: its format.

    Returns:
        None if it holds something else by now.
    """
    assert file.end is not None
    assert file.size is not None
    start = file.start if file.hashed_from is None else file.hashed_from
    same, left = ContentHash(), file.end - file.start
    raw.seek(file.start)
    while left and (data := raw.read(min(left, PIECE_BYTES))):
        same.update(data)
        left -= len(data)
    if same.digest() != read.digest():
        return None
    raw.seek(0)
    head = raw.read(HEAD_BYTES)[: file.size]
    digests = piece_digests(raw, start, file.end, file.size)
    inode = (*identity_of(raw), 0, 0)[1]
    return RangeContent(path, file.start, file.end, head, digests, name, file.after, inode=inode)


def path_text(path: str) -> str:
    """The absolute path of a file as text, whatever bytes its name has."""
    return os.fsencode(os.path.abspath(path)).decode("utf-8", "backslashreplace")  # noqa: PTH100


def combined(digests: Iterable[bytes]) -> bytes:
    """The hash of a content from those of its pieces, in their order."""
    return hashlib.sha256(b"".join(digests)).digest()[:_DIGEST_BYTES]


def piece_digests(file: BinaryIO, start: int, end: int, size: int) -> bytes:
    """The hashes of the pieces of a file of `size` bytes that begin from `start` on and before `end`."""
    digests = bytearray()
    for place in range(-(-start // PIECE_BYTES) * PIECE_BYTES, end, PIECE_BYTES):
        file.seek(place)
        if piece := file.read(min(PIECE_BYTES, size - place)):
            digests += hashlib.sha256(piece).digest()[:_DIGEST_BYTES]
    return bytes(digests)


def key_of(head: bytes, size: int) -> bytes:
    """The key of a content of `size` bytes that begins with `head`: a hash of as many bytes as a power of two."""
    return _key(head, min(size, HEAD_BYTES).bit_length() - 1)


def keys_of(head: bytes) -> Sequence[bytes]:
    """The keys that a content has, or that any shorter one had which it continues; longest first."""
    return [_key(head, bits) for bits in reversed(range(min(len(head), HEAD_BYTES).bit_length()))]


def _key(head: bytes, bits: int) -> bytes:
    return bytes([bits]) + hashlib.sha256(head[: 1 << bits]).digest()[:_KEY_BYTES]
