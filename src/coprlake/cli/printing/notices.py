"""Messages on stderr (errors, warnings and notes), and when to use colours."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from coprlake.cli.options.choices import NearestChoice
from coprlake.cli.printing.harmless import harmless, one_line

SHOWN_WARNINGS = 10
_TAKES_TEXT = ("search", "explain", "delete")

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Failure(click.ClickException):
    """The command failed: prints one line and exits with 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print the message."""
        _show(self.format_message())


def in_one_form(error: click.ClickException) -> click.ClickException:
    """Make an error of click's own, such as an unknown option, print as all others do."""
    if not isinstance(error, Failure):
        vars(error)["show"] = lambda file=None: _show_usage(error)
    return error


def _show_usage(error: click.ClickException) -> None:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and context is not None and context.info_name in _TAKES_TEXT:
        message = f"{message.removesuffix('.')}; if it is a text to search for, put -- before it: {_escaped(context)}"
    _show(message[:1].lower() + message[1:].removesuffix(".") if isinstance(error, click.UsageError) else message)
    if context is not None:
        click.echo(f"{context.get_usage()}\nRun `{context.command_path} --help` for all options.", err=True)


def _escaped(context: click.Context) -> str:
    return f"{context.command_path} -- '-TEXT' TABLE"


def _show(message: str) -> None:
    click.echo(f"{click.style('coprlake: error:', fg='red', bold=True)} {harmless(message)}", err=True)


def is_terminal() -> bool:
    """Whether there is a terminal on which to ask."""
    return sys.stdin.isatty()


def note(text: str, *, is_styled: bool = False) -> None:
    """Print a note to stderr; styled text must have been made harmless already."""
    click.echo(text if is_styled else harmless(text), err=True)


def note_once(text: str) -> None:
    """Print a note to stderr, unless this run of a command has done so."""
    if text not in noted():
        noted().add(text)
        note(text)


def noted() -> set[str]:
    """What `note_once` has printed in this run of a command."""
    context = click.get_current_context(silent=True)
    found: set[str] = set() if context is None else context.find_root().meta.setdefault("coprlake.noted", set())
    return found


def warn(text: str) -> None:
    """Print a warning to stderr."""
    click.echo(f"{click.style('coprlake: warning:', fg='yellow', bold=True)} {one_line(text)}", err=True)


def warn_each(texts: Sequence[str], total: int | None = None, more: str = "`coprlake verify` lists them") -> None:
    """Print each distinct warning once, up to a limit: a table without any sidecar must not fill the screen."""
    different = list(dict.fromkeys(texts))
    for text in different[:SHOWN_WARNINGS]:
        warn(text)
    rest = (len(different) if total is None else max(total, len(different))) - SHOWN_WARNINGS
    if rest > 0:
        warn(f"and {rest:,} more; {more}")


def _set_color(ctx: click.Context, _: click.Parameter, when: str | None) -> None:
    if when == "auto" or (when is None and ctx.parent is None):
        ctx.color = False if os.environ.get("NO_COLOR") else None
    elif when is not None:
        ctx.color = when == "always"


def color_option(function: _Function) -> _Function:
    """Add ``--color``, which every command and the program itself accept."""
    return click.option(
        "--color",
        type=NearestChoice(["auto", "always", "never"]),
        expose_value=False,
        callback=_set_color,
        help="When to use colours; auto uses them on a terminal unless NO_COLOR is set.",
    )(function)


def is_colored(*, err: bool = False) -> bool:
    """Whether stdout (or stderr) shows colours."""
    context = click.get_current_context(silent=True)
    if context is not None and context.color is not None:
        return context.color
    return (sys.stderr if err else sys.stdout).isatty()
