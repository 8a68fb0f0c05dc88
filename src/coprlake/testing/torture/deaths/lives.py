"""Processes that die or meet faults, hundreds per second: each is forked from a server with everything loaded.

The server preloads `faulty_files.c`, if there is a compiler for it. So a process can die, or an operation fail, at the
n-th file operation, in Python or native code, and its clock can be wrong.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from coprlake.errors import CoprlakeError
from coprlake.testing.kafka import tied_to_us

SOURCE: Final = Path(__file__).with_name("faulty_files.c")
START_SECONDS: Final = 180.0
"""The first start compiles kernels."""
LIFE_SECONDS: Final = 60.0
"""A job that takes longer hangs."""
_PR_SET_PDEATHSIG: Final = 1

OPEN, CREATE, READ, WRITE, SYNC, LINK, UNLINK, RENAME, MKDIR, LIST = (1 << bit for bit in range(10))
READING: Final = OPEN | READ | LIST
WRITING: Final = CREATE | WRITE | SYNC | LINK | UNLINK | RENAME | MKDIR
ANY: Final = READING | WRITING
LASTING, DEADLY, LATE, TORN = 1, 2, 4, 8
_NO_OPERATION: Final = -1

Job: TypeAlias = "Callable[..., None]"


@dataclass(frozen=True)
class Fault:
    """What goes wrong in a process.

    Attributes:
        folder: operations on files below it are counted.
        at: the number of the operation, from 0; -1 to only count.
        kinds: the operations to count: `READ`, `WRITE` and so on, combined with ``|``.
        error: the error number.
        how: `LASTING` to fail all later operations too, `DEADLY` to die, `LATE` to fail after doing the operation,
            `TORN` to write half first.
        clock: seconds by which the clock is wrong from the start.
        jump: seconds by which it jumps at operation `jump_at`.
        jump_at: the operation; -1 for none.
        files_follow: whether synced files get the wrong time.
        delayed: start counting when the job reports what it begins.
    """

    folder: str
    at: int = _NO_OPERATION
    kinds: int = ANY
    error: int = 0
    how: int = 0
    clock: int = 0
    jump: int = 0
    jump_at: int = _NO_OPERATION
    files_follow: bool = False
    delayed: bool = False


@dataclass
class Ended:
    """How a process ended.

    Attributes:
        told: what the job reported, one JSON value per line.
        code: the exit code; negative for a signal.
        hung: it was killed because it took too long.
    """

    told: list[Any] = field(default_factory=list)
    code: int = 0
    hung: bool = False

    @property
    def was_killed(self) -> bool:
        """Whether it was killed, by its fault or when its time was up."""
        return self.code == -signal.SIGKILL and not self.hung

    def all_of(self, key: str) -> list[Any]:
        """The values of all lines that have this key, in order."""
        return [line[key] for line in self.told if key in line]

    def last(self, key: str) -> Any:
        """The value of the last line that has this key; None if there is none."""
        return next((line[key] for line in reversed(self.told) if key in line), None)


def compiled_library(folder: Path) -> Path | None:
    """Compile `faulty_files.c` to a library in this folder; None if there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or sys.platform != "linux":
        return None
    library = folder / "faulty_files.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise CoprlakeError(f"{SOURCE.name} does not compile; {done.stderr.strip()}")
    return library


# --- in the server and its processes ---


class World:
    """What a job sees of the harness: a way to report, and control of its fault."""

    def __init__(self, descriptor: int, fault: Fault | None) -> None:
        self._descriptor = descriptor
        self._fault = fault
        self._is_armed = False
        self._library = ctypes.CDLL(None) if "faulty_files.so" in os.environ.get("LD_PRELOAD", "") else None
        if self._library is not None:
            self._library.coprlake_fired.restype = ctypes.c_char_p
            self._library.coprlake_disarm.restype = ctypes.c_long

    def tell(self, **values: Any) -> None:
        """Report to the harness at once: this process may die soon."""
        os.write(self._descriptor, json.dumps(values).encode() + b"\n")
        if "begin" in values and not self._is_armed:
            self.arm()

    def arm(self) -> None:
        """Start counting operations."""
        fault = self._fault
        if self._library is None or fault is None:
            return
        self._is_armed = True
        number = ctypes.c_long
        self._library.coprlake_clock(number(fault.clock), number(fault.jump), number(fault.jump_at), fault.files_follow)
        self._library.coprlake_arm(fault.folder.encode(), fault.kinds, number(fault.at), fault.error, fault.how)

    def disarm(self) -> None:
        """End the fault; report the number of operations, and which one failed."""
        if self._library is not None and self._fault is not None:
            count = self._library.coprlake_disarm()
            self._library.coprlake_clock(ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(_NO_OPERATION), 0)
            self.tell(count=count, fired=self._library.coprlake_fired().decode(errors="replace"))
            self._fault = None


def describe(error: BaseException) -> dict[str, Any]:
    """An error as a job reports it."""
    lines = traceback.format_exception(error)
    return {
        "type": type(error).__name__,
        "text": str(error)[:2000],
        "clear": isinstance(error, CoprlakeError),
        "trace": "" if isinstance(error, CoprlakeError) else "".join(lines)[-3000:],
    }


def _live(order: dict[str, Any], descriptor: int) -> None:
    """Run a job in a forked process; never returns."""
    status = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        world = World(descriptor, Fault(**order["fault"]) if order["fault"] else None)
        module, _, name = order["job"].partition(":")
        job: Job = getattr(import_module(module), name)
        world.tell(begun=True)
        if not (order["fault"] and order["fault"]["delayed"]):
            world.arm()
        try:
            job(world, **order["arguments"])
        except Exception as error:
            world.disarm()
            world.tell(error=describe(error))
        else:
            world.disarm()
            status = 0
    finally:
        os._exit(status)


def serve(descriptor: int) -> None:
    """Fork a process for each order until the connection closes."""
    connection = socket.socket(fileno=descriptor)
    while True:
        message, handles, _, _ = socket.recv_fds(connection, 1 << 17, 1)
        if not message:
            return
        order = json.loads(message)
        if "setup" in order:
            exec(order["setup"], {})
            import_module("coprlake.testing.torture.deaths.jobs").warm_up()
            answer = 0
        elif "wait" in order:
            answer = os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1])
        else:
            (pipe,) = handles
            answer = os.fork()
            if answer == 0:
                connection.close()
                _live(order, pipe)
            os.close(pipe)
        connection.send(str(answer).encode())


# --- in the harness ---


class Life:
    """One process, which ends by itself, by its fault, or by `kill`."""

    def __init__(self, lives: "Lives", number: int, pipe: int) -> None:
        self._lives, self._number, self._pipe = lives, number, pipe
        self._bytes = b""
        self._begun = time.monotonic()

    def kill(self) -> None:
        """Kill the process now, like kill -9."""
        os.kill(self._number, signal.SIGKILL)  # a zombie at worst: nothing has waited for it yet

    def end(self, seconds: float | None = None) -> Ended:
        """Wait until the process ends; kill it `seconds` after its job starts."""
        deadline = None
        hung = False
        while True:
            if deadline is None and seconds is not None and self._bytes:
                deadline = time.monotonic() + seconds
            limit = self._begun + LIFE_SECONDS if deadline is None else deadline
            if not select.select([self._pipe], [], [], max(0.0, limit - time.monotonic()))[0]:
                hung = hung or deadline is None
                self.kill()
                self._begun = time.monotonic()
                deadline, seconds = None, None
                continue
            piece = os.read(self._pipe, 65536)
            if not piece:
                break
            self._bytes += piece
        os.close(self._pipe)
        lines = self._bytes.decode().split("\n")[:-1]
        return Ended([json.loads(line) for line in lines], self._lives.wait(self._number), hung)


class Lives:
    """A server that forks processes; a context manager.

    Args:
        folder: holds the library and the server's log.
        setup: Python code that the server runs first; tests use it to break the product and see that this is noticed.

    Attributes:
        has_faults: whether operations can be counted and fail; without a C compiler, processes only die after a time.
    """

    def __init__(self, folder: Path, *, setup: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        library = compiled_library(folder)
        self.has_faults = library is not None
        self._log = folder / "lives.log"
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {**os.environ, **({"LD_PRELOAD": str(library)} if library else {})}
        with other, self._log.open("ab") as log:
            self._process = subprocess.Popen(
                tied_to_us([sys.executable, "-m", "coprlake.testing.torture.deaths.lives", str(other.fileno())]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[other.fileno()],
                env=environment,
            )
        self._connection = own
        self._connection.settimeout(START_SECONDS)
        self._ask({"setup": setup})
        self._connection.settimeout(LIFE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def begin(self, job: str, fault: Fault | None = None, **arguments: Any) -> Life:
        """Start a job of `coprlake.testing.torture.deaths.jobs`, or ``module:function``, in its own process."""
        name = job if ":" in job else f"coprlake.testing.torture.deaths.jobs:{job}"
        order = {"job": name, "arguments": arguments, "fault": asdict(fault) if fault else None}
        reading, writing = os.pipe()
        try:
            number = self._ask(order, [writing])
        finally:
            os.close(writing)
        return Life(self, number, reading)

    def run(self, job: str, fault: Fault | None = None, seconds: float | None = None, **arguments: Any) -> Ended:
        """Start a job and wait until it ends; kill it after `seconds`."""
        return self.begin(job, fault, **arguments).end(seconds)

    def wait(self, number: int) -> int:
        """The exit code of a process that has ended."""
        return self._ask({"wait": number})

    def _ask(self, order: dict[str, Any], handles: list[int] | None = None) -> int:
        try:
            socket.send_fds(self._connection, [json.dumps(order).encode()], handles or [])
            answer = self._connection.recv(100)
        except OSError as error:
            raise CoprlakeError(f"the server of lives does not answer: {error}\n{self._log_end()}") from error
        if not answer:
            raise CoprlakeError(f"the server of lives is dead\n{self._log_end()}")
        return int(answer)

    def _log_end(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])


def main() -> None:
    """The server's process: ``python -m coprlake.testing.torture.deaths.lives DESCRIPTOR``."""
    lives = import_module("coprlake.testing.torture.deaths.lives")  # not __main__: jobs import this module, too
    lives.serve(int(sys.argv[1]))


if __name__ == "__main__":
    main()
