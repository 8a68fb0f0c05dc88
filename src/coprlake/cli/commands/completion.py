"""``coprlake completion``: let the shell complete commands and options."""

import os
import sys
from pathlib import Path

import click

from coprlake.cli.printing.notices import note

_SHELLS = ("bash", "zsh", "fish")
_PLACES = {
    "bash": "coprlake completion bash > ~/.local/share/bash-completion/completions/coprlake",
    "zsh": "echo 'eval \"$(coprlake completion zsh)\"' >> ~/.zshrc",
    "fish": "coprlake completion fish > ~/.config/fish/completions/coprlake.fish",
}


@click.command(
    short_help="Let the shell complete commands and options.",
    epilog="\b\nTo have it in every new shell:\n" + "\n".join(f"  {shell}:  {line}" for shell, line in _PLACES.items()),
)
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print what the shell has to run, so that Tab completes commands, options and paths.

    Without SHELL it is the one in $SHELL.
    """
    from click.shell_completion import get_completion_class

    from coprlake.cli.main import cli

    shell = shell or Path(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        raise click.UsageError(f"which shell? Name one of {', '.join(_SHELLS)}")
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "coprlake", "_COPRLAKE_COMPLETE").source())
    if sys.stdout.isatty():
        note(f"to have it in every new shell:\n  {_PLACES[shell]}")
