"""Functions: their signatures, their entries in the reference and their SQL.

A signature is parsed from the text that the reference shows: ``contains(text: string, part: string, caseSensitive:
const boolean = true) -> boolean``. ``const`` requires a constant, ``...`` allows any number of arguments, ``|``
separates kinds, ``T`` means the same type wherever it occurs, ``number`` means long or double. An argument with
``= value`` is optional, and is usually given by name.
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
    """A parameter of a function.

    Attributes:
        name: its name, for named arguments.
        kinds: the kinds that it accepts; ``any`` and ``T`` accept all.
        is_constant: whether it must be a constant.
        is_variadic: whether it takes any number of arguments.
        default: its default value.
    """

    name: str
    kinds: tuple[str, ...]
    is_constant: bool = False
    is_variadic: bool = False
    default: Any = REQUIRED

    @property
    def is_optional(self) -> bool:
        """Whether it can be omitted."""
        return self.default is not REQUIRED


@dataclass(frozen=True)
class Example:
    """A query and the rows it returns, for the reference."""

    query: str
    rows: tuple[dict[str, Any], ...]


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the language.

    Attributes:
        name: its name; case does not matter.
        group: the section of the reference.
        signature: as the reference shows it.
        doc: its description in the reference.
        sql: translates it to SQL; see `Lowering`.
        parameters: read from the signature.
        result: read from the signature, or a function of the arguments' types.
        is_aggregate: whether it aggregates records.
        examples: run by the tests on both engines.
        checks: for a parameter, a function that raises UsageError for an invalid constant.
        result_of: the type of the result, if the types of the arguments do not determine it.
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
        """The type of the result for these arguments; None if they are not compatible."""
        if self.result_of is not None:
            return self.result_of(arguments)
        return self.result_type([None if argument is None else argument.type for argument in arguments])

    def result_type(self, types: Sequence[Type | None]) -> Type | None:
        """The type of the result for arguments of these types; None if they are not compatible."""
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
"""All functions, by their names in lower case."""


def named_type(text: str) -> Type:
    """The type with this name in signatures; a plain ``array`` has elements of type null."""
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
    """Register a function; the decorated function translates it to SQL.

    Args:
        signature: see the module's docstring.
        doc: one or two sentences for the reference.
        group: the section of the reference.
        example: a query for the reference and the tests.
        gives: the rows that it returns, as dicts; times in ISO format, durations in nanoseconds.
        result: the type of the result, if the signature cannot express it.
        result_of: the same, if it depends on constants.
        checks: for a parameter, a function that raises UsageError for an invalid constant.
        aggregate: whether it aggregates records.
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
    """A function that queries cannot name: an operator, or a function that the compiler inserts.

    Without `result`, the result has the type of the first argument.
    """
    return Function(name, "", name, "", sql, (), lambda types: result or types[0])
