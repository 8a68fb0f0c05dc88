"""What a predicate says about an answer: that it decides it, or only that nothing else can belong to it.

A bare predicate is a question to a record. Whoever makes one for somebody else to read by says with it how far it goes.
An exact predicate is necessary, too; a necessary one is never exact, and nothing here makes it so.
"""

from dataclasses import dataclass

from coprlake.errors import UsageError
from coprlake.predicate.predicates import EVERYTHING, Combinable, Predicate


@dataclass(frozen=True, slots=True)
class Necessary:
    """Every record of the answer matches the predicate; other records may match it, too.

    It may leave records out. It may not let them in: whoever reads by it has to decide for each record that is left.
    """

    predicate: Predicate = EVERYTHING

    def __post_init__(self) -> None:
        _check(self.predicate)


@dataclass(frozen=True, slots=True)
class Exact:
    """The records that match the predicate are the answer, no more and no fewer."""

    predicate: Predicate = EVERYTHING

    def __post_init__(self) -> None:
        _check(self.predicate)

    @property
    def necessary(self) -> Necessary:
        """What decides also narrows."""
        return Necessary(self.predicate)


def _check(predicate: object) -> None:
    if not isinstance(predicate, Combinable):
        raise UsageError(f"expected a predicate, found {predicate!r}")
