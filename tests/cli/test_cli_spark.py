"""The commands on Spark: the same results as in this process, streams that neither lose nor double, clear errors."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyspark.errors import PySparkException

import coprlake.spark
from coprlake.cli.commands.stream_following import Follower, Optimizer
from coprlake.cli.main import cli
from coprlake.cli.options.engine import Engine
from coprlake.errors import StorageError, UsageError
from coprlake.intake.options import IntakeReport
from coprlake.spark import BatchReport, session
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.table import create_table, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[..., Result]
LINE = '{{"time": "2026-11-{:02}T03:{:02}:{:02}Z", "level": "{}", "message": "request {} {}", "status": {}}}\n'
SPARK = ("--engine", "spark")


def lines(first: int, last: int) -> str:
    """Each has a time of its own; together they are of several days."""
    levels, words = ("INFO", "WARN", "ERROR"), ("done", "refused", 'said "no", twice')
    return "".join(
        LINE.format(1 + i // 400, i // 60 % 60, i % 60, levels[i % 3], i, words[i % 3].replace('"', '\\"'), i % 7)
        for i in range(first, last)
    )


@pytest.fixture(autouse=True)
def _no_engine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COPRLAKE_ENGINE", raising=False)


@pytest.fixture(scope="module")
def spark() -> "Iterator[SparkSession]":
    """A session that is there already: all commands use it, so that it starts once."""
    with session("local[2]", {"spark.sql.shuffle.partitions": "4"}, quiet=True) as started:
        yield started


@pytest.fixture(scope="module")
def table(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files that Spark read."""
    folder = tmp_path_factory.mktemp("spark")
    (folder / "a.ndjson").write_text(lines(0, 700))
    (folder / "b.ndjson").write_text(lines(700, 1000))
    command = ["ingest", str(folder / "a.ndjson"), str(folder / "b.ndjson"), "--into", str(folder / "table")]
    result = CliRunner().invoke(cli, [*command, *SPARK])
    assert result.exit_code == 0, result.output
    assert "records     1,000\n" in result.stdout
    assert "index " in result.stdout
    assert "MB/s" in result.stdout or "kB/s" in result.stdout
    assert "engine      Spark on local[2]" in result.stdout
    assert result.stderr.startswith(f"added to {folder / 'table'}: 1 segment, version ")
    return folder / "table"


@pytest.mark.parametrize("output", ["table", "lines", "json", "csv", "parquet"])
@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_the_engines_find_the_same_in_the_same_order(
    run: Run, table: Path, tmp_path: Path, output: str, order: str
) -> None:
    found = {}
    for engine in ("spark", "local"):
        path = tmp_path / engine
        arguments = ["refused", table, "--order", order, "-o", output, "--engine", engine]
        result = run("search", *arguments, "--out", path)
        assert result.exit_code == 0, result.output
        assert result.stderr == f"333 records written to {path}\n"
        found[engine] = path.read_bytes()
    if output == "parquet":
        tables = [pq.read_table(io.BytesIO(data)) for data in found.values()]
        assert tables[0].equals(tables[1])
    else:
        assert found["spark"] == found["local"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["refused", "-c"],
        ["refused", "-c", "-n", "5"],
        ["refused", "-n", "5"],
        ["refused", "-n", "0"],
        ["-v", "refused", "-n", "3", "--order", "oldest", "--json"],
        ["--level", "warn+", "-c"],
        ["--where", "status>=5", "--since", "2026-11-02", "--until", "2026-11-03", "--columns", "status,content"],
        ["not-there"],
        ["not-there", "-c"],
        ["not-there", "-o", "csv"],
        ["refused", "-q"],
        ["not-there", "-q"],
    ],
)
@pytest.mark.usefixtures("spark")
def test_options_of_a_search_mean_the_same(run: Run, table: Path, arguments: list[str]) -> None:
    found = {engine: run("search", *arguments, "--table", table, "--engine", engine) for engine in ("spark", "local")}
    assert found["spark"].output == found["local"].output
    assert found["spark"].exit_code == found["local"].exit_code
    assert found["spark"].exit_code in (0, 1), found["spark"].output


def test_any_order_has_the_same_records(run: Run, table: Path) -> None:
    found = [run("search", "", table, "--order", "any", "--engine", engine).stdout for engine in ("spark", "local")]
    assert sorted(found[0].splitlines()) == sorted(found[1].splitlines())
    assert len(found[0].splitlines()) == 1000
    some = run("search", "refused", table, "--order", "any", "-n", "7", *SPARK).stdout.splitlines()
    assert len(some) == 7
    assert set(some) <= set(found[0].splitlines())


def test_the_statistics_say_what_was_pruned_and_who_reads(run: Run, table: Path) -> None:
    told = run("search", "-F", "request 999", table, "--stats", *SPARK).stderr
    assert 'contains(any value, "request 999")' in told
    assert "ruled out by sketch" in told
    assert "1 task of Spark" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-C", "2"], "context (-A, -B, -C) needs the local engine; add --engine local"),
        (["-B", "1"], "context (-A, -B, -C) needs"),
        (["--threads", "2"], "--threads needs the local engine"),
        (["--conf", "spark.driver.memory"], "'spark.driver.memory' is not a valid Spark setting; expected KEY=VALUE"),
        (["--conf", "driver.memory=1g"], "such as spark.driver.memory=4g"),
        (["--jars", "nowhere.jar"], "nowhere.jar: no such file"),
    ],
)
def test_a_search_on_spark_refuses_what_it_cannot_do(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    create_table(tmp_path / "t")
    result = run("search", "x", tmp_path / "t", *SPARK, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("option", ["--master=local[2]", "--conf=spark.a=b", "--master=local"])
@pytest.mark.parametrize("command", ["search", "optimize", "index"])
def test_options_of_spark_mean_nothing_to_the_local_engine(
    run: Run, tmp_path: Path, command: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_table(tmp_path / "t")
    result = run(command, tmp_path / "t", option, "--engine", "local")
    assert result.exit_code == 2
    assert f"{option.partition('=')[0]} has no effect with --engine local" in result.stderr
    monkeypatch.setenv("COPRLAKE_MASTER", "local[2]")  # this is not about one command
    assert run(command, tmp_path / "t").exit_code in (0, 1)


@pytest.mark.usefixtures("spark")
def test_optimize_and_index_on_spark(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create_table(path, partition_by=[])
    for number in range(4):
        table.append([f"line {number} of four"])
    merged = run("optimize", path, *SPARK)
    assert merged.exit_code == 0, merged.output
    assert "merged 4 segments into 1" in merged.stdout
    assert "nothing to merge" in run("optimize", path, *SPARK).stderr
    rebuilt = run("index", path, "--rebuild", *SPARK)
    assert rebuilt.exit_code == 0, rebuilt.output
    assert "indexed 1 segment in" in rebuilt.stdout
    assert json.loads(run("index", path, "--json", *SPARK).stdout)["skipped"] == 1
    assert run("verify", "--deep", path).exit_code == 0
    assert run("search", "-c", "four", path).stdout == "4\n"


@pytest.mark.usefixtures("spark")
def test_what_only_this_process_can_read_is_read_by_it(run: Run, tmp_path: Path) -> None:
    taken = run("ingest", "-", "--into", tmp_path / "t", input="a line\n")
    assert taken.exit_code == 0, taken.output
    assert taken.stderr.startswith("reading in this process, because Spark does not support standard input\n")
    assert "local, in this process" in taken.stdout
    log = tmp_path / "app.log"
    log.write_text("a line\n")
    asked: dict[str, list[object]] = {
        "standard input": ["-"],
        "--commit-every": [log, "--commit-every", "1MB"],
        "--dry-run": [log, "--dry-run"],
    }
    for name, arguments in asked.items():
        refused = run("ingest", *arguments, "--into", tmp_path / "u", *SPARK, input="a line\n")
        assert refused.exit_code == 2
        assert f"{name} needs the local engine; add --engine local" in refused.stderr
        chosen = run("ingest", *arguments, "--into", tmp_path / "u", "--master", "local", input="a line\n")
        assert chosen.exit_code == 2
    assert not (tmp_path / "u").exists()


def test_nothing_to_read_needs_no_spark(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    result = run("ingest", tmp_path / "empty.log", "--into", tmp_path / "t", *SPARK)
    assert (result.exit_code, result.stderr) == (0, "no records in 1 file; nothing was added\n")


@pytest.mark.usefixtures("spark")
def test_a_stream_that_runs_again_takes_only_what_is_new(run: Run, tmp_path: Path) -> None:
    folder, path = tmp_path / "in", tmp_path / "table"
    folder.mkdir()
    (folder / "a.ndjson").write_text(lines(0, 200))
    command = ["stream", folder, "--into", path, "--once", "--partition-by", "none", "--grams", "level"]
    first = run(*command)
    assert first.exit_code == 0, first.output
    assert "batch 0: 200 records" in first.stderr
    assert f"added to {path}: 200 records" in first.stderr
    assert open_table(path).partition_by == []
    assert f"added to {path}: 0 records" in run(*command).stderr
    (folder / "b.ndjson").write_text(lines(200, 300))
    told = run(*command, "--json", "--max-files", "5")
    known = [json.loads(line) for line in told.stdout.splitlines()]
    assert [(batch["records"], batch["files"], batch["was_done"]) for batch in known] == [(100, 1, False)]
    assert run(*command, "-q").stderr.count("\n") == 1
    assert run("search", "-c", path).stdout == "300\n"


@pytest.mark.usefixtures("spark")
def test_a_stream_that_fails_says_why_in_one_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageError("the disk is full")

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.log").write_text("a line\n")
    command = ["stream", tmp_path / "in", "--into", tmp_path / "t", "--once"]
    with monkeypatch.context() as patch:
        patch.setattr(DeltaLog, "commit", full)
        result = run(*command)
    assert (result.exit_code, result.stderr) == (2, "coprlake: error: the disk is full\n")
    assert run(*command).exit_code == 0
    assert run("search", "-c", tmp_path / "t").stdout == "1\n"
    other = run("stream", tmp_path / "in", "--into", tmp_path / "u", "--once", "--checkpoint", checkpoint(tmp_path))
    assert other.exit_code == 2
    assert "belongs to a stream into another table" in other.stderr


def checkpoint(folder: Path) -> Path:
    """The only one of the table in the folder."""
    return next((folder / "t").rglob("metadata")).parent


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a FOLDER to watch, or --kafka HOST:PORT"),
        (["in", "--kafka", "host:1"], "name a FOLDER to watch, or --kafka"),
        (["nowhere"], "nowhere: no such folder"),
        (["in", "--topic", "logs"], "--topic has no effect without --kafka"),
        (["in", "--from", "latest"], "--from has no effect without --kafka"),
        (["in", "--checkpoint", "in/here"], "the checkpoint is inside the folder to watch"),
        (["."], "the table is inside the folder to watch"),
        (["--kafka", "host:1"], "no topic given"),
        (["--kafka", "host", "--topic", "logs"], "'host' is not a valid server; expected HOST:PORT"),
        (["--kafka", "host:1", "--topic", "logs", "--max-files", "1"], "--max-files has no effect with --kafka"),
        (["--kafka", "host:1", "--topic", "logs", "--kafka-option", "x"], "expected KEY=VALUE, such as kafka.security"),
        (["in", "--trigger", "soon"], "'soon' is not a valid span"),
        (["in", "--optimize-every", "often"], "'often' is not a valid span"),
    ],
)
def test_a_stream_refuses_what_makes_no_sense(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    result = run("stream", *arguments, "--into", "t")
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "t").exists()


def _heed_interrupts() -> None:
    """Whoever runs the tests in the background has interrupts ignored, and that is inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def processes_of(group: int) -> list[int]:
    """Those of a session of the operating system."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == group and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def test_a_signal_ends_a_stream_and_leaves_nothing_behind(run: Run, tmp_path: Path) -> None:
    folder, path = tmp_path / "in", tmp_path / "table"
    folder.mkdir()
    (folder / "a.ndjson").write_text(lines(0, 200))
    command = [sys.executable, "-m", "coprlake.cli.main", "stream", str(folder), "--into", str(path), "--json"]
    with subprocess.Popen(
        [*command, "--trigger", "200ms", "--master", "local[2]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,
        start_new_session=True,
    ) as process:
        watchdog = threading.Timer(240, process.kill)  # nothing may wait for it forever
        watchdog.start()
        assert process.stdout
        assert process.stderr
        assert json.loads(process.stdout.readline())["records"] == 200
        (tmp_path / "b").write_text(lines(200, 300))
        (tmp_path / "b").rename(folder / "b.ndjson")
        assert json.loads(process.stdout.readline())["records"] == 100
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: all of them get it
        assert process.stdout.read() == ""
        told = process.stderr.read()
        process.wait(60)
        watchdog.cancel()
    assert process.returncode == 0, told
    assert told.startswith(f"added to {path}: 300 records"), told
    deadline = time.monotonic() + 20
    while processes_of(process.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert processes_of(process.pid) == []
    assert run("verify", "--deep", path).exit_code == 0
    assert run("search", "-c", path).stdout == "300\n"


def test_small_segments_are_merged_beside_a_stream(spark: "SparkSession", tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by=[])
    for number in range(3):
        table.append([f"line {number}"])
    events: SimpleQueue[Any] = SimpleQueue()
    with Optimizer(spark, str(tmp_path / "t"), timedelta(milliseconds=10), events) as optimizer:
        deadline = time.monotonic() + 60
        while not optimizer.written and time.monotonic() < deadline:
            time.sleep(0.05)
    assert (optimizer.merged, optimizer.written, optimizer.conflicts) == (3, 1, 0)
    assert events.empty()
    assert len(open_table(tmp_path / "t").snapshot().segments) == 1


def test_an_error_of_merging_is_told_and_not_fatal(spark: "SparkSession", tmp_path: Path) -> None:
    events: SimpleQueue[Any] = SimpleQueue()
    with Optimizer(spark, str(tmp_path / "nowhere"), timedelta(milliseconds=10), events):
        assert "could not be merged" in events.get(timeout=60)
    with Optimizer(spark, str(tmp_path / "nowhere"), None, events):
        pass


def test_a_terminal_shows_how_far_a_stream_is(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", screen)
    follower = Follower(as_json=False, is_quiet=False)
    follower.begin("waiting for files")
    for number in range(2):
        follower.take(BatchReport(number, IntakeReport(), 1000, 2_000_000, 1, 0.5))
    follower.clear()
    shown = screen.getvalue()
    assert "waiting for files" in shown
    assert "batch 1  2,000 records  4.0 MB  4.0 MB/s  last batch took 500 ms" in shown
    assert "\n" not in shown


def test_errors_are_explained_while_java_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    is_running = False

    @contextmanager
    def fake_session(*_: object, **__: object) -> Iterator[str]:
        nonlocal is_running
        is_running = True
        try:
            yield "spark"
        finally:
            is_running = False

    class JavaError(PySparkException):
        def __str__(self) -> str:
            assert is_running
            return "coprlake.errors.UsageError: what a task says\n  at java"

    monkeypatch.setattr(coprlake.spark, "session", fake_session)
    with pytest.raises(UsageError, match=r"^what a task says$"), Engine("spark").session():
        raise JavaError("of a job")


def program(*arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The real program, with this environment alone."""
    command = [sys.executable, "-m", "coprlake.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


def test_without_java_the_message_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("a line\n")
    arguments = ["ingest", tmp_path / "app.log", "--into", tmp_path / "t"]
    missing = program(*arguments, *SPARK, PATH="")
    assert missing.returncode == 2
    assert "Spark needs Java 17 or newer, but none was found; install one" in missing.stderr
    assert "`--engine local` works without Java" in missing.stderr
    assert "Traceback" not in missing.stderr
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    old = program(*arguments, *SPARK, PATH=str(java.parent))
    assert old.returncode == 2
    assert f"{java} is Java 11" in old.stderr
    assert not (tmp_path / "t").exists()
    assert program(*arguments, PATH="").returncode == 0
