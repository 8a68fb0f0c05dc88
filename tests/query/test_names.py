"""Names that a table spells otherwise, and times in another column, are found or refused: never just empty."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from deltalake import write_deltalake

from coprlake.cli.main import cli
from coprlake.errors import UsageError
from coprlake.predicate.build import contains, equals, exists
from coprlake.query.resolving import time_column
from coprlake.table import Table, create_table, open_table

START = datetime(2024, 6, 1, tzinfo=UTC)
HOURS = [START + timedelta(hours=n) for n in range(20)]


def folder(path: Path, **columns: Any) -> Table:
    path.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": list(range(20)), **columns}), path / "a.parquet", row_group_size=4)
    return open_table(path)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def ids(table: Table, *arguments: Any, **options: Any) -> list[int]:
    return [row["id"] for row in table.search(*arguments, columns=["id"], **options).rows()]


KINDS = [
    pa.timestamp("s"),
    pa.timestamp("ms", "UTC"),
    pa.timestamp("us"),
    pa.timestamp("ns"),
    pa.timestamp("ns", "Europe/Berlin"),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", ["event_time", "@timestamp", "when it was"])
def test_the_only_column_of_times_is_the_time(tmp_path: Path, kind: pa.DataType, name: str) -> None:
    table = folder(tmp_path, **{name: pa.array(HOURS, pa.timestamp("us", "UTC")).cast(kind)}, content=["x"] * 20)
    since, until = HOURS[7], HOURS[11]
    assert ids(table, since=since, until=until, order="oldest") == [7, 8, 9, 10]
    assert ids(table, since=since, order="newest", limit=3) == [19, 18, 17]
    assert ids(table, "x", order="newest")[:2] == [19, 18]
    search = table.search(since=since, until=until)
    assert search.count() == 4
    assert search.report.batches_pruned_by_time == 3
    assert [row["id"] for row in table.search(since=since, until=until, context=1).rows()]
    result = run("search", tmp_path, "--since", since.isoformat(), "-c")
    assert result.stdout.strip() == "13"
    shown = run("search", tmp_path, "--since", since.isoformat(), "--columns", "id", "-n", "2")
    assert shown.stdout.split() == ["19", "18"]


def test_a_well_known_name_decides_among_several(tmp_path: Path) -> None:
    later = pa.array([time + timedelta(days=9) for time in HOURS], pa.timestamp("us"))
    table = folder(tmp_path / "a", ts=pa.array(HOURS, pa.timestamp("us")), received=later)
    assert ids(table, since=HOURS[18]) == [18, 19]
    unclear = folder(tmp_path / "b", first=pa.array(HOURS, pa.timestamp("us")), second=later)
    with pytest.raises(UsageError, match=r"no column timestamp; use a condition on .*time columns.*first, second"):
        unclear.search(since=HOURS[0]).count()
    assert unclear.search(order="newest").arrow().num_rows == 20  # an order is only a wish
    assert run("search", tmp_path / "b", "--since", "1d").exit_code == 2


def test_the_timestamp_comes_first() -> None:
    time, day = pa.timestamp("us"), pa.date32()
    assert time_column(pa.schema([("time", time), ("timestamp", time)])) == "timestamp"
    assert time_column(pa.schema([("time", time), ("timestamp", day)])) == "timestamp"
    assert time_column(pa.schema([("time", time), ("timestamp", pa.string())])) == "time"
    assert time_column(pa.schema([("Timestamp", time), ("time", time)])) == "Timestamp"
    assert time_column(pa.schema([("day", day)])) is None


def test_a_table_without_times_says_so(tmp_path: Path) -> None:
    table = folder(tmp_path, content=["x"] * 20, day=[date(2024, 6, 1)] * 20)
    with pytest.raises(UsageError, match="no column timestamp"):
        table.search(since=START).count()
    result = run("search", "x", tmp_path, "--until", "now")
    assert result.exit_code == 2
    assert "no column timestamp" in result.output


def test_delete_goes_by_the_same_column(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": list(range(20)), "When": pa.array(HOURS, pa.timestamp("us", "UTC"))}))
    table = open_table(tmp_path)
    assert table.delete(until=HOURS[5]).rows == 5
    assert ids(table, order="oldest") == list(range(5, 20))
    assert table.delete(equals("ID", 7)).rows == 1
    with pytest.raises(UsageError, match="no field idd; did you mean id"):
        table.delete(equals("idd", 7))
    assert table.search().count() == 14


def test_a_name_in_another_case_means_the_column(tmp_path: Path) -> None:
    request = pa.array([{"Host": f"h{n}"} for n in range(20)])
    table = folder(tmp_path, Level=["ERROR", "info"] * 10, Request=request)
    assert table.search(equals("level", "error")).count() == 10
    assert table.search(~equals("LEVEL", "error")).count() == 10
    assert table.search(equals("request.host", "h7")).count() == 1
    for options in (
        ["--where", "level=error"],
        ["--where", "LEVEL=error"],
        ["--level", "error"],
        ["-f", "lEVEL", "-e", "err"],
    ):
        result = run("search", tmp_path, "-c", *options)
        assert result.stdout.strip() == "10", (options, result.output)
    assert run("explain", tmp_path, "--where", "level=error").exit_code == 0


def test_an_exact_name_wins_and_several_others_are_an_error(tmp_path: Path) -> None:
    table = folder(tmp_path / "a", level=["a"] * 20, LEVEL=["b"] * 20)
    assert table.search(equals("level", "a")).count() == 20
    assert table.search(equals("LEVEL", "a")).count() == 0
    with pytest.raises(UsageError, match="did you mean level or LEVEL"):
        table.search(equals("Level", "a")).count()


def test_an_unknown_field_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    table = folder(tmp_path, message=["x"] * 20)
    for predicate in (contains("x", "mesage"), ~exists("mesage"), equals("id", 1) & equals("mesage", "x")):
        with pytest.raises(UsageError, match="no field mesage; did you mean message"):
            table.search(predicate).count()
    result = run("search", tmp_path, "--where", "mesage=x")
    assert result.exit_code == 2
    assert "did you mean message" in result.output


def test_a_key_of_the_attributes_may_be_missing(tmp_path: Path) -> None:
    table = create_table(tmp_path)
    table.append([{"content": "a", "Zone": "x"}, {"content": "b", "attributes": {"zone": "x"}}])
    assert table.search(equals("nothing", "x")).count() == 0
    assert table.search(equals("Zone", "x")).count() == 1  # a column, exactly
    assert table.search(equals("zone", "x")).count() == 2  # the key of that name, and the column that differs in case
    assert table.search(~equals("zone", "x")).count() == 0
