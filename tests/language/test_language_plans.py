"""What a query reads: which columns, what it prunes by, and in which way a table comes to the engine."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.generator import Generator

from coprlake import Table, create_table, open_table
from coprlake.language.sql.sql_text import rendered
from coprlake.predicate.predicates import (
    ALL_FIELDS,
    EVERYTHING,
    And,
    Contains,
    Equals,
    OneOf,
    Or,
    Phrase,
    Predicate,
    Prefix,
    Regex,
    Suffix,
)
from coprlake.query.querying import Query
from coprlake.spark import query as spark_query
from tests.language.language_cases import NOW, canonical, rows_of
from tests.spark_sessions import QUIET

pytestmark = QUIET


def _predicate(query: Query) -> Predicate:
    (pruning,) = query.compiled.prunings.values()
    return pruning.necessary.predicate


EXACT: Any = {"case_sensitive": True}
PRUNED: list[tuple[str, Predicate]] = [
    ('filter userapp == "shop"', Equals("userapp", "shop", **EXACT)),
    ('filter "shop" == userapp', Equals("userapp", "shop", **EXACT)),
    ("filter status == 404", OneOf("status", ("404", "404.0"), **EXACT)),
    ('filter zone == "eu"', Equals("zone", "eu", **EXACT)),
    ('filter matchesValue(userapp, "shop")', Equals("userapp", "shop")),
    ('filter matchesValue(userapp, "sh*", "*op")', Or((Prefix("sh", "userapp"), Suffix("op", "userapp")))),
    ('filter matchesValue(userapp, {"*ho*"})', Contains("ho", "userapp")),
    ('filter matchesPhrase(content, "order 100*")', Phrase("order 100*")),
    ('filter contains(content, "order")', Contains("order", **EXACT)),
    ('filter contains(content, "order", caseSensitive: false)', Contains("order")),
    ('filter startsWith(content, "order")', Prefix("order", **EXACT)),
    ('filter endsWith(content, "bob")', Suffix("bob", **EXACT)),
    ('filter content ~ "order"', Phrase("order")),
    ('filter like(content, "created%bob")', And((Prefix("created", **EXACT), Suffix("bob", **EXACT)))),
    ('filter matchesRegex(content, "order [0-9]+")', Regex("order [0-9]+", **EXACT)),
    ('filter in(source, "web", "db")', OneOf("source", ("web", "db"), **EXACT)),
    ('filter source in {"web", "db"}', OneOf("source", ("web", "db"), **EXACT)),
    ('search "shop"', Phrase("shop", ALL_FIELDS)),
    ('search "a*b"', And((Contains("a", ALL_FIELDS), Contains("b", ALL_FIELDS)))),
    (
        'filter source == "web" and contains(content, "x") and id > 5',
        And((Equals("source", "web", **EXACT), Contains("x", **EXACT))),
    ),
    (
        'filter source == "web" or source == "db"',
        Or((Equals("source", "web", **EXACT), Equals("source", "db", **EXACT))),
    ),
    ('filter source == "web" or id > 5', EVERYTHING),
    ('filter not source == "web"', EVERYTHING),
    ('filterOut source == "web"', EVERYTHING),
    ('filter upper(source) == "WEB"', EVERYTHING),
    ("filter content == source", EVERYTHING),
    ('search "7"', EVERYTHING),
    ('fieldsRename app = userapp | filter app == "shop"', Equals("userapp", "shop", **EXACT)),
    ('fieldsAdd app = userapp | fields app, content | filter app == "shop"', Equals("userapp", "shop", **EXACT)),
    ('fieldsAdd content = upper(content) | filter content == "X"', EVERYTHING),
    ('sort timestamp | filter source == "web"', Equals("source", "web", **EXACT)),
    ('limit 5 | filter source == "web"', EVERYTHING),
    ('summarize count(), by:{source} | filter source == "web"', Equals("source", "web", **EXACT)),
    ("summarize n = count(), by:{source} | filter n > 1", EVERYTHING),
    ('parse content, "LD:first" | filter source == "web"', Equals("source", "web", **EXACT)),
    ('parse content, "LD:source" | filter source == "web"', EVERYTHING),
]


@pytest.mark.parametrize(("steps", "predicate"), PRUNED, ids=[steps for steps, _ in PRUNED])
def test_conditions_prune(table: Table, steps: str, predicate: Predicate) -> None:
    assert _predicate(table.query(f"fetch logs | {steps}")) == predicate


def test_conditions_prune_through_append_and_join(table: Table) -> None:
    united = table.query('fetch logs | append [fetch logs] | filter source == "web"')
    found = [one.necessary.predicate for one in united.compiled.prunings.values()]
    assert found == [Equals("source", "web", **EXACT)] * 2
    joined = table.query(
        'fetch logs | join [fetch logs], on:{id} | filter source == "web" and right.loglevel == "INFO"'
    )
    found = [one.necessary.predicate for one in joined.compiled.prunings.values()]
    assert found == [Equals("source", "web", **EXACT), Equals("loglevel", "INFO", **EXACT)]


def test_times_prune(table: Table) -> None:
    (pruning,) = table.query(
        'fetch logs, from:-2h | filter timestamp < toTimestamp("2026-11-16T12:00:00Z")', now=NOW
    ).compiled.prunings.values()
    assert pruning.since == int(datetime(2026, 11, 16, 10, 34, 56, tzinfo=UTC).timestamp() * 1e6)
    assert pruning.until == int(datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp() * 1e6)


def test_what_cannot_prune_is_told(table: Table) -> None:
    (pruning,) = table.query('fetch logs | filter not source == "web" and id > 5').compiled.prunings.values()
    assert pruning.ignored == ["not((source == 'web'))", "(id > 5)"]


COLUMNS = [
    ("summarize count = count(), by:{loglevel}", ["loglevel"]),
    ("summarize count()", ["timestamp"]),
    ("fields source, content", ["source", "content"]),
    ("fields userapp", ["attributes"]),
    ('filter source == "web" | fields content', ["content", "source"]),
    ("fieldsAdd x = upper(content) | fields source", ["source"]),
    ("fieldsAdd x = upper(content) | summarize n = count(), by:{source}", ["source"]),
    ("sort timestamp desc | limit 5 | fields source", ["source", "timestamp"]),
    ('parse content, "LD:a" | fields source', ["source"]),
]


@pytest.mark.parametrize(("steps", "columns"), COLUMNS, ids=[steps for steps, _ in COLUMNS])
def test_only_the_needed_columns_are_read(table: Table, steps: str, columns: list[str]) -> None:
    query = table.query(f"fetch logs | {steps}")
    query.arrow()
    assert sorted(query.report.scans[0].columns) == sorted(columns)


def test_much_is_read_by_duckdb_and_little_is_handed_over(table: Table) -> None:
    whole, needle = table.query("fetch logs | summarize count()"), table.query('fetch logs | filter userapp == "shop"')
    whole.arrow()
    needle.arrow()
    assert whole.report.scans[0].way == "Parquet files, read by DuckDB"
    assert needle.report.scans[0].way == "searched here, handed over as Arrow data"
    assert needle.report.scans[0].search.segments_pruned_by_sketch > 0


def test_records_that_are_not_committed_are_seen(tmp_path: Path) -> None:
    table = create_table(tmp_path / "logs")
    table.append([{"content": "one", "source": "a"}])
    with table.writer() as writer:
        writer.append([{"content": "two", "source": "b"}])
        query = table.query("fetch logs | summarize n = count(), by:{source} | sort source")
        assert query.arrow().to_pylist() == [{"source": "a", "n": 1}, {"source": "b", "n": 1}]


def test_partition_columns_and_columns_that_came_later(tmp_path: Path) -> None:
    table = create_table(tmp_path / "logs", partition_by=["source"])
    table.append([{"content": "one", "source": "it's"}, {"content": "two", "source": None}])
    table.append(pa.table({"content": ["three"], "source": ["b"], "size": pa.array([5], pa.int32())}))
    rows = table.query("fetch logs | fields source, content, size | sort content").arrow().to_pylist()
    assert rows == [
        {"source": "it's", "content": "one", "size": None},
        {"source": "b", "content": "three", "size": 5},
        {"source": None, "content": "two", "size": None},
    ]


def _foreign(folder: Path) -> Table:
    """A table as others write it: nanoseconds, records with names of any kind, durations, unsigned numbers."""
    moments = pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns", tz="UTC"))
    records = pa.array([{"userId": 1, "B": "x", "a": [{"Deep": 5}]}, None])
    folder.mkdir()
    pq.write_table(
        pa.table(
            {
                "timestamp": moments,
                "content": ["first", "second"],
                "rec": records,
                "day_of": pa.array([0, 1], pa.date32()),
                "plain": pa.array([0, 10**15], pa.timestamp("us")),
                "took": pa.array([5, None], pa.duration("us")),
                "huge": pa.array([2**63, 1], pa.uint64()),
                "price": pa.array([Decimal("1.00"), None], pa.decimal128(10, 2)),
            }
        ),
        folder / "a.parquet",
    )
    return open_table(folder)


FOREIGN = [
    (
        "fields t = timestamp, content",
        [{"t": "2023-11-14T22:13:20.123456Z", "content": "first"}, {"t": None, "content": "second"}],
    ),
    (
        "fields x = rec[userId], y = rec[B], z = rec[a]",
        [{"x": 1, "y": "x", "z": [{"Deep": 5}]}, {"x": None, "y": None, "z": None}],
    ),
    ('filter rec[B] == "x" | fields content', [{"content": "first"}]),
    ('search "x" | fields content', [{"content": "first"}]),
    (
        "fields day_of, plain",
        [
            {"day_of": "1970-01-01T00:00:00Z", "plain": "1970-01-01T00:00:00Z"},
            {"day_of": "1970-01-02T00:00:00Z", "plain": "2001-09-09T01:46:40Z"},
        ],
    ),
    (
        "fields took, huge, price",
        [{"took": 5000, "huge": 9.223372036854775808e18, "price": 1.0}, {"took": None, "huge": 1.0, "price": None}],
    ),
    ("summarize n = count(), by:{content}", [{"content": "first", "n": 1}, {"content": "second", "n": 1}]),
    ('filter timestamp > "2023-01-01T00:00:00Z" | fields content', [{"content": "first"}]),
]


@pytest.mark.parametrize(("steps", "rows"), FOREIGN, ids=[steps for steps, _ in FOREIGN])
def test_tables_of_others(tmp_path: Path, steps: str, rows: list[dict[str, Any]]) -> None:
    table = _foreign(tmp_path / "foreign")
    assert rows_of(table.query(f"fetch logs | {steps}").arrow()) == [canonical(row) for row in rows]
    early = table.query(f'fetch logs, from:"2020-01-01T00:00:00Z" | {steps}').arrow()
    assert early.num_rows <= len(rows)


def test_paths_with_odd_signs(tmp_path: Path) -> None:
    table = create_table(tmp_path / "it's [a] *table*; --")
    table.append([{"content": "x"}])
    assert table.query("fetch logs | fields content").arrow().to_pylist() == [{"content": "x"}]


def test_another_table_by_its_path(table: Table, tmp_path: Path) -> None:
    other = create_table(tmp_path / "other")
    other.append([{"content": "from elsewhere"}])
    query = table.query(f'fetch "{tmp_path}/other" | fields content', tables=[tmp_path])
    assert query.arrow().to_pylist() == [{"content": "from elsewhere"}]


def test_an_empty_table(tmp_path: Path) -> None:
    table = create_table(tmp_path / "logs")
    assert table.query("fetch logs").arrow().num_rows == 0
    assert table.query("fetch logs | summarize count()").arrow().to_pylist() == [{"count()": 0}]


def test_results_in_every_form(table: Table) -> None:
    query = table.query("fetch logs | fields id, timestamp | sort id | limit 2")
    assert query.schema.names == ["id", "timestamp"]
    assert query.arrow().column("id").to_pylist() == [1, 2]
    assert query.pandas()["id"].tolist() == [1, 2]
    assert query.polars()["id"].to_list() == [1, 2]
    assert [row["id"] for row in query] == [1, 2]
    assert [row["id"] for row in query.rows()] == [1, 2]
    assert sum(batch.num_rows for batch in query.batches()) == 2
    assert query.reader().read_all().num_rows == 2
    assert pa.RecordBatchReader.from_stream(query).read_all().num_rows == 2
    assert query.explain().rows == 2
    assert set(query.report.seconds) >= {"parse", "plan", "sql", "read", "engine"}


def test_a_dataframe_of_spark(spark: SparkSession, table: Table) -> None:
    frame = spark_query(
        spark, table, "fetch logs | summarize t = max(timestamp), a = collectArray(id), by:{source}"
    ).dataframe()
    assert dict(frame.dtypes) == {"source": "string", "t": "timestamp", "a": "array<bigint>"}
    assert frame.count() == 3


@pytest.mark.parametrize("pretty", [False, True])
@pytest.mark.parametrize("generator", [DuckDB.Generator, Spark.Generator])
def test_a_deep_tree_is_rendered_as_a_shallow_one_is(generator: type[Generator], pretty: bool) -> None:
    value: exp.Expression = exp.column("a")
    for _ in range(12):
        value = exp.Paren(this=exp.Add(this=value, expression=exp.Literal.string("it's\ntwo lines")))
        value = exp.Anonymous(this="f", expressions=[exp.Case(default=value).when(exp.column("b"), exp.Null())])
    tree = exp.Select(expressions=[value])
    for i in range(25):
        tree = exp.Select(expressions=[exp.column("a")]).from_(tree.subquery(f"t{i}"))
    expected = generator(identify=True, pretty=pretty).generate(tree)
    assert rendered(generator(identify=True, pretty=pretty), tree) == expected
    assert generator(identify=True, pretty=pretty).generate(tree) == expected  # the tree is as it was
