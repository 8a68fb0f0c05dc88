"""Tables on a real S3 server: the same commits, answers and refusals as on a disk."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from coprlake import Table, UsageError, contains, create_table, open_table, term
from coprlake.files import Folder

pytestmark = pytest.mark.slow

BEGIN = datetime(2026, 11, 14, 22, tzinfo=UTC)
WRITERS, COMMITS = 4, 5


def records(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {
            "timestamp": BEGIN + timedelta(hours=n),
            "source": f"web-{n % 3}",
            "content": f"request {n} of session {n * 2654435761 % 2**64:016x} took {n} ms",
        }
        for n in range(first, first + count)
    ]


def contents(table: Table) -> list[str]:
    return sorted(row["content"] for row in table.search().rows())


def expected(*spans: tuple[int, int]) -> list[str]:
    return sorted(row["content"] for span in spans for row in records(*span))


def test_a_table_is_filled_searched_merged_and_cleaned(bucket: str) -> None:
    table = create_table(f"{bucket}/logs")
    for first in (0, 50, 100):
        table.append(records(first, 50))
    found = open_table(f"{bucket}/logs").search(term("request 77"))
    assert [row["content"] for row in found.rows()] == [records(77, 1)[0]["content"]]
    assert found.report.segments_pruned_by_sketch == 2
    assert table.optimize().segments_after == 1
    assert contents(open_table(f"{bucket}/logs")) == expected((0, 150))
    table.delete(contains("request 1"))
    left = [text for text in expected((0, 150)) if not text.startswith("request 1")]
    assert contents(open_table(f"{bucket}/logs")) == left
    table.vacuum(retention_hours=0)
    report = open_table(f"{bucket}/logs").verify(deep=True)
    assert (report.rows, report.data_problems, report.sidecar_problems) == (len(left), [], [])
    assert contents(open_table(f"{bucket}/logs")) == left


def test_every_commit_of_several_writers_lands_once(bucket: str) -> None:
    create_table(f"{bucket}/logs")

    def write(writer: int) -> None:
        table = open_table(f"{bucket}/logs")
        for commit in range(COMMITS):
            table.append(records(1000 * writer + 10 * commit, 10))

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS), timeout=300))
    table = open_table(f"{bucket}/logs")
    assert contents(table) == expected(*((1000 * writer, 10 * COMMITS) for writer in range(WRITERS)))
    assert table.info().version == WRITERS * COMMITS


def test_the_fixed_cost_of_a_segment_is_small(bucket: str) -> None:
    table = create_table(f"{bucket}/logs")
    table.append(records(0, 1))
    sizes = {file.name.rpartition(".")[2]: file.size_bytes for file in Folder.of(f"{bucket}/logs").list()}
    assert sizes["copr"] < 1000
    assert sizes["parquet"] < 1000


def test_a_table_cannot_be_repartitioned_there_and_stays_as_it_is(bucket: str) -> None:
    table = create_table(f"{bucket}/logs", partition_by="day")
    table.append(records(0, 60))
    before = Folder.of(f"{bucket}/logs").list()
    with pytest.raises(UsageError, match="a table in an object store cannot be repartitioned; copy it to a disk"):
        table.optimize(repartition="none")
    assert [file.name for file in Folder.of(f"{bucket}/logs").list()] == [file.name for file in before]
    assert open_table(f"{bucket}/logs").info().partition_by == ["day"]
    assert contents(open_table(f"{bucket}/logs")) == expected((0, 60))
