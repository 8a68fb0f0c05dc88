"""Runs several make targets, some of them at a time, and says which took how long.

``python -m scripts.run_parts --at-once 2 lint test-slow test-quick``: every line of output is preceded by the name of
its part. A part that fails does not stop the others; the exit code is 1 if one failed. The tests that failed are named
once more at the end, where a log that is shown in part still has them.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

_OUTPUT = threading.Lock()


@dataclass
class Part:
    """A make target, and what became of it.

    Attributes:
        name: the target.
        exit_code: that of make; None if it did not run to its end.
        seconds: by the clock.
        cpu_seconds: of all its processes, which says more on a busy machine.
        failures: pytest's lines about tests that failed.
    """

    name: str
    exit_code: int | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def run(self, make: Sequence[str]) -> None:
        """Run the target and wait for it."""
        started = time.monotonic()
        process = subprocess.Popen([*make, self.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout
        with process.stdout as output:
            for line in output:
                text = line.decode(errors="replace").rstrip()
                if text.startswith(("FAILED ", "ERROR ")):
                    self.failures.append(text)
                _print(f"{self.name:<12}| {text}")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = self.exit_code = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - started
        self.cpu_seconds = used.ru_utime + used.ru_stime

    def summary(self) -> str:
        """Its line in the table at the end."""
        result = {0: "passed", None: "not run"}.get(self.exit_code, "FAILED")
        return f"{self.name:<12}  {result:<7}  {_clock(self.seconds):>7}  {_clock(self.cpu_seconds):>7}"


def run_parts(parts: Sequence[Part], at_once: int, make: Sequence[str]) -> bool:
    """Run all parts, each as soon as one of the `at_once` places is free; whether all passed."""
    waiting = deque(parts)

    def work() -> None:
        while True:
            try:
                part = waiting.popleft()
            except IndexError:
                return
            part.run(make)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(at_once)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return all(part.exit_code == 0 for part in parts)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _print(text: str) -> None:
    with _OUTPUT:
        print(text, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that the command line names."""
    parser = argparse.ArgumentParser(description="Run make targets and say which took how long.")
    parser.add_argument("--at-once", type=int, default=2, metavar="N", help="targets to run at a time")
    parser.add_argument("--make", default="make", help="the program to run them with")
    parser.add_argument("targets", nargs="+")
    given = parser.parse_args(arguments)
    parts = [Part(name) for name in given.targets]
    started = time.monotonic()
    passed = False
    try:
        passed = run_parts(parts, given.at_once, [given.make, "--no-print-directory"])
    except KeyboardInterrupt:
        _print("interrupted")
    finally:
        _print(f"\n{'part':<12}  {'result':<7}  {'time':>7}  {'CPU':>7}")
        for part in parts:
            _print(part.summary())
        for failure in (failure for part in parts for failure in part.failures):
            _print(failure)
        _print(f"{'all':<12}  {'passed' if passed else 'FAILED':<7}  {_clock(time.monotonic() - started):>7}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
