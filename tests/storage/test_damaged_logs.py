"""A commit or a checkpoint that was cut short is named, costs no other record, and there is a way out."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from coprlake.cli.main import cli
from coprlake.errors import StorageError, UnreadableTableError
from coprlake.files import Folder
from coprlake.predicate.predicates import OneOf
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.storage.verifying import verify_log
from coprlake.table import create_table, open_table
from coprlake.testing.chosen_faults import ROWS, SMALL, files_of, ids, new_table, record

COMMITS = 3


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Version 0 makes the table, 1 a column, 2 to 4 add records, 5 merges those of a day."""
    path = tmp_path_factory.mktemp("whole") / "table"
    table = new_table(path, COMMITS)
    with table.writer(options=SMALL) as writer:
        writer.append([record(number) for number in range(COMMITS * ROWS, (COMMITS + 1) * ROWS)])
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "table")


def log_file(path: Path, name: str | int) -> Path:
    return path / "_delta_log" / (name if isinstance(name, str) else f"{name:020d}.json")


NEWEST = 1 + COMMITS + 1
ALL = list(range((COMMITS + 1) * ROWS))
OLDER = list(range(COMMITS * ROWS))


def found(path: Path) -> list[int]:
    return sorted(row["id"] for row in open_table(path).search(columns=["id"]).rows())


# --- an empty commit, which every reader of Delta takes for one that did nothing ---


def test_an_empty_commit_is_named_by_verify_and_by_every_search(path: Path) -> None:
    log_file(path, NEWEST).write_bytes(b"")
    table = open_table(path)
    report = table.verify(deep=True)
    assert not report.is_sound
    assert [f"{NEWEST:020d}.json" in problem for problem in report.log_problems] == [True]
    search = table.search()
    assert len(list(search.rows())) == len(OLDER)
    assert f"{NEWEST:020d}.json" in "".join(search.report.problems)
    assert search.report.is_incomplete
    assert table.search().count() == len(OLDER)
    assert "empty" in "".join(table.info().problems)
    with pytest.raises(UnreadableTableError, match="empty"):
        list(table.search(strict=True).rows())
    with pytest.raises(UnreadableTableError, match="empty"):
        table.search(strict=True).count()
    with pytest.raises(UnreadableTableError, match="empty"):
        table.query("fetch logs | summarize count()").arrow()


def test_a_commit_that_is_emptied_while_the_table_is_open_is_named(path: Path) -> None:
    table = open_table(path)
    assert not table.snapshot().missing
    log_file(path, NEWEST + 1).write_bytes(b"")
    search = open_table(path).search()
    list(search.rows())
    assert search.report.is_incomplete
    log = DeltaLog.open(Folder.of(path))
    log_file(path, NEWEST + 2).write_bytes(b"")
    log.refresh()
    assert [f"{number:020d}" in str(one) for number, one in zip((NEWEST + 1, NEWEST + 2), log.missing(), strict=True)]


def test_vacuum_leaves_what_an_empty_commit_may_name(path: Path) -> None:
    log_file(path, NEWEST).write_bytes(b"")
    table = open_table(path)
    before = files_of(table)
    for dry_run in (True, False):
        with pytest.raises(UnreadableTableError, match=r"none was removed; restore it from a backup"):
            table.vacuum(retention_hours=0, dry_run=dry_run)
    assert files_of(table) == before


def test_an_append_on_an_empty_commit_works_and_a_restored_commit_brings_its_records_back(path: Path) -> None:
    backup = log_file(path, NEWEST).read_bytes()
    log_file(path, NEWEST).write_bytes(b"")
    open_table(path).append([record(100)])
    assert found(path) == [*OLDER, 100]
    with pytest.raises(UnreadableTableError, match=f"{NEWEST:020d}"):
        open_table(path).vacuum(retention_hours=0)
    log_file(path, NEWEST).write_bytes(backup)
    assert ids(open_table(path)) == [*ALL, 100]
    assert open_table(path).verify(deep=True).is_sound
    open_table(path).vacuum(retention_hours=0)
    assert ids(open_table(path)) == [*ALL, 100]


def test_other_writes_on_an_empty_commit_lose_nothing_that_is_left(path: Path) -> None:
    backup = log_file(path, NEWEST).read_bytes()
    log_file(path, NEWEST).write_bytes(b"")
    open_table(path).optimize()
    open_table(path).delete(OneOf("id", (5,)))
    assert found(path) == [number for number in OLDER if number != 5]
    log_file(path, NEWEST).write_bytes(backup)
    assert ids(open_table(path)) == [number for number in ALL if number != 5]


@pytest.mark.parametrize("on_top", [False, True], ids=["newest", "below another"])
@pytest.mark.parametrize("text", [b"", b'{"commitInfo":{}}\n{"add":{"pa', b"\0" * 100])
def test_the_advice_for_a_damaged_commit_works(path: Path, text: bytes, on_top: bool) -> None:
    if on_top:
        open_table(path).append([record(100)])
    log_file(path, NEWEST).write_bytes(text)
    advice = verify_log(path).log_problems[0].rpartition("; ")[2]
    assert "write " in advice
    no_op = advice.rpartition("write ")[2].removesuffix(" into it")
    log_file(path, NEWEST).write_text(no_op)
    table = open_table(path)
    assert table.verify(deep=True).is_sound
    assert ids(table) == [*OLDER, *([100] if on_top else [])]
    assert len(DeltaTable(path).history()) == NEWEST + 1 + on_top
    table.vacuum(retention_hours=0)
    table.append([record(101)])
    assert ids(open_table(path)) == [*OLDER, *([100] if on_top else []), 101]


# --- everything that can be wrong ---


def _cut(path: Path, name: str | int, keep: Callable[[bytes], bytes]) -> None:
    log_file(path, name).write_bytes(keep(log_file(path, name).read_bytes()))


CHECKPOINT = f"{NEWEST:020d}.checkpoint.parquet"
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "an empty commit": (lambda path: _cut(path, NEWEST, lambda _: b""), "empty"),
    "an old empty commit": (lambda path: _cut(path, 3, lambda _: b""), "empty"),
    "blanks": (lambda path: _cut(path, NEWEST, lambda _: b"\n \n"), "blanks"),
    "zeros": (lambda path: _cut(path, NEWEST, lambda data: b"\0" * len(data)), "line 1"),
    "half a line": (lambda path: _cut(path, NEWEST, lambda data: data[: len(data) // 2]), "cut short"),
    "half of the lines": (lambda path: _cut(path, NEWEST, lambda data: data[: data.rindex(b"\n{")]), "actions"),
    "another kind of text": (lambda path: _cut(path, NEWEST, lambda _: b"[1]\n"), "not an action"),
    "a gap": (lambda path: log_file(path, 3).unlink(), "no such file"),
    "an empty checkpoint": (lambda path: _cut(path, CHECKPOINT, lambda _: b""), "empty"),
    "half a checkpoint": (lambda path: _cut(path, CHECKPOINT, lambda data: data[: len(data) // 2]), "Parquet"),
    "a hole in a checkpoint": (
        lambda path: _cut(path, CHECKPOINT, lambda data: b"PAR1" + b"\0" * 2000 + data[2004:]),
        "Parquet",
    ),
    "a missing checkpoint": (lambda path: log_file(path, CHECKPOINT).unlink(), f"checkpoint of version {NEWEST}"),
    "an empty pointer": (lambda path: _cut(path, "_last_checkpoint", lambda _: b""), "_last_checkpoint"),
    "half a pointer": (lambda path: _cut(path, "_last_checkpoint", lambda data: data[:7]), "_last_checkpoint"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_every_damage_to_the_log_is_named(name: str, path: Path) -> None:
    damage, words = DAMAGES[name]
    if "checkpoint" in name or "pointer" in name:
        DeltaTable(path).create_checkpoint()
    assert verify_log(path).is_sound
    damage(path)
    problems = verify_log(path).log_problems
    assert any(words in problem for problem in problems), problems
    result = CliRunner().invoke(cli, ["verify", str(path)])
    assert result.exit_code == 1, result.output
    assert "log  " in result.output
    assert words in result.output
    shown = CliRunner().invoke(cli, ["verify", "--json", str(path)])
    assert json.loads(shown.stdout)["log_problems"] == problems


@pytest.mark.parametrize("name", [name for name in DAMAGES if "checkpoint" in name or "pointer" in name])
def test_the_advice_for_a_damaged_checkpoint_works(name: str, path: Path) -> None:
    DeltaTable(path).create_checkpoint()
    DAMAGES[name][0](path)
    for problem in verify_log(path).log_problems:
        assert "remove" in problem
        for file in (problem.partition(": ")[0], str(log_file(path, "_last_checkpoint"))):
            Path(file).unlink(missing_ok=True)
    assert ids(open_table(path)) == ALL
    assert open_table(path).verify(deep=True).is_sound


def test_a_checkpoint_that_alone_has_the_records_is_to_be_restored(path: Path) -> None:
    DeltaTable(path).create_checkpoint()
    for number in range(NEWEST + 1):
        log_file(path, number).unlink()
    assert open_table(path).verify().is_sound
    backup = log_file(path, CHECKPOINT).read_bytes()
    log_file(path, CHECKPOINT).write_bytes(backup[:100])
    with pytest.raises(UnreadableTableError, match="backup"):
        open_table(path)
    assert all("restore" in problem for problem in verify_log(path).log_problems)


def test_a_damaged_commit_is_an_error_that_names_it_and_the_way_out(path: Path) -> None:
    log_file(path, NEWEST).write_bytes(b'{"add":')
    with pytest.raises(UnreadableTableError, match=rf"{NEWEST:020d}\.json: log: .*cut short.*write ") as caught:
        open_table(path)
    assert caught.value.file == str(log_file(path, NEWEST))


def test_old_commits_that_were_cleaned_away_are_no_gap(path: Path) -> None:
    DeltaTable(path).create_checkpoint()
    for number in (0, 1, 3):  # a loss of power may bring some of them back
        log_file(path, number).unlink()
    assert open_table(path).verify().is_sound


@pytest.mark.parametrize("name", ["transaction_version", "get_add_actions", "history"])
def test_a_log_that_cannot_be_read_any_more_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    create_table(tmp_path / "logs")
    log = DeltaLog.open(Folder.of(tmp_path / "logs"))

    def fail(*_: object) -> None:
        raise DeltaError("Kernel error: Io error: No space left on device (os error 28)\n   0: <unknown>")

    monkeypatch.setattr(DeltaTable, name, fail)
    reads = {"transaction_version": lambda: log.transaction_version("app"), "history": log.history}
    with pytest.raises(StorageError, match=r"cannot be read; .*No space left on device"):
        reads.get(name, log.entries)()
