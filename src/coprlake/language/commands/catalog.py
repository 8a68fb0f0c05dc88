"""All commands: whoever imports from here has every one of them."""

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
