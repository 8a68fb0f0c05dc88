"""The functions that build predicates: ``contains("refused") & ~equals("loglevel", "debug")``.

Each function returns the predicate it is named after; `predicates.py` defines what each one means. Without a field, a
predicate on text looks at every value of a record, as a plain search does; ``field="content"`` narrows it.
"""

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from coprlake.predicate.patterns.regex import check_pattern
from coprlake.predicate.predicates import (
    ANY_VALUE,
    And,
    Compare,
    Contains,
    Equals,
    Exists,
    OneOf,
    Operator,
    Or,
    Phrase,
    Predicate,
    Prefix,
    Regex,
    Suffix,
    Term,
    Value,
    Wildcard,
)
from coprlake.sketch import algebra


def contains(text: str, field: str = ANY_VALUE, *, case_sensitive: bool = False) -> Contains:
    """The value contains the text; every value that is not null contains the empty text."""
    return Contains(text, field, case_sensitive)


def term(text: str, field: str = ANY_VALUE, *, case_sensitive: bool = False) -> Term:
    """The value contains the text as a whole term."""
    return Term(text, field, case_sensitive)


def phrase(text: str, field: str = ANY_VALUE, *, case_sensitive: bool = False) -> Phrase:
    """The value contains the text without cutting a word in two; ``*`` at an end lifts that condition there."""
    return Phrase(text, field, case_sensitive)


def prefix(text: str, field: str = ANY_VALUE, *, case_sensitive: bool = False) -> Prefix:
    """The value begins with the text."""
    return Prefix(text, field, case_sensitive)


def suffix(text: str, field: str = ANY_VALUE, *, case_sensitive: bool = False) -> Suffix:
    """The value ends with the text."""
    return Suffix(text, field, case_sensitive)


def wildcard(pattern: str, field: str = ANY_VALUE, *, case_sensitive: bool = False) -> Wildcard:
    """The value contains a match of the pattern, in which ``*`` and ``?`` are wildcards."""
    return Wildcard(pattern, field, case_sensitive)


def regex(pattern: str, field: str = ANY_VALUE, *, case_sensitive: bool = False) -> Regex:
    r"""The regular expression (RE2) matches somewhere in a line of the value.

    ``^`` and ``$`` match at each line. Only a pattern that names ``\n`` or uses ``(?s)`` can match across lines.

    Raises:
        UsageError: RE2 rejects the expression; the message says where.
    """
    predicate = Regex(pattern, field, case_sensitive)
    check_pattern(pattern)
    return predicate


def equals(field: str, value: Value, *, case_sensitive: bool = False) -> Equals:
    """The whole value equals this one."""
    return Equals(field, value, case_sensitive)


def one_of(field: str, values: Iterable[Value], *, case_sensitive: bool = False) -> OneOf:
    """The whole value equals one of these."""
    return OneOf(field, (values,) if isinstance(values, str) else tuple(values), case_sensitive)


def exists(field: str) -> Exists:
    """The field has a value."""
    return Exists(field)


def compare(field: str, operator: Operator, value: Value) -> Compare:
    """Compare the value with this one; the operator is one of ``< <= > >=``."""
    return Compare(field, operator, value)


def less_than(field: str, value: Value) -> Compare:
    """The field's value is less than this one."""
    return Compare(field, "<", value)


def at_most(field: str, value: Value) -> Compare:
    """The field's value is at most this one."""
    return Compare(field, "<=", value)


def more_than(field: str, value: Value) -> Compare:
    """The field's value is more than this one."""
    return Compare(field, ">", value)


def at_least(field: str, value: Value) -> Compare:
    """The field's value is at least this one."""
    return Compare(field, ">=", value)


def all_of(*predicates: Predicate) -> And:
    """All of the predicates hold; without any, that is everything."""
    return _of_tokens(algebra.batches_in_all, predicates) or And(predicates)


def any_of(*predicates: Predicate) -> Or:
    """At least one of the predicates holds; without any, that is nothing."""
    return _of_tokens(algebra.batches_in_any, predicates) or Or(predicates)


def _of_tokens(combine: Callable[..., algebra.Expression], parts: tuple[Any, ...]) -> Any:
    """What `all_of` and `any_of` made of tokens, which they took in earlier builds; None for predicates."""
    if not any(isinstance(part, algebra.Token | algebra.And | algebra.Or) for part in parts):
        return None
    old = "all_of" if combine is algebra.batches_in_all else "any_of"
    warnings.warn(f"{old} of tokens is deprecated, use {combine.__name__}", DeprecationWarning, stacklevel=3)
    return combine(*parts)
