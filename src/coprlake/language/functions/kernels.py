"""Functions that two engines would not do alike: written once, over Arrow arrays, and called by both."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Kernel:
    """A function over Arrow arrays.

    Attributes:
        name: in SQL; the same name is always the same function.
        run: gets an array for each argument and gives one of the same length.
        inputs: the types of the arguments.
        output: the type of the result.
    """

    name: str
    run: Callable[..., pa.Array]
    inputs: tuple[pa.DataType, ...]
    output: pa.DataType


def kernel(
    run: Callable[..., pa.Array], inputs: tuple[pa.DataType, ...], output: pa.DataType, **constants: Any
) -> Kernel:
    """A kernel of a module-level function, with these of its arguments fixed."""
    name = f"coprlake_{run.__name__.strip('_')}"
    if constants:
        name += (
            "_"
            + hashlib.blake2b(
                repr(sorted(constants.items())).encode("utf-8", "surrogatepass"), digest_size=8
            ).hexdigest()
        )
    return Kernel(name, partial(run, **constants) if constants else run, inputs, output)
