"""Hostile data files and table logs: they must give an error that names them, or the rows that plain readers find."""

import random
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

from coprlake.errors import CoprlakeError
from coprlake.predicate.build import contains
from coprlake.table import open_table
from coprlake.testing.torture.hostile_bytes.hostile import Case, Kind, log_lines, small_table
from coprlake.testing.torture.hostile_bytes.mutating import Edit, edited, random_edits

_NEEDLE: Final = "refused"
_PLAIN_ERRORS: Final = (OSError, pa.ArrowException, ValueError, MemoryError)


def _replace(path: Path, data: bytes) -> None:
    unfinished = path.with_name(f"_{path.name}")
    unfinished.write_bytes(data)
    unfinished.replace(path)


def _search(path: Path) -> Counter[str] | None:
    """The lines with the needle; None if the search reports that some may be missing."""
    search = open_table(path).search(contains(_NEEDLE), threads=1, columns=["content"])
    lines: Counter[str] = Counter()
    for batch in search:
        lines.update(_texts(batch.column("content")))
    return None if search.report.is_incomplete else lines


def _texts(column: pa.Array | pa.ChunkedArray) -> list[str]:
    """The values of a text column, whatever its bytes; no values for a column of another type."""
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return []
    return [line.decode("utf-8", "replace") for line in column.cast(pa.binary()).to_pylist() if line is not None]


def _plainly(paths: Sequence[Path | str]) -> tuple[Counter[str], bool]:
    """The lines with the needle in all row groups that pyarrow alone can read, and whether it can read all of them."""
    lines: Counter[str] = Counter()
    can_read_all = True
    for path in paths:
        try:
            with pa.OSFile(str(path)) as source:
                file = pq.ParquetFile(source, pre_buffer=False)
                for number in range(file.num_row_groups):
                    try:
                        lines.update(_plain_group(file, number))
                    except _PLAIN_ERRORS:
                        can_read_all = False
        except _PLAIN_ERRORS:
            can_read_all = False
    return lines, can_read_all


def _plain_group(file: pq.ParquetFile, number: int) -> list[str]:
    table = file.read_row_group(number, ["content"], use_threads=False)
    texts = _texts(table.column("content")) if "content" in table.column_names else []
    return [line for line in texts if _NEEDLE in line.lower()]


class ParquetFiles(Kind):
    """A folder with one changed Parquet file."""

    name = "parquet"
    weight = 60

    def prepare(self, folder: Path) -> None:
        """Write files with the settings of several writers."""
        self._path = folder / "data"
        self._path.mkdir()
        lines = log_lines(3, 300)
        table = pa.table({"content": lines, "number": range(len(lines)), "level": [line[21:25] for line in lines]})
        options: dict[str, dict[str, Any]] = {
            "zstd, plain": {"compression": "zstd", "use_dictionary": False},
            "snappy, dictionary": {"compression": "snappy"},
            "none, version 2 pages": {"compression": "none", "data_page_version": "2.0"},
            "checksums": {"compression": "zstd", "use_dictionary": False, "write_page_checksum": True},
        }
        self._bases = {}
        for name, own in options.items():
            file = folder / "base"
            pq.write_table(table, file, row_group_size=100, **own)
            self._bases[name] = file.read_bytes()

    def case(self, chance: random.Random) -> Case:
        """One of the files with a few edits."""
        name = chance.choice(list(self._bases))
        data = self._bases[name]
        edits = random_edits(chance, data, list(self._bases.values()))

        def check(some: Sequence[Edit]) -> str | None:
            file = self._path / "a.parquet"
            _replace(file, edited(data, some))
            try:
                found = _search(self._path)
            except CoprlakeError as error:
                is_named = str(self._path) in str(error) or "no column content" in str(error)
                return None if is_named else f"names no file: {error}"
            return None if found is None else _difference(found, *_plainly([file]), _plain_lines(data))

        return Case(name, edits, check)


def _difference(found: Counter[str], plain: Counter[str], can_read_all: bool, written: Counter[str]) -> str | None:
    """What is wrong with a search that reports to be complete; None if nothing is.

    It must have every line of the row groups that pyarrow can read. A group that pyarrow cannot decode may go unnoticed
    if its bytes do not contain the needle; it may only add lines that were there before the file was damaged.
    """
    if can_read_all:
        return None if found == plain else f"found {found.total()} lines, pyarrow {plain.total()}"
    if missing := plain - found:
        return f"did not find {missing.total()} lines of row groups that pyarrow can read"
    if not found - plain <= written:
        return "found lines that were never written in row groups that pyarrow cannot read"
    return None


def _plain_lines(data: bytes) -> Counter[str]:
    table = pq.ParquetFile(pa.BufferReader(data)).read(["content"])
    return Counter(line for line in table.column("content").to_pylist() if _NEEDLE in line.lower())


class DeltaLogs(Kind):
    """A table with one changed log file."""

    name = "delta"
    weight = 12

    def prepare(self, folder: Path) -> None:
        """Write a table with a checkpoint, and commits after it."""
        table = small_table(folder / "base", 5)
        deltalake.DeltaTable(str(folder / "base")).create_checkpoint()
        table.append(pa.table({"content": log_lines(9, 50)}))
        self._path = folder / "table"
        shutil.copytree(folder / "base", self._path)
        log = self._path / "_delta_log"
        self._files = {file.name: file.read_bytes() for file in sorted(log.iterdir()) if file.is_file()}

    def case(self, chance: random.Random) -> Case:
        """A commit, the checkpoint or ``_last_checkpoint`` with a few edits."""
        name = chance.choice(list(self._files))
        data = self._files[name]
        edits = random_edits(chance, data, list(self._files.values()))

        def check(some: Sequence[Edit]) -> str | None:
            file = self._path / "_delta_log" / name
            _replace(file, edited(data, some))
            try:
                found = _search(self._path)
                if found is None:
                    return None
                files = deltalake.DeltaTable(str(self._path)).file_uris()
                plain, can_read_all = _plainly([uri.removeprefix("file://") for uri in files])
                if can_read_all and found != plain:
                    return f"found {found.total()} lines, the log's own files have {plain.total()}"
                return None
            finally:
                _replace(file, data)

        return Case(name, edits, check)
