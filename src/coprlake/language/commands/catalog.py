"""All commands: whoever imports from here has every one of them."""

from coprlake.language.commands import combining, fields, groups, records, sources, timeseries  # noqa: F401
from coprlake.language.commands.registry import COMMANDS

__all__ = ["COMMANDS"]
