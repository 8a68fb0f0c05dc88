"""Damage to a log is not forgotten, odd logs cost no file, and whoever loses a race is told so."""

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from coprlake.errors import ConflictError, UnreadableTableError, UsageError
from coprlake.files import Folder
from coprlake.segment.sidecar import FOLDER
from coprlake.store import Table, create_table, open_table
from coprlake.table.log import delta_log

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
