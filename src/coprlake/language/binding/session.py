"""What a query knows besides its text, and how it reports problems."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from coprlake.errors import QueryError
from coprlake.language.syntax import Span


@dataclass
class QuerySession:
    """What a query knows besides its text.

    Attributes:
        text: the query.
        now: the time at its start, in microseconds.
        variables: the values of ``$names``.
        warnings: what the user should be told, though the query runs.
        keys_of: finds the attributes of a table, as `Tables.keys`.
    """

    text: str
    now: int
    variables: Mapping[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    keys_of: Callable[[str], frozenset[str] | None] = lambda _: None

    def fail(self, problem: str, span: Span) -> NoReturn:
        """Reject the query, and point at the place."""
        raise QueryError(problem, self.text, span.start, span.end)

    def warn(self, message: str) -> None:
        """Tell the user once."""
        if message not in self.warnings:
            self.warnings.append(message)
