"""Predicates as plain DuckDB SQL over the same files, where SQL can express them exactly.

This covers only what needs no interpretation: text columns, integers, floats, days and times. For everything else there
is no SQL, and a case is compared without it.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from types import TracebackType
from typing import Any, Final

import duckdb

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
    Regex,
    Suffix,
    Term,
    Wildcard,
)
from coprlake.records import ATTRIBUTES, SCHEMA
from coprlake.testing.torture.answers.foreign_data import ID

_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WHOLE: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAP: Final = "MAP(VARCHAR, VARCHAR)"


class NoSqlError(Exception):
    """SQL cannot express this exactly."""


class PlainTable:
    """The files of a table, read by DuckDB itself."""

    def __init__(self, files: Sequence[str], partition_by: Sequence[str]) -> None:
        self._connection = duckdb.connect()
        self._hidden = set(partition_by)
        try:
            self._connection.execute("SET threads = 1")
            self._connection.execute("SET TimeZone = 'UTC'")
            listed = ", ".join(_text(file) for file in files)
            source = f"read_parquet([{listed}], hive_partitioning = false, union_by_name = true)"
            self._connection.execute(f"CREATE TABLE t AS SELECT * FROM {source}")
            found = self._connection.execute("DESCRIBE t").fetchall()
        except duckdb.Error as error:  # nested types and times that DuckDB does not support
            self.close()
            raise NoSqlError(str(error)) from error
        self.types: Mapping[str, str] = {name: kind for name, kind, *_ in found}

    def close(self) -> None:
        """Release the memory."""
        self._connection.close()

    def __enter__(self) -> "PlainTable":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def ids(self, predicate: Predicate, since: int | None = None, until: int | None = None) -> list[int]:
        """The numbers of the matching rows.

        Raises:
            NoSqlError: SQL cannot express the predicate.
        """
        sql = self._sql(predicate)
        for sign, micros in ((">=", since), ("<", until)):
            if micros is not None:
                if self.types.get("timestamp") != "TIMESTAMP WITH TIME ZONE":
                    raise NoSqlError("a range of time")
                sql += f" AND timestamp {sign} make_timestamptz({_safe(micros)})"
        return self.run(f'SELECT "{ID}" FROM t WHERE {sql}')

    def run(self, sql: str) -> list[int]:
        """Run SQL and return the first column of the result.

        Raises:
            NoSqlError: DuckDB cannot run it.
        """
        try:
            return [row[0] for row in self._connection.execute(sql).fetchall()]
        except duckdb.Error as error:
            raise NoSqlError(str(error)) from error

    def _sql(self, predicate: Predicate) -> str:
        if isinstance(predicate, And | Or):
            parts = [self._sql(part) for part in predicate.parts]
            word, empty = (" AND ", "true") if isinstance(predicate, And) else (" OR ", "false")
            return f"({word.join(parts)})" if parts else empty
        if isinstance(predicate, Not):
            return f"(NOT {self._sql(predicate.part)})"
        return self._leaf(predicate)

    def _leaf(self, leaf: Leaf) -> str:
        if leaf.field in self._hidden or (leaf.field == ALL_FIELDS and self._hidden):
            raise NoSqlError("a partition is not in the files")
        if leaf.field == ANY_VALUE:
            raise NoSqlError("numbers as text")
        if leaf.field == ALL_FIELDS:
            return self._anywhere(leaf)
        if leaf.field not in self.types and any(sign in leaf.field for sign in ".["):
            raise NoSqlError("a path")
        found = "false"
        if leaf.field not in SCHEMA.names and self._has_map:
            key = _text(leaf.field)
            value = f"list_filter(map_entries({ATTRIBUTES}), lambda e: e.key = {key})[1].value"
            found = f"coalesce({_on_text(leaf, value)}, false)"
        if leaf.field not in self.types:
            return found
        name = _quoted(leaf.field)
        return f"CASE WHEN {name} IS NOT NULL THEN {self._on_column(leaf, name)} ELSE {found} END"

    @property
    def _has_map(self) -> bool:
        return self.types.get(ATTRIBUTES) == _MAP

    def _anywhere(self, leaf: Leaf) -> str:
        parts = []
        for name, kind in self.types.items():
            if kind == "VARCHAR":
                parts.append(f"coalesce({_on_text(leaf, _quoted(name))}, false)")
            elif name == ATTRIBUTES and kind == _MAP:
                inside = f"list_filter(map_values({ATTRIBUTES}), lambda v: coalesce({_on_text(leaf, 'v')}, false))"
                parts.append(f"coalesce(len({inside}) > 0, false)")
            elif "VARCHAR" in kind or kind in ("BLOB", "TIME", "INTERVAL") or "BLOB" in kind:
                raise NoSqlError("text that SQL would not find")
        return f"({' OR '.join(parts)})" if parts else "false"

    def _on_column(self, leaf: Leaf, name: str) -> str:
        kind = self.types[leaf.field]
        if isinstance(leaf, Exists):
            return "true"
        if kind == "VARCHAR":
            return _on_text(leaf, name)
        if kind in ("BLOB", "TIME") or any(sign in kind for sign in "[("):
            raise NoSqlError("bytes, or something nested")
        if isinstance(leaf, Compare):
            return _typed(name, kind, leaf.operator, leaf.value)
        if isinstance(leaf, Equals):
            return _typed(name, kind, "=", leaf.value)
        if isinstance(leaf, OneOf):
            return "(" + " OR ".join([_typed(name, kind, "=", value) for value in leaf.values] or ["false"]) + ")"
        return "false"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    if "\0" in text:
        raise NoSqlError("a text with NUL")
    return "'" + text.replace("'", "''") + "'"


def _safe(micros: int) -> int:
    if abs(micros) > 2**62:
        raise NoSqlError("a time that DuckDB does not hold")
    return micros


def _folded(sql: str, exact: bool) -> str:
    return sql if exact else f"translate({sql}, '{_UPPER}', '{_UPPER.lower()}')"


def _lower(text: str) -> str:
    return "".join(sign.lower() if sign.isascii() else sign for sign in text)


def _on_text(leaf: Leaf, value: str) -> str:
    """A leaf applied to an SQL expression of type text; null if the expression is."""
    if isinstance(leaf, Exists):
        return f"({value} IS NOT NULL)"
    if isinstance(leaf, Compare):
        if not isinstance(leaf.value, str):
            raise NoSqlError("text compared with a number")
        return f"({value} {leaf.operator} {_text(leaf.value)})"
    if isinstance(leaf, Equals | OneOf):
        values = [leaf.value] if isinstance(leaf, Equals) else leaf.values
        exact = leaf.case_sensitive
        if any(not isinstance(one, str) for one in values):
            raise NoSqlError("text compared with something else")
        same = [f"{_folded(value, exact)} = {_text(str(one) if exact else _lower(str(one)))}" for one in values]
        return f"({' OR '.join(same)})" if same else "false"
    exact = leaf.case_sensitive
    text = leaf.text if exact else _lower(leaf.text)
    if isinstance(leaf, Wildcard):
        raise NoSqlError("a wildcard")
    if isinstance(leaf, Regex):
        if not exact or "\n" in text:
            raise NoSqlError("a regular expression of any case")
        lines = f"string_split({value}, chr(10))"
        return f"(len(list_filter({lines}, part -> regexp_matches(part, {_text('(?-s:' + text + ')')}))) > 0)"
    subject = _folded(value, exact)
    if isinstance(leaf, Contains | Prefix | Suffix):
        name = {Contains: "contains", Prefix: "starts_with", Suffix: "suffix"}[type(leaf)]
        return f"{name}({subject}, {_text(text)})"
    return _bordered(leaf, subject, text)


def _bordered(leaf: Term | Phrase, subject: str, text: str) -> str:
    """A term or phrase as a regular expression, bordered by a character of another class or the end of the text."""
    left = right = True
    if isinstance(leaf, Phrase):
        left, right = not text.startswith("*"), not text.endswith("*")
        text = text.removeprefix("*").removesuffix("*")
    if not text:
        return f"({subject} IS NOT NULL)"
    classes = _word if isinstance(leaf, Phrase) else _class
    before = f"(?:^|[^{classes(text[0])}])" if left and classes(text[0]) else ""
    after = f"(?:$|[^{classes(text[-1])}])" if right and classes(text[-1]) else ""
    inner = "".join(f"\\x{{{ord(sign):x}}}" for sign in text)
    return f"regexp_matches({subject}, {_text(f'(?s){before}{inner}{after}')})"


def _word(sign: str) -> str:
    return "0-9A-Za-z_" if sign.isascii() and (sign.isalnum() or sign == "_") else ""


def _class(sign: str) -> str:
    """The class of a character, as the members of a regex set."""
    if not sign.isascii():
        return r"\x{80}-\x{10ffff}"
    if sign.isalnum():
        return "0-9A-Za-z"
    if ord(sign) <= 0x20 or ord(sign) == 0x7F:
        return r"\x{0}-\x{20}\x{7f}"
    return r"!-/:-@\[-`{-~"


def _typed(name: str, kind: str, operator: str, sought: Any) -> str:
    """Compare a column that is not text and whose value is not null."""
    if kind in _WHOLE:
        if isinstance(sought, bool | date):
            return "false"
        if not isinstance(sought, int) or abs(sought) >= 2**100:
            raise NoSqlError("a whole number and a fraction")
        return f"({name}::HUGEINT {operator} ({sought})::HUGEINT)"
    if kind in ("DOUBLE", "FLOAT"):
        if isinstance(sought, bool | date):
            return "false"
        if not isinstance(sought, int | float) or sought != sought or abs(sought) > 1e308:
            raise NoSqlError("a float and something odd")
        return f"(NOT isnan({name}) AND {name}::DOUBLE {operator} {_text(repr(float(sought)))}::DOUBLE)"
    if kind == "BOOLEAN":
        if isinstance(sought, bool):
            return f"({name}::INTEGER {operator} {int(sought)})"
        if isinstance(sought, str):
            raise NoSqlError("text for a truth value")
        return "false"
    if kind in ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"):
        if not isinstance(sought, date):
            raise NoSqlError("text for a time")
        moment = sought if isinstance(sought, datetime) else datetime(sought.year, sought.month, sought.day)
        micros = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)
        call = "make_timestamptz" if kind.endswith("ZONE") else "make_timestamp"
        return f"({name} {operator} {call}({micros}))"
    raise NoSqlError(kind)
