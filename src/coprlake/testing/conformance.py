"""The law of every store: a search returns the same rows as the naive filter, however they were stored.

The ways to store rows are in `coprlake.testing.store_variants`. Run `check_law` and `check_context` on any other way (a
Spark sink, a server). Rows come from `coprlake.testing.predicate_strategies`, each with a unique number (`ID`).
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from coprlake.predicate.predicates import Predicate
from coprlake.records import ATTRIBUTES, DAY, SOURCE, TIMESTAMP
from coprlake.testing.naive_search import matches
from coprlake.testing.predicate_strategies import Row
from coprlake.testing.store_variants import ID, Stored


def plain(row: Row) -> str:
    """A row as text, for counting; without nulls, and without the day, which follows from the time."""
    kept = {name: value for name, value in row.items() if value is not None and name != DAY}
    pairs = sorted(map(tuple, kept.pop(ATTRIBUTES, [])), key=lambda pair: pair[0])  # order matters only within one key
    if pairs:
        kept[ATTRIBUTES] = pairs
    return repr(sorted((name, str(value) if isinstance(value, datetime) else value) for name, value in kept.items()))


def expected_rows(stored: Stored, predicate: Predicate, since: datetime | None, until: datetime | None) -> list[Row]:
    """The naive search: test every row."""
    return [
        row
        for row in stored.rows
        if matches(predicate, row)
        and (since is None or (row[TIMESTAMP] is not None and row[TIMESTAMP] >= since))
        and (until is None or (row[TIMESTAMP] is not None and row[TIMESTAMP] < until))
    ]


def check_law(
    stored: Stored,
    predicate: Predicate,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    threads: int = 1,
    limit: int = 2,
) -> None:
    """Search in all ways and compare with the naive search.

    Raises:
        AssertionError: a row is missing, unexpected, changed, or in the wrong place.
    """
    expected = expected_rows(stored, predicate, since, until)
    counted = Counter(map(plain, expected))
    bounds: dict[str, Any] = {"since": since, "until": until, "threads": threads}
    search = stored.table.search(predicate, **bounds)
    assert Counter(map(plain, search.rows())) == counted
    assert search.report.rows_matched == len(expected)
    assert not search.report.problems or not stored.is_indexed, search.report.problems
    assert search.count() == len(expected)
    for order in ("newest", "oldest"):
        in_order = list(stored.table.search(predicate, order=order, **bounds).rows())
        assert Counter(map(plain, in_order)) == counted, order
        check_sorted([row[TIMESTAMP] for row in in_order], newest_first=order == "newest")
        some = list(stored.table.search(predicate, order=order, limit=limit, **bounds).rows())
        assert [row[TIMESTAMP] for row in some] == [row[TIMESTAMP] for row in in_order[:limit]], order
        assert not Counter(map(plain, some)) - counted, order
    some = list(stored.table.search(predicate, limit=limit, **bounds).rows())
    assert len(some) == min(limit, len(expected))
    assert not Counter(map(plain, some)) - counted
    if stored.rows:
        ids = stored.table.search(predicate, columns=[ID], **bounds).arrow()
        assert ids.schema.names == [ID]
        assert sorted(ids.column(ID).to_pylist()) == sorted(row[ID] for row in expected)


def check_sorted(times: Sequence[datetime | None], *, newest_first: bool) -> None:
    """Check that times are in order, with missing ones at the end."""
    known = [time for time in times if time is not None]
    assert list(times[: len(known)]) == known, "missing times come last"
    assert all(a >= b if newest_first else a <= b for a, b in pairwise(known)), times


def naive_context(rows: Sequence[Row], predicate: Predicate, before: int, after: int) -> Counter[tuple[int, bool]]:
    """The rows of the same source around each match, in their order, each with whether it matched.

    Context is only promised within one segment, so `rows` are those of one segment.
    """
    found: set[tuple[int, bool]] = set()
    for source in {row[SOURCE] for row in rows}:
        own = [row for row in rows if row[SOURCE] == source]
        hits = [matches(predicate, row) for row in own]
        for place, hit in enumerate(hits):
            if hit:
                near = range(max(0, place - before), min(len(own), place + after + 1))
                found |= {(own[other][ID], hits[other]) for other in near}
    return Counter(found)


def check_context(stored: Stored, predicate: Predicate, before: int, after: int, *, threads: int = 1) -> None:
    """Compare the context of matches with the naive one; `stored.segments` says which rows share a segment.

    A row may be shown twice, in the context of matches in two batches, and is a match in both or in neither.

    Raises:
        AssertionError: a row is missing, unexpected or wrongly marked as a match or not, or a group is out of order.
    """
    by_id = {row[ID]: row for row in stored.rows}
    expected: Counter[tuple[int, bool]] = Counter()
    for ids in stored.segments:
        expected += naive_context([by_id[number] for number in ids], predicate, before, after)
    found = list(stored.table.search(predicate, context=(before, after), threads=threads).rows())
    assert {(row[ID], row["match"]) for row in found} == set(expected)
    groups: dict[int, list[Row]] = {}
    for row in found:
        groups.setdefault(row["group"], []).append(row)
    for group in groups.values():
        assert len({row[SOURCE] for row in group}) == 1, "a group is of one source"
        numbers = [row[ID] for row in group]
        assert numbers == sorted(set(numbers)), "a group is in order, and has each row once"
        assert any(row["match"] for row in group)
