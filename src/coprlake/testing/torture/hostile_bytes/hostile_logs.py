"""Hostile raw logs and compressed files: whatever can be read must become records."""

import bz2
import gzip
import json
import random
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from coprlake.intake.reading import Intake, ReadOptions
from coprlake.intake.sources.compression import ByteStream
from coprlake.intake.sources.inputs import InputFile
from coprlake.testing.torture.hostile_bytes.hostile import Case, Kind, log_lines
from coprlake.testing.torture.hostile_bytes.mutating import Edit, edited, random_edits

_BLOCKS: Final = (700, 3000, 4 << 20, 4 << 20)


def _raw_logs() -> dict[str, bytes]:
    lines = log_lines(11, 30)
    objects = [{"time": line[:20], "level": line[21:25], "msg": line, "n": {"a": [1, None]}} for line in lines]
    rows = [f'{line[:20]},{line[21:25]},"{line}",{number}' for number, line in enumerate(lines)]
    stamped = [
        f"<{34 + number}>Nov 18 01:02:{number:02d} host app[{number}]: {line}" for number, line in enumerate(lines)
    ]
    stamped += [f'<165>1 {line[:20]} host app 77 ID47 [a@1 k="v"] {line}' for line in lines[:10]]
    access = [
        f'10.0.0.{n} - - [18/Nov/2026:01:02:{n:02d} +0000] "GET /a?b={n} HTTP/1.1" 200 {n} "-" "x"' for n in range(30)
    ]
    traces = [text for line in lines for text in (line, "  at a.b.C(D.java:1)", "Caused by: E")]
    return {
        "text": "\n".join(lines).encode() + b"\n",
        "multiline": "\n".join(traces).encode(),
        "ndjson": "\n".join(map(json.dumps, objects)).encode() + b"\n",
        "csv": "\n".join(["time,level,message,number", *rows]).encode() + b"\r\n",
        "syslog": "\n".join(stamped).encode() + b"\n",
        "access": "\n".join(access).encode() + b"\n",
        "utf-16": "\n".join(lines).encode("utf-16"),
    }


def _naive_lines(data: bytes) -> list[str]:
    """The lines of a text as an editor shows them."""
    *lines, last = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    lines = [line.removesuffix(b"\r") for line in lines] + ([last] if last else [])
    return [line.decode("utf-8", "replace") for line in lines]


class RawLogs(Kind):
    """Logs of every format: the intake must read all of them, and every line of plain text must become a record."""

    name = "raw log"
    weight = 110

    def prepare(self, folder: Path) -> None:
        """Create the logs."""
        self._file = folder / "app.log"
        self._bases = _raw_logs()

    def case(self, chance: random.Random) -> Case:
        """One of the logs with a few edits, read with format detection or as its own format."""
        name = chance.choice(list(self._bases))
        data = self._bases[name]
        edits = random_edits(chance, data, list(self._bases.values()))
        own = name if name in ("ndjson", "csv", "syslog", "access") and chance.random() < 0.5 else "auto"
        form = "text" if name == "text" else own
        multiline = "" if name == "text" else None
        options = ReadOptions(format=form, multiline=multiline, block_bytes=chance.choice(_BLOCKS), year=2026)

        def check(some: Sequence[Edit]) -> str | None:
            changed = edited(data, some)
            self._file.write_bytes(changed)
            with Intake([self._file], options) as intake:
                batches = list(intake)
            records = sum(batch.num_rows for batch in batches)
            if records != intake.report.records:
                return f"{records} records, the report says {intake.report.records}"
            if form != "text":
                return None if records or not changed.strip() else _nothing(changed)
            return _compare_lines(changed, batches)

        return Case(f"{name}, as {form}, blocks of {options.block_bytes}", edits, check)


def _nothing(data: bytes) -> str | None:
    """A header alone, or blanks, give no records; anything else must."""
    lines = [line for line in data.splitlines() if line.strip(b"\0 \t\r\n\xef\xbb\xbf\xff\xfe")]
    return "no record of a file that has lines" if len(lines) > 1 else None


def _compare_lines(data: bytes, batches: Sequence[pa.RecordBatch]) -> str | None:
    if (
        data[:2] in (b"\xff\xfe", b"\xfe\xff")
        or data[:3] in (b"\x1f\x8b\x08", b"BZh")
        or data[:4] in (b"\x28\xb5\x2f\xfd", b"PAR1")
    ):
        return None
    found = [str(line) for batch in batches for line in batch.column("content").to_pylist()]
    wanted = [line for line in _naive_lines(data) if line]
    found = [line for line in found if line]
    if [_folded(line) for line in found] != [_folded(line) for line in wanted]:
        return f"{len(found)} lines instead of {len(wanted)}, or other ones"
    return None


def _folded(line: str) -> str:
    """Collapse replacement characters: decoders may use one or several for a run of bad bytes."""
    while "\ufffd\ufffd" in line:
        line = line.replace("\ufffd\ufffd", "\ufffd")
    return line


def _gunzip(data: bytes) -> bytes:
    return gzip.decompress(data)


class CompressedFiles(Kind):
    """Compressed logs: we must read what other programs read, or report the damage."""

    name = "compressed"
    weight = 60

    def prepare(self, folder: Path) -> None:
        """Compress a log in every way."""
        self._file = folder / "app.log.gz"
        text = "\n".join(log_lines(13, 60)).encode()
        self._bases: dict[str, tuple[bytes, Callable[[bytes], bytes]]] = {
            "gzip": (gzip.compress(text, mtime=0), _gunzip),
            "gzip, two members": (gzip.compress(text, mtime=0) + gzip.compress(text, mtime=0), _gunzip),
            "bzip2": (bz2.compress(text), bz2.decompress),
            "zstd": (bytes(pa.Codec("zstd").compress(text)), _unzstd),
        }

    def case(self, chance: random.Random) -> Case:
        """One of the files with a few edits."""
        name = chance.choice(list(self._bases))
        data, plainly = self._bases[name]
        edits = random_edits(chance, data, [data for data, _ in self._bases.values()])
        size = chance.choice((100, 64 * 1024))

        def check(some: Sequence[Edit]) -> str | None:
            changed = edited(data, some)
            self._file.write_bytes(changed)
            stream = ByteStream(InputFile(str(self._file), "", len(changed), 0.0), max_expansion=250)
            try:
                found = bytearray()
                while part := stream.read(size):
                    found += part
            finally:
                stream.close()
            if stream.damage or stream.compression != name.partition(",")[0].replace("bzip2", "bz2"):
                return None
            try:
                wanted = plainly(changed)
            except (OSError, EOFError, ValueError, zlib.error, pa.ArrowException):
                return "no damage was named, and other programs find some"
            return None if bytes(found) == wanted else "not what other programs get"

        return Case(name, edits, check)


def _unzstd(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return bytes(stream.read())
