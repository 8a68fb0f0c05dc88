"""A checkpoint that a power loss has hurt: what Spark cannot read, and the table does not need, goes.

All that a committed batch rests on was synced before its commit (`checkpoints.sync_checkpoint`). So what is damaged
tells of a batch that was not committed, which Spark then plans anew, or that the last one was completed, which the
table knows.
"""

import json
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ENTRY: Final = re.compile(r"\.?(\d+)(\.compact)?(\.crc)?")


def mend_checkpoint(checkpoint: Path, last: int | None) -> list[str]:
    """Remove entries after the last committed batch if one of them is damaged; returns their names.

    Args:
        checkpoint: a folder on this machine.
        last: the number of the last batch that is in the table, None if there is none.
    """
    batch = -1 if last is None else last
    unsure = [*_entries(checkpoint / "offsets", batch + 1), *_entries(checkpoint / "commits", max(batch, 0))]
    place = -1 if last is None else _place(checkpoint / "offsets" / str(last))
    if place is not None:
        unsure += [path for source in (checkpoint / "sources").glob("*") for path in _entries(source, place + 1)]
    if any(path.name.endswith(".compact") for path in unsure):  # older entries may be gone: only Spark can tell
        return []
    if all(_is_whole(path) for path in unsure) and _is_complete(checkpoint, unsure):
        return []
    for path in unsure:
        path.unlink(missing_ok=True)
    return sorted(path.relative_to(checkpoint).as_posix() for path in unsure)


def _entries(log: Path, first: int) -> Iterator[Path]:
    """The files of one of Spark's logs from a number on, with their checksums."""
    for path in log.glob("*") if log.is_dir() else ():
        found = _ENTRY.fullmatch(path.name)
        if found is not None and int(found[1]) >= first:
            yield path


def _place(offsets: Path) -> int | None:
    """How far the log of a source of files was at a batch; None for other sources, whose logs have one early entry."""
    try:
        return int(json.loads(offsets.read_text().splitlines()[2])["logOffset"])
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None


def _is_whole(path: Path) -> bool:
    """Whether an entry is of JSON from its first line to its last and fits its checksum; a checksum has an entry."""
    if path.name.endswith(".crc"):
        return path.with_name(path.name[1:].removesuffix(".crc")).exists()
    data = path.read_bytes()
    try:
        version, *lines = data.decode().splitlines()
        for line in lines:
            json.loads(line)
    except ValueError:
        return False
    checksum = path.with_name(f".{path.name}.crc")
    fits = not checksum.exists() or checksum.read_bytes() == _checksum(data)
    return version.startswith("v") and len(lines) >= (2 if path.parent.name == "offsets" else 1) and fits


def _checksum(data: bytes) -> bytes:
    """What Hadoop puts beside a file: a sum of each 512 bytes."""
    sums = [zlib.crc32(data[start : start + 512]) for start in range(0, len(data), 512)]
    return b"crc\0" + struct.pack(f">i{len(sums)}I", 512, *sums)


def _is_complete(checkpoint: Path, unsure: list[Path]) -> bool:
    """Whether each batch that was planned has what its source said of it."""
    planned = {path for path in unsure if path.parent == checkpoint / "offsets" and path.name.isdigit()}
    sources = {path for path in unsure if path.parent.parent == checkpoint / "sources" and path.name.isdigit()}
    places = [place for path in planned if (place := _place(path)) is not None]
    return all(any(path.name == str(place) for path in sources) for place in places)
