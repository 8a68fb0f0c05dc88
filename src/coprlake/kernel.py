"""The decorators of hot loops, and the types of their arguments.

Everything hot in coprlake is a *kernel*: a plain function over NumPy arrays that also takes read-only (memory-mapped)
ones. Kernels neither allocate nor raise: they return how much they handled, and the class that owns the arrays grows
them and calls again. The compiler holds them to it (`native/numba_kernels.py`).

Machine code for the kernels that Python calls is in the *bundle* (`native/bundle.py`), built when the package is set
up, and loaded without Numba. What the bundle does not have (other types of arguments, kernels that only tests call)
Numba compiles on first use, and caches on disk.

A call keeps the interpreter lock, unless the kernel is a `long_kernel`. Handing the lock over costs more than a call
of microseconds takes: eight threads that each ask for absent terms were slower together than one of them alone.

Annotations say which types the bundle has a kernel for, so they must be exact: ``...Array`` has one dimension and
``...Matrix`` two.

With ``NUMBA_DISABLE_JIT=1`` every kernel is ordinary Python, which is how the tests see inside them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt

from coprlake.native.kernels import IS_PYTHON, native_function
from coprlake.native.memory_words import bit_length as bit_length
from coprlake.native.memory_words import word_of as word_of
from coprlake.native.memory_words import words_at as words_at

P = ParamSpec("P")
R = TypeVar("R")

U8Array = npt.NDArray[np.uint8]
U16Array = npt.NDArray[np.uint16]
U32Array = npt.NDArray[np.uint32]
U64Array = npt.NDArray[np.uint64]
I32Array = npt.NDArray[np.int32]
I64Array = npt.NDArray[np.int64]


if TYPE_CHECKING:
    U8Matrix = U8Array
    U32Matrix = npt.NDArray[Any]
    I64Matrix = I64Array

    def i64(number: Any) -> int:
        """A number that a kernel read, as a signed integer, the type of all positions and counts."""
        raise TypeError

else:
    U8Matrix = np.ndarray[tuple[int, int], np.dtype[np.uint8]]
    U32Matrix = np.ndarray[tuple[int, int], np.dtype[np.uint32]]
    I64Matrix = np.ndarray[tuple[int, int], np.dtype[np.int64]]
    i64 = np.int64


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that takes microseconds, or that other kernels call.

    Kernels that call it inline its code, because a call with a dozen arrays copies a hundred words to the stack.
    """
    return _compiled(function, forceinline=True)


def cold_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that other kernels rarely call: it is compiled once instead of into each of them."""
    return _compiled(function, forceinline=False)


def long_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that works on a whole batch: other threads run Python meanwhile.

    It releases the interpreter lock, which pays from about a tenth of a millisecond on.
    """
    return _compiled(function, forceinline=False, nogil=True)


def view_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that returns views of its arguments.

    It is inlined into its callers, the only way to return a view without reference counting.
    """
    return _compiled(function, inline="always")


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    if IS_PYTHON:
        return function
    return cast(Callable[P, R], native_function(function, options))
