"""The choice of an engine: the faster one that can do the work."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from coprlake.cli.main import cli
from coprlake.cli.options import engine_choice
from coprlake.cli.options.engine_choice import SPARK_START_SECONDS, Choice, Work, choose, core_count
from coprlake.intake.sources.inputs import InputFile

Run = Callable[..., Result]
GB = 10**9
works = st.builds(
    lambda raw, files, share: Work(raw, files, int(raw * share)),
    st.integers(0, 10**13),
    st.integers(1, 10**6),
    st.floats(0, 1),
)
cores = st.integers(1, 256)


def chosen(
    work: Work, cores: int = 8, local_only: tuple[str, ...] = (), asked: str | None = None, missing: str | None = None
) -> Choice:
    return choose(work, cores, local_only=local_only, asked=asked, obstacle=lambda: missing)


@given(works, cores)
def test_the_choice_is_the_faster_one(work: Work, cores: int) -> None:
    assert chosen(work, cores).is_spark == (work.seconds_on_spark(cores) < work.seconds)


@given(works, cores)
def test_more_cores_and_more_text_never_speak_against_spark(work: Work, cores: int) -> None:
    if chosen(work, cores).is_spark:
        assert chosen(work, cores + 1).is_spark
        assert chosen(Work(work.raw_bytes + GB, work.file_count, work.whole_bytes), cores).is_spark


@given(works, cores)
def test_what_takes_less_than_the_start_of_spark_is_done_here(work: Work, cores: int) -> None:
    if work.seconds <= SPARK_START_SECONDS:
        assert not chosen(work, cores).is_spark


@given(works)
def test_one_core_or_one_file_that_cannot_be_split_gains_nothing_from_spark(work: Work) -> None:
    assert not chosen(work, 1).is_spark
    assert not chosen(Work(work.raw_bytes, 1, work.raw_bytes), 64).is_spark


@given(works, cores)
def test_whoever_asks_for_spark_gets_it(work: Work, cores: int) -> None:
    assert chosen(work, cores, asked="COPRLAKE_MASTER", missing="no Java") == Choice(True, "because of COPRLAKE_MASTER")
    assert not chosen(work, cores, asked="COPRLAKE_MASTER", local_only=("--dry-run",)).is_spark


@given(works, cores)
def test_without_java_everything_is_done_here(work: Work, cores: int) -> None:
    assert not chosen(work, cores, missing="there is no Java").is_spark


def test_the_reason_is_told() -> None:
    assert chosen(Work(12_000_000)).reason == "which is faster than starting Spark; --engine spark uses Spark"
    assert chosen(Work(10 * GB)).reason == "which is faster on 8 cores; --engine local uses this process"
    assert chosen(Work(10 * GB), missing="there is no Java").reason == "because there is no Java"
    assert chosen(Work(10 * GB), 1).reason.startswith("because Spark is not faster on one core;")
    assert chosen(Work(10 * GB, 1, 10 * GB)).reason.startswith("because most of it is one file that cannot be split;")
    assert chosen(Work(1), local_only=("standard input",)).reason == "because Spark does not support standard input"


def test_java_is_looked_for_only_if_it_is_needed() -> None:
    def unexpected() -> None:
        raise AssertionError

    assert not choose(Work(1000), 8, local_only=(), asked=None, obstacle=unexpected).is_spark
    assert choose(Work(1000), 8, local_only=(), asked="COPRLAKE_MASTER", obstacle=unexpected).is_spark


def file(path: str, size: int | None) -> InputFile:
    return InputFile(path, path, size, None)


def test_compressed_files_count_by_an_estimate_of_their_text() -> None:
    plain = Work.of_files([file("a.log", 100), file("b.log.1", 200)])
    assert plain == Work(300, 2, 0)
    assert str(plain) == "300 B"
    packed = Work.of_files([file("a.log", 100), file("b.LOG.GZ", 200), file("c.tar.zst", 10)])
    assert packed == Work(1780, 3, 1600, is_exact=False)
    assert str(packed) == "about 1.8 kB"
    assert Work.of_files([file("a.csv", 100), file("b.parquet", 50)]) == Work(300, 2, 200, is_exact=False)
    assert Work.of_files([file("-", None)]) == Work(0, 1, 0)


def test_a_container_limits_the_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    quota = tmp_path / "cpu.max"
    monkeypatch.setattr(engine_choice, "_LINUX_QUOTA", quota)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert core_count() == 6
    for text, expected in (("max 100000", 6), ("250000 100000", 2), ("10000 100000", 1), ("nonsense", 6)):
        quota.write_text(text)
        assert core_count() == expected


@pytest.fixture
def auto(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """The program with the default engine, in an empty folder."""
    monkeypatch.delenv("COPRLAKE_ENGINE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.log").write_text("2026-11-16 03:55:00 INFO a line\n" * 1000)
    return run


def test_a_small_file_is_read_in_this_process(auto: Run) -> None:
    done = auto("ingest", "app.log", "--into", "t")
    assert done.exit_code == 0, done.output
    reason = "which is faster than starting Spark; --engine spark uses Spark"
    assert done.stderr.startswith(f"reading 32.0 kB in this process, {reason}\n")
    assert "local, in this process" in done.stdout
    told = json.loads(auto("ingest", "app.log", "--into", "u", "--json").stdout)
    assert (told["engine"], told["engine_reason"]) == ("local", reason)


def test_an_engine_that_is_named_needs_no_reason(auto: Run) -> None:
    done = auto("ingest", "app.log", "--into", "t", "--engine", "local")
    assert "in this process, " not in done.stderr
    told = json.loads(auto("ingest", "app.log", "--into", "u", "--json", "--engine", "local").stdout)
    assert (told["engine"], told["engine_reason"]) == ("local", None)


def test_quiet_prints_nothing(auto: Run) -> None:
    done = auto("ingest", "app.log", "--into", "t", "--quiet")
    assert (done.exit_code, done.output) == (0, "")
    assert auto("search", "-c", "t").stdout == "1000\n"
    told = auto("ingest", "app.log", "--into", "u", "-q", "--json")
    assert json.loads(told.stdout)["records"] == 1000
    assert told.stderr == ""


def test_standard_input_is_read_in_this_process(auto: Run) -> None:
    done = auto("ingest", "-", "--into", "t", input="a line\n")
    assert done.stderr.startswith("reading in this process, because Spark does not support standard input\n")
    told = auto("ingest", "app.log", "--into", "u", "--dry-run").stderr
    assert told.startswith("reading 32.0 kB in this process, because Spark does not support --dry-run\n")


@pytest.mark.parametrize("option", ["--master=local[2]", "--conf=spark.a=b"])
def test_options_for_spark_choose_it(auto: Run, option: str) -> None:
    done = auto("ingest", "app.log", "--dry-run", "--into", "t", option)
    assert done.exit_code == 2
    assert "--dry-run needs the local engine; add --engine local" in done.stderr
    done = auto("search", "-C", "2", "x", "t", option)
    assert done.exit_code == 2
    assert "context (-A, -B, -C) needs the local engine" in done.stderr


def test_a_master_in_the_environment_chooses_spark_where_that_is_possible(
    auto: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COPRLAKE_MASTER", "local[2]")
    told = auto("ingest", "-", "--into", "t", input="a line\n").stderr
    assert told.startswith("reading in this process, because Spark does not support standard input\n")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    refused = auto("ingest", "app.log", "--into", "u")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("reading 32.0 kB on Spark, because of COPRLAKE_MASTER\n")
    assert "Spark needs Java 17 or newer" in refused.stderr
    assert auto("search", "-c", "t").stdout == "1\n"  # a search does not need Spark


def test_much_text_is_read_on_spark_unless_that_cannot_start(auto: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_choice, "BYTES_A_SECOND", 10.0)
    monkeypatch.setattr(engine_choice, "core_count", lambda: 8)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    told = auto("ingest", "app.log", "--into", "t")
    assert told.exit_code == 0, told.output
    expected = "reading 32.0 kB in this process, because Spark needs Java 17 or newer, but none was found\n"
    assert told.stderr.startswith(expected)
    monkeypatch.setattr("coprlake.extras.is_installed", lambda name: name != "pyspark")
    told = auto("ingest", "app.log", "--into", "u")
    assert "in this process, because Spark is not installed; run: pip install 'coprlake[spark]'" in told.stderr


def test_the_program_chooses_without_loading_spark(tmp_path: Path) -> None:
    code = (
        "import sys; from coprlake.cli.main import cli\n"
        "try: cli(['ingest', 'app.log', '--into', 't', '--engine', 'auto'])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert not any(name.startswith('pyspark') for name in sys.modules)"
    )
    (tmp_path / "app.log").write_text("a line\n")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=120, capture_output=True)


def test_auto_is_known_to_every_command_with_an_engine() -> None:
    for command in ("ingest", "search", "query", "shell", "optimize", "index"):
        told = CliRunner().invoke(cli, [command, "--help"]).stdout
        assert "--engine [auto|" in told
        assert "default: auto" in " ".join(told.split())


def test_spark_that_is_not_installed_is_not_recommended_without_saying_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    reason = choose(Work(1000), 4, local_only=(), asked=None, obstacle=lambda: None).reason
    assert reason.endswith("to use Spark, run pip install 'coprlake[spark]', then use --engine spark")
