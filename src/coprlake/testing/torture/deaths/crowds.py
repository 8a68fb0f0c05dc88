"""Two writers, a merge, a deletion and two vacuums at once, each in its own process; some are killed.

Afterwards the table has every acknowledged record once, except deleted ones; all or nothing of each commit that was
started but not acknowledged; and it is sound.
"""

import random
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Final

from coprlake.errors import CoprlakeError
from coprlake.table import create_table, open_table
from coprlake.testing.chosen_faults import ids
from coprlake.testing.torture.deaths.jobs import ID, records
from coprlake.testing.torture.deaths.lives import Ended, Fault, Life, Lives
from coprlake.testing.torture.kills import PARTITIONS, LostError, difference
from coprlake.testing.torture.outcome import Failure, Outcome

ROWS: Final = 30
"""The number of records that each writer commits in total."""
COMMITS: Final = 6
DIVISOR: Final = 5
"""A deletion removes the records whose number this divides."""
CLOCKS: Final = (0, 0, 0, 30 * 24 * 3600, -30 * 24 * 3600)


def run_one(seed: int, folder: Path, lives: Lives, outcome: Outcome) -> None:
    """Run one crowd; it counts as a case, and so does each of its processes that is killed."""
    try:
        killed = _gather(seed, folder, lives)
    except (AssertionError, CoprlakeError, OSError) as error:
        what = f"{type(error).__name__}: {error}"[:3000]
        outcome.failures.append(Failure(seed, f"crowds.replay(FOLDER, {seed})", what))
        killed = 0
    outcome.count("crowd")
    if killed:
        outcome.count("crowd-kill", killed)


def replay(folder: str | Path, seed: int) -> None:
    """Run a crowd again; the timing differs each time.

    Raises:
        AssertionError: it fails again.
    """
    with Lives(Path(folder) / "server") as lives:
        _gather(seed, Path(folder) / "crowd", lives)


def _gather(seed: int, folder: Path, lives: Lives) -> int:
    """Run all processes on one table, kill some, and check; return the number killed."""
    chance = random.Random(seed)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = folder / "table"
    table = create_table(path, schema=ID, partition_by=list(chance.choice(PARTITIONS)))
    table.append(records(0, 12))
    table.append(records(12, 24))
    crowd = _begin(path, chance, lives)
    doomed = [name for name in crowd if chance.random() < 0.3]
    for name in sorted(doomed, key=lambda _: chance.random()):
        time.sleep(chance.uniform(0, 0.15))
        crowd[name].kill()
    ended = {name: life.end() for name, life in crowd.items()}
    for name, end in ended.items():
        _check_end(name, end)
    _check(path, ended)
    return sum(end.was_killed for end in ended.values())


def _begin(path: Path, chance: random.Random, lives: Lives) -> dict[str, Life]:
    where = str(path)

    def clock() -> Fault | None:
        seconds = chance.choice(CLOCKS)
        return Fault(where, clock=seconds, files_follow=chance.random() < 0.5) if lives.has_faults and seconds else None

    crowd = {
        f"writer {number}": lives.begin(
            "append", clock(), path=where, first=100 * number, end=100 * number + ROWS, commits=COMMITS
        )
        for number in (1, 2)
    }
    crowd["optimize"] = lives.begin("optimize", clock(), path=where, full=chance.random() < 0.5)
    crowd["delete"] = lives.begin("delete", clock(), path=where, divisor=DIVISOR, rest=0, end=300)
    for number in (1, 2):
        hours = chance.choice((0, 0, 168))
        crowd[f"vacuum {number}"] = lives.begin("vacuum", clock(), path=where, hours=hours)
        time.sleep(chance.uniform(0, 0.1))
    return crowd


def _check_end(name: str, end: Ended) -> None:
    if end.hung:
        raise LostError(f"{name} did not end")
    if end.code < 0 and not end.was_killed:
        raise LostError(f"{name} died with {end.code}: {end.told}")
    error = end.last("error")
    if error and not error["clear"]:
        raise LostError(f"{name}: not an error of ours: {error['type']}: {error['text']}\n{error['trace']}")


def _check(path: Path, ended: dict[str, Ended]) -> None:
    """Compare the table with what was acknowledged to each process."""
    surely, perhaps = set(range(24)), set(range(24))
    for name in ("writer 1", "writer 2"):
        done, begun = ended[name].all_of("done"), ended[name].all_of("begin")
        surely |= {number for effect in done for number in range(*effect[1:])}
        perhaps |= {number for effect in begun for number in range(*effect[1:])}
        waiting = [effect for effect in begun if effect not in done]
        if len(waiting) > 1:
            raise LostError(f"{name} began {waiting} at once")
    deletion = ended["delete"]
    present = Counter(ids(open_table(path)))
    doubled = [number for number, count in present.items() if count > 1]
    if doubled:
        raise LostError(f"{len(doubled)} records doubled: {doubled[:10]}")
    strange = present.keys() - perhaps
    if strange:
        raise LostError(f"{len(strange)} records that were never written: {sorted(strange)[:10]}")
    lost = surely - present.keys()
    wrongly = {number for number in lost if number % DIVISOR}
    if wrongly or (lost and not deletion.all_of("begin")):
        raise LostError(f"{len(lost)} acknowledged records lost: {sorted(wrongly or lost)[:10]}")
    still = {number for number in present if number % DIVISOR == 0 and number < 24}
    if deletion.all_of("done") and still:
        raise LostError(f"deleted records are there: {sorted(still)}")
    if still and len(still) != len(range(0, 24, DIVISOR)):
        raise LostError(f"half a deletion: {sorted(still)} are left")
    for name in ("writer 1", "writer 2"):
        for effect in ended[name].all_of("begin"):
            there = {number for number in range(*effect[1:]) if number % DIVISOR} & present.keys()
            if there and len(there) != len([number for number in range(*effect[1:]) if number % DIVISOR]):
                raise LostError(f"half a commit: {effect}, {sorted(there)}")
    check_holds(path, present)
    open_table(path).append(records(500, 502))
    check_holds(path, present + Counter((500, 501)))


def check_holds(path: Path, expected: Counter[int]) -> None:
    """Check that the table has these records and is sound, before and after a vacuum; it may keep future files.

    Raises:
        LostError: it does not, or is not.
    """
    for _ in range(2):
        present = Counter(ids(open_table(path)))
        if present != expected:
            raise LostError(difference(present, [expected]))
        report = open_table(path).verify(deep=True)
        if not report.is_sound:
            raise LostError(f"not sound: {report}")
        open_table(path).vacuum(retention_hours=0)
