"""Kernels as Numba compiles them: options, the cache on disk, and what replaces a few Python functions inside kernels.

Importing this module imports Numba, a third of a second: only building the bundle and calls that the bundle does not
cover do so.

`_nrt=False` leaves Numba's reference counting out, which made calls between kernels that pass a dozen arrays 20 times
slower, and refuses to compile what would allocate (an assignment from slice to slice does; write the loop).
"""

from collections.abc import Callable
from contextlib import suppress
from types import BuiltinFunctionType
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import intrinsic, lower_builtin, overload, type_callable, typeof_impl
from numba.np import arrayobj

from coprlake.kernel_sources import digest_of
from coprlake.native.memory_words import bit_length, word_of, words_at

_uses: Final[set[str]] = set()
_OPTIONS: Final = {"error_model": "numpy", "_nrt": False}


def dispatcher_of(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Numba's form of a kernel, which is compiled on the first call with these types of arguments and then cached.

    Where no cache can be kept, as for code imported from an archive, each process compiles its own.
    """
    compiled = njit(**{**_OPTIONS, **options})(function)
    if "objects" in _uses:
        compiled._compiler._customize_flags = flags_for_objects
        return compiled
    if "inline" in options:
        return compiled
    with suppress(RuntimeError, OSError):  # numba: "no locator available"; sources that cannot be read
        cache = _Cache(function)
        compiled._cache = cache  # what `enable_caching` does, with a cache that knows all sources
    return compiled


def compile_for_objects() -> None:
    """From now on, kernels become objects of the bundle in this process: they are neither called nor cached."""
    _uses.add("objects")


def flags_for_objects(flags: Any) -> Any:
    """Not the functions that Python calls: only what other kernels contain."""
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    return flags


class _Cache(FunctionCache):  # type: ignore[misc]  # Numba has no types
    """Numba's cache on disk, valid until one of the sources of a kernel changes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(self._impl.locator.get_source_stamp(), digest_of(function.__code__.co_filename)),
        )


@typeof_impl.register(BuiltinFunctionType)  # type: ignore[untyped-decorator]
def _type_of_bundled(called: Any, _context: Any) -> Any:
    """A kernel of the bundle that another one calls; for other functions, Numba's own rules."""
    return getattr(called.__self__, "_numba_type_", None)


@type_callable(words_at)  # type: ignore[untyped-decorator]
def _type_of_words_at(_context: Any) -> Any:
    def type_of(address: Any, word_count: Any) -> Any:
        is_typed = isinstance(address, types.Integer) and isinstance(word_count, types.Integer)
        return types.Array(types.uint64, 1, "C", readonly=True) if is_typed else None

    return type_of


@lower_builtin(words_at, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
def _words_at_in_kernel(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """An array at the address; an overload could not return it, because its memory is not counted."""
    array = arrayobj.make_array(signature.return_type)(context, builder)
    word_bytes = context.get_constant(types.intp, 8)
    arrayobj.populate_array(
        array,
        data=builder.inttoptr(arguments[0], array.data.type),
        shape=[context.cast(builder, arguments[1], signature.args[1], types.intp)],
        strides=[word_bytes],
        itemsize=word_bytes,
        meminfo=None,
    )
    return array._getvalue()


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


@intrinsic  # type: ignore[untyped-decorator]
def _leading_zeros(_typing: Any, _word: Any) -> Any:
    signature = types.int64(types.uint64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.IntType(1)(0))

    return signature, generate


@overload(bit_length, inline="always")  # type: ignore[untyped-decorator]
def _bit_length_in_kernel(word: Any) -> Any:
    def count(word: Any) -> Any:
        return 64 - _leading_zeros(np.uint64(word))

    return count
