"""Which types of arguments a kernel takes, by its annotations, as Numba's types."""

import types as python_types
import typing
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any, Final

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

_PLAIN: Final[dict[Any, Any]] = {int: types.int64, bool: types.boolean, float: types.float64}
_MOST_VARIANTS: Final = 4


class UnsupportedSignatureError(Exception):
    """A kernel with an annotation that the bundle cannot check; Numba compiles it for what it is called with."""


def signatures_of(function: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """The types of the arguments, one tuple for each choice that unions leave.

    Raises:
        UnsupportedSignatureError: an annotation has no type in the bundle.
    """
    hints = typing.get_type_hints(function)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    choices = product(*(list(_types_of(hints.get(name))) for name in names))
    return list(islice(choices, _MOST_VARIANTS))


def _types_of(hint: Any) -> Iterator[Any]:
    if typing.get_origin(hint) in (typing.Union, python_types.UnionType):
        for choice in typing.get_args(hint):
            yield from _types_of(choice)
    elif hint in _PLAIN:
        yield _PLAIN[hint]
    elif isinstance(hint, type) and issubclass(hint, np.generic):
        yield from_dtype(np.dtype(hint))
    elif typing.get_origin(hint) is np.ndarray:
        yield _array(hint)
    elif isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        members = typing.get_type_hints(hint)
        for fields in product(*(list(_types_of(members[name])) for name in hint._fields)):
            yield types.BaseTuple.from_types(fields, hint)
    elif typing.get_origin(hint) is tuple:
        for fields in product(*(list(_types_of(member)) for member in typing.get_args(hint))):
            yield types.BaseTuple.from_types(fields)
    else:
        raise UnsupportedSignatureError(f"no type in the bundle for {hint}")


def _array(hint: Any) -> Any:
    """`npt.NDArray` is an array of one dimension; others say their shape."""
    shape, dtype = typing.get_args(hint)
    lengths = typing.get_args(shape)
    dimensions = 1 if not lengths or Ellipsis in lengths else len(lengths)
    (scalar,) = typing.get_args(dtype)
    return types.Array(from_dtype(np.dtype(scalar)), dimensions, "C")
