"""Whatever dies, and whenever: the table is the one before or the one after."""

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coprlake.errors import CoprlakeError, StorageError
from coprlake.predicate.predicates import OneOf
from coprlake.table import Table, open_table
from coprlake.testing.chosen_faults import (
    ROWS,
    SMALL,
    Mortals,
    check_sound,
    disk_full,
    failing,
    files_of,
    ids,
    interrupt,
    new_table,
    record,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mortals() -> Iterator[Mortals]:
    with Mortals() as found:
        yield found


def committed(told: list[str], before: int) -> tuple[int, int]:
    """How many records must be there, and how many may be."""
    assert not any(line.startswith("error") for line in told), told
    surely = [int(line.split()[1]) for line in told if line.startswith("after")]
    perhaps = [int(line.split()[1]) for line in told if line.startswith("before")]
    return max(surely, default=before), max(perhaps, default=before)


def check_ingested(path: Path, told: list[str], before: int) -> int:
    """All records of each commit that was made, none of any other; returns how many there are."""
    least, most = committed(told, before)
    found = ids(open_table(path))
    assert len(found) in (least, most)
    check_sound(path, list(range(len(found))))
    return len(found)


def test_an_ingest_that_is_killed_at_any_operation_keeps_what_it_committed(path: Path, mortals: Mortals) -> None:
    new_table(path, 1)
    count = ROWS
    for at in (*range(0, 60, 7), *range(3, 400, 43)):
        told, code = mortals.live("ingest", path, at=at)
        assert code == -9, told
        count = check_ingested(path, told, count)
    assert count > ROWS


def test_an_ingest_that_is_killed_at_any_time_keeps_what_it_committed(path: Path, mortals: Mortals) -> None:
    new_table(path, 1)
    chance = random.Random(17)
    count = ROWS
    for _ in range(9):
        told, code = mortals.live("ingest", path, seconds=chance.uniform(0.02, 0.5))
        assert code == -9, told
        count = check_ingested(path, told, count)
    assert count > ROWS


def test_an_optimize_that_is_killed_changes_no_record(path: Path, mortals: Mortals) -> None:
    new_table(path)
    chance = random.Random(18)
    everything = list(range(4 * ROWS))
    for number in range(14):
        moment = {"at": number * 5} if number % 2 else {"seconds": chance.uniform(0.02, 0.4)}
        told, code = mortals.live("optimize", path, **moment)
        assert code == -9, told
        check_sound(path, everything)


def test_a_delete_that_is_killed_is_done_or_not(path: Path, mortals: Mortals, tmp_path: Path) -> None:
    new_table(tmp_path / "whole")
    chance = random.Random(19)
    for number in range(14):
        shutil.copytree(tmp_path / "whole", path)
        moment = {"at": number * 6} if number % 2 else {"seconds": chance.uniform(0.02, 0.4)}
        told, _ = mortals.live("delete", path, **moment)
        assert not any(line.startswith("error") for line in told), told
        left = set(range(4 * ROWS))
        for line in told:
            if line.startswith("after"):
                left = {number for number in left if number % int(line.split()[1])}
        perhaps = left
        if told and told[-1].startswith("before"):
            perhaps = {number for number in left if number % int(told[-1].split()[1])}
        found = ids(open_table(path))
        assert set(found) in (left, perhaps)
        check_sound(path, sorted(found))
        shutil.rmtree(path)


# --- errors instead of deaths ---

Action = Callable[[Table], object]


def _append(table: Table) -> None:
    with table.writer(options=SMALL, segment_bytes=400) as writer:
        writer.append([record(number) | {"more": 1} for number in range(4 * ROWS, 6 * ROWS)])


def _optimize(table: Table) -> object:
    return table.optimize()


def _delete(table: Table) -> object:
    return table.delete(OneOf("id", tuple(range(0, 4 * ROWS, 5))))


ACTIONS: dict[str, tuple[Action, list[int]]] = {
    "append": (_append, list(range(6 * ROWS))),
    "optimize": (_optimize, list(range(4 * ROWS))),
    "delete": (_delete, [number for number in range(4 * ROWS) if number % 5]),
}


def points_of(action: Action, folder: Path) -> list[str]:
    """The operations that an action does on a table like that of the test."""
    with failing(None) as points:
        action(open_table(shutil.copytree(folder, folder.parent / "counted")))
    return points.names


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "table"
    new_table(path)
    return path


def chosen(names: list[str]) -> list[int]:
    """The first and the last operation of each kind, and some between."""
    places = {name: [i for i, each in enumerate(names) if each == name] for name in set(names)}
    return sorted({place for own in places.values() for place in (own[0], own[-1], own[len(own) // 2])})


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("name", ACTIONS)
def test_a_full_disk_is_a_storage_error_and_costs_nothing(
    name: str, lasting: bool, whole: Path, tmp_path: Path
) -> None:
    action, after = ACTIONS[name]
    names = points_of(action, whole)
    shutil.rmtree(whole.parent / "counted")
    before = list(range(4 * ROWS))
    for at in chosen(names):
        path = shutil.copytree(whole, tmp_path / str(at))
        table = open_table(path)
        known = files_of(table)
        where = f"{name}: {names[at]} ({at})"
        is_committed = names[at] == "return from the commit"
        try:
            with failing(at, disk_full, lasting=lasting):
                action(table)
        except StorageError as error:
            assert "space" in str(error), where  # noqa: PT017
        except Exception as error:
            pytest.fail(f"{where}: {type(error).__name__} instead of StorageError: {error}")
        else:
            assert is_committed or name == "append", f"{where}: no error"
        assert ids(open_table(path)) in ([after] if is_committed else [before, after]), where
        if ids(open_table(path)) == before and not is_committed:
            segments = {segment.name for segment in open_table(path).snapshot().segments}  # merged before the error
            allowed = known | segments | {f"_coprlake/{segment}.copr" for segment in segments}
            left = {file for file in files_of(table) - allowed if not file.startswith("_coprlake/scratch")}
            assert not left, f"{where}: left behind {left}"
        check_sound(path, after if is_committed else ids(open_table(path)))


@pytest.mark.parametrize("name", ACTIONS)
def test_ctrl_c_at_any_operation_costs_nothing(name: str, whole: Path, tmp_path: Path) -> None:
    action, after = ACTIONS[name]
    names = points_of(action, whole)
    shutil.rmtree(whole.parent / "counted")
    for at in chosen(names):
        if names[at] == "write to a file":  # an interrupt is seen when Python runs, not inside of a write
            continue
        path = shutil.copytree(whole, tmp_path / str(at))
        with failing(at, interrupt), pytest.raises(KeyboardInterrupt):
            action(open_table(path))
        is_committed = names[at] == "return from the commit"
        found = ids(open_table(path))
        assert found == after if is_committed else found in (list(range(4 * ROWS)), after), names[at]
        check_sound(path, found)


def test_a_writer_goes_on_or_refuses_after_an_error_but_loses_nothing_silently(path: Path) -> None:
    new_table(path, 1)
    with failing(None) as points:
        _two_appends(open_table(path), range(1000, 1000 + 2 * ROWS))
    for at in range(0, len(points.names), 3):
        table = open_table(path)
        before = ids(table)
        start = len(before) + 2000
        accepted: list[int] = []
        writer = table.writer(options=SMALL)
        with failing(at):
            for number in (start, start + ROWS):
                try:
                    writer.append([record(each) for each in range(number, number + ROWS)])
                    accepted += range(number, number + ROWS)
                except CoprlakeError:
                    pass
            try:
                writer.commit()
            except CoprlakeError:
                try:
                    writer.commit()  # the disk has room again
                except CoprlakeError:
                    writer.abandon()
                    accepted = []
        assert ids(open_table(path)) == sorted(before + accepted), points.names[at]
        assert open_table(path).verify(deep=True).is_sound


def _two_appends(table: Table, numbers: range) -> None:
    with table.writer(options=SMALL) as writer:
        for half in (numbers[:ROWS], numbers[ROWS:]):
            writer.append([record(each) for each in half])


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        table = new_table(disk / "table", 1)
        count = ROWS
        for _ in range(100):
            try:
                table.append([record(number) for number in range(count, count + ROWS)])
                count += ROWS
            except StorageError as error:
                assert "space" in str(error)  # noqa: PT017
                break
        else:
            pytest.fail("the disk was never full")
        assert ids(open_table(disk / "table")) == list(range(count))
        assert open_table(disk / "table").verify(deep=True).is_sound
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
