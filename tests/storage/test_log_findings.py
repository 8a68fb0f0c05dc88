"""Damage to a log is not forgotten, odd logs cost no file, and whoever loses a race is told so."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from coprlake import files
from coprlake.errors import ConflictError, UnreadableTableError, UsageError
from coprlake.files import Folder
from coprlake.storage.log import delta_log
from coprlake.table import Table, create_table, open_table

INTERVAL = 5
SHORT_LIVED = {
    "delta.checkpointInterval": str(INTERVAL),
    "delta.logRetentionDuration": "interval 0 days",
    "delta.deletedFileRetentionDuration": "interval 0 days",
}


def log_file(path: Path, number: int | None) -> Path:
    assert number is not None
    return path / "_delta_log" / f"{number:020d}.json"


def checkpoints(path: Path) -> list[Path]:
    return sorted((path / "_delta_log").glob("*.checkpoint*.parquet"))


def emptied(data: bytes) -> bytes:
    return b""


def cut_at_a_line(data: bytes) -> bytes:
    return data[: data.index(b"\n") + 1]


def cut_before_a_line_feed(data: bytes) -> bytes:
    return data[: data.index(b"\n")]


DAMAGES = [emptied, cut_at_a_line, cut_before_a_line_feed]


def damaged(path: Path, damage: Callable[[bytes], bytes]) -> tuple[Path, Path]:
    """A table whose second commit of records is damaged; that commit, and the data file that only it names."""
    write_deltalake(path, pa.table({"content": ["first"]}), configuration=SHORT_LIVED)
    table = open_table(path)
    commit = log_file(path, table.append(["acknowledged"]).version)
    (name,) = re.findall(rb'"path":"([^"]+)"', commit.read_bytes())
    commit.write_bytes(damage(commit.read_bytes()))
    return commit, path / name.decode()


def assert_known(table: Table, commit: Path) -> None:
    search = table.search("acknowledged")
    assert search.count() == 0
    assert search.report.is_incomplete
    assert commit.name in "".join(search.report.problems)
    with pytest.raises(UnreadableTableError, match=commit.name):
        table.search("acknowledged", strict=True).count()
    assert commit.name in "".join(table.verify().log_problems)
    with pytest.raises(UnreadableTableError, match="none was removed"):
        table.vacuum(retention_hours=0)


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_checkpoint_hides_a_damaged_commit(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    commit, data = damaged(tmp_path / "logs", damage)
    whole = data.exists()
    for number in range(2 * INTERVAL):
        open_table(tmp_path / "logs").append([f"later {number}"])
    assert checkpoints(tmp_path / "logs") == []
    assert commit.exists()
    assert_known(open_table(tmp_path / "logs"), commit)
    assert whole
    assert data.exists()


def test_checkpoints_are_made_again_when_the_commit_is_restored(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    backup: list[bytes] = []

    def keep(data: bytes) -> bytes:
        backup.append(data)
        return b""

    commit, _ = damaged(path, keep)
    table = open_table(path)
    assert table.snapshot().missing
    (path / "backup").write_bytes(backup[0])
    (path / "backup").rename(commit)
    search = table.search("acknowledged")
    assert search.count() == 1  # also in a table that was open all the time
    assert not search.report.is_incomplete
    for number in range(INTERVAL):
        table.append([f"later {number}"])
    assert checkpoints(path)
    assert open_table(path).search("acknowledged").count() == 1
    assert not open_table(path).verify(deep=True).log_problems


def test_a_commit_that_is_damaged_while_the_table_is_open_gets_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    write_deltalake(path, pa.table({"content": ["first"]}), configuration=SHORT_LIVED)
    table = open_table(path)
    commit = log_file(path, table.append(["one"]).version)
    commit.write_bytes(b"\n \n")  # not even empty: only reading it tells
    for _ in range(2 * INTERVAL):
        table.append(["later"])
    assert checkpoints(path) == []


def test_an_empty_commit_behind_another_writers_checkpoint_is_still_known(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    commit, data = damaged(path, emptied)
    table = open_table(path)
    table.append(["later"])
    DeltaTable(path).create_checkpoint()
    assert_known(open_table(path), commit)
    for number in range(2 * INTERVAL):  # our own clean-up leaves the only trace of it
        open_table(path).append([f"later {number}"])
    assert commit.exists()
    assert_known(open_table(path), commit)
    assert data.exists()


def test_the_advice_for_a_commit_behind_a_checkpoint_brings_its_records_back(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    backup: list[bytes] = []

    def keep(data: bytes) -> bytes:
        backup.append(data)
        return b""

    commit, _ = damaged(path, keep)
    open_table(path).append(["later"])
    DeltaTable(path).create_checkpoint()
    (problem,) = open_table(path).verify().log_problems
    assert f"restore it from a backup and remove {path}/_delta_log/_last_checkpoint and the checkpoints" in problem
    commit.write_bytes(backup[0])
    for file in [path / "_delta_log" / "_last_checkpoint", *checkpoints(path)]:
        file.unlink()
    table = open_table(path)
    table.vacuum(retention_hours=0)
    assert table.search("acknowledged").count() == 1
    assert table.search("").count() == 3


def test_a_commit_that_is_cut_while_the_table_is_open_is_named(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    table, other = create_table(path), open_table(path)
    assert not other.snapshot().missing
    commit = log_file(path, table.append(["one"]).version)
    commit.write_bytes(cut_at_a_line(commit.read_bytes()))
    log = delta_log.DeltaLog.open(Folder.of(path))
    assert [commit.name in str(problem) for problem in log.missing()] == [True]
    assert [commit.name in str(problem) for problem in other.snapshot().missing] == [True]


def test_whole_commits_are_not_taken_for_damaged_ones(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    table = create_table(path)
    table.append(["one", "two"])
    table.append([{"content": 'a "lines": 7}" of text', "new": 1}])
    table.optimize(full=True)
    newest = log_file(path, open_table(path).version)
    newest.write_bytes(newest.read_bytes().removesuffix(b"\n"))  # another tool may have copied it so
    assert delta_log.DeltaLog.open(Folder.of(path)).missing() == []
    assert open_table(path).verify(deep=True).is_sound


# --- paths ---


@pytest.mark.parametrize("spelling", ["./f.parquet", "d/./f.parquet", "d//f.parquet", "%2E/f.parquet"])
def test_vacuum_leaves_a_file_that_the_log_spells_oddly(tmp_path: Path, spelling: str) -> None:
    path = tmp_path / "logs"
    write_deltalake(path, pa.table({"content": ["x"]}))
    table = open_table(path)
    file = path / os.path.normpath(unquote(spelling))
    file.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"content": ["second"]}), file)
    os.utime(file, (1e9, 1e9))
    add = {"path": spelling, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 1}
    log_file(path, 1).write_text(json.dumps({"add": add | {"dataChange": True}}) + "\n")
    with pytest.raises(UnreadableTableError, match="empty or a dot"):
        table.vacuum(retention_hours=0)
    with pytest.raises(UnreadableTableError, match="empty or a dot"):
        delta_log.DeltaLog.open(Folder.of(path)).vacuum(0, dry_run=False)
    with pytest.raises(UnreadableTableError, match="empty or a dot"):
        open_table(path)
    assert file.exists()


@pytest.mark.parametrize("character", ["\n", "\t", "\x01", "\x1b", "\x7f"])
def test_a_path_with_control_characters_is_refused(tmp_path: Path, character: str) -> None:
    path = tmp_path / f"new{character}line"
    with pytest.raises(UsageError, match="control characters"):
        create_table(path)
    assert not path.exists()
    with pytest.raises(UsageError, match="control characters"):
        delta_log.DeltaLog.open(Folder.of(path))


# --- races ---


@pytest.mark.parametrize("step", ["sync", "move"])
@pytest.mark.parametrize("job", ["append", "optimize"])
def test_whoever_loses_its_files_to_a_vacuum_gets_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, job: str
) -> None:
    """A vacuum without retention removes the data file before it is synced, or the unfinished sidecar."""
    table = create_table(tmp_path / "logs")
    for number in range(2):
        table.append([f"line {number}"])
    version = DeltaTable(tmp_path / "logs").version()
    sync = files.sync_path

    def meet_a_vacuum(path: str) -> None:
        if step == "sync" and path.endswith(".parquet"):
            Path(path).unlink()
        sync(path)
        if step == "move" and path.endswith(files.UNFINISHED):
            Path(path).unlink()

    monkeypatch.setattr(files, "sync_path", meet_a_vacuum)
    with pytest.raises(ConflictError, match="removed while it was being written"):
        table.append(["lost"]) if job == "append" else table.optimize()
    monkeypatch.undo()
    assert DeltaTable(tmp_path / "logs").version() == version
    assert open_table(tmp_path / "logs").search("").count() == 2


# --- what others set, and what delta-rs does ---


def with_mode(path: Path, mode: str) -> None:
    write_deltalake(path, pa.table({"content": ["first"]}))
    lines = [json.loads(line) for line in log_file(path, 0).read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"]["delta.columnMapping.mode"] = mode
    log_file(path, 0).write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_table_that_says_that_its_columns_are_not_mapped_is_read_and_written(tmp_path: Path) -> None:
    with_mode(tmp_path / "logs", "none")
    table = open_table(tmp_path / "logs")
    table.append(["second"])
    assert open_table(tmp_path / "logs").search("").count() == 2


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_still_refused(tmp_path: Path, mode: str) -> None:
    with_mode(tmp_path / "logs", mode)
    with pytest.raises(UnreadableTableError):
        open_table(tmp_path / "logs")


def test_a_panic_while_a_checkpoint_is_made_fails_no_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "logs"
    write_deltalake(path, pa.table({"content": ["first"]}), configuration=SHORT_LIVED)
    panic = type("PanicException", (BaseException,), {})
    panics = []

    def fail(*_: object) -> None:
        panics.append(1)
        raise panic("called `Option::unwrap()` on a `None` value")

    monkeypatch.setattr(DeltaTable, "create_checkpoint", fail)
    table = open_table(path)
    for number in range(INTERVAL):
        table.append([f"line {number}"])
    assert panics
    assert table.search("").count() == 1 + INTERVAL
