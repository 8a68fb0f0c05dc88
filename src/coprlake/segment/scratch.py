"""The closed batches of a mutable segment, for searches before the data file is complete."""

import os
import tempfile
import weakref
from pathlib import Path

import pyarrow as pa

from coprlake.files import storage_error

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class ScratchFile:
    """A temporary file of batches, each a stream in Arrow's own format.

    A Parquet file can be read only once sealing has written its footer. Keeping the batches in memory until then would
    take as much memory as the segment is large. The file has no name: the system removes it with its last user.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        try:
            if folder is not None:
                Path(folder).mkdir(parents=True, exist_ok=True)
            self._descriptor, path = tempfile.mkstemp(prefix="coprlake-", dir=folder)
            os.unlink(path)  # noqa: PTH108
        except OSError as error:
            raise storage_error(f"{folder or tempfile.gettempdir()}: a temporary file", error) from error
        weakref.finalize(self, os.close, self._descriptor)
        self._offsets = [0]

    def append(self, batch: pa.Table) -> None:
        """Add a batch; it gets the next number."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as stream:
            stream.write_table(batch)
        data = sink.getvalue()
        self._write(data)
        self._offsets.append(self._offsets[-1] + data.size)

    def _write(self, data: pa.Buffer) -> None:
        """Write all bytes: one call may write fewer, and a full disk must not go unnoticed."""
        view = memoryview(data)
        done = 0
        while done < len(view):
            done += os.pwrite(self._descriptor, view[done:], self._offsets[-1] + done)

    def stored_bytes(self, number: int) -> int:
        """The size of a batch in the file."""
        return self._offsets[number + 1] - self._offsets[number]

    def read(self, number: int) -> pa.Table:
        """A batch by its number; several threads may read, even while another appends."""
        start, end = self._offsets[number], self._offsets[number + 1]
        try:
            data = os.pread(self._descriptor, end - start, start)
        except OSError as error:
            raise storage_error("the temporary file of the segment", error) from error
        return pa.ipc.open_stream(data).read_all()
