"""Repairs a checkpoint after a power loss: removes what Spark cannot read and the table does not need.

All that a committed batch depends on was synced before its commit (`checkpoints.sync_checkpoint`). So a damaged entry
belongs to a batch that was not committed, which Spark plans again, or says that the last batch was completed, which the
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
    """Remove the entries after the last committed batch if one of them is damaged; return their names.

    Args:
        checkpoint: a folder on this machine.
        last: the number of the last batch in the table, None if there is none.
    """
    batch = -1 if last is None else last
    unsure = [*_entries(checkpoint / "offsets", batch + 1), *_entries(checkpoint / "commits", max(batch, 0))]
    place = -1 if last is None else _place(checkpoint / "offsets" / str(last))
    if place is not None:
        unsure += [path for source in (checkpoint / "sources").glob("*") for path in _entries(source, place + 1)]
    if any(path.name.endswith(".compact") for path in unsure):  # older entries may be gone: only Spark knows
        return []
    if all(_is_whole(path) for path in unsure) and _is_complete(checkpoint, unsure):
        return []
    for path in unsure:
        path.unlink(missing_ok=True)
    return sorted(path.relative_to(checkpoint).as_posix() for path in unsure)


def _entries(log: Path, first: int) -> Iterator[Path]:
    """The files of one of Spark's logs from number `first` on, with their checksums."""
    for path in log.glob("*") if log.is_dir() else ():
        found = _ENTRY.fullmatch(path.name)
        if found is not None and int(found[1]) >= first:
            yield path


def _place(offsets: Path) -> int | None:
    """The position in the log of a file source at a batch; None for other sources, whose logs have one early entry."""
    try:
        return int(json.loads(offsets.read_text().splitlines()[2])["logOffset"])
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None


def _is_whole(path: Path) -> bool:
    """Whether an entry is complete, valid JSON lines that fit its checksum; of a checksum, whether its entry exists."""
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
    """The checksum file that Hadoop puts beside a file: a CRC of each 512 bytes."""
    sums = [zlib.crc32(data[start : start + 512]) for start in range(0, len(data), 512)]
    return b"crc\0" + struct.pack(f">i{len(sums)}I", 512, *sums)


def _is_complete(checkpoint: Path, unsure: list[Path]) -> bool:
    """Whether each planned batch has its entry in the log of its source."""
    planned = {path for path in unsure if path.parent == checkpoint / "offsets" and path.name.isdigit()}
    sources = {path for path in unsure if path.parent.parent == checkpoint / "sources" and path.name.isdigit()}
    places = [place for path in planned if (place := _place(path)) is not None]
    return all(any(path.name == str(place) for path in sources) for place in places)
