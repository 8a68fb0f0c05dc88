"""Hypothesis strategies for rows and predicates.

Values are made of few pieces, and most search terms come from the rows themselves, so that searches match. Each comment
says why a case must be among the samples.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st

from coprlake.predicate.predicates import (
    ALL_FIELDS,
    ANY_VALUE,
    And,
    Compare,
    Contains,
    Equals,
    Exists,
    Not,
    OneOf,
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
from coprlake.records import ATTRIBUTES, CONTENT, LOGLEVEL, SCHEMA, SOURCE, TIMESTAMP
from coprlake.testing.strategies import text_lines

Row: TypeAlias = dict[str, Any]

USERAPP, STATUS, REGION = "userapp", "status", "region"
ROW_SCHEMA = pa.schema([*SCHEMA, (USERAPP, pa.string()), (STATUS, pa.int64())])
"""Adds a text and a number column that may also be attributes; the region is only an attribute."""
TEXT_FIELDS = (CONTENT, SOURCE, LOGLEVEL, USERAPP, REGION)

_START = datetime(2024, 6, 1, tzinfo=UTC)
_MOMENTS = st.sampled_from([_START + timedelta(microseconds=n) for n in (-1, 0, 1, 86_400 * 10**6)])
_NUMBERS = st.sampled_from([-1, 0, 2, 404, 2**63 - 1])
_SHORT = st.sampled_from(["", "a", "A", "ab", "Ab-1", "a b", "404", "4e2", "+2", "true", "ä", "_a"])
# \u212a and \u017f fold to k and s in Unicode, but not here; \u00e4 and \u00c4 stay two letters as well.
_TEXTS = st.one_of(text_lines(max_pieces=5), _SHORT, st.sampled_from(["\u212as", "k\u017f", "ks", "K S", "a\r\nb"]))


def rows() -> st.SearchStrategy[Row]:
    """Rows with every column, any of them null; attributes may be hidden by a column, null or duplicated."""
    # LOGLEVEL is a column of every table, so this key is never found among the attributes.
    keys = st.sampled_from([USERAPP, REGION, STATUS, LOGLEVEL, "other"])
    pairs = st.lists(st.tuples(keys, st.none() | _TEXTS), max_size=3)
    plain = st.fixed_dictionaries(
        {
            TIMESTAMP: st.none() | _MOMENTS,
            SOURCE: st.none() | _SHORT,
            LOGLEVEL: st.none() | st.sampled_from(["INFO", "info", "warn"]),
            CONTENT: st.none() | _TEXTS,
            ATTRIBUTES: st.none() | pairs,
            USERAPP: st.none() | _TEXTS,
            STATUS: st.none() | _NUMBERS,
        }
    )
    return st.builds(_with_value_in_content, plain, st.none() | st.tuples(_AROUND, _AROUND))


_AROUND = st.sampled_from(["", " ", "a", "1", "-", "...", "ä", "="])


def _with_value_in_content(row: Row, around: tuple[str, str] | None) -> Row:
    """A row whose content has the value of another field inside, perhaps in the middle of a word."""
    if around is None or row[USERAPP] is None:
        return row
    return row | {CONTENT: f"{around[0]}{row[USERAPP]}{around[1]}"}


def values() -> st.SearchStrategy[Value]:
    """Values to compare a field with, of its type or another."""
    # A fraction between two integers, a number that no column has, text that spells a number or time, or part of one.
    numbers = st.sampled_from([404, 404.0, 0.5, -0.5, 2**64, 1e300, float("inf"), float("nan"), True])
    texts = st.sampled_from(["404", "404.5", "4e2", "2024-06-01", "2024-06-01T00:00:00.000001Z", "true", "INFO", "x"])
    moments = st.sampled_from([_START, _START.replace(tzinfo=None), date(2024, 6, 1), date(2024, 6, 2)])
    return st.one_of(numbers, texts, moments, _MOMENTS, _NUMBERS, _SHORT)


@st.composite
def _pieces(draw: st.DrawFn, known: Sequence[str]) -> str:
    """Mostly a piece of a known text."""
    text = draw(st.sampled_from(known)) if known else ""
    start = draw(st.integers(0, len(text)))
    piece = text[start : draw(st.integers(start, len(text)))]
    change = draw(st.sampled_from(["", "", "", "case", "other"]))
    if change == "other":  # must work, too
        return draw(_TEXTS)
    return "".join(c.swapcase() if c.isascii() else c for c in piece) if change == "case" else piece


@st.composite
def _phrases(draw: st.DrawFn, known: Sequence[str]) -> str:
    """A star at an end is a wildcard; two are a wildcard and a literal star."""
    ends = st.sampled_from(["", "", "*", "**"])
    return draw(ends) + draw(_pieces(known)) + draw(ends)


@st.composite
def _wildcards(draw: st.DrawFn, known: Sequence[str]) -> str:
    """A piece with characters replaced by wildcards, also at its ends, where they create or open a border."""
    pattern = ""
    for character in draw(_pieces(known)):
        escaped = "\\" + character if character in "*?\\" else character
        pattern += draw(st.sampled_from([escaped, escaped, escaped, "*", "?", "\\" + character]))
    return draw(st.sampled_from(["", "*"])) + pattern + draw(st.sampled_from(["", "*"]))


@st.composite
def patterns(draw: st.DrawFn, known: Sequence[str] = ()) -> str:
    r"""Regular expressions that RE2 and Python read alike: a piece, with some characters generalized."""
    pattern = draw(st.sampled_from(["", "", "", "^", r"\b", r"(?:^|\s)", ".*", "(?s)"]))
    for character in draw(_pieces(known)):
        literal = (
            "\\" + character
            if character.isascii() and character.isprintable() and not character.isalnum()
            else character
        )
        kinds = [literal, literal, literal, ".", literal + "?", literal + "+", f"(?:{literal}|bc)", f"({literal}|)"]
        if character.isascii() and character.isalnum():
            kinds += [r"\w", f"[{character}x]", f"[^{character}]", "[a-c0-9]", f"{literal}{{1,2}}", "[^-x]*"]
        elif character.isspace():  # which stay within a line
            kinds += [r"\s", r"\W+", r"[\s,]", r"[^\w]", "$", r"\D"]
        pattern += draw(st.sampled_from(kinds))
    return pattern + draw(st.sampled_from(["", "", "", "$", r"\b", r"(?:\s|$)".replace("$", r"\b")]))


def text_predicates(known: Sequence[str]) -> st.SearchStrategy[Predicate]:
    """A predicate on text."""
    fields = st.sampled_from(
        [CONTENT, CONTENT, CONTENT, *TEXT_FIELDS, STATUS, "absent", ALL_FIELDS, ANY_VALUE, ANY_VALUE]
    )
    kinds: list[st.SearchStrategy[Predicate]] = [
        st.builds(kind, _pieces(known), fields, st.booleans()) for kind in (Contains, Term, Prefix, Suffix)
    ]
    kinds.append(st.builds(Phrase, _phrases(known), fields, st.booleans()))
    kinds.append(st.builds(Wildcard, _wildcards(known), fields, st.booleans()))
    kinds.append(st.builds(Regex, patterns(known), fields, st.booleans()))
    return st.one_of(kinds)


def value_predicates(known: Sequence[str]) -> st.SearchStrategy[Predicate]:
    """A predicate on a whole value."""
    fields = st.sampled_from(
        [*TEXT_FIELDS, STATUS, STATUS, TIMESTAMP, TIMESTAMP, ATTRIBUTES, "absent", ALL_FIELDS, ANY_VALUE]
    )
    some = values() | st.sampled_from(known) if known else values()
    operators = st.sampled_from(["<", "<=", ">", ">="])
    return st.one_of(
        st.builds(Equals, fields, some, st.booleans()),
        st.builds(OneOf, fields, st.lists(some, max_size=3).map(tuple), st.booleans()),
        st.builds(Compare, fields, operators, some),
        st.builds(Exists, fields),
    )


def predicates(known: Sequence[str] = (), max_leaves: int = 4) -> st.SearchStrategy[Predicate]:
    """Predicates of all kinds, nested, including empty And and Or; `known` is text from the rows."""

    def combined(parts: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        several = st.lists(parts, max_size=3).map(tuple)
        return st.one_of(st.builds(And, several), st.builds(Or, several), st.builds(Not, parts))

    leaves = st.one_of(text_predicates(known), text_predicates(known), value_predicates(known))
    return st.recursive(leaves, combined, max_leaves=max_leaves)


def texts_in(some_rows: Sequence[Row]) -> list[str]:
    """All text in the rows, to search for."""
    texts = [value for row in some_rows for value in row.values() if isinstance(value, str)]
    return texts + [value for row in some_rows for _, value in row[ATTRIBUTES] or () if value]


@st.composite
def searches_of_rows(draw: st.DrawFn, max_rows: int = 6) -> tuple[list[Row], Predicate]:
    """Rows, and a predicate that may match some of them."""
    some_rows = draw(st.lists(rows(), max_size=max_rows))
    return some_rows, draw(predicates(texts_in(some_rows)))
