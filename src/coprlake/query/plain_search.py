"""From the text of a plain search to a predicate, with the fields that a table has.

``name:value`` is a condition if the table has a field of that name; otherwise it is text, as ``12:34:56`` and
``10.0.0.1:8080`` are. A name that is nearly that of a field is told, since it may be a typo.
"""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final, cast

import pyarrow as pa

from coprlake.config import LEVELS, OTHER_LEVEL_NAMES
from coprlake.errors import UsageError
from coprlake.predicate.paths import path_of, plain_type
from coprlake.predicate.plain_syntax import STAR, Item, Parts, has_open_quote, parse
from coprlake.predicate.plain_syntax import Value as Sought
from coprlake.predicate.predicates import (
    ANY_VALUE,
    And,
    Combinable,
    Compare,
    Contains,
    Equals,
    Exists,
    Not,
    OneOf,
    Operator,
    Or,
    Predicate,
    Regex,
    Value,
)
from coprlake.query.doubts import known_fields, warn_caller
from coprlake.query.planning import View
from coprlake.records import CONTENT, LOGLEVEL
from coprlake.text.nearest_words import nearest
from coprlake.text.text_types import is_text_or_bytes

_LEVEL: Final = "level"
_WORD: Final = re.compile(r'[^\s"*\\:-][^\s"*\\:]*')
"""A search for one word, which is nothing but text; most of those that programs make."""
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}.*", re.DOTALL)
_INTEGER_DIGITS: Final = 20  # of the largest unsigned integer of 64 bits
_FLOAT_DIGITS: Final = sys.float_info.max_10_exp + 1


@dataclass(frozen=True)
class TableFields:
    """The fields of a table.

    Attributes:
        schema: its columns.
        keys: the keys of attributes that occur in it.
        complete: whether no other keys can occur.
    """

    schema: pa.Schema
    keys: frozenset[str]
    complete: bool

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all fields."""
        return self.keys | frozenset(self.schema.names)

    def named(self, name: str) -> str | None:
        """The field that a user means by this name: exact, in another case, or a path; None if there is none."""
        if name in self.names or path_of(name, self.schema) is not None:
            return name
        similar = [other for other in self.names if other.casefold() == name.casefold()]
        if len(similar) == 1:
            return similar[0]
        return LOGLEVEL if name.casefold() == _LEVEL and LOGLEVEL in self.names else None


NO_FIELDS: Final = TableFields(pa.schema([]), frozenset(), complete=True)


def fields_of(view: View) -> TableFields:
    """The fields of a table, as its indexes list them."""
    schema, known = view.snapshot.schema, known_fields(view)
    return TableFields(schema, (known.texts | known.others).difference(schema.names), known.is_complete)


@dataclass(frozen=True)
class PlainSearch:
    """What a plain search means, and what its user should know about how it was read."""

    predicate: Predicate
    notes: tuple[str, ...]


def predicate_for(sought: Predicate | str, view: Callable[[], View]) -> Predicate:
    """What `Table.search` was given: a predicate, or the text of a plain search.

    Raises:
        UsageError: it is something else.
    """
    if isinstance(sought, Combinable):
        return sought
    if not isinstance(sought, str):
        raise UsageError(f"expected a predicate or a text to search for, found {sought!r}")
    if _WORD.fullmatch(sought):
        return Contains(sought, ANY_VALUE)
    found = plain_search(sought, lambda: fields_of(view()))
    warn_caller(found.notes)
    return found.predicate


def plain_search(
    text: str,
    fields: Callable[[], TableFields],
    *,
    within: Sequence[str] = (ANY_VALUE,),
    case_sensitive: bool = False,
) -> PlainSearch:
    """The predicate of a plain search.

    Args:
        text: see `coprlake.predicate.plain_syntax`.
        fields: the fields of the table; called only for searches that may name one.
        within: the fields in which words and phrases are looked for.
        case_sensitive: whether the case of ASCII letters matters.

    Raises:
        UsageError: a field cannot be compared with the value.
    """
    reader = _Reader(fields, tuple(within), case_sensitive)
    parts = [reader.predicate(item) for item in parse(text)]
    if has_open_quote(text):
        reader.notes.append('a quote is not closed, so it is searched for as it is; write \\" if that is meant')
    return PlainSearch(parts[0] if len(parts) == 1 else And(tuple(parts)), tuple(dict.fromkeys(reader.notes)))


def typed_value(text: str) -> Value:
    """The value that a condition compares with: a number or a time if it looks like one, otherwise text."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return float(text) if re.search("[.eE]", text) else int(text)
    if _DATE.fullmatch(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return text
    return text


def level_names(level: str) -> list[str]:
    """List all names of a level; with a ``+`` at the end, those of more severe levels too."""
    name = level.rstrip("+").upper()
    known = OTHER_LEVEL_NAMES.get(name, name)
    if level.endswith("+") and known in LEVELS:
        chosen = {*LEVELS[LEVELS.index(known) :]}
        return [*sorted(chosen), *(other for other, meant in OTHER_LEVEL_NAMES.items() if meant in chosen)]
    return [known, *(other for other, meant in OTHER_LEVEL_NAMES.items() if meant == known)]


def whole_value(field: str, parts: Parts, *, case_sensitive: bool) -> Predicate:
    """The whole value of the field, with any characters for each wildcard."""
    if STAR not in parts:
        return Equals(field, "".join(part or "" for part in parts), case_sensitive)
    return Regex(rf"(?s)\A{_pattern(parts, '.*')}\z", field, case_sensitive)


def _pattern(parts: Parts, star: str) -> str:
    return "".join(star if part is STAR else _literal(part) for part in parts)


def _literal(text: str) -> str:
    """The text as a regular expression; RE2 takes a backslash before ASCII punctuation alone."""
    return re.sub(r"[!-/:-@\[-`{-~]", lambda sign: "\\" + sign[0], text)


class _Reader:
    def __init__(self, fields: Callable[[], TableFields], within: tuple[str, ...], case_sensitive: bool) -> None:
        self._get_fields = fields
        self._within = within
        self._case_sensitive = case_sensitive
        self.notes: list[str] = []

    @cached_property
    def _fields(self) -> TableFields:
        return self._get_fields()

    def predicate(self, item: Item) -> Predicate:
        found: Predicate
        if item.name is None or item.as_text is None:
            found = self._anywhere(item.value.parts)
        else:
            field = self._fields.named(item.name)
            if field is None:
                self._tell_similar(item.name)
                found = self._anywhere(item.as_text.parts)
            else:
                found = self._condition(field, item.name, item.value)
        return Not(found) if item.is_negated else found

    def _anywhere(self, parts: Parts) -> Predicate:
        found = [self._in_field(parts, field) for field in self._within]
        return found[0] if len(found) == 1 else Or(tuple(found))

    def _in_field(self, parts: Parts, field: str) -> Predicate:
        """The field contains the text; wildcards at its ends change nothing. Numbers are compared, as by ``field:``."""
        if field not in (ANY_VALUE, CONTENT) and self._is_number(field):
            return self._condition(field, field, Sought(parts))
        own = list(parts)
        while len(own) > 1 and own[0] is STAR:
            del own[0]
        while len(own) > 1 and own[-1] is STAR:
            del own[-1]
        if own == [STAR]:
            return Contains("", field, self._case_sensitive)
        if len(own) == 1:
            return Contains(cast("str", own[0]), field, self._case_sensitive)
        return Regex(_pattern(tuple(own), "[^\\n\\r]*?"), field, self._case_sensitive)

    def _condition(self, field: str, name: str, value: Sought) -> Predicate:
        text = value.text
        if value.comparison and text is not None:
            return Compare(field, cast("Operator", value.comparison), typed_value(text))
        if value.parts == (STAR,):
            return Exists(field)
        if field == CONTENT:
            return self._in_field(value.parts, CONTENT)
        if name.casefold() in (LOGLEVEL, _LEVEL) and LOGLEVEL in self._fields.names and text is not None:
            own = OneOf(LOGLEVEL, tuple(dict.fromkeys(level_names(text))))
            return own if field == LOGLEVEL else Or((own, Equals(field, text, self._case_sensitive)))
        if text is None and self._is_number(field):
            return _beginning(field, name, value.parts, _most_digits(self._fields.schema.field(field).type))
        return whole_value(field, value.parts, case_sensitive=self._case_sensitive)

    def _is_number(self, field: str) -> bool:
        schema = self._fields.schema
        if field not in schema.names:
            return False
        kind = plain_type(schema.field(field).type)
        return not is_text_or_bytes(kind) and not pa.types.is_nested(kind)

    def _tell_similar(self, name: str) -> None:
        found = nearest(name, [*sorted(self._fields.names), _LEVEL])
        if found is not None:
            self.notes.append(
                f"the table has no field {name}, so {name}: is searched for as text; did you mean {found}:?"
            )


def _most_digits(kind: pa.DataType) -> int:
    """How many digits a number of the type may have before its point."""
    kind = plain_type(kind)
    if pa.types.is_decimal(kind):
        return int(kind.precision)
    return _FLOAT_DIGITS if pa.types.is_floating(kind) else _INTEGER_DIGITS


def _beginning(field: str, name: str, parts: Parts, most_digits: int) -> Predicate:
    """Numbers that begin with these digits: 5* is 5, 50 to 59, 500 to 599, and so on."""
    if len(parts) != 2 or parts[1] is not STAR or not re.fullmatch("[1-9][0-9]*", parts[0] or ""):
        raise UsageError(
            f"{name} is a number; compare it with {name}:>=500, or look for its first digits with {name}:5*"
        )
    digits = str(parts[0])
    ranges: list[Predicate] = []
    for more in range(most_digits - len(digits) + 1):
        scale = 10**more
        first, last = int(digits) * scale, (int(digits) + 1) * scale
        ranges.append(And((Compare(field, ">=", first), Compare(field, "<", last))))
    return Or(tuple(ranges))
