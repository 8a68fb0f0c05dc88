"""A query opens no table that the program did not allow, whatever it calls it and wherever it says so."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from coprlake import ANY_TABLE, QueryError, UsageError, create_table, open_table
from coprlake import spark as lake
from coprlake.cli.main import cli
from coprlake.query.fetching import Fetchable, Fetching
from tests.spark_sessions import QUIET

pytestmark = QUIET


@pytest.fixture
def lakes(tmp_path: Path) -> Path:
    """Tables ``own``, ``open/a``, ``open/deep/b``, ``opened`` and ``secret``, and links between them."""
    for name in ("own", "open/a", "open/deep/b", "opened", "secret"):
        create_table(tmp_path / name).append([{"content": name, "id": 1}])
    (tmp_path / "open" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "open" / "up").symlink_to(tmp_path)
    (tmp_path / "way").symlink_to(tmp_path / "open")
    return tmp_path


def _found(place: Path, name: str | Path, tables: Fetchable = ()) -> str:
    table = open_table(place / "own")
    (row,) = table.query(f'fetch "{name}" | fields content', tables=tables)
    return str(row["content"])


def test_by_default_nothing_but_the_table_itself(lakes: Path) -> None:
    for name in (lakes / "secret", lakes / "own", lakes / "nowhere", "s3://bucket/logs", "http://localhost/", "audit"):
        with pytest.raises(QueryError, match=r"may not open .*it may open no table.*argument tables"):
            _found(lakes, name)
    assert _found(lakes, "logs") == "own"
    assert _found(lakes, "LOGS") == "own"


COMMANDS = [
    'fetch "{}"',
    'describe "{}"',
    'fetch logs | append [fetch "{}"]',
    'fetch logs | join [fetch "{}"], on:{{id}}',
    'fetch logs | lookup [fetch "{}"], sourceField:id, lookupField:id',
    'fetch logs | filter id in [fetch "{}" | fields id]',
    'fetch logs | append [fetch logs | append [fetch "{}"]]',
]


@pytest.mark.parametrize("text", COMMANDS)
def test_every_command_that_opens_a_table_asks(lakes: Path, text: str) -> None:
    table = open_table(lakes / "own")
    asked = text.format(lakes / "secret")
    with pytest.raises(QueryError, match="may not open") as caught:
        table.query(asked)
    assert asked[caught.value.start : caught.value.end].strip('"') == str(lakes / "secret")
    assert table.query(asked, tables=[lakes / "secret"]).arrow().num_rows > 0


def test_names_stand_for_tables(lakes: Path) -> None:
    tables = {"audit": lakes / "secret", "a b": str(lakes / "open" / "a")}
    assert _found(lakes, "audit", tables) == "secret"
    assert _found(lakes, "a b", tables) == "open/a"
    for name in (lakes / "secret", "Audit", "audit/", "./audit", "a"):
        with pytest.raises(QueryError, match="it may open a b, audit"):
            _found(lakes, name, tables)
    with pytest.raises(UsageError, match="choose another name"):
        _found(lakes, "logs", {"Logs": lakes / "secret"})


def test_a_list_allows_tables_and_what_is_below_them(lakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lakes)
    for name in (lakes / "open/a", "open/a", "./open//a/", "open/deep/../a", "way/a", f"file://{lakes}/open/a"):
        assert _found(lakes, name, [lakes / "open"]) == "open/a"
        assert _found(lakes, name, [lakes / "way"]) == "open/a"
        assert _found(lakes, name, str(lakes / "open")) == "open/a"
    assert _found(lakes, "open/deep/b", ["open"]) == "open/deep/b"
    assert _found(lakes, "secret", ["/"]) == "secret"


@pytest.mark.parametrize(
    "name",
    [
        "secret",
        "{}/secret",
        "{}/open/../secret",
        "open/../secret",
        "{}/open/link",
        "{}/open/up/secret",
        "way/../secret",
        "way/link",
        "{}/opened",
        "file://{}/secret",
        "file:{}/secret",
        "file://{}/open/../secret",
        "file://{}/open/%2e%2e/secret",
        "FILE://{}/secret",
        "local://{}/open/a",
        "{}/open/link/../../secret",
        "s3://bucket/open/a",
        "",
        ".",
        "nowhere",
    ],
)
def test_nothing_leads_out_of_an_allowed_folder(lakes: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(lakes)
    with pytest.raises(QueryError, match="may not open"):
        _found(lakes, name.format(lakes), [lakes / "open"])


def test_addresses_are_compared_as_text() -> None:
    fetching = Fetching(["s3://bucket/lake/", "gs://other", "abfss://box@account.example/logs"])
    for name in ("s3://bucket/lake", "s3://bucket/lake/", "s3://bucket/lake/a/b", "gs://other/x"):
        assert fetching.place(name) == name.rstrip("/")
    assert fetching.place("abfss://box@account.example/logs/a") == "abfss://box@account.example/logs/a"
    for name in (
        "s3://bucket/lakes",
        "s3://bucket",
        "s3://bucket/lake/../secret",
        "s3://bucket/lake/%2e%2e/secret",
        "s3://bucket/lake/..",
        "s3://bucket/lake//a",
        "s3://bucket/lake/a?endpoint_override=localhost:9000",
        "s3://bucket/lake/a#x",
        "s3://key:word@bucket/lake",
        "s3a://bucket/lake",
        "S3://bucket/lake",
        "gs://other.example/x",
        "gs://other@evil/x",
        "gs://otherx",
        "/bucket/lake",
    ):
        with pytest.raises(UsageError, match="may not open"):
            fetching.place(name)
    with pytest.raises(UsageError, match="not a plain URI"):
        Fetching(["s3://bucket/../x"])


def test_whoever_types_may_open_what_the_process_may(lakes: Path) -> None:
    assert _found(lakes, lakes / "secret", ANY_TABLE) == "secret"
    runner = CliRunner()
    command: list[Any] = ["query", f'fetch "{lakes}/secret" | fields content', str(lakes / "own"), "--format", "json"]
    done = runner.invoke(cli, command)
    assert done.exit_code == 0, done.output
    assert "secret" in done.output


def test_spark_asks_too(spark: SparkSession, lakes: Path) -> None:
    text = f'fetch "{lakes}/secret" | fields content'
    with pytest.raises(QueryError, match="may not open"):
        lake.query(spark, lakes / "own", text)
    (row,) = lake.query(spark, lakes / "own", text, tables=[lakes / "secret"])
    assert row == {"content": "secret"}
