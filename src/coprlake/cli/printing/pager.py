"""Shows long output on a terminal through a pager, as git does."""

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import IO, Final

_VARIABLES: Final = ("COPRLAKE_PAGER", "PAGER")
_LESS: Final = "FRX"
"""Quit if everything fits on the screen, show colours, and leave the text on the screen."""
_PATIENCE_SECONDS: Final = 1.0


def pager_command() -> list[str] | None:
    """The pager to use: COPRLAKE_PAGER, PAGER, or less; None if there is none, or it is empty or cat."""
    chosen = next((os.environ[name] for name in _VARIABLES if name in os.environ), "less")
    try:
        command = shlex.split(chosen)
    except ValueError:
        return None
    if not command or command == ["cat"] or shutil.which(command[0]) is None:
        return None
    return command


class _Paged(io.RawIOBase):
    """Keeps output until there is more than a screen of it, or for a second, and then starts the pager."""

    def __init__(self, command: list[str], screen_lines: int) -> None:
        super().__init__()
        self._command = command
        self._left = screen_lines
        self._waiting: list[bytes] = []
        self._pager: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        with self._lock:
            if self._pager is not None:
                self._send(data)
                return len(data)
            self._waiting.append(bytes(data))
            self._left -= data.count(b"\n")
            if self._left < 0:
                self._start()
            elif self._timer is None:
                self._timer = threading.Timer(_PATIENCE_SECONDS, self._start_late)
                self._timer.daemon = True
                self._timer.start()
        return len(data)

    def _start_late(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            if self._pager is None and self._waiting:
                self._start()

    def _start(self) -> None:
        sys.stdout.flush()
        environment = {"LESS": _LESS, "LV": "-c"} | os.environ
        try:
            self._pager = subprocess.Popen(self._command, stdin=subprocess.PIPE, env=environment)
        except OSError:
            sys.stdout.buffer.write(b"".join(self._waiting))
            sys.stdout.buffer.flush()
            self._waiting = []
            raise
        waiting, self._waiting = b"".join(self._waiting), []
        self._send(waiting)

    def _send(self, data: bytes) -> None:
        assert self._pager is not None
        assert self._pager.stdin is not None
        self._pager.stdin.write(data)
        self._pager.stdin.flush()

    def finish(self) -> None:
        """Write what fits on the screen, or wait until the person has left the pager."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._pager is None:
                sys.stdout.buffer.write(b"".join(self._waiting))
                sys.stdout.buffer.flush()
                return
        with contextlib.suppress(OSError):
            assert self._pager.stdin is not None
            self._pager.stdin.close()
        while True:
            try:
                self._pager.wait()
                return
            except KeyboardInterrupt:  # is the pager's
                continue


@contextlib.contextmanager
def paged() -> Iterator[IO[bytes]]:
    """Standard output through a pager, if there is one."""
    command = pager_command()
    if command is None:
        yield sys.stdout.buffer
        return
    out = _Paged(command, shutil.get_terminal_size((100, 24)).lines - 1)
    try:
        yield out  # type: ignore[misc]
    finally:
        out.finish()
