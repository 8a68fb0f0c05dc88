"""The commands of the language in the order in which the shell tells of them."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from coprlake.language.commands.registry import CommandInfo

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\.md[^)]*\)")
_FIRST: Final[tuple[str, ...]] = (
    "fetch",
    "data",
    "describe",
    "filter",
    "filterOut",
    "search",
    "parse",
    "fields",
    "fieldsAdd",
    "fieldsKeep",
    "fieldsRemove",
    "fieldsRename",
    "summarize",
    "makeTimeseries",
    "sort",
    "limit",
)
"""As they are needed; all others come behind."""
_REFUSED: Final = frozenset({"bucket", "samplingRatio", "scanLimitGBytes", "spread", "scope"})
"""Parameters that the language knows only to say that they do nothing here."""


@lru_cache(maxsize=1)
def commands() -> "dict[str, CommandInfo]":
    """All commands by their names as they are written."""
    from coprlake.language.commands.catalog import COMMANDS

    found = {info.name: info for info in COMMANDS.values()}
    first = {name: found[name] for name in _FIRST if name in found}
    return {**first, **found}


def sources() -> list[str]:
    """The commands that a query begins with."""
    return [name for name, info in commands().items() if info.is_source]


def parameters(command: str) -> list[str]:
    """What may be given to a command by name, and does something."""
    info = commands().get(command)
    return [] if info is None else [name for name in info.parameters if name not in _REFUSED]


def plain(text: str) -> str:
    """A text of the reference without its marks and links."""
    return _LINK.sub(lambda found: found[1], text).replace("`", "")


def brief(text: str) -> str:
    """Its first sentence."""
    first, stop, _ = plain(text).partition(". ")
    return first + ("." if stop else "")
