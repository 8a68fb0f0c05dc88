"""Power losses: records what a run does to its files, and opens the table in every state that a loss may leave.

A case is a state: the files of a table and what was acknowledged by then. Equal states count once.
"""

import hashlib
import itertools
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coprlake.errors import CoprlakeError, UsageError
from coprlake.testing.torture.outcome import Budget, Failure, Outcome
from coprlake.testing.torture.power_loss.crash_checks import CrashError, check
from coprlake.testing.torture.power_loss.crash_jobs import LONG_AGO_NS, TABLE
from coprlake.testing.torture.power_loss.crash_model import Crash, Disk, Tree, crashes, everything_lost
from coprlake.testing.torture.power_loss.recording import missing_strace, record


def run(seed: int, seconds: float, folder: Path, cases: int | None = None) -> Outcome:
    """Check crash states until the time is up; see `coprlake.testing.torture`.

    When all states of one recording have been checked, another is made with other random choices. Names and times in
    the files differ from run to run; the lost operations do not.

    Raises:
        UsageError: strace is missing.
    """
    if (problem := missing_strace()) is not None:
        raise UsageError(problem)
    outcome = Outcome()
    budget = Budget(outcome, seconds, cases)
    with scratch_folder(folder) as scratch:
        for own_seed in itertools.count(seed * 1000):
            disks = record_jobs(own_seed, scratch)
            checker = Checker(scratch / "state", outcome, seed)
            for name, crash in shuffled(disks, own_seed):
                if budget.is_spent:
                    return outcome
                checker.check(name, disks[name], crash)
            if budget.is_spent:
                return outcome
    raise AssertionError("unreachable")


class scratch_folder:  # noqa: N801 - used like a function
    """A temporary folder for a block; in memory if possible, since nothing in it has to last."""

    def __init__(self, folder: Path) -> None:
        memory = Path("/dev/shm")
        self._parent = memory if memory.is_dir() else folder

    def __enter__(self) -> Path:
        self._path = Path(tempfile.mkdtemp(prefix="coprlake-crash-", dir=self._parent))
        return self._path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._path, ignore_errors=True)


def record_jobs(seed: int, scratch: Path, names: Sequence[str] = ()) -> dict[str, Disk]:
    """Run jobs, by default all, under strace, and return what each did to its files."""
    root = scratch / f"run-{seed}"
    root.mkdir()
    command = [sys.executable, "-m", "coprlake.testing.torture.power_loss.crash_jobs", str(root), str(seed), *names]
    trace = scratch / "trace"
    try:
        return {name: Disk(operations) for name, operations in record(command, root, trace).items()}
    finally:
        trace.unlink(missing_ok=True)
        shutil.rmtree(root)


def shuffled(disks: dict[str, Disk], seed: int) -> Iterator[tuple[str, Crash]]:
    """All crashes of all jobs, interleaved, so that every job gets its share early on.

    The worst crashes come first: losing everything possible right after an acknowledgement.
    """
    chance = random.Random(seed)
    queues = []
    for name, disk in disks.items():
        lengths = range(disk.first, len(disk.operations) + 1)
        found = [(name, crash) for length in lengths for crash in crashes(disk, length, chance)]
        chance.shuffle(found)
        queues.append([(name, everything_lost(disk, length)) for length in disk.marks] + found)
    for turn in itertools.zip_longest(*queues):
        yield from (each for each in turn if each is not None)


@dataclass
class Checker:
    """Checks states, each once.

    Attributes:
        folder: holds a state while it is checked.
        outcome: the results.
        seed: reported in failures.
        most_failures: the number of failures to shrink; later ones are reported as they are.
    """

    folder: Path
    outcome: Outcome
    seed: int
    most_failures: int = 20
    _seen: set[bytes] = field(default_factory=set)
    _count: int = 0

    def check(self, name: str, disk: Disk, crash: Crash) -> str | None:
        """Check a state unless it was checked before; return what is wrong with it."""
        tree = disk.tree(crash)
        said = disk.said(crash.length)
        sign = _sign(tree, json.dumps(dict(said)))
        if sign in self._seen:
            return None
        self._seen.add(sign)
        self.outcome.count(name)
        problem = self._problem(tree, disk, crash)
        if problem is not None:
            if len(self.outcome.failures) < self.most_failures:
                crash, problem = self._smallest(disk, crash, problem)
            case = f"{name}, {disk.describe(crash)}"
            self.outcome.failures.append(Failure(self.seed, case, problem))
        return problem

    def _smallest(self, disk: Disk, crash: Crash, problem: str) -> tuple[Crash, str]:
        """The same moment with the fewest losses that still show a problem: a single one if that is enough."""
        for alone in crash.alone():
            found = self._problem(disk.tree(alone), disk, alone)
            if found is not None:
                return alone, found
        for lost in list(crash.alone()):
            smaller = crash.without(lost)
            found = self._problem(disk.tree(smaller), disk, smaller)
            if found is not None:
                crash, problem = smaller, found
        return crash, problem

    def _problem(self, tree: Tree, disk: Disk, crash: Crash) -> str | None:
        self._count += 1
        folder = self.folder / str(self._count)  # a new path, so that nothing is cached from another state
        try:
            materialise(tree, folder)
            check(folder / TABLE, disk.said(crash.length), vacuum_first=crash.length % 2 == 0)
        except CrashError as error:
            return str(error)
        except CoprlakeError as error:
            return f"{type(error).__name__}: {error}"
        finally:
            shutil.rmtree(folder)
        return None


def _sign(tree: Tree, said: str) -> bytes:
    found = hashlib.blake2b(said.encode(), digest_size=16)
    for path, content in tree.items():
        found.update(f"\0{path}\0{-1 if content is None else len(content)}\0".encode())
        found.update(content or b"")
    return found.digest()


def materialise(tree: Tree, folder: Path) -> None:
    """Write a state to a new folder, with old files, except in the log, which Delta expires by age."""
    folder.mkdir(parents=True)
    logs = [folder / path for path in tree if path.endswith("_delta_log")]
    for path, content in tree.items():
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)
            if "_delta_log" not in path:
                os.utime(folder / path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    for log in logs:  # so that the table does not suspect a concurrent writer
        os.utime(log, ns=(LONG_AGO_NS, LONG_AGO_NS))
