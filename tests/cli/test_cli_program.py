"""The program as a whole: quick help, shell completion, Ctrl-C, and a reference that says what the help says."""

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

import coprlake
from coprlake.cli.main import COMMANDS, cli
from scripts.make_cli_reference import TARGET, reference

HEAVY = {
    "duckdb",
    "sqlglot",
    "lark",
    "prompt_toolkit",
    "numpy",
    "pyarrow",
    "numba",
    "deltalake",
    "rich",
    "pandas",
    "hypothesis",
    "pyspark",
    "py4j",
}


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_is_there_and_loads_nothing_heavy(command: str | None) -> None:
    arguments = [*([command] if command else []), "--help"]
    script = (
        "import sys\nfrom coprlake.cli.main import cli\n"
        f"cli.main({arguments!r}, prog_name='coprlake', standalone_mode=False)\n"
        f"print({HEAVY!r} & set(sys.modules), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("Usage: coprlake")
    assert result.stderr == "set()\n"


def test_help_is_quick() -> None:
    """By the processor's clock: by that of the wall, other work on the machine counts too."""
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "coprlake.cli.main", "--help"], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 0.4  # 0.1 s as a rule


def test_the_version() -> None:
    assert CliRunner().invoke(cli, ["--version"]).stdout == f"coprlake {coprlake.__version__}\n"


def test_every_command_has_a_help_of_one_line_for_the_list() -> None:
    shown = CliRunner().invoke(cli, ["--help"]).stdout
    for name in COMMANDS:
        assert f"\n  {name} " in shown
    assert "..." not in shown.partition("Commands:")[2], "a short help is cut off"


def test_the_reference_says_what_the_help_says() -> None:
    assert TARGET.read_text() == reference(), "run `python -m scripts.make_cli_reference`"


def test_an_unknown_command_is_refused() -> None:
    result = CliRunner().invoke(cli, ["serach"])
    assert result.exit_code == 2
    assert "serach" in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_what_the_shell_runs(shell: str) -> None:
    result = CliRunner().invoke(cli, ["completion", shell])
    assert result.exit_code == 0
    assert "_COPRLAKE_COMPLETE" in result.stdout


def test_completion_asks_for_the_shell_if_it_cannot_be_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/odd")
    assert CliRunner().invoke(cli, ["completion"]).exit_code == 2
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert "compdef" in CliRunner().invoke(cli, ["completion"]).stdout


def test_the_shell_is_told_commands_and_options() -> None:
    def completed(words: str, place: int) -> str:
        script = "from coprlake.cli.main import main; main()"
        asked = {"_COPRLAKE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(place)}
        command = [sys.executable, "-c", script]
        return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **asked}).stdout

    assert "plain,search\n" in completed("coprlake se", 1)
    assert "plain,--since\n" in completed("coprlake search --si", 2)


def _heed_interrupts() -> None:
    """Whoever runs the tests in the background has interrupts ignored, and that is inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_ends_it_quietly_and_adds_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "coprlake.cli.main", "ingest", "-", "--into", str(tmp_path / "t")]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,
    ) as process:
        assert process.stdin
        assert process.stderr
        process.stdin.write("2026-11-16T03:00:00Z a line\n")
        process.stdin.flush()
        time.sleep(4)  # long enough to be waiting for the next line
        for _ in range(20):  # an interrupt that meets an import of a library may be lost there, on a slow machine
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(3)
                break
        process.kill()  # if it would not listen: nothing may wait for it forever
        assert process.returncode == 130
        assert process.stderr.read() in (f"nothing was added to {tmp_path / 't'}\n", ""), (
            "nothing if it was slow to start"
        )
    assert not (tmp_path / "t").exists()
