"""A limit of memory holds for everything that a query reads, also for records that are searched here."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coprlake import Limits, QueryLimitError, Table, create_table
from coprlake.errors import CoprlakeError
from coprlake.query import handover

GROUPS, ROWS = 24, 8_000
MIB = 2**20

PEAK = """
import resource, sys
from coprlake import Limits, QueryLimitError, open_table

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

table, limits = open_table(sys.argv[1]), Limits(memory_bytes=int(sys.argv[2]), threads=2)
few = 'fetch logs | filter contains(content, "needle 7 ") | summarize count()'
table.query(few, limits=limits).arrow()  # loads what is loaded but once
before = peak()
try:
    found = [batch.num_rows for batch in table.query(sys.argv[3], limits=limits).batches()]
    print("rows", sum(found), peak() - before)
except QueryLimitError as error:
    print("limit", "more memory than 64 MiB" in str(error), peak() - before)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """About 200 MB of text that is small on disk, so that it is searched here."""
    place = tmp_path_factory.mktemp("large")
    schema = pa.schema([("number", pa.int64()), ("content", pa.string())])
    with pq.ParquetWriter(place / "a.parquet", schema, compression="zstd", use_dictionary=False) as writer:
        for group in range(GROUPS):
            numbers = range(group * ROWS, (group + 1) * ROWS)
            content = [f"needle {number} {'some padding ' * 80}" for number in numbers]
            writer.write_table(pa.table([list(numbers), content], schema=schema))
    return place


def _peak(place: Path, text: str) -> tuple[str, str, int]:
    command = [sys.executable, "-c", PEAK, str(place), str(64 * MIB), text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    how, what, growth = done.stdout.split()
    return how, what, int(growth)


FOUND = 'fetch logs | filter contains(content, "needle")'


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (f"{FOUND} | summarize n = count(), longest = max(stringLength(content))", 1),
        (f"{FOUND} | fields content", GROUPS * ROWS),
    ],
)
def test_records_that_are_searched_here_stay_below_the_limit(large: Path, text: str, rows: int) -> None:
    how, found, growth = _peak(large, text)
    assert (how, found) == ("rows", str(rows))
    assert growth < (64 + 80) * MIB, f"{growth / MIB:.0f} MiB"


def test_a_sort_that_does_not_fit_says_so(large: Path) -> None:
    how, told, growth = _peak(large, f"{FOUND} | sort content desc | fields content, number")
    assert (how, told) == ("limit", "True")
    assert growth < (64 + 80) * MIB, f"{growth / MIB:.0f} MiB"


# The same answers, whether records are held or streamed

QUERIES = [
    'fetch logs | filter contains(content, "a") | sort id | fields id',
    'fetch logs | filter contains(content, "a") | summarize n = count(), m = max(id)',
    'fetch logs | filter contains(content, "a") | join [fetch logs | filter contains(content, "b")], on:{id} | sort id',
    'fetch logs | filter contains(content, "a") | append [fetch logs | filter contains(content, "a")] | sort id',
    'fetch logs | filter contains(content, "a") | makeTimeseries count(), interval:1h',
    'fetch logs | filter id in [fetch logs | filter contains(content, "b") | fields id] | sort id | fields id',
]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = create_table(tmp_path / "table")
    for part in range(3):
        numbers = range(part * 200, part * 200 + 200)
        table.append([{"id": n, "content": "a" * (n % 5) + "b" * (n % 3) + f" {n}"} for n in numbers])
    return table


@pytest.mark.parametrize("is_written", [True, False])
@pytest.mark.parametrize("text", QUERIES)
def test_a_stream_gives_the_same_rows(
    table: Table, monkeypatch: pytest.MonkeyPatch, text: str, is_written: bool
) -> None:
    writer = table.writer()
    if not is_written:  # records that are not committed take another way
        writer.append([{"id": 1000, "content": "ab"}])
    expected = table.query(text, now=0).arrow().to_pylist()
    monkeypatch.setattr(handover, "HELD_PART", 2**40)
    query = table.query(text, now=0, limits=Limits(memory_bytes=200 * MIB))
    assert query.arrow().to_pylist() == expected
    assert any("as a stream" in scan.way for scan in query.report.scans)
    writer.close()


def test_a_batch_that_is_too_large_by_itself(table: Table) -> None:
    with pytest.raises(QueryLimitError, match="more memory"):
        table.query(QUERIES[0], limits=Limits(memory_bytes=1000)).arrow()


def test_what_ends_a_stream_is_told_in_our_words(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "HELD_PART", 2**40)
    query = table.query(QUERIES[0], limits=Limits(memory_bytes=200 * MIB))
    data_files = sorted(Path(table.uri).rglob("*.parquet"))
    data_files[-1].unlink()
    with pytest.raises(CoprlakeError, match=data_files[-1].name):
        query.arrow()


def test_a_failure_in_the_middle_of_a_stream_is_kept() -> None:
    schema = pa.schema([("a", pa.int64())])

    def read() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([[1, 2]], schema=schema)
        raise CoprlakeError("the disk is gone")

    stream = handover.Stream(schema, read)
    with pytest.raises(pa.ArrowException):
        pa.RecordBatchReader.from_stream(stream).read_all()
    assert str(stream.failure) == "the disk is gone"
