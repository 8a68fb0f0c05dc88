"""What is said beside the results: errors, warnings and notes on stderr, and whether in colour."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from coprlake.cli.printing.harmless import harmless, one_line

SHOWN_WARNINGS = 10

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Failure(click.ClickException):
    """The command could not do what was asked."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print it."""
        click.echo(
            f"{click.style('coprlake: error:', fg='red', bold=True)} {harmless(self.format_message())}", err=True
        )


def note(text: str, *, is_styled: bool = False) -> None:
    """Say something to whoever sits before the screen; text that is styled has been made harmless before."""
    click.echo(text if is_styled else harmless(text), err=True)


def warn(text: str) -> None:
    """Say what is wrong without being fatal."""
    click.echo(f"{click.style('coprlake: warning:', fg='yellow', bold=True)} {one_line(text)}", err=True)


def warn_each(texts: Sequence[str], total: int | None = None, more: str = "`coprlake verify` lists them") -> None:
    """Warn of each, once; a table without any sidecar shall not fill the screen."""
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
    """``--color``, on every command and on the program itself."""
    return click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        callback=_set_color,
        help="Colour the output; auto does on a terminal unless NO_COLOR is set.",
    )(function)


def is_colored(*, err: bool = False) -> bool:
    """Whether what goes to stdout (or stderr) has colours."""
    context = click.get_current_context(silent=True)
    if context is not None and context.color is not None:
        return context.color
    return (sys.stderr if err else sys.stdout).isatty()
