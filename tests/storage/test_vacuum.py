"""Vacuum removes what nothing needs, says so exactly, and never reaches outside of the table."""

import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from coprlake.files import Folder
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.table import Table, create_table, open_table
from coprlake.testing.chosen_faults import files_of, ids, new_table, record

VALUES = ["a b", "c/d", "100%", "x%20y", "k=v", "ü→", "plain"]


def merged(path: Path) -> tuple[Table, set[str]]:
    """A table whose partitions have hard names, and the data files that it needs no more."""
    table = create_table(path, partition_by=["source"])
    for number in range(2):
        table.append([{"source": value, "content": f"line {number}"} for value in VALUES])
    before = {segment.name for segment in table.snapshot().segments}
    table.optimize()
    return table, before - {segment.name for segment in table.snapshot().segments}


@pytest.mark.parametrize("dry_run", [True, False])
def test_every_removed_file_is_reported_whatever_its_partition_is_called(path: Path, dry_run: bool) -> None:
    table, unneeded = merged(path)
    assert len(unneeded) == 2 * len(VALUES)
    size = sum((path / name).stat().st_size for name in unneeded)
    report = table.vacuum(retention_hours=0, dry_run=dry_run)
    assert set(report.data_files) == unneeded
    assert len(report.data_files) == len(unneeded)
    assert len(report.sidecars) == len(unneeded)
    assert report.bytes > size
    assert all((path / name).exists() == dry_run for name in unneeded)
    assert table.search().count() == 2 * len(VALUES)
    if not dry_run:
        names = {segment.name for segment in table.snapshot().segments}
        assert files_of(table) == names | {f"_coprlake/{name}.copr" for name in names}
        assert table.verify(deep=True).is_sound


def test_files_of_other_writers_are_reported_by_their_names(path: Path) -> None:
    data = pa.table({"content": ["x"] * len(VALUES), "source": VALUES})
    write_deltalake(path, data, partition_by=["source"])
    write_deltalake(path, data, partition_by=["source"], mode="overwrite")
    (path / "stray 1%20.txt").write_text("left behind")
    present = {segment.name for segment in open_table(path).snapshot().segments}
    files = files_of(open_table(path))
    report = open_table(path).vacuum(retention_hours=0)
    assert set(report.data_files) == files - present
    assert files_of(open_table(path)) == present


def test_what_links_lead_to_is_left_alone(path: Path, tmp_path: Path) -> None:
    table = new_table(path)
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    precious = [outside / "a.parquet", outside / "deep" / "b.parquet", outside / "c.copr"]
    for file in precious:
        file.write_text("precious")
        os.utime(file, (0, 0))
    (path / "linked").symlink_to(outside)
    (path / "day=2024-06-01" / "deeper").symlink_to(outside / "deep")
    (path / "a.parquet").symlink_to(outside / "a.parquet")
    (path / "_coprlake" / "linked").symlink_to(outside)
    (path / "_coprlake" / "c.parquet.copr").symlink_to(outside / "c.copr")
    table.optimize()
    for dry_run in (True, False):
        report = table.vacuum(retention_hours=0, dry_run=dry_run)
        named = [*report.data_files, *report.sidecars, *report.leftovers]
        assert named
        assert not {"a.parquet", "_coprlake/c.parquet.copr"} & set(named)
        assert not [name for name in named if "linked" in name or "deeper" in name]
        assert all(file.read_text() == "precious" for file in precious)
    assert (path / "a.parquet").is_symlink()
    assert table.verify().is_sound


def test_a_link_to_another_folder_of_the_table_costs_none_of_its_files(path: Path) -> None:
    table = new_table(path)
    (path / "same").symlink_to(path / "day=2024-06-01")
    expected = ids(table)
    table.vacuum(retention_hours=0)
    assert ids(open_table(path)) == expected
    assert open_table(path).verify(deep=True).is_sound


def test_a_table_that_is_reached_by_a_link_is_cleaned(path: Path, tmp_path: Path) -> None:
    merged(path)
    (tmp_path / "link").symlink_to(path)
    assert len(open_table(tmp_path / "link").vacuum(retention_hours=0).data_files) == 2 * len(VALUES)


def test_what_is_young_stays(path: Path) -> None:
    table, unneeded = merged(path)
    assert not table.vacuum(retention_hours=1).data_files
    assert all((path / name).exists() for name in unneeded)


def test_commits_that_a_killed_writer_was_about_to_make_are_removed(path: Path) -> None:
    table = new_table(path, 1)
    log = path / "_delta_log"
    left = [log / f".{7:020d}.json.{'a' * 32}.tmp", log / f"._last_checkpoint.{'b' * 32}.tmp"]
    for file in left:
        file.write_text("{")
    other = log / ".somebody.else.tmp"
    other.write_text("x")
    assert not table.vacuum(retention_hours=1).leftovers
    assert len(table.vacuum(retention_hours=0).leftovers) == 2
    assert not any(file.exists() for file in left)
    assert other.exists()


def test_vacuum_first_makes_sure_that_the_log_is_on_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a loss of power could bring back the version that needs the files."""
    table, unneeded = merged(path)
    table.append([record(1)])
    synced: list[bool] = []
    sync = DeltaLog.sync_to

    def watched(self: DeltaLog, version: int) -> None:
        sync(self, version)
        synced.append(all((path / name).exists() for name in unneeded) and version == self.version)

    monkeypatch.setattr(DeltaLog, "sync_to", watched)
    table.vacuum(retention_hours=0)
    assert synced == [True]


def test_a_removed_file_is_spelled_as_the_log_spells_it(path: Path) -> None:
    """Other writers quote other characters; a line that spells a file otherwise would not remove it."""
    create_table(path, partition_by=["source"]).append([{"source": "A+B (c)", "content": "x"}])
    commit = path / "_delta_log" / f"{1:020d}.json"
    commit.write_text(commit.read_text().replace('"path":"source=', '"path":"%73ource='))
    log = DeltaLog.open(Folder.of(path))
    assert open_table(path).search().count() == 1
    log.commit(remove=log.entries(), note={"operation": "delete", "what": "", "rows": 1, "files": []})
    assert open_table(path).search().count() == 0
    assert DeltaTable(path).count() == 0
