"""Kills everything that writes at seeded moments: acknowledged records are there once, the rest all or not at all.

A round is a new table and some steps. A step is one command in its own process, killed after some time or at its n-th
file operation, including those of native code. After each step, the table must hold what was acknowledged to the dead
process, and all or nothing of what it was about to do; verify finds it sound; a vacuum without retention removes
nothing that is needed; and the next append works.
"""

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from coprlake.errors import CoprlakeError, NotFoundError
from coprlake.records import DAY
from coprlake.table import create_table, open_table
from coprlake.testing.chosen_faults import check_sound, ids, record
from coprlake.testing.torture.deaths.jobs import ID, applied, records
from coprlake.testing.torture.deaths.lives import ANY, DEADLY, WRITING, Ended, Fault, Lives
from coprlake.testing.torture.outcome import ENOUGH, Budget, Failure, Outcome

PARTITIONS: Final[tuple[tuple[str, ...], ...]] = ((DAY,), (), ("source",), (DAY, "source"))
KINDS: Final = (
    *("append", "append-columns", "append-commits", "ingest", "stream-batch", "optimize", "optimize-full"),
    *("delete", "vacuum", "index", "create"),
)
COMMITTING: Final = ("append", "append-columns", "append-commits", "stream-batch", "delete")
"""Commands that report when they are about to commit."""
ROUND_STEPS: Final = 14
SPARK_SECONDS: Final = 120.0
"""With at least this much time, Spark's processes are killed as well."""
SPARK_SHARE: Final = 0.45


@dataclass(frozen=True)
class Step:
    """One command and the moment of its death.

    Attributes:
        kind: one of `KINDS`.
        chance: the seed for what the command does.
        share: the moment as a share of the whole command, 0 to 1; a little more to let it finish.
        by_operation: whether that is a share of its file operations; otherwise of its time.
        kinds: the operations to count.
        in_commit: start counting when the command is about to commit.
        at: the operation, if known from an earlier run of the step.
        seconds: the time, if known.
    """

    kind: str
    chance: int
    share: float
    by_operation: bool
    kinds: int = ANY
    in_commit: bool = False
    at: int | None = None
    seconds: float | None = None

    @property
    def key(self) -> tuple[str, int, bool]:
        """What its number of operations depends on."""
        return self.kind, self.kinds, self.in_commit


@dataclass
class Measures:
    """The duration and the number of operations of each command, learnt from those that finish."""

    seconds: dict[str, float] = field(default_factory=dict)
    counts: dict[tuple[str, int, bool], float] = field(default_factory=dict)

    def knows(self, step: Step) -> bool:
        """Whether a command of this kind has finished before; until then its middle is not known."""
        return step.key in self.counts if step.by_operation else step.kind in self.seconds

    def learn(self, step: Step, seconds: float, count: int | None) -> None:
        """Record a command that finished."""
        self.seconds[step.kind] = 0.5 * (self.seconds.get(step.kind, seconds) + seconds)
        if count is not None:
            self.counts[step.key] = 0.5 * (self.counts.get(step.key, count) + count)


class LostError(AssertionError):
    """A record is missing, duplicated or was never written, or something else is wrong."""


class Victim:
    """A table and the records that must be in it.

    Args:
        path: the path of the new table.
        partition_by: its partition columns.
        lives: runs the commands.
        measures: the measures of commands.
        chance: decides what is checked.
    """

    def __init__(
        self, path: Path, partition_by: Sequence[str], lives: Lives, measures: Measures, chance: random.Random
    ) -> None:
        self._path, self._partition_by = path, list(partition_by)
        self._lives, self._measures = lives, measures
        self._chance = chance
        self._ids: Counter[int] = Counter()
        self._next = 0
        self._batch = 0
        create_table(path, schema=ID, partition_by=self._partition_by)
        self._append(12)
        self._append(2)

    def suffer(self, step: Step) -> tuple[Step, bool]:
        """Run a step and check the table; return the step with its moment, and whether the process was killed.

        Raises:
            LostError: the table is not what it should be.
        """
        job, arguments = self._order(step)
        before = self._next
        fault, seconds = self._moment(step)
        step = replace(step, at=fault.at if fault else None, seconds=seconds)
        begun = time.monotonic()
        ended = self._lives.run(job, fault, seconds, **arguments)
        if ended.hung:
            raise LostError("the command did not end")
        if not ended.was_killed:
            if error := ended.last("error"):
                raise LostError(f"the command failed instead of being killed: {error}")
            if ended.code != 0 or ended.last("code"):
                raise LostError(f"the command ended with {ended.code}: {ended.told}")
            self._measures.learn(step, time.monotonic() - begun, ended.last("count"))
        self._settle(step, ended, before)
        if step.kind in ("ingest", "stream-batch") and ended.was_killed:
            self._repeat(step, job, arguments)
        self._check(step)
        return step, ended.was_killed

    def _order(self, step: Step) -> tuple[str, dict[str, Any]]:
        """The job of a step, and its arguments."""
        chance = random.Random(step.chance)
        path = str(self._path)
        first = self._next
        span = {"first": first, "end": first + chance.choice((3, 12, 40))}
        if step.kind.startswith("append"):
            more = {"columns": step.kind == "append-columns", "commits": 3 if step.kind == "append-commits" else 1}
            return "append", {"path": path, **span, **more}
        if step.kind == "stream-batch":
            self._batch += 1
            return "stream_batch", {"path": path, "number": self._batch, **span}
        if step.kind == "ingest":
            file = self._path.with_name(f"{self._path.name}-{first}.ndjson")
            file.write_text("".join(json.dumps(record(number)) + "\n" for number in range(span["first"], span["end"])))
            command = ["ingest", str(file), "--into", path, "--engine", "local"]
            return "program", {"arguments": command, "effect": ["add", span["first"], span["end"]]}
        if step.kind == "delete":
            divisor = chance.choice((2, 3, 5))
            return "delete", {"path": path, "divisor": divisor, "rest": chance.randrange(divisor), "end": first}
        if step.kind.startswith("optimize"):
            return "optimize", {"path": path, "full": step.kind == "optimize-full"}
        if step.kind == "create":
            other = self._path.with_name(f"{self._path.name}-new")
            shutil.rmtree(other, ignore_errors=True)
            return "create", {"path": str(other), "partition_by": self._partition_by}
        return step.kind, {"path": path}

    def _moment(self, step: Step) -> tuple[Fault | None, float | None]:
        """The fault that kills the process, or the seconds after which it is killed; neither to let it finish."""
        folder = str(self._path.parent)
        is_known = self._measures.knows(step)
        if step.by_operation and self._lives.has_faults:
            at = step.at
            if at is None:
                at = int(step.share * self._measures.counts[step.key]) if is_known else -1
            return Fault(folder, at, step.kinds, how=DEADLY, delayed=step.in_commit), None
        if step.seconds is not None or not is_known:
            return None, step.seconds
        return None, step.share * self._measures.seconds[step.kind]

    def _settle(self, step: Step, ended: Ended, first: int) -> None:
        """Find out which of the allowed states the table is in."""
        if step.kind == "create":
            self._check_created()
            return
        done, begun = ended.all_of("done"), ended.all_of("begin")
        sure = self._ids
        for effect in done:
            sure = applied(effect, sure)
        allowed = [sure]
        if len(begun) > len(done) and not ended.last("was_done"):
            allowed.append(applied(begun[-1], sure))
        self._next = max([first, *(effect[2] for effect in begun if effect[0] == "add")])
        present = Counter(ids(open_table(self._path)))
        if present not in allowed:
            raise LostError(difference(present, allowed))
        self._ids = present

    def _check_created(self) -> None:
        """Check that a table whose creation was interrupted exists, or can be created."""
        other = self._path.with_name(f"{self._path.name}-new")
        try:
            table = open_table(other)
            if ids(table) != []:
                raise LostError("a new table has records")
        except NotFoundError:
            pass
        except CoprlakeError as error:
            raise LostError(f"what is left of a table that was never made cannot be opened: {error}") from error
        table = create_table(other, schema=ID, partition_by=self._partition_by, exist_ok=True)
        table.append(records(0, 3))
        check_sound(other, [0, 1, 2])

    def _repeat(self, step: Step, job: str, arguments: dict[str, Any]) -> None:
        """Repeat a batch of a stream, or an ingest that left nothing; afterwards all of it must be there once."""
        first, end = (arguments["effect"][1:]) if step.kind == "ingest" else (arguments["first"], arguments["end"])
        self._next = max(self._next, end)
        was_there = first in self._ids
        if was_there and step.kind == "ingest":
            return
        ended = self._lives.run(job, **arguments)
        if ended.code or ended.last("code"):
            raise LostError(f"the command could not be repeated: {ended.told}")
        if not was_there:
            self._ids = applied(["add", first, end], self._ids)
        present = Counter(ids(open_table(self._path)))
        if present != self._ids:
            raise LostError(f"repeated: {difference(present, [self._ids])}")

    def _check(self, step: Step) -> None:
        """Check that the table is sound, sometimes also after a vacuum, and that the next append works."""
        table = open_table(self._path)
        if self._chance.random() < 0.3:
            check_sound(self._path, sorted(self._ids.elements()))
        else:  # keep what the dead process left
            report = table.verify()
            if not report.is_sound or report.rows != self._ids.total():
                raise LostError(f"not sound: {report}")
        self._append(1)
        if Counter(ids(table)) != self._ids:  # with the object that was opened before
            raise LostError(f"after the next append: {difference(Counter(ids(table)), [self._ids])}")
        if self._chance.random() < 0.05:
            total = open_table(self._path).query("fetch logs | summarize n = count()").arrow().column("n")[0].as_py()
            if total != self._ids.total():
                raise LostError(f"a query counts {total} records of {self._ids.total()}")

    def _append(self, count: int) -> None:
        """Append records undisturbed."""
        open_table(self._path).append(records(self._next, self._next + count))
        self._ids = applied(["add", self._next, self._next + count], self._ids)
        self._next += count


def difference(present: Counter[int], allowed: Sequence[Counter[int]]) -> str:
    """The records that are lost or too many, compared with the nearest allowed state."""
    nearest = min(allowed, key=lambda state: (state - present).total() + (present - state).total())
    lost, more = sorted((nearest - present).elements()), sorted((present - nearest).elements())
    return f"{len(lost)} records lost {lost[:10]}, {len(more)} too many {more[:10]}"


# --- rounds ---


def drawn_steps(chance: random.Random, kinds: Sequence[str] = KINDS) -> list[Step]:
    """The steps of a round: random commands and moments."""
    steps = []
    for _ in range(ROUND_STEPS):
        kind = chance.choice(kinds)
        by_operation = chance.random() < 0.75
        operations, in_commit = chance.choice(((ANY, False), (WRITING, False), (ANY, True), (ANY, True)))
        in_commit = in_commit and by_operation and kind in COMMITTING
        share = chance.uniform(0, 1.02)
        steps.append(Step(kind, chance.randrange(1 << 30), share, by_operation, operations, in_commit))
    return steps


def replay(
    folder: str | Path, partition_by: Sequence[str], steps: Sequence[dict[str, Any]], *, setup: str = ""
) -> None:
    """Rerun the steps of a failure; `setup` as in `run`.

    Raises:
        AssertionError: it fails again.
    """
    with Lives(Path(folder) / "server", setup=setup) as lives:
        _suffer_all(Path(folder), lives, Measures(), partition_by, [Step(**step) for step in steps])


def _suffer_all(
    folder: Path, lives: Lives, measures: Measures, partition_by: Sequence[str], steps: Sequence[Step]
) -> None:
    shutil.rmtree(folder / "round", ignore_errors=True)
    (folder / "round").mkdir(parents=True)
    victim = Victim(folder / "round" / "table", partition_by, lives, measures, random.Random(0))
    for step in steps:
        victim.suffer(step)


def _smallest(
    folder: Path, lives: Lives, measures: Measures, partition_by: Sequence[str], steps: list[Step]
) -> list[Step]:
    """The last step or the last two if these fail alone, otherwise all steps."""
    for fewer in (steps[-1:], steps[-2:]):
        try:
            _suffer_all(folder, lives, measures, partition_by, fewer)
        except (AssertionError, CoprlakeError):
            return fewer
    return steps


def _run_round(number: int, seed: int, folder: Path, lives: Lives, measures: Measures, tally: "_Tally") -> None:
    chance = random.Random(f"{seed} {number}")
    partition_by = chance.choice(PARTITIONS)
    steps = drawn_steps(chance, tally.kinds)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    taken: list[Step] = []
    try:
        victim = Victim(folder / "table", partition_by, lives, measures, chance)
        for step in steps:
            if tally.budget.is_spent:
                return
            taken.append(step)
            taken[-1], was_killed = victim.suffer(step)
            if was_killed:
                tally.outcome.count(step.kind)
    except (AssertionError, CoprlakeError, OSError) as error:
        tally.outcome.count(taken[-1].kind if taken else "setup")
        smallest = _smallest(folder / "again", lives, measures, partition_by, taken)
        case = f"kills.replay(FOLDER, {list(partition_by)}, {[asdict(step) for step in smallest]})"
        what = f"{type(error).__name__}: {error}"[:2000]
        tally.outcome.failures.append(Failure(seed, case, what))


@dataclass
class _Tally:
    outcome: Outcome
    budget: Budget
    kinds: Sequence[str] = KINDS


def run(
    seed: int,
    seconds: float,
    folder: str | Path,
    cases: int | None = None,
    *,
    setup: str = "",
    enough: int = ENOUGH,
    kinds: Sequence[str] = KINDS,
    spark: bool | None = None,
) -> Outcome:
    """Kill until the time is up; a case is a process that was killed.

    Args:
        seed: the random seed.
        seconds: the time limit.
        folder: the working folder.
        cases: the maximum number of cases.
        setup: Python code that breaks the product in the processes that are killed, to see that this is noticed.
        enough: the number of failures to stop after.
        kinds: the commands to kill, of `KINDS`.
        spark: whether to kill Spark's processes as well; by default if there is time and `cases` is not given.
    """
    folder = Path(folder)
    outcome = Outcome()
    budget = Budget(outcome, seconds, cases)
    has_spark = spark if spark is not None else cases is None and seconds >= SPARK_SECONDS
    if has_spark:
        from coprlake.testing.torture.deaths.spark_kills import run as run_spark

        other = run_spark(seed, seconds * SPARK_SHARE, folder / "spark")
        outcome.failures += other.failures
        for kind, count in other.counts.items():
            outcome.count(kind, count)
    measures = Measures()
    with Lives(folder / "server", setup=setup) as lives:
        number = 0
        while not budget.is_spent and len(outcome.failures) < enough:
            _run_round(number, seed, folder / "round", lives, measures, _Tally(outcome, budget, kinds))
            number += 1
    shutil.rmtree(folder / "round", ignore_errors=True)
    return outcome
