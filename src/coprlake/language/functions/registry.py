"""What a function is: its signature, its page entry with an example, and its SQL.

A signature is written as in the reference and read from there: ``contains(text: string, part: string, caseSensitive:
const boolean = true) -> boolean``. ``const`` asks for a constant, ``...`` for any number of arguments, ``|`` separates
kinds, ``T`` stands for one type that is the same at every place, ``number`` for long or double. An argument with
``= value`` may be left out, and is usually given by its name.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from coprlake.language.plan import Apply, Expr
from coprlake.language.types import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    IP,
    LONG,
    NULL,
    STRING,
    TIMEFRAME,
    TIMESTAMP,
    Type,
    array,
    common_type,
    tight,
)

if TYPE_CHECKING:
    from sqlglot import exp

    from coprlake.language.sql.dialect import Dialect

    Lowering: TypeAlias = Callable[["Dialect", Apply, Sequence[Any]], "exp.Expression"]
    Check: TypeAlias = Callable[[Any], object]

REQUIRED: Final = object()
_NAMED: Final = {
    "null": NULL,
    "boolean": BOOLEAN,
    "long": LONG,
    "double": DOUBLE,
    "string": STRING,
    "timestamp": TIMESTAMP,
    "duration": DURATION,
    "ip": IP,
    "timeframe": TIMEFRAME,
}
_SIGNATURE = re.compile(r"(\w+)\((.*)\) -> (.+)")
_PARAMETER = re.compile(r"(\w+)(?:: (const )?([\w|<>]+))?(\.\.\.)?(?: = (.+))?")


@dataclass(frozen=True)
class Parameter:
    """One argument of a function.

    Attributes:
        name: by which it may be given.
        kinds: what it may be; ``any`` and ``T`` for everything.
        is_constant: whether it has to be known before the query runs.
        is_variadic: whether any number may be given.
        default: what it is if not given.
    """

    name: str
    kinds: tuple[str, ...]
    is_constant: bool = False
    is_variadic: bool = False
    default: Any = REQUIRED

    @property
    def is_optional(self) -> bool:
        """Whether it may be left out."""
        return self.default is not REQUIRED


@dataclass(frozen=True)
class Example:
    """A query and the rows it gives, as in the reference."""

    query: str
    rows: tuple[dict[str, Any], ...]


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the language.

    Attributes:
        name: as it is written; case does not matter.
        group: the page of the reference.
        signature: as the reference shows it.
        doc: what it gives.
        sql: how to say it; see `Lowering`.
        parameters: read from the signature.
        result: read from the signature, or a function of the arguments' types.
        is_aggregate: whether it is over many records.
        examples: run by the tests on both engines.
        checks: by parameter, what raises a UsageError for a constant that it cannot be.
        result_of: the type of the result, where the arguments' types do not tell it.
    """

    name: str
    group: str
    signature: str
    doc: str
    sql: "Lowering"
    parameters: tuple[Parameter, ...]
    result: str | Callable[[Sequence[Type | None]], Type | None]
    is_aggregate: bool = False
    examples: tuple[Example, ...] = field(default=())
    checks: "Mapping[str, Check]" = field(default_factory=dict)
    result_of: Callable[[Sequence[Expr | None]], Type | None] | None = None

    def type_for(self, arguments: Sequence[Expr | None]) -> Type | None:
        """Of the result, for these arguments; None if they do not go together."""
        if self.result_of is not None:
            return self.result_of(arguments)
        return self.result_type([None if argument is None else argument.type for argument in arguments])

    def result_type(self, types: Sequence[Type | None]) -> Type | None:
        """Of the result, for arguments of these types; None if they do not go together."""
        if callable(self.result):
            return self.result(types)
        if "T" not in self.result:
            return named_type(self.result)
        shared: Type | None = NULL
        for parameter, kind in zip(self.for_each(len(types)), types, strict=True):
            if kind is not None and "T" in parameter.kinds:
                shared = None if shared is None else common_type(shared, tight(kind))
        if shared is None:
            return None
        return array(shared) if self.result == "array<T>" else shared

    def for_each(self, count: int) -> list[Parameter]:
        """The parameter of each of `count` arguments."""
        given = list(self.parameters)
        at = next((i for i, parameter in enumerate(given) if parameter.is_variadic), None)
        if at is not None:
            given[at : at + 1] = [given[at]] * (count - len(given) + 1)
        return given


FUNCTIONS: Final[dict[str, Function]] = {}
"""All functions, by their name in lower case."""


def named_type(text: str) -> Type:
    """The type that a signature calls so; an array of which nothing is known has null in it."""
    if text == "array":
        return array(NULL)
    if text.startswith("array<"):
        return array(named_type(text[6:-1]))
    return _NAMED[text]


def function(
    signature: str,
    doc: str,
    *,
    group: str,
    example: str = "",
    gives: Sequence[dict[str, Any]] = (),
    result: Callable[[Sequence[Type | None]], Type | None] | None = None,
    result_of: Callable[[Sequence[Expr | None]], Type | None] | None = None,
    checks: "Mapping[str, Check] | None" = None,
    aggregate: bool = False,
) -> Callable[["Lowering"], "Lowering"]:
    """Put a function into the language; what is decorated says it in SQL.

    Args:
        signature: see above.
        doc: one or two sentences for the reference.
        group: the section of the reference.
        example: a query, with the rows that it `gives`.
        gives: rows as dicts; times as ISO texts, durations as nanoseconds.
        result: the type of the result, where the signature cannot tell.
        result_of: the same, where it depends on constants.
        checks: by parameter, what raises a UsageError for a bad constant.
        aggregate: whether it is over many records.
    """

    def put(sql: "Lowering") -> "Lowering":
        name, parameters, returns = _SIGNATURE.fullmatch(signature).groups()  # type: ignore[union-attr]
        FUNCTIONS[name.lower()] = Function(
            name,
            group,
            signature,
            doc,
            sql,
            tuple(_parameter(text) for text in re.split(r", (?=\w+(?::|\.\.\.|$| =))", parameters) if text),
            result or returns,
            aggregate,
            (Example(example, tuple(gives)),) if example else (),
            checks or {},
            result_of,
        )
        return sql

    return put


def _parameter(text: str) -> Parameter:
    name, constant, kinds, variadic, default = _PARAMETER.fullmatch(text).groups()  # type: ignore[union-attr]
    value = REQUIRED
    if default is not None:
        value = {"true": True, "false": False, "null": None}.get(default, default.strip('"'))
        value = int(value) if isinstance(value, str) and value.isdigit() else value
    return Parameter(name, tuple((kinds or "any").split("|")), bool(constant), bool(variadic), value)


def internal(name: str, sql: "Lowering", result: Type | None = None) -> Function:
    """A function that queries cannot name: an operator, or something that the compiler needs.

    Without a type of its own, the result is of the first argument's.
    """
    return Function(name, "", name, "", sql, (), lambda types: result or types[0])
