"""Whether a predicate decides the answer, or only narrows it.

A bare predicate does not say which. Code that hands a predicate to a reader wraps it in one of these two types. An
exact predicate is also necessary; a necessary one is never exact, and nothing here converts it.
"""

from dataclasses import dataclass

from coprlake.errors import UsageError
from coprlake.predicate.predicates import EVERYTHING, Combinable, Predicate


@dataclass(frozen=True, slots=True)
class Necessary:
    """Every record of the answer matches the predicate; other records may match it too.

    A reader may skip records that do not match. It must still decide about each record that does.
    """

    predicate: Predicate = EVERYTHING

    def __post_init__(self) -> None:
        _check(self.predicate)


@dataclass(frozen=True, slots=True)
class Exact:
    """The answer is exactly the records that match the predicate."""

    predicate: Predicate = EVERYTHING

    def __post_init__(self) -> None:
        _check(self.predicate)

    @property
    def necessary(self) -> Necessary:
        """The same predicate as a `Necessary`: what decides also narrows."""
        return Necessary(self.predicate)


def _check(predicate: object) -> None:
    if not isinstance(predicate, Combinable):
        raise UsageError(f"expected a predicate, found {predicate!r}")
