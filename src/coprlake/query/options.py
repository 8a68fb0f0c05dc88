"""The options of a search."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from coprlake.errors import UsageError
from coprlake.query.context import Context, is_count
from coprlake.query.ordering import ORDERS, Order
from coprlake.query.planning import FOREVER
from coprlake.records import TIMESTAMP
from coprlake.segment.searchable import Searchable
from coprlake.text.nearest_words import hint


@dataclass(slots=True)
class SearchOptions:
    """The options of a search.

    Attributes:
        since: only records from this time on, in microseconds since 1970.
        until: only records before this time.
        columns: the columns to return; None for all except the day.
        order: ``any`` is the fastest; ``newest`` and ``oldest`` sort by time, and still return first results early.
        limit: the maximum number of matches.
        context: records of the same source to return before and after each match.
        threads: the number of batches to open in parallel; None for the number of cores.
        strict: whether a damaged segment ends the search; otherwise the report names it.
        use_sketches: False to prune only by time and partition; the result is the same.
        time_column: the column that `since`, `until` and `order` refer to.
        skips: says of a segment and a batch of it that its matches are not wanted any more.
    """

    since: int = FOREVER[0]
    until: int = FOREVER[1]
    columns: tuple[str, ...] | None = None
    order: Order = "any"
    limit: int | None = None
    context: Context = field(default_factory=Context)
    threads: int | None = None
    strict: bool = False
    use_sketches: bool = True
    time_column: str = TIMESTAMP
    skips: Callable[[Searchable, int], bool] | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether the search has a time range."""
        return (self.since, self.until) != FOREVER

    def differences(self) -> dict[str, Any]:
        """The options that are not as usual, with times that people can read."""
        usual = SearchOptions()
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        changed = {name: value for name, value in given.items() if value != getattr(usual, name)}
        times = {name: f"{np.datetime64(changed[name], 'us')}Z" for name in ("since", "until") if name in changed}
        return changed | times

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            known = hint(str(self.order), ORDERS) or f"; expected one of {', '.join(ORDERS)}"
            raise UsageError(f"unknown order {self.order!r}{known}")
        if self.limit is not None and not is_count(self.limit):
            raise UsageError(f"the limit is {self.limit!r}; expected a whole number, 0 or more")
        if self.columns is not None and len(set(self.columns)) != len(self.columns):
            raise UsageError(f"a column is named twice: {', '.join(self.columns)}")
        if self.columns is not None and not self.columns:
            raise UsageError("no columns are named; omit the option to get all")
        if self.threads is not None and not is_count(self.threads, least=1):
            raise UsageError(f"the number of threads is {self.threads!r}; expected a whole number, 1 or more")


def columns_of(given: Any) -> tuple[str, ...] | None:
    """The names of columns that a caller asks for, None for all of them.

    Raises:
        UsageError: these are not names.
    """
    if given is None:
        return None
    names = () if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if isinstance(given, str) or not isinstance(given, Iterable) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"expected a list of names of columns, such as ['timestamp', 'content'], found {given!r}")
    return names
