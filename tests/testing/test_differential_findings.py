"""What differential fuzzing found, each as a small case of its own."""

from decimal import Decimal
from pathlib import Path

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from coprlake import Intake, QueryError, UsageError, create_table, ingest, open_table
from coprlake.predicate.predicates import Compare, Contains, Equals, OneOf
from coprlake.query import duck_scan
from coprlake.storage.conforming import lake_type


def _ids(found: pa.Table) -> list[int]:
    return sorted(found.column("id").to_pylist())


def test_a_content_column_of_another_type_is_indexed(tmp_path: Path) -> None:
    data = {"id": [1, 2], "content": pa.array([1.5, None]), "note": ["needle here", "nothing"]}
    pq.write_table(pa.table(data), tmp_path / "a.parquet")
    table = open_table(tmp_path)
    table.index()
    assert _ids(table.search(Contains("needle", "note")).arrow()) == [1]


@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("us"), pa.list_(pa.int32())])
def test_attributes_that_are_no_map_are_refused_by_name(tmp_path: Path, kind: pa.DataType) -> None:
    values = pa.array([[1, 2, 3]] if pa.types.is_list(kind) else [5], kind)
    table = create_table(tmp_path / "logs")
    with pytest.raises(UsageError, match="the column attributes cannot be stored"):
        table.append(pa.table({"content": ["a"], "attributes": values}))


@pytest.mark.parametrize("item", [pa.timestamp("s"), pa.uint64(), pa.large_string(), pa.uint8()])
def test_maps_get_the_types_that_delta_has(tmp_path: Path, item: pa.DataType) -> None:
    value = "v" if item == pa.large_string() else 7
    table = create_table(tmp_path / "logs", partition_by=None)
    table.append(pa.table({"id": [1], "tags": pa.array([[("k", value)]], pa.map_(pa.string(), item))}))
    assert table.schema.field("tags").type == lake_type(pa.map_(pa.string(), item))
    assert _ids(open_table(tmp_path / "logs").search().arrow()) == [1]


def test_decimals_are_compared_exactly(tmp_path: Path) -> None:
    numbers = [
        Decimal("-0.099999"),
        Decimal("12345678901234567890.100000"),
        Decimal("12345678901234567890.200000"),
        None,
    ]
    column = pa.array(numbers, pa.decimal128(38, 6))
    pq.write_table(pa.table({"id": [0, 1, 2, 3], "amount": column}), tmp_path / "a.parquet")
    table = open_table(tmp_path)

    def found(predicate: Equals | OneOf | Compare) -> list[int]:
        return _ids(table.search(predicate).arrow())

    assert found(Equals("amount", "-0.099999")) == [0]
    assert found(Equals("amount", -0.099999)) == [0]
    assert found(Equals("amount", "12345678901234567890.1")) == [1]
    assert found(OneOf("amount", ("12345678901234567890.2", "x", float("nan")))) == [2]
    assert found(Compare("amount", ">", "12345678901234567890.1")) == [2]
    assert found(Compare("amount", "<=", 0)) == [0]
    assert found(Compare("amount", "<", float("inf"))) == [0, 1, 2]
    assert found(Compare("amount", ">", 10**40)) == []
    assert found(Equals("amount", "1e999999999")) == []


def test_views_of_text_inside_of_structs_are_read(tmp_path: Path) -> None:
    frame = polars.DataFrame({"id": [1, 2], "who": [{"name": "Eve"}, {"name": "Bob"}], "tags": [["a"], ["b", "c"]]})
    frame.write_delta(str(tmp_path / "logs"))
    table = open_table(tmp_path / "logs")
    assert _ids(table.search(Contains("eve", "who.name")).arrow()) == [1]
    assert _ids(table.search(Equals("tags", "c")).arrow()) == [2]
    assert table.search(Equals("id", 2)).arrow().column("who").to_pylist() == [{"name": "Bob"}]


def test_the_last_microsecond_is_a_time_as_any_other(tmp_path: Path) -> None:
    times = pa.array([2**63 - 1, 0], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"id": [1, 2], "timestamp": times, "content": ["a", "a"]}), tmp_path / "a.parquet")
    table = open_table(tmp_path)
    assert _ids(table.search(since=0, columns=["id"]).arrow()) == [1, 2]
    assert table.search(order="newest", columns=["id"]).arrow().column("id").to_pylist() == [1, 2]


@pytest.mark.parametrize("rows", [1, 5000])
def test_a_query_of_text_that_is_not_utf8_fails_with_an_error_of_ours(tmp_path: Path, rows: int) -> None:
    content = pa.array([b"a\xff"] * rows, pa.binary()).view(pa.string())
    pq.write_table(pa.table({"id": range(rows), "content": content}), tmp_path / "a.parquet")
    table = open_table(tmp_path)
    assert table.search("a").count() == rows
    for text in ('filterOut contains(content, "b") | fields content', "summarize n = count(), by:{content}"):
        with pytest.raises(QueryError, match="not valid UTF-8"):
            table.query(f"fetch logs | {text}").arrow()


def test_records_with_a_key_twice_can_be_queried(tmp_path: Path) -> None:
    pairs = [[("k", "1"), ("j", "x"), ("k", "2")], None, [], [("k", "3")]]
    table = create_table(tmp_path / "logs", partition_by=None)
    attributes = pa.array(pairs, pa.map_(pa.string(), pa.string()))
    table.append(pa.table({"id": range(4), "content": ["a"] * 4, "attributes": attributes}))
    found = table.query('fetch logs | filter contains(content, "a") | fields id, k, j | sort id').arrow()
    assert found.column("k").to_pylist() == ["1", None, None, "3"]
    assert found.column("j").to_pylist() == ["x", None, None, None]
    assert _ids(table.query('fetch logs | filter k == "1" | fields id').arrow()) == [0]


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()])
def test_lists_of_times_are_queried_whoever_reads_the_files(
    tmp_path: Path, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = pa.array([[19_875], []], pa.list_(pa.int32() if kind == pa.date32() else pa.int64())).cast(pa.list_(kind))
    table = create_table(tmp_path / "logs", partition_by=None)
    table.append(pa.table({"id": [1, 2], "content": ["needle", "nothing"], "moments": moments}))
    query = 'fetch logs | search "needle" | fields id, moments'
    here = table.query(query).arrow()
    monkeypatch.setattr(duck_scan, "LITTLE_BYTES", 0)  # DuckDB reads the files itself where it can
    assert table.query(query).arrow() == here
    assert _ids(here) == [1]


@pytest.mark.parametrize("partition_by", [None, "source"])
def test_rows_of_a_table_whose_columns_the_language_cannot_show_are_counted(
    tmp_path: Path, partition_by: str | None
) -> None:
    data = pa.table({"timestamp": [b"x", b"y"], "source": ["a", "b"], "raw": [b"1", b"2"]})
    write_deltalake(str(tmp_path / "logs"), data, partition_by=partition_by)
    query = "fetch logs | summarize n = countIf(isFalseOrNull(isNotNull(absent)))"
    for use_sketches in (True, False):
        assert list(open_table(tmp_path / "logs").query(query, use_sketches=use_sketches).rows()) == [{"n": 2}]


def test_times_of_any_year_in_files_that_spark_wrote_are_right(tmp_path: Path) -> None:
    """They are INT96: too many for nanoseconds of 64 bits, and without statistics."""
    last, first = 253402300799999999, -62135596800000000  # the years 9999 and 1
    times = pa.array([last, 1717243200000001, first, None], pa.timestamp("us"))
    data = pa.table({"id": [0, 1, 2, 3], "timestamp": times})
    file = tmp_path / "spark" / "a.parquet"
    file.parent.mkdir()
    pq.write_table(data, file, use_deprecated_int96_timestamps=True)
    table = open_table(file.parent)
    assert table.schema.field("timestamp").type == pa.timestamp("us")
    assert table.search().arrow().column("timestamp").to_pylist() == times.to_pylist()
    assert _ids(table.search(since=1717243200000001).arrow()) == [0, 1]
    asked = table.query("fetch logs | fields id, timestamp | sort id").arrow().column("timestamp")
    assert asked.cast(pa.int64()).to_pylist() == times.cast(pa.int64()).to_pylist()
    counting = 'fetch logs | summarize n = countIf(timestamp > toTimestamp("2024-06-01T12:00:00Z"))'
    assert table.query(counting).arrow().column("n").to_pylist() == [2]
    taken = create_table(tmp_path / "logs")
    with Intake([file]) as intake:
        ingest(taken, intake)
    assert _ids(taken.search(since=last, until=last + 1).arrow()) == [0]
