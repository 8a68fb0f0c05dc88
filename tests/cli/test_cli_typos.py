"""Typos on the command line are told, with the nearest name."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from coprlake import Table, create_table, open_table

Run = Callable[..., Result]

ROWS = [
    {"content": "refused", "loglevel": "ERROR", "status": 500, "ok": False, "attributes": {"user_id": "bob"}},
    {"content": "accepted", "loglevel": "INFO", "status": 200, "ok": True, "attributes": {"user_id": "ann"}},
]


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    monkeypatch.chdir(tmp_path)
    table = create_table("weblogs", partition_by=None)
    table.append(ROWS)
    Path("app.log").write_text("2026-11-16 03:55:00 INFO hello\n")
    return table


ERRORS = [
    ("serach refused weblogs", "no such command 'serach'; did you mean search?"),
    ("grep refused weblogs", "did you mean search?"),
    ("frobnicate", "the commands are ingest, "),
    ("search refused weblogs --lmit 3", "--limit"),
    ("search refused weblogs --order newst", "Did you mean 'newest'?"),
    ("search refused weblogs -o jsn", "Did you mean 'json'?"),
    ("search refused weblogs --engine sprk", "Did you mean 'spark'?"),
    ("search refused weblogs --color nevr", "Did you mean 'never'?"),
    ("search refused weblogs --columns contnet", "did you mean content?"),
    ("search refused weblogs --out x.parqet", "did you mean .parquet?"),
    ("search refused weblogs --since yesterdai", "did you mean yesterday? expected ISO 8601"),
    ("search refused weblogs --limit x", "'x' is not a valid integer"),
    ("search refused weblog", "no such table; did you mean weblogs?"),
    ("search weblogs refused", "the text comes before the table: coprlake search refused weblogs"),
    ("explain weblogs refused", "the text comes before the table: coprlake explain refused weblogs"),
    ("search weblogs --where status>=abc", "status is a number, which 'abc' is not; expected a number such as 500"),
    ("search weblogs --where status=abc", "status is a number, which 'abc' is not"),
    ("search weblogs --where ok=maybe", "ok is a truth value, which 'maybe' is not; expected true or false"),
    ("search weblogs --where timestamp>=yesterdai", "timestamp is a time, which 'yesterdai' is not"),
    ("search weblogs --level eror", "no record has the level EROR; did you mean ERROR?"),
    ("search weblogs --level eror+", "did you mean ERROR?"),
    ("search weblogs --level shiny", "no record has the level SHINY; expected one of TRACE, DEBUG"),
    ("explain weblogs --level eror", "did you mean ERROR?"),
    ("delete weblogs --yes --where user_di=bob", "no record has a field user_di; did you mean user_id?"),
    ("delete weblogs --yes --where user_di!=bob", "no record has a field user_di; did you mean user_id?"),
    ("delete weblogs --dry-run --where user_di!=bob", "no record has a field user_di"),
    ("delete weblogs --yes -f user_di -e bob -v", "no record has a field user_di"),
    ("delete weblogs --yes -t weblogs -- -user_di:bob", "did you mean user_id"),
    ("delete weblogs --yes --level eror", "did you mean ERROR?"),
    ("delete weblogs --yes --where status!=abc", "status is a number"),
    ("query 'fetch lgs' weblogs", "there is no table lgs; did you mean logs?"),
    ("query 'fetch logs | fiter x' weblogs", "did you mean filter?"),
    ("query 'fetch logs | filter contians(content, \"x\")' weblogs", "did you mean contains?"),
    ("query 'fetch logs' weblogs --out x.parqet", "did you mean .parquet?"),
    ("query 'fetch logs' weblog", "did you mean weblogs?"),
    ("ingest app.log --into new --format jsn", "Did you mean 'ndjson'?"),
    ("ingest app.log --into new --zone Europe/Viena", "did you mean Europe/Vienna?"),
    ("ingest app.log --into new --encoding utf-9", "try utf-8"),
    ("ingest weblogs --into app.log", "--into names the table: coprlake ingest app.log --into weblogs"),
    ("index weblogs --rules papr", "Did you mean 'paper'?"),
    ("completion bsh", "Did you mean 'bash'?"),
]


@pytest.mark.parametrize(("line", "told"), ERRORS, ids=[line for line, _ in ERRORS])
def test_an_error_names_what_was_meant(run: Run, logs: Table, line: str, told: str) -> None:
    arguments = shlex.split(line)
    if "-t" in arguments:
        arguments.remove("weblogs")
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert told in result.stderr
    assert open_table("weblogs").version == logs.version


WARNINGS = [
    ("search bob weblogs -f user_di", 1, "no record has a field user_di; did you mean user_id?"),
    ("search bob weblogs -c -f user_di", 1, "no record has a field user_di"),
    ("search weblogs --where user_di!=bob", 0, "no record has a field user_di"),
    ("search weblogs --where message=refused", 1, "no record has a field message; did you mean content?"),
    ("search weblogs --where nothing=x", 1, "the table has timestamp, source, loglevel, content, status, ok, user_id"),
    ("search user_di:bob weblogs", 1, "did you mean user_id:?"),
    ("explain weblogs --where user_di=bob", 0, "no record has a field user_di"),
    ("query 'fetch logs | filter user_di == \"bob\"' weblogs", 0, "user_di, so it is null; did you mean user_id?"),
    ("query 'fetch logs | fields user_di' weblogs", 0, "did you mean user_id?"),
    ("query 'fetch logs | summarize count(), by:{user_di}' weblogs", 0, "did you mean user_id?"),
    ("query 'fetch logs | filter loglevel == \"EROR\"' weblogs", 0, "has the level EROR; did you mean ERROR?"),
    ("query 'fetch logs | filter status == \"abc\"' weblogs", 0, "cannot be compared"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "told"), WARNINGS, ids=[line for line, _, _ in WARNINGS])
def test_a_warning_is_told_once_and_changes_nothing(run: Run, logs: Table, line: str, code: int, told: str) -> None:
    result = run(*shlex.split(line))
    assert result.exit_code == code, result.output
    assert result.stderr.count(told) == 1
    assert told not in result.stdout


@pytest.mark.parametrize(
    "line",
    [
        "search bob weblogs -f user_id",
        "search weblogs --where user_id!=bob",
        "search weblogs --where status=500",
        "search weblogs --where STATUS>=400.5",
        "search weblogs --level error",
        "search weblogs --level err",
        "search weblogs --where ok=TRUE",
        "search refused weblogs",
        "search weblogs --where attributes.user_id=bob",
        "query 'fetch logs | filter user_id == \"bob\"' weblogs",
        "search -q bob weblogs -f user_di",
    ],
)
def test_what_is_right_is_not_doubted(run: Run, logs: Table, line: str) -> None:
    assert "no record has" not in run(*shlex.split(line)).stderr
    assert "did you mean" not in run(*shlex.split(line)).stderr


def test_a_name_of_a_level_means_the_level(run: Run, logs: Table) -> None:
    logs.append([{"content": "odd", "loglevel": "WARN"}, {"content": "own", "loglevel": "AUDIT"}])
    for level, content in {"warning": "odd", "Warn": "odd", "wrn": "odd", "audit": "own", "severe": "refused"}.items():
        assert run("search", "--level", level, "weblogs").stdout == f"{content}\n"


def test_an_empty_table_has_no_typos(run: Run, tmp_path: Path) -> None:
    create_table(tmp_path / "t")
    result = run("search", tmp_path / "t", "--where", "anything=x", "--level", "audit")
    assert result.exit_code == 1
    assert "no record has" not in result.stderr


def test_a_large_folder_that_is_no_table_is_refused_early(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coprlake.cli.options.table_argument._MOST_SEEN", 50)
    for number in range(10):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        for name in range(9):
            (folder / f"{name}.txt").touch()
    result = run("search", "x", tmp_path)
    assert result.exit_code == 2
    assert "no Parquet file is among its first 50 files and folders" in result.stderr
