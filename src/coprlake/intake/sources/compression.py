"""Bytes of a file, whatever it is compressed with, up to the place where it is damaged.

The kind of compression is read from the first bytes, not from the name. A file that ends too early or is broken in
the middle gives everything before that place, and then says so.
"""

import bz2
import lzma
import os
import select
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa

from coprlake.errors import ConflictError
from coprlake.intake.sources.contents import ContentHash, identity_of
from coprlake.intake.sources.inputs import STDIN, InputFile

SNIFF_BYTES: Final = 64 * 1024
_PIECE_BYTES: Final = 64 * 1024
_SMALL_PIECE_BYTES: Final = 4096
_PATIENCE_SECONDS: Final = 0.5
"""How long what a slow pipe has delivered waits for more."""

EXPANSION_FREE_BYTES: Final = 1 << 30
"""Up to here a file may expand as it likes: small files of repeated lines are no bombs."""

_MAGICS: Final = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x04\x22\x4d\x18": "lz4",
}


class DamagedError(Exception):
    """The compressed bytes end or break here; never leaves this folder."""


class _Counted:
    """A file that knows how many of its bytes were taken and whether they were the last."""

    def __init__(self, file: BinaryIO, size: int | None, limit: int | None) -> None:
        self.file = file
        self.size = size
        self.limit = limit
        self.count = 0
        self.closed = False
        self._back = b""

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; of a pipe what has come when its writer takes a break."""
        if self._back:
            size = len(self._back) if size < 0 else size
            data, self._back = self._back[:size], self._back[size:]
            return data
        if self.limit is not None:
            left = self.limit - self.count
            size = min(size, left) if size >= 0 else left
        data = self.file.read(size) if self.size is not None else _read_patiently(self.file, size)
        self.count += len(data)
        return data

    def unread(self, data: bytes) -> None:
        """Let the next `read` return `data`."""
        self._back = data + self._back

    @property
    def is_near_end(self) -> bool:
        """Whether nothing is left to take."""
        return self.size is not None and self.count >= self.size

    def close(self) -> None:
        """For `pyarrow.PythonFile`, which closes what it is given."""


def _read_patiently(file: BinaryIO, size: int) -> bytes:
    """Of a pipe: what comes within half a second after the first bytes, up to `size`."""
    read_some: Callable[[int], bytes] = getattr(file, "read1", file.read)
    parts = [read_some(size)]
    total, until = len(parts[0]), time.monotonic() + _PATIENCE_SECONDS
    while parts[-1] and total < size and time.monotonic() < until:
        try:
            if not select.select([file.fileno()], [], [], max(0.0, until - time.monotonic()))[0]:
                break
        except (OSError, ValueError, AttributeError):
            pass  # no file of the operating system: nothing to wait for
        parts.append(read_some(size - total))
        total += len(parts[-1])
    return b"".join(parts)


def compression_of(head: bytes) -> str | None:
    """The compression that a file with these first bytes has."""
    return next((name for magic, name in _MAGICS.items() if head.startswith(magic)), None)


def _gunzip(file: _Counted) -> Iterator[bytes]:
    """Members one after another; zeros behind the last one are padding."""
    member = 0
    data = b""
    while True:
        data = data or file.read(_PIECE_BYTES)
        if member:
            data = data.lstrip(b"\0")
            if not data:
                if not (data := file.read(_PIECE_BYTES)):
                    return
                continue
            data += file.read(2) if len(data) < 2 else b""
        if member and not data.startswith(b"\x1f\x8b"):
            raise DamagedError("what follows the compressed data is no gzip and was not read")
        decoder = zlib.decompressobj(31)
        while not decoder.eof:
            data = data or file.read(_PIECE_BYTES)
            if not data:
                raise DamagedError("the gzip data ends too early: the file is cut off")
            before = decoder.copy()
            try:
                text = decoder.decompress(data, _PIECE_BYTES * 16)
            except zlib.error as error:
                yield from _byte_by_byte(before, data)
                raise DamagedError(f"the gzip data is broken ({error})") from error
            data = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
            if text:
                yield text
        member += 1


def _byte_by_byte(decoder: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    """What comes before the break inside `data`."""
    try:
        for i in range(len(data)):
            if text := decoder.decompress(data[i : i + 1]):
                yield text
    except zlib.error:
        return


def _bunzip(file: _Counted) -> Iterator[bytes]:
    data = file.read(_SMALL_PIECE_BYTES)
    member = 0
    while data:
        if member and not data.startswith(b"BZ"[: len(data)]):
            raise DamagedError("what follows the compressed data is no bzip2 and was not read")
        decoder = bz2.BZ2Decompressor()
        while not decoder.eof:
            if decoder.needs_input:
                data = data or file.read(_SMALL_PIECE_BYTES)
                if not data:
                    raise DamagedError("the bzip2 data ends too early: the file is cut off")
            try:
                text = decoder.decompress(data if decoder.needs_input else b"", _PIECE_BYTES)
            except (OSError, ValueError) as error:
                raise DamagedError(f"the bzip2 data is broken ({error})") from error
            data = decoder.unused_data if decoder.eof else b""
            if text:
                yield text
        member += 1
        data = data or file.read(_SMALL_PIECE_BYTES)


def _unxz(file: _Counted) -> Iterator[bytes]:
    """Streams one after another, each of whose length is a multiple of four; zeros between them are padding."""
    data = file.read(_SMALL_PIECE_BYTES)
    member = 0
    while data:
        if member and not data.startswith(b"\xfd7zXZ\x00"[: len(data)]):
            raise DamagedError("what follows the compressed data is no xz and was not read")
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        while not decoder.eof:
            if decoder.needs_input:
                data = data or file.read(_SMALL_PIECE_BYTES)
                if not data:
                    raise DamagedError("the xz data ends too early: the file is cut off")
            try:
                text = decoder.decompress(data if decoder.needs_input else b"", _PIECE_BYTES)
            except (lzma.LZMAError, MemoryError) as error:
                raise DamagedError(f"the xz data is broken ({error})") from error
            data = decoder.unused_data if decoder.eof else b""
            if text:
                yield text
        member += 1
        data = data.lstrip(b"\0")
        while not data and (more := file.read(_SMALL_PIECE_BYTES)):
            data = more.lstrip(b"\0")


def _unlz4(file: _Counted) -> Iterator[bytes]:
    """Through Arrow."""
    try:
        stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "lz4")
        while data := stream.read(_PIECE_BYTES):
            yield data
    except (OSError, pa.ArrowException) as error:
        raise DamagedError(f"the lz4 data is broken or cut off ({error})") from error


def _unzstd(file: _Counted) -> Iterator[bytes]:
    """Through Arrow, whose reader says nothing about the bytes before a break: near the end it is asked for little."""
    given = 0
    stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
    try:
        while data := stream.read(_SMALL_PIECE_BYTES if file.is_near_end else _PIECE_BYTES):
            given += len(data)
            yield data
    except (OSError, pa.ArrowException) as error:
        yield from _before_break(file, given)
        raise DamagedError(f"the zstd data is broken or cut off ({error})") from error


def _before_break(file: _Counted, given: int) -> Iterator[bytes]:
    """The last bytes before the break of a file that can be read again."""
    if file.size is None:
        return
    file.file.seek(0)
    try:
        stream = pa.CompressedInputStream(pa.PythonFile(file.file, mode="r"), "zstd")
        while given:
            again = stream.read(min(given, _PIECE_BYTES))
            if not again:
                return  # the file has become shorter
            given -= len(again)
        while byte := stream.read(1):
            yield byte
    except (OSError, pa.ArrowException):
        return


def _plain(file: _Counted) -> Iterator[bytes]:
    while data := file.read(1 << 20):
        yield data


_DECODERS: Final = {"gzip": _gunzip, "bz2": _bunzip, "xz": _unxz, "lz4": _unlz4, "zstd": _unzstd, None: _plain}


class ByteStream:
    """The decompressed bytes of one input, to be read once.

    Attributes:
        from_start: whether they begin with those of the file: marks of its compression and encoding are only there.
        damage: what is wrong with the file, once that place has been reached.
        head: the first 64 KiB, which `read` gives as well.
        content: the hash of all that was decompressed, also of what is skipped; of a range of a file, of its bytes.
        is_continued: whether what the input leaves out was left out: it was there, byte for byte.
        identity: which file on disk this is; see `identity_of`.

    Args:
        file: the input.
        stdin: what ``-`` means.
        max_expansion: see `ReadOptions`.
        raw: the bytes of the input, if it is a member of an archive.

    Raises:
        ConflictError: a range is one of a file that was replaced since it was planned.
    """

    def __init__(
        self,
        file: InputFile,
        stdin: BinaryIO | None = None,
        *,
        max_expansion: int = 0,
        raw: BinaryIO | None = None,
    ) -> None:
        self.damage: str | None = None
        self._max_expansion = max_expansion
        self._ended = False
        raw = stdin if file.path == STDIN else raw
        self._left = b""
        self._owned = raw is None
        self._raw: BinaryIO
        if raw is not None:
            self._raw = raw
        elif file.path == STDIN:
            self._raw = os.fdopen(os.dup(0), "rb")
        else:
            self._raw = Path(file.path).open("rb")  # noqa: SIM115 (closed by close)
        self.identity = identity_of(self._raw)
        self.from_start = file.start == 0
        if file.end is not None and file.hashed_from == 0 and file.after:
            self._check_range(file)
        self._begin(file)
        self.is_continued = bool(file.after) and file.end is None and self._leave_out(file)
        if file.after and file.end is None and not self.is_continued:
            self._raw.seek(0)
            self._begin(file)
        self.head = self.read(SNIFF_BYTES)
        self._left = self.head + self._left

    def _begin(self, file: InputFile) -> None:
        self.content = ContentHash()
        self._ended, self.damage = False, None
        if not self.from_start:
            self._raw.seek(file.start)
        self._counted = _Counted(self._raw, file.length, None if file.end is None else file.length)
        first = self._counted.read(_PIECE_BYTES)
        self._counted.unread(first)
        self.compression = compression_of(first) if self.from_start else None
        self._pieces = self._limited(_DECODERS[self.compression](self._counted))
        self._left = b""

    def _leave_out(self, file: InputFile) -> bool:
        """Read over what was read before; False if it is something else by now, as after a rotation."""
        known, behind = ContentHash(), b""
        while known.size < file.after_size:
            data = self.read(min(file.after_size - known.size, 1 << 20))
            if not data:
                return False
            behind += data[max(0, file.skip - known.size) :]
            known.update(data)
        if known.digest() != file.after:
            return False
        if self.read(max(0, file.skip - known.size)) not in (b"", b"\n", b"\r\n"):
            return False  # not the end of the line that was there
        self._left = file.prefix + behind + self._left
        return True

    def _check_range(self, file: InputFile) -> None:
        known = ContentHash()
        while known.size < file.after_size and (data := self._raw.read(min(file.after_size - known.size, 1 << 20))):
            known.update(data)
        self._raw.seek(0)
        if known.digest() != file.after:
            self.close()
            raise ConflictError(f"{file.path}: was replaced while it was ingested; nothing was committed, try again")

    @property
    def raw(self) -> BinaryIO:
        """The open file, for who reads it in another order."""
        return self._raw

    def _limited(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The pieces up to the place where the file turns out to be a bomb."""
        if self.compression is None or not self._max_expansion:
            yield from pieces
            return
        expanded = 0
        for piece in pieces:
            expanded += len(piece)
            if expanded > max(EXPANSION_FREE_BYTES, self._max_expansion * self._counted.count):
                raise DamagedError(
                    f"expands to more than {self._max_expansion} times its size: {expanded >> 20} MiB from "
                    f"{self._counted.count} bytes, which looks like a bomb; if it is none, raise --max-expansion "
                    "(max_expansion of ReadOptions), or set it to 0"
                )
            yield piece

    @property
    def is_empty(self) -> bool:
        """Whether `read` is known to have nothing more to give."""
        return self._ended and not self._left

    @property
    def bytes_read(self) -> int:
        """Bytes taken from the disk so far."""
        return self._counted.count

    def read(self, size: int) -> bytes:
        """The next `size` bytes; less at the end or when a pipe is slow, nothing behind it."""
        if self.compression is None and self._counted.size is not None and len(self._left) < size:
            return self._read_plain(size)
        parts, total = [self._left], len(self._left)
        self._left = b""
        is_pipe = self._counted.size is None and self.compression is None
        while total < size and not (is_pipe and total):  # better a small block now than a full one some day
            try:
                part = next(self._pieces, b"")
            except DamagedError as error:
                self.damage = str(error)
                part = b""
            except OSError as error:
                self.damage = f"cannot be read further: {error.strerror or error}"
                part = b""
            if not part:
                self._ended = True
                break
            self.content.update(part)
            parts.append(part)
            total += len(part)
        data = b"".join(parts) if len(parts) > 1 else parts[0]
        self._left = data[size:]
        return data if not self._left else data[:size]

    def _read_plain(self, size: int) -> bytes:
        """As `read`, without pieces: nothing is copied but what was left."""
        left, self._left = self._left, b""
        try:
            data = self._counted.read(size - len(left))
            if left and len(data) < size - len(left):
                data += self._counted.read(size - len(left) - len(data))  # the first bytes had been put back
        except OSError as error:
            self.damage = f"cannot be read further: {error.strerror or error}"
            data = b""
        self.content.update(data)
        self._ended = len(left) + len(data) < size
        if self._ended and self.damage is None and self._counted.count < (self._counted.limit or 0):
            missing = (self._counted.limit or 0) - self._counted.count
            self.damage = f"{missing} bytes that were there before are missing: the file has become shorter"
        return left + data if left else data

    def close(self) -> None:
        """Close the file unless it was handed over open."""
        if self._owned:
            self._raw.close()
