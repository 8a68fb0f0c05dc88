"""Files that change while they are read spoil what is read of them, never the process."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coprlake
from coprlake import unchanging
from coprlake.errors import CorruptSidecarError, UnreadableDataError
from coprlake.files import Folder
from coprlake.segment.sidecar import Description, Sidecar, encode_sidecar
from coprlake.sketch.immutable import SealedSketch
from coprlake.sketch.merge import add_sealed
from coprlake.sketch.mutable import MutableSketch
from coprlake.sketch.sealing import encode
from coprlake.spark.jobs.task_progress import Done, _counts

LINES = [f"request {number} of session {number * 7919 % 10007} refused" for number in range(40_000)]


def in_child(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own: what kills it must not kill the test."""
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment}
    )


REWRITE = """
    import os, sys
    import pyarrow as pa
    import coprlake
    path, file = sys.argv[1:]
    table = coprlake.open_table(path)
    batches = iter(table.search("refused", threads=1, strict=True))
    next(batches)
    os.truncate(file, 4096)  # as a writer does that begins the file again
    try:
        for _ in batches:
            pass
        print("searched")
    except coprlake.CoprlakeError as error:
        print(error)
"""


@pytest.fixture
def folder_of_parquet(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"content": LINES}), tmp_path / "a.parquet", row_group_size=2000)
    return tmp_path


def test_rewriting_a_parquet_file_during_a_search_is_an_error_not_a_crash(folder_of_parquet: Path) -> None:
    result = in_child(REWRITE, str(folder_of_parquet), str(folder_of_parquet / "a.parquet"))
    assert result.returncode == 0, (signal.Signals(-result.returncode), result.stderr)
    assert "a.parquet" in result.stdout


CUT_SIDECAR = """
    import os, sys, time
    import coprlake
    from coprlake.storage import snapshot
    path, sidecar = sys.argv[1:]
    table = coprlake.open_table(path)
    assert len(table.search(coprlake.contains("request 77")).arrow()) == EXPECTED
    os.truncate(sidecar, 100)
    time.sleep(snapshot.CHECK_SECONDS + 0.1)
    search = table.search(coprlake.contains("request 77"))
    assert len(search.arrow()) == EXPECTED
    print(search.report.problems)
""".replace("EXPECTED", str(sum("request 77" in line for line in LINES)))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "logs"
    with coprlake.create_table(path, partition_by=None).writer() as writer:
        writer.append([{"content": line} for line in LINES])
    return path


def test_truncating_a_copied_sidecar_changes_nothing(table: Path) -> None:
    sidecar = next(table.rglob("*.copr"))
    result = in_child(CUT_SIDECAR, str(table), str(sidecar))
    assert (result.returncode, result.stdout.strip()) == (0, "[]"), result.stderr


def test_truncating_a_mapped_sidecar_is_noticed_before_it_is_looked_at(table: Path) -> None:
    sidecar = next(table.rglob("*.copr"))
    result = in_child(CUT_SIDECAR, str(table), str(sidecar), COPRLAKE_SKETCH_COPY_BYTES="1")
    assert result.returncode == 0, (result.returncode, result.stderr)
    assert sidecar.name in result.stdout
    assert "as when it was opened" in result.stdout


def test_a_file_that_was_written_into_since_it_was_listed_is_refused(folder_of_parquet: Path) -> None:
    batches = iter(coprlake.open_table(folder_of_parquet).search("refused", threads=1, strict=True))
    next(batches)
    file = folder_of_parquet / "a.parquet"
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 10**9))
    with pytest.raises(UnreadableDataError, match=r"a\.parquet.*has changed since"):
        list(batches)


def test_a_parquet_file_that_is_replaced_stays_readable(folder_of_parquet: Path) -> None:
    batches = iter(coprlake.open_table(folder_of_parquet).search("refused", threads=1))
    count = len(next(batches))
    pq.write_table(pa.table({"content": ["refused"]}), folder_of_parquet / "b")
    (folder_of_parquet / "b").replace(folder_of_parquet / "a.parquet")
    assert count + sum(map(len, batches)) == len(LINES)


def test_a_log_that_is_cut_while_it_is_read_is_named(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text("".join(f"{line}\n" for line in LINES))
    with coprlake.Intake([log], coprlake.ReadOptions(block_bytes=64 * 1024)) as intake:
        batches = iter(intake)
        next(batches)
        os.truncate(log, 0)
        list(batches)
    assert intake.report.records < len(LINES)


def test_a_parquet_file_that_is_cut_while_it_is_ingested_is_named(folder_of_parquet: Path) -> None:
    script = """
        import os, sys, coprlake
        with coprlake.Intake([sys.argv[1]]) as intake:
            batches = iter(intake)
            next(batches)
            os.truncate(sys.argv[1], 4096)
            list(batches)
        print(intake.report.unreadable, intake.report.warnings)
    """
    pq.write_table(pa.table({"content": LINES * 10}), folder_of_parquet / "a.parquet", row_group_size=10_000)
    result = in_child(script, str(folder_of_parquet / "a.parquet"))
    assert result.returncode == 0, (result.returncode, result.stderr)
    assert "a.parquet" in result.stdout


def test_the_copies_stay_below_their_limit_and_are_given_back(tmp_path: Path) -> None:
    budget = unchanging.CopyBudget(100)
    assert budget.take(60)
    assert not budget.take(60)
    budget.give_back(60)
    assert budget.used_bytes == 0
    assert budget.take(100)
    before = unchanging.BUDGET.used_bytes
    (tmp_path / "file").write_bytes(bytes(5000))
    data = Folder.of(tmp_path).data("file")
    assert unchanging.BUDGET.used_bytes == before + 5000
    del data
    assert unchanging.BUDGET.used_bytes == before


@pytest.mark.parametrize("content", [b"", b"[1", b"[]", b"{}", b'["a", "b"]', b"\xff", b"[1, 2, 3]", b"7"])
def test_progress_of_a_task_that_cannot_be_read_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0").write_bytes(content)
    assert _counts(Folder.of(tmp_path), "0") == Done()
    assert _counts(Folder.of(tmp_path), "missing") == Done()


def test_the_driver_survives_tasks_that_rewrite_their_progress(tmp_path: Path) -> None:
    script = """
        import sys, threading, time
        from coprlake.spark.jobs import task_progress as progress
        progress.INTERVAL_SECONDS = 0.0
        until = time.monotonic() + 2
        def work(task):
            own = progress.TaskProgress(sys.argv[1], "job", task)
            while time.monotonic() < until:
                own(1, 10)
        seen = []
        with progress.watching(sys.argv[1], "job", seen.append):
            tasks = [threading.Thread(target=work, args=(task,)) for task in range(3)]
            [task.start() for task in tasks]
            [task.join() for task in tasks]
        print(max(seen).rows > 0, all(done.bytes == 10 * done.rows for done in seen))
    """
    result = in_child(script, str(tmp_path))
    assert (result.returncode, result.stdout.strip()) == (0, "True True"), result.stderr
    assert not list((tmp_path / "_coprlake/progress").rglob("*"))


def test_a_small_sketch_cannot_ask_for_much_memory() -> None:
    """4,000 lists of nearly all of 65,536 batches take a few bits each in the file, and 512 MB decoded at once."""
    sketch = MutableSketch(None)
    numbers = np.arange(1 << 16, dtype=np.uint16)
    starts = np.arange(4001, dtype=np.int64)
    postings = np.concatenate([numbers[: (1 << 16) - number] for number in range(200)])
    sizes = np.array([0, *((1 << 16) - number for number in range(200))])
    assert sketch.insert_lists(np.arange(1, 201, dtype=np.uint32), starts[:201], postings, np.cumsum(sizes), 1 << 16)
    sealed = SealedSketch(b"".join(encode(sketch, signature_bits=32)[0]))
    assert sealed.header.file_bytes < 10_000
    runs = list(sealed.list_runs())
    assert max(postings.nbytes for _, postings, _ in runs) < 3 << 20
    assert sum(len(starts) - 1 for _, _, starts in runs) == 200
    merged = MutableSketch(None)
    assert add_sealed(merged, sealed)
    assert (
        b"".join(encode(merged, signature_bits=32)[0])[4096:] == b"".join(encode(sketch, signature_bits=32)[0])[4096:]
    )


def test_a_sidecar_with_more_batches_than_its_data_file_can_have_is_refused() -> None:
    description = Description("a.parquet", 4096, 1, 60_000, 0)
    sidecar = Sidecar(b"".join(encode_sidecar(encode(MutableSketch(None))[0], description)), "a.copr")
    with pytest.raises(CorruptSidecarError, match="at most 256 batches"):
        sidecar.check_belongs_to("a.parquet", 4096)
