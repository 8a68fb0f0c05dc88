"""Fixtures for tests of the command line."""

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from coprlake.cli.main import cli


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of whoever runs the tests changes what a command does."""
    for name in ("COPRLAKE_TABLE", "COPRLAKE_DEBUG", "COPRLAKE_MASTER", "NO_COLOR", "COPRLAKE_PAGER", "PAGER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(clean_environment: None) -> Callable[..., Result]:
    """Run the program in this process: ``run("search", "text", table)``."""
    return lambda *arguments, **options: CliRunner().invoke(cli, [str(argument) for argument in arguments], **options)
