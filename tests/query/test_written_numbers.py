"""A number is found by a plain search however it is written, and the index rules out no batch that has it."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coprlake import Table, create_table, equals, one_of
from coprlake.predicate.predicates import ANY_VALUE
from coprlake.query.plain_search import other_spellings

FLOATS = st.one_of(
    st.sampled_from([404.0, 1e5, 1e10, 1e17, 1e22, 1e23, 1.5e-7, 1e-5, 0.1, 2.5, -0.0, 5e-324, 2.0**53, 1e300]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(1e-12, 1e12),
)


def _spelled(value: float) -> set[str]:
    """The texts that a log may have for the number."""
    arrow = str(pa.scalar(value).cast(pa.string()))
    found = {repr(value), arrow, json.dumps(value), f"{value:.17e}", f"{value!r}".upper()}
    if 1e-22 < abs(value) < 1e22:
        found.add(f"{Decimal(repr(value)):f}")
    return found


def _table(folder: Path, column: pa.Array) -> Table:
    table = create_table(folder / "table", partition_by=None)
    table.append(pa.table({"content": ["m"] * len(column), "v": column, "id": pa.array(range(len(column)))}))
    return table


def _both(table: Table, sought: Any) -> int:
    count = table.search(sought).count()
    assert table.search(sought, use_sketches=False).count() == count, sought
    return count


@settings(max_examples=5, deadline=None)
@given(values=st.lists(FLOATS, min_size=1, max_size=3))
@example(values=[404.0, 1e5, 1e10, 1.5e-7])
def test_a_float_is_found_however_it_is_written(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    table = _table(tmp_path_factory.mktemp("floats"), pa.array(values))
    for value in values:
        for text in _spelled(value):
            if not text.startswith("-"):  # else a minus excludes
                assert _both(table, text), (text, value)


@settings(max_examples=5, deadline=None)
@given(
    values=st.lists(FLOATS | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3),
    kind=st.sampled_from(["float64", "float32", "int64", "string", "decimal"]),
)
@example(values=[0.1, 2**53 + 1], kind="float32")
@example(values=[1.5, 404], kind="decimal")
@example(values=[0, -0.0], kind="float64")
def test_equal_numbers_are_never_ruled_out(
    tmp_path_factory: pytest.TempPathFactory, values: list[float], kind: str
) -> None:
    """Of any type, also if a float has the nearest value only."""
    if kind == "decimal":
        column = pa.array([Decimal(str(value)) for value in (1.5, 404, 0, -2.25)], pa.decimal128(20, 4))
    elif kind == "string":
        column = pa.array([repr(value) for value in values])
    elif kind == "int64":
        column = pa.array([int(value) for value in values if abs(value) < 2**62], pa.int64())
    else:
        column = pa.array([float(value) for value in values]).cast(kind, safe=False)
    table = _table(tmp_path_factory.mktemp("equal"), column)
    own = [value for value in column.to_pylist() if not isinstance(value, Decimal)]
    for sought in (*values, *map(repr, values), *own):
        found = _both(table, equals(ANY_VALUE, sought))
        assert _both(table, one_of(ANY_VALUE, (sought, "absent"))) == found


def test_an_absent_number_opens_no_batch(tmp_path: Path) -> None:
    table = _table(tmp_path, pa.array([1e10, 2.5, 77.0]))
    for absent in ("98765432101234", "3e45", "0.000000077"):
        search = table.search(absent)
        assert search.count() == 0
        assert search.report.batches_opened == 0, absent


@pytest.mark.parametrize("text", ["404", "404.0", "1.0", "2.50", "10.0.0.1", "abc", "1e", "0x1f", "100000"])
def test_an_ordinary_number_is_nothing_but_its_digits(text: str) -> None:
    assert other_spellings(text) == ()


def test_a_phrase_and_an_address_stay_text(tmp_path: Path) -> None:
    table = _table(tmp_path, pa.array([1e10]))
    assert [table.search(text).count() for text in ("1e10", "10000000000", "1e1*", "-10000000000")] == [1, 1, 0, 0]
