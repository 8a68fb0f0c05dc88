"""The program ``coprlake``: its commands, each loaded when it is needed, and what becomes of their errors."""

import os
import sys
import traceback
from importlib import import_module
from typing import Any

import click

import coprlake
from coprlake.cli.printing.harmless import harmless
from coprlake.cli.printing.notices import Failure, color_option
from coprlake.errors import CoprlakeError

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
"""In the order of the help. Each is the function of its name in the module of its name."""

INTERRUPTED = 130


class LazyCommands(click.Group):
    """Loads the module of a command when that is asked for, and turns errors into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"coprlake.cli.commands.{cmd_name}"), cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except click.exceptions.Exit:
            raise
        except click.ClickException as error:
            vars(error)["message"] = harmless(error.message)
            raise
        except (KeyboardInterrupt, click.Abort):
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:  # whoever reads has seen enough
            _forget_output()
            ctx.exit(0)
        except (CoprlakeError, OSError) as error:
            if os.environ.get("COPRLAKE_DEBUG"):
                traceback.print_exc()
            raise Failure(_text(error)) from error
        except Exception as error:
            traceback.print_exc()
            raise Failure("this is an error in coprlake itself; please report it with the lines above") from error


def _text(error: Exception) -> str:
    """The message; of an error of the operating system without its number."""
    if isinstance(error, OSError) and not isinstance(error, CoprlakeError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _forget_output() -> None:
    """Let what is left in the buffers of a closed pipe go nowhere, or Python complains when it ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BrokenPipeError:
                os.dup2(nowhere, stream.fileno())
    except (OSError, ValueError):  # a stream that is no file, as in tests
        return


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="`coprlake COMMAND --help` tells more. COPRLAKE_TABLE names the table when the command line does not.",
)
@click.version_option(coprlake.__version__, prog_name="coprlake", message="%(prog)s %(version)s")
@color_option
def cli() -> None:
    """Log storage and search for the open lakehouse.

    Logs become Parquet files in a Delta table, with a small index beside each file, so that a search opens only what
    may hold a match.
    """


def main() -> None:
    """The entry point."""
    try:
        cli.main(prog_name="coprlake")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # while the last bytes were written
        _forget_output()
        sys.exit(0)


if __name__ == "__main__":
    main()
