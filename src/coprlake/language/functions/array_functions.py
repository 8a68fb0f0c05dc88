"""Array functions: written once over Arrow arrays and called by both engines, whose own versions would differ."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from sqlglot import exp

    from coprlake.language.sql.dialect import Dialect


@dataclass(frozen=True)
class ArrayFunction:
    """An array function.

    Attributes:
        name: its name in SQL; equal names mean the same function.
        run: takes an array for each argument and returns one of the same length.
        inputs: the types of the arguments.
        output: the type of the result.
    """

    name: str
    run: Callable[..., pa.Array]
    inputs: tuple[pa.DataType, ...]
    output: pa.DataType


def array_function(
    run: Callable[..., pa.Array], inputs: tuple[pa.DataType, ...], output: pa.DataType, **constants: Any
) -> ArrayFunction:
    """An array function from a module-level function, with `constants` bound.

    Its name includes a hash of the constants and types, since engines identify functions only by name.
    """
    told = repr((sorted(constants.items()), [str(kind) for kind in inputs], str(output)))
    digest = hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    name = f"coprlake_{run.__name__.strip('_')}_{digest}"
    return ArrayFunction(name, partial(run, **constants) if constants else run, inputs, output)


def by_distinct(values: pa.Array, output: pa.DataType, of_one: Callable[[Any], Any]) -> pa.Array:
    """Apply a Python function once to each distinct value; null for null, and where it returns None."""
    distinct = pc.dictionary_encode(values)
    results = [of_one(value) for value in distinct.dictionary.to_pylist()]
    return pa.array(results, output).take(distinct.indices)


@dataclass(frozen=True)
class _OfRecords:
    """Adapts a function of several arrays to take one array of records."""

    run: Callable[..., pa.Array]

    @property
    def __name__(self) -> str:
        return self.run.__name__

    def __call__(self, records: pa.StructArray, **constants: Any) -> pa.Array:
        return self.run(*records.flatten(), **constants)


def call_together(
    d: "Dialect",
    run: Callable[..., pa.Array],
    inputs: tuple[pa.DataType, ...],
    output: pa.DataType,
    *arguments: "exp.Expression",
    **constants: Any,
) -> "exp.Expression":
    """Call an array function with several arguments, packed into a record: in DuckDB ours take one argument."""
    names = [f"a{i}" for i in range(len(inputs))]
    record = pa.struct(list(zip(names, inputs, strict=True)))
    return d.apply(array_function(_OfRecords(run), (record,), output, **constants), d.pack(names, arguments))
