"""Options that take one of a few names, and that suggest the nearest one for a misspelt name."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from coprlake.text.nearest_words import nearest


class NearestChoice(click.Choice[str]):
    """A choice whose error suggests the nearest of its names.

    Args:
        choices: the names.
        others: what people call them elsewhere.
    """

    def __init__(self, choices: Iterable[str], others: Mapping[str, str] | None = None) -> None:
        super().__init__(list(choices))
        self._others = dict(others or {})

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name, or fail."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = nearest(str(value), [*self.choices, *self._others])
            if near is None:
                raise
            meant = self._others.get(near, near)
            raise click.BadParameter(f"{error.message} Did you mean {meant!r}?", ctx, param) from error
