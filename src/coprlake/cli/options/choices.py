"""Options that take one of a few names, and that suggest the nearest one for a misspelt name."""

from typing import Any

import click

from coprlake.text.nearest_words import nearest


class NearestChoice(click.Choice[str]):
    """A choice whose error names the nearest of its names."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name, or fail."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = nearest(str(value), self.choices)
            if near is None:
                raise
            raise click.BadParameter(f"{error.message} Did you mean {near!r}?", ctx, param) from error
