"""Scan: nothing but batches; every query decompresses and filters them all (paper 5)."""

import pyarrow as pa

from benchmarks.stores.base import Answer, Reader, Setting, Sizes, Store
from benchmarks.stores.batches import BatchReader, BatchWriter, contains, term


class ScanReader(Reader):
    """Opens every batch."""

    def __init__(self, store: "ScanStore") -> None:
        self._batches = BatchReader(store.data)

    def term(self, text: str) -> Answer:
        """Filter everything."""
        return self._batches.filtered(term(text), range(self._batches.batch_count))

    def contains(self, text: str) -> Answer:
        """Filter everything."""
        return self._batches.filtered(contains(text), range(self._batches.batch_count))

    def close(self) -> None:
        """Let go of the file."""
        self._batches.close()


class ScanStore(Store):
    """Batches in zstd, and no index."""

    name = "scan"
    title = "Scan"
    settings = "zstd level 3, batches by source; no index"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.data = self.folder / "data.zst"
        self._writer = BatchWriter(self.data, setting.batch_bytes)

    def ingest(self, content: pa.Array, source: pa.Array) -> None:
        """Compress full batches."""
        for _ in self._writer.add(content, source):
            pass

    def finish_index(self) -> None:
        """There is none."""
        return

    def finish_data(self) -> None:
        """Compress the rest."""
        for _ in self._writer.rest():
            pass
        self._writer.close()

    def sizes(self) -> Sizes:
        """All of it is data."""
        return Sizes(sum(path.stat().st_size for path in self.files()), 0)

    def reader(self) -> Reader:
        """Open the file."""
        return ScanReader(self)
