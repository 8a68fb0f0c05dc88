"""The habits of grep: sources and parts that match, following, a pager, local times, folded lines, errors."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result

from coprlake import contains, create_table, open_table
from tests.cli.test_cli_shell import Terminal

Run = Callable[..., Result]
START = datetime(2026, 1, 16, 23, 30, tzinfo=UTC)
TRACE = "ERROR failed\njava.io.IOException: closed\n\tat a.b(C.java:1)\n\tat c.d(E.java:2)\nCaused by: timeout"


def record(number: int, content: str, source: str = "app") -> dict[str, object]:
    return {"timestamp": START + timedelta(seconds=number), "source": source, "content": content}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    table = create_table(tmp_path / "logs")
    table.append(
        [record(1, "Timeout after 30 ms, timeout again", "web"), record(2, "fine", "db"), record(3, TRACE, "app")]
    )
    table.append([record(4, "timeouts: 3", "web")])
    return tmp_path / "logs"


def test_the_sources_that_have_a_match(run: Run, logs: Path) -> None:
    result = run("search", "-l", "timeout", logs)
    assert (sorted(result.stdout.splitlines()), result.exit_code) == (["app", "web"], 0)
    assert run("search", "--files-with-matches", "absent", logs).exit_code == 1
    assert len(run("search", "-l", "timeout", logs, "-n", 1).stdout.splitlines()) == 1


def test_a_source_that_is_known_is_not_searched_again(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t")
    for number in range(6):
        table.append([record(number, "needle", "a" if number != 3 else "b")])
    search = table.search("needle", threads=1)
    assert sorted(map(str, search.distinct("source"))) == ["a", "b"]
    assert search.report.batches_opened == 2


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["timeout"], ["Timeout", "timeout", "timeout", "timeout"]),
        (["-s", "timeout"], ["timeout", "timeout", "timeout"]),
        (["-E", r"[0-9]+ ms|^java\S+"], ["30 ms", "java.io.IOException:"]),
        (["-E", "t"], list("Ttttt" + "tttt" + "tt")),
        (["-w", "timeout"], ["Timeout", "timeout", "timeout"]),
        (["-e", "after", "-e", "closed"], ["after", "closed"]),
        (["-e", "time", "-e", "timeout"], ["Timeout", "timeout", "timeout", "timeout"]),
        (["-f", "source", "we"], ["we", "we"]),
        (["time", "--source", "web"], ["Time", "time", "time"]),
        (["--wildcard", "IO*:"], ["io.IOException:"]),
    ],
)  # fmt: skip
def test_only_the_parts_that_match(run: Run, logs: Path, arguments: list[str], parts: list[str]) -> None:
    result = run("search", *arguments, "--table", logs, "--only-matching", "--order", "oldest")
    if arguments == ["-E", "t"]:
        texts = ["Timeout after 30 ms, timeout again", TRACE, "timeouts: 3"]
        parts = [part for text in texts for part in re.findall("[tT]", text)]
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == parts


def test_parts_of_other_values_than_the_content(run: Run, tmp_path: Path) -> None:
    line = '{"time": "2026-01-16T23:30:00Z", "message": "call 42", "status": 420, "took": 42.0, "user": {"id": "a42b"}}'
    (tmp_path / "a.ndjson").write_text(line + "\n")
    assert run("ingest", tmp_path / "a.ndjson", "--into", tmp_path / "t", "--engine", "local").exit_code == 0
    found = run("search", "-E", "[a-z]?42[0-9a-z]?", tmp_path / "t", "--only-matching").stdout.splitlines()
    assert (found[0], sorted(found)) == ("42", ["42", "42", "420", "a42b"])
    assert run("search", "-f", "user.id", "42", tmp_path / "t", "--only-matching").stdout == "42\n"


def test_max_count_is_the_limit(run: Run, logs: Path) -> None:
    assert run("search", "-m", 1, "timeout", logs).stdout == "timeouts: 3\n"
    assert run("search", "--max-count", 1, "timeout", logs).stdout == "timeouts: 3\n"


def test_anchors_match_at_lines(run: Run, logs: Path) -> None:
    assert run("search", "-c", "-E", r"^java\.", logs).stdout == "1\n"
    assert run("search", "-c", "-E", "closed$", logs).stdout == "1\n"
    assert run("search", "-c", "--source", "we*", logs).stdout == "2\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["-l", "-c"],
        ["-l", "--json"],
        ["--only-matching", "-C", "1"],
        ["--only-matching", "-v"],
        ["--follow", "-c"],
        ["--follow", "-o", "parquet"],
        ["--follow", "-A", "1"],
        ["--out", "x.xlsx"],
        ["--frobnicate"],
        ["--order", "sideways"],
    ],
)
def test_errors_have_one_form(run: Run, logs: Path, arguments: list[str]) -> None:
    result = run("search", "timeout", logs, *arguments)
    assert result.exit_code == 2
    assert re.match(r"coprlake: error: [^A-Z][^\n]*[^.\n]\nUsage: \w+ search ", result.stderr), result.stderr
    assert "Error:" not in result.stderr


def test_errors_of_the_program_have_the_same_form(run: Run) -> None:
    for arguments in (["serch"], ["--frobnicate"], ["ingest"]):
        result = run(*arguments)
        assert result.exit_code == 2
        assert result.stderr.startswith("coprlake: error: ")


def test_an_unknown_suffix_is_told_with_the_known_ones(run: Run, logs: Path, tmp_path: Path) -> None:
    for command in (["search", "timeout", logs], ["query", "fetch logs", logs]):
        result = run(*command, "--out", tmp_path / "x.xlsx")
        assert ".xlsx" in result.stderr
        for suffix in (".parquet", ".csv", ".json", ".ndjson", ".jsonl", ".txt"):
            assert suffix in result.stderr
        assert not (tmp_path / "x.xlsx").exists()
    assert run("search", "timeouts", logs, "--out", tmp_path / "x.xlsx", "-o", "csv").exit_code == 0
    assert run("search", "timeouts", logs, "--out", tmp_path / "x.txt").exit_code == 0
    assert (tmp_path / "x.txt").read_text() == "timeouts: 3\n"


# A terminal


@pytest.fixture
def on_terminal() -> Iterator[Callable[..., Terminal]]:
    started: list[Terminal] = []

    def start(*arguments: object, **environment: str) -> Terminal:
        quiet = {"COPRLAKE_PAGER": "", "TZ": "UTC"}
        started.append(Terminal(*map(str, arguments), **(quiet | environment)))
        return started[-1]

    yield start
    for terminal in started:
        terminal.kill()


def test_lines_of_a_record_are_folded_but_those_that_match(on_terminal: Callable[..., Terminal], logs: Path) -> None:
    terminal = on_terminal("search", "-E", r"^java\.", logs)
    shown = terminal.wait_for(r"ERROR failed\n    java.io.IOException: closed \+3 lines\n")
    assert "at a.b" not in shown
    assert terminal.leave() == 0
    shown = on_terminal("search", "failed", logs, "--full").wait_for("Caused by: timeout\n")
    assert "at c.d" in shown
    on_terminal("search", "fine", logs).wait_for("db +fine\n")


def test_times_are_local_on_a_terminal(on_terminal: Callable[..., Terminal], logs: Path) -> None:
    on_terminal("search", "fine", logs, TZ="Europe/Vienna").wait_for(r"2026-01-17T00:30:02\.000\+01:00 ")
    on_terminal("search", "fine", logs, "--utc", TZ="Europe/Vienna").wait_for(r"2026-01-16T23:30:02\.000Z ")
    on_terminal("search", "fine", logs, "--json", TZ="Europe/Vienna").wait_for("2026-01-16T23:30:02.000000Z")


@pytest.fixture
def many(tmp_path: Path) -> Path:
    create_table(tmp_path / "many").append([record(number, f"line {number} of many") for number in range(500)])
    return tmp_path / "many"


def test_long_output_goes_to_the_pager(on_terminal: Callable[..., Terminal], many: Path, tmp_path: Path) -> None:
    pager = f"sh -c 'cat > {tmp_path}/paged; echo paged >&2'"
    terminal = on_terminal("search", "many", many, COPRLAKE_PAGER=pager, PAGER="false")
    terminal.wait_for("paged\n")
    assert terminal.leave() == 0
    assert len((tmp_path / "paged").read_text().splitlines()) == 500
    assert "paged" not in on_terminal("search", "line 77 of", many, PAGER=pager, COPRLAKE_PAGER=pager).wait_for(
        "77 of many\n"
    )
    terminal = on_terminal("search", "many", many, "--no-pager", COPRLAKE_PAGER=pager)
    assert "paged" not in terminal.wait_for("line 0 of many\n")
    assert terminal.leave() == 0


def test_leaving_the_pager_early_is_no_error(on_terminal: Callable[..., Terminal], many: Path) -> None:
    terminal = on_terminal("search", "many", many, COPRLAKE_PAGER="head -n 2")
    shown = terminal.wait_for("line 498 of many\n")
    assert terminal.leave() == 0
    assert "rror" not in shown + terminal.shown


def test_a_pager_that_is_not_there_is_not_missed(on_terminal: Callable[..., Terminal], many: Path) -> None:
    terminal = on_terminal("search", "many", many, COPRLAKE_PAGER="no-such-pager")
    terminal.wait_for("line 0 of many\n")
    assert terminal.leave() == 0


# Following


class Follower:
    """``search --follow`` in a process of its own."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "coprlake.cli.main", "search", "--follow", *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_interruptible
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.shown = b""

    def wait_for(self, count: int, seconds: float = 60) -> list[str]:
        """The first lines, as soon as there are so many."""
        assert self.process.stdout is not None
        end = time.monotonic() + seconds
        while self.shown.count(b"\n") < count:
            assert time.monotonic() < end, self.shown
            self.shown += self.process.stdout.read() or b""
            time.sleep(0.02)
        return self.shown.decode().splitlines()

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def following() -> Iterator[Callable[..., Follower]]:
    started: list[Follower] = []

    def start(*arguments: object) -> Follower:
        started.append(Follower(*arguments))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate(timeout=60)


def test_new_records_are_shown_as_they_are_committed(following: Callable[..., Follower], tmp_path: Path) -> None:
    table = create_table(tmp_path / "t")
    table.append([record(number, f"needle {number}") for number in range(20)])
    follower = following("needle", tmp_path / "t", "-n", 3)
    assert follower.wait_for(3) == ["needle 17", "needle 18", "needle 19"]
    expected = [17, 18, 19]
    for number in range(20, 26):
        table.append([record(number, f"needle {number}"), record(number, "something else")])
        expected.append(number)
        if number == 22:
            table.optimize()
        if number == 24:
            table.delete(contains("needle 18"))
    assert follower.wait_for(len(expected)) == [f"needle {number}" for number in expected]
    time.sleep(0.6)  # nothing comes twice
    assert follower.wait_for(0) == [f"needle {number}" for number in expected]
    assert follower.interrupt() == 130
    assert follower.process.stderr is not None
    assert follower.process.stderr.read() == b""


def test_following_ends_when_nobody_reads(following: Callable[..., Follower], logs: Path) -> None:
    follower = following("fine", logs)
    follower.wait_for(1)
    assert follower.process.stdout is not None
    follower.process.stdout.close()
    assert follower.process.wait(60) == 0


def test_a_folder_of_parquet_files_cannot_be_followed(run: Run, logs: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for file in logs.glob("*.parquet"):
        file.rename(tmp_path / "folder" / file.name)
    result = run("search", "--follow", tmp_path / "folder")
    assert (result.exit_code, "cannot follow" in result.stderr) == (2, True)


def test_json_goes_on_with_each_commit(following: Callable[..., Follower], logs: Path) -> None:
    follower = following("timeout", logs, "--json", "-n", 1)
    follower.wait_for(1)
    open_table(logs).append([record(9, "a timeout")])
    assert [json.loads(line)["content"] for line in follower.wait_for(2)] == ["timeouts: 3", "a timeout"]
