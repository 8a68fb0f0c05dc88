"""Parquet files: columns stay as they are, but for those that every record has."""

import tempfile
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.parquet

from coprlake.files import READ_ERRORS
from coprlake.intake.fields.mapping import FileMapper
from coprlake.intake.options import IntakeReport
from coprlake.intake.sources.compression import ByteStream
from coprlake.intake.sources.inputs import InputFile
from coprlake.records import INT96_UNIT

PARQUET_MAGIC: Final = b"PAR1"
_BATCH_ROWS: Final = 32 * 1024


def read_parquet(
    file: InputFile, stream: ByteStream, mapper: FileMapper, report: IntakeReport
) -> Iterator[pa.RecordBatch]:
    """The records of a Parquet file; one that cannot be read is a warning.

    A Parquet file is read from its end, so one that comes through a pipe or is compressed goes to a temporary file
    first.
    """
    before = report.bytes_read
    try:
        if file.size is not None and stream.compression is None:
            with pa.OSFile(file.path) as source:  # not mapped: its writer may cut it short
                yield from _batches(source, mapper, report, before, file.size)
        else:
            with tempfile.TemporaryFile() as copy:
                while data := stream.read(1 << 20):
                    copy.write(data)
                copy.seek(0)
                yield from _batches(pa.PythonFile(copy, mode="r"), mapper, report, before, stream.bytes_read)
    except READ_ERRORS as error:
        report.unreadable += 1
        found = str(error).splitlines()[0]
        report.warn(file.path, f"expected a complete Parquet file, found that {found}; records before it were read")


def _batches(
    source: pa.NativeFile, mapper: FileMapper, report: IntakeReport, before: int, size: int
) -> Iterator[pa.RecordBatch]:
    # without pre_buffer, or else all of it would be read ahead
    with pyarrow.parquet.ParquetFile(source, pre_buffer=False, coerce_int96_timestamp_unit=INT96_UNIT) as parquet:
        total = max(parquet.metadata.num_rows, 1)
        done = 0
        for batch in parquet.iter_batches(_BATCH_ROWS, use_threads=False):
            done += batch.num_rows
            report.raw_bytes += batch.nbytes
            report.bytes_read = before + size * done // total
            if batch.num_rows:
                columns = list(zip(batch.schema.names, batch.columns, strict=True))
                yield mapper.batch(columns, None, batch.num_rows)
    report.bytes_read = before + size
