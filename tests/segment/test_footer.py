"""What we read from footers ourselves is what Arrow reads, and damage to a footer ends no process."""

import io
import os
import random
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coprlake.files import Folder
from coprlake.segment.column_chunks import UNKNOWN, column_chunks
from coprlake.segment.footer import Footer
from coprlake.segment.sealed import SealedSegment, SegmentEntry
from coprlake.segment.searchable import ALWAYS

pytestmark = pytest.mark.kernels

CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "ZSTD": 6, "LZ4": 7}
ENCODINGS = {"PLAIN": 0, "PLAIN_DICTIONARY": 2, "RLE": 3, "DELTA_BINARY_PACKED": 5, "DELTA_BYTE_ARRAY": 7}
ENCODINGS |= {"RLE_DICTIONARY": 8, "BIT_PACKED": 4, "DELTA_LENGTH_BYTE_ARRAY": 6, "BYTE_STREAM_SPLIT": 9}
EARLIEST = datetime(1901, 2, 3, tzinfo=UTC)


def records(seed: int, rows: int = 50) -> pa.Table:
    draw = random.Random(seed)
    times = [EARLIEST + timedelta(microseconds=draw.randrange(1 << 53)) for _ in range(rows)]
    return pa.table(
        {
            "content": [None if draw.random() < 0.1 else f"line {draw.random()}" for _ in range(rows)],
            "at": pa.array(times, pa.timestamp("us", "UTC")),
            "sometimes": pa.array([draw.choice([None, at]) for at in times], pa.timestamp("ms")),
            "never": pa.array([None] * rows, pa.timestamp("us")),
            "small": pa.array([draw.randrange(-5, 5) for _ in range(rows)], pa.int32()),
            "day": pa.array([date(1960, 1, 1) + timedelta(days=draw.randrange(9999)) for _ in range(rows)]),
            "flag": [draw.random() < 0.5 for _ in range(rows)],
            "real": [draw.random() for _ in range(rows)],
            "nested": [{"a": draw.randrange(9), "b": [str(draw.random())] * draw.randrange(3)} for _ in range(rows)],
            "keys": pa.array([[("k", draw.randrange(9))]] * rows, pa.map_(pa.string(), pa.int64())),
        }
    )


def same_as_arrow(data: bytes, every: int = 1) -> None:
    footer, arrow = Footer(pa.BufferReader(data), len(data)), pq.ParquetFile(io.BytesIO(data)).metadata
    assert (footer.row_count, footer.batch_count) == (arrow.num_rows, arrow.num_row_groups)
    for place in range(0, arrow.num_columns, every):
        chunks = footer.chunks(place)
        assert len(chunks) == arrow.num_row_groups
        for group in range(arrow.num_row_groups):
            found, expected = chunks[group], arrow.row_group(group).column(place)
            assert found["codec"] == CODECS[expected.compression]
            assert found["encodings"] == sum(1 << ENCODINGS[name] for name in set(expected.encodings))
            assert found["compressed_bytes"] == expected.total_compressed_size
            assert found["uncompressed_bytes"] == expected.total_uncompressed_size
            assert found["data_page_offset"] == expected.data_page_offset
            dictionary = expected.dictionary_page_offset
            assert found["dictionary_page_offset"] == (UNKNOWN if dictionary is None else dictionary)
            statistics = expected.statistics
            if statistics is not None and statistics.has_null_count:
                assert found["null_count"] == statistics.null_count
            is_whole = expected.physical_type in ("INT32", "INT64")
            has_range = is_whole and statistics is not None and statistics.has_min_max
            assert (found["has_range"] == 1) == has_range
            if has_range and statistics is not None:
                assert (found["minimum"], found["maximum"]) == (statistics.min_raw, statistics.max_raw)
            assert footer.rows_of(group) == arrow.row_group(group).num_rows
            assert footer.compressed_bytes(group, [place]) == expected.total_compressed_size
    for group in range(arrow.num_row_groups):
        sizes = [arrow.row_group(group).column(place).total_compressed_size for place in range(arrow.num_columns)]
        assert footer.compressed_bytes(group, list(range(arrow.num_columns))) == sum(sizes)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zstd", "use_dictionary": False},
        {"compression": "gzip", "data_page_version": "2.0", "write_page_index": True},
        {"write_statistics": False},
        {"write_statistics": ["at"], "compression": "none"},
        {"version": "1.0", "coerce_timestamps": "ms", "allow_truncated_timestamps": True},
        {"use_deprecated_int96_timestamps": True},
        {"store_decimal_as_integer": True, "column_encoding": {"real": "BYTE_STREAM_SPLIT"}, "use_dictionary": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("row_group_size", [7, 1000])
def test_what_arrow_writes(options: dict[str, Any], row_group_size: int) -> None:
    for seed in range(3):
        file = io.BytesIO()
        pq.write_table(records(seed), file, row_group_size=row_group_size, **options)
        same_as_arrow(file.getvalue())


def test_what_duckdb_and_polars_write(tmp_path: Path) -> None:
    table = records(4)
    duckdb.from_arrow(table).write_parquet(str(tmp_path / "duck"), compression="zstd", row_group_size=20)
    pl.from_arrow(table.drop_columns(["keys"])).write_parquet(tmp_path / "bear", row_group_size=20)
    for path in tmp_path.iterdir():
        same_as_arrow(path.read_bytes())


def test_no_rows_and_no_columns() -> None:
    for table in (records(5, 0), pa.table({}), records(5).select([])):
        file = io.BytesIO()
        pq.write_table(table, file)
        same_as_arrow(file.getvalue())


def test_a_footer_longer_than_the_first_read() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({f"column {number}": [number, -number] for number in range(3000)}), file)
    same_as_arrow(file.getvalue(), every=999)


def test_a_footer_is_read_once_for_the_sizes_of_all_columns(tmp_path: Path) -> None:
    """A search asks for the size of every column; a walk for each would take the square of their number."""
    wide = pa.table({f"column {number}": range(200) for number in range(300)})
    pq.write_table(wide, tmp_path / "a.parquet", row_group_size=10)
    segment = SealedSegment(Folder.of(tmp_path), SegmentEntry("a.parquet", (tmp_path / "a.parquet").stat().st_size))
    assert all(segment.stored_bytes(batch, wide.schema.names) > 300 for batch in range(20))
    assert not segment.footer._chunks  # no column was looked at by itself
    kept = segment.footer._bytes.base
    assert isinstance(kept, bytes)
    assert len(kept) == segment.footer._bytes.size  # nothing else is kept in memory


def test_statistics_of_another_width_than_the_schema_are_not_used(tmp_path: Path) -> None:
    pq.write_table(pa.table({"day": pa.array([date(2024, 6, 1)] * 20)}), tmp_path / "a.parquet")
    segment = SealedSegment(Folder.of(tmp_path), SegmentEntry("a.parquet", (tmp_path / "a.parquet").stat().st_size))
    assert segment.times("day")[0].tolist() == [int(datetime(2024, 6, 1, tzinfo=UTC).timestamp()) * 1_000_000]
    segment.footer.chunks(0)["maximum"][:] = 1 << 40
    assert segment.times("day")[1].tolist() == [ALWAYS[1]]


def test_a_file_that_is_no_parquet_file() -> None:
    for data in (b"", b"PAR1", b"x" * 100, b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1", b"PAR1" + b"\0\0\0\0" + b"PAR1"):
        with pytest.raises((OSError, pa.ArrowException)):
            Footer(pa.BufferReader(data), len(data))


def footer_of(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=10)
    data = file.getvalue()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


@pytest.mark.slow
def test_any_bytes_leave_the_numbers_unknown_or_read() -> None:
    draw, sound = random.Random(6), footer_of(records(7, 30))
    survivors = 0
    for _ in range(20 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 3000):
        data = np.frombuffer(sound, np.uint8).copy()
        for _ in range(draw.choice([1, 1, 2, 8, 200])):
            data[draw.randrange(len(data))] = draw.choice([0, 0xFF, draw.randrange(256)])
        data = data[: draw.choice([len(data), len(data), draw.randrange(len(data))])]
        chunks = column_chunks(data, draw.randrange(12), 3)
        assert len(chunks) == 3
        survivors += bool(np.any(chunks["codec"] != UNKNOWN))
    assert survivors  # or this has tried nothing


def test_deep_nesting_is_given_up() -> None:
    """Field 1, a structure in a structure and so on: deeper than any footer, and no end of it."""
    deep = np.full(100_000, 0x1C, np.uint8)
    assert np.all(column_chunks(deep, 0, 1)["codec"] == UNKNOWN)
    wide = np.frombuffer(b"\x19\xfc" + b"\xff" * 8 + b"\x7f", np.uint8)  # a list of 2**63 structures
    assert np.all(column_chunks(wide, 0, 1)["codec"] == UNKNOWN)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="a thousand footers take too long")
def test_damaged_size_statistics_end_no_process(tmp_path: Path) -> None:
    """Each byte of a footer damaged in turn, and the segment asked for all it reads from a footer."""
    pq.write_table(records(8, 20).select(["content", "at", "nested"]), tmp_path / "a.parquet", row_group_size=10)
    code = """
import sys
from pathlib import Path
from coprlake.errors import UnreadableDataError
from coprlake.files import Folder
from coprlake.segment.sealed import SealedSegment, SegmentEntry
folder, path = Path(sys.argv[1]), Path(sys.argv[1], "a.parquet")
sound = path.read_bytes()
start = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
answered = 0
for at in range(start, len(sound) - 8):
    for value in (sound[at] ^ 1, sound[at] + 2 & 255, 0x15):
        path.write_bytes(sound[:at] + bytes([value]) + sound[at + 1 :])
        segment = SealedSegment(Folder.of(folder), SegmentEntry("a.parquet", len(sound)))
        try:
            segment.times("at")
            for batch in range(segment.batch_count):
                segment.stored_bytes(batch, ["content", "at", "nested"])
                segment.page(batch, "content")
            answered += 1
        except UnreadableDataError:
            pass
print(answered)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 100
