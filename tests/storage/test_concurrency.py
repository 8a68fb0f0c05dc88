"""Several at once: every record is there exactly once, for writers, readers and those who tidy up."""

import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from coprlake.errors import ConflictError
from coprlake.predicate.build import contains, equals, one_of
from coprlake.segment.mutable import SegmentOptions
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.table import Table, create_table, open_table

SMALL = SegmentOptions(batch_bytes=150, slot_count=2)


def records(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {"timestamp": 1_717_200_000 + n % 100, "source": f"s{n % 3}", "content": f"record {n} of many", "id": n}
        for n in range(first, first + count)
    ]


def ids(table: Table) -> list[int]:
    return sorted(row["id"] for row in table.search(columns=["id"], strict=True).rows())


def run_all(*jobs: Callable[[], None], seconds: float = 60) -> None:
    """Run jobs in threads; raises what one of them raised, and does not wait for a deadlock."""
    errors: list[BaseException] = []

    def run(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.1, deadline - time.monotonic()))
        assert not thread.is_alive(), "deadlock"
    if errors:
        raise errors[0]


@contextmanager
def searching(check: Callable[[], None], threads: int = 1) -> Iterator[list[int]]:
    """Call `check` all the time from other threads; yields how often it was called."""
    ended = threading.Event()
    errors: list[BaseException] = []
    counts = [0]

    def run() -> None:
        while not ended.is_set() and not errors:
            try:
                check()
                counts[0] += 1
            except BaseException as error:
                errors.append(error)

    workers = [threading.Thread(target=run, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield counts
    finally:
        ended.set()
        for worker in workers:
            worker.join(30)
            assert not worker.is_alive(), "deadlock"
    if errors:
        raise errors[0]


def _append_in_process(path: str, first: int, commits: int) -> None:
    table = open_table(path)
    for number in range(commits):
        table.append(records(first + number * 10, 10))


def _optimize_in_process(path: str, rounds: int) -> None:
    table = open_table(path)
    for _ in range(rounds):
        with suppress(ConflictError):
            table.optimize()
        time.sleep(0.01)


def _delete_in_process(path: str, rounds: int) -> None:
    table = open_table(path)
    for number in range(rounds):
        table.delete(one_of("id", range(1_000_000 + number * 10, 1_000_000 + number * 10 + 5)))


@pytest.mark.slow
def test_processes_append_at_once(tmp_path: Path) -> None:
    create_table(tmp_path / "table")
    context = multiprocessing.get_context("spawn")
    jobs = [
        context.Process(target=_append_in_process, args=(str(tmp_path / "table"), first, 15)) for first in (0, 1000)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(120)
        assert job.exitcode == 0
    assert ids(open_table(tmp_path / "table")) == [*range(150), *range(1000, 1150)]


@pytest.mark.slow
def test_appenders_an_optimizer_and_a_deleter_in_processes(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    table = create_table(path, partition_by=None)
    for number in range(5):
        table.append(records(1_000_000 + number * 10, 10))
    context = multiprocessing.get_context("spawn")
    jobs = [
        context.Process(target=_append_in_process, args=(path, 0, 15)),
        context.Process(target=_optimize_in_process, args=(path, 10)),
        context.Process(target=_delete_in_process, args=(path, 5)),
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(120)
        assert job.exitcode == 0
    left = [number for number in range(1_000_000, 1_000_050) if number % 10 >= 5]
    table = open_table(path)
    assert ids(table) == [*range(150), *left]
    assert table.verify(deep=True).is_sound
    table.vacuum(retention_hours=0)
    assert ids(open_table(path)) == [*range(150), *left]


def test_threads_append_to_one_table(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")

    def job(first: int) -> None:
        for number in range(8):
            table.append(records(first + number * 10, 10))

    run_all(*(lambda first=first: job(first) for first in range(0, 4000, 1000)))
    assert ids(table) == [first + n for first in range(0, 4000, 1000) for n in range(80)]


def test_threads_append_to_one_writer(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    with table.writer(options=SMALL, segment_bytes=1000) as writer:

        def job(first: int) -> None:
            for number in range(10):
                writer.append(records(first + number * 10, 10))
                if number % 3 == 0:
                    writer.commit()

        run_all(*(lambda first=first: job(first) for first in range(0, 3000, 1000)))
    assert ids(table) == [first + n for first in range(0, 3000, 1000) for n in range(100)]
    assert table.verify(deep=True).is_sound


def test_threads_append_optimize_and_delete(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    for number in range(6):
        table.append(records(10_000 + number * 10, 10))
    conflicts = []

    def append() -> None:
        for number in range(12):
            table.append(records(number * 10, 10))

    def optimize() -> None:
        for _ in range(8):
            try:
                table.optimize()
            except ConflictError as error:
                conflicts.append(error)

    def delete() -> None:
        for number in range(6):
            table.delete(one_of("id", range(10_000 + number * 10, 10_000 + number * 10 + 3)))

    run_all(append, optimize, delete)
    left = [number for number in range(10_000, 10_060) if number % 10 >= 3]
    assert ids(table) == [*range(120), *left]
    assert open_table(table.uri).verify(deep=True).is_sound


@pytest.mark.parametrize("threads", [1, 2])
def test_a_search_sees_each_record_once_while_others_write(tmp_path: Path, threads: int) -> None:
    """What was appended before the search began is seen exactly once; what comes meanwhile at most once."""
    table = create_table(tmp_path / "table", schema=pa.schema([("id", pa.int64())]), partition_by=None)
    appended = [0]

    def check() -> None:
        least = appended[0]
        found = Counter(row["id"] for row in table.search(contains("record"), columns=["id"], strict=True).rows())
        twice = [number for number, count in found.items() if count > 1]
        missing = [number for number in range(least) if number not in found]
        assert not twice, f"seen twice: {twice}"
        assert not missing, f"of {least} not seen: {missing}"
        least = appended[0]
        assert table.search(contains("record")).count() >= least
        assert table.search().count() >= least

    with searching(check, threads) as counts, table.writer(options=SMALL, segment_bytes=900) as writer:
        for number in range(40):
            writer.append(records(number * 5, 5))
            appended[0] = number * 5 + 5
            if number % 7 == 3:
                writer.commit()
            if number % 20 == 19:
                table.optimize()
    assert counts[0] > 5
    assert ids(table) == list(range(200))


def test_a_search_sees_what_another_object_has_committed(tmp_path: Path) -> None:
    """The table's log is looked at again by its folder's time; that must never hide a commit."""
    table = create_table(tmp_path / "table", partition_by=None)
    other = open_table(tmp_path / "table")
    committed = [0]

    def check() -> None:
        least = committed[0]
        assert table.search().count() >= least

    with searching(check, 2) as counts:
        for number in range(30):
            other.append(records(number, 1))
            committed[0] = number + 1
            time.sleep(0.13 if number % 10 == 5 else 0)
    assert counts[0] > 20


def test_a_search_waits_for_the_newest_version_while_another_thread_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first thread notes the folder's time and reads the log; the second must not take the old version for new."""
    table = create_table(tmp_path / "table", partition_by=None)
    table.append(records(0, 1))
    time.sleep(0.15)
    assert table.search().count() == 1  # the time is noted
    open_table(tmp_path / "table").append(records(1, 1))
    time.sleep(0.15)  # the folder's time is old enough to be trusted
    refresh = DeltaLog.refresh
    reading = threading.Event()

    def slow_refresh(self: DeltaLog) -> bool:
        reading.set()
        time.sleep(0.3)
        return refresh(self)

    monkeypatch.setattr(DeltaLog, "refresh", slow_refresh)
    counts = []
    first = threading.Thread(target=lambda: counts.append(table.search().count()))
    first.start()
    assert reading.wait(5)
    counts.append(table.search().count())
    first.join()
    assert counts == [2, 2]


def test_a_failed_look_at_the_log_is_not_taken_for_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    time.sleep(0.15)
    assert table.search().count() == 0
    open_table(tmp_path / "table").append(records(0, 1))
    time.sleep(0.15)

    def broken(self: DeltaLog) -> bool:
        raise OSError("the network is down")

    with monkeypatch.context() as patched:
        patched.setattr(DeltaLog, "refresh", broken)
        with pytest.raises(OSError, match="network"):
            table.search().count()
    assert table.search().count() == 1


def test_writers_come_and_go_while_searches_run(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    keep = table.writer()
    keep.append(records(0, 1))

    def check() -> None:
        found = Counter(row["id"] for row in table.search(columns=["id"]).rows())
        assert found[0] == 1

    def come_and_go() -> None:
        for _ in range(150):
            table.writer().abandon()

    with searching(check, 2):
        run_all(come_and_go, come_and_go)
    keep.close()
    assert ids(table) == [0]


def test_columns_come_while_searches_run(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    table.append(records(0, 5))

    def check() -> None:
        assert table.search().arrow().num_rows >= 5
        assert table.search().reader().read_all().num_rows >= 5

    with searching(check, 2):
        for number in range(12):
            table.append([{"id": 100 + number, "content": "more", f"column{number}": number}])


def test_a_reader_keeps_the_columns_that_it_was_made_with(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    table.append(records(0, 5))
    reader = table.search().reader()
    table.append([{"id": 5, "content": "more", "another": 1}])
    assert reader.read_all().num_rows in (5, 6)


def test_two_writers_that_add_one_column_with_two_types_conflict(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    one, other = table.writer(), table.writer()
    one.append([{"id": 1, "content": "one", "k": 5}])
    other.append([{"id": 2, "content": "other", "k": "text"}])
    one.commit()
    with pytest.raises(ConflictError, match="k"):
        other.commit()
    other.abandon()
    assert ids(table) == [1]
    table.append([{"id": 2, "content": "other", "k": "text"}])
    assert ids(table) == [1, 2]
    assert [row["id"] for row in table.search(equals("k", "text")).rows()] == [2]
    one.close()


def test_two_writers_that_add_the_same_column_agree(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    with table.writer() as one, table.writer() as other:
        one.append([{"id": 1, "content": "one", "k": 5}])
        other.append([{"id": 2, "content": "other", "k": 6}])
    assert sorted(row["k"] for row in table.search().rows()) == [5, 6]


def test_optimize_leaves_it_when_its_segments_are_gone(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    for number in range(4):
        table.append(records(number, 1))
    stale = open_table(tmp_path / "table")
    snapshot = stale.snapshot()
    table.optimize()
    stale.snapshot = lambda: snapshot  # type: ignore[method-assign]
    before = set(tmp_path.rglob("*.parquet"))
    report = stale.optimize()
    assert (report.conflicts, report.written, report.version) == (1, 0, None)
    assert ids(open_table(tmp_path / "table")) == [0, 1, 2, 3]
    assert set(tmp_path.rglob("*.parquet")) == before


def test_delete_begins_anew_when_its_segments_are_gone(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    for number in range(4):
        table.append(records(number * 2, 2))
    stale = open_table(tmp_path / "table")
    old, newest = stale.snapshot(), stale.snapshot
    table.optimize()
    snapshots = iter([old])
    stale.snapshot = lambda: next(snapshots, None) or newest()  # type: ignore[method-assign]
    report = stale.delete(one_of("id", [1, 4]))
    assert report.rows == 2
    assert ids(open_table(tmp_path / "table")) == [0, 2, 3, 5, 6, 7]


def test_a_delete_by_age_beside_an_appender_keeps_what_is_new(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    table.append(records(1000, 20))

    def append() -> None:
        for number in range(10):
            table.append([{"id": number, "content": "new"}])

    def retain() -> None:
        for _ in range(5):
            table.retain(timedelta(days=1))

    run_all(append, retain)
    assert ids(table) == list(range(10))


def test_searches_go_on_while_segments_are_merged_and_old_files_removed(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    table.append(records(0, 50))

    def check() -> None:
        found = Counter(row["id"] for row in table.search("record", columns=["id"]).rows())
        assert all(count == 1 for count in found.values())

    with searching(check, 2):
        for number in range(10):
            table.append(records(50 + number * 10, 10))
            table.optimize()
    assert ids(table) == list(range(150))
