"""`field:value` finds an element of a list, wherever the list is stored."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coprlake import Table, create_table

SCALARS = st.sampled_from(
    ["b3", "B3", "xb3", "a,3,b", 'x","b3","y', "3", "\\", "ü", "two words", "", 3, 3.0, 4, 1e10, 2.5, True, None]
)
VALUES = (
    st.lists(SCALARS | st.lists(SCALARS, max_size=2) | st.fixed_dictionaries({"b3": SCALARS}), max_size=3) | SCALARS
)
SOUGHT = ("b3", "3", "3.0", "10000000000", "two words", "ü", "true", "x", "\\", "a,3,b")


def _elements(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for inner in value:
            yield from _elements(inner)
    elif not isinstance(value, dict):
        yield value


def _is_equal(value: Any, sought: str) -> bool:
    if isinstance(value, str):
        return value.lower() == sought.lower()
    if isinstance(value, bool) or value is None:
        return json.dumps(value) == sought and value is not None
    try:
        return float(sought) == value
    except ValueError:
        return False


def _ids(table: Table, text: str) -> list[int]:
    return sorted(key for batch in table.search(text) for key in batch["id"].to_pylist())


def _written(text: str) -> str:
    return f"user.tags:{json.dumps(text, ensure_ascii=False)}"


@settings(max_examples=15, deadline=None)
@given(values=st.lists(VALUES, min_size=1, max_size=5))
@example(values=["b3", ["b1", "b3"], ["a,3,b"], [3, 4], [[1, 3], ["b3"]], ['x","b3","y'], [{"b3": 1}]])
@pytest.mark.filterwarnings("ignore::coprlake.errors.SearchWarning")
def test_an_element_of_a_list_in_json_is_found(tmp_path_factory: pytest.TempPathFactory, values: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("lists")
    values = ["first", *values]  # so that the column is text
    lines = [json.dumps({"msg": "m", "id": n, "user": {"tags": value}}) for n, value in enumerate(values)]
    (folder / "log.json").write_text("".join(f"{line}\n" for line in lines))
    table = create_table(folder / "table")
    table.ingest(folder / "log.json")
    for sought in SOUGHT:
        expected = [n for n, value in enumerate(values) if any(_is_equal(inner, sought) for inner in _elements(value))]
        found = _ids(table, _written(sought))
        # a number in a column of text is compared as it is written
        numbers = [n for n, value in enumerate(values) if isinstance(value, int | float)]
        assert [n for n in found if n not in numbers] == [n for n in expected if n not in numbers], sought


def test_an_element_of_a_list_column_is_found(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    user = [{"tags": ["b1", "b3"], "sizes": [[3], [4, 5]]}, {"tags": ["xb3"], "sizes": [[], [3]]}, None]
    table.append(pa.table({"content": ["m"] * 3, "id": [0, 1, 2], "user": pa.array(user)}))
    assert _ids(table, "user.tags:b3") == [0]
    assert _ids(table, "user.sizes:3") == [0, 1]
    assert _ids(table, "user.sizes:>4") == [0]
    assert _ids(table, "-user.tags:b3") == [1, 2]


def test_an_absent_element_opens_no_batch(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text('{"msg": "m", "id": 1, "tags": ["alpha", "beta"]}\n')
    table = create_table(tmp_path / "table")
    table.ingest(tmp_path / "log.json")
    search = table.search("tags:gamma")
    assert search.count() == 0
    assert search.report.batches_opened == 0
    assert table.search("tags:alpha").count() == 1
