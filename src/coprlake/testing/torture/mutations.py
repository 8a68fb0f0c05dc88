"""Hostile bytes: mutated files and queries, in a child process with limits on memory and time.

Every case is made from the seed and its number. A child runs cases in turn and prints each number first, so that a case
that kills it or hangs is known; the next child continues after it. The class of each kind says what is expected: a
clear error or a right answer.

``python -m coprlake.testing.torture.mutations --seed 1 --first 17 --stop 18`` reruns case 17.
"""

import argparse
import json
import os
import random
import re
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from coprlake.errors import CoprlakeError
from coprlake.testing.torture.outcome import Budget, Failure, Outcome

if TYPE_CHECKING:
    from coprlake.testing.torture.hostile_bytes.hostile import Kind

HANG_SECONDS: Final = 30.0
MEMORY_BYTES: Final = 2 << 30
"""Memory that a child may allocate beyond its libraries: far more than any case needs."""
CHILD_COMMAND: tuple[str, ...] = ("-m", __name__)
CHILD_CASES: Final = 20_000
START_SECONDS: Final = 300.0
"""A child may have to compile the kernels first."""
WARM_UP_CASES: Final = 12
FAILURE_LIMIT: Final = 20
"""A run ends after this many failures."""


def run(seed: int, seconds: float, folder: Path, cases: int | None = None, kinds: Sequence[str] = ()) -> Outcome:
    """Run mutated cases until the time is up or `cases` were run.

    Args:
        seed: the random seed.
        seconds: the time limit.
        folder: holds the files; in memory (``/dev/shm``) it is several times as fast.
        cases: the maximum number of cases.
        kinds: the names of the kinds to run; all if empty.
    """
    outcome = Outcome()
    budget = Budget(outcome, seconds, cases)
    deadline = time.monotonic() + seconds
    first = 0
    known: set[str] = set()  # one case of each kind of problem is shrunk
    while not budget.is_spent and len(outcome.failures) < FAILURE_LIMIT:
        stop = first + CHILD_CASES if cases is None else min(first + CHILD_CASES, cases)
        child = _Child(seed, first, stop, deadline - time.monotonic(), folder / f"from-{first}", kinds)
        child.run(HANG_SECONDS)
        for kind, count in child.counts.items():
            outcome.count(kind, count)
        for case, problem in child.problems:
            kind_of_problem = re.sub(r"\d+", "", str(problem["what"]))[:200]
            is_new = kind_of_problem not in known and len(outcome.failures) < FAILURE_LIMIT
            known.add(kind_of_problem)
            outcome.failures.append(_smallest(seed, case, problem, folder, kinds, may_shrink=is_new))
        if not child.counts:
            if not (child.has_ended and first):  # otherwise the time was up before another child was ready
                what = f"the child ran none: {child.stderr[-2000:]}"
                outcome.failures.append(Failure(seed, f"cases from {first} on", what))
            break
        first = child.last + 1
    _ = budget.is_spent  # records the time
    return outcome


@dataclass
class _Child:
    """A process that runs cases ``first`` to ``stop``, and its output."""

    seed: int
    first: int
    stop: int
    seconds: float
    folder: Path
    kinds: Sequence[str] = ()
    edits: Sequence[int] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    last: int = -1
    has_ended: bool = False
    """Whether it reported its end."""
    stderr: str = ""

    def run(self, hang_seconds: float) -> None:
        """Run the child until it ends, dies or hangs."""
        command = [sys.executable, *CHILD_COMMAND, "--seed", str(self.seed), "--first", str(self.first)]
        command += ["--stop", str(self.stop), "--seconds", str(self.seconds), "--folder", str(self.folder)]
        command += [word for kind in self.kinds for word in ("--kind", kind)]
        if self.edits is not None:
            command += ["--edits", ",".join(map(str, self.edits))]
        errors = self.folder.with_suffix(".stderr")
        errors.parent.mkdir(parents=True, exist_ok=True)
        with errors.open("wb") as sink, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sink) as process:
            self.has_ended = self._follow(process, hang_seconds)
            process.kill()
            process.wait()
        self.stderr = errors.read_text(errors="replace")
        if not self.has_ended and self.last >= 0:
            how = (
                "it did not end" if process.returncode == -signal.SIGKILL else f"the process died: {process.returncode}"
            )
            self.problems.append((self.last, {"what": f"{how}\n{self.stderr[-1500:]}"}))

    def _follow(self, process: "subprocess.Popen[bytes]", hang_seconds: float) -> bool:
        """Read the output of the child; return whether it reported its end."""
        assert process.stdout is not None
        descriptor, rest = process.stdout.fileno(), b""
        patience = START_SECONDS
        while select.select([descriptor], [], [], patience)[0]:
            data = os.read(descriptor, 1 << 16)
            if not data:
                process.wait()
                return False
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                word, _, value = line.decode().partition(" ")
                if word == "end":
                    return True
                patience = hang_seconds
                if word == "problem":
                    self.problems.append((self.last, json.loads(value)))
                else:
                    self.last = int(word)
                    self.counts[value] = self.counts.get(value, 0) + 1
        return False


def _smallest(
    seed: int, case: int, problem: dict[str, Any], folder: Path, kinds: Sequence[str], *, may_shrink: bool
) -> Failure:
    """Remove edits one by one as long as the case still fails."""
    count = int(problem.get("edits", 0)) or _edit_count(seed, case, folder, kinds)
    kept = list(range(count))
    for edit in range(count if may_shrink else 0):
        fewer = [other for other in kept if other != edit]
        if not fewer:
            break
        child = _Child(seed, case, case + 1, 60.0, folder / f"again-{case}-{edit}", kinds, edits=fewer)
        child.run(HANG_SECONDS)
        if child.problems:
            kept, problem = fewer, problem | child.problems[0][1]
    described = problem.get("case") or f"run it again to see its edits; the {kept} of them matter"
    again = f"python -m {__name__} --seed {seed} --first {case} --stop {case + 1}"
    again += "".join(f" --kind {kind!r}" for kind in kinds) + f" --edits {','.join(map(str, kept))}"
    return Failure(seed, f"{described}\n  again: {again}", str(problem["what"]))


def _edit_count(seed: int, case: int, folder: Path, kinds: Sequence[str]) -> int:
    """The number of edits in a case whose process died."""
    command = [sys.executable, *CHILD_COMMAND, "--seed", str(seed), "--first", str(case), "--stop", str(case + 1)]
    command += ["--folder", str(folder / f"count-{case}"), "--count"]
    command += [word for kind in kinds for word in ("--kind", kind)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return int(found.stdout.split()[-1]) if found.returncode == 0 and found.stdout.split() else 1


def _limit_memory() -> None:
    """Limit data only: libraries reserve addresses that they never touch."""
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY_BYTES, used + MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run cases and report them on standard output; used by children, and to rerun a case by hand."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--stop", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--folder", type=Path, default=Path("hostile-bytes"))
    parser.add_argument("--kind", action="append", default=[])
    parser.add_argument("--edits", type=lambda text: [int(number) for number in text.split(",") if number])
    parser.add_argument("--count", action="store_true", help="only print the number of edits in the first case")
    given = parser.parse_args(arguments)
    until = time.monotonic() + given.seconds
    from coprlake.testing.torture.hostile_bytes.hostile_kinds import all_kinds

    kinds = [kind for kind in all_kinds() if not given.kind or kind.name in given.kind]
    for kind in kinds:
        own = given.folder / kind.name.replace(" ", "-")
        own.mkdir(parents=True, exist_ok=True)
        kind.prepare(own)
        _warm_up(kind)
    _limit_memory()
    output = os.dup(1)
    os.dup2(2, 1)  # keeps what libraries print out of the output
    for number in range(given.first, given.stop):
        if time.monotonic() > until:
            break
        chance = random.Random(f"{given.seed}/{number}")
        kind = chance.choices(kinds, [kind.weight for kind in kinds])[0]
        case = kind.case(chance)
        if given.count:
            os.write(output, str(len(case.edits)).encode())
            return
        os.write(output, f"{number} {kind.name}\n".encode())
        edits = case.edits if given.edits is None else [case.edits[place] for place in given.edits]
        problem = _problem_of(case.check, edits)
        if problem is not None:
            described = f"{kind.name} ({case.base}): {'; '.join(map(str, edits))}"
            said = {"what": problem, "case": described, "edits": len(case.edits)}
            os.write(output, f"problem {json.dumps(said)}\n".encode())
    os.write(output, b"end\n")


def _warm_up(kind: "Kind") -> None:
    """Compile the kernels, and check that unchanged cases pass."""
    for number in range(WARM_UP_CASES):
        case = kind.case(random.Random(number))
        problem = _problem_of(case.check, ())
        if problem is not None:
            raise SystemExit(f"{kind.name} ({case.base}) fails without any edit: {problem}")


def _problem_of(check: Any, edits: Sequence[Any]) -> str | None:
    try:
        found = check(edits)
    except CoprlakeError:
        return None
    except BaseException as error:  # also the panics of Rust libraries
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        places = traceback.extract_tb(error.__traceback__)[-4:]
        shown = " <- ".join(f"{Path(place.filename).name}:{place.lineno}" for place in reversed(places))
        return f"{type(error).__module__}.{type(error).__name__}: {str(error)[:300]} at {shown}"
    return None if found is None else str(found)


if __name__ == "__main__":
    main()
