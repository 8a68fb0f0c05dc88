"""A commit that was acknowledged is on disk; one whose outcome was unclear is made once."""

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from coprlake import files
from coprlake.errors import ConflictError, DoneBeforeError, StorageError, UsageError
from coprlake.files import Folder
from coprlake.predicate.predicates import OneOf
from coprlake.storage.log.actions import NewFile
from coprlake.storage.log.checkpointing import write_checkpoint
from coprlake.storage.log.delta_log import DeltaLog, Transaction
from coprlake.table import Table, create_table, open_table
from coprlake.testing.chosen_faults import ROWS, SMALL, disk_full, files_of, ids, new_table, record
from coprlake.testing.torture.commit_cost import commit_milliseconds


def commit_file(path: Path, version: int) -> Path:
    return path / "_delta_log" / f"{version:020d}.json"


@contextmanager
def recorded() -> Iterator[list[tuple[str, str]]]:
    """The syncs, links and renames of a piece of code, in order; a name that is gone is told by what it became."""
    told: list[tuple[str, str]] = []
    sync, link, rename = files.sync_path, os.link, Path.replace

    def recorded_sync(name: str) -> None:
        sync(name)
        told.append(("sync", name))

    def recorded_link(source: str, target: str) -> None:
        link(source, target)
        told.append((f"name {source}", os.fspath(target)))

    def recorded_rename(source: Path, target: Path) -> Path:
        found = rename(source, target)
        told.append((f"name {source}", os.fspath(target)))
        return found

    with (
        patch.object(files, "sync_path", recorded_sync),
        patch.object(os, "link", recorded_link),
        patch.object(Path, "replace", recorded_rename),
    ):
        yield told


def check_durable(told: list[tuple[str, str]], log: Path) -> list[str]:
    """Each file of the log was synced before it had its name, and its name after that; returns the names in order."""
    names = []
    for place, (what, target) in enumerate(told):
        if not what.startswith("name ") or Path(target).parent != log:
            continue
        names.append(Path(target).name)
        assert ("sync", what.removeprefix("name ")) in told[:place], f"{target} had its name before its bytes were safe"
        later = told[place + 1 :]
        following = next((i for i, (one, _) in enumerate(later) if one.startswith("name ")), len(later))
        assert ("sync", str(log)) in later[:following], f"the name {target} was not safe before the next step"
    return names


ACTIONS: dict[str, tuple[Callable[[Table], object], int]] = {
    "append": (lambda table: table.append([record(100)]), 1),
    "append with a new column": (lambda table: table.append([record(100) | {"new": 5}]), 2),
    "optimize": (lambda table: table.optimize(), 1),  # one for three days
    "delete": (lambda table: table.delete(OneOf("id", (3,))), 1),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_a_commit_is_on_disk_before_it_has_its_name_and_the_name_before_the_call_returns(name: str, path: Path) -> None:
    action, commits = ACTIONS[name]
    table = new_table(path, 2)
    version = table.snapshot().version
    with recorded() as told:
        action(table)
    expected = [commit_file(path, version + 1 + number).name for number in range(commits)]
    assert check_durable(told, path / "_delta_log") == expected
    assert not list((path / "_delta_log").glob(".*"))


def test_a_new_table_and_the_folders_that_were_made_for_it_are_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "table"
    with recorded() as told:
        create_table(path)
    assert check_durable(told, path / "_delta_log") == [commit_file(path, 0).name]
    assert {str(path), str(path.parent), str(path.parent.parent), str(tmp_path)} <= {name for _, name in told}


def test_a_commit_makes_what_others_wrote_before_it_durable_first(path: Path) -> None:
    new_table(path, 1)
    other = DeltaTable(path)
    other.alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})  # synced by nobody
    foreign = commit_file(path, other.version())
    with recorded() as told:
        open_table(path).append([record(100)])
    names = (place for place, (what, _) in enumerate(told) if what.startswith("name "))
    named = next(place for place in names if Path(told[place][1]).parent == foreign.parent)
    assert ("sync", str(foreign)) in told[:named]
    assert ("sync", str(foreign.parent)) in told[told.index(("sync", str(foreign))) : named]


def test_a_commit_costs_two_syncs_once_a_writer_is_warm(path: Path) -> None:
    table = new_table(path, 1)
    log = DeltaLog.open(Folder.of(path))
    log.commit(once=Transaction("a", 1), note={})
    with recorded() as told:
        log.commit(once=Transaction("a", 2), note={})
    assert [what for what, _ in told if what == "sync"] == ["sync", "sync"]
    assert table.snapshot().version == 4


def test_the_cost_of_durability_is_measured(tmp_path: Path) -> None:
    found = commit_milliseconds(tmp_path, commits=8)
    assert {"p50", "p99", "added_p99"} <= found.keys()
    assert 0 < found["added_p50"] <= found["added_p99"] <= found["p99"]


# --- checkpoints ---


def with_interval(path: Path, interval: int) -> Table:
    create_table(path, schema=pa.schema([("id", pa.int64())]))
    DeltaTable(path).alter.set_table_properties({"delta.checkpointInterval": str(interval)})
    return open_table(path)


def test_a_checkpoint_is_on_disk_before_something_points_to_it(path: Path) -> None:
    table = with_interval(path, 5)
    with recorded() as told:
        for number in range(3):
            table.append([record(number)])
    names = check_durable(told, path / "_delta_log")
    checkpoint = f"{4:020d}.checkpoint.parquet"
    assert names[-3:] == [commit_file(path, 4).name, checkpoint, "_last_checkpoint"]
    assert json.loads((path / "_delta_log" / "_last_checkpoint").read_text())["version"] == 4
    assert not list((path / "_coprlake").glob("checkpoint*"))
    for version in range(5):
        commit_file(path, version).unlink()  # the checkpoint alone has it all
    assert ids(open_table(path)) == [0, 1, 2]
    assert open_table(path).verify().is_sound


def test_a_checkpoint_builds_on_the_one_before_and_replaces_one_that_was_cut_short(path: Path) -> None:
    table = with_interval(path, 5)
    for number in range(3):
        table.append([record(number)])
    for version in range(5):
        commit_file(path, version).unlink()
    for number in range(3, 8):
        table.append([record(number)])
    (path / "_delta_log" / f"{9:020d}.checkpoint.parquet").write_bytes(b"PAR1")
    write_checkpoint(Folder.of(path), 9)
    for version in range(5, 10):
        commit_file(path, version).unlink()
    assert ids(open_table(path)) == list(range(8))
    assert open_table(path).verify().is_sound


def test_a_checkpoint_that_fails_costs_nothing_but_time(path: Path) -> None:
    table = with_interval(path, 5)
    with patch.object(DeltaTable, "create_checkpoint", side_effect=OSError(errno.ENOSPC, "no space left")):
        for number in range(3):
            table.append([record(number)])
    assert not list((path / "_delta_log").glob("*checkpoint*"))
    assert ids(open_table(path)) == [0, 1, 2]
    assert open_table(path).verify().is_sound
    assert files_of(open_table(path)) == files_of(table)


def test_without_a_word_a_checkpoint_comes_every_hundred_commits(path: Path) -> None:
    create_table(path)
    log = DeltaLog.open(Folder.of(path))
    for number in range(100):
        log.commit(once=Transaction("a", number), note={})
    assert [file.name for file in (path / "_delta_log").glob("*.checkpoint.parquet")] == [
        f"{99:020d}.checkpoint.parquet"
    ]
    assert DeltaTable(path).transaction_version("a") == 99


# --- what other readers see ---


def test_other_readers_read_our_commits(path: Path) -> None:
    values = ["a b", "c/d", "100%", "x%20y", "ü=1", "", "plain"]
    table = create_table(path, partition_by=["source"])
    table.append([{"source": value, "content": "first"} for value in values])
    table.append([{"source": value, "content": "second"} for value in values])
    table.optimize()
    other = DeltaTable(path)
    found = other.to_pyarrow_table(columns=["source", "content"]).to_pylist()
    expected = [{"source": value or None, "content": text} for value in values for text in ("first", "second")]
    assert sorted(map(str, found)) == sorted(map(str, expected))
    info = other.history()[0]
    assert info["operation"] == "WRITE"
    assert json.loads(info["coprlake"])["operation"] == "optimize"


def test_a_commit_says_what_delta_rs_would_have_said(path: Path) -> None:
    new_table(path, 1)
    own, other = (Folder.of(path) for _ in range(2))
    other.is_local = False  # as an object store's: delta-rs writes it
    lines = []
    for number, folder in enumerate((own, other)):
        log = DeltaLog.open(folder)
        names = sorted(log.names())
        log.commit(remove=[log.entries()[0]], note={"operation": "x"}, once=Transaction("app", number))
        found = [json.loads(line) for line in commit_file(path, log.version + (number == 0)).read_text().splitlines()]
        assert names[0] not in DeltaLog.open(folder).names()
        lines.append({key: value for line in found for key, value in line.items()})
    mine, theirs = lines
    assert mine.keys() == theirs.keys() == {"commitInfo", "txn", "remove"}
    assert mine["remove"].keys() == theirs["remove"].keys()
    assert mine["txn"]["appId"] == "app"
    assert DeltaTable(path).transaction_version("app") == 1
    for key in ("operation", "operationParameters"):
        shown = [json.loads(json.dumps(one["commitInfo"][key]).replace(" ", "")) for one in lines]
        assert shown[0] == shown[1]


def test_columns_that_are_added_keep_all_that_the_table_says_of_itself(path: Path) -> None:
    create_table(path, partition_by=["source"], grams=["source"])
    DeltaTable(path).alter.set_table_name("logs of the web")
    before = DeltaTable(path)
    open_table(path).append([{"source": "a", "content": "x", "n": 1, "day_of": True}])
    after = DeltaTable(path)
    for part in ("id", "name", "description", "partition_columns", "created_time", "configuration"):
        assert getattr(after.metadata(), part) == getattr(before.metadata(), part)
    assert after.metadata().name == "logs of the web"
    assert {field.name for field in after.schema().fields} - {field.name for field in before.schema().fields} == {
        "n",
        "day_of",
    }


def test_a_column_that_needs_a_newer_protocol_brings_it(path: Path) -> None:
    create_table(path)
    DeltaLog.open(Folder.of(path)).add_columns([pa.field("local", pa.timestamp("us"))])
    assert "timestampNtz" in (DeltaTable(path).protocol().reader_features or [])
    open_table(path).append([record(1)])
    assert ids(open_table(path)) == [1]


def test_an_append_only_table_keeps_its_records(path: Path) -> None:
    table = new_table(path, 1)
    DeltaTable(path).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(UsageError, match="append-only"):
        open_table(path).delete(OneOf("id", (3,)))
    assert len(ids(table)) == ROWS


# --- what goes wrong on the way ---


def test_two_who_make_the_same_table_make_it_once(path: Path) -> None:
    create_table(path)
    with pytest.raises(ConflictError, match="already"):
        create_table(path)
    with patch.object(DeltaTable, "is_deltatable", return_value=False), pytest.raises(ConflictError, match="already"):
        create_table(path)  # the other one came in between
    assert open_table(path).version == 0


def test_a_table_whose_making_was_interrupted_is_made(path: Path) -> None:
    (path / "_delta_log").mkdir(parents=True)
    (path / "_delta_log" / f".{0:020d}.json.{'0' * 32}.tmp").write_text('{"comm')
    create_table(path).append([record(1)])
    assert ids(open_table(path)) == [1]


def test_a_disk_that_does_not_confirm_is_an_error_and_trying_again_adds_nothing_twice(path: Path) -> None:
    table = new_table(path, 1)
    log = path / "_delta_log"
    sync, is_broken = files.sync_path, True
    placed = Folder.place
    swapped = []

    def place(self: Folder, name: str, data: bytes) -> bool:
        swapped.append(name)
        return placed(self, name, data)

    def broken_sync(name: str) -> None:
        if is_broken and name == str(log) and swapped:
            disk_full()
        sync(name)

    with patch.object(files, "sync_path", broken_sync), patch.object(Folder, "place", place):
        writer = table.writer(options=SMALL)
        writer.append([record(100)])
        with pytest.raises(StorageError, match="did not confirm"):
            writer.commit()
        is_broken = False
        report = writer.commit()
    assert report.version == 3
    assert len(swapped) == 1
    assert ids(open_table(path)) == [*range(ROWS), 100]


@pytest.mark.parametrize("is_local", [True, False], ids=["local", "object store"])
def test_a_commit_that_landed_and_failed_is_not_made_again_although_its_file_is_gone(
    path: Path, is_local: bool
) -> None:
    """Another process merges the file before the writer looks again."""
    table = new_table(path, 2)
    folder = Folder.of(path)
    folder.is_local = is_local
    log = DeltaLog.open(folder)
    file = sealed(table, 100)
    owner, name = (Folder, "place") if is_local else (DeltaTable, "create_write_transaction")
    real = getattr(owner, name)

    def lands_and_fails(self: object, *arguments: object, **named: object) -> None:
        with patch.object(owner, name, real):
            real(self, *arguments, **named)
            assert open_table(path).optimize().merged
        raise OSError(errno.EIO, "the connection was lost")

    with patch.object(owner, name, lands_and_fails):
        assert log.commit([file], note={"operation": "append"}) == 4
    assert file.report.name not in DeltaLog.open(folder).names()
    assert ids(open_table(path)) == [*range(2 * ROWS), 100]


def sealed(table: Table, number: int) -> NewFile:
    """A segment that is written and not committed."""
    writer = table.writer(options=SMALL)
    writer.append([record(number)])
    writer._segmenter.seal()
    return writer._segmenter.sealed().files[0]


def test_every_commit_has_an_id_of_its_own(path: Path) -> None:
    table = new_table(path, 3)
    table.append([record(100) | {"new": 1}])
    table.optimize()
    commits = sorted((path / "_delta_log").glob("*.json"))
    infos = [json.loads(file.read_text().splitlines()[0])["commitInfo"] for file in commits]
    assert len({info["txnId"] for info in infos}) == len(infos) > 5


def test_discarded_files_stay_in_an_object_store_where_their_commit_may_arrive_later(path: Path) -> None:
    table = new_table(path, 1)
    file = sealed(table, 100)
    folder = Folder.of(path)
    folder.is_local = False
    DeltaLog.open(folder).discard([file.report.name])
    assert (path / file.report.name).exists()
    DeltaLog.open(Folder.of(path)).discard([file.report.name])
    assert not (path / file.report.name).exists()


def test_a_file_that_joined_and_was_merged_is_not_discarded(path: Path) -> None:
    """An interrupted writer discards what it wrote; older versions of the table still need it."""
    table = new_table(path, 1)
    file = sealed(table, 4)
    DeltaLog.open(Folder.of(path)).commit([file], note={})
    table.optimize()
    assert file.report.name not in DeltaLog.open(Folder.of(path)).names()
    DeltaLog.open(Folder.of(path)).discard([file.report.name])
    assert (path / file.report.name).exists()


def test_a_step_that_was_made_before_is_on_disk_before_that_is_said(path: Path) -> None:
    new_table(path, 1)
    DeltaLog.open(Folder.of(path)).commit(once=Transaction("stream", 7), note={})
    log = DeltaLog.open(Folder.of(path))
    with recorded() as told, pytest.raises(DoneBeforeError):
        log.commit(once=Transaction("stream", 7), note={})
    assert told[-2:] == [("sync", str(path / "_delta_log")), ("sync", str(path))]
    assert ("sync", str(commit_file(path, 2))) in told


def test_half_a_character_reaches_no_log(path: Path) -> None:
    new_table(path, 1)
    log = DeltaLog.open(Folder.of(path))
    file = sealed(open_table(path), 100)
    with pytest.raises(UsageError, match="Unicode"):
        log.commit([NewFile(file.report, {"day": "\udc80"})], note={})
    assert log.version == DeltaTable(path).version()
