"""The command `parse` as an array function, so that both engines match patterns with `coprlake.dpl`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from coprlake.dpl import matching_texts as dpl
from coprlake.dpl.compiling.exports import ExportType
from coprlake.dpl.pattern import Pattern, compile_pattern
from coprlake.errors import UsageError
from coprlake.language.functions.array_functions import array_function
from coprlake.language.functions.registry import Function
from coprlake.language.plan import Apply
from coprlake.language.relabeling import relabeled
from coprlake.language.sql.dialect import Dialect
from coprlake.language.types import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    IP,
    LONG,
    LOOSE,
    MAP,
    STRING,
    TIMESTAMP,
    Type,
    array,
    carried_type,
    record,
)

_KINDS: Final = {
    "string": STRING,
    "long": LONG,
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "ip": IP,
    "timestamp": TIMESTAMP,
    "duration": DURATION,
    "json": LOOSE,
    "map": MAP,
}


@dataclass(frozen=True, eq=False)
class ParseFunction(Function):
    """`parse` with a pattern, and the record type that it returns."""

    record: Type = STRING


@lru_cache(maxsize=256)
def parse_function(text: str) -> ParseFunction:
    """A function that takes a text and returns a record of the pattern's exports.

    Raises:
        PatternError: the pattern is not valid.
        UsageError: the pattern exports nothing.
    """
    pattern = compile_pattern(text)
    if not pattern.exports:
        raise UsageError("the pattern names no value; write WORD:user, for example, to get a field user")
    kind = type_of(pattern)

    def sql(d: Dialect, node: Apply, args: Sequence[Any]) -> exp.Expression:
        return d.apply(array_function(parse, (pa.string(),), carried_type(kind), pattern=text), args[0])

    return ParseFunction("parse", "", "parse", "", sql, (), lambda types: kind, record=kind)


def parse(texts: pa.Array, pattern: str = "") -> pa.Array:
    """The exports of a pattern for each text, in the engines' representation."""
    compiled = compile_pattern(pattern)
    return relabeled(dpl.parse(compiled, texts), carried_type(type_of(compiled)))


def type_of(pattern: Pattern) -> Type:
    """The record type of a pattern's exports."""
    return record(tuple((export.name, _type(export.type)) for export in pattern.exports))


def _type(kind: ExportType) -> Type:
    if kind.of is not None:
        return array(_type(kind.of))
    if kind.kind == "record":
        return record(tuple((name, _type(member)) for name, member in kind.fields))
    return _KINDS[kind.kind]
