"""The ``coprlake`` program: loads each command on first use, and turns its errors into a message and an exit code."""

import atexit
import os
import sys
import threading
import warnings
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import click

import coprlake
from coprlake.cli.printing.harmless import harmless
from coprlake.cli.printing.notices import Failure, color_option, in_one_form
from coprlake.errors import CoprlakeError, SearchWarning
from coprlake.extras import hide_pandas, missing_package
from coprlake.native import kernels
from coprlake.text.nearest_words import nearest

COMMANDS = (
    "ingest",
    "stream",
    "search",
    "explain",
    "query",
    "shell",
    "info",
    "optimize",
    "delete",
    "vacuum",
    "verify",
    "index",
    "generate",
    "completion",
)
"""In the order in which the help lists them. Each is a function in the module of the same name."""

INTERRUPTED = 130

_MEANT = {
    **dict.fromkeys(("grep", "find", "rg"), "search"),
    **dict.fromkeys(("add", "load", "import", "write"), "ingest"),
    **dict.fromkeys(("sql", "select", "dql"), "query"),
    **dict.fromkeys(("compact", "merge"), "optimize"),
    **dict.fromkeys(("remove", "rm"), "delete"),
    **dict.fromkeys(("describe", "show", "stats", "status", "ls"), "info"),
    **dict.fromkeys(("repl",), "shell"),
    **dict.fromkeys(("check", "fsck"), "verify"),
    "help": "--help",
}
"""What other programs call our commands."""


class LazyCommands(click.Group):
    """Loads the module of a command on first use, and turns errors into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names of all commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"coprlake.cli.commands.{cmd_name}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or fail with the name of the nearest one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = nearest(args[0], COMMANDS) or _MEANT.get(args[0].lower())
            advice = f"did you mean {near}?" if near else f"the commands are {', '.join(COMMANDS)}"
            ctx.fail(f"no such command {args[0]!r}; {advice}")
        return super().resolve_command(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read the command line up to the command."""
        try:
            return super().make_context(*arguments, **options)
        except click.ClickException as error:
            raise in_one_form(error) from error.__cause__

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and report its errors."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SearchWarning)  # commands print what they warn about
                return super().invoke(ctx)
        except click.exceptions.Exit:
            raise
        except click.ClickException as error:
            vars(error)["message"] = harmless(error.message)
            raise in_one_form(error) from error.__cause__
        except (KeyboardInterrupt, click.Abort):
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:  # the reader has seen enough
            _forget_output()
            ctx.exit(0)
        except (CoprlakeError, OSError) as error:
            if os.environ.get("COPRLAKE_DEBUG"):
                _print_traceback()
            raise Failure(_text(error)) from error
        except Exception as error:
            missing = missing_package(error)
            if missing is not None:
                raise Failure(str(missing)) from error
            _print_traceback()
            raise Failure("this is a bug in coprlake; please report it together with the lines above") from error


def _text(error: Exception) -> str:
    """Return the message of an error, without the error number of the operating system."""
    if isinstance(error, OSError) and not isinstance(error, CoprlakeError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _print_traceback() -> None:
    import traceback  # 8 ms, and hardly ever needed

    traceback.print_exc()


def _forget_output() -> None:
    """Discard what is still buffered for a closed pipe; otherwise Python complains on exit."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BrokenPipeError:
                os.dup2(nowhere, stream.fileno())
    except (OSError, ValueError):  # a stream that is not a file, as in tests
        return


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Run `coprlake COMMAND --help` for the options of a command. If no table is given, COPRLAKE_TABLE names it.",
)
@click.version_option(coprlake.__version__, prog_name="coprlake", message="%(prog)s %(version)s")
@color_option
def cli() -> None:
    """Log storage and search for the open lakehouse.

    Logs are stored as Parquet files in a Delta table. A small index next to each file lets a search read only the
    parts that may contain a match.
    """


def _announce_build(seconds: int) -> None:
    """Say why the first command takes longer."""
    print(f"preparing coprlake's kernels for this machine, once; about {seconds} s", file=sys.stderr, flush=True)


def program() -> NoReturn:
    """Run the program and end the process; the entry point of the package.

    The process ends as Python would end it, but without the destructors of native libraries: on a busy machine, one of
    them ended some ingests with SIGABRT ("terminate called without an active exception") after all was committed.
    """
    code: object = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the interpreter does first
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more, or it is closed
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def main() -> None:
    """Run the program; raises SystemExit."""
    hide_pandas()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy would start a thread for each core, for nothing of ours
    kernels.announce = _announce_build
    try:
        cli.main(prog_name="coprlake")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # while writing the last bytes
        _forget_output()
        sys.exit(0)
    finally:
        _end_without_codes()


def _end_without_codes() -> None:
    """Keep colorama, which Numba loads if it is installed, from writing its reset code to the terminal on exit."""
    colorama = sys.modules.get("colorama.initialise")
    if colorama is not None:
        atexit.unregister(colorama.reset_all)


if __name__ == "__main__":
    program()
