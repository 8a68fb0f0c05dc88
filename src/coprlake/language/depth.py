"""Room for long pipelines: each command is a level of the plan and of the SQL, and Python stops at a thousand calls."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_ROOM: Final = 50_000
_lock = threading.Lock()
_inside = 0
_usual = 0


@contextmanager
def deep_calls() -> Iterator[None]:
    """Let calls nest deeper while this lasts; the limit is the process's, so the last one out restores it."""
    global _inside, _usual
    with _lock:
        if _inside == 0:
            _usual = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_usual, _ROOM))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                sys.setrecursionlimit(_usual)
