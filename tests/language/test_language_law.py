"""The law: a pipeline of filters gives the rows that it means, with the index, without it, and on both engines."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from coprlake import Table, create_table
from coprlake.spark import query as spark_query
from tests.spark_sessions import QUIET

pytestmark = QUIET

WORDS = [
    "error",
    "Error",
    "user",
    "login",
    "10.0.0.1",
    "10.0.0.17",
    "a_b",
    "käse",
    "ÖL",
    "x=1",
    "42",
    "%",
    "it's",
    "*",
    "\\",
]
FIELDS = ["content", "source", "loglevel", "userapp", "zone", "nothing"]
BEGIN = datetime(2026, 11, 16, tzinfo=UTC)
Row = dict[str, Any]
Truth = bool | None


def _rows() -> list[Row]:
    chance = random.Random(7)
    rows = []
    for number in range(240):
        own = WORDS if number % 2 else WORDS[number % 5 :: 3]
        rows.append(
            {
                "id": number,
                "timestamp": BEGIN + timedelta(minutes=number),
                "source": chance.choice(["web", "db", "it's"]),
                "loglevel": chance.choice(["INFO", "ERROR", None]),
                "content": " ".join(chance.choices(own, k=chance.randint(0, 4))),
                "userapp": chance.choice([None, "shop", "Shop", "admin-7", "42"]),
                "zone": chance.choice([None, "eu", "us"]),
            }
        )
    return rows


ROWS = _rows()


def _stored(row: Row) -> Row:
    """As it is appended: the app is an attribute, and so is the zone of every other record."""
    attributes = {} if row["userapp"] is None else {"userapp": row["userapp"]}
    own_zone = row["zone"] if row["id"] % 2 else None
    if row["zone"] is not None and own_zone is None:
        attributes["zone"] = row["zone"]
    return {
        **{k: row[k] for k in ("id", "timestamp", "source", "loglevel", "content")},
        "zone": own_zone,
        "attributes": attributes,
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    import pyarrow as pa

    schema = pa.schema([("id", pa.int64()), ("zone", pa.string())])
    table = create_table(Path(tmp_path_factory.mktemp("law")) / "logs", schema=schema)
    for first in range(0, len(ROWS), 40):
        table.append([_stored(row) for row in ROWS[first : first + 40]])
    return table


# Conditions: their text, and what they mean


@dataclass(frozen=True)
class Condition:
    text: str
    means: Callable[[Row], Truth]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _fold(text: str) -> str:
    return re.sub("[A-Z]", lambda found: found[0].lower(), text)


def _is_word(text: str) -> bool:
    return re.match("[A-Za-z0-9_]", text) is not None


def _phrase(value: str, phrase: str) -> bool:
    open_left, open_right = phrase.startswith("*"), phrase.endswith("*") and len(phrase) > 1
    core, value = _fold(phrase[open_left : len(phrase) - open_right]), _fold(value)
    for at in range(len(value) - len(core) + 1):
        if not value.startswith(core, at):
            continue
        before, after = value[:at][-1:], value[at + len(core) :][:1]
        cuts_left = not open_left and _is_word(core) and _is_word(before)
        cuts_right = not open_right and _is_word(core[-1:]) and _is_word(after)
        if not cuts_left and not cuts_right:
            return True
    return False


def _whole(value: str, pattern: str) -> bool:
    open_left, open_right = pattern.startswith("*"), pattern.endswith("*") and len(pattern) > 1
    core, value = _fold(pattern[open_left : len(pattern) - open_right]), _fold(value)
    if open_left and open_right:
        return core in value
    if open_left:
        return value.endswith(core)
    return value.startswith(core) if open_right else value == core


def _like(value: str, pattern: str) -> bool:
    signs = {"%": ".*", "_": "."}
    return re.fullmatch("".join(signs.get(sign) or re.escape(sign) for sign in pattern), value, re.DOTALL) is not None


def _leaf(name: str, decide: Callable[[str, str], bool], field: str, text: str, tail: str = "") -> Condition:
    def means(row: Row) -> Truth:
        value = row.get(field)
        return None if value is None else decide(value, text)

    return Condition(f"{name}({field}, {_quoted(text)}{tail})", means)


def _operator(sign: str, decide: Callable[[str, str], bool], field: str, text: str) -> Condition:
    return Condition(f"{field} {sign} {_quoted(text)}", _leaf("", decide, field, text).means)


texts = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(["err", "og", "10.0", "ä", "B", "web", "shop", "INFO", "eu", "", "r l"]),
    st.sampled_from(["*rror", "err*", "*og*", "10.0.0.1*", "user login"]),
)
fields = st.sampled_from(FIELDS)
VALUES = {name: sorted({row[name] for row in ROWS if row.get(name)}) or ["x"] for name in FIELDS}


@st.composite
def leaves(draw: st.DrawFn) -> Condition:
    field = draw(fields)
    own = st.sampled_from(VALUES[field])
    text = draw(st.one_of(texts, own, own))
    kind = draw(st.integers(0, 11))
    if kind == 0:
        return _leaf("contains", lambda value, part: part in value, field, text)
    if kind == 1:
        folded = lambda value, part: _fold(part) in _fold(value)  # noqa: E731
        return _leaf("contains", folded, field, text, ", caseSensitive: false")
    if kind == 2:
        return _leaf("startsWith", lambda value, part: value.startswith(part), field, text)
    if kind == 3:
        return _leaf("endsWith", lambda value, part: value.endswith(part), field, text)
    if kind == 4:
        return _leaf("matchesPhrase", _phrase, field, text)
    if kind == 5:
        return _leaf("matchesValue", _whole, field, text)
    if kind == 6:
        return _leaf("like", _like, field, text.replace("*", "%"))
    if kind == 7:
        return _operator("==", lambda value, other: value == other, field, text)
    if kind == 8:
        return _operator("!=", lambda value, other: value != other, field, text)
    if kind == 9:
        return _operator("<", lambda value, other: value.encode() < other.encode(), field, text)
    if kind == 10:
        choices = draw(st.lists(st.one_of(texts, own, own), min_size=1, max_size=3))
        inner = ", ".join(map(_quoted, choices))
        return Condition(f"in({field}, {inner})", _leaf("", lambda value, _: value in choices, field, "").means)
    return _operator("~", _phrase, field, text)


def _and(left: Condition, right: Condition) -> Condition:
    def means(row: Row) -> Truth:
        sides = (left.means(row), right.means(row))
        return False if False in sides else (None if None in sides else True)

    return Condition(f"({left.text} and {right.text})", means)


def _or(left: Condition, right: Condition) -> Condition:
    def means(row: Row) -> Truth:
        sides = (left.means(row), right.means(row))
        return True if True in sides else (None if None in sides else False)

    return Condition(f"({left.text} or {right.text})", means)


def _not(inner: Condition) -> Condition:
    def means(row: Row) -> Truth:
        answer = inner.means(row)
        return None if answer is None else not answer

    return Condition(f"not {inner.text}", means)


conditions = st.recursive(
    leaves(),
    lambda inner: st.one_of(st.builds(_and, inner, inner), st.builds(_or, inner, inner), st.builds(_not, inner)),
    max_leaves=5,
)


@dataclass(frozen=True)
class Pipe:
    text: str
    ids: tuple[int, ...]


@st.composite
def pipelines(draw: st.DrawFn) -> Pipe:
    """Filters, with renames and new fields between them, and perhaps a range of time."""
    text, rows = "fetch logs", list(ROWS)
    if draw(st.booleans()):
        first, last = sorted((draw(st.integers(0, 240)), draw(st.integers(0, 240))))
        since, until = (BEGIN + timedelta(minutes=number) for number in (first, last))
        text += f', from:"{since.isoformat()}", to:"{until.isoformat()}"'
        rows = [row for row in rows if since <= row["timestamp"] < until]
    for _ in range(draw(st.integers(1, 3))):
        step = draw(st.integers(0, 5))
        if step == 0:
            text += "\n| fieldsRename content2 = content | fieldsRename content = content2"
        elif step == 1:
            text += '\n| fieldsAdd extra = concat(source, "x") | fieldsRemove loglevel | fieldsAdd loglevel = null'
            rows = [{**row, "loglevel": None} for row in rows]
        else:
            condition = draw(conditions)
            name, keeps = draw(st.sampled_from([("filter", True), ("filterOut", False)]))
            text += f"\n| {name} {condition.text}"
            rows = [row for row in rows if (condition.means(row) is True) == keeps]
    return Pipe(f"{text}\n| fields id", tuple(sorted(row["id"] for row in rows)))


def _ids(result: Any) -> tuple[int, ...]:
    return tuple(sorted(result.column("id").to_pylist()))


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(pipe=pipelines())
def test_with_and_without_the_index(table: Table, pipe: Pipe) -> None:
    assert _ids(table.query(pipe.text).arrow()) == pipe.ids
    assert _ids(table.query(pipe.text, use_sketches=False).arrow()) == pipe.ids


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(pipe=pipelines())
def test_on_spark(spark: SparkSession, table: Table, pipe: Pipe) -> None:
    assert _ids(spark_query(spark, table, pipe.text).arrow()) == pipe.ids


def test_the_files_are_read_alike(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB reads the Parquet files itself where much is left: the same rows."""
    from coprlake.query import duck_scan

    texts = [
        'fetch logs | filter contains(content, "user") | fields id',
        'fetch logs | filter userapp == "42" or zone == "eu" | fields id',
        f'fetch logs, from:"{(BEGIN + timedelta(minutes=33)).isoformat()}" | filterOut loglevel == "INFO" | fields id',
    ]
    here = [_ids(table.query(text).arrow()) for text in texts]
    monkeypatch.setattr(duck_scan, "LITTLE_BYTES", -1)
    for text, ids in zip(texts, here, strict=True):
        found = table.query(text)
        assert _ids(found.arrow()) == ids
        assert "DuckDB" in found.report.scans[0].way
