"""A vacuum takes no file away from a commit that is being made, however short its retention is."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from coprlake.errors import ConflictError, StorageError
from coprlake.files import Folder
from coprlake.storage.log import delta_log, turns
from coprlake.storage.log.actions import NewFile, check_written
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.storage.log.refusals import cause_of
from coprlake.table import create_table, open_table
from coprlake.testing.chosen_faults import check_sound, ids, record
from coprlake.testing.torture.deaths.jobs import ID


def test_a_vacuum_between_the_check_and_the_commit_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, it removed the files in between, and the commit named files that were gone."""
    table = create_table(tmp_path / "table", schema=ID)
    table.append([record(0)])
    check = check_written
    vacuums = []

    def check_and_meet_a_vacuum(folder: Folder, add: Sequence[NewFile]) -> None:
        check(folder, add)
        vacuum = threading.Thread(target=lambda: open_table(tmp_path / "table").vacuum(retention_hours=0))
        vacuum.start()
        vacuum.join(1)
        vacuums.append(vacuum)

    monkeypatch.setattr(delta_log, "check_written", check_and_meet_a_vacuum)
    table.append([record(1)])
    monkeypatch.undo()
    assert vacuums
    for vacuum in vacuums:
        vacuum.join(30)
        assert not vacuum.is_alive()
    assert ids(table) == [0, 1]
    check_sound(tmp_path / "table", [0, 1])


def test_a_vacuum_that_looked_before_a_commit_does_not_remove_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table(tmp_path / "table", schema=ID)
    table.append([record(0)])
    writer = table.writer()
    writer.append([record(1)])
    writer._segmenter.seal()
    log = DeltaLog.open(table._log.folder)
    original = turns.held

    def commit_first(folder: Folder, *, alone: bool) -> object:
        if alone:
            writer.commit()
        return original(folder, alone=alone)

    monkeypatch.setattr(turns, "held", commit_first)
    log.vacuum(0, dry_run=False)
    monkeypatch.undo()
    check_sound(tmp_path / "table", [0, 1])


def test_a_file_that_is_removed_while_it_is_written_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, it was an AssertionError without a word."""
    table = create_table(tmp_path / "table", schema=ID)

    def sync_and_lose(self: object, name: str) -> None:
        (tmp_path / "table" / name).unlink()

    monkeypatch.setattr("coprlake.files.Folder.sync", sync_and_lose)
    with pytest.raises(ConflictError, match="removed while it was being written"):
        table.append([record(0)])
    monkeypatch.undo()
    assert ids(table) == []
    check_sound(tmp_path / "table", [])


def test_a_scratch_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", schema=ID)
    (tmp_path / "table" / "_coprlake").mkdir(exist_ok=True)
    (tmp_path / "table" / "_coprlake" / "scratch").write_text("in the way")
    with pytest.raises(StorageError, match="scratch"), table.writer() as writer:
        writer.append([record(0)])
    assert ids(table) == []


def test_the_cause_of_an_error_of_the_log_is_in_its_line() -> None:
    lines = ["Kernel error", "   \x1b[31m↳\x1b[0m Unable to open file", "    \x1b[31m↳\x1b[0m No space left"]
    assert cause_of(OSError("\n".join(lines))) == "Kernel error: No space left"
    assert cause_of(OSError("one line")) == "one line"
