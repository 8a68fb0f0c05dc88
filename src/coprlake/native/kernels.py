"""What a decorated function is: a function of the bundle, or a `Kernel`, which Numba compiles when it is called."""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from threading import RLock
from typing import Any, Final

IS_PYTHON: Final = os.environ.get("NUMBA_DISABLE_JIT", "0").strip() not in ("", "0")
"""Kernels are ordinary Python."""

announce: Callable[[int], None] | None = None
"""Set by the command line: the first call of a kernel that no bundle has builds the bundle, and tells this function the
seconds that it will take. Otherwise Numba compiles what is called."""

_LOCK: Final = RLock()
_tried: Final[list[bool]] = []
"""Not empty once this process has tried to build the bundle."""


class Kernel:
    """A kernel that Numba compiles. Numba is imported on the first call."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function = function
        self.options = options
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *arguments: Any) -> Any:
        """Call it as Numba compiles it."""
        return self.dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "dispatcher":
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    def __reduce__(self) -> str:
        return self.__qualname__

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's form of it."""
        with _LOCK:
            from coprlake.native.numba_kernels import dispatcher_of

            return self.__dict__.get("dispatcher") or dispatcher_of(self.function, self.options)


class UnbundledKernel(Kernel):
    """A kernel that was in no bundle when its module was imported; perhaps one is built before it is called."""

    def __call__(self, *arguments: Any) -> Any:
        """Call it as it is in the bundle by now, or as Numba compiles it."""
        return self._called(*arguments)

    @cached_property
    def _called(self) -> Any:
        with _LOCK:
            _build_once()
        if not _tried:
            return self.dispatcher
        from coprlake.native.loading import bundled_function

        return bundled_function(Kernel(self.function, self.options)) or self.dispatcher


def native_function(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A decorated function as Python calls it."""
    from coprlake.native.loading import bundled_function

    return bundled_function(Kernel(function, options)) or UnbundledKernel(function, options)


def _build_once() -> None:
    """Build the bundle if this process has not tried to; if that fails, Numba compiles."""
    global announce
    announced, announce = announce, None
    if announced is not None:
        _tried.append(True)
        from subprocess import SubprocessError

        from coprlake.native.building import build_missing
        from coprlake.native.loading import forget

        with suppress(OSError, SubprocessError):
            build_missing(announced)
            forget()
