"""Predicates: conditions on a record, as plain data that combines with ``&``, ``|`` and ``~``.

A record matches or it does not; there is no third answer. A value that is missing (null) matches nothing, so ``~``
matches it. The field of a predicate is a column or a key of the attributes. If a row has both, the column counts unless
it is null; but the columns that every table has (timestamp, source, loglevel, content) are never looked up among the
attributes, because then every search of the log line would have to read them. A field may also be a path into a struct,
a list or a map (`coprlake.predicate.paths`); if a field holds several values, a predicate holds if it holds for one of
them. `ALL_FIELDS` means any text of the row: the predicate holds if it holds for a string column, an attribute, or text
inside another column, at any depth. Map keys are names, not text. `ANY_VALUE` is what a plain search looks at: every
value of the record at any depth, with numbers and booleans as they are written, but not its times, source and level
(`coprlake.predicate.deciding.record_values`).

Text is matched as UTF-8 bytes. By default matching ignores the case of ASCII letters, and of no others.
Predicates on text hold only for text: a column of numbers contains nothing, except as a part of `ANY_VALUE`. Every
value that is not null contains the empty text.
"""

import json
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, Literal, TypeAlias, cast, get_args

from coprlake.errors import UsageError
from coprlake.records import CONTENT

ALL_FIELDS: Final = "*"
ANY_VALUE: Final = "any value\ud800"
"""A half of a surrogate pair cannot be stored as UTF-8, so no field has this name; it is shown without it."""

Value: TypeAlias = str | int | float | bool | datetime | date
Operator: TypeAlias = Literal["<", "<=", ">", ">="]

_SHOWN_VALUES: Final = 5
_ANY_VALUE_SHOWN: Final = "any value"


class Combinable:
    """The operators that all predicates share."""

    __slots__ = ()

    def __and__(self, other: "Predicate") -> "And":
        return And((*_parts(self, And), *_parts(other, And)))

    def __or__(self, other: "Predicate") -> "Or":
        return Or((*_parts(self, Or), *_parts(other, Or)))

    def __invert__(self) -> "Not":
        return Not(_checked(self))

    def __bool__(self) -> bool:
        raise UsageError("a predicate is neither true nor false; combine predicates by &, | and ~, not by and, or, not")


def _checked(predicate: object) -> "Predicate":
    if not isinstance(predicate, Combinable):
        raise UsageError(f"expected a predicate, found {predicate!r}")
    return cast("Predicate", predicate)


def _parts(predicate: object, kind: type["And"] | type["Or"]) -> tuple["Predicate", ...]:
    """The parts that this predicate adds to an `And` or `Or`, so that both stay flat."""
    return predicate.parts if isinstance(predicate, kind) else (_checked(predicate),)


def _check_parts(parts: object) -> None:
    if not isinstance(parts, tuple):
        raise UsageError(f"expected a tuple of predicates, found {parts!r}")
    for part in parts:
        _checked(part)


def _check_field(field: object) -> None:
    if not isinstance(field, str) or not field:
        raise UsageError(f"expected the name of a field, found {field!r}")


def _check_value(field: str, value: object) -> None:
    if value is None:
        raise UsageError(f"nothing equals a missing value; use ~exists({field!r})")
    if not isinstance(value, get_args(Value)):
        raise UsageError(
            f"{shown_field(field)} cannot be compared with a {type(value).__name__}; "
            "expected text, a number, a bool or a time"
        )


def _shown(value: object) -> str:
    """The value as a user would write it."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


def shown_field(field: str) -> str:
    """The field as a message shows it; one that a user called ``any value`` is in quotes."""
    if field == ANY_VALUE:
        return _ANY_VALUE_SHOWN
    return f'"{field}"' if field == _ANY_VALUE_SHOWN else field


def _call(name: str, field: str, *values: str, case_sensitive: bool = False) -> str:
    return f"{name}({', '.join((shown_field(field), *values, *(['case_sensitive'] * case_sensitive)))})"


@dataclass(frozen=True, slots=True)
class _Text(Combinable):
    """A predicate that looks for a text in a field."""

    text: str
    field: str = CONTENT
    case_sensitive: bool = False

    def __post_init__(self) -> None:
        if type(self.text) is not str:
            raise UsageError(f"expected a text to look for, found {self.text!r}")
        _check_field(self.field)

    def __str__(self) -> str:
        return _call(type(self).__name__.lower(), self.field, _shown(self.text), case_sensitive=self.case_sensitive)


class Contains(_Text):
    """The value contains the text."""

    __slots__ = ()


class Term(_Text):
    """The value contains the text as a whole term.

    The neighbouring characters belong to other classes than its own first and last character. The classes are letters
    and digits, other printable ASCII, space and control characters, and everything that is not ASCII.
    """

    __slots__ = ()


class Phrase(_Text):
    """The value contains the text without cutting a word in two, like ``matchesPhrase``.

    Words consist of ``[A-Za-z0-9_]``. If the phrase starts (ends) with such a character, no such character may come
    before (after) it. A ``*`` at the start (end) is not searched for; it turns this check off.
    """

    __slots__ = ()


class Prefix(_Text):
    """The value begins with the text."""

    __slots__ = ()


class Suffix(_Text):
    """The value ends with the text."""

    __slots__ = ()


class Wildcard(_Text):
    r"""The value contains a match of the pattern.

    ``*`` is any run of characters, ``?`` one character, both without line breaks; ``\*``, ``\?`` and ``\\`` are the
    characters themselves, as are other backslashes. Where the pattern does not end in ``*``, the match ends a term, as
    in `Term`; for ``?`` the class is that of the character it matched.
    """

    __slots__ = ()

    @property
    def pattern(self) -> str:
        """The text, under the name that suits this predicate."""
        return self.text


class Regex(_Text):
    r"""The regular expression, in the syntax of RE2, matches somewhere in a line of the value.

    ``^`` and ``$`` match at each line, ``\A`` and ``\z`` at the ends of the value. A match is within one line, so
    ``.``, ``\s`` and ``[^x]`` do not match a line feed, unless the pattern names one (``\n``) or uses ``(?s)``.
    Without `case_sensitive` it matches as if it started with ``(?i)``, but only for ASCII letters.
    """

    __slots__ = ()

    @property
    def pattern(self) -> str:
        """The text, by the name it has here."""
        return self.text


@dataclass(frozen=True, slots=True)
class Equals(Combinable):
    """The whole value equals this one.

    A typed column is compared by its type: ``"404"`` equals 404 in a column of numbers. A text column is compared
    with the value written as text: ``404`` as ``"404"``, ``True`` as ``"true"``.
    """

    field: str
    value: Value
    case_sensitive: bool = False

    def __post_init__(self) -> None:
        _check_field(self.field)
        _check_value(self.field, self.value)

    def __str__(self) -> str:
        return _call("equals", self.field, _shown(self.value), case_sensitive=self.case_sensitive)


@dataclass(frozen=True, slots=True)
class OneOf(Combinable):
    """The whole value equals one of these, as in `Equals`."""

    field: str
    values: tuple[Value, ...]
    case_sensitive: bool = False

    def __post_init__(self) -> None:
        _check_field(self.field)
        if not isinstance(self.values, tuple):
            raise UsageError(f"expected a tuple of values for {shown_field(self.field)}, found {self.values!r}")
        for value in self.values:
            _check_value(self.field, value)

    def __str__(self) -> str:
        shown = [_shown(value) for value in self.values[:_SHOWN_VALUES]]
        more = len(self.values) - len(shown)
        return _call("one_of", self.field, *shown, *([f"{more} more"] * (more > 0)), case_sensitive=self.case_sensitive)


@dataclass(frozen=True, slots=True)
class Compare(Combinable):
    """The value is less (or more) than this one, by the type of the column.

    Text is compared with text byte by byte, including case, and with a number by the number it spells, if it spells
    one. Values that cannot be compared, such as a number and a time, do not match.
    """

    field: str
    operator: Operator
    value: Value

    def __post_init__(self) -> None:
        _check_field(self.field)
        _check_value(self.field, self.value)
        if self.operator not in get_args(Operator):
            raise UsageError(f"expected one of {', '.join(get_args(Operator))}, found {self.operator!r}")

    def __str__(self) -> str:
        return f"{shown_field(self.field)} {self.operator} {_shown(self.value)}"


@dataclass(frozen=True, slots=True)
class Exists(Combinable):
    """The field has a value."""

    field: str

    def __post_init__(self) -> None:
        _check_field(self.field)

    def __str__(self) -> str:
        return _call("exists", self.field)


@dataclass(frozen=True, slots=True)
class And(Combinable):
    """All parts match; without parts, every record matches."""

    parts: tuple["Predicate", ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)

    def __str__(self) -> str:
        return f"and({', '.join(map(str, self.parts))})" if self.parts else "everything"


@dataclass(frozen=True, slots=True)
class Or(Combinable):
    """At least one part matches; without parts, no record matches."""

    parts: tuple["Predicate", ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)

    def __str__(self) -> str:
        return f"or({', '.join(map(str, self.parts))})" if self.parts else "nothing"


@dataclass(frozen=True, slots=True)
class Not(Combinable):
    """The part does not match, for example because its field is missing."""

    part: "Predicate"

    def __post_init__(self) -> None:
        _checked(self.part)

    def __str__(self) -> str:
        return f"not({self.part})"


TextPredicate: TypeAlias = Contains | Term | Phrase | Prefix | Suffix | Wildcard | Regex
Leaf: TypeAlias = TextPredicate | Equals | OneOf | Compare | Exists
Predicate: TypeAlias = Leaf | And | Or | Not

EVERYTHING: Final = And(())
NOTHING: Final = Or(())
