"""What a review of the query language found: answers that were wrong without a word."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from coprlake import create_table, open_table
from coprlake.errors import QueryError, UnreadableDataError
from coprlake.table import Table

TIMES = [datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 5)]
MOST = 2**63 - 1
RANGE = 'from:"2026-01-03T00:00:00Z", to:"2027-01-01T00:00:00Z"'


def rows(table: Table, text: str, **wishes: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.query(text, **wishes).arrow().to_pylist()
    return found


def delta(folder: Path, columns: dict[str, Any], partition_by: list[str] | None = None) -> Table:
    write_deltalake(str(folder), pa.table(columns), partition_by=partition_by)
    return open_table(folder)


def parquet(folder: Path, *files: dict[str, Any]) -> Table:
    folder.mkdir()
    for number, columns in enumerate(files):
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")
    return open_table(folder)


@pytest.mark.parametrize("name", ["ts", "timestamp"])
@pytest.mark.parametrize("is_partitioned", [False, True])
def test_a_range_of_time_goes_by_the_time_that_the_table_has(tmp_path: Path, name: str, is_partitioned: bool) -> None:
    columns = {name: pa.array(TIMES, pa.timestamp("us", "UTC")), "content": ["a", "b", "c", "d"]}
    table = delta(tmp_path / "t", columns, [name] if is_partitioned else None)
    assert rows(table, f"fetch logs, {RANGE} | summarize n = count()") == [{"n": 2}]
    assert rows(table, "fetch logs | sort content | fields content", since=TIMES[1], until=TIMES[3]) == [
        {"content": "b"},
        {"content": "c"},
    ]
    assert rows(table, f'fetch logs, {RANGE} | filter contains(content, "c") | fields content') == [{"content": "c"}]


def test_a_range_of_time_without_a_column_of_times_is_an_error(tmp_path: Path) -> None:
    table = delta(tmp_path / "t", {"content": ["a"]})
    with pytest.raises(QueryError, match="no column timestamp"):
        table.query(f"fetch logs, {RANGE}")
    with pytest.raises(QueryError, match="no column timestamp"):
        table.query("fetch logs", since=TIMES[0])
    assert len(rows(table, "fetch logs")) == 1


def test_a_column_day_that_somebody_wrote_is_a_field(tmp_path: Path) -> None:
    days = ["2026-01-01", "2026-01-01", "2026-01-02"]
    table = delta(tmp_path / "foreign", {"content": ["a", "b", "c"], "day": days}, ["day"])
    assert rows(table, 'fetch logs | filter day == "2026-01-01" | summarize n = count()') == [{"n": 2}]
    assert rows(table, "fetch logs | summarize n = count(), by:{day} | sort day") == [
        {"day": "2026-01-01", "n": 2},
        {"day": "2026-01-02", "n": 1},
    ]
    own = create_table(tmp_path / "own", partition_by=[])
    own.append([{"content": "a", "day": "monday"}, {"content": "b", "day": "tuesday"}])
    assert rows(own, 'fetch logs | filter day == "monday" | fields content') == [{"content": "a"}]
    assert rows(own, 'fetch logs | search "tuesday" | fields content') == [{"content": "b"}]


def test_the_day_that_we_partition_by_is_no_field(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by="day")
    table.append([{"content": "a", "timestamp": TIMES[0]}])
    assert "day" not in table.query("fetch logs").schema.names
    assert "day" not in [row["field"] for row in rows(table, "describe logs")]


@pytest.mark.parametrize("other", [2.5, "one"])
def test_a_column_of_several_types_loses_nothing_in_a_cast(tmp_path: Path, other: Any) -> None:
    table = parquet(tmp_path / "t", {"content": ["a"], "v": [1]}, {"content": ["b"], "v": [other]})
    for text in ("fetch logs | fields v", "fetch logs | summarize n = sum(v)", "fetch logs | filter isNull(v)"):
        with pytest.raises(UnreadableDataError, match="column v: expected values that can be cast to int64"):
            rows(table, text)
    assert rows(table, "fetch logs | summarize n = count()") == [{"n": 2}]


def test_whole_numbers_among_others_are_read(tmp_path: Path) -> None:
    table = parquet(tmp_path / "t", {"content": ["a"], "v": [1.5]}, {"content": ["b"], "v": [2]})
    assert rows(table, "fetch logs | summarize n = sum(v)") == [{"n": 3.5}]


def test_a_time_that_is_text_in_one_file_is_read_or_refused(tmp_path: Path) -> None:
    table = parquet(
        tmp_path / "t",
        {"timestamp": pa.array(TIMES[2:3], pa.timestamp("us", "UTC")), "content": ["a"]},
        {"timestamp": ["2026-01-03T00:00:00Z"], "content": ["b"]},
    )
    assert [row["timestamp"] for row in rows(table, "fetch logs")] == [TIMES[2], TIMES[2]]
    with pytest.raises(UnreadableDataError, match="column timestamp: expected times, found string"):
        rows(table, f"fetch logs, {RANGE} | fields content")
    with pytest.raises(UnreadableDataError, match="column timestamp: expected times, found string"):
        rows(table, f'fetch logs, {RANGE} | filter contains(content, "b") | fields content')
    search = table.search("", since=TIMES[0])
    assert search.count() == 1
    assert search.report.is_incomplete


def test_a_column_without_a_name_is_a_field(tmp_path: Path) -> None:
    table = parquet(tmp_path / "t", {"content": ["a", "b"], "": ["needle", "hay"]})
    assert rows(table, "fetch logs | sort content") == [{"content": "a", "": "needle"}, {"content": "b", "": "hay"}]
    assert rows(table, 'fetch logs | search "needle" | fields content') == [{"content": "a"}]


def numbers(table: Table, text: str) -> list[int | None]:
    column = table.query(text).arrow().column("timestamp")
    found: list[int | None] = column.cast(pa.int64()).to_pylist()
    return found


def test_the_first_and_the_last_time_are_times(tmp_path: Path) -> None:
    moments = [-MOST - 1, -MOST, -MOST + 1, 0, MOST - 1, MOST]
    table = create_table(tmp_path / "t")
    times = pa.array(moments, pa.int64()).cast(pa.timestamp("us", "UTC"))
    table.append(pa.table({"timestamp": times, "content": list(map(str, moments))}))
    assert numbers(table, "fetch logs | sort timestamp") == moments
    later = 'fetch logs | filter timestamp > toTimestamp("2020-01-01T00:00:00Z") | sort timestamp'
    assert numbers(table, later) == moments[4:]
    assert rows(table, "fetch logs | filter isNull(timestamp) | summarize n = count()") == [{"n": 0}]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize(
    ("unit", "moment", "first", "last"),
    [
        ("us", MOST, -MOST, MOST),
        ("ms", MOST, -MOST + 807, MOST - 807),
        ("ms", 10**16, -MOST + 807, MOST - 807),
        ("ms", 10**15, -(10**18), 10**18),
        ("ns", MOST, -MOST // 1000, MOST // 1000),
        ("ns", MOST - 1, -MOST // 1000, MOST // 1000),
        ("ns", 1001, -2, 1),
    ],
)
def test_times_of_other_units_keep_their_order(
    tmp_path: Path, unit: str, zone: str | None, moment: int, first: int, last: int
) -> None:
    times = pa.array([moment, -moment, 0, None], pa.timestamp(unit, zone))
    table = parquet(tmp_path / "t", {"timestamp": times, "content": ["a", "b", "c", "d"]})
    assert numbers(table, "fetch logs | sort timestamp") == [first, 0, last, None]
    searched = 'fetch logs | filter in(content, {"a", "b"}) | sort timestamp'
    assert numbers(table, searched) == [first, last]


def test_search_names_the_columns_that_it_does_not_look_into(tmp_path: Path) -> None:
    columns = {
        "content": ["a needle"],
        "body": pa.array([b"needle"]),
        "by_number": pa.array([[(1, "needle")]], pa.map_(pa.int64(), pa.string())),
        "inside": pa.array([{"b": b"needle"}]),
    }
    table = parquet(tmp_path / "t", columns)
    query = table.query('fetch logs | search "needle" and "a"')
    assert query.arrow().num_rows == 1
    assert len(query.warnings) == 1
    assert "search skips body, by_number, inside" in query.warnings[0]
    assert table.query('fetch logs | fieldsKeep content | search "needle"').warnings == []
    assert parquet(tmp_path / "u", {"content": ["a"]}).query('fetch logs | search "a"').warnings == []


def test_text_that_is_not_utf8_is_refused_by_every_way(tmp_path: Path) -> None:
    table = parquet(tmp_path / "t", {"content": pa.array([b"\xff needle", b"hay"]).view(pa.string())})
    for text in ("fetch logs", 'fetch logs | filter contains(content, "needle")'):
        with pytest.raises(QueryError, match="text that is not valid UTF-8; search instead"):
            table.query(text).arrow()
    assert rows(table, 'fetch logs | filter content == "hay"') == [{"content": "hay"}]
