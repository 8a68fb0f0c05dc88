"""``coprlake shell``: what it does with what is typed, what it completes, and a real terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coprlake.cli.main import cli
from coprlake.cli.options.engine import Engine
from coprlake.cli.options.query_options import Terms
from coprlake.cli.shell.command_list import commands, parameters
from coprlake.cli.shell.completing import Vocabulary, proposals
from coprlake.cli.shell.dialog import Leave, ShellSession
from coprlake.cli.shell.help_pages import help_text
from coprlake.cli.shell.known_fields import attributes_seen, fields_of, values_seen
from coprlake.cli.shell.query_words import classes, is_complete, split
from coprlake.errors import QueryError, UsageError
from coprlake.language.commands.catalog import COMMANDS
from coprlake.language.functions.catalog import FUNCTIONS
from coprlake.table import Table, create_table, open_table

Run = Callable[..., Result]
BEGIN = datetime(2026, 11, 16, tzinfo=UTC)
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shell") / "logs"
    create_table(path).append(
        [
            {
                "timestamp": BEGIN + timedelta(seconds=i),
                "source": f"web-{i % 2}",
                "loglevel": "ERROR" if i % 10 == 0 else "INFO",
                "content": f"request {i} of ann",
                "attributes": {"user": "ann", "odd key": "x"},
            }
            for i in range(2000)
        ]
    )
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, logs: Path) -> Run:
    for name in ("COPRLAKE_TABLE", "COPRLAKE_DEBUG", "COPRLAKE_ENGINE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return lambda text, *options: CliRunner().invoke(cli, ["shell", str(logs), *options], input=text)


@pytest.fixture
def table(logs: Path) -> Table:
    return open_table(logs)


@pytest.fixture
def session(table: Table) -> Iterator[ShellSession]:
    made = ShellSession(table, Terms(), Engine("duckdb"), limit=5)
    yield made
    made.close()


COUNT = "fetch logs | summarize n = count(), by:{loglevel} | sort loglevel"
COUNTED = "loglevel     n\nERROR      200\nINFO      1800\n"


# Without a terminal


def test_queries_are_read_one_after_the_other(run: Run) -> None:
    result = run(f"{COUNT};\n{COUNT}\n\nfetch logs | summarize count()\n")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{COUNTED}\n{COUNTED}\ncount()\n   2000\n"


def test_one_that_fails_does_not_stop_the_others_but_is_told_by_the_exit_code(run: Run) -> None:
    result = run(f"fetch logs | filtr x;\n{COUNT}")
    assert result.exit_code == 1
    assert COUNTED in result.stdout
    assert result.stderr == (
        "error: there is no command filtr; did you mean filter?\n  line 1, column 14\n  fetch logs | filtr x\n"
        "               ^^^^^\n"
    )


def test_exit_ends_it(run: Run) -> None:
    result = run(f"exit\n{COUNT}")
    assert (result.exit_code, result.stdout) == (0, "")


def test_variables_and_limits_of_the_command_line_hold_for_every_query(run: Run) -> None:
    result = run(
        "fetch logs | filter source == $s | summarize count();\\limit 1\nfetch logs | fields source",
        *("--set", "s=web-1", "--timeout", "1m"),
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("count()\n   1000\n")
    assert "\\limit N shows more" in result.stderr


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a; b", ["a", "b"]),
        ("a\n\nb", ["a", "b"]),
        ("a |\n\nb", ["a |\n\nb"]),
        ("a\n\n| b", ["a\n\n| b"]),
        ('a "x;\n\ny" b', ['a "x;\n\ny" b']),
        ("a // x; y\n| b", ["a // x; y\n| b"]),
        ("/* ; */ ;;\n\n", []),
        ("\\limit 5\na", ["\\limit 5", "a"]),
        ("a\n\\fields;\nb", ["a", "\\fields", "b"]),
        ("help bin\na", ["help bin", "a"]),
        ('a "open; b', ['a "open; b']),
    ],
)
def test_queries_are_parted_by_semicolons_and_blank_lines(text: str, parts: list[str]) -> None:
    assert split(text) == parts


# What is typed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fetch logs", True),
        ("fetch logs |", False),
        ("fetch logs | filter (a == 1", False),
        ("fetch logs | filter a ==", False),
        ("fetch logs | summarize count(),", False),
        ('fetch logs | filter a == "open', False),
        ("fetch logs /* open", False),
        ("fetch logs |;", True),
        ("fetch logs |\n", True),
        ("fetch logs | filter ) ", True),
        ("", True),
        ("\\limit 5", True),
        ("help", True),
        ("exit", True),
        ("explain", True),
        ("explain fetch logs |", False),
    ],
)
def test_enter_runs_what_is_complete(text: str, expected: bool) -> None:
    assert is_complete(text) is expected


def test_every_word_has_its_colour_and_nothing_is_lost() -> None:
    text = 'fetch logs | filter contains(a, "x\\"y") and b > 1.5h // why\n| summarize count(), by:{`c d`, $e} "open'
    found = list(classes(text))
    assert "".join(word for _, word in found) == text
    kinds = {word: kind for kind, word in found}
    assert kinds["fetch"] == kinds["filter"] == kinds["summarize"] == "command"
    assert kinds["contains"] == kinds["count"] == "function"
    assert kinds['"x\\"y"'] == kinds['"open'] == "string"
    assert (kinds["and"], kinds["1.5h"], kinds["// why"], kinds["by"]) == ("keyword", "number", "comment", "parameter")
    assert (kinds["`c d`"], kinds["$e"]) == ("quoted", "variable")


def test_a_query_is_answered_with_a_line_of_what_it_took(
    session: ShellSession, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    session.run("fetch logs | fields content")
    out, err = capfdbinary.readouterr()
    assert out.count(b"request") == 5
    assert re.fullmatch(rb"5 rows \(there are more\), .*, 0 of 1 segment skipped.*; \\limit N shows more\n", err)


def test_orders_change_the_session(session: ShellSession) -> None:
    session.run("\\limit 7")
    session.run("\\timing off")
    session.run("\\engine spark")
    assert (session.limit, session.timing, session.engine.name) == (7, False, "spark")
    session.run("\\limit 0")
    session.run("\\engine duckdb;")
    assert (session.limit, session.engine.name, session.failures) == (None, "duckdb", 0)


@pytest.mark.parametrize("order", ["\\limit x", "\\timing maybe", "\\engine dask", "\\unknown", "help nothing"])
def test_an_order_that_makes_no_sense_is_told(
    session: ShellSession, order: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session.run(order)
    assert session.failures == 1
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize("order", ["\\q", "exit", "QUIT", "quit;"])
def test_leaving(session: ShellSession, order: str) -> None:
    with pytest.raises(Leave):
        session.run(order)


def test_explain_and_fields(session: ShellSession, capsys: pytest.CaptureFixture[str]) -> None:
    session.run(f"explain {COUNT}")
    assert "SQL of DuckDB" in capsys.readouterr().out
    session.run("\\fields")
    shown = capsys.readouterr().out
    assert re.search(r"^content +string$", shown, re.MULTILINE)
    assert re.search(r"^user +attribute: text$", shown, re.MULTILINE)
    session.run("explain")
    assert "the query is empty" in capsys.readouterr().err


def test_an_interrupt_stops_the_query_and_not_the_shell(
    session: ShellSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for raised in (KeyboardInterrupt(), RuntimeError("Query interrupted")):

        def ask(*_: object, error: BaseException = raised, **__: object) -> None:
            raise error

        monkeypatch.setattr(Terms, "ask", ask)
        session.run(COUNT)
        assert capsys.readouterr().err == "\nstopped\n"
    assert session.failures == 0


# Help and completion


def test_help_names_every_command_and_function() -> None:
    shown = ESCAPES.sub("", help_text())
    for command in COMMANDS.values():
        assert f"  {command.name} " in shown, command.name
    for function in FUNCTIONS.values():
        assert not function.group or re.search(rf"\b{function.name}\b", shown), function.name


def test_help_of_one_has_an_example() -> None:
    assert "caseSensitive" in help_text("contains")
    assert "→" in help_text("contains()")
    assert "by:{" in help_text("SUMMARIZE")
    with pytest.raises(UsageError, match="did you mean contains"):
        help_text("contians")


def test_the_shell_offers_only_parameters_that_do_something(table: Table) -> None:
    assert set(commands()) == {command.name for command in COMMANDS.values()}
    for name, command in commands().items():
        begin = "" if command.is_source else "fetch logs | "
        for parameter in parameters(name):
            problem = ""
            try:
                table.query(f"{begin}{name} logs, {parameter}:1")
            except QueryError as error:
                problem = error.problem
            assert not re.search("has no parameter|not supported", problem), (name, parameter)


VOCABULARY = Vocabulary(
    {"content": "string", "loglevel": "string", "source": "string"},
    ["user", "odd key"],
    {"loglevel": ["ERROR", "INFO"]},
)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("", ["fetch", "data", "describe", "explain", "help", "exit"]),
        ("fe", ["fetch"]),
        ("fetch ", ["logs"]),
        ("fetch logs, fr", ["from:"]),
        ("fetch logs | summ", ["summarize"]),
        ("fetch logs\n| filter us", ["user"]),
        ("fetch logs | filter `od", ["`odd key`"]),
        ("fetch logs | filter od", ["`odd key`"]),
        ("fetch logs | filter content == 1 an", ["and"]),
        ('fetch logs | filter loglevel == "E', ['"ERROR"']),
        ('fetch logs | filter in(loglevel, {"ERROR", "', ['"ERROR"', '"INFO"']),
        ("fetch logs | summarize countI", ["countIf("]),
        ("fetch logs | summarize count", ["count()"]),
        ("fetch logs | summarize count(), by", ["by:"]),
        ("fetch logs | summarize count(), by:{sou", ["source"]),
        ("fetch logs | summarize errors = count() | sort er", ["errors"]),
        ('fetch logs | filter contains(content, "x", cas', ["caseSensitive:"]),
        ("fetch logs | join [fe", ["fetch"]),
        ("explain fetch logs | lim", ["limit"]),
        ("\\en", ["\\engine"]),
        ("\\engine ", ["duckdb", "spark"]),
        ("help summ", ["summarize"]),
        ("fetch logs // su", []),
        ('fetch logs | filter content == "su', []),
    ],
)
def test_completion(text: str, first: list[str]) -> None:
    assert [found.text for found in proposals(text, VOCABULARY)][: max(1, len(first))] == first


def test_completion_never_fails_wherever_the_cursor_is() -> None:
    text = (
        f"""explain {COUNT} | join [fetch logs | filter a == "x"], on:{{`b`}} /* c */ | filter ((d] }}) ~ '''e $f \\g"""
    )
    for end in range(len(text) + 1):
        for found in proposals(text[:end], VOCABULARY):
            assert found.start <= end


def test_fields_attributes_and_values_are_seen(table: Table) -> None:
    assert fields_of(table)["timestamp"] == "timestamp"
    assert attributes_seen(table) == ["odd key", "user"]
    assert values_seen(table) == {"loglevel": ["ERROR", "INFO"], "source": ["web-0", "web-1"]}


# A real terminal


class Terminal:
    """The program in a terminal of 100 columns."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.shown = ""
        self._looked = 0
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever runs tests in the background has it ignored
            command = [sys.executable, "-m", "coprlake.cli.main", *arguments]
            os.execvpe(sys.executable, command, {**os.environ, "TERM": "xterm", **environment})
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, pattern: str, seconds: float = 60) -> str:
        """Everything that is shown until the pattern is, which must be new and shorter than a page."""
        end = time.monotonic() + seconds
        while not (found := re.compile(pattern).search(self.shown, max(0, self._looked - 4096))):
            self._looked = len(self.shown)
            assert time.monotonic() < end, f"{pattern!r} is not in {self.shown[-4096:]!r}"
            self._read(0.2)
        before, self.shown, self._looked = self.shown[: found.end()], self.shown[found.end() :], 0
        return before

    def leave(self, seconds: float = 60) -> int:
        """Press Ctrl-D until the program has ended; returns its exit code.

        Between two prompts the terminal itself takes the key, and the program never sees it.
        """
        end = time.monotonic() + seconds
        while not (ended := os.waitpid(self._pid, os.WNOHANG))[0]:
            if time.monotonic() > end:
                self.kill()
                raise AssertionError(f"the program did not end; it shows {self.shown[-4096:]!r}")
            with suppress(OSError):  # the other end is closed
                self.type("\x04")
                self._read(0.5)
        self._pid = 0
        return os.waitstatus_to_exitcode(ended[1])

    def kill(self) -> None:
        """Whatever happened, nothing stays behind."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0
        with suppress(OSError):
            os.close(self._terminal)

    def _read(self, seconds: float) -> None:
        if not select.select([self._terminal], [], [], seconds)[0]:
            return
        piece = os.read(self._terminal, 65536)
        if b"\x1b[6n" in piece:  # where is the cursor?
            os.write(self._terminal, b"\x1b[1;1R")
        self.shown += ESCAPES.sub("", piece.decode(errors="replace")).replace("\r", "")


@pytest.fixture
def terminal(logs: Path, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal("shell", str(logs), XDG_STATE_HOME=str(tmp_path / "state"))
    yield terminal
    terminal.kill()


def test_a_real_terminal(terminal: Terminal, tmp_path: Path) -> None:
    terminal.wait_for("coprlake> ")
    terminal.type("fetch logs |\r")  # goes on in the next line
    terminal.wait_for(r"\.\. ")
    terminal.type("summarize n = count(), by:{loglevel}\r")
    answer = terminal.wait_for(r"2 rows, [^\n]* skipped\n")
    assert re.search(r"ERROR +200\n", answer)
    terminal.wait_for("coprlake> ")
    terminal.type("\\limit 0\r")
    terminal.wait_for("all rows are shown")
    terminal.wait_for("coprlake> ")
    terminal.type("fetch logs | join [fetch logs], on:{source} | fields content\r")  # two million rows
    terminal.wait_for(r"(request \d+ of ann\n){20}")
    terminal.type("\x03")
    assert "Traceback" not in terminal.wait_for("stopped\n")
    terminal.wait_for("coprlake> ")
    terminal.type("fetch logs | filtr\r")
    terminal.wait_for("there is no command filtr; did you mean filter?")
    terminal.wait_for("coprlake> ")
    terminal.type("half a que")
    terminal.wait_for("que")
    terminal.type("\x03")  # drops it
    assert terminal.leave() == 0
    history = tmp_path / "state" / "coprlake" / "history"
    assert history.stat().st_mode & 0o077 == 0
    kept = history.read_text()
    assert "+fetch logs |\n+summarize n = count(), by:{loglevel}\n" in kept
    assert "half" not in kept
