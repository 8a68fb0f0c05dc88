"""The lines to store: the paper's generated sets (Table 2), or a folder of logs.

A set is written once as an Arrow file, from which the process of each store maps it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coprlake.generator import generate
from coprlake.intake.reading import Intake, ReadOptions

CHUNK_LINES = 8_192
GENERATED = ("1M_generated", "5M_generated")


@dataclass(frozen=True)
class DataSet:
    """A set of lines on disk.

    Attributes:
        name: as tables call it.
        path: the Arrow file, with `content` and `source`.
        lines: how many.
        sources: how many different ones.
        raw_bytes: of the lines and their line ends.
        origin: where the text is from.
    """

    name: str
    path: Path
    lines: int
    sources: int
    raw_bytes: int
    origin: str

    def chunks(self) -> Iterator[tuple[pa.Array, pa.Array]]:
        """The lines as they arrive, some thousand at a time, with their sources."""
        with pa.memory_map(str(self.path)) as file:
            table = pa.ipc.open_file(file).read_all()
        for batch in table.to_batches(max_chunksize=CHUNK_LINES):
            yield batch.column("content"), batch.column("source")

    def content(self) -> pa.ChunkedArray:
        """All lines."""
        with pa.memory_map(str(self.path)) as file:
            return pa.ipc.open_file(file).read_all().column("content")


def generated(name: str, folder: Path, *, megabytes: float | None, seed: int, samples: Path | None) -> DataSet:
    """One of the paper's sets, of its own size or of another."""
    logs = generate(name, megabytes=megabytes, seed=seed, samples=samples)
    origin = "lines of LogHub" if samples is not None else "made up by the generator"
    return _written(name, folder, logs.content, logs.source, origin)


def of_folder(logs: Path, folder: Path) -> DataSet:
    """The lines of all files in a folder; the file is the source."""
    content, source = [], []
    with Intake([logs], ReadOptions(format="text")) as intake:
        for batch in intake:
            content.append(batch.column("content").cast(pa.string()))
            source.append(batch.column("source").cast(pa.string()))
    return _written(logs.name, folder, pa.chunked_array(content), pa.chunked_array(source), "a folder of logs")


def _written(name: str, folder: Path, content: Any, source: Any, origin: str) -> DataSet:
    table = pa.table({"content": content.cast(pa.string()), "source": source.cast(pa.string())})
    path = folder / f"{name}.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=CHUNK_LINES)
    raw = int(pc.sum(pc.binary_length(table.column("content"))).as_py() or 0) + table.num_rows
    sources = len(pc.unique(table.column("source")))
    return DataSet(name, path, table.num_rows, sources, raw, origin)
