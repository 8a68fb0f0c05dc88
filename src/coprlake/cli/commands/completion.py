"""``coprlake completion``: tab completion for the shell."""

import os
import sys
from pathlib import Path

import click

from coprlake.cli.options.choices import NearestChoice
from coprlake.cli.printing.notices import note

_SHELLS = ("bash", "zsh", "fish")
_PLACES = {
    "bash": "coprlake completion bash > ~/.local/share/bash-completion/completions/coprlake",
    "zsh": "echo 'eval \"$(coprlake completion zsh)\"' >> ~/.zshrc",
    "fish": "coprlake completion fish > ~/.config/fish/completions/coprlake.fish",
}


@click.command(
    short_help="Print the script for tab completion in your shell.",
    epilog="\b\nTo enable it in every new shell:\n"
    + "\n".join(f"  {shell}:  {line}" for shell, line in _PLACES.items()),
)
@click.argument("shell", type=NearestChoice(_SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print a script that makes Tab complete commands, options and paths in your shell.

    SHELL defaults to the environment variable $SHELL.
    """
    from click.shell_completion import get_completion_class

    from coprlake.cli.main import cli

    shell = shell or Path(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        raise click.UsageError(f"cannot tell which shell you use; name one of {', '.join(_SHELLS)}")
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "coprlake", "_COPRLAKE_COMPLETE").source())
    if sys.stdout.isatty():
        note(f"to enable it in every new shell:\n  {_PLACES[shell]}")
