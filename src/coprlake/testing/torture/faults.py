"""Full disks, broken disks, missing permissions, jumping clocks and crowds: nothing is lost, and errors are clear.

A case is one command on a copy of a small table, in its own process, in which one file operation of Python, delta-rs,
Arrow or DuckDB fails. It does not depend on earlier cases, so a failure is its own smallest case.
"""

import errno
import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from coprlake.errors import CoprlakeError, NotFoundError
from coprlake.records import DAY
from coprlake.table import create_table, open_table
from coprlake.testing.chosen_faults import check_sound, ids, record
from coprlake.testing.torture.deaths import crowds
from coprlake.testing.torture.deaths.jobs import ID, Effect, applied, records
from coprlake.testing.torture.deaths.lives import (
    ANY,
    LASTING,
    LATE,
    LINK,
    READING,
    RENAME,
    SYNC,
    TORN,
    UNLINK,
    WRITING,
    Ended,
    Fault,
    Lives,
)
from coprlake.testing.torture.kills import LostError, difference
from coprlake.testing.torture.outcome import ENOUGH, Budget, Failure, Outcome

ERRORS: Final = (errno.ENOSPC, errno.EIO, errno.EACCES)
HOURS: Final = 3600
JUMPS: Final = (-400 * 24 * HOURS, -25 * HOURS, -HOURS, HOURS, 25 * HOURS, 400 * 24 * HOURS)
WRITERS: Final = (
    *("append", "append-columns", "ingest", "stream-batch", "optimize", "delete", "vacuum", "index", "create"),
    "stubborn",
)
READERS: Final = ("search", "scan", "search-strict", "query", "verify", "program-search", "program-query")
RECORDS: Final = 36
UNCERTAIN: Final = "is in the log"
"""Part of the error after which the records may be in the table, so that adding them again could duplicate them."""
CUT_SHORT: Final = "everything before that place was read"
"""Part of the warning for a log file that cannot be read to its end."""
CROWD_EVERY: Final = 40
"""A crowd takes as long as this many other cases."""


@dataclass(frozen=True)
class Case:
    """A command and its fault; a run without the fault counts the operations.

    Attributes:
        kind: one of `WRITERS` or `READERS`.
        is_partitioned: whether the table is partitioned.
        fault: what fails, or how the clock is wrong; its folder, or file, is one in the folder of the case.
        share: the position of the fault among all operations, 0 to 1, unless `fault.at` is set.
    """

    kind: str
    is_partitioned: bool
    fault: Fault
    share: float

    @property
    def is_about_time(self) -> bool:
        """Whether only the clock is wrong."""
        return bool(self.fault.clock or self.fault.jump)


def drawn(chance: random.Random) -> Case:
    """A random case."""
    share = chance.random()
    is_partitioned = chance.random() < 0.5
    if chance.random() < 0.15:
        clock, jump, at = chance.choice((0, *JUMPS)), chance.choice(JUMPS), chance.randrange(100)
        fault = Fault("", clock=clock, jump=jump, jump_at=at, files_follow=chance.random() < 0.5)
        return Case(chance.choice((*WRITERS[:-1], "search", "query")), is_partitioned, fault, share)
    if chance.random() < 0.3:
        fault = Fault(
            "", kinds=READING, error=chance.choice((errno.EIO, errno.EACCES)), how=chance.choice((0, LASTING))
        )
        return Case(chance.choice(READERS), is_partitioned, fault, share)
    kinds = chance.choice((ANY, WRITING, WRITING, READING))
    how = chance.choice((0, LASTING, LASTING | TORN))
    if chance.random() < 0.2:
        kinds, how = LINK | RENAME | SYNC | UNLINK, LATE
    kind = chance.choice(WRITERS)
    fault = Fault("", kinds=kinds, error=chance.choice(ERRORS), how=how, delayed=kind == "stubborn")
    return Case(kind, is_partitioned, fault, share)


class Bench:
    """Runs cases, each on a copy of a table.

    Args:
        folder: the working folder.
        lives: runs the commands.
    """

    def __init__(self, folder: Path, lives: Lives) -> None:
        self._folder, self._lives = folder, lives
        self._counts: dict[tuple[str, bool, int], int] = {}
        self._number = 0
        for is_partitioned in (False, True):
            path = self._template(is_partitioned)
            shutil.rmtree(path, ignore_errors=True)
            table = create_table(path, schema=ID, partition_by=[DAY] if is_partitioned else None)
            for first in range(0, RECORDS, 12):
                table.append(records(first, first + 12))
            table.delete(until="2024-06-01T00:00:02Z", since="2024-06-01T00:00:00Z")  # so that vacuum has work
            table.append(records(0, 1))
        self._before = Counter(ids(open_table(self._template(False))))

    def run(self, case: Case) -> Case | None:
        """Run a case and check the table; return the case with its operation, or None if nothing failed in it.

        Raises:
            LostError: something is wrong.
        """
        case = replace(case, fault=self._aimed(case))
        path = self._copied(case)
        try:
            ended = self._lived(case, path)
            if ended.hung:
                raise LostError("the command did not end")
            if ended.code < 0:
                raise LostError(f"the process died with {ended.code}: {ended.told}")
            fired = str(ended.last("fired") or "")
            self._check_errors(case, ended)
            if case.kind in READERS:
                self._check_answer(case, ended, fired)
            elif case.kind == "create":
                self._check_created(path)
            else:
                self._check_written(case, ended, path)
        finally:
            shutil.rmtree(path.parent, ignore_errors=True)
        return case if fired or case.is_about_time else None

    def _template(self, is_partitioned: bool) -> Path:
        return self._folder / ("partitioned" if is_partitioned else "plain")

    def _copied(self, case: Case) -> Path:
        self._number += 1
        path = self._folder / f"case-{self._number}" / "table"
        return Path(shutil.copytree(self._template(case.is_partitioned), path))

    def _lived(self, case: Case, path: Path) -> Ended:
        job, arguments = self._job(case, path)
        return self._lives.run(job, replace(case.fault, folder=str(path.parent / case.fault.folder)), **arguments)

    def _job(self, case: Case, path: Path) -> tuple[str, dict[str, Any]]:
        where = {"path": str(path)}
        span = {"first": 100, "end": 130}
        if case.kind.startswith("append"):
            return "append", {**where, **span, "columns": case.kind == "append-columns"}
        if case.kind == "ingest":
            file = path.with_name("logs.ndjson")
            file.write_text("".join(json.dumps(record(number)) + "\n" for number in range(100, 130)))
            arguments = ["ingest", str(file), "--into", str(path), "--engine", "local"]
            return "program", {"arguments": arguments, "effect": ["add", 100, 130]}
        others: dict[str, tuple[str, dict[str, Any]]] = {
            "stream-batch": ("stream_batch", {**where, **span, "number": 5}),
            "delete": ("delete", {**where, "divisor": 3, "rest": 1, "end": RECORDS}),
            "stubborn": ("stubborn", {**where, **span, "later": [200, 203]}),
            "create": ("create", {"path": str(path.with_name("new")), "partition_by": []}),
            "vacuum": ("vacuum", {**where, "hours": 168 if case.is_about_time else 0}),
            "search": ("search", where),
            "scan": ("search", {**where, "use_sketches": False}),
            "search-strict": ("search", {**where, "strict": True}),
            "program-search": ("program", {"arguments": ["search", "record", str(path), "--json"]}),
            "program-query": ("program", {"arguments": ["query", "fetch logs | fields id", str(path), "-o", "json"]}),
        }
        return others.get(case.kind, (case.kind, where))

    def _aimed(self, case: Case) -> Fault:
        """The fault with the number of its operation."""
        if case.fault.at >= 0 or case.is_about_time:
            return case.fault
        key = (case.kind, case.is_partitioned, case.fault.kinds)
        if key not in self._counts:
            counting = replace(case, fault=replace(case.fault, at=-1, error=0, how=0))
            path = self._copied(case)
            ended = self._lived(counting, path)
            shutil.rmtree(path.parent)
            if ended.code or ended.last("code"):
                raise LostError(f"without a fault: {ended.told}")
            self._counts[key] = int(ended.last("count") or 1)
        return replace(case.fault, at=int(case.share * self._counts[key]))

    # --- checks ---

    def _check_errors(self, case: Case, ended: Ended) -> None:
        """Check that every error is one clear line."""
        told = [*ended.all_of("error"), *ended.all_of("failed"), *ended.all_of("failed_again")]
        for error in told:
            if not error["clear"]:
                raise LostError(f"not an error of ours: {error['type']}: {error['text']}\n{error['trace']}")
            if "panic" in error["text"].lower() or not error["text"] or "\n" in error["text"].strip():
                raise LostError(f"not a clear error: {error['text']!r}")
        code, text = ended.last("code"), ended.last("errors") or ""
        if code is not None:
            if "Traceback" in text or "panicked" in text or code not in (0, 1, 2):
                raise LostError(f"the program ended with {code} and printed: {text}")
            if code == 2 and not text.strip():
                raise LostError("the program failed without a word")
        if case.is_about_time and (told or code):
            raise LostError(f"it fails when the clock is wrong: {told} {text}")

    def _check_answer(self, case: Case, ended: Ended, fired: str) -> None:
        """Check that all records were found, or that the answer says what is missing."""
        problems = ended.last("problems")
        if case.kind == "verify":
            if problems == [] and ended.last("rows") != self._before.total():
                raise LostError(f"verify finds {ended.last('rows')} of {self._before.total()} records and no problem")
            return
        if case.kind.startswith("program"):
            self._check_printed(case, ended)
            return
        found = ended.last("ids")
        if found is None or Counter(found) == self._before:
            return
        if not problems or Counter(found) - self._before:
            raise LostError(f"{difference(Counter(found), [self._before])} and no word of it; failed: {fired}")

    def _check_printed(self, case: Case, ended: Ended) -> None:
        code, output, errors = ended.last("code"), ended.last("output") or "", ended.last("errors") or ""
        if code == 2:
            return
        rows = len([line for line in output.splitlines() if '"id"' in line or "record" in line])
        if rows < self._before.total() and not errors.strip():
            raise LostError(f"the program printed {rows} of {self._before.total()} records and no word about it")

    def _check_created(self, path: Path) -> None:
        new = path.with_name("new")
        try:
            if ids(open_table(new)) != []:
                raise LostError("a new table has records")
        except NotFoundError:
            pass
        except CoprlakeError as error:
            raise LostError(f"what is left of a table that was never made cannot be opened: {error}") from error
        create_table(new, schema=ID, partition_by=[], exist_ok=True).append(records(0, 2))
        check_sound(new, [0, 1])

    def _check_written(self, case: Case, ended: Ended, path: Path) -> None:
        """Check that acknowledged records are there once, failed ones all or none, and that the next append works."""
        done, begun = ended.all_of("done"), ended.all_of("begin")
        kept = _kept_in_part(ended) if case.kind == "ingest" else None
        sure = self._before
        for effect in done if kept is None else [kept]:
            sure = applied(effect, sure)
        allowed = [sure]
        open_effects = [effect for effect in begun if effect not in done]
        if open_effects and kept is None:
            allowed.append(applied(open_effects[-1], sure))
        present = Counter(ids(open_table(path)))
        if present not in allowed:
            raise LostError(f"{difference(present, allowed)}; told: {ended.told}")
        if case.kind == "stream-batch":
            present = self._repeated(case, path)
        elif present != sure:
            texts = [error["text"] for key in ("error", "failed_again") for error in ended.all_of(key)]
            texts += ended.all_of("errors")
            if not any(UNCERTAIN in text for text in texts):
                raise LostError(f"it says that it failed, and its records are there: {texts}")
        seen = ended.last("ids")
        if seen is not None and Counter(seen) != present:
            raise LostError(f"the same table object sees {difference(Counter(seen), [present])}")
        open_table(path).append(records(300, 301))
        present = applied(["add", 300, 301], present)
        if not case.is_about_time:
            check_sound(path, sorted(present.elements()))
        else:
            crowds.check_holds(path, present)

    def _repeated(self, case: Case, path: Path) -> Counter[int]:
        """Repeat a batch of a stream, which must always work; return the records."""
        ended = self._lived(replace(case, fault=Fault("")), path)
        if ended.code:
            raise LostError(f"the batch cannot be repeated: {ended.told}")
        present = Counter(ids(open_table(path)))
        if present != applied(["add", 100, 130], self._before):
            raise LostError("a batch that was repeated is not there exactly once")
        return present


def _kept_in_part(ended: Ended) -> Effect | None:
    """The records that an ingest reports to have kept of a file that it could not read to the end; None if it does not.

    It warns, adds the records before that place, prints their number, and exits with 1.
    """
    if ended.last("code") != 1 or CUT_SHORT not in (ended.last("errors") or ""):
        return None
    told = re.search(r"^records +([\d,]+)$", ended.last("output") or "", re.MULTILINE)
    return ["add", 100, 100 + (int(told[1].replace(",", "")) if told else 0)]


def replay(folder: str | Path, kind: str, is_partitioned: bool, fault: dict[str, Any], *, setup: str = "") -> None:
    """Rerun a failed case; `setup` as in `run`.

    Raises:
        AssertionError: it fails again.
    """
    with Lives(Path(folder) / "server", setup=setup) as lives:
        Bench(Path(folder) / "bench", lives).run(Case(kind, is_partitioned, Fault(**fault), 0.0))


def run(
    seed: int,
    seconds: float,
    folder: str | Path,
    cases: int | None = None,
    *,
    setup: str = "",
    enough: int = ENOUGH,
    kinds: Sequence[str] | None = None,
) -> Outcome:
    """Inject faults until the time is up; a case is a command in which something failed.

    Args:
        seed: the random seed.
        seconds: the time limit.
        folder: the working folder.
        cases: the maximum number of cases.
        setup: Python code that breaks the product in the processes that meet faults, to see that this is noticed.
        enough: the number of failures to stop after.
        kinds: the commands, of `WRITERS`, `READERS` and ``crowd``; all of them by default.
    """
    folder = Path(folder)
    outcome = Outcome()
    budget = Budget(outcome, seconds, cases)
    chance = random.Random(seed)
    with Lives(folder / "server", setup=setup) as lives:
        bench = Bench(folder / "bench", lives) if lives.has_faults else None
        number = 0
        while not budget.is_spent and len(outcome.failures) < enough:
            number += 1
            is_crowd = bench is None or number % CROWD_EVERY == 0
            if is_crowd and (kinds is None or "crowd" in kinds):
                crowds.run_one(chance.randrange(1 << 30), folder / "crowd", lives, outcome)
            case = drawn(chance)
            if bench is None or (kinds is not None and case.kind not in kinds):
                continue
            _run_case(bench, case, seed, outcome)
    for name in ("bench", "crowd"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return outcome


def _run_case(bench: Bench, case: Case, seed: int, outcome: Outcome) -> None:
    sort = "clock" if case.is_about_time else errno.errorcode.get(case.fault.error, "?")
    try:
        done = bench.run(case)
    except (AssertionError, CoprlakeError, OSError) as error:
        with_place = replace(case, fault=bench._aimed(case))
        fault = asdict(with_place.fault)
        text = f"faults.replay(FOLDER, {case.kind!r}, {case.is_partitioned}, {fault})"
        outcome.count(f"{case.kind} {sort}")
        outcome.failures.append(Failure(seed, text, f"{type(error).__name__}: {error}"[:3000]))
        return
    if done is not None:
        outcome.count(f"{case.kind} {sort}")
