"""One level of a SELECT while it is built: what it reads, which columns it has, how its rows are sorted."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from coprlake.language.plan import Column

_UNFIT = re.compile("[^a-z0-9_]+")
_LONGEST_NAME: Final = 40


class Names:
    """Gives every column of a query a name of its own: readable, and without any sign or case that could mean more."""

    def __init__(self) -> None:
        self._names: dict[Column, str] = {}
        self._taken: set[str] = set()

    def of(self, column: Column) -> str:
        """The name of a column."""
        found = self._names.get(column)
        if found is None:
            found = self._names[column] = self.fresh(column.hint)
        return found

    def fresh(self, hint: str) -> str:
        """A name that nothing else has."""
        base = _UNFIT.sub("_", hint.lower()).strip("_")[:_LONGEST_NAME] or "c"
        base = base if base[0].isalpha() else f"c_{base}"
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name


def identifier(name: str) -> exp.Expression:
    """A column by its name."""
    return exp.Column(this=exp.to_identifier(name, quoted=True))


@dataclass
class Relation:
    """A SELECT whose list of columns is still open.

    Attributes:
        select: FROM, WHERE and so on.
        columns: what each column is at this level.
        order: what the rows are sorted by: expressions at this level, and whether the greatest comes first.
        is_closed: whether WHERE can no longer be added, because of a LIMIT or a window.
    """

    select: exp.Select
    columns: dict[Column, exp.Expression]
    order: list[tuple[exp.Expression, bool]] = field(default_factory=list)
    is_closed: bool = False

    def get(self, column: Column) -> exp.Expression:
        """A column as an expression at this level."""
        return self.columns[column].copy()

    def is_plain(self, columns: Iterable[Column]) -> bool:
        """Whether these columns cost nothing to name twice."""
        return all(isinstance(self.columns[column], exp.Column | exp.Literal | exp.Null) for column in columns)

    def finished(
        self, names: Names, columns: Sequence[Column], *, keeps_order: bool = True, sorted_: bool = False
    ) -> tuple[exp.Select, list[tuple[exp.Expression, bool]]]:
        """The SELECT of these columns, and what an outer level sorts by."""
        projections = [exp.alias_(self.get(column), names.of(column), quoted=True) for column in columns]
        order: list[tuple[exp.Expression, bool]] = []
        for key, descends in self.order if keeps_order else ():
            name = names.fresh("sort_key")
            projections.append(exp.alias_(key.copy(), name, quoted=True))
            order.append((identifier(name), descends))
        if not projections:
            projections = [exp.alias_(exp.Literal.number(1), names.fresh("nothing"), quoted=True)]
        select = self.select.select(*projections, append=False, copy=False)
        return (ordered(select, self.order) if sorted_ else select), order

    def wrapped(self, names: Names, columns: Sequence[Column], *, keeps_order: bool = True) -> "Relation":
        """The same rows one level further out, where each column is just a name."""
        inner, order = self.finished(names, columns, keeps_order=keeps_order)
        return of_select(inner, names, columns, order)


def ordered(select: exp.Select, order: Sequence[tuple[exp.Expression, bool]]) -> exp.Select:
    """With ORDER BY; null comes last both ways."""
    keys = [exp.Ordered(this=key.copy(), desc=descends, nulls_first=False) for key, descends in order]
    return select.order_by(*keys, append=False, copy=False) if keys else select


def of_select(
    inner: exp.Expression,
    names: Names,
    columns: Iterable[Column],
    order: list[tuple[exp.Expression, bool]] | None = None,
) -> Relation:
    """What reads from a SELECT."""
    table = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(names.fresh("t"), quoted=True)))
    plain = {column: identifier(names.of(column)) for column in columns}
    return Relation(exp.Select().from_(table, copy=False), plain, order or [])
