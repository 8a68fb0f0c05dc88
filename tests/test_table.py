"""Tables: what goes in comes out, and what each action reports is what it did."""

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from coprlake.errors import ConflictError, UsageError
from coprlake.predicate.build import at_least, contains, equals, exists, one_of
from coprlake.query.time_bounds import microseconds
from coprlake.segment.mutable import SegmentOptions
from coprlake.segment.sidecar import sidecar_name
from coprlake.table import Table, create_table, open_table, table_exists

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = SegmentOptions(batch_bytes=100, slot_count=4)
NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return create_table(tmp_path / "table")


@pytest.fixture
def by_day(tmp_path: Path) -> Table:
    """A table as they were by default before 0.3."""
    return create_table(tmp_path / "table", partition_by="day")


def line(number: int, **more: Any) -> dict[str, Any]:
    return {
        "timestamp": NOON + timedelta(hours=number),
        "source": f"host{number % 3}",
        "loglevel": ["INFO", "WARN"][number % 2],
        "content": f"line {number} of the log, {'x' * 20}",
        "id": number,
    } | more


def ids(table: Table, *arguments: Any, **options: Any) -> list[int]:
    return sorted(row["id"] for row in table.search(*arguments, columns=["id"], **options).rows())


def only(table: Table, **options: Any) -> dict[str, Any]:
    (row,) = table.search(**options).rows()
    return row


# --- create and open ---


def test_a_new_table_is_empty(table: Table) -> None:
    assert list(table.search().rows()) == []
    assert table.search().count() == 0
    assert table.search("x").arrow().num_rows == 0
    assert table.schema.names[:5] == ["timestamp", "source", "loglevel", "content", "attributes"]
    assert table.partition_by == []
    assert "day" not in table.schema.names
    assert table.info().rows == table.info().segments == 0
    assert table.verify(deep=True).is_sound
    assert table.optimize().version is None
    assert table.delete(contains("x")).version is None
    assert table.deletions() == []
    assert table_exists(table.uri)


def test_a_table_is_made_once(tmp_path: Path) -> None:
    create_table(tmp_path / "table").append(["x"])
    with pytest.raises(ConflictError, match="already"):
        create_table(tmp_path / "table")
    assert create_table(tmp_path / "table", exist_ok=True).search().count() == 1


@pytest.mark.parametrize("partition_by", [None, (), "source", ["source", "loglevel"], "tenant", ["day", "source"]])
def test_a_table_may_be_partitioned_by_anything(tmp_path: Path, partition_by: Any) -> None:
    table = create_table(tmp_path / "table", partition_by=partition_by)
    table.append([line(number, tenant=f"t{number % 2}") for number in range(12)])
    again = open_table(tmp_path / "table")
    assert ids(again) == list(range(12))
    assert ids(again, equals("source", "host1")) == [1, 4, 7, 10]
    assert ids(again, equals("tenant", "t1")) == [1, 3, 5, 7, 9, 11]
    assert again.partition_by == ([partition_by] if isinstance(partition_by, str) else list(partition_by or ()))


def test_columns_may_be_given(tmp_path: Path) -> None:
    schema = pa.schema([("status", pa.int32()), ("when", pa.date32())])
    table = create_table(tmp_path / "table", schema=schema)
    table.append([{"content": "x", "status": 404, "when": date(2024, 6, 1)}])
    assert only(table, columns=["status", "when"]) == {"status": 404, "when": date(2024, 6, 1)}


@pytest.mark.parametrize(
    ("kind", "stored", "value", "expected"),
    [
        (pa.uint64(), pa.int64(), 7, 7),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), "a", "a"),
        (pa.large_string(), pa.string(), "a", "a"),
        (pa.time64("us"), pa.string(), time_of_day(3, 55), "03:55:00.000000"),
    ],
)
def test_types_that_delta_lacks_are_replaced(
    tmp_path: Path, kind: pa.DataType, stored: pa.DataType, value: object, expected: object
) -> None:
    table = create_table(tmp_path / "table", schema=pa.schema([("extra", kind)]))
    assert table.schema.field("extra").type == stored
    table.append(pa.table({"content": ["x"], "extra": pa.array([value], kind)}))
    assert only(table, columns=["extra"]) == {"extra": expected}


@pytest.mark.parametrize("name", ["per%20cent", "100%"])
def test_a_folder_with_a_percent_sign_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="percent sign"):
        create_table(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["with space", "ä", "a#b", "a?b", "a+b", "a=b", "quo'te"])
def test_a_table_in_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    table = create_table(tmp_path / name)
    for number in range(3):
        table.append([line(0, id=number)])
    again = open_table(tmp_path / name)
    again.optimize()
    again.delete(equals("id", 1))
    again.vacuum(retention_hours=0)
    assert ids(open_table(tmp_path / name)) == [0, 2]
    assert ids(table) == [0, 2]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_table_may_be_moved(tmp_path: Path) -> None:
    create_table(tmp_path / "here").append([line(0)])
    (tmp_path / "here").rename(tmp_path / "there")
    table = open_table(tmp_path / "there")
    search = table.search("line 0")
    assert search.count() == 1
    assert search.report.problems == []
    assert table.verify(deep=True).is_sound


def test_a_table_may_be_partitioned_by_typed_columns(tmp_path: Path) -> None:
    kinds = {"fraction": pa.float64(), "moment": pa.timestamp("us", "UTC"), "truth": pa.bool_(), "whole": pa.int32()}
    table = create_table(tmp_path / "table", schema=pa.schema(list(kinds.items())), partition_by=list(kinds))
    values: dict[str, Any] = {"fraction": 0.1, "moment": NOON + timedelta(microseconds=5), "truth": True, "whole": -7}
    for number in range(2):
        table.append([line(number, **values), line(number + 2)])
    for each in (table, open_table(tmp_path / "table")):
        for name, value in values.items():
            assert ids(each, equals(name, value)) == [0, 1], name
            assert {row[name] for row in each.search(equals(name, value)).rows()} == {value}
        each.optimize()
    assert table.info().segments == 2
    table.delete(equals("truth", True))
    assert ids(open_table(tmp_path / "table")) == [2, 3]
    assert DeltaTable(table.uri).to_pyarrow_table().num_rows == 2


# --- what may be appended ---


def inputs() -> dict[str, Any]:
    rows = [line(number) for number in range(5)]
    arrow = pa.Table.from_pylist(rows)
    return {
        "list of dicts": rows,
        "generator": (row for row in rows),
        "tuple": tuple(rows),
        "table": arrow,
        "chunked table": pa.concat_tables([arrow.slice(0, 2), arrow.slice(2)]),
        "record batch": arrow.to_batches()[0],
        "sliced batch": pa.concat_tables([arrow, arrow]).combine_chunks().to_batches()[0].slice(5, 5),
        "reader": arrow.to_reader(),
        "list of batches": arrow.to_batches(max_chunksize=2),
        "data frame": arrow.to_pandas(),
        "frame with an index": arrow.to_pandas().set_index(np.array([7, 8, 9, 10, 11])),
        "duckdb": duckdb.sql("select * from arrow"),
        "mixed": [rows[0], *pa.Table.from_pylist(rows[1:]).to_batches()],
    }


@pytest.mark.parametrize("name", inputs())
def test_records_of_every_shape_are_appended(table: Table, name: str) -> None:
    report = table.append(inputs()[name])
    assert report.row_count == 5
    found = {row["id"]: row for row in table.search().rows()}
    for number in range(5):
        expected = line(number)
        assert {key: found[number][key] for key in expected} == expected


def test_lines_get_the_time_of_now(table: Table) -> None:
    before = datetime.now(UTC)
    table.append(["one line", "another: ünïcode 漢字 😀", ""])
    rows = list(table.search().rows())
    assert sorted(row["content"] for row in rows) == ["", "another: ünïcode 漢字 😀", "one line"]
    assert all(before <= row["timestamp"] <= datetime.now(UTC) for row in rows)


def test_one_record_is_appended(table: Table) -> None:
    table.append({"content": "alone", "id": 1})
    assert ids(table) == [1]


@pytest.mark.parametrize("data", ["a text", b"bytes", 5, None, [5], [["x"]], [b"x"]])
def test_what_is_no_record_is_refused(table: Table, data: Any) -> None:
    with pytest.raises(UsageError, match="cannot append"):
        table.append(data)
    assert table.search().count() == 0


@pytest.mark.parametrize("partition_by", [None, "day"])
@pytest.mark.parametrize("raw_bytes", [None, 7])
def test_nothing_is_appended_without_a_commit(tmp_path: Path, partition_by: str | None, raw_bytes: int | None) -> None:
    table = create_table(tmp_path / "table", partition_by=partition_by)
    empty = pa.table({"content": pa.array([], pa.string())})
    empties: list[Any] = [[], iter(()), empty, empty.to_reader(), pa.RecordBatch.from_pylist([], empty.schema)]
    for data in [*empties, empty.to_pandas()]:
        report = table.append(data, raw_bytes=raw_bytes)
        assert report.row_count == 0
        assert report.version is None
    assert table.info().segments == 0
    assert not list(tmp_path.rglob("*.parquet"))


SECONDS = int(NOON.timestamp())


@pytest.mark.parametrize(
    "given",
    [
        NOON,
        NOON.replace(tzinfo=None),
        NOON.astimezone(),
        NOON.isoformat(),
        "2024-06-01T12:00:00Z",
        "2024-06-01 12:00:00",
        "2024-06-01T14:00:00+02:00",
        SECONDS,
        float(SECONDS),
        SECONDS * 1000,
        SECONDS * 10**6,
        SECONDS * 10**9,
        np.datetime64(NOON.replace(tzinfo=None)),
        pd.Timestamp(NOON),
    ],
)
def test_timestamps_of_all_kinds_are_understood(table: Table, given: Any) -> None:
    table.append([{"timestamp": given, "content": "x"}])
    assert only(table)["timestamp"] == NOON


@pytest.mark.parametrize(
    "kind", [pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.timestamp("ms", "+02:00"), pa.date64()]
)
def test_timestamps_of_arrow_are_understood(table: Table, kind: pa.DataType) -> None:
    day = datetime(2024, 6, 1, tzinfo=UTC)
    table.append(
        pa.table({"timestamp": pa.array([day], pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms")).cast(kind)})
    )
    assert only(table)["timestamp"] == day


@pytest.mark.parametrize(
    "given",
    [NOON + timedelta(microseconds=1), "1969-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"],
)
def test_timestamps_keep_their_microseconds_and_their_day(by_day: Table, given: Any) -> None:
    table = by_day
    table.append([{"timestamp": given, "content": "x"}])
    expected = given if isinstance(given, datetime) else datetime.fromisoformat(given)
    assert only(table)["timestamp"] == expected
    assert only(table, columns=["day"])["day"] == expected.date()
    assert table.search(since=expected, until=expected + timedelta(microseconds=1)).count() == 1
    assert table.search(until=expected).count() == 0
    table.info()


def test_mixed_timestamps_are_understood(table: Table) -> None:
    table.append(
        [{"timestamp": "2024-06-01T12:00:00Z", "id": 0}, {"timestamp": "2024-06-01 12:00:00", "id": 1}, {"id": 2}]
    )
    found = {row["id"]: row["timestamp"] for row in table.search().rows()}
    assert found[0] == found[1] == NOON
    assert found[2] > NOON


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NaT])
def test_a_missing_timestamp_is_that_of_now(table: Table, missing: Any) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    table.append(pd.DataFrame({"timestamp": [missing, missing], "content": ["x", "y"]}))
    assert all(row["timestamp"] >= before for row in table.search().rows())


@pytest.mark.parametrize("bad", ["yesterday", "", "2024-13-01", True, 1e300])
def test_a_timestamp_that_is_none_is_refused(table: Table, bad: Any) -> None:
    with pytest.raises(UsageError, match="timestamp"):
        table.append([{"timestamp": bad, "content": "x"}])
    assert table.search().count() == 0


def test_nulls_everywhere(table: Table) -> None:
    names = ["source", "loglevel", "content", "attributes", "extra"]
    table.append([dict.fromkeys(names), dict.fromkeys(names) | {"content": "x"}, {}])
    rows = list(table.search().rows())
    assert len(rows) == 3
    assert sum(row["content"] == "x" for row in rows) == 1
    assert ids_of_content(table, ~exists("content")) == [None, None]


def ids_of_content(table: Table, predicate: Any) -> list[Any]:
    return [row["content"] for row in table.search(predicate).rows()]


def test_attributes_of_all_kinds(table: Table) -> None:
    table.append(
        [
            {"id": 0, "attributes": {"a": "x", "b": 5, "c": None}},
            {"id": 1, "attributes": [("a", "y")]},
            {"id": 2, "attributes": {}},
            {"id": 3, "attributes": None},
            {"id": 4},
        ]
    )
    found = {row["id"]: row["attributes"] for row in table.search().rows()}
    assert found[0] == [("a", "x"), ("b", "5"), ("c", None)]
    assert not found[2]
    assert found[3] is None
    assert ids(table, equals("a", "y")) == [1]
    assert ids(table, equals("b", 5)) == [0]


def test_attributes_that_are_all_empty(table: Table) -> None:
    table.append([{"id": number, "content": "x", "attributes": {}} for number in range(3)])
    assert ids(table, contains("x")) == [0, 1, 2]


def test_values_that_do_not_fit_become_attributes(table: Table) -> None:
    table.append([{"id": 0, "status": 404}])
    table.append([{"id": 1, "status": "not found"}])
    table.append([{"id": 2, "status": "500"}])
    table.append([{"id": 3, "status": 1.5}])
    found = {row["id"]: row for row in table.search().rows()}
    assert found[0]["status"] == 404
    assert found[1]["status"] is None
    assert found[1]["attributes"] == [("status", "not found")]
    assert ids(table, equals("status", "not found")) == [1]
    assert ids(table, equals("status", 500)) == [2]
    assert ids(table, exists("status")) == [0, 1, 2, 3]
    assert ids(table, at_least("status", 1)) == [0, 2, 3]


def test_a_value_that_becomes_an_attribute_is_not_hidden_by_one_of_its_name(table: Table) -> None:
    table.append([{"id": 0, "status": 404}])
    table.append([{"id": 1, "status": "gone", "attributes": {"status": "hidden"}}])
    assert ids(table, equals("status", "gone")) == [1]
    assert ids(table, equals("status", "hidden")) == []


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**70, -(2**70)])
def test_numbers_of_any_size_are_kept(table: Table, number: int) -> None:
    table.append([{"id": 0, "n": number}])
    row = only(table)
    kept = row.get("n") if row.get("n") is not None else dict(row["attributes"] or [])["n"]
    assert str(kept) == str(number)


def test_unsigned_numbers_of_arrow_are_kept(table: Table) -> None:
    table.append(pa.table({"id": [0, 1], "n": pa.array([5, 2**64 - 1], pa.uint64())}))
    for row in table.search().rows():
        kept = row.get("n") if row.get("n") is not None else dict(row["attributes"] or [])["n"]
        assert str(kept) == ["5", str(2**64 - 1)][row["id"]]


def test_values_of_many_types_come_back(table: Table) -> None:
    values: dict[str, Any] = {
        "whole": 5, "fraction": 0.5, "truth": True, "day_of": date(2024, 6, 1), "moment": NOON, "raw": b"\x00\xff",
        "several": ["a", "b"], "nested": {"x": 1, "y": "z"}, "nothing": None,
    }  # fmt: skip
    table.append([{"id": 0} | values])
    row = only(table)
    assert {name: row[name] for name in values if name != "nothing"} == {
        k: v for k, v in values.items() if v is not None
    }
    assert table.verify(deep=True).is_sound


@pytest.mark.parametrize("name", ["a b", "a.b", "a,b;c{}()=", "ä", "a\nb", "`", "'", '"', "%41", "_id", "x" * 300])
def test_columns_of_any_name(table: Table, name: str) -> None:
    table.append([{"id": 0, name: "value"}])
    assert ids(open_table(table.uri), equals(name, "value")) == [0]
    assert DeltaTable(table.uri).to_pyarrow_table().num_rows == 1


@pytest.mark.parametrize(("first", "second"), [("User", "user"), ("k", "Content"), ("Day", "day2"), ("x", "X")])
def test_names_that_differ_by_case_only_lose_no_record(table: Table, first: str, second: str) -> None:
    table.append([{"id": 0, "content": "one", first: "value"}])
    table.append([{"id": 1, "content": "two", second: "value"}])
    assert ids(table) == [0, 1]
    same = first.lower() == second.lower()  # then the column of the first is meant, and the key of that name as well
    assert ids(table, equals(second, "value")) == ([0, 1] if same else [1])
    assert ids(table, equals(first, "value")) == [0]


def test_a_column_without_a_name_loses_no_record(table: Table) -> None:
    table.append([{"id": 0, "content": "x", "": "value"}])
    assert only(open_table(table.uri), columns=["id", ""]) == {"id": 0, "": "value"}


@pytest.mark.parametrize("name", ["match", "group", "day", "id2", "timestamp2"])
def test_columns_whose_name_means_something_elsewhere(table: Table, name: str) -> None:
    table.append([{"id": number, "content": "hit", "source": "s", name: f"value{number}"} for number in range(5)])
    assert ids(table, "hit") == [0, 1, 2, 3, 4]
    assert len(list(table.search("hit", limit=3).rows())) == 3
    assert ids(table, equals(name, "value3")) == [3]


def test_half_a_surrogate_pair_is_replaced(table: Table) -> None:
    table.append(["half a \ud800 pair"])
    assert only(table)["content"] == "half a ? pair"


def test_a_huge_record_is_found(table: Table) -> None:
    huge = "needle " + "hay " * 3_000_000 + " thimble"
    table.append([{"id": 0, "content": huge}, {"id": 1, "content": "small"}])
    assert ids(table, contains("thimble")) == [0]
    assert only(table, predicate=contains("thimble"))["content"] == huge


def test_a_column_that_comes_twice_is_refused(table: Table) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(["x"]), pa.array(["y"])], ["content", "content"])
    with pytest.raises(UsageError, match="two columns named"):
        table.append(batch)


def test_a_generator_that_fails_commits_nothing(table: Table) -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield line(0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        table.append(rows())
    assert table.search().count() == 0
    assert not list(Path(table.uri).rglob("*.parquet"))


# --- writers ---


def test_records_are_found_before_they_are_committed(table: Table) -> None:
    other = open_table(table.uri)
    with table.writer() as writer:
        assert writer.append([line(0), line(1)]) == 2
        assert writer.uncommitted_rows == 2
        assert ids(table, contains("line 1")) == [1]
        assert other.search().count() == 0
        assert writer.commit().row_count == 2
        assert writer.uncommitted_rows == 0
        assert ids(table) == [0, 1]
        assert ids(other) == [0, 1]
        assert writer.commit().version is None
    with pytest.raises(UsageError, match="closed"):
        writer.append(["x"])


def test_an_exception_abandons_what_was_not_committed(table: Table) -> None:
    with pytest.raises(ZeroDivisionError), table.writer(options=SMALL, segment_bytes=100) as writer:  # noqa: PT012
        writer.append([line(number) for number in range(5)])
        writer.commit()
        writer.append([line(number) for number in range(5, 10)])
        raise ZeroDivisionError
    assert ids(table) == list(range(5))
    names = {segment.name for segment in table.snapshot().segments}
    assert {p.relative_to(table.uri).as_posix() for p in Path(table.uri).rglob("*.parquet")} == names


def test_reports_of_writes_add_up(table: Table) -> None:
    rows = [line(number) for number in range(30)]
    with table.writer(options=SMALL) as writer:
        writer.append(rows)
        report = writer.close()
    assert report.row_count == 30 == sum(segment.row_count for segment in report.segments)
    assert report.raw_bytes == sum(len(row["content"]) + 1 for row in rows)
    assert report.version == 2  # a column came first
    for segment in report.segments:
        assert segment.data_bytes == Path(table.uri, segment.name).stat().st_size
        assert segment.index_bytes == Path(table.uri, sidecar_name(segment.name)).stat().st_size
        assert segment.batch_count > 1
        assert segment.first_time <= segment.last_time
    assert report.data_bytes == sum(segment.data_bytes for segment in report.segments)
    assert set(report.seconds_by_phase) >= {"assign", "index", "compress"}


def test_raw_bytes_may_be_given(table: Table) -> None:
    report = table.append([line(number) for number in range(30)], raw_bytes=10_000)
    assert 10_000 - len(report.segments) <= report.raw_bytes <= 10_000
    assert table.append(pa.Table.from_pylist([line(1)]), raw_bytes=0).raw_bytes == 0


def test_a_segment_is_sealed_at_its_size(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    with table.writer(segment_bytes=200) as writer:
        for number in range(20):
            writer.append([line(number)])
    assert table.info().segments >= 4
    assert ids(table) == list(range(20))


def test_many_partitions_are_open_at_once(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by="source")
    with table.writer() as writer:
        for number in range(100):
            writer.append([line(number, source=f"host-{number}")])
        assert writer.uncommitted_rows == 100
        assert ids(table) == list(range(100))
    assert ids(open_table(table.uri)) == list(range(100))


def test_the_order_of_arrival_is_kept_for_each_source(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    with table.writer(options=SMALL) as writer:
        for first in range(0, 60, 7):
            writer.append([line(number) for number in range(first, min(60, first + 7))])
    by_source: dict[str, list[int]] = {}
    for batch in ds.dataset(table.uri, exclude_invalid_files=True).to_batches(columns=["source", "id"]):
        for row in batch.to_pylist():
            by_source.setdefault(row["source"], []).append(row["id"])
    assert all(numbers == sorted(numbers) for numbers in by_source.values())


# --- info ---


def test_figures_of_info_add_up(table: Table) -> None:
    for first in (0, 20):
        with table.writer(options=SMALL) as writer:
            writer.append([line(number) for number in range(first, first + 20)])
    info = table.info()
    root = Path(table.uri)
    assert info.rows == 40
    assert info.segments == len(list(root.glob("*.parquet")))
    assert info.data_bytes == sum(path.stat().st_size for path in root.glob("*.parquet"))
    assert info.index_bytes == sum(path.stat().st_size for path in root.rglob("*.copr"))
    assert info.index_bytes == sum(info.index_bytes_by_part.values())
    assert info.raw_bytes == sum(len(line(number)["content"]) + 1 for number in range(40))
    assert info.first_time == NOON
    assert info.last_time == NOON + timedelta(hours=39)
    assert info.mergeable_segments == info.segments
    assert info.problems == []
    assert info.to_dict()["data_percent"] == pytest.approx(100 * info.data_bytes / info.raw_bytes)


# --- optimize ---


def test_optimize_merges_and_keeps_every_record(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    for number in range(10):
        table.append([line(number * 3 + each) for each in range(3)])
    before = table.info()
    rows = sorted(table.search().rows(), key=lambda row: row["id"])
    report = table.optimize()
    after = open_table(table.uri).info()
    assert (report.merged, report.written, report.tokenized_again) == (10, 1, 0)
    assert (report.segments_before, report.segments_after) == (10, 1)
    assert after.segments == 1
    assert after.rows == before.rows == 30
    assert after.raw_bytes == before.raw_bytes
    assert after.data_bytes < before.data_bytes
    assert (report.data_bytes_before, report.data_bytes_after) == (before.data_bytes, after.data_bytes)
    assert sorted(table.search().rows(), key=lambda row: row["id"]) == rows
    assert table.verify(deep=True).is_sound
    assert table.optimize().version is None
    assert table.optimize(full=True).written == 1
    assert table.verify(deep=True).is_sound
    assert table.info().mergeable_segments == 0


def test_optimize_keeps_the_order_of_arrival(tmp_path: Path) -> None:
    """Times are often those of the second: commits of one second must not be shuffled."""
    table = create_table(tmp_path / "table", partition_by=None)
    for number in range(12):
        table.append([{"timestamp": NOON, "source": "one", "content": f"line {number}", "id": number}])
    table.optimize()
    assert DeltaTable(table.uri).to_pyarrow_table().column("id").to_pylist() == list(range(12))


def test_optimize_respects_the_target(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    for number in range(8):
        table.append([line(number)])
    size = table.info().raw_bytes // 8
    report = table.optimize(target_bytes=4 * size)
    assert report.segments_after in (2, 3)
    assert ids(table) == list(range(8))


def test_optimize_stays_inside_of_partitions(by_day: Table) -> None:
    table = by_day
    for number in range(20):
        table.append([line(number * 6)])
    table.optimize()
    assert table.info().segments == len({line(number * 6)["timestamp"].date() for number in range(20)})
    assert ids(table) == [number * 6 for number in range(20)]


# --- delete, retain, deletions, vacuum ---


@pytest.mark.parametrize("partition_by", ["day", None])
def test_delete_by_time_drops_whole_files(tmp_path: Path, partition_by: str | None) -> None:
    table = create_table(tmp_path / "table", partition_by=partition_by)
    for first, end in ((0, 12), (12, 36), (36, 60), (60, 72)):
        table.append([line(number) for number in range(first, end)])
    report = table.delete(until=datetime(2024, 6, 2, tzinfo=UTC))
    assert (report.rows, report.files_dropped, report.files_rewritten) == (12, 1, 0)
    report = table.delete(since=NOON + timedelta(hours=60))
    assert report.rows == 12
    assert ids(table) == list(range(12, 60))
    report = table.delete(since=NOON + timedelta(hours=20), until=NOON + timedelta(hours=22))
    assert (report.rows, report.files_rewritten) == (2, 1)
    assert ids(table) == [number for number in range(12, 60) if number not in (20, 21)]
    assert table.verify(deep=True).is_sound


@pytest.mark.parametrize("partition_by", ["day", "source", None])
def test_delete_by_predicate(tmp_path: Path, partition_by: str | None) -> None:
    table = create_table(tmp_path / "table", partition_by=partition_by)
    for first in (0, 20):
        with table.writer(options=SMALL) as writer:
            writer.append([line(number) for number in range(first, first + 20)])
    report = table.delete(equals("source", "host1"))
    assert report.rows == len(range(1, 40, 3))
    report = table.delete(contains("line 2 of") | one_of("id", [30]))
    assert report.rows == 2
    left = [number for number in range(40) if number % 3 != 1 and number not in (2, 30)]
    assert ids(table) == left
    assert ids(open_table(table.uri), contains("line")) == left
    assert table.verify(deep=True).is_sound
    assert table.delete(contains("nowhere")).version is None


def test_delete_of_everything_must_be_meant(table: Table) -> None:
    table.append([line(0)])
    with pytest.raises(UsageError, match="every record"):
        table.delete()
    table.delete(until=datetime(3000, 1, 1))
    assert table.search().count() == 0


def test_delete_leaves_what_is_not_committed(table: Table) -> None:
    with table.writer() as writer:
        writer.append([line(0)])
        table.delete(equals("id", 0))
        assert ids(table) == [0]
    assert ids(table) == [0]


def test_the_status_of_a_deletion(table: Table) -> None:
    table.append([line(number) for number in range(30)])
    table.delete(equals("id", 3))
    table.delete(until=datetime(2024, 6, 2, tzinfo=UTC))
    newest, oldest = table.deletions()
    assert (newest.rows, oldest.rows) == (11, 1)
    assert newest.state == oldest.state == "hidden"
    assert newest.bytes_left > 0
    assert len(newest.files_left) == 1
    assert "equals(id, 3)" in oldest.what
    assert "2024-06-02" in newest.what
    assert newest.time > NOON
    table.vacuum()
    assert table.deletions()[0].state == "hidden"
    table.vacuum(retention_hours=0)
    assert [status.state for status in table.deletions()] == ["erased", "erased"]
    assert table.deletions()[0].files_left == []
    assert ids(table) == list(range(12, 30))


def test_retention(table: Table) -> None:
    now = datetime.now(UTC)
    ages = [0, 1, 5, 29, 31, 400]
    table.append([{"timestamp": now - timedelta(days=age), "content": f"{age} days", "id": age} for age in ages])
    assert table.retain(timedelta(days=365)).rows == 1
    assert table.retain(timedelta(days=30), contains("31")).rows == 1
    assert table.retain(timedelta(days=10), contains("nothing")).rows == 0
    assert ids(table) == [0, 1, 5, 29]


def test_vacuum_removes_what_no_version_needs(table: Table) -> None:
    for number in range(4):
        table.append([line(0, id=number)])
    table.optimize()
    root = Path(table.uri)
    before = set(root.rglob("*.parquet"))
    dry = table.vacuum(retention_hours=0, dry_run=True)
    assert len(dry.data_files) == len(dry.sidecars) == 4
    assert set(root.rglob("*.parquet")) == before
    assert table.vacuum().data_files == []
    assert set(root.rglob("*.parquet")) == before
    wet = table.vacuum(retention_hours=0)
    assert sorted(wet.data_files) == sorted(dry.data_files)
    assert wet.bytes == dry.bytes > 0
    assert len(list(root.rglob("*.parquet"))) == len(list(root.rglob("*.copr"))) == 1
    assert ids(table) == [0, 1, 2, 3]
    assert table.vacuum(retention_hours=0).data_files == []


@pytest.mark.parametrize("hours", [0.5, 1, 167.9])
def test_vacuum_leaves_what_is_young(table: Table, hours: float) -> None:
    """A writer may be about to commit it."""
    writer = table.writer(segment_bytes=1)
    writer.append([line(0)])
    (Path(table.uri) / "_coprlake" / "leftover.unfinished").write_text("x")
    report = table.vacuum(retention_hours=hours)
    assert report.data_files == report.sidecars == report.leftovers == []
    writer.close()
    assert ids(table) == [0]


def test_vacuum_of_negative_hours_removes_nothing_that_is_needed(table: Table) -> None:
    table.append([line(0)])
    report = table.vacuum(retention_hours=-1)
    assert report.data_files == report.sidecars == report.leftovers == []
    assert ids(table) == [0]


# --- verify and index ---


def test_index_writes_what_is_missing(table: Table) -> None:
    table.append([line(number) for number in range(40)])
    assert table.index().indexed == 0
    for path in Path(table.uri).rglob("*.copr"):
        path.unlink()
    fresh = open_table(table.uri)
    assert len(fresh.verify().sidecar_problems) == fresh.info().segments
    report = fresh.index()
    assert report.indexed == fresh.info().segments
    assert report.raw_bytes == fresh.info().raw_bytes
    assert report.index_bytes == fresh.info().index_bytes
    assert fresh.verify(deep=True).is_sound
    assert fresh.index(rebuild=True).indexed == fresh.info().segments


def test_grams_of_a_field_prune_inside_of_words(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None, grams=["url"])
    with table.writer(options=SMALL) as writer:
        writer.append([line(number, url=f"/path/item{number:05d}abc") for number in range(30)])
    search = table.search(contains("tem00017ab", "url"))
    assert search.count() == 1
    assert search.report.batches_opened < search.report.batches
    plain = create_table(tmp_path / "plain", partition_by=None)
    with plain.writer(options=SMALL) as writer:
        writer.append([line(number, url=f"/path/item{number:05d}abc") for number in range(30)])
    assert plain.search(contains("tem00017ab", "url")).count() == 1


# --- other engines read it ---


@pytest.fixture
def shared(by_day: Table) -> Table:
    table = by_day
    with table.writer(options=SMALL) as writer:
        writer.append([line(number, status=number, attributes={"k": f"v{number}"}) for number in range(60)])
    table.append([line(number, status=number) for number in range(60, 80)])
    table.delete(equals("id", 5))
    table.optimize()
    table.vacuum(retention_hours=0)
    return table


def test_delta_rs_reads_the_same_records(shared: Table) -> None:
    found = DeltaTable(shared.uri).to_pyarrow_table()
    ours = shared.search(columns=["timestamp", "source", "content", "status", "id"]).arrow()
    assert found.select(ours.schema.names).sort_by("id").to_pylist() == ours.sort_by("id").to_pylist()


def test_duckdb_reads_the_same_records(shared: Table) -> None:
    path = f"{shared.uri}/day=*/*.parquet"
    found = duckdb.execute(
        "select id, source, content, epoch_us(timestamp), day::text "
        f"from read_parquet('{path}', hive_partitioning=true) order by id"
    ).fetchall()
    ours = shared.search(columns=["id", "source", "content", "timestamp", "day"]).arrow().sort_by("id").to_pylist()
    assert found == [
        (row["id"], row["source"], row["content"], microseconds(row["timestamp"], 0), str(row["day"])) for row in ours
    ]


def test_pandas_reads_the_same_records(shared: Table) -> None:
    frame = pd.read_parquet(shared.uri)
    assert sorted(frame["id"]) == ids(shared)
    assert set(frame["day"].astype(str)) == {str(row["day"]) for row in shared.search(columns=["day"]).rows()}


def test_the_state_of_the_log_is_read_again(table: Table) -> None:
    other = open_table(table.uri)
    for number in range(5):
        other.append([line(number)])
        assert ids(table) == list(range(number + 1))
        time.sleep(0.06 * number)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_spark_reads_the_same_records(shared: Table, spark: "SparkSession") -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    frame = session.read.option("mergeSchema", "true").parquet(shared.uri)
    found = sorted((row["id"], row["source"], row["content"], str(row["day"])) for row in frame.collect())
    ours = shared.search(columns=["id", "source", "content", "day"]).rows()
    assert found == sorted((row["id"], row["source"], row["content"], str(row["day"])) for row in ours)


def test_columns_and_counts(table: Table) -> None:
    assert table.count() == 0
    table.append([line(i) for i in range(5)])
    assert table.count() == 5
    assert table.columns == table.schema.names
    assert table.search(columns=["content", "source"]).columns == ["content", "source"]
    query = table.query("fetch logs | summarize n = count(), by:{source}")
    assert query.columns == ["source", "n"]
    assert query.count() == 3


def test_times_may_be_texts(table: Table) -> None:
    now = datetime.now(UTC)
    table.append(
        [{"timestamp": now - timedelta(minutes=minutes), "content": f"{minutes}"} for minutes in (1, 90, 5000)]
    )
    assert table.search(since="2h").count() == 2
    assert table.search(since="1w", until="now-1h").count() == 2
    assert table.query("fetch logs | summarize n = count()", since="2h").arrow().to_pylist() == [{"n": 2}]
    assert table.retain("3d").rows == 1
    assert table.delete(contains("9"), since="1d").rows == 1
    assert [row["content"] for row in table.search().rows()] == ["1"]
