"""All commands. Importing this module registers them."""

from coprlake.language.commands import (  # noqa: F401
    combining,
    field_commands,
    groups,
    record_commands,
    sources,
    timeseries,
)
from coprlake.language.commands.registry import COMMANDS

__all__ = ["COMMANDS"]
