"""Spark decides by an expression just as plain Python decides by the predicate."""

import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from coprlake.predicate.deciding.matching import Matcher
from coprlake.predicate.deciding.partitions import fields_of
from coprlake.predicate.predicates import (
    ALL_FIELDS,
    EVERYTHING,
    NOTHING,
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
from coprlake.records import ATTRIBUTES, CONTENT, SCHEMA, TIMESTAMP
from coprlake.spark.source.filter_expressions import column_of
from coprlake.testing.naive_search import matches
from coprlake.testing.predicate_strategies import ROW_SCHEMA, STATUS, USERAPP, Row, predicates, rows, texts_in

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")]

Evaluate = Callable[[Sequence[Predicate], pa.Table, bool], list[list[bool] | None]]


@pytest.fixture(scope="module")
def zoned(spark: SparkSession) -> SparkSession:
    """A session of its own on the shared context, in a zone that must not matter."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    return session


@pytest.fixture
def evaluate(zoned: SparkSession, tmp_path: Path) -> Evaluate:
    """The answers of Spark for each predicate and each row of a file; None where there is no expression."""

    def answers(some: Sequence[Predicate], table: pa.Table, is_filter: bool = False) -> list[list[bool] | None]:
        path = str(tmp_path / "rows.parquet")
        pq.write_table(table.append_column("row", pa.array(range(len(table)))), path)
        columns = [column_of(predicate, table.schema, is_filter=is_filter) for predicate in some]
        frame: DataFrame = zoned.read.parquet(path).coalesce(1)
        shown = [column.alias(f"p{i}") for i, column in enumerate(columns) if column is not None]
        found = sorted((values["row"], values) for values in frame.select("row", *shown).collect())
        return [
            None if column is None else [values[f"p{i}"] for _, values in found] for i, column in enumerate(columns)
        ]

    return answers


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """So many examples of a strategy, always the same."""
    found: list[Any] = []

    @settings(max_examples=count, derandomize=True, database=None, phases=[Phase.generate])
    @given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    collect()
    return found


def test_generated_predicates_are_decided_as_by_the_oracle(evaluate: Evaluate) -> None:
    some_rows: list[Row] = drawn(rows(), 120)
    known = random.Random(1).sample(texts_in(some_rows), 60)
    some: list[Predicate] = list(dict.fromkeys(drawn(predicates(known, max_leaves=3), 180)))
    table = pa.Table.from_pylist(some_rows, ROW_SCHEMA)
    found = evaluate(some, table, False)
    assert sum(answers is not None for answers in found) > 80  # of 180; the rest goes to our own tasks
    assert sum(any(answers) for answers in found if answers is not None) > 50
    for predicate, answers in zip(some, found, strict=True):
        if answers is not None:
            wrong = [
                row for row, answer in zip(some_rows, answers, strict=True) if answer is not matches(predicate, row)
            ]
            assert not wrong, (predicate, wrong[:3])


# What is special in a pattern, in Java or in how it is quoted; characters of two, three and four bytes; what folds in
# Unicode; line ends of all kinds; neighbours of every class.
TRICKY = [
    *("", "a", "A", "ab", "aB c", "a_b", "_a", "a-b", "1", "a.b", "\\", "\\E", "\\Qa\\E", "a\\Eb", "(a", "[a-", "a|b"),
    *("^a$", "a*b?c", "\\*", "\n", "a\n", "a\r\nb", "a\u2028b", "a\u0085", "\0", "\x7fa", "ä", "Ä", "äb", "a\u0308"),
    *("\u212a", "k", "\u017f", "s", "\u0130", "i", "İi", "漢字", "漢 字", "😀", "😀😀", "a😀", "😀b", "x😀\ny"),
    *("$1", "#a b", "{2}", "++"),
]
WILDCARDS = [
    *("?", "??", "*?", "?*", "*??*", "a?", "?a", "?b", "a*b", "*a*b*", "a*?b", "a**c", "?*?", "😀?", "?😀", "ä?"),
    *("k*s", "A*B", "\\**", "a\\?", "*\n*", "a*\r\n*b", "\\E*", "*\\E?", "", "*", "**", "*.*", "?-?", "x*y", "x?\ny"),
]


def test_texts_of_all_kinds_are_found_alike(evaluate: Evaluate) -> None:
    lines = [*TRICKY, *(a + b for a in TRICKY[1::3] for b in TRICKY[2::4]), "aXbYb", "a b ab", "xx a\nb a-b", None]
    kinds = (Contains, Term, Phrase, Prefix, Suffix)
    some: list[Predicate] = [kind(text, CONTENT, i % 2 == 0) for kind in kinds for i, text in enumerate(TRICKY)]
    some += [kind(text, CONTENT, False) for kind in (Contains, Term) for text in TRICKY[::2]]
    some += [Phrase(f"*{text}", CONTENT, False) for text in TRICKY[::5]]
    some += [Wildcard(text, CONTENT, exact) for text in WILDCARDS for exact in (False, True)]
    some += [Equals(CONTENT, text) for text in TRICKY[::3]] + [Compare(CONTENT, "<", text) for text in TRICKY[::3]]
    some += [OneOf(CONTENT, tuple(TRICKY[::2])), OneOf(CONTENT, ("A", "K", "ä"), True), OneOf(CONTENT, ())]
    some += [Regex("a_B", CONTENT), Regex("", CONTENT, True), Regex("a-b", CONTENT, True)]
    table = pa.table({CONTENT: pa.array(lines, pa.string())})
    for predicate, answers in zip(some, evaluate(some, table, False), strict=True):
        assert answers is not None
        expected = [matches(predicate, {CONTENT: line}) for line in lines]
        wrong = [line for line, answer, right in zip(lines, answers, expected, strict=True) if answer is not right]
        assert not wrong, (predicate, wrong)


TYPED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False, None]),
    "small": (pa.int8(), [-128, 127, 2, None]),
    "whole": (pa.int64(), [2**63 - 1, -(2**63), 2, 404, None]),
    "ratio": (pa.float64(), [0.0, -0.0, 0.5, float("nan"), float("inf"), float("-inf"), 1e300, None]),
    "single": (pa.float32(), [0.5, 0.1, float("nan"), None]),
    "day": (pa.date32(), [date(2024, 6, 1), date(2024, 6, 2), date(1, 1, 1), None]),
    "moment": (pa.timestamp("ms", "UTC"), [datetime(2024, 6, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC), None]),
    "a.b`c": (pa.large_string(), ["404", "true", "1e3", " 5", "NaN", "5d", "+.5", "2024-06-01", None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "A", None]),
    "items": (pa.list_(pa.string()), [["a"], [], None]),
}
SOUGHT: list[Value] = [
    *(True, False, "TRUE", 0, 2, 2.5, -0.5, 0.1, 404, "404", "404.5", 2**64, -(2**70), 127, 1e300, "A", "x"),
    *(float("inf"), float("-inf"), float("nan"), date(2024, 6, 1), datetime(2024, 6, 1), datetime(2024, 6, 1, 12)),
    *(datetime(2024, 6, 1, tzinfo=UTC), "2024-06-01T00:00:00+00:00", "2024-06-01T00:00:00.000001"),
    *(date(1, 1, 1), date.max),
]


def test_columns_of_every_type_are_compared_alike(evaluate: Evaluate) -> None:
    size = max(len(values) for _, values in TYPED.values())
    columns = {name: (values * size)[:size] for name, (_, values) in TYPED.items()}
    columns[ATTRIBUTES] = [[(name, "404"), (name, "true")] for name in TYPED][:size]  # the first counts
    columns["only_null"] = [None] * size
    kinds = {name: kind for name, (kind, _) in TYPED.items()} | {ATTRIBUTES: SCHEMA.field(ATTRIBUTES).type}
    table = pa.table({name: pa.array(values, kinds.get(name, pa.string())) for name, values in columns.items()})
    some: list[Predicate] = []
    for i, name in enumerate([*TYPED, "only_null", "absent", TIMESTAMP, ALL_FIELDS]):
        some += [Exists(name), Not(Contains("", name)), OneOf(name, (404, "a", date(2024, 6, 1), 0.5))]
        some += [Equals(name, value) for value in SOUGHT[i % 3 :: 3]]
        some += [Compare(name, "<=" if i % 2 else "<", value) for value in SOUGHT[i % 4 :: 4]]
        some += [Compare(name, ">" if i % 2 else ">=", value) for value in SOUGHT[(i + 1) % 4 :: 4]]
    matchers = [Matcher(predicate, table.schema).mask(table).tolist() for predicate in some]
    for predicate, answers, expected in zip(some, evaluate(some, table, False), matchers, strict=True):
        looks_inside = not fields_of(predicate).isdisjoint({"items", ALL_FIELDS})  # of a list, which our tasks do
        assert answers == (None if looks_inside and predicate != Exists("items") else expected), predicate


def test_a_filter_may_have_nulls_for_false_but_never_under_not(evaluate: Evaluate) -> None:
    table = pa.table({CONTENT: ["a", "b", None], ATTRIBUTES: pa.nulls(3, SCHEMA.field(ATTRIBUTES).type)})
    a = Contains("a", CONTENT, True)
    some: list[Predicate] = [a, ~a, ~(a & Exists(CONTENT)), EVERYTHING, NOTHING, ~~a, a | Exists("x")]
    expected = [
        [True, False, None], [False, True, True], [False, True, True], [True] * 3, [False] * 3, [True, False, False],
        [True, False, None],
    ]  # fmt: skip
    assert evaluate(some, table, True) == expected
    many: list[Predicate] = [Or((*(Contains(str(i), CONTENT, True) for i in range(300)), a)), And((a,) * 300)]
    assert evaluate(many, table, False) == [[True, False, False]] * 2


@pytest.mark.usefixtures("spark")
def test_what_may_differ_has_no_expression() -> None:
    schema = pa.schema(
        [
            *ROW_SCHEMA,
            ("price", pa.decimal128(10, 2)),
            ("raw", pa.binary()),
            ("late", pa.timestamp("ns", "UTC")),
            ("local", pa.timestamp("us")),
            ("large", pa.uint64()),
        ]
    )
    moment = datetime(2024, 6, 1)
    refused: list[Predicate] = [
        *(Regex("a.b"), Contains("\udcff"), Contains("a", "raw"), Equals("price", 1), Compare("late", "<", moment)),
        *(Equals("local", moment), Compare("large", ">", 1), Contains("a", ALL_FIELDS), Exists("a") & ~Regex("a+")),
    ]
    assert [column_of(predicate, schema) for predicate in refused] == [None] * len(refused)
    accepted: list[Predicate] = [
        Contains("a", "price"),
        Exists("raw"),
        Exists("late"),
        Equals(STATUS, "x"),
        Term("a", USERAPP),
    ]
    assert all(column_of(predicate, schema) is not None for predicate in accepted)
    bytes_map = pa.schema([(ATTRIBUTES, pa.map_(pa.string(), pa.binary()))])
    assert column_of(Exists("x"), bytes_map) is None
    assert column_of(Exists(CONTENT), bytes_map) is not None
