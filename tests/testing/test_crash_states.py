"""A power loss at any moment: what was acknowledged is there, once, and the table goes on."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from coprlake.testing.torture.crash_states import Checker, record_jobs, scratch_folder, shuffled
from coprlake.testing.torture.outcome import Outcome
from coprlake.testing.torture.power_loss.crash_checks import SOUND
from coprlake.testing.torture.power_loss.crash_jobs import TABLE
from coprlake.testing.torture.power_loss.crash_model import (
    Crash,
    DataChange,
    Disk,
    Loss,
    Mark,
    NameChange,
    Operation,
    Sync,
    crashes,
)
from coprlake.testing.torture.power_loss.omissions import Omission, omissions
from coprlake.testing.torture.power_loss.recording import missing_strace, parse

pytestmark = pytest.mark.slow

SEED = 13
STATES = 250
HARMLESS = "_last_checkpoint"
"""What may be lost after an acknowledgement: every reader finds the newest checkpoint without the pointer to it."""

without_strace = pytest.mark.skipif(missing_strace() is not None, reason=str(missing_strace()))


# --- the model ---

FILE, FOLDER = 2, 1
OPERATIONS: list[Operation] = [
    NameChange("mkdir a", FOLDER, None, (0, "a"), is_folder=True),
    NameChange("create a/x", FILE, None, (FOLDER, "x")),
    DataChange("write a/x", FILE, 0, b"0123456789"),
    Sync("sync a/x", FILE, 3),
    NameChange("rename a/x to a/y", FILE, (FOLDER, "x"), (FOLDER, "y")),
    Sync("sync a", FOLDER, 5),
    Sync("sync .", 0, 6),
    NameChange("remove a/y", FILE, (FOLDER, "y")),
]


def trees(length: int) -> list[dict[str, bytes | None]]:
    disk = Disk(OPERATIONS)
    found = [disk.tree(crash) for crash in crashes(disk, length, random.Random(1), mixtures=50)]
    return [tree for number, tree in enumerate(found) if tree not in found[:number]]


def test_nothing_is_durable_before_it_is_synced() -> None:
    assert trees(1) == [{"a": None}, {}]
    assert {} in trees(5), "syncing a file says nothing of its name"
    assert {"a": None, "a/x": b""} in trees(3)
    assert {"a": None, "a/x": b"0123456789"} in trees(3)
    assert any(tree.get("a/x") == bytes(10) for tree in trees(3)), "the size is there, the bytes are not"
    assert all(len(tree.get("a/x") or b"") <= 10 for tree in trees(3))


def test_a_synced_file_has_its_bytes_wherever_it_has_a_name() -> None:
    for tree in trees(5):
        assert tree in ({}, {"a": None}, {"a": None, "a/x": b"0123456789"}, {"a": None, "a/y": b"0123456789"})


def test_a_synced_folder_keeps_its_names() -> None:
    assert trees(7) == [{"a": None, "a/y": b"0123456789"}]
    assert trees(8) == [{"a": None}, {"a": None, "a/y": b"0123456789"}], "what was removed may come back"


def test_a_part_of_the_bytes_may_be_there() -> None:
    disk = Disk(OPERATIONS)

    def content(loss: Loss) -> bytes | None:
        return disk.tree(Crash(3, data=((FILE, loss),)))["a/x"]

    assert content(Loss("part", 4)) == b"0123"
    assert content(Loss("zeros", 4)) == b"0123" + bytes(6)
    assert content(Loss("hole", 2, 5)) == b"01" + bytes(3) + b"56789"
    assert content(Loss("none")) == b""


def test_a_sync_covers_only_what_had_ended_when_it_began() -> None:
    operations: list[Operation] = [*OPERATIONS[:3], Sync("sync a/x", FILE, 2)]
    assert Disk(operations).pending(4) == ([0, 1], {FILE: 10})


def test_a_sync_that_is_left_out_is_needed_unless_another_makes_up_for_it() -> None:
    twice: list[Operation] = [*OPERATIONS[:7], Sync("sync a again", FOLDER, 7), Mark({"may": []})]
    needed = {omission.text: omission.is_needed for omission in omissions(Disk(twice))}
    assert needed == {"sync a/x": True, "sync a": False, "sync .": True, "sync a again": False}


def test_calls_of_several_threads_are_put_together(tmp_path: Path) -> None:
    def text(path: str) -> str:
        return "".join(f"\\x{byte:02x}" for byte in path.encode())

    root, name = text(str(tmp_path)), text(f"{tmp_path}/job/x")
    lines = [
        "7 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88) = 8",
        f'7 mkdir("{text(f"{tmp_path}/job")}", 0777) = 0',
        f'8 openat(AT_FDCWD<{root}>, "{name}", O_WRONLY|O_CREAT, 0666 <unfinished ...>',
        f'7 mkdir("{text(f"{tmp_path}/job")}", 0777) = -1 EEXIST (File exists)',
        f"8 <... openat resumed>) = 5<{name}>",
        f'7 write(5<{name}>, "{text("hello")}", 5) = 5',
        f"8 fsync(5<{name}> <unfinished ...>",
        f'7 write(5<{name}>, "{text("!?")}", 2) = 1',
        "8 <... fsync resumed>) = 0",
    ]
    operations = parse(lines, tmp_path)["job"]
    assert operations == [
        NameChange("create x", 1, None, (0, "x")),
        DataChange("write x", 1, 0, b"hello!"),
        Sync("sync x", 1, 1),
    ]


# --- tables ---


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with scratch_folder(tmp_path_factory.mktemp("crash")) as folder:
        yield folder


@pytest.fixture(scope="module")
def disks(scratch: Path) -> dict[str, Disk]:
    return record_jobs(SEED, scratch)


@without_strace
def test_a_power_loss_costs_nothing_that_was_acknowledged(disks: dict[str, Disk], scratch: Path) -> None:
    checker = Checker(scratch / "states", Outcome(), SEED)
    for name, crash in shuffled(disks, SEED):
        checker.check(name, disks[name], crash)
        if checker.outcome.cases >= STATES:
            break
    assert not checker.outcome.failures, "\n".join(map(str, checker.outcome.failures))
    assert set(checker.outcome.counts) == set(disks)


KINDS = {
    "create": {"commit", "names", "data", "sidecar"},
    "append": {"commit", "names", "data", "sidecar", "checkpoint"},
    "add_columns": {"commit", "names", "data", "sidecar", "checkpoint"},
    "optimize": {"commit", "names", "data", "sidecar", "checkpoint"},
    "delete": {"commit", "names", "data", "sidecar", "checkpoint"},
    "vacuum": {"commit", "names", "data", "sidecar", "checkpoint"},
    "index": {"names", "sidecar"},
    "index_folder": {"names", "sidecar"},
    "stream": {"commit", "names", "data", "sidecar", "checkpoint"},
}


@without_strace
@pytest.mark.parametrize("job", KINDS)
def test_removing_a_sync_is_noticed(disks: dict[str, Disk], scratch: Path, job: str) -> None:
    noticed = []
    for number, omission in enumerate(omissions(disks[job])):
        if not omission.is_needed or all(HARMLESS in text for text in omission.covered):
            continue
        problem = problem_of(omission, scratch / f"{job}-{number}", job)
        assert problem is not None, f"{omission.text}: {omission.covered}"
        kind = kind_of(omission.text)
        noticed.append(kind)
        assert kind == "names" or SOUND not in problem, "what was lost without a trace cannot be seen; all else can"
    assert set(noticed) == KINDS[job]


def kind_of(text: str) -> str:
    """What a sync is about."""
    name = text.removeprefix("sync ").replace(TABLE, "").removeprefix("/")
    if "checkpoint" in name:
        return "checkpoint"
    if name.endswith(".tmp"):
        return "commit"
    if name.endswith(".unfinished"):
        return "sidecar"
    return "data" if name.endswith(".parquet") else "names"


def problem_of(omission: Omission, folder: Path, job: str) -> str | None:
    checker = Checker(folder, Outcome(), SEED, most_failures=0)
    problems = (checker.check(job, omission.disk, crash) for crash in omission.crashes)
    return next((problem for problem in problems if problem is not None), None)
