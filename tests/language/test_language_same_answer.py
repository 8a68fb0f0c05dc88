"""Same question, same rows: whatever the order in which records were written, the number of threads, and the engine."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from coprlake import Limits, Table, create_table
from coprlake.spark import query as spark_query
from tests.language.language_cases import NOW, rows_of
from tests.spark_sessions import QUIET

pytestmark = QUIET

BEGIN = datetime(2026, 11, 16, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ratio", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.int64()), ("y", pa.float64())])),
    ]
)
RATIOS = [None, 0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf")]
LOOSE = [None, "9", "10", "9.0", "-1e1", "n/a", "abc", ""]
TAGS = [None, [], ["b"], ["a", None], ["a", "b"], ["é"]]


def _records() -> list[dict[str, Any]]:
    """Few values and many ties; an id is unique, and only asked for where that is said."""
    chance = random.Random(13)
    rows = []
    for number in range(90):
        attributes = {key: value for key in ("took", "size") if (value := chance.choice(LOOSE)) is not None}
        rows.append(
            {
                "timestamp": BEGIN + timedelta(minutes=chance.randrange(3)),
                "source": chance.choice(["web", "db", "é", "Z"]),
                "loglevel": chance.choice(["INFO", None]),
                "content": chance.choice(["one", "two", "three"]),
                "attributes": dict(chance.sample(sorted(attributes.items()), len(attributes))),
                "id": number,
                "ratio": chance.choice(RATIOS),
                "tags": chance.choice(TAGS),
                "place": chance.choice([None, {"x": 1, "y": None}, {"x": None, "y": 2.0}, {"x": 1, "y": 2.0}]),
            }
        )
    return rows


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    """The same records in three orders, each in several segments."""
    folder = Path(tmp_path_factory.mktemp("same"))
    made = []
    for seed in range(3):
        rows = _records()
        random.Random(seed).shuffle(rows)
        table = create_table(folder / f"logs{seed}", schema=SCHEMA)
        for first in range(0, len(rows), 25 + seed):
            table.append(rows[first : first + 25 + seed])
        made.append(table)
    return made


FIELDS = "timestamp, source, loglevel, content, took, ratio, tags, place"
QUERIES = {
    "dedup": f"fetch logs | dedup source | fields {FIELDS}",
    "dedup, with all attributes": "fetch logs | fieldsRemove id | dedup source",
    "dedup by two keys": f"fetch logs | dedup loglevel, ratio | fields {FIELDS}",
    "dedup by an attribute": f"fetch logs | dedup took | fields {FIELDS}",
    "dedup after a sort": f"fetch logs | sort loglevel desc | dedup source | fields {FIELDS}",
    "dedup with a sort of its own": f"fetch logs | dedup source, sort:{{ratio desc}} | fields {FIELDS}",
    "dedup, then a filter": "fetch logs | dedup source | filter ratio > 0 | fields source, ratio",
    "lookup": 'data record(s = "web"), record(s = "é"), record(s = "no") '
    "| lookup [fetch logs | fieldsRemove id], sourceField:s, lookupField:source",
    "lookup after a sort": 'data record(s = "web"), record(s = "db") '
    "| lookup [fetch logs | sort took], sourceField:s, lookupField:source, fields:{took, size, tags}",
    "sort": f"fetch logs | sort source | fields {FIELDS}",
    "sort downwards": f"fetch logs | sort ratio desc | fields {FIELDS}",
    "sort by an attribute": "fetch logs | sort took desc, size | fields took, size, content",
    "sort and limit": f"fetch logs | sort timestamp desc | limit 7 | fields {FIELDS}",
    "sort and limit, few fields": "fetch logs | sort loglevel | limit 5 | fields content",
    "sort, limit, filter": 'fetch logs | sort took | limit 40 | filter content == "one" | fields took, ratio',
    "limit of groups": "fetch logs | summarize n = count(), by:{source, took} | limit 3",
    "limit of dedup": f"fetch logs | dedup source | limit 2 | fields {FIELDS}",
    "limit of a join": 'fetch logs | join [data record(s = "web", v = 1), record(s = "web", v = 2)], '
    "on:{left[source] == right[s]} | limit 5 | fields content, took, right.v",
    "take": "fetch logs | summarize a = takeAny(content), f = takeFirst(content), l = takeLast(content), "
    "t = takeFirst(took), g = takeLast(tags), p = takeFirst(place), m = takeMax(took), by:{source}",
    "take after a sort": "fetch logs | sort took desc | summarize f = takeFirst(size), l = takeLast(ratio)",
    "take by two keys": "fetch logs | sort loglevel, took | summarize f = takeFirst(content), l = takeLast(size)",
    "collect": "fetch logs | summarize a = collectArray(took), b = collectArray(ratio), c = collectArray(tags), "
    "d = collectArray(place), e = collectDistinct(took), f = collectDistinct(content), by:{source}",
    "collect after a sort": "fetch logs | sort took desc, ratio | summarize a = collectArray(content), "
    "b = collectArray(place), by:{source}",
    "least and greatest": "fetch logs | summarize a = min(took), b = max(took), c = min(tags), d = max(tags), "
    "e = min(place), f = max(place), g = min(ratio), h = max(ratio)",
    "compare attributes": "fetch logs | filter took < size | summarize n = count(), by:{took, size}",
    "groups of floats": "fetch logs | summarize n = count(), by:{ratio}",
    "a summary of fields": "fetch logs | fieldsSummary took, content, source, topValues: 2",
    "series": "fetch logs | makeTimeseries f = takeFirst(content), m = max(took), by:{source}, interval: 1m",
    "in an array": 'fetch logs | filter in(tags, "a", "é") | summarize n = count(), by:{source}',
    "append": 'fetch logs | filter source == "db" | append [fetch logs | filter source == "web"] | sort content '
    "| limit 9 | fields content, took, source",
    "expand": "fetch logs | expand tags | sort tags | limit 20 | fields tags, source",
    "a pruned needle": f'fetch logs | filter source == "web" | sort content | limit 3 | fields {FIELDS}',
}


ORDERED = {name for name in QUERIES if name.startswith("sort")} | {
    "limit of groups",
    "append",
    "expand",
    "a pruned needle",
}


def _rows(name: str, found: pa.Table) -> list[str]:
    """The rows, in their order if the query is about one."""
    rows = rows_of(found)
    return rows if name in ORDERED else sorted(rows)


@pytest.mark.parametrize("name", QUERIES)
def test_the_same_rows_from_any_order_of_writing_with_any_number_of_threads(tables: list[Table], name: str) -> None:
    wanted = _rows(name, tables[0].query(QUERIES[name], now=NOW, limits=Limits(threads=1)).arrow())
    assert wanted
    for table in tables:
        for threads in (1, 4):
            for use_sketches in (True, False):
                asked = table.query(QUERIES[name], now=NOW, limits=Limits(threads=threads), use_sketches=use_sketches)
                assert _rows(name, asked.arrow()) == wanted, (table.uri, threads, use_sketches)


@pytest.mark.parametrize("name", QUERIES)
def test_the_same_rows_on_spark(spark: SparkSession, tables: list[Table], name: str) -> None:
    wanted = _rows(name, tables[0].query(QUERIES[name], now=NOW).arrow())
    assert _rows(name, spark_query(spark, tables[1], QUERIES[name], now=NOW).arrow()) == wanted


def test_since_without_until_ends_now(tables: list[Table]) -> None:
    asked = "fetch logs | summarize n = count()"
    now = BEGIN + timedelta(minutes=1)  # some records are later
    until = tables[0].query(asked, since=BEGIN, until=now).arrow().to_pylist()
    assert tables[0].query(asked, since=BEGIN, now=now).arrow().to_pylist() == until
    assert until[0]["n"] < len(_records())
    assert tables[0].query(asked, now=now).arrow().to_pylist() == [{"n": len(_records())}]


def test_now_is_the_same_everywhere_in_a_query(tables: list[Table]) -> None:
    asked = (
        "data record(a = now()) | append [data record(a = now())] | fieldsAdd b = now() | filter a == b and a == now()"
    )
    assert tables[0].query(asked + " | summarize n = count(), d = countDistinct(a)").arrow().to_pylist() == [
        {"n": 2, "d": 1}
    ]


def test_options_that_would_give_other_rows_are_refused(tables: list[Table]) -> None:
    for option in ("samplingRatio: 10", "scanLimitGBytes: 1", 'bucket: {"a"}'):
        with pytest.raises(Exception, match="is not supported here"):
            tables[0].query(f"fetch logs, {option}")


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("data record(a = 1) | fields bin(a, 0)", "greater than 0"),
        ("data record(a = 1) | fields bin(a, -2)", "greater than 0"),
        ("data record(a = 1) | fields bin(a, 5m)", "bin cannot be used with"),
        ("data record(a = now()) | fields bin(a, 5)", "bin cannot be used with"),
        ("data record(a = now()) | fields bin(a, 5m, at: 3)", "bin cannot be used with"),
        ("data record(a = now()) | fields bin(a, 1d, at: 1M)", "at cannot be in months"),
    ],
)
def test_bin_refuses_what_it_cannot_count(tables: list[Table], query: str, problem: str) -> None:
    with pytest.raises(Exception, match=problem):
        tables[0].query(query)
