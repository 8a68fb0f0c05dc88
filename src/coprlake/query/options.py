"""The options of a search."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from coprlake.errors import UsageError
from coprlake.query.context import Context
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
        if self.limit is not None and self.limit < 0:
            raise UsageError(f"the limit is {self.limit}; expected 0 or more")
        if self.columns is not None and len(set(self.columns)) != len(self.columns):
            raise UsageError(f"a column is named twice: {', '.join(self.columns)}")
        if self.columns is not None and not self.columns:
            raise UsageError("no columns are named; omit the option to get all")
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"the number of threads is {self.threads}; expected 1 or more")
