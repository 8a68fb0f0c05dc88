"""``coprlake query``: every format, errors that point at their place, limits, variables, pictures and explanations."""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from coprlake.cli.main import cli
from coprlake.cli.printing import charts
from coprlake.cli.printing.cells import duration, number, texts
from coprlake.cli.printing.grids import GridWriter, folded
from coprlake.language.outline import outline
from coprlake.language.parsing import parse
from coprlake.table import create_table

Run = Callable[..., Result]
BEGIN = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.fixture
def run(clean_environment: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("COPRLAKE_ENGINE", raising=False)
    return lambda *arguments, **options: CliRunner().invoke(
        cli, ["query", *(str(argument) for argument in arguments)], **options
    )


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour of records: one a minute, from two sources, every tenth an error."""
    path = tmp_path_factory.mktemp("query") / "logs"
    create_table(path).append(
        [
            {
                "timestamp": BEGIN + timedelta(minutes=i),
                "source": f"web-{i % 2}",
                "loglevel": "ERROR" if i % 10 == 0 else "INFO",
                "content": f"request {i} of ann",
                "status": 500 if i % 10 == 0 else 200,
                "attributes": {"user": f"u{i % 3}"} if i % 4 else {},
            }
            for i in range(60)
        ]
    )
    return path


def objects(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


COUNTS = "fetch logs | summarize n = count(), by:{loglevel} | sort loglevel"


def test_json_has_one_object_a_line_with_all_fields(run: Run, logs: Path) -> None:
    assert objects(run(COUNTS, logs, "--json")) == [{"loglevel": "ERROR", "n": 6}, {"loglevel": "INFO", "n": 54}]
    query = (
        'data record(a = "x", b = 90s, c = toTimestamp("2026-11-16T01:02:03Z"), d = record(e = 1h)), record(a = null)'
    )
    first, second = objects(run(query, logs, "-o", "json"))
    assert first == {"a": "x", "b": 90 * 10**9, "c": "2026-11-16T01:02:03.000000Z", "d": {"e": 3600 * 10**9}}
    assert second == {"a": None, "b": None, "c": None, "d": None}


def test_maps_are_objects_also_if_they_are_empty(run: Run, logs: Path) -> None:
    found = objects(run("fetch logs | sort timestamp | fields attributes | limit 2", logs, "--json"))
    assert found == [{"attributes": {}}, {"attributes": {"user": "u1"}}]


def test_lines_have_tabs_between_values(run: Run, logs: Path) -> None:
    result = run(COUNTS, logs)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "ERROR\t6\nINFO\t54\n", "")
    assert run("data record(a = 90s, b = null, c = 1)", logs).stdout == "1m 30s\t\t1\n"


def test_csv_has_a_header(run: Run, logs: Path) -> None:
    result = run("fetch logs | sort timestamp | fields timestamp, content, a = 1500ms | limit 1", logs, "-o", "csv")
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert rows == [["timestamp", "content", "a"], ["2026-11-16T00:00:00.000000Z", "request 0 of ann", "1500000000"]]


def test_parquet_has_the_types_of_the_result(run: Run, logs: Path, tmp_path: Path) -> None:
    result = run("fetch logs | makeTimeseries n = count(), interval:30m", logs, "--out", tmp_path / "x.parquet")
    assert result.exit_code == 0, result.output
    assert result.stderr == f"1 row written to {tmp_path / 'x.parquet'}\n"
    table = pq.read_table(tmp_path / "x.parquet")
    assert table.schema.field("n").type == pa.list_(pa.int64())
    assert table.column("n").to_pylist() == [[30, 30]]


def test_a_file_is_there_when_it_is_complete_or_not_at_all(run: Run, logs: Path, tmp_path: Path) -> None:
    result = run("fetch logs | filtr x", logs, "--out", tmp_path / "x.csv")
    assert result.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_the_table_has_names_and_numbers_to_the_right(run: Run, logs: Path) -> None:
    assert run(COUNTS, logs, "-o", "table").stdout == "loglevel   n\nERROR      6\nINFO      54\n"


def test_query_and_table_stand_in_either_order_and_the_table_may_be_named_elsewhere(
    run: Run, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(COUNTS, logs).stdout
    assert run(logs, COUNTS).stdout == expected
    assert run(COUNTS, "--table", logs).stdout == expected
    monkeypatch.setenv("COPRLAKE_TABLE", str(logs))
    assert run(COUNTS).stdout == expected


def test_the_query_comes_from_a_file_or_from_standard_input(run: Run, logs: Path, tmp_path: Path) -> None:
    expected = run(COUNTS, logs).stdout
    file = tmp_path / "counts.dql"
    file.write_text(COUNTS.replace(" | ", "\n| ") + "\n")
    assert run("--file", file, logs).stdout == expected
    assert run("-", logs, input=COUNTS).stdout == expected
    assert run(logs, "--file", "-", input=COUNTS).stdout == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no table given"),
        (["LOGS"], "no query given"),
        ([COUNTS], "no table given"),
        ([COUNTS, "LOGS", "more"], "found"),
        ([COUNTS, "LOGS", "--json", "-o", "csv"], "contradict"),
        ([COUNTS, "LOGS", "--explain", "-o", "csv"], "--explain prints a report"),
        ([COUNTS, "LOGS", "--chart", "-o", "csv"], "contradict"),
        ([COUNTS, "LOGS", "--set", "n"], "expected NAME=VALUE"),
        ([COUNTS, "LOGS", "--timeout", "soon"], "is not a valid span"),
        ([COUNTS, "LOGS", "--engine", "spark", "--memory", "1GB"], "limits DuckDB only"),
        ([COUNTS, "LOGS", "--since", "2026-11-17", "--until", "2026-11-16"], "must be before --until"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused(run: Run, logs: Path, arguments: list[str], said: str) -> None:
    result = run(*(str(logs) if argument == "LOGS" else argument for argument in arguments))
    assert result.exit_code == 2
    assert said in result.stderr


def test_an_error_points_at_its_place(run: Run, logs: Path) -> None:
    result = run("fetch logs\n| sumarize count()", logs)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        "coprlake: error: there is no command sumarize; did you mean summarize?\n"
        "  line 2, column 3\n  | sumarize count()\n    ^^^^^^^^\n"
    )


def test_what_is_odd_is_told_on_stderr(run: Run, logs: Path) -> None:
    result = run("data record(status = 1) | fields x = staus", logs, "--json")
    assert objects(result) == [{"x": None}]
    assert "coprlake: warning: there is no field staus" in result.stderr
    assert "did you mean status?" in result.stderr


def test_no_records_is_no_error(run: Run, logs: Path) -> None:
    result = run('fetch logs | filter loglevel == "NONE"', logs)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no records\n")


def test_times_of_the_command_line_hold_unless_the_query_has_its_own(run: Run, logs: Path) -> None:
    since = ("--since", "2026-11-16T00:10:00Z", "--until", "2026-11-16T00:20:00Z")
    assert run("fetch logs | summarize count()", logs, *since).stdout == "10\n"
    own = 'fetch logs, from:"2026-11-16T00:55:00Z" | summarize count()'
    assert run(own, logs, *since).stdout == "5\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("5", 5),
        ("1.5", 1.5),
        ("true", True),
        ("null", None),
        ("ann", "ann"),
        ('"5"', "5"),
        ("007", "007"),
        ("a=b", "a=b"),
        ("", ""),
        ('" or true', '" or true'),
        ("[1, 2]", [1, 2]),
        ("[web]", "[web]"),
    ],
)
def test_variables_are_values_and_never_a_part_of_the_query(run: Run, logs: Path, value: str, expected: object) -> None:
    assert objects(run("data record(a = $x)", logs, "--set", f"x={value}", "--json")) == [{"a": expected}]


def test_a_variable_without_a_value_is_an_error(run: Run, logs: Path) -> None:
    result = run("fetch logs | filter source == $sorce", logs, "--set", "source=web-1")
    assert result.exit_code == 2
    assert "$sorce was not given a value; did you mean source?" in result.stderr


def test_a_limit_of_rows_is_told(run: Run, logs: Path) -> None:
    result = run("fetch logs", logs, "--max-rows", 7)
    assert len(result.stdout.splitlines()) == 7
    assert result.stderr == "only the first 7 rows are shown; --max-rows N for more, 0 for all\n"
    assert len(run("fetch logs", logs, "--max-rows", 0).stdout.splitlines()) == 60
    assert run("fetch logs", logs, "--max-rows", 60).stderr == ""


def test_limits_of_time_memory_and_threads(run: Run, logs: Path) -> None:
    result = run("fetch logs", logs, "--timeout", "0.000001s")
    assert result.exit_code == 2
    assert "took longer than" in result.stderr
    assert run(COUNTS, logs, "--memory", "200MB", "--threads", 1, "--timeout", "1m", "--no-index").exit_code == 0


def test_the_explanation_tells_how_it_was_read_what_was_pruned_and_what_it_cost(run: Run, logs: Path) -> None:
    query = 'fetch logs | filter contains(content, "of ann") and (status > 300 or status < 100) | summarize count()'
    shown = run(query, logs, "--explain").stdout
    assert '  | filter\n    and\n      contains(content, "of ann")\n      or\n        status > 300\n' in shown
    for part in (
        "table logs",
        "read as",
        "columns",
        'contains(content, "of ann"',
        "segments",
        "SQL of DuckDB",
        "SELECT",
    ):
        assert part in shown, part
    phases = re.findall(r"^  (parse|plan|sql|read|engine) .* % ", shown, re.MULTILINE)
    assert phases == ["parse", "plan", "sql", "read", "engine"]


def test_the_explanation_as_json(run: Run, logs: Path) -> None:
    found = json.loads(run(COUNTS, logs, "--explain", "--json").stdout)
    assert found["rows"] == 2
    assert found["engine"] == "duckdb"
    assert found["tree"][0] == "fetch logs"
    assert found["scans"][0]["search"]["segments"] == 1
    assert found["sql"].startswith("SELECT")


def test_statistics_stand_beside_the_rows(run: Run, logs: Path) -> None:
    result = run(COUNTS, logs, "--stats")
    assert result.stdout == "ERROR\t6\nINFO\t54\n"
    assert "SQL of DuckDB" in result.stderr


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("fetch logs, from:-2h", ["fetch logs, from: -2h"]),
        ("fetch logs | sort a desc, b", ["fetch logs", "| sort a desc, b"]),
        ("fetch logs | filter not a == 1", ["fetch logs", "| filter", "  not", "    a == 1"]),
        ("fetch logs | filter a * b > 2", ["fetch logs", "| filter", "  >", "    a * b", "    2"]),
        ("fetch logs | fields `odd name`[0]", ["fetch logs", "| fields `odd name`[0]"]),
        (
            "fetch logs | append [fetch logs | limit 1]",
            ["fetch logs", "| append", "  []", "    fetch logs", "    | limit 1"],
        ),
        ("fetch logs | filter a in {1, 2}", ["fetch logs", "| filter a in {1, 2}"]),
        ("fetch logs | fields x = now()-1d@d", ["fetch logs", "| fields x = now() - 1d@d"]),
    ],
)
def test_the_outline_shows_the_tree(query: str, expected: list[str]) -> None:
    assert outline(parse(query)) == expected


# Pictures


def test_time_series_are_drawn_when_asked(run: Run, logs: Path) -> None:
    shown = run(
        "fetch logs | makeTimeseries n = count(), by:{source}, interval:15m | sort source", logs, "--chart"
    ).stdout
    head, names, *lines = shown.splitlines()
    assert head == "2026-11-16T00:00:00Z to 2026-11-16T01:00:00Z, every 15m, 4 values"
    assert names.split() == ["source", "n", "min", "max"]
    assert [line.split() for line in lines] == [["web-0", "█▇█▇", "7", "8"], ["web-1", "▇█▇█", "7", "8"]]


def test_several_measures_have_a_line_each(run: Run, logs: Path) -> None:
    shown = run("fetch logs | makeTimeseries count(), max(status), interval:30m", logs, "--chart").stdout
    assert [line.split()[0] for line in shown.splitlines()[2:]] == ["count()", "max(status)"]


def test_numbers_are_bars_when_asked_and_else_a_table(run: Run, logs: Path) -> None:
    shown = run(COUNTS, logs, "--chart").stdout.splitlines()
    assert re.fullmatch(r"ERROR +6  █{2,12}[▏▎▍▌▋▊▉]?", shown[1])
    assert re.fullmatch(r"INFO +54  █{50,}", shown[2])
    result = run("fetch logs | limit 1", logs, "--chart")
    assert "here is the table" in result.stderr
    assert "request" in result.stdout


def test_a_sparkline_has_gaps_and_merges_what_does_not_fit() -> None:
    assert charts.sparkline([0, 7, None, 3.5], 10) == "▁█ ▅"
    assert charts.sparkline([1, 2, None, 9, 1], 3) == "▃█▂"
    assert charts.sparkline([-4, 0, 4], 10) == "▁▅█"
    assert charts.sparkline([None, None], 10) == "  "
    assert charts.sparkline([0, 0], 10) == "▁▁"


def test_a_bar_is_exact_to_the_eighth() -> None:
    assert charts.bar(8, 8, 4) == "████"
    assert charts.bar(4.5, 8, 4) == "██▎"
    assert charts.bar(0.001, 8, 4) == "▏"
    assert charts.bar(0, 8, 4) == charts.bar(-1, 8, 4) == ""


# Values


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (0, "0s"),
        (90 * 10**9, "1m 30s"),
        (1_500_000_000, "1.5s"),
        (250_000_000, "250ms"),
        (-60 * 10**9, "-1m"),
        (90_061 * 10**9, "1d 1h 1m 1s"),
        (1500, "1.5us"),
        (3600 * 10**9, "1h"),
        (60_500_000_000, "1m 0.5s"),
    ],
)
def test_durations_are_readable(nanoseconds: int, shown: str) -> None:
    assert duration(nanoseconds) == shown


def test_numbers_have_the_digits_that_matter() -> None:
    assert [number(value) for value in (367.2360248, 5.0, 0.000012345678, 1e300, 3, None)] == [
        "367.236", "5.0", "1.2346e-05", "1e+300", "3", ""
    ]  # fmt: skip


def test_nested_values_are_compact_json() -> None:
    column = pa.array([{"a": [1, 2], "b": None}], pa.struct([("a", pa.list_(pa.int64())), ("b", pa.duration("ns"))]))
    assert texts(column) == ['{"a":[1,2],"b":null}']


def test_long_texts_are_folded_at_spaces_and_end_with_an_ellipsis() -> None:
    assert folded("one two three", 8) == ["one two", "three"]
    assert folded("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert folded("a\nb", 10) == ["a", "b"]
    assert folded("x" * 100, 10, 2) == ["x" * 10, "x" * 9 + "…"]
    assert folded("日本語", 4) == ["日本", "語"]


@pytest.mark.parametrize("width", [40, 60, 100])
def test_a_table_never_is_wider_than_the_terminal(width: int) -> None:
    names = ["timestamp", "content", "attributes", "n"]
    columns = [
        pa.array([BEGIN], pa.timestamp("us", "UTC")),
        pa.array(["word " * 40]),
        pa.array([[("k", "v" * 70)]], pa.map_(pa.string(), pa.string())),
        pa.array([12345]),
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=names)
    out = io.BytesIO()
    GridWriter(out, batch.schema, width=width, is_colored=False).write(batch)
    assert all(len(line) <= width for line in out.getvalue().decode().splitlines())
    assert "2026-11-16T00:00:00.000Z" in out.getvalue().decode()


def program(*arguments: object, **options: Any) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "coprlake.cli.main", "query", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def on_terminal(*arguments: object) -> str:
    """What a terminal of 80 columns shows."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "coprlake.cli.main", "query", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    with subprocess.Popen(command, stdout=follower, stderr=follower, stdin=follower, env=environment) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        assert process.wait(60) == 0
    os.close(leader)
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_on_a_terminal_there_is_a_table_in_colour_and_series_are_drawn(logs: Path) -> None:
    shown = on_terminal("fetch logs | sort timestamp | limit 1 | fields timestamp, loglevel, content", logs)
    assert "\x1b[31;1mERROR\x1b[0m" in shown
    assert "request 0 of ann" in shown
    assert re.search("[▇█]{4}", on_terminal("fetch logs | makeTimeseries count(), interval:15m", logs))


@pytest.mark.slow
def test_nothing_but_the_answer_is_printed_after_our_own_functions_ran(logs: Path) -> None:
    result = program(
        'fetch logs | filter matchesPhrase(content, "ann") | parse content, "LD:what INT:n" | limit 1', logs
    )
    assert result.stderr == "", "DuckDB complains of what is left when the process ends"
    assert result.returncode == 0
