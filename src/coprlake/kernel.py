"""The decorators that compile hot loops, and two ways to read memory that NumPy lacks.

Everything hot in coprlake is a *kernel*: a plain function over NumPy arrays, compiled lazily so that it also takes
read-only (memory-mapped) arrays, cached on disk, and free of the GIL. Kernels neither allocate nor raise: they return
how much they handled, and the class that owns the arrays grows them and calls again. The compiler holds them to it:
`_nrt=False` leaves Numba's reference counting out, which made calls between kernels that pass a dozen arrays 20 times
slower, and refuses to compile what would allocate (an assignment from slice to slice does; write the loop).

With ``NUMBA_DISABLE_JIT=1`` every kernel is ordinary Python, which is how the tests see inside them.
"""

import ctypes
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import config, njit, types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import intrinsic, overload
from numba.np import arrayobj

from coprlake.kernel_sources import digest_of

P = ParamSpec("P")
R = TypeVar("R")

U8Array = npt.NDArray[np.uint8]
U16Array = npt.NDArray[np.uint16]
U32Array = npt.NDArray[np.uint32]
U64Array = npt.NDArray[np.uint64]
I32Array = npt.NDArray[np.int32]
I64Array = npt.NDArray[np.int64]


if TYPE_CHECKING:

    def i64(number: Any) -> int:
        """A number that a kernel read, as a signed integer, the type of all positions and counts."""
        raise TypeError

else:
    i64 = np.int64

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on its first call with these argument types; the result is cached between processes.

    Kernels that call it inline its code, because a call with a dozen arrays copies a hundred words to the stack.
    """
    return _compiled(function, forceinline=True)


def cold_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that other kernels rarely call: it is compiled once instead of into each of them."""
    return _compiled(function, forceinline=False)


def _compiled(function: Callable[P, R], *, forceinline: bool) -> Callable[P, R]:
    """Where no cache can be kept, as for code imported from an archive, each process compiles its own."""
    options = {**_OPTIONS, "forceinline": forceinline}
    if config.DISABLE_JIT:
        return function
    compiled = njit(**options)(function)
    with suppress(RuntimeError, OSError):  # numba: "no locator available"; sources that cannot be read
        cache = _Cache(function)
        compiled._cache = cache  # what `enable_caching` does, with a cache that knows all sources
    return cast(Callable[P, R], compiled)


class _Cache(FunctionCache):  # type: ignore[misc]  # Numba has no types
    """Numba's cache on disk, valid until one of the sources of a kernel changes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(self._impl.locator.get_source_stamp(), digest_of(function.__code__.co_filename)),
        )


def view_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that returns views of its arguments.

    It is inlined into its callers, the only way to return a view without reference counting.
    """
    return cast(Callable[P, R], njit(inline="always", **_OPTIONS)(function))


def _words_at(address: int, word_count: int) -> U64Array:
    pointer = ctypes.cast(int(address), ctypes.POINTER(ctypes.c_uint64))
    return np.ctypeslib.as_array(pointer, shape=(int(word_count),))


@intrinsic  # type: ignore[untyped-decorator]
def _words_at_in_kernel(_typing: Any, _address: Any, _word_count: Any) -> Any:
    kind = types.Array(types.uint64, 1, "C", readonly=True)
    signature = kind(types.uint64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = arrayobj.make_array(signature.return_type)(context, builder)
        word_bytes = context.get_constant(types.intp, 8)
        arrayobj.populate_array(
            array,
            data=builder.inttoptr(arguments[0], array.data.type),
            shape=[arguments[1]],
            strides=[word_bytes],
            itemsize=word_bytes,
            meminfo=None,
        )
        return array._getvalue()

    return signature, generate


words_at: Callable[[int, int], U64Array] = _words_at if config.DISABLE_JIT else _words_at_in_kernel
"""The `word_count` words at an address: how one kernel call reads many mapped files.

Only inside kernels. The caller keeps the memory alive and guarantees the length.
"""


def word_of(data: U8Array, offset: int) -> np.uint64:
    """The eight bytes of `data` at `offset`, as one little-endian word: ``data[offset:offset + 8]``.

    The caller guarantees that they are inside. In a kernel this is a single unaligned load.
    """
    assert 0 <= offset <= len(data) - 8
    return np.uint64(int.from_bytes(data[offset : offset + 8].tobytes(), "little"))


@intrinsic  # type: ignore[untyped-decorator]
def _unaligned_load(_typing: Any, data: Any, _offset: Any) -> Any:
    signature = types.uint64(data, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()), align=1)

    return signature, generate


@overload(word_of, inline="always")  # type: ignore[untyped-decorator]
def _word_of_in_kernel(data: Any, offset: Any) -> Any:
    def load(data: Any, offset: Any) -> Any:
        return _unaligned_load(data, np.int64(offset))

    return load
