"""The meaning of a predicate in plain Python: the oracle of every search.

A row is a dict of its columns; attributes are a dict or a list of pairs. Nothing here knows how matching or pruning
works.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

import pyarrow as pa

from coprlake.predicate.predicates import (
    ALL_FIELDS,
    ANY_VALUE,
    And,
    Compare,
    Contains,
    Equals,
    Exists,
    Leaf,
    Not,
    OneOf,
    Or,
    Phrase,
    Predicate,
    Prefix,
    Suffix,
    Term,
    TextPredicate,
    Wildcard,
)
from coprlake.records import ATTRIBUTES, DAY, HIDDEN, LOGLEVEL, SCHEMA, SOURCE, TIMESTAMP
from coprlake.testing.naive import class_of

_NOT_SEARCHED = (TIMESTAMP, SOURCE, LOGLEVEL, *HIDDEN)
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def matches(predicate: Predicate, row: Mapping[str, Any]) -> bool:
    """Whether the row matches."""
    if isinstance(predicate, And):
        return all(matches(part, row) for part in predicate.parts)
    if isinstance(predicate, Or):
        return any(matches(part, row) for part in predicate.parts)
    if isinstance(predicate, Not):
        return not matches(predicate.part, row)
    if isinstance(predicate, Exists) and any(value is not None for value in _reached_in(row, predicate.field)):
        return True  # even for a list without elements
    if predicate.field == ANY_VALUE:
        return any(accepts_written(predicate, value) for value in record_values(row))
    return any(_matches_value(predicate, value) for value in _values(row, predicate.field))


def record_values(row: Mapping[str, Any]) -> Iterator[Any]:
    """The values that a plain search looks at: all but times, the source and the level; a day only as text."""
    for name, value in row.items():
        if name == ATTRIBUTES and isinstance(value, Mapping | list):
            pairs = list(value.items() if isinstance(value, Mapping) else value)
            if _is_flat(pairs):
                yield from (item for key, item in pairs if _name(key) not in _NOT_SEARCHED and item is not None)
                continue
        if name in _NOT_SEARCHED or (name == DAY and not isinstance(value, str | bytes)):
            continue
        yield from (inner for inner in _inside(value) if not isinstance(inner, date | time | timedelta))


def accepts_written(predicate: Leaf, value: Any) -> bool:
    """Whether a leaf accepts a value; a predicate on text takes numbers and booleans as they are written."""
    if isinstance(value, str | bytes) or isinstance(predicate, Equals | OneOf | Compare | Exists):
        return _matches_value(predicate, value)
    return any(_matches_text(predicate, text) for text in _written(value))


def _written(value: Any) -> list[str]:
    if isinstance(value, bool):
        return [str(value).lower()]
    if isinstance(value, float):
        text = str(pa.scalar(value).cast(pa.string()))  # the shortest digits, with an exponent where Arrow has one
        return [text, f"{text}.0"] if re.fullmatch("-?[0-9]+", text) else [text]
    return [str(value)]


def _name(key: str | bytes) -> str:
    return key.decode("utf-8", "replace") if isinstance(key, bytes) else key


def _values(row: Mapping[str, Any], field: str) -> Iterator[Any]:
    """The values of the field in the row: one, any number if they are nested, or all values for all fields."""
    attributes = row.get(ATTRIBUTES)
    pairs = list(attributes.items() if isinstance(attributes, Mapping) else attributes or ())
    if field == ALL_FIELDS:
        columns = [value for name, value in row.items() if name != ATTRIBUTES or not _is_flat(pairs)]
        yield from (value for column in columns for value in _inside(column) if isinstance(value, str | bytes))
        yield from (value for _, value in pairs if _is_flat(pairs) and value is not None)
        return
    reached = [value for value in _reached_in(row, field) if value is not None]
    if reached:
        yield from (leaf for value in reached for leaf in _inside(value))
    elif field not in SCHEMA.names and _is_flat(pairs):
        first = next((value for key, value in pairs if key == field), None)
        if first is not None:
            yield first


def _reached_in(row: Mapping[str, Any], field: str) -> list[Any]:
    return [row[field]] if field in row else _reached(row, field)


def _is_flat(pairs: list[Any]) -> bool:
    return all(isinstance(pair, tuple) and isinstance(pair[1], str | bytes | None) for pair in pairs)


def _inside(value: Any) -> Iterator[Any]:
    """The values inside a value of Arrow's `to_pylist`, where a map is a list of pairs."""
    if isinstance(value, Mapping):
        for member in value.values():
            yield from _inside(member)
    elif isinstance(value, list):
        for element in value:
            yield from _inside(element[1] if isinstance(element, tuple) else element)
    elif value is not None:
        yield value


def _reached(value: Any, path: str) -> list[Any]:
    """The values that a path leads to; the longest name that fits wins."""
    if not path:
        return [value]
    if isinstance(value, list) and not all(isinstance(element, tuple) for element in value):
        return [found for element in value for found in _reached(element, path)]
    members = list(value.items() if isinstance(value, Mapping) else value or ()) if not isinstance(value, str) else []
    for name, member in sorted(members, key=lambda pair: -len(pair[0])):
        for step in (f"{name}", f".{name}", f"[{name}]", f'["{name}"]'):
            rest = path[len(step) :]
            if path.startswith(step) and (not rest or rest[0] in ".["):
                return _reached(member, rest)
    return []


def _matches_value(predicate: Leaf, value: Any) -> bool:
    if isinstance(predicate, Exists):
        return True
    if isinstance(predicate, Compare):
        return _is_ordered(value, predicate.operator, predicate.value)
    if isinstance(predicate, Equals):
        return _is_equal(value, predicate.value, predicate.case_sensitive)
    if isinstance(predicate, OneOf):
        return any(_is_equal(value, sought, predicate.case_sensitive) for sought in predicate.values)
    return isinstance(value, str | bytes) and _matches_text(predicate, value)


def accepts(predicate: Leaf, value: Any) -> bool:
    """Whether a leaf accepts a value that is not null; text can be bytes, even if not valid UTF-8."""
    return _matches_value(predicate, value)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _matches_text(predicate: TextPredicate, value: str | bytes) -> bool:
    line, text = _bytes(value), _bytes(predicate.text)
    if not predicate.case_sensitive:
        line, text = line.lower(), text.lower()
    if isinstance(predicate, Contains):
        return text in line
    if isinstance(predicate, Prefix):
        return line.startswith(text)
    if isinstance(predicate, Suffix):
        return line.endswith(text)
    if isinstance(predicate, Term):
        return _matches_term(line, text)
    if isinstance(predicate, Phrase):
        return _matches_phrase(line, text)
    if isinstance(predicate, Wildcard):
        return _matches_wildcard(line.decode(), text.decode())
    return _matches_regex(predicate.text, _bytes(value).decode(), predicate.case_sensitive)


def _matches_term(line: bytes, term: bytes) -> bool:
    """Like `naive.matches_term`, but case-sensitive."""
    for start in range(len(line) - len(term) + 1):
        end = start + len(term)
        if line[start:end] == term and (
            not term
            or (
                (start == 0 or class_of(line[start - 1]) != class_of(term[0]))
                and (end == len(line) or class_of(line[end]) != class_of(term[-1]))
            )
        ):
            return True
    return False


def _matches_phrase(line: bytes, phrase: bytes) -> bool:
    checks_left, checks_right = not phrase.startswith(b"*"), not phrase.endswith(b"*")
    core = phrase.removeprefix(b"*").removesuffix(b"*")
    for start in range(len(line) - len(core) + 1):
        end = start + len(core)
        cuts_left = checks_left and _is_word(core[:1]) and _is_word(line[:start][-1:])
        cuts_right = checks_right and _is_word(core[-1:]) and _is_word(line[end : end + 1])
        if line[start:end] == core and not cuts_left and not cuts_right:
            return True
    return False


def _is_word(byte: bytes) -> bool:
    return byte.isalnum() or byte == b"_"


def _matches_wildcard(line: str, pattern: str) -> bool:
    signs = [match.groups() for match in re.finditer(r"\\([*?\\])|([*?])|(.)", pattern, re.DOTALL)]
    if not signs:
        return True
    for start in range(len(line) + 1):
        ends = {start}
        for escaped, sign, plain in signs:
            if sign == "*":
                ends = {end for begin in ends for end in _run_ends(line, begin)}
            else:
                ends = {end + 1 for end in ends if end < len(line) and _is_char(line[end], sign, escaped or plain)}
        left_ends = signs[0][1] == "*" or _is_border(line, start, start)
        if left_ends and any(signs[-1][1] == "*" or _is_border(line, end, end - 1) for end in ends):
            return True
    return False


def _run_ends(line: str, begin: int) -> Iterator[int]:
    yield begin
    while begin < len(line) and line[begin] not in "\n\r":
        begin += 1
        yield begin


def _is_char(character: str, sign: str | None, sought: str | None) -> bool:
    return character not in "\n\r" if sign == "?" else character == sought


def _is_border(line: str, place: int, own: int) -> bool:
    """Whether the characters around a place differ in class; `own` is the one that belongs to the match."""
    other = place if own < place else place - 1
    if not (0 <= own < len(line) and 0 <= other < len(line)):
        return True
    return class_of(line[own].encode()[0]) != class_of(line[other].encode()[0])


_MEMBERS: Final = r"\]?(?:\\.|[^\]\\])*"
_NEGATED: Final = re.compile(rf"(\\.|\[(?!\^){_MEMBERS}\])|\[\^{_MEMBERS}\]", re.DOTALL)
"""A negated class; or, as its first group, what must not be taken for one."""


def _matches_regex(pattern: str, line: str, case_sensitive: bool) -> bool:
    r"""Whether it is found in one of the lines, or anywhere if it names a line feed or uses ``(?s)``.

    Only for patterns on which RE2 and Python agree, with neither ``\A`` nor ``\z``.
    """
    flags = re.ASCII | re.MULTILINE | (0 if case_sensitive else re.IGNORECASE)
    named = _NEGATED.sub(r"\1", pattern)
    spans_lines = "\n" in named or r"\n" in named or "(?s" in named
    return any(re.search(pattern, part, flags) for part in ([line] if spans_lines else line.split("\n")))


def matches_whole_text(pattern: str, text: str, case_sensitive: bool) -> bool:
    """What `matchesRegex` of the query language means: ``^`` and ``$`` are the ends of the text."""
    if pattern.endswith("$") and not pattern.endswith("\\$"):
        pattern = pattern[:-1] + r"\Z"
    return re.search(pattern, text, re.ASCII if case_sensitive else re.ASCII | re.IGNORECASE) is not None


def _is_equal(value: Any, sought: Any, case_sensitive: bool) -> bool:
    if isinstance(value, str | bytes):
        a, b = _bytes(value), _text(sought).encode()
        return a == b if case_sensitive else a.lower() == b.lower()
    other = _converted(sought, value)
    return other is not None and bool(_moment(value) == _moment(other))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


def _is_ordered(value: Any, operator: str, sought: Any) -> bool:
    if isinstance(value, str | bytes) and isinstance(sought, str):
        a, b = _bytes(value), sought.encode()
    elif isinstance(value, str | bytes):
        text = _bytes(value).decode(errors="replace")
        if isinstance(sought, bool | date) or not NUMBER.fullmatch(text):
            return False
        a, b = float(text), float(sought)  # type: ignore[assignment]
    else:
        other = _converted(sought, value)
        if other is None:
            return False
        a, b = _moment(value), _moment(other)
    return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator])


def _converted(sought: Any, value: Any) -> Any:
    """Convert what is sought to the type of the value; None if that is not possible."""
    if isinstance(value, bool):
        if isinstance(sought, str):
            return {"true": True, "false": False}.get(sought.lower())
        return sought if isinstance(sought, bool) else None
    if isinstance(value, date):
        try:
            sought = datetime.fromisoformat(sought) if isinstance(sought, str) else sought
        except ValueError:
            return None
        return sought if isinstance(sought, date) else None
    if not isinstance(value, int | float):
        return None
    if isinstance(sought, str) and NUMBER.fullmatch(sought):
        return int(sought) if re.fullmatch(r"[+-]?[0-9]+", sought) else float(sought)
    return sought if isinstance(sought, int | float) and not isinstance(sought, bool) else None


def _moment(value: Any) -> Any:
    """Convert a day to its midnight, and assume UTC if no zone is given; other values stay as they are."""
    if not isinstance(value, date):
        return value
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
