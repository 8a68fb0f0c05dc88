"""Options that have been renamed: the old name still works, with a warning."""

import functools
from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from coprlake.cli.printing.notices import warn


def renamed_option(old: str, new: str, kind: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Accept `old` as a hidden name of the option `new`, and warn whoever uses it.

    Args:
        old: the former name, such as ``--level``.
        new: the option that has taken its place, such as ``--compression``.
        kind: the type of the value, the same as that of `new`.
    """
    old_parameter, parameter = f"old_{_parameter(old)}", _parameter(new)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def with_old_name(*arguments: Any, **given: Any) -> Any:
            value = given.pop(old_parameter)
            if value is not None:
                source = click.get_current_context().get_parameter_source(parameter)
                if source == ParameterSource.COMMANDLINE:
                    raise click.UsageError(f"{old} is the old name of {new}; give only {new}")
                warn(f"{old} has been renamed to {new}; a later release will not accept the old name")
                given[parameter] = value
            return function(*arguments, **given)

        return click.option(old, old_parameter, type=kind, default=None, hidden=True)(with_old_name)

    return decorate


def _parameter(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")
