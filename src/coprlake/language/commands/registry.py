"""Commands: their syntax, their handlers and their entries in the reference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from coprlake.language.functions.registry import Example
from coprlake.language.syntax import Command

if TYPE_CHECKING:
    from coprlake.language.commands.pipeline import Pipeline
    from coprlake.language.scope import Scope

    Handler: TypeAlias = Callable[["Pipeline", Command, "Scope"], "Scope"]


@dataclass(frozen=True)
class CommandInfo:
    """A command of the language.

    Attributes:
        name: its name; case does not matter.
        synopsis: how it is used.
        doc: what it does.
        handler: takes the scope of the previous command and returns that for the next.
        parameters: the names of its named arguments.
        is_source: whether it starts a query.
        examples: run by the tests on both engines.
    """

    name: str
    synopsis: str
    doc: str
    handler: "Handler"
    parameters: tuple[str, ...]
    is_source: bool
    examples: tuple[Example, ...]


COMMANDS: Final[dict[str, CommandInfo]] = {}
"""All commands, by their names in lower case."""


def command(
    name: str,
    synopsis: str,
    doc: str,
    *,
    parameters: tuple[str, ...] = (),
    source: bool = False,
    example: str = "",
    gives: Sequence[dict[str, Any]] = (),
) -> Callable[["Handler"], "Handler"]:
    """Register a command; see `CommandInfo`."""

    def put(handler: "Handler") -> "Handler":
        examples = (Example(example, tuple(gives)),) if example else ()
        COMMANDS[name.lower()] = CommandInfo(name, synopsis, doc, handler, parameters, source, examples)
        return handler

    return put
