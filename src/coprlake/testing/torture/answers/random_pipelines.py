"""Random pipelines of the query language, with their meaning in plain Python where that is beyond doubt.

A condition without a defined meaning is still worth running: it must give the same rows with and without sketches,
whichever engine reads the files, and `countIf` must count what `filter` keeps.
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa

from coprlake.predicate.predicates import Contains, Phrase, Predicate, Prefix, Regex, Suffix
from coprlake.records import ATTRIBUTES, CONTENT, DAY, SCHEMA
from coprlake.testing.naive_search import accepts, matches_whole_text
from coprlake.testing.torture.answers.foreign_data import ID
from coprlake.testing.torture.answers.plain_rows import Pairs, Row
from coprlake.testing.torture.answers.random_predicates import Known, piece_of

Truth: TypeAlias = bool | None


class UndefinedError(Exception):
    """The meaning of a condition for this row is not defined here."""


@dataclass(frozen=True)
class Condition:
    """A condition of the language, and its meaning for a row, which may raise `UndefinedError`."""

    text: str
    means: Callable[[Row], Truth]


@dataclass(frozen=True)
class Pipeline:
    """The steps between ``fetch`` and the end of a pipeline, and their meaning."""

    steps: tuple[tuple[str, Condition], ...]
    """``filter``, ``filterOut`` or ``search``, each with its condition."""
    end: str
    """``ids``, ``count``, ``by`` or ``first``."""
    by: str = ID

    @property
    def text(self) -> str:
        """The text of the query."""
        steps = "".join(f"\n| {command} {condition.text}" for command, condition in self.steps)
        return f"fetch logs{steps}\n| {self._last}"

    @property
    def _last(self) -> str:
        if self.end == "count":
            return "summarize n = count()"
        if self.end == "by":
            return f"summarize n = count(), by:{{key = {field_name(self.by)}}}"
        return f"sort {ID} desc | limit 7 | fields {ID}" if self.end == "first" else f"fields {ID}"

    @property
    def counting(self) -> str | None:
        """A query that counts the same rows, but that no filter can prune; None if there is none."""
        if any(command == "search" for command, _ in self.steps):
            return None
        kept = [f"({c.text})" if command == "filter" else f"isFalseOrNull({c.text})" for command, c in self.steps]
        return f"fetch logs | summarize n = countIf({' and '.join(kept)})" if kept else None

    def meaning(self, rows: list[Row]) -> Any:
        """The expected answer, in the form of `shown`.

        Raises:
            UndefinedError: it is not defined here.
        """
        for command, condition in self.steps:
            rows = [row for row in rows if (condition.means(row) is True) == (command == "filter")]
        if self.end == "count":
            return [len(rows)]
        if self.end == "by":
            return _sorted(Counter(_text_of(row, self.by) for row in rows).items())
        ids = sorted((row[ID] for row in rows), reverse=self.end == "first")
        return ids[:7] if self.end == "first" else ids

    def shown(self, answer: pa.Table) -> Any:
        """The answer in a form that can be compared."""
        if self.end == "count":
            return answer.column("n").to_pylist()
        if self.end == "by":
            keys = answer.column("key").cast(pa.large_binary()).to_pylist()
            return _sorted(zip(keys, answer.column("n").to_pylist(), strict=True))
        ids = answer.column(ID).to_pylist()
        return ids if self.end == "first" else sorted(ids)


def _sorted(pairs: Any) -> list[Any]:
    return sorted(((key is None, key or b"", count) for key, count in pairs))


def field_name(name: str) -> str:
    """A field name in the syntax of the language."""
    return f"`{name}`"


def quoted(text: str) -> str:
    """A string in the syntax of the language."""
    return json.dumps(text, ensure_ascii=False).replace("\\u0000", "\0")


def _text_of(row: Row, field: str) -> bytes | None:
    """The text of a field: of its column, otherwise of the attribute of that name."""
    value = row.get(field)
    if value is None and field not in SCHEMA.names and isinstance(row.get(ATTRIBUTES), Pairs):
        value = next((item for key, item in row[ATTRIBUTES] if key == field.encode()), None)
    if value is not None and not isinstance(value, bytes):
        raise UndefinedError(field)
    return value


_TEXT_FUNCTIONS: Final[dict[str, tuple[Any, bool]]] = {
    "contains": (Contains, True),
    "startsWith": (Prefix, True),
    "endsWith": (Suffix, True),
    "matchesPhrase": (Phrase, False),
    "matchesRegex": (Regex, True),
}


def _by_predicate(function: str, field: str, text: str, exact: bool | None) -> Condition:
    kind, default = _TEXT_FUNCTIONS[function]
    predicate: Predicate = kind(text, field, default if exact is None else exact)
    flag = "" if exact is None else f", caseSensitive: {str(exact).lower()}"

    def means(row: Row) -> Truth:
        value = _text_of(row, field)
        if value is None:
            return None
        try:
            if isinstance(predicate, Regex):
                return matches_whole_text(predicate.text, value.decode(), predicate.case_sensitive)
            return accepts(predicate, value)  # type: ignore[arg-type]
        except UnicodeDecodeError as error:
            raise UndefinedError(field) from error

    return Condition(f"{function}({field_name(field)}, {quoted(text)}{flag})", means)


def _compared(sign: str, field: str, text: str) -> Condition:
    data = text.encode()

    def means(row: Row) -> Truth:
        value = _text_of(row, field)
        if value is None:
            return None
        return {"==": value == data, "!=": value != data, "<": value < data, ">=": value >= data}[sign]

    return Condition(f"{field_name(field)} {sign} {quoted(text)}", means)


def _among(field: str, texts: list[str]) -> Condition:
    data = {text.encode() for text in texts}

    def means(row: Row) -> Truth:
        value = _text_of(row, field)
        return None if value is None else value in data

    return Condition(f"in({field_name(field)}, {', '.join(map(quoted, texts))})", means)


def _is_null(field: str) -> Condition:
    return Condition(f"isNull({field_name(field)})", lambda row: _text_of(row, field) is None)


def _number(sign: str, field: str, number: int) -> Condition:
    def means(row: Row) -> Truth:
        value = row.get(field)
        if value is None and isinstance(row.get(ATTRIBUTES), Pairs) and field not in SCHEMA.names:
            raise UndefinedError(field)  # perhaps an attribute that is converted to a number
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or abs(value) > 2**53):
            raise UndefinedError(field)
        return None if value is None else {"==": value == number, "<": value < number, ">=": value >= number}[sign]

    return Condition(f"{field_name(field)} {sign} {number}", means)


def _undefined(text: str) -> Condition:
    def means(row: Row) -> Truth:
        raise UndefinedError(text)

    return Condition(text, means)


def _not(inner: Condition) -> Condition:
    def means(row: Row) -> Truth:
        answer = inner.means(row)
        return None if answer is None else not answer

    return Condition(f"not ({inner.text})", means)


def _joined(word: str, left: Condition, right: Condition) -> Condition:
    decisive = word == "or"

    def means(row: Row) -> Truth:
        sides = (left.means(row), right.means(row))
        return decisive if decisive in sides else (None if None in sides else not decisive)

    return Condition(f"({left.text} {word} {right.text})", means)


class Drawing:
    """Draws pipelines for the rows of one table."""

    def __init__(self, known: Known, schema: pa.Schema) -> None:
        self._known = known
        usable = [item for item in schema if item.name not in (DAY, "*") and "`" not in item.name]
        self._texts = [item.name for item in usable if _is_string(item.type)]
        self._whole = [item.name for item in usable if pa.types.is_integer(item.type) and item.type != pa.uint64()]
        self._others = [item.name for item in usable if item.name not in (*self._texts, *self._whole)]
        self._keys = [key for key in known.keys if "`" not in key and key.isprintable() and key not in schema.names]

    def pipeline(self, chance: random.Random) -> Pipeline:
        """Draw a pipeline: some filters, and an end."""
        steps: list[tuple[str, Condition]] = []
        if chance.random() < 0.15:
            word = piece_of(self._known.text(chance, CONTENT), chance).strip() or "x"
            steps.append(("search", _undefined(quoted(word))))
        commands = [chance.choice(["filter", "filter", "filter", "filterOut"]) for _ in range(chance.choice([1, 1, 2]))]
        steps += [(command, self._condition(chance)) for command in commands]
        end = chance.choice(["ids", "ids", "ids", "count", "by", "first"])
        by = self._text_field(chance) if end == "by" else ID
        return Pipeline(tuple(steps), end, by)

    def _text_field(self, chance: random.Random) -> str:
        names = [*self._texts, *self._keys]
        return chance.choice(names) if names and chance.random() < 0.95 else "absent"

    def _condition(self, chance: random.Random, depth: int = 0) -> Condition:
        kind = chance.random()
        if depth < 2 and kind < 0.25:
            return _joined(chance.choice(["and", "or"]), self._condition(chance, 1), self._condition(chance, depth + 1))
        if depth < 2 and kind < 0.32:
            return _not(self._condition(chance, depth + 1))
        if kind < 0.42 and self._whole:
            field = chance.choice(self._whole)
            value = self._known.value(chance, field)
            number = value if isinstance(value, int) and abs(value) < 2**53 else chance.choice([0, 7, 42])
            return _number(chance.choice(["==", "<", ">="]), field, int(number))
        if kind < 0.52:
            return self._foreign(chance)
        return self._on_text(chance)

    def _on_text(self, chance: random.Random) -> Condition:
        field = CONTENT if CONTENT in self._texts and chance.random() < 0.5 else self._text_field(chance)
        text = self._known.text(chance, field)
        kind = chance.random()
        if kind < 0.1:
            return _is_null(field)
        if kind < 0.3:
            return _compared(chance.choice(["==", "==", "!=", "<", ">="]), field, text)
        if kind < 0.4:
            return _among(field, [text, *(self._known.text(chance, field) for _ in range(chance.randint(0, 2)))])
        function = chance.choice([*_TEXT_FUNCTIONS][:4])
        return _by_predicate(function, field, piece_of(text, chance), chance.choice([None, None, True, False]))

    def _foreign(self, chance: random.Random) -> Condition:
        """A condition on a field of any type, or on a value inside it."""
        names = [*self._others, *self._whole, *self._texts, *self._keys, "absent"]
        field = field_name(chance.choice(names))
        text = quoted(piece_of(self._known.text(chance, CONTENT), chance))
        value = self._known.value(chance, chance.choice(names))
        shown = quoted(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else "42"
        return _undefined(
            chance.choice(
                [
                    f"isNotNull({field})",
                    f"{field} == {shown}",
                    f"{field} ~ {text}",
                    f"in({field}, {shown}, {text})",
                    f"{ATTRIBUTES}[{chance.choice(self._keys or ['source'])!r}] == {shown}".replace("'", '"'),
                    f"matchesValue({field}, {text})",
                    f"contains(toString({field}), {text})",
                    'timestamp < toTimestamp("2024-06-01T12:00:00Z")',
                    f"{field} == {field_name(chance.choice(names))}",
                ]
            )
        )


def _is_string(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
