"""What Spark pushes down, as predicates: never fewer rows than SQL has, and the same where that is claimed."""

import dataclasses
import math
import pickle
import re
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession, functions
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from coprlake.predicate.build import compare, contains, equals, exists, one_of, prefix, suffix
from coprlake.predicate.predicates import EVERYTHING, NOTHING, Predicate
from coprlake.query.planning import FOREVER
from coprlake.records import ATTRIBUTES, CONTENT, DAY, LOGLEVEL, SOURCE, TIMESTAMP
from coprlake.spark.filters import Pushed, predicate_of, push
from coprlake.testing.naive_search import matches
from coprlake.testing.predicates import ROW_SCHEMA, STATUS, USERAPP, Row, rows, texts_in

RATIO, OK, PRICE = "ratio", "ok", "price"
WIDE_SCHEMA = pa.schema(
    [*ROW_SCHEMA, (DAY, pa.date32()), (RATIO, pa.float64()), (OK, pa.bool_()), (PRICE, pa.decimal128(38, 10))]
)
WITHOUT_ATTRIBUTES = pa.schema([field for field in WIDE_SCHEMA if field.name != ATTRIBUTES])
COMPARISONS = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)
NOON_US = 1_717_243_200_000_000

MORE_VALUES: dict[str, st.SearchStrategy[Any]] = {
    DAY: st.sampled_from([date(2024, 5, 31), date(2024, 6, 1), date(2024, 6, 2)]),
    # SQL's order ends with not-a-number, which also equals itself; the two zeros are equal.
    RATIO: st.sampled_from([-1.0, 0.0, -0.0, 0.5, math.inf, -math.inf, math.nan]),
    OK: st.booleans(),
    PRICE: st.sampled_from([Decimal("1.5"), Decimal("-2")]),
}


@st.composite
def wide_rows(draw: st.DrawFn) -> Row:
    """Rows with columns of all types, and attributes that go by their names."""
    row = draw(rows()) | {name: draw(st.none() | some) for name, some in MORE_VALUES.items()}
    pairs = draw(
        st.lists(st.tuples(st.sampled_from(list(MORE_VALUES)), st.sampled_from(["0.5", "true", "1"])), max_size=2)
    )
    if row[ATTRIBUTES] is not None:
        row[ATTRIBUTES] = row[ATTRIBUTES] + pairs
    return row


def values_of(name: str, some_rows: list[Row]) -> st.SearchStrategy[Any]:
    """Values of the column's type, mostly such as are there."""
    there = [row[name] for row in some_rows if row[name] is not None]
    others: st.SearchStrategy[Any] = {
        TIMESTAMP: st.sampled_from([NOON, datetime(2024, 6, 1, tzinfo=UTC)]),
        STATUS: st.sampled_from([0, 404, -(2**63)]),
        **MORE_VALUES,
    }.get(name, st.sampled_from(["", "a", "INFO", "404", *texts_in(some_rows)]))
    return others | st.sampled_from(there) if there else others


@st.composite
def filters(draw: st.DrawFn, some_rows: list[Row]) -> Filter:
    """Any filter on any column, with values of its type."""
    name = draw(st.sampled_from([name for name in WIDE_SCHEMA.names if name != ATTRIBUTES]))
    values = values_of(name, some_rows)
    kinds: list[st.SearchStrategy[Filter]] = [
        st.sampled_from([IsNull((name,)), IsNotNull((name,))]),
        *(st.builds(kind, st.just((name,)), values) for kind in COMPARISONS),
        st.builds(In, st.just((name,)), st.lists(st.none() | values, max_size=3)),
    ]
    if pa.types.is_string(WIDE_SCHEMA.field(name).type):
        parts = st.builds(lambda text, start, end: text[start:end], values, st.integers(0, 3), st.integers(2, 9))
        kinds += [
            st.builds(kind, st.just((name,)), parts) for kind in (StringContains, StringStartsWith, StringEndsWith)
        ]
    chosen = draw(st.one_of(kinds))
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        chosen = Not(chosen)
    return chosen


def sql(asked: Any, row: Row) -> bool | None:
    """What SQL says of the row; None if that is unknown."""
    if isinstance(asked, Not):
        inside = sql(asked.child, row)
        return None if inside is None else not inside
    value = row[asked.attribute[0]]
    if isinstance(asked, IsNull | IsNotNull):
        return (value is None) == isinstance(asked, IsNull)
    if isinstance(asked, EqualNullSafe):
        return value is not None and rank(value) == rank(asked.value)
    if isinstance(asked, In):
        if not asked.value:
            return False
        answers = [sql(EqualTo(asked.attribute, one), row) for one in asked.value]
        return True if True in answers else None if None in answers else False
    if value is None or asked.value is None:
        return None
    if isinstance(asked, StringContains | StringStartsWith | StringEndsWith):
        kind = {StringContains: str.__contains__, StringStartsWith: str.startswith, StringEndsWith: str.endswith}
        return bool(kind[type(asked)](value, asked.value))
    a, b = rank(value), rank(asked.value)
    return bool(
        {EqualTo: a == b, LessThan: a < b, LessThanOrEqual: a <= b, GreaterThan: a > b, GreaterThanOrEqual: a >= b}[
            type(asked)
        ]
    )


def rank(value: Any) -> tuple[bool, Any]:
    """By what SQL compares: text as bytes, and not-a-number last."""
    if isinstance(value, float) and math.isnan(value):
        return True, 0
    return False, value.encode() if isinstance(value, str) else value


@settings(max_examples=150)
@given(st.data(), st.lists(wide_rows(), min_size=1, max_size=6), st.booleans())
def test_a_predicate_is_implied_by_its_filter_and_exact_where_it_says_so(
    data: st.DataObject, some_rows: list[Row], has_attributes: bool
) -> None:
    asked = data.draw(filters(some_rows))
    if not has_attributes:
        some_rows = [{name: value for name, value in row.items() if name != ATTRIBUTES} for row in some_rows]
    predicate, is_exact = predicate_of(asked, WIDE_SCHEMA if has_attributes else WITHOUT_ATTRIBUTES)
    if predicate is None:
        assert not is_exact
        return
    for row in some_rows:
        expected, found = sql(asked, row) is True, matches(predicate, row)
        assert found or not expected
        assert found == expected or not is_exact


@settings(max_examples=80)
@given(st.data(), st.lists(wide_rows(), min_size=1, max_size=6))
def test_what_is_pushed_and_what_is_left_over_are_the_filters(data: st.DataObject, some_rows: list[Row]) -> None:
    asked = data.draw(st.lists(filters(some_rows), max_size=4))
    pushed = push(asked, WIDE_SCHEMA)
    assert all(any(one is given for given in asked) for one in pushed.left_over)  # Spark knows them by identity
    for row in some_rows:
        wanted = all(sql(one, row) is True for one in asked)
        found = is_inside(pushed, row) and matches(pushed.predicate, row)
        assert found or not wanted
        assert (found and all(sql(one, row) is True for one in pushed.left_over)) == wanted


def is_inside(pushed: Pushed, row: Row) -> bool:
    """As a search reads a range of time."""
    if (pushed.since, pushed.until) == FOREVER:
        return True
    moment = row[TIMESTAMP]
    return (
        moment is not None
        and pushed.since <= (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta.resolution < pushed.until
    )


DECIDED: list[tuple[Filter, Predicate]] = [
    (EqualTo((CONTENT,), "a"), equals(CONTENT, "a", case_sensitive=True)),
    (EqualNullSafe((CONTENT,), "a"), equals(CONTENT, "a", case_sensitive=True)),
    (Not(EqualNullSafe((CONTENT,), "a")), ~equals(CONTENT, "a", case_sensitive=True)),
    (Not(EqualTo((CONTENT,), "a")), exists(CONTENT) & ~equals(CONTENT, "a", case_sensitive=True)),
    (In((SOURCE,), ["a", None]), one_of(SOURCE, ["a"], case_sensitive=True)),
    (Not(In((SOURCE,), ("a", None))), NOTHING),
    (Not(In((SOURCE,), ("a",))), exists(SOURCE) & ~one_of(SOURCE, ["a"], case_sensitive=True)),
    (IsNull((LOGLEVEL,)), ~exists(LOGLEVEL)),
    (Not(IsNull((LOGLEVEL,))), exists(LOGLEVEL)),
    (IsNotNull((ATTRIBUTES,)), exists(ATTRIBUTES)),
    (StringContains((CONTENT,), "a"), contains("a", case_sensitive=True)),
    (StringStartsWith((CONTENT,), "a"), prefix("a", case_sensitive=True)),
    (Not(Not(StringEndsWith((CONTENT,), "a"))), suffix("a", case_sensitive=True)),
    (GreaterThan((SOURCE,), "a"), compare(SOURCE, ">", "a")),
    (LessThanOrEqual((TIMESTAMP,), NOON), compare(TIMESTAMP, "<=", NOON)),
]


@pytest.mark.parametrize(("asked", "predicate"), DECIDED, ids=str)
def test_filters_on_the_columns_of_every_table_are_decided(asked: Filter, predicate: Predicate) -> None:
    assert predicate_of(asked, WIDE_SCHEMA) == (predicate, True)


IMPLIED: list[tuple[Filter, Predicate]] = [
    (EqualTo((USERAPP,), "a"), equals(USERAPP, "a", case_sensitive=True)),
    (IsNotNull((STATUS,)), exists(STATUS)),
    (Not(EqualTo((STATUS,), 404)), exists(STATUS) & ~equals(STATUS, 404, case_sensitive=True)),
    (LessThan((RATIO,), 0.5), compare(RATIO, "<", 0.5)),
    (EqualTo((DAY,), date(2024, 6, 1)), equals(DAY, date(2024, 6, 1), case_sensitive=True)),
    (EqualTo((OK,), True), equals(OK, True, case_sensitive=True)),
]


@pytest.mark.parametrize(("asked", "predicate"), IMPLIED, ids=str)
def test_filters_on_other_columns_are_implied_and_exact_without_attributes(asked: Filter, predicate: Predicate) -> None:
    assert predicate_of(asked, WIDE_SCHEMA) == (predicate, False)
    assert predicate_of(asked, WITHOUT_ATTRIBUTES) == (predicate, True)


@pytest.mark.parametrize(
    "asked",
    [
        IsNull((USERAPP,)),
        Not(EqualNullSafe((USERAPP,), "a")),
        EqualTo(("attributes", "userapp"), "a"),
        EqualTo(("absent",), "a"),
        EqualTo(("*",), "a"),
        EqualTo((STATUS,), "404"),
        EqualTo((CONTENT,), 404),
        EqualTo((OK,), 1),
        EqualTo((STATUS,), True),
        EqualTo((RATIO,), math.nan),
        GreaterThan((RATIO,), 0.5),
        EqualTo((PRICE,), Decimal("1.5")),
        EqualTo((TIMESTAMP,), datetime(2024, 6, 1)),
        EqualTo((DAY,), NOON),
        Not(In((CONTENT,), ())),
        StringContains((STATUS,), "4"),
    ],
    ids=str,
)
def test_nothing_is_said_where_the_meanings_differ(asked: Filter) -> None:
    assert predicate_of(asked, WIDE_SCHEMA) == (None, False)
    assert push([asked], WIDE_SCHEMA) == Pushed(EVERYTHING, *FOREVER, [asked])


def test_comparisons_of_the_timestamp_are_a_range() -> None:
    since, until = GreaterThanOrEqual((TIMESTAMP,), NOON), LessThan((TIMESTAMP,), NOON + timedelta(seconds=1))
    there, text = IsNotNull((TIMESTAMP,)), StringContains((CONTENT,), "a")
    expected = Pushed(contains("a", case_sensitive=True), NOON_US, NOON_US + 10**6, [])
    assert push([there, since, until, text, IsNotNull((TIMESTAMP,))], ROW_SCHEMA) == expected
    assert push([there], ROW_SCHEMA) == Pushed(exists(TIMESTAMP), *FOREVER, [])
    assert push([since], ROW_SCHEMA) == Pushed(EVERYTHING, NOON_US, FOREVER[1], [])
    bounds = {
        EqualTo: (NOON_US, NOON_US + 1),
        EqualNullSafe: (NOON_US, NOON_US + 1),
        GreaterThan: (NOON_US + 1, FOREVER[1]),
        LessThan: (FOREVER[0], NOON_US),
        LessThanOrEqual: (FOREVER[0], NOON_US + 1),
    }
    for kind, bound in bounds.items():
        assert push([kind((TIMESTAMP,), NOON)], ROW_SCHEMA) == Pushed(EVERYTHING, *bound, [])


def test_several_moments_are_a_range_and_a_predicate() -> None:
    later = NOON + timedelta(seconds=1)
    expected = Pushed(one_of(TIMESTAMP, [later, NOON], case_sensitive=True), NOON_US, NOON_US + 10**6 + 1, [])
    assert push([In((TIMESTAMP,), (later, None, NOON))], ROW_SCHEMA) == expected


def test_nanoseconds_and_times_without_a_zone() -> None:
    asked = LessThanOrEqual((TIMESTAMP,), NOON)
    nanoseconds = pa.schema([(TIMESTAMP, pa.timestamp("ns", "UTC"))])
    assert push([asked], nanoseconds) == Pushed(EVERYTHING, FOREVER[0], NOON_US + 2, [asked])
    plain = LessThan((TIMESTAMP,), NOON.replace(tzinfo=None))
    without_zone = pa.schema([(TIMESTAMP, pa.timestamp("us"))])
    assert push([plain], without_zone) == Pushed(EVERYTHING, FOREVER[0], NOON_US, [])
    assert push([asked], without_zone) == Pushed(EVERYTHING, *FOREVER, [asked])
    assert push([plain], ROW_SCHEMA) == Pushed(EVERYTHING, *FOREVER, [plain])


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .config("spark.sql.session.timeZone", "America/New_York")
        .getOrCreate()
    )
    yield session
    session.stop()


X = ("x",)
FOUR_HOURS = timedelta(hours=4)  # from New York in summer
MIDNIGHT = datetime(2024, 6, 1, tzinfo=UTC)

PUSHED: list[tuple[str, str, list[Filter]]] = [
    ("TIMESTAMP", "x >= timestamp'2024-06-01 12:00:00Z'", [GreaterThanOrEqual(X, NOON)]),
    ("TIMESTAMP", "x > '2024-06-01'", [GreaterThan(X, MIDNIGHT + FOUR_HOURS)]),
    ("TIMESTAMP", "to_date(x) = '2024-06-01'", [
        GreaterThanOrEqual(X, MIDNIGHT + FOUR_HOURS),
        LessThan(X, MIDNIGHT + FOUR_HOURS + timedelta(days=1)),
    ]),
    ("TIMESTAMP_NTZ", "x < timestamp_ntz'2024-06-01 00:00:00'", [LessThan(X, datetime(2024, 6, 1))]),
    ("DATE", "x = '2024-06-01'", [EqualTo(X, date(2024, 6, 1))]),
    ("STRING", "x = 'a'", [EqualTo(X, "a")]),
    ("STRING", "X != 'a'", [Not(EqualTo(X, "a"))]),
    ("STRING", "x <=> 'a'", [EqualNullSafe(X, "a")]),
    ("STRING", "x <=> null", [IsNull(X)]),
    ("STRING", "x in ('a', null)", [In(X, ["a", None])]),
    ("STRING", "x not in ('a', 'b')", [Not(In(X, ["a", "b"]))]),
    ("STRING", "x like '%a%'", [StringContains(X, "a")]),
    ("STRING", "x like 'a%c'", [StringStartsWith(X, "a"), StringEndsWith(X, "c")]),
    ("STRING", "x not like '%a%'", [Not(StringContains(X, "a"))]),
    ("STRING", "x ilike '%a%'", []),
    ("STRING", "x = 404", []),
    ("STRING", "x = 'a' or x = 'b' or x is null", []),
    ("BIGINT", "x = '404'", [EqualTo(X, 404)]),
    ("BIGINT", "x > 404.5", [GreaterThan(X, 404)]),
    ("DOUBLE", "x = 1", [EqualTo(X, 1.0)]),
    ("BOOLEAN", "not x", [Not(EqualTo(X, True))]),
    # of more than 28 digits the last are lost
    ("DECIMAL(38, 9)", f"x > 1{'0' * 27}2.1", [GreaterThan(X, Decimal(f"1.{'0' * 27}E+28"))]),
    ("MAP<STRING, STRING>", "x['k'] = 'v'", []),
    ("STRUCT<a: STRING>", "x.a = 'v'", [EqualTo(("x", "a"), "v")]),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")
def test_spark_pushes_filters_of_these_types(spark: SparkSession, tmp_path: Path) -> None:
    class Reader(DataSourceReader):
        def __init__(self, path: str) -> None:
            self.path = path

        def pushFilters(self, filters: list[Filter]) -> list[Filter]:  # noqa: N802
            Path(self.path).write_bytes(pickle.dumps(filters))
            return filters

        def read(self, partition: object) -> Iterator[tuple[Any, ...]]:
            return iter(())

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "pushed"

        def reader(self, schema: object) -> DataSourceReader:
            return Reader(self.options["path"])

    spark.dataSource.register(Source)
    columns = [f"x{i} {kind}" for i, (kind, _, _) in enumerate(PUSHED)]  # one query is enough if each has its own
    frame = spark.read.format("pushed").schema(", ".join([*columns, "t TIMESTAMP"])).load(str(tmp_path / "pushed"))
    moment = datetime(2024, 6, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    frame = frame.filter(functions.col("t") < moment)
    for i, (_, condition, _) in enumerate(PUSHED):
        frame = frame.filter(re.sub(r"\b([xX])\b", rf"\g<1>{i}", condition))
    frame._jdf.queryExecution().optimizedPlan()  # nothing need be read
    found = [one for one in pickle.loads((tmp_path / "pushed").read_bytes()) if not isinstance(one, IsNotNull)]
    expected = [renamed(one, f"x{i}") for i, (_, _, filters) in enumerate(PUSHED) for one in filters]
    assert sorted(map(str, found)) == sorted(map(str, [*expected, LessThan(("t",), in_utc(NOON))]))


def renamed(one: Any, name: str) -> Filter:
    """The filter on another column, and moments with the zone that Spark gives them."""
    if isinstance(one, Not):
        return Not(renamed(one.child, name))
    value = {"value": in_utc(one.value)} if hasattr(one, "value") else {}
    return cast(Filter, dataclasses.replace(one, attribute=(name, *one.attribute[1:]), **value))


def in_utc(value: Any) -> Any:
    return value.replace(tzinfo=ZoneInfo("UTC")) if isinstance(value, datetime) and value.tzinfo else value
