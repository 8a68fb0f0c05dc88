"""Times that no datetime can hold are stored, found, sorted and shown like all others."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coprlake.cli.main import cli
from coprlake.errors import UsageError
from coprlake.segment.python_values import FIRST_MICROSECOND, LAST_MICROSECOND, iso_text, python_values
from coprlake.segment.searchable import microseconds_of
from coprlake.table import create_table, open_table

LEAST, MOST = -(2**63), 2**63 - 1
NOW = 1_717_200_000_000_000
EXTREMES = [LEAST, LEAST + 1, FIRST_MICROSECOND - 1, FIRST_MICROSECOND, -1, 0, NOW, LAST_MICROSECOND]
EXTREMES += [LAST_MICROSECOND + 1, MOST - 807, MOST - 1, MOST]


def records(times: list[int]) -> pa.Table:
    stamps = pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.table({"timestamp": stamps, "content": [f"line {n}" for n in range(len(times))], "n": range(len(times))})


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


@pytest.mark.parametrize("partition_by", ["day", None])
def test_a_table_with_extreme_times_works(tmp_path: Path, partition_by: str | None) -> None:
    table = create_table(tmp_path / "t", partition_by=partition_by)
    table.append(records(EXTREMES))
    table.append(records([NOW + 1]))
    order = sorted([*EXTREMES, NOW + 1])

    def times(order_name: str) -> list[int]:
        found = table.search(order=order_name, columns=["timestamp"]).arrow()  # type: ignore[arg-type]
        return [int(value) for value in found.column("timestamp").cast(pa.int64()).to_pylist()]

    for _ in range(2):
        assert times("oldest") == order
        assert times("newest") == order[::-1]
        for since in (LEAST, FIRST_MICROSECOND, NOW, LAST_MICROSECOND, LAST_MICROSECOND + 1, MOST):
            assert table.search(since=since).count() == sum(time >= since for time in order)
            assert table.search(until=since).count() == sum(time < since or since == MOST for time in order)
        rows = list(table.search(order="newest").rows())
        assert len(rows) == len(order)
        assert rows[0]["timestamp"] == MOST
        assert rows[-1]["timestamp"] == LEAST
        assert sum(isinstance(row["timestamp"], datetime) for row in rows) == 6
        assert len(table.search().pandas()) == len(order)
        assert table.info().rows == len(order)
        assert table.verify(deep=True).is_sound
        table.optimize(full=True)
    assert table.delete(since=LAST_MICROSECOND + 1).rows == 4
    assert times("newest")[0] == LAST_MICROSECOND
    DeltaTable(tmp_path / "t").to_pyarrow_table()  # other readers still open it


def test_partitions_and_statistics_hold_only_what_others_can_read(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by="day")
    table.append(records([NOW, MOST, LEAST]))
    commits = sorted((tmp_path / "t" / "_delta_log").glob("*.json"))
    log = [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]
    added = {line["add"]["partitionValues"]["day"]: json.loads(line["add"]["stats"]) for line in log if "add" in line}
    assert set(added) == {"2024-06-01", None}
    assert added["2024-06-01"]["minValues"] == {"timestamp": "2024-06-01T00:00:00.000000Z"}
    assert "minValues" not in added[None]
    assert "maxValues" not in added[None]
    assert table.search(since=NOW + 1).count() == 1  # no statistic, so nothing is ruled out


def test_another_partition_column_is_refused_in_words(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", schema=pa.schema([("at", pa.timestamp("us", "UTC"))]), partition_by="at")
    with pytest.raises(UsageError, match="the column at has a time outside the years 1 to 9999"):
        table.append(pa.table({"content": ["x"], "at": pa.array([MOST]).cast(pa.timestamp("us", "UTC"))}))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_files_of_others_with_any_unit(tmp_path: Path, unit: str) -> None:
    numbers = [LEAST, -1, 0, 5 * 10**9, MOST] if unit != "s" else [-(10**15), -1, 0, 5 * 10**9, 10**15]
    stamps = pa.array(numbers, pa.int64()).cast(pa.timestamp(unit))
    pq.write_table(pa.table({"timestamp": stamps, "n": range(len(numbers))}), tmp_path / "a.parquet", row_group_size=2)
    table = open_table(tmp_path)
    for _ in range(2):
        assert [row["n"] for row in table.search(order="oldest", columns=["n"]).rows()] == list(range(len(numbers)))
        assert [row["n"] for row in table.search(order="newest").rows()] == list(range(len(numbers)))[::-1]
        assert table.search(since=0).count() == sum(number >= 0 for number in numbers)
        assert table.search(until=0).count() == sum(number < 0 for number in numbers)
        table.index()


def test_foreign_delta_tables(tmp_path: Path) -> None:
    write_deltalake(tmp_path, records(EXTREMES))
    table = open_table(tmp_path)
    assert [row["n"] for row in table.search(order="oldest").rows()] == list(range(len(EXTREMES)))
    assert table.search(since=LAST_MICROSECOND + 1).count() == 4


def test_the_command_line_prints_them(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t")
    table.append(records([*EXTREMES[:4], NOW, *EXTREMES[7:]]))
    lines = run("search", "line", table.uri, "-o", "json").stdout.splitlines()
    times = [json.loads(line)["timestamp"] for line in lines]
    assert times[0] == "+294247-01-10T04:00:54.775807Z"
    assert times[-1] == "-290308-12-21T19:59:05.224192Z"
    assert "2024-06-01T00:00:00.000000Z" in times
    for output in ("table", "lines", "csv"):
        result = run("search", "line", table.uri, "-o", output, "--columns", "timestamp,content")
        assert result.exit_code == 0
        assert "+294247-01-10T04:00:54" in result.stdout
    for command in (["info"], ["info", "--segments"], ["info", "--segments", "--json"], ["verify"]):
        assert run(*command, table.uri).exit_code == 0
    assert run("explain", "line", table.uri).exit_code == 0


def test_ingest_of_lines_with_odd_years(tmp_path: Path) -> None:
    lines = [{"timestamp": stamp, "content": "x"} for stamp in (0, 253402300800000, -62167219200001)]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run("ingest", tmp_path / "a.ndjson", "--into", tmp_path / "t").exit_code == 0
    assert open_table(tmp_path / "t").search(order="newest").arrow().num_rows == 3


def test_numbers_without_an_absolute_value(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t")
    table.append(pa.table({"timestamp": pa.array([LEAST, MOST]), "content": ["a", "b"]}))
    table.append(pa.table({"timestamp": pa.array([LEAST, MOST]).cast(pa.timestamp("s")), "content": ["c", "d"]}))
    found = table.search(order="oldest", columns=["content"]).arrow().column("content").to_pylist()
    assert (found[0], found[-1]) == ("c", "d")


@given(st.integers(LEAST, MOST))
def test_texts_sort_and_read_back(microseconds: int) -> None:
    text = iso_text(microseconds)
    if FIRST_MICROSECOND <= microseconds <= LAST_MICROSECOND:
        assert datetime.fromisoformat(text) == datetime(1970, 1, 1, tzinfo=UTC) + np.timedelta64(
            microseconds, "us"
        ).astype(object)
    elif microseconds > LEAST:  # which is not-a-time for NumPy
        assert np.datetime64(text.removesuffix("Z").removeprefix("+"), "us").astype(np.int64) == microseconds


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.sampled_from(EXTREMES), st.integers(LEAST, MOST)), min_size=1, max_size=8), st.data())
def test_the_law_with_any_times(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], data: st.DataObject
) -> None:
    table = create_table(tmp_path_factory.mktemp("t") / "t", partition_by=data.draw(st.sampled_from(["day", None])))
    table.append(records(times))
    since, until = sorted([data.draw(st.sampled_from(EXTREMES)), data.draw(st.integers(LEAST, MOST))])
    expected = sorted(time for time in times if since <= time and (time < until or until == MOST))
    found = table.search(since=since, until=until, order="oldest", columns=["timestamp"]).arrow()
    assert found.column("timestamp").cast(pa.int64()).to_pylist() == expected


def test_values_inside_of_others() -> None:
    inside = pa.array([[{"at": None}], [{"at": MOST}]], pa.list_(pa.struct([("at", pa.int64())])))
    column = inside.cast(pa.list_(pa.struct([("at", pa.timestamp("us"))])))
    assert python_values(column) == [[{"at": None}], [{"at": MOST}]]
    days = pa.array([0, 2**31 - 1, None], pa.int32()).cast(pa.date32())
    assert python_values(days)[1:] == [MOST // (86_400 * 10**6) * 86_400 * 10**6, None]
    assert microseconds_of(pa.array([-1, None]).cast(pa.timestamp("ns"))).to_pylist() == [-1, None]
