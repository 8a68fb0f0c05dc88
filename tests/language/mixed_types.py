"""Records whose field `v` has values of different types, and the answers to queries and searches, in plain Python."""

import json
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import coprlake
from coprlake import Table
from coprlake.predicate.values import spellings
from coprlake.testing.naive_search import NUMBER

BIG = 2**53 + 1
_NUMBERS = st.sampled_from([0, 1, 3, 404, -7, BIG, BIG - 2, -BIG, 10**17, 2.5, 404.0, 3.0, -0.5, 1.5e-7, 1e17, 1e300])
_OTHERS = st.sampled_from(["abc", "12", "404.0", "0404", "1e3", "", "true", str(BIG), True, False, None])

FILES = st.builds(
    lambda first, rest: [[first, *rest[0]], *rest[1:]],
    st.sampled_from([3, 2.5, BIG, True]),
    st.lists(st.lists(_NUMBERS | _OTHERS, max_size=4), min_size=1, max_size=4),
)
"""The values of each file. The first one of all gives the column its type: not text, for that is text ever after."""

BOUNDS = (0, 3, 404, -7, BIG - 1, BIG, 10**17, 2.5, 1.5e-7)
TEXTS = ("abc", "0404")


def new_table(folder: Path, files: list[list[Any]]) -> Table:
    """A table of one ingest for each file; `id` numbers the records."""
    table = coprlake.create_table(folder / "table")
    number = 0
    for place, values in enumerate(files):
        lines = []
        for value in values:
            lines.append(json.dumps({"time": "2026-01-01T00:00:00Z", "msg": "m", "id": number, "v": value}))
            number += 1
        path = folder / f"{place}.json"
        path.write_text("".join(f"{line}\n" for line in lines))
        table.ingest(path)
    return table


def numbered(files: list[list[Any]]) -> dict[int, Any]:
    """The values by the number of their record."""
    return dict(enumerate(value for values in files for value in values))


def number(value: Any) -> int | float | None:
    """The number that a value is, or spells."""
    if isinstance(value, str) and NUMBER.fullmatch(value):
        return int(value) if value.lstrip("+-").isdigit() else float(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def equals(value: Any, sought: int | float | str) -> bool:
    """Whether a value equals a number, by value or as it is written, or a text."""
    if isinstance(value, str) or isinstance(sought, str):
        return value == sought if isinstance(sought, str) else value in spellings(sought)
    return number(value) is not None and value == sought


def is_more(value: Any, bound: int | float) -> bool:
    """Whether a value is, or spells, a number that is more than this."""
    own = number(value)
    return own is not None and own > bound


def check(values: dict[int, Any], query: Callable[[str], Iterator[dict[str, Any]]]) -> None:
    """Compare what a query answers with what it should."""

    def ids(condition: str) -> list[int]:
        return sorted(row["id"] for row in query(f"fetch logs | filter {condition} | fields id"))

    numbers = [float(own) for value in values.values() if (own := number(value)) is not None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", coprlake.errors.SearchWarning)  # a text and a number may not be comparable
        (row,) = query("fetch logs | summarize c = countIf(isNotNull(v)), n = count()")
        assert (row["c"], row["n"]) == (sum(value is not None for value in values.values()), len(values))
        if not all(isinstance(value, bool | None) for value in values.values()):  # else there is nothing to add
            (row,) = query("fetch logs | summarize s = sum(v), a = avg(v)")
            assert math.isclose(row["s"], math.fsum(numbers), rel_tol=1e-9, abs_tol=1e-6), row
            assert math.isclose(row["a"], math.fsum(numbers) / len(numbers), rel_tol=1e-9, abs_tol=1e-6), row
            for bound in BOUNDS:
                assert ids(f"v == {bound}") == [key for key, value in values.items() if _is(value, bound)], bound
                assert ids(f"v > {bound}") == [key for key, value in values.items() if is_more(value, bound)], bound
        for text in TEXTS:
            assert ids(f'v == "{text}"') == [key for key, value in values.items() if value == text], text


def _is(value: Any, sought: int | float) -> bool:
    """A fraction is compared by value, also with text; see the table in docs/language.md."""
    return number(value) == sought if isinstance(sought, float) else equals(value, sought)
