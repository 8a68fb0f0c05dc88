"""``coprlake search`` and ``explain``: the same lines as grep, in every format, quickly out and never in the way."""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from coprlake.cli.main import cli
from coprlake.generator import generate
from coprlake.table import create_table

ROOT = Path(__file__).parent.parent.parent
LOGHUB = ROOT.parent / "shared" / "data" / "loghub_2k"
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated log file, and beside it the table of its lines."""
    folder = tmp_path_factory.mktemp("cli")
    lines = generate(megabytes=1.5, seed=7).content.to_pylist()
    (folder / "app.log").write_text("\n".join(lines) + "\n")
    arguments = ["ingest", str(folder / "app.log"), "--into", str(folder / "table"), "--partition-by", "none"]
    result = CliRunner().invoke(cli, [*arguments, "--multiline", ""])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small table with columns of all kinds."""
    path = tmp_path_factory.mktemp("records") / "table"
    create_table(path).append(
        [
            record(1, "web-1", "ERROR", "disk full\n  at line 2", status=500, attributes={"user": "ann"}),
            record(2, "web-1", "INFO", "Request done", status=200, attributes={"user": "bob"}),
            record(3, "web-2", "WARN", 'quoted "text", comma', status=404),
            record(4, "db-1", "FATAL", "bell \x07 escape \x1b[31m nul \x00 tab \t end", status=503),
            record(5, "db-1", "INFO", "request Request request", status=200),
        ]
    )
    return path


def record(hour: int, source: str, level: str, content: str, **more: Any) -> dict[str, Any]:
    moment = datetime(2026, 11, 16, hour, tzinfo=UTC)
    return {"timestamp": moment, "source": source, "loglevel": level, "content": content, **more}


def grep(file: Path, *options: str) -> int:
    result = subprocess.run(["grep", "-c", *options, str(file)], capture_output=True, env={"LC_ALL": "C"}, check=False)
    return int(result.stdout)


def program(*arguments: object, **options: Any) -> "subprocess.CompletedProcess[str]":
    """The real program in a process of its own."""
    command = [sys.executable, "-m", "coprlake.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


@pytest.mark.parametrize(
    "text", ["error", "refused", "10.", "GET /", "zzz-not-there", "a", "user", "=", "[error]", "é"]
)
def test_counts_are_those_of_grep(run: Run, logs: Path, text: str) -> None:
    expected = grep(logs / "app.log", "-i", "-F", "-e", text)
    result = run("search", "-c", "-F", text, logs / "table")
    assert result.stdout == f"{expected}\n"
    assert result.exit_code == (0 if expected else 1)


@pytest.mark.parametrize("text", ["error", "Error", "INFO"])
def test_case_counts_when_asked(run: Run, logs: Path, text: str) -> None:
    assert run("search", "-s", "-c", text, logs / "table").stdout == f"{grep(logs / 'app.log', '-F', text)}\n"


@pytest.mark.parametrize("text", ["error", "connection", "HTTP", "200", "timeout"])
def test_words_are_those_of_grep_where_no_underscore_joins_them(run: Run, logs: Path, text: str) -> None:
    joined = rf"(^|[^0-9A-Za-z]){text}([^0-9A-Za-z]|$)"
    assert run("search", "-w", "-c", text, logs / "table").stdout == f"{grep(logs / 'app.log', '-i', '-E', joined)}\n"


@pytest.mark.parametrize("pattern", ["conn[a-z]+ ", r"\b5[0-9][0-9]\b", "^2024", "(GET|POST) /[a-z]+"])
def test_regular_expressions_are_those_of_grep(run: Run, logs: Path, pattern: str) -> None:
    expected = grep(logs / "app.log", "-i", "-P", pattern)
    assert run("search", "-E", "-c", pattern, logs / "table").stdout == f"{expected}\n"


def test_several_texts_are_any_of_them_or_all_of_them_or_none(run: Run, logs: Path) -> None:
    lines = (logs / "app.log").read_text().lower().splitlines()
    table, both = logs / "table", ("-e", "error", "-e", "connection")
    expected = {
        (): sum("error" in line or "connection" in line for line in lines),
        ("--all",): sum("error" in line and "connection" in line for line in lines),
        ("-v",): sum("error" not in line and "connection" not in line for line in lines),
        ("-v", "--all"): sum(not ("error" in line and "connection" in line) for line in lines),
    }
    for options, count in expected.items():
        assert run("search", "-c", *both, *options, table).stdout == f"{count}\n", options


def test_lines_in_a_pipe_are_the_lines_of_the_file(run: Run, logs: Path) -> None:
    expected = [line for line in (logs / "app.log").read_text().split("\n") if "refused" in line.lower()]
    result = run("search", "refused", logs / "table", "--order", "any")
    assert sorted(result.stdout.splitlines()) == sorted(expected)
    assert result.stderr == ""


@pytest.mark.skipif(not LOGHUB.is_dir(), reason="the samples of loghub are not here")
def test_counts_are_those_of_grep_on_real_logs(run: Run, tmp_path: Path) -> None:
    files = [LOGHUB / f"{name}_2k.log" for name in ("Apache", "HDFS", "OpenSSH", "Zookeeper")]
    ingest = run("ingest", *files, "--into", tmp_path / "t", "--partition-by", "none", "--multiline", "")
    assert ingest.exit_code == 0, ingest.output
    for text in ("error", "blk_-6952295868487656571", "183.62.140.253", "session", "qqqq", "state 6"):
        expected = sum(grep(file, "-i", "-F", text) for file in files)
        assert run("search", "-c", "-F", text, tmp_path / "t").stdout == f"{expected}\n", text
    for file in files:
        result = run("search", "-c", "error", tmp_path / "t", "--source", f"*/{file.name}")
        assert result.stdout == f"{grep(file, '-i', '-F', 'error')}\n"


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["request"], 2),
        (["--prefix", "request"], 2),
        (["--suffix", "REQUEST"], 1),
        (["--wildcard", "re*t d?ne"], 1),
        (["--phrase", "quest"], 0),
        (["--phrase", "*quest"], 2),
        (["ann", "-f", "user"], 1),
        (["web", "-f", "source", "-f", "user"], 3),
        (["bob", "--all-fields"], 1),
        (["-e", "request", "--where", "status=200"], 2),
        (["-e", "", "--where", "status>=500"], 2),
        (["-e", "", "--where", "status >= 404", "--where", "status<503"], 2),
        (["-e", "", "--where", "status!=200"], 3),
        (["-e", "", "--where", "user=ANN"], 1),
        (["-e", "", "-s", "--where", "user=ANN"], 0),
        (["-e", "", "--where", "timestamp>2026-11-16T03:00:00Z"], 2),
        (["-e", "", "--level", "info"], 2),
        (["-e", "", "--level", "warning"], 1),
        (["-e", "", "--level", "warn+"], 3),
        (["-e", "", "--level", "critical", "--level", "error"], 2),
        (["-e", "", "--source", "web-1"], 2),
        (["-e", "", "--source", "web-?"], 3),
        (["-e", "", "--source", "*-1"], 4),
        (["-e", "", "--since", "2026-11-16T04:00"], 2),
        (["-e", "", "--until", "2026-11-16T04:00"], 3),
        (["-e", "", "--since", "2026-11-16T05:00+01:00", "--until", "2026-11-16T05:00"], 1),
        (["-v", "request"], 3),
        (["-v", "request", "--level", "info"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_filters(run: Run, records: Path, options: list[str], count: int) -> None:
    result = run("search", "-c", *options, records)
    assert (result.stdout, result.exit_code) == (f"{count}\n", 0 if count else 1)


def test_the_arguments_are_told_apart(run: Run, records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("search", "-c", records).stdout == "5\n"
    assert run("search", "-c", "disk", "--table", records).stdout == "1\n"
    assert run("search", "-c", "--table", records).stdout == "5\n"
    assert run("search", "-c", records, "-e", "disk").stdout == "1\n"
    monkeypatch.setenv("COPRLAKE_TABLE", str(records))
    assert run("search", "-c", "disk").stdout == "1\n"
    assert run("search", "-c", "-e", "disk", "-e", "done").stdout == "2\n"
    assert run("search", "-c", "--level", "info").stdout == "2\n"
    assert run("search", "disk", records / "nowhere").exit_code == 2, "what is named goes before the variable"
    taken_for_text = run("search", records.parent)
    assert taken_for_text.exit_code == 1
    assert "--table" in taken_for_text.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["a", "b", "c"],
        ["-e", "a", "b", "c"],
        ["--table", "t", "a", "b"],
        ["--all-fields", "-f", "x", "t"],
        ["--since", "1h", "--until", "2h", "t"],
    ],
)
def test_arguments_that_make_no_sense_are_refused(run: Run, arguments: list[str]) -> None:
    result = run("search", *arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


def test_newest_first_and_oldest_first(run: Run, records: Path) -> None:
    newest = [json.loads(line)["status"] for line in run("search", records, "--json").stdout.splitlines()]
    assert newest == [200, 503, 404, 200, 500]
    oldest = run("search", records, "--json", "--order", "oldest", "-n", 2).stdout.splitlines()
    assert [json.loads(line)["status"] for line in oldest] == [500, 200]


def test_json_has_all_that_a_record_has(run: Run, records: Path) -> None:
    (line,) = run("search", "disk", records, "--json").stdout.splitlines()
    assert json.loads(line) == {
        "timestamp": "2026-11-16T01:00:00.000000Z",
        "source": "web-1",
        "loglevel": "ERROR",
        "content": "disk full\n  at line 2",
        "attributes": {"user": "ann"},
        "status": 500,
    }


def test_csv_reads_back(run: Run, records: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("search", records, "-o", "csv", "--order", "oldest").stdout)))
    assert [row["status"] for row in rows] == ["500", "200", "404", "503", "200"]
    assert rows[0]["content"] == "disk full\n  at line 2"
    assert rows[2]["content"] == 'quoted "text", comma'
    assert json.loads(rows[1]["attributes"]) == {"user": "bob"}


def test_parquet_reads_back_and_the_suffix_tells_the_format(run: Run, records: Path, tmp_path: Path) -> None:
    result = run("search", "request", records, "--out", tmp_path / "found.parquet")
    assert result.exit_code == 0
    assert "2 records written" in result.stderr
    found = pq.read_table(tmp_path / "found.parquet")
    assert found.column("status").to_pylist() == [200, 200]
    assert str(found.schema.field("timestamp").type) == "timestamp[us, tz=UTC]"
    run("search", "request", records, "--out", tmp_path / "found.csv", "--columns", "status,source")
    assert (tmp_path / "found.csv").read_text() == "status,source\n200,db-1\n200,web-1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.csv", "found.parquet"]


def test_parquet_goes_into_a_pipe(records: Path) -> None:
    command = [sys.executable, "-m", "coprlake.cli.main", "search", "-o", "parquet", str(records)]
    result = subprocess.run(command, capture_output=True, check=True)
    assert pq.read_table(io.BytesIO(result.stdout)).num_rows == 5


def test_a_file_is_complete_or_not_there(run: Run, tmp_path: Path) -> None:
    for line in ("one alpha", "two alpha"):
        create_table(tmp_path / "t", exist_ok=True, partition_by=None).append([line])
    next((tmp_path / "t").glob("*.parquet")).unlink()
    assert run("search", "alpha", tmp_path / "t", "--strict", "--out", tmp_path / "x.csv").exit_code == 2
    assert run("search", "alpha", tmp_path / "t", "--out", tmp_path / "no" / "x.csv").exit_code == 2
    assert run("search", "alpha", tmp_path / "t", "--out", tmp_path / "t").exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    assert run("search", "alpha", tmp_path / "t", "--out", "/dev/null").exit_code == 2  # a file is missing
    assert not Path("/dev/null").is_file()


def test_columns_of_somebody_elses_table_may_have_any_name(run: Run, tmp_path: Path) -> None:
    pq.write_table(pa.table({"group": [1, 2], "match": ["a", "b"], "text": ["x", "y"]}), tmp_path / "a.parquet")
    run("index", tmp_path)
    assert run("search", "-f", "text", "y", tmp_path).stdout == "2\tb\ty\n"
    assert json.loads(run("search", "--all-fields", "A", tmp_path, "--json").stdout)["text"] == "x"


def test_a_text_may_begin_with_a_dash(run: Run, records: Path) -> None:
    assert run("search", "-c", "-e", "-1", "-f", "source", records).stdout == "4\n"
    assert run("search", "-c", "-f", "source", "--", "-1", records).stdout == "4\n"


def test_columns_are_chosen(run: Run, records: Path) -> None:
    assert run("search", "disk", records, "--columns", "source,status").stdout == "web-1\t500\n"
    table = run("search", "disk", records, "--columns", "source,status", "-o", "table").stdout
    assert table == "source  status\nweb-1   500\n"
    unknown = run("search", "disk", records, "--columns", "nope")
    assert unknown.exit_code == 2
    assert "no column 'nope'" in unknown.stderr


def test_a_line_in_a_pipe_is_left_as_it_is(run: Run, records: Path) -> None:
    assert run("search", "bell", records).stdout == "bell \x07 escape \x1b[31m nul \x00 tab \t end\n"
    assert run("search", "disk", records).stdout == "disk full\n  at line 2\n"


def test_a_line_for_people_cannot_change_the_screen(run: Run, records: Path) -> None:
    shown = run("search", "bell", records, "-o", "table").stdout
    assert shown == "2026-11-16T04:00:00.000Z  FATAL  db-1  bell ␇ escape ␛[31m nul ␀ tab \t end\n"
    assert run("search", "disk", records, "-o", "table").stdout.splitlines()[1] == "      at line 2"


def test_text_that_is_no_utf8_is_shown_and_left_alone_in_a_pipe(run: Run, tmp_path: Path) -> None:
    lines = [b"caf\xe9 one", "café two".encode()]
    _, starts, data = pa.array(lines, pa.binary()).buffers()
    odd = pa.StringArray.from_buffers(2, starts, data)
    pq.write_table(pa.table({"content": odd, "size": [1, 2]}), tmp_path / "odd.parquet")
    (tmp_path / "t").mkdir()
    (tmp_path / "odd.parquet").rename(tmp_path / "t" / "odd.parquet")
    result = run("search", "one", tmp_path / "t")
    assert result.stdout_bytes == b"caf\xe9 one\n"
    assert run("search", "one", tmp_path / "t", "-o", "table").stdout == "caf\ufffd one\n"
    assert json.loads(run("search", "one", tmp_path / "t", "--json").stdout) == {"content": "caf\ufffd one", "size": 1}


def test_json_has_no_character_that_a_terminal_would_obey(run: Run, tmp_path: Path) -> None:
    content = "del \x7f csi \x9b turned \u202e nul \x00 é"
    create_table(tmp_path / "t").append([content])
    line = run("search", "del", tmp_path / "t", "--json", "--columns", "content").stdout
    assert json.loads(line) == {"content": content}
    assert line == '{"content":"del \\u007f csi \\u009b turned \\u202e nul \\u0000 é"}\n'


def on_terminal(*arguments: object) -> tuple[str, int]:
    """What the program shows on a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "coprlake.cli.main", *map(str, arguments)]
    environment = {"COPRLAKE_PAGER": ""} | os.environ
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        while part := _read(ours):
            shown += part
    os.close(ours)
    return shown.decode().replace("\r\n", "\n"), process.returncode


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other side is closed
        return b""


def test_a_terminal_gets_columns_and_colours(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown, code = on_terminal("search", "bell", records)
    assert code == 0
    assert ESCAPES.sub("", shown).startswith("2026-11-16T04:00:00.000Z  FATAL  db-1  bell ␇ escape ␛[31m")
    assert "\x1b[1;31mbell\x1b[0m" in shown
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in on_terminal("search", "bell", records)[0]
    assert "cannot show Parquet" in on_terminal("search", "bell", records, "-o", "parquet")[0]


def test_a_terminal_gets_a_progress_bar(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("2026-11-16T03:00:00Z a line\n" * 1000)
    shown, code = on_terminal("ingest", tmp_path / "app.log", "--into", tmp_path / "t")
    assert code == 0
    assert "ingesting" in shown
    assert "1,000" in shown


def test_matches_are_highlighted(run: Run, records: Path) -> None:
    shown = run("search", "-s", "Request", records, "--color", "always", "-o", "table").stdout
    assert shown.splitlines()[0].endswith("request \x1b[1;31mRequest\x1b[0m request")
    shown = run("--color", "always", "search", "-E", "re.u", records).stdout
    assert shown.splitlines()[0] == " ".join(f"\x1b[1;31m{text}\x1b[0mest" for text in ("requ", "Requ", "requ"))
    plain = run("search", "-s", "Request", records, "--color", "never", "-o", "table").stdout
    assert "\x1b" not in plain
    inverted = run("search", "-v", "disk", records, "--color", "always").stdout
    assert "1;31" not in inverted


def test_highlights_stand_where_they_belong_behind_control_characters(run: Run, records: Path) -> None:
    shown = run("search", "tab", records, "--color", "always", "-o", "table").stdout
    assert "nul ␀ \x1b[1;31mtab\x1b[0m \t end" in shown
    assert ESCAPES.sub("", shown) == run("search", "tab", records, "-o", "table").stdout


def test_contexts_are_of_the_same_source_and_parted(run: Run, records: Path) -> None:
    lines = run("search", "-e", "disk", "-e", "bell", "-A", 1, records, "--order", "oldest").stdout
    assert lines.split("--\n") == [
        "disk full\n  at line 2\nRequest done\n",
        "bell \x07 escape \x1b[31m nul \x00 tab \t end\nrequest Request request\n",
    ]
    found = [json.loads(line) for line in run("search", "done", "-C", 5, records, "--json").stdout.splitlines()]
    assert [(one["match"], one["source"]) for one in found] == [(False, "web-1"), (True, "web-1")]
    rows = list(csv.DictReader(io.StringIO(run("search", "done", "-B", 1, records, "-o", "csv").stdout)))
    assert [row["match"] for row in rows] == ["false", "true"]


def test_quiet_says_nothing(run: Run, records: Path) -> None:
    assert run("search", "-q", "disk", records, "--out", "x").exit_code == 2
    found, missed = run("search", "-q", "disk", records), run("search", "-q", "nowhere", records)
    assert (found.exit_code, missed.exit_code) == (0, 1)
    assert found.output == missed.output == ""


def test_no_match_is_said_to_people_only(run: Run, records: Path) -> None:
    result = run("search", "nowhere", records)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"no match in {records}\n")
    for output in ("json", "csv"):
        assert run("search", "nowhere", records, "-o", output).stderr == ""


def test_a_table_without_records(run: Run, tmp_path: Path) -> None:
    create_table(tmp_path / "t")
    result = run("search", "x", tmp_path / "t")
    assert result.exit_code == 1
    assert "no records yet" in result.stderr
    assert run("search", "-c", "x", tmp_path / "t").stdout == "0\n"
    for arguments in (["info"], ["verify"], ["optimize"], ["vacuum"], ["index"], ["delete", "--status"], ["explain"]):
        assert run(*arguments, tmp_path / "t").exit_code == 0, arguments


def test_stats_go_to_stderr(run: Run, records: Path) -> None:
    result = run("search", "disk", records, "--stats")
    assert result.stdout == "disk full\n  at line 2\n"
    assert "ruled out by sketch" in result.stderr


def test_explain_tells_what_was_ruled_out_and_why_not(run: Run, logs: Path) -> None:
    known = json.loads(run("explain", "refused", logs / "table", "--json").stdout)
    assert known["rows_matched"] == grep(logs / "app.log", "-i", "-F", "refused")
    assert known["segments"] == 1
    shown = run("explain", "zzz-not-there", logs / "table").stdout
    assert re.search(r"ruled out by sketch +1\n", shown)
    assert 'contains(any value, "zzz-not-there")' in shown
    assert "note" in run("explain", "-v", "refused", logs / "table").stdout


def test_damaged_and_missing_sidecars_are_named_and_fatal_with_strict(run: Run, tmp_path: Path) -> None:
    for line in ("one alpha", "two alpha"):
        create_table(tmp_path / "t", exist_ok=True).append([line])
    damaged, missing = sorted(path for path in (tmp_path / "t").rglob("*") if path.suffix == ".copr")
    damaged.write_bytes(damaged.read_bytes()[:100])
    missing.unlink()
    result = run("search", "alpha", tmp_path / "t")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2
    warnings = result.stderr.splitlines()
    assert len(warnings) == 2
    assert all(line.startswith("coprlake: warning: ") for line in warnings)
    for options in ([], ["-c"], ["-q"], ["--json"]):
        strict = run("search", "alpha", tmp_path / "t", "--strict", *options)
        assert (strict.exit_code, strict.stdout) == (2, "")
        assert strict.stderr.startswith("coprlake: error: ")
    verified = run("verify", tmp_path / "t")
    assert verified.exit_code == 1
    assert "2 with sidecars" in verified.stdout
    assert run("index", tmp_path / "t").exit_code == 0
    assert run("verify", "--deep", tmp_path / "t").exit_code == 0


def test_a_data_file_that_vanished_is_named_and_fatal_with_strict(run: Run, tmp_path: Path) -> None:
    for line in ("one alpha", "two alpha"):
        create_table(tmp_path / "t", exist_ok=True, partition_by=None).append([line])
    next((tmp_path / "t").glob("*.parquet")).unlink()
    result = run("search", "alpha", tmp_path / "t")
    assert result.exit_code == 2
    assert len(result.stdout.splitlines()) == 1
    assert "no such file" in result.stderr
    assert run("search", "alpha", tmp_path / "t", "--strict").exit_code == 2
    assert run("verify", tmp_path / "t", "--json").exit_code == 1


def test_a_table_must_be_one(run: Run, records: Path, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(os.urandom(1000))
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken" / "_delta_log").mkdir(parents=True)
    (tmp_path / "broken" / "_delta_log" / f"{0:020}.json").write_bytes(os.urandom(1000))
    report = run("verify", tmp_path / "broken")
    assert report.exit_code == 1, "what can be said of a log that cannot be read is said"
    assert f"{0:020}.json" in report.stdout
    for name in ("nowhere", "bytes", "empty", "broken"):
        for command in (["search", "x"], ["explain", "x"], ["info"], ["verify"]):
            if (name, command) == ("broken", ["verify"]):
                continue
            result = run(*command, tmp_path / name)
            assert result.exit_code == 2, (name, command)
            assert result.stderr.startswith(f"coprlake: error: {tmp_path / name}"), result.stderr
            assert "Traceback" not in result.stderr
    above = run("search", "x", records.parent)
    assert above.exit_code == 2
    assert str(records) in above.stderr


def test_a_file_that_is_no_parquet_is_named_and_fatal_with_strict(run: Run, tmp_path: Path) -> None:
    pq.write_table(pa.table({"content": ["one alpha"]}), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(os.urandom(1000))
    result = run("search", "alpha", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "one alpha\n")
    assert "b.parquet" in result.stderr
    assert run("search", "alpha", tmp_path, "--strict").exit_code == 2
    assert run("verify", tmp_path).exit_code == 1


def test_debug_shows_where_an_error_comes_from(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COPRLAKE_DEBUG", "1")
    result = run("search", "x", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr


def test_a_bad_expression_is_an_error_of_the_user(run: Run, records: Path) -> None:
    result = run("search", "-E", "a(b", records)
    assert result.exit_code == 2
    assert result.stderr.startswith("coprlake: error: bad regular expression")


@pytest.mark.slow
def test_a_closed_pipe_ends_it_quietly(logs: Path) -> None:
    for output in ("lines", "json", "table"):
        command = [sys.executable, "-m", "coprlake.cli.main", "search", "e", str(logs / "table"), "-o", output]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout
            assert process.stderr
            process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(60) == 0


def test_search_loads_only_what_it_needs(records: Path) -> None:
    script = (
        "import sys\nfrom coprlake.cli.main import cli\n"
        f"cli.main(['search', '-c', 'disk', {str(records)!r}], standalone_mode=False)\n"
        "heavy = {'rich', 'duckdb', 'pyspark', 'hypothesis', 'coprlake.intake', 'coprlake.testing'}\n"
        "print(heavy & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "1\nset()\n"


@pytest.mark.slow
def test_exit_codes_of_the_real_program(records: Path, tmp_path: Path) -> None:
    assert program("search", "disk", records).returncode == 0
    assert program("search", "nowhere", records).returncode == 1
    failed = program("search", "disk", tmp_path / "none")
    assert failed.returncode == 2
    assert failed.stderr.startswith("coprlake: error: ")
    assert "\x1b" not in failed.stderr


def test_a_field_that_is_not_there_is_hinted_at(run: Run, records: Path, tmp_path: Path) -> None:
    result = run("search", "x", records, "-f", "nofield")
    assert result.exit_code == 1
    assert "no record has a field nofield; the table has timestamp, source" in result.stderr
    assert "no record has a field nothere" in run("search", records, "--where", "nothere>3").stderr
    pq.write_table(pa.table({"message": ["hello"]}), tmp_path / "a.parquet")
    assert run("search", "hello", tmp_path).exit_code == 0
    result = run("search", "hello", tmp_path, "-f", "content")
    assert result.exit_code == 2
    assert "no column content" in result.stderr
    assert "message" in result.stderr
    assert run("search", "hello", tmp_path, "--all-fields").exit_code == 0


def test_typos_are_told_with_the_nearest_name(run: Run, tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by=None)
    table.append([{"content": "hello", "service": "api", "status": 404, "attributes": {"pod": "p-1"}}])
    for options, told in {
        ("-f", "servce", "api"): "no record has a field servce; did you mean service?",
        ("--where", "podd=p-1"): "no record has a field podd; did you mean pod?",
        ("servce:api",): "did you mean service:?",
        ("--where", "status=abc"): "status is a number, which 'abc' is not; expected a number",
        ("--level", "eror"): "did you mean ERROR?",
    }.items():
        for command in ("search", "explain"):
            result = run(command, *options, table.uri)
            assert (result.stdout + result.stderr).count(told) == 1, (command, result.stderr)
        assert told in run("delete", *options, table.uri, "--dry-run").stderr
    assert "no record" not in run("search", "-f", "pod", "p-1", table.uri).stderr
    assert "the text comes before the table" in run("search", table.uri, "hello").stderr
    assert "did you mean .json?" in run("search", "hello", table.uri, "--out", tmp_path / "x.jsn").stderr
    assert "did you mean service?" in run("search", "hello", table.uri, "--columns", "servce").stderr
    assert "did you mean search?" in run("serch", "hello", table.uri).stderr


def test_explain_names_a_reason_once(run: Run, tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by=None)
    table.append([{"content": "hello", "a": "x", "b": "y", "c": "z"}])
    shown = run("explain", "he", table.uri).stdout
    assert shown.count("shorter than 3 letters") == 1
    assert run("explain", "--all-fields", "he", table.uri).stdout.count('contains(*, "he")') == 2  # the search itself
