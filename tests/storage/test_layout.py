"""Tables without partitions: how large they get, and what a search, a query and a deletion read of them."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from coprlake import contains, equals
from coprlake.cli.main import cli
from coprlake.segment.sealed import SealedSegment
from coprlake.table import Table, create_table, open_table

START = datetime(2012, 1, 1, tzinfo=UTC)
YEARS = 13


def access_log(path: Path, count: int, first: int = 0) -> Path:
    """An access log of `count` lines that spans thirteen years."""
    step = timedelta(days=365 * YEARS) / count
    with path.open("w") as out:
        for number in range(count):
            moment = START + step * number + timedelta(seconds=first)
            address = f"10.{(number * 7 + first) % 200}.{number % 13}.{number % 250}"
            page = f"/{('shop', 'static', 'api')[number % 3]}/item/{number * 31 % 4000}"
            out.write(
                f'{address} - - [{moment:%d/%b/%Y:%H:%M:%S} +0000] "GET {page} HTTP/1.1" '
                f'{(200, 304, 404)[number % 3]} {number * 17 % 90000} "-" "Mozilla/5.0 (X11; Linux) Firefox/86.0"\n'
            )
    return path


@pytest.fixture
def run() -> Callable[..., Result]:
    return lambda *arguments: CliRunner().invoke(cli, [str(argument) for argument in arguments])


def ingested(run: Callable[..., Result], *arguments: object) -> dict[str, Any]:
    result = run("ingest", *arguments, "--engine", "local", "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.slow
def test_a_log_of_many_years_takes_no_more_than_one_of_a_day(run: Callable[..., Result], tmp_path: Path) -> None:
    log = access_log(tmp_path / "years.log", 160_000)
    found = ingested(run, log, "--into", tmp_path / "logs")
    assert found["raw_bytes"] > 20_000_000
    assert found["segments"] <= 2 + found["raw_bytes"] // (256 << 20)
    assert found["index_bytes"] <= 0.035 * found["raw_bytes"]
    assert found["layout_warning"] is None


def test_three_logs_of_years_are_one_segment(run: Callable[..., Result], tmp_path: Path) -> None:
    logs = [access_log(tmp_path / f"{number}.log", 4000, number) for number in range(3)]
    found = ingested(run, *logs, "--into", tmp_path / "logs")
    assert found["records"] == 12_000
    assert found["segments"] <= 2
    assert found["index_bytes"] < 0.3 * found["raw_bytes"], "small, and kept mergeable"


def test_a_log_that_gains_columns_again_and_again_is_one_segment(run: Callable[..., Result], tmp_path: Path) -> None:
    """Each block of it has a column that others do not have."""
    log = tmp_path / "grows.jsonl"
    with log.open("w") as out:
        for number in range(60_000):
            own = {f"rare_{number // 6000}": number} if number % 500 == 0 else {}
            moment = (START + timedelta(minutes=number)).isoformat()
            row = {"ts": moment, "level": "INFO", "msg": f"request {number} served in {number * 7 % 900} ms"} | own
            out.write(json.dumps(row | {"service": f"s{number % 5}", "user": f"u{number * 31 % 977}"}) + "\n")
    found = ingested(run, log, "--into", tmp_path / "logs")
    assert found["segments"] <= 2
    table = open_table(tmp_path / "logs")
    assert table.search().count() == 60_000
    assert table.search(contains("request 6000 served")).count() == 1
    assert table.search(equals("rare_3", 18_000)).count() == 1
    assert sum(path.suffix == ".parquet" for path in (tmp_path / "logs").iterdir()) == found["segments"]
    assert table.verify(deep=True).is_sound


def test_logs_of_different_kinds_stay_apart_if_that_is_smaller(tmp_path: Path) -> None:
    table = create_table(tmp_path / "logs")
    kinds = [{f"{kind}{number}": number for number in range(40)} for kind in "ab"]
    with table.writer() as writer:
        for turn in range(3):
            for more in kinds:
                content = "x" * 1000
                writer.append([{"content": f"{content} {turn} {number}"} | more for number in range(3000)])
    assert len(table.snapshot().segments) == 2
    assert table.search().count() == 18_000


def test_small_days_are_told(run: Callable[..., Result], tmp_path: Path) -> None:
    log = access_log(tmp_path / "a.log", 60)
    done = run("ingest", log, "--into", tmp_path / "logs", "--engine", "local", "--partition-by", "day")
    assert done.exit_code == 0
    assert "60 partitions of only" in done.stderr
    assert "coprlake optimize --repartition none" in done.stderr
    advice = run("info", tmp_path / "logs")
    assert "60, because partitions are small; `coprlake optimize --repartition none` leaves about 1" in advice.stdout
    changed = run("optimize", tmp_path / "logs", "--repartition", "none")
    assert changed.exit_code == 0, changed.output
    assert "merged 60 segments into 1" in changed.stdout
    assert "because" not in run("info", tmp_path / "logs").stdout
    assert run("search", "-c", tmp_path / "logs").stdout.strip() == "60"
    assert run("verify", "--deep", tmp_path / "logs").exit_code == 0
    few = ingested(run, access_log(tmp_path / "b.log", 3), "--into", tmp_path / "few", "--partition-by", "day")
    assert few["layout_warning"] is None


def test_an_unknown_partition_column_is_an_error_that_names_those_there_are(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    log = access_log(tmp_path / "a.log", 5)
    done = run("ingest", log, "--into", tmp_path / "logs", "--engine", "local", "--partition-by", "nosuch")
    assert done.exit_code == 2
    assert "no record has such a column" in done.stderr
    assert "http_status" in done.stderr
    assert not (tmp_path / "logs").exists()
    other = access_log(tmp_path / "b.log", 5)
    done = run("ingest", log, other, "--into", tmp_path / "logs", "--engine", "local", "--partition-by", "nosuch")
    assert done.exit_code == 0, "others may have it: nothing is certain before all is read"
    assert "no record has a column nosuch" in done.stderr


def test_vacuum_asks_before_it_removes_what_may_be_in_use(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table(tmp_path / "logs")
    for number in range(2):
        table.append([{"content": f"line {number}"}])
    table.optimize()
    refused = run("vacuum", tmp_path / "logs", "--keep", "0h")
    assert refused.exit_code == 2
    assert "add --yes" in refused.stderr
    assert len(list((tmp_path / "logs").glob("*.parquet"))) == 3
    assert run("vacuum", tmp_path / "logs", "--keep", "1h").exit_code == 0, "an hour is fine"
    monkeypatch.setattr("coprlake.cli.commands.vacuum.is_terminal", lambda: True)
    declined = CliRunner().invoke(cli, ["vacuum", str(tmp_path / "logs"), "--keep", "0h"], input="n\n")
    assert (declined.exit_code, "nothing was removed" in declined.stderr) == (1, True)
    assert "removes 4 files" in declined.stderr
    done = run("vacuum", tmp_path / "logs", "--keep", "0h", "--yes")
    assert "removed 2 data files, 2 sidecars" in done.stdout


def test_verify_says_what_it_did_not_read(run: Callable[..., Result], tmp_path: Path) -> None:
    create_table(tmp_path / "logs").append(["x"])
    assert "the data was not read" in run("verify", tmp_path / "logs").stderr
    assert run("verify", "--deep", tmp_path / "logs").stderr == ""


# --- what is read of a range of time ---


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve segments of a month each, with several batches in order of time."""
    path = tmp_path_factory.mktemp("months") / "table"
    table = create_table(path)
    text = "x" * 2000
    for month in range(12):
        rows = [
            {"timestamp": START + timedelta(days=30 * month, hours=hour), "content": f"{text} m{month} h{hour} "}
            for hour in range(720)
        ]
        table.append(rows)
    return path


def test_a_search_opens_only_segments_and_batches_of_its_time(months: Path) -> None:
    since = START + timedelta(days=95)
    found = open_table(months).search(since=since, until=since + timedelta(hours=3)).explain()
    assert found.rows_matched == 3
    assert found.segments_pruned_by_time == 11
    assert found.batches_opened == 1
    assert found.batches_pruned_by_time >= 2


def test_a_query_reads_only_segments_and_batches_of_its_time(months: Path) -> None:
    since = START + timedelta(days=95)
    until = since + timedelta(hours=3)
    query = open_table(months).query(
        f'fetch logs, from:"{since.isoformat()}", to:"{until.isoformat()}" | filter contains(content, "h") '
        "| summarize n = count()"
    )
    assert list(query.rows()) == [{"n": 3}]
    (scan,) = query.report.scans
    search = scan.search
    assert search.segments_pruned_by_time == 11
    assert search.batches_opened <= 1


def test_a_deletion_drops_segments_unread_and_rewrites_those_at_the_edge(
    months: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _copy_of(months, tmp_path)
    until = START + timedelta(days=95)
    read: list[str] = []
    original = SealedSegment.read

    def counted(self: SealedSegment, *arguments: Any) -> Any:
        read.append(self.name)
        return original(self, *arguments)

    monkeypatch.setattr(SealedSegment, "read", counted)
    report = table.delete(until=until)
    assert (report.files_dropped, report.files_rewritten) == (3, 1)
    assert report.rows == 95 * 24
    assert report.batches_read < 3, "batches after the time are copied without being asked"
    assert len(set(read)) == 1, "only the segment at the edge"
    read.clear()
    assert table.delete(contains("m5 h7 "), until=START + timedelta(days=100)).rows == 0
    assert read == []
    monkeypatch.undo()
    assert table.search().count() == (360 - 95) * 24
    assert table.verify(deep=True).is_sound


def _copy_of(path: Path, folder: Path) -> Table:
    return open_table(shutil.copytree(path, folder / "copy"))
