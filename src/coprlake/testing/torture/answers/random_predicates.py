"""Random predicates for given rows: most search terms are taken from the rows, some with a change."""

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

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
from coprlake.records import ATTRIBUTES, CONTENT
from coprlake.testing.torture.answers.foreign_data import WORDS
from coprlake.testing.torture.answers.oracle import values_of
from coprlake.testing.torture.answers.plain_rows import Moment, Pairs, Row, clipped, texts_in

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OPERATORS: Final[tuple[Operator, ...]] = ("<", "<=", ">", ">=")
_OTHERS: Final[tuple[Value, ...]] = (
    0, 1, -1, 42, 404, 404.0, 0.5, -0.5, 2**63 - 1, 2**63, 2**64, -(2**63), 1e300, float("inf"), float("-inf"),
    float("nan"), True, False, "404", "404.5", "4e2", "+2", "0.1", "true", "FALSE", "INFO", "", "x", "2024-06-01",
    "2024-06-01T00:00:00.000001Z", date(2024, 6, 1), datetime(2024, 6, 1), datetime(1, 1, 1), datetime(9999, 12, 31),
)  # fmt: skip


class Known:
    """The contents of the rows: their fields, and text and values to search for."""

    def __init__(self, rows: Sequence[Row], names: Sequence[str]) -> None:
        self.rows = rows
        self.names = list(names)
        keys = {key for row in rows if isinstance(row.get(ATTRIBUTES), Pairs) for key, _ in row[ATTRIBUTES]}
        self.keys = sorted(key.decode(errors="replace") for key in keys if key)
        self.paths = sorted({path for row in rows for name in names for path in _paths(name, row.get(name))})

    def field(self, chance: random.Random) -> str:
        """A random field: often the content, or all fields, a key of the attributes, a path or any column."""
        kind = chance.random()
        if kind < 0.15:
            return CONTENT
        if kind < 0.3:
            return ANY_VALUE
        if kind < 0.45:
            return ALL_FIELDS
        if kind < 0.6 and self.keys:
            return chance.choice(self.keys)
        if kind < 0.66 and self.paths:
            return chance.choice(self.paths)
        if kind < 0.68:
            return chance.choice(["absent", "Source", "LEVEL", "day"])
        return chance.choice(self.names)

    def text(self, chance: random.Random, field: str) -> str:
        """Some text of the field, or of the whole table."""
        for _ in range(6):
            if not self.rows:
                break
            row = chance.choice(self.rows)
            texts = (
                []
                if field in (ALL_FIELDS, ANY_VALUE)
                else [text for value in values_of(row, field) for text in texts_in(value)]
            )
            if not texts:
                texts = [text for other in row.values() for text in texts_in(other)]
            if texts:
                return chance.choice(texts).decode(errors="ignore")
        return chance.choice(WORDS)

    def value(self, chance: random.Random, field: str) -> Value:
        """A value of the field as a query would write it, or something close to it, or of another type."""
        if self.rows and chance.random() < 0.75:
            values = values_of(chance.choice(self.rows), field) or [None]
            found = _as_query_value(chance.choice(values), chance)
            if found is not None:
                return found
            if chance.random() < 0.7:
                return self.text(chance, field)
        return chance.choice(_OTHERS)


def _paths(name: str, value: Any) -> list[str]:
    """Simple paths into a value: members of structs, keys of maps."""
    if any(sign in name for sign in ".[]"):
        return []
    if isinstance(value, dict):
        return [f"{name}.{member}" for member in value]
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        keys = [key.decode() for key, _ in value if isinstance(key, bytes) and key.isalnum()]
        return [f"{name}[{key}]" for key in keys]
    if isinstance(value, list):
        return [path for element in value[:1] for path in _paths(name, element)]
    return []


def _as_query_value(value: Any, chance: random.Random) -> Value | None:
    if isinstance(value, bytes):
        return _recased(value.decode(errors="ignore"), chance)
    found: list[Value] = []
    if isinstance(value, bool):
        found = [value, str(value).lower(), not value]
    elif isinstance(value, int):
        found = [value, str(value), value + 1, float(value), value + 0.5 if abs(value) < 2**50 else value]
    elif isinstance(value, float):
        found = [value, repr(value), value + 1, int(value) if abs(value) < 1e15 else value]
    elif isinstance(value, Decimal):
        found = [str(value), float(value), int(value)]
    elif isinstance(value, Moment):
        micros = int(value.microseconds // 1) + chance.choice([0, 0, 1, -1])
        if not -62_135_596_800_000_000 <= micros <= 253_402_300_799_999_999:
            return None
        moment = _EPOCH + timedelta(microseconds=micros)
        found = [moment, moment.isoformat(), moment.replace(tzinfo=None), moment.date()]
    return chance.choice(found) if found else None


def _recased(text: str, chance: random.Random) -> str:
    if chance.random() < 0.75:
        return text
    return "".join(sign.swapcase() if sign.isascii() else sign for sign in text)


def piece_of(text: str, chance: random.Random) -> str:
    """A part of the text, sometimes changed a little, so that it may match or not."""
    start = chance.randint(0, len(text))
    end = len(text) if chance.random() < 0.2 else min(len(text), start + chance.choice([1, 2, 3, 4, 6, 9, 15]))
    if chance.random() < 0.3:  # whole words
        words = text.split()
        piece = " ".join(words[(at := chance.randrange(len(words))) : at + chance.choice([1, 1, 2])]) if words else text
    else:
        piece = text[start:end]
    change = chance.random()
    if change < 0.1 and piece:
        at = chance.randrange(len(piece))
        piece = piece[:at] + chance.choice(["x", "0", ".", " ", "ß", "K", ""]) + piece[at + 1 :]
    elif change < 0.14:
        piece += chance.choice(WORDS)
    elif change < 0.2:
        unlike = {"s": "ſ", "k": "\u212a", "i": "İ", "ß": "ss", "ä": "Ä", "Ω": "ω"}  # must not match
        piece = "".join(unlike.get(sign, sign) for sign in piece)
    return _recased(piece, chance)


def _wildcard(piece: str, chance: random.Random) -> str:
    signs = []
    for sign in piece[:12]:
        escaped = "\\" + sign if sign in "*?\\" else sign
        signs.append(chance.choice([escaped, escaped, escaped, escaped, "*", "?"]))
    return chance.choice(["", "", "*"]) + "".join(signs) + chance.choice(["", "", "*"])


def _regex(piece: str, chance: random.Random) -> str:
    """A pattern that RE2 and Python read alike."""
    pattern = chance.choice(["", "", "", "^", r"\b", r"(?:^|\s)", ".*"])
    for sign in piece[:10]:
        if sign in "\n\r\0":
            pattern += "."
            continue
        literal = "\\" + sign if sign.isascii() and sign.isprintable() and not sign.isalnum() else sign
        kinds = [literal] * 6 + [".", literal + "?", literal + "+", f"(?:{literal}|bc)", f"({literal}|)"]
        if sign.isascii() and sign.isalnum():
            kinds += [r"\w", f"[{sign}x]", f"[^{sign}]", "[a-c0-9]", literal + "{1,2}", "[^-x]*"]
        pattern += chance.choice(kinds)
    return pattern + chance.choice(["", "", "", "$", r"\b"])


def _text_leaf(known: Known, chance: random.Random) -> Predicate:
    field = known.field(chance)
    piece = piece_of(known.text(chance, field), chance)
    exact = chance.random() < 0.4
    kind: Any = chance.choice([Contains, Contains, Term, Term, Phrase, Prefix, Suffix, Wildcard, Regex])
    if kind is Phrase:
        piece = chance.choice(["", "", "*"]) + piece + chance.choice(["", "", "*"])
    elif kind is Wildcard:
        piece = _wildcard(piece, chance)
    elif kind is Regex:
        piece = _regex(piece, chance)
    elif kind in (Prefix, Suffix) and chance.random() < 0.6:
        text = _recased(known.text(chance, field), chance)
        size = chance.randint(0, min(len(text), 12))
        piece = text[:size] if kind is Prefix else text[len(text) - size :]
    predicate: Predicate = kind(piece, field, exact)
    return predicate


def _value_leaf(known: Known, chance: random.Random) -> Predicate:
    field = chance.choice(known.names) if chance.random() < 0.6 else known.field(chance)  # of any type
    kind = chance.random()
    if kind < 0.1:
        return Exists(field)
    if kind < 0.45:
        return Equals(field, known.value(chance, field), chance.random() < 0.4)
    if kind < 0.65:
        values = tuple(known.value(chance, field) for _ in range(chance.choice([0, 1, 2, 3, 5])))
        return OneOf(field, values, chance.random() < 0.4)
    return Compare(field, chance.choice(_OPERATORS), known.value(chance, field))


def random_predicate(known: Known, chance: random.Random, depth: int = 0) -> Predicate:
    """A random predicate; the deeper, the simpler."""
    kind = chance.random()
    if depth < 3 and kind < 0.35:
        parts = tuple(random_predicate(known, chance, depth + 1) for _ in range(chance.choice([0, 2, 2, 2, 3, 3])))
        return And(parts) if chance.random() < 0.5 else Or(parts)
    if depth < 3 and kind < 0.43:
        return Not(random_predicate(known, chance, depth + 1))
    return _text_leaf(known, chance) if kind < 0.75 else _value_leaf(known, chance)


def random_times(known: Known, chance: random.Random) -> tuple[int | None, int | None]:
    """A time range near the times of the rows; mostly none."""
    if chance.random() < 0.75 or not known.rows:
        return None, None
    ends: list[int | None] = []
    for _ in range(2):
        value = chance.choice(known.rows).get("timestamp")
        micros = int(value.microseconds // 1) if isinstance(value, Moment) else 1_717_200_000_000_000
        ends.append(clipped(micros + chance.choice([-1, 0, 0, 1, 86_400_000_000])))
    first, last = sorted(ends)  # type: ignore[type-var]
    return chance.choice([(first, last), (first, None), (None, last), (last, first)])
