"""Filling a table and keeping it in shape: ingest, info, optimize, delete, vacuum, verify, index, generate."""

import gzip
import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from coprlake.cli.commands import delete
from coprlake.cli.printing.figures import amount, parse_size, percent, rate, seconds, size
from coprlake.errors import StorageError
from coprlake.generator import generate
from coprlake.storage.writer import TableWriter
from coprlake.table import create_table, open_table

Run = Callable[..., Result]
LINE = "2026-11-16T03:{:02}:00Z INFO number {}\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "app.log"
    path.write_text("".join(LINE.format(i, i) for i in range(10)))
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three small segments of one day, and one of long ago."""
    path = tmp_path / "table"
    found = create_table(path, partition_by="day")
    for number in range(3):
        moment = datetime(2026, 11, 16, number, tzinfo=UTC)
        found.append([{"timestamp": moment, "content": f"line {number} of {name}"} for name in ("a", "b")])
    found.append([{"timestamp": datetime(2020, 1, 1, tzinfo=UTC), "content": "old line"}])
    return path


def count(run: Run, table: Path, *arguments: object) -> int:
    return int(run("search", "-c", *arguments, table).stdout)


def test_ingest_makes_the_table_and_adds_to_it(run: Run, log: Path, tmp_path: Path) -> None:
    first = run("ingest", log, "--into", tmp_path / "t")
    assert first.exit_code == 0, first.output
    assert "10" in first.stdout
    assert "version" in first.stderr
    assert run("ingest", log, "--into", tmp_path / "t", "--again").exit_code == 0
    assert count(run, tmp_path / "t") == 20
    assert open_table(tmp_path / "t").partition_by == []


def test_ingest_reports_as_json(run: Run, log: Path, tmp_path: Path) -> None:
    result = run("ingest", log, "--into", tmp_path / "t", "--json", "--source", "here")
    known = json.loads(result.stdout)
    assert (known["records"], known["commits"], known["raw_bytes"]) == (10, 1, log.stat().st_size)
    assert known["reading"]["without_timestamp"] == 0
    assert result.stderr == ""
    assert count(run, tmp_path / "t", "--source", "here") == 10


def test_ingest_reads_standard_input_and_compressed_files(run: Run, log: Path, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "more.log.gz", "wb") as file:
        file.write(log.read_bytes())
    piped = run("ingest", "-", tmp_path / "more.log.gz", "--into", tmp_path / "t", input=log.read_text())
    assert piped.exit_code == 0, piped.output
    assert count(run, tmp_path / "t") == 20


def test_ingest_commits_once_or_as_often_as_asked(run: Run, tmp_path: Path) -> None:
    lines = generate(megabytes=6, seed=3).content.to_pylist()
    (tmp_path / "a.log").write_text("\n".join(lines[: len(lines) // 2]))
    (tmp_path / "b.log").write_text("\n".join(lines[len(lines) // 2 :]))
    options = ["--partition-by", "none", "--multiline", "", "--json"]
    known = json.loads(
        run("ingest", tmp_path / "a.log", tmp_path / "b.log", "--into", tmp_path / "once", *options).stdout
    )
    assert known["commits"] == known["segments"] == 1
    options += ["--commit-every", "1MB"]
    known = json.loads(
        run("ingest", tmp_path / "a.log", tmp_path / "b.log", "--into", tmp_path / "often", *options).stdout
    )
    assert known["commits"] > 1
    assert count(run, tmp_path / "once") == count(run, tmp_path / "often") == len(lines)


def test_a_dry_run_writes_nothing(run: Run, log: Path, tmp_path: Path) -> None:
    result = run("ingest", log, "--into", tmp_path / "t", "--dry-run")
    assert result.exit_code == 0
    assert "dry run" in result.stderr
    assert not (tmp_path / "t").exists()


def test_ingesting_nothing_is_no_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    result = run("ingest", tmp_path / "empty.log", "--into", tmp_path / "t")
    assert (result.exit_code, result.stderr) == (0, "no records in 1 file; nothing was added\n")


def test_an_ingest_that_fails_adds_nothing(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageError("the disk is full")

    run("ingest", log, "--into", tmp_path / "t")
    monkeypatch.setattr(TableWriter, "commit", full)
    result = run("ingest", log, "--into", tmp_path / "t", "--again")
    assert result.exit_code == 2
    assert result.stderr == f"nothing was added to {tmp_path / 't'}\ncoprlake: error: the disk is full\n"
    assert count(run, tmp_path / "t") == 10


def test_ingest_says_what_is_left_of_several_commits(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(TableWriter, "close", full)
    result = run("ingest", log, "--into", tmp_path / "t", "--commit-every", "1B")
    assert result.exit_code == 2
    assert "keeps what was committed before" in result.stderr
    assert count(run, tmp_path / "t") == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.log", "--into", "t"], "nowhere.log: no such file"),
        (["app.log", "--into", "app.log"], "found a file"),
        (["app.log", "--into", "."], "the folder is not empty"),
        (["app.log", "--into", "t", "--zone", "Mars/Base"], "Mars/Base"),
        (["app.log", "--into", "t", "--multiline", "("], "regular expression"),
        (["app.log", "--into", "t", "--segment-size", "much"], "not a valid size"),
        (["app.log", "--into", "t", "--partition-by", "none", "--partition-by", "day"], "contradict"),
        (["app.log"], "--into"),
        (["--into", "t"], "FILES"),
    ],
)
def test_ingest_refuses_what_it_cannot_do(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("ingest", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert sorted(os.listdir()) == ["app.log"]  # noqa: PTH208


def test_ingest_refuses_to_change_how_a_table_is_made(run: Run, log: Path, tmp_path: Path) -> None:
    run("ingest", log, "--into", tmp_path / "t", "--partition-by", "source", "--grams", "url")
    again = run("ingest", log, "--into", tmp_path / "t", "--partition-by", "source", "--grams", "url")
    assert again.exit_code == 0, again.output
    for options in (["--partition-by", "day"], ["--grams", "path"]):
        result = run("ingest", log, "--into", tmp_path / "t", *options)
        assert result.exit_code == 2
        assert "cannot be changed" in result.stderr


def test_a_table_is_not_ingested_into_itself(run: Run, log: Path, tmp_path: Path) -> None:
    assert run("ingest", log, "--into", tmp_path / "t").exit_code == 0
    result = run("ingest", tmp_path, "--into", tmp_path / "t")
    assert result.exit_code == 2
    assert str(tmp_path / "t") in result.stderr
    own = next((tmp_path / "t").rglob("*.parquet"))
    result = run("ingest", own, "--into", tmp_path / "t")
    assert result.exit_code == 2
    assert "belongs to the table that you write to" in result.stderr


def test_ingest_names_what_is_wrong_with_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.ndjson").write_text('{"message": "fine"}\n{"message": "also fine"}\n{"message": \n')
    (tmp_path / "cut.log.gz").write_bytes(gzip.compress(b"a line\n" * 100_000)[:-20])
    result = run("ingest", tmp_path / "odd.ndjson", tmp_path / "cut.log.gz", "--into", tmp_path / "t")
    assert result.exit_code == 1
    assert "coprlake: warning: " in result.stderr
    assert "cut.log.gz" in result.stderr
    assert "unreadable" in result.stdout
    assert count(run, tmp_path / "t", "fine") == 2


def test_info_tells_sizes_and_times(run: Run, table: Path) -> None:
    shown = run("info", table)
    assert shown.exit_code == 0
    for text in ("records", "7", "2020-01-01T00:00:00Z to 2026-11-16T02:00:00Z", "raw text", "signatures", "optimize"):
        assert text in shown.stdout
    known = json.loads(run("info", table, "--json").stdout)
    assert (known["rows"], known["segments"], known["first_time"]) == (7, 4, "2020-01-01T00:00:00+00:00")
    listed = json.loads(run("info", table, "--segments", "--json").stdout)["segment_list"]
    assert sum(segment["rows"] for segment in listed) == 7
    assert run("info", table, "--segments").stdout.count(".parquet") == 4


def test_sizes_are_given_in_percent_of_raw_from_a_megabyte_on(run: Run, table: Path, tmp_path: Path) -> None:
    """A few records take less than the files around them: a share of 3,000 % would say nothing about real logs."""
    small, large = tmp_path / "small.log", tmp_path / "large.log"
    small.write_text("one line\n")
    large.write_text("".join(f"line {n} of a log that is large enough for percentages\n" for n in range(20_000)))
    assert "of raw" not in run("ingest", small, "--into", tmp_path / "s").stdout
    assert "% of raw" in run("ingest", large, "--into", tmp_path / "l").stdout
    assert "of raw" not in run("info", tmp_path / "s").stdout
    assert run("info", tmp_path / "l").stdout.count("% of raw") > 5
    told = run("index", tmp_path / "s", "--rebuild").stdout
    assert "of text; 0 had one already" in told
    assert re.search(r"of text \(\d\.\d+ %\); 0 had one", run("index", tmp_path / "l", "--rebuild").stdout)


def test_optimize_merges(run: Run, table: Path) -> None:
    result = run("optimize", table)
    assert result.exit_code == 0
    assert "merged 3 segments into 1" in result.stdout
    assert "nothing to merge" in run("optimize", table).stderr
    assert json.loads(run("optimize", table, "--full", "--json").stdout)["segments_after"] == 2
    assert count(run, table) == 7
    assert run("verify", "--deep", table).exit_code == 0


def test_delete_asks_on_a_terminal_only(run: Run, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = run("delete", "of a", table)
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    assert count(run, table) == 7
    monkeypatch.setattr(delete, "is_terminal", lambda: True)
    declined = run("delete", "of a", table, input="n\n")
    assert declined.exit_code == 1
    assert '3 records match and(contains(any value, "of"), contains(any value, "a"))' in declined.stderr
    assert count(run, table) == 7
    confirmed = run("delete", "of a", table, input="y\n")
    assert confirmed.exit_code == 0
    assert "deleted 3 records" in confirmed.stdout
    assert count(run, table) == 4


def test_delete_takes_the_filters_of_search(run: Run, table: Path) -> None:
    dry = run("delete", "line", table, "--since", "2026", "--dry-run")
    assert (dry.exit_code, dry.stdout) == (0, "")
    assert dry.stderr.startswith("6 records match")
    assert json.loads(run("delete", "line", table, "--since", "2026", "--dry-run", "--json").stdout)["rows"] == 6
    assert count(run, table) == 7
    known = json.loads(run("delete", "line", table, "--since", "2026-11-16T01:00", "--yes", "--json").stdout)
    assert known["rows"] == 4
    assert count(run, table) == 3
    assert "nothing was deleted" in run("delete", "nowhere", table, "--yes").stderr


def test_retention_deletes_what_is_old(run: Run, table: Path) -> None:
    open_table(table).append([{"timestamp": datetime.now(UTC), "content": "now"}])
    assert run("delete", "--older-than", "52w", table, "--yes", "--until", "2020").exit_code == 2
    days = (datetime.now(UTC) - datetime(2025, 1, 1, tzinfo=UTC)).days
    result = run("delete", "--older-than", f"{days}d", table, "--yes")
    assert "deleted 1 record" in result.stdout
    assert count(run, table, "old") == 0


@pytest.mark.parametrize("arguments", [[], ["-e", ""], ["-e", "line", "-e", ""]])
def test_delete_never_means_everything(run: Run, table: Path, arguments: list[str]) -> None:
    assert run("delete", *arguments, table, "--yes").exit_code == 2
    assert run("delete", "", table, "--yes").exit_code == 2
    assert count(run, table) == 7


def test_the_status_of_deletions(run: Run, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = run("delete", "--status", table)
    assert (none.exit_code, none.stdout, none.stderr) == (0, "", "no deletions\n")
    run("delete", "of a", table, "--yes")
    assert "hidden" in run("delete", "--status", table).stdout
    assert "would remove" in run("vacuum", table, "--keep", "0s", "--dry-run").stderr
    removed = run("vacuum", table, "--older-than-hours", "0", "--yes")
    assert "removed 3 data files, 3 sidecars" in removed.stdout
    assert "erased" in run("delete", "--status", table).stdout
    (known,) = json.loads(run("delete", "--status", "--json", table).stdout)["deletions"]
    assert (known["state"], known["rows"], known["bytes_left"]) == ("erased", 3, 0)
    monkeypatch.setenv("COPRLAKE_TABLE", str(table.parent / "other"))
    assert run("delete", "--status", table).exit_code == 0, "the argument is the table, not a text"
    assert "nothing to remove" in run("vacuum", table).stderr


def test_vacuum_refuses_two_answers(run: Run, table: Path) -> None:
    assert run("vacuum", table, "--keep", "7d", "--older-than-hours", "1").exit_code == 2


def test_the_old_names_of_options_work_with_a_warning(run: Run, table: Path) -> None:
    renamed = "coprlake: warning: {} has been renamed to {}; a later release will not accept the old name\n"
    vacuum = run("vacuum", table, "--retain", "7d")
    assert (vacuum.exit_code, vacuum.stderr) == (0, renamed.format("--retain", "--keep") + "nothing to remove\n")
    optimize = run("optimize", table, "--level", "1", "--full", "--json")
    assert (optimize.exit_code, optimize.stderr) == (0, renamed.format("--level", "--compression"))
    small = run("optimize", table, "--compression", "22", "--full", "--json")
    assert (small.exit_code, small.stderr) == (0, "")
    assert json.loads(small.stdout)["data_bytes_before"] != json.loads(small.stdout)["data_bytes_after"]


def test_an_old_name_beside_the_new_one_is_refused(run: Run, table: Path) -> None:
    result = run("vacuum", table, "--keep", "7d", "--retain", "1d")
    assert result.exit_code == 2
    assert "--retain is the old name of --keep" in result.stderr


@pytest.mark.parametrize(("command", "old"), [("vacuum", "--retain"), ("optimize", "--level")])
def test_the_help_has_only_the_new_names(run: Run, command: str, old: str) -> None:
    assert old not in run(command, "--help").stdout


def test_verify_says_that_all_is_well(run: Run, table: Path) -> None:
    result = run("verify", table)
    assert (result.exit_code, result.stdout) == (0, "sound: 4 segments, 7 records\n")
    assert json.loads(run("verify", table, "--json").stdout)["is_sound"]


def test_index_writes_what_is_missing(run: Run, table: Path) -> None:
    assert "nothing to do" in run("index", table).stderr
    next(path for path in table.rglob("*.copr")).unlink()
    assert "indexed 1 segment " in run("index", table).stdout
    assert json.loads(run("index", table, "--rebuild", "--json", "--grams", "source").stdout)["indexed"] == 4


def test_a_folder_of_parquet_files_is_read_only(run: Run, table: Path, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for number, file in enumerate(table.rglob("*.parquet")):
        (tmp_path / "files" / f"{number}.parquet").write_bytes(file.read_bytes())
    warned = run("search", "-c", "line", tmp_path / "files")
    assert warned.stdout == "7\n"
    assert "no sidecar" in warned.stderr
    assert run("index", tmp_path / "files").exit_code == 0
    assert run("search", "-c", "line", tmp_path / "files").stderr == ""
    for command in (["optimize"], ["vacuum"], ["delete", "line", "--yes"]):
        result = run(*command, tmp_path / "files")
        assert result.exit_code == 2
        assert "only read" in result.stderr


def test_generate_writes_the_same_lines_to_a_file_or_a_pipe(run: Run, tmp_path: Path) -> None:
    piped = run("generate", "--megabytes", "0.1", "--seed", "5")
    assert run("generate", "--megabytes", "0.1", "--seed", "5", "--out", tmp_path / "x.log").exit_code == 0
    assert piped.stdout == (tmp_path / "x.log").read_text()
    assert "sources" in piped.stderr
    assert run("generate", "--set", "nope").exit_code == 2
    assert run("generate", "--megabytes", "0").exit_code == 2


def test_a_file_is_ingested_once_unless_asked_for(run: Run, log: Path, tmp_path: Path) -> None:
    ingest = ("ingest", log, "--into", tmp_path / "new", "--engine", "local")
    assert "10" in run(*ingest).output
    done = run(*ingest)
    told = "1 file was ingested before and is skipped; --again ingests it all the same"
    assert f"nothing was added: {told}" in done.output
    assert done.exit_code == 0
    assert json.loads(run(*ingest, "--json").output)["reading"]["known"] == 1
    log.write_text(log.read_text() + LINE.format(11, 11))
    assert "1 file has grown; only what is new was read" in run(*ingest).output
    assert run(*ingest, "--again").exit_code == 0
    assert open_table(tmp_path / "new").count() == 22


def test_binaries_are_named_and_a_single_one_is_refused(run: Run, log: Path, tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(b"\0" * 100)
    done = run("ingest", tmp_path / "core", "--into", tmp_path / "new", "--engine", "local")
    assert done.exit_code == 2
    assert "core: this is binary, not text; --text reads it all the same" in done.output
    assert not (tmp_path / "new").exists()
    done = run("ingest", tmp_path / "core", log, "--into", tmp_path / "new", "--engine", "local")
    assert done.exit_code == 0
    assert "core: passed over because it is binary" in done.output
    assert run("ingest", "-a", tmp_path / "core", "--into", tmp_path / "raw", "--engine", "local").exit_code == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [("17", 17), ("1k", 1000), ("500MB", 500_000_000), ("1GiB", 1 << 30), ("1.5 gib", 3 << 29), ("2t", 2 * 10**12)],
)
def test_sizes_as_people_write_them(text: str, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (size(999), "999 B"),
        (size(12_345), "12.3 kB"),
        (size(999_999), "1.0 MB"),
        (size(123_456_789), "123 MB"),
        (size(5e18), "5,000 PB"),
        (percent(1, 66), "1.52 %"),
        (percent(1, 0), "-"),
        (percent(3, 3), "100 %"),
        (amount(1, "file"), "1 file"),
        (amount(1234, "file"), "1,234 files"),
        (seconds(0.00042), "0.42 ms"),
        (seconds(0.42), "420 ms"),
        (seconds(4.2), "4.20 s"),
        (seconds(200), "3 min 20 s"),
        (seconds(10_000), "2 h 46 min"),
        (rate(5e6, 2), "2.5 MB/s"),
    ],
)
def test_figures_as_people_read_them(shown: Any, expected: str) -> None:
    assert shown == expected
