"""A field whose values have different types loses none of them in an answer."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings

import coprlake
from tests.language.mixed_types import BIG, BOUNDS, FILES, check, equals, is_more, new_table, numbered


@pytest.mark.slow
@given(files=FILES)
@example(files=[[3, 7, BIG], [2.5, 404.0, 1e17], ["abc", "12", True]])
@example(files=[[2.5], [BIG, 3]])
@example(files=[[True], ["abc"], [3]])
@settings(max_examples=12, deadline=None)
def test_a_query_finds_every_value_of_any_type(files: list[list[Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = new_table(Path(folder), files)
        check(numbered(files), lambda text: table.query(text).rows())
        for sidecar in (Path(folder) / "table").rglob("*.copr"):
            sidecar.unlink()
        unindexed = coprlake.open_table(Path(folder) / "table")
        check(numbered(files), lambda text: unindexed.query(text).rows())


@given(files=FILES)
@example(files=[[3, 7, BIG], [2.5, 404.0, 1e17], ["abc", "12", True]])
@settings(max_examples=20, deadline=None)
@pytest.mark.filterwarnings("ignore::coprlake.errors.SearchWarning")
def test_a_search_finds_every_value_of_any_type(files: list[list[Any]]) -> None:
    values = numbered(files)
    with tempfile.TemporaryDirectory() as folder:
        table = new_table(Path(folder), files)

        def ids(text: str) -> list[int]:
            return sorted(key for batch in table.search(text) for key in batch["id"].to_pylist())

        for sought in (*BOUNDS, "abc"):
            assert ids(f"v:{sought}") == [key for key, value in values.items() if equals(value, sought)], sought
        for bound in BOUNDS:
            assert ids(f"v:>{bound}") == [key for key, value in values.items() if is_more(value, bound)], bound
        assert ids("v:*") == [key for key, value in values.items() if value is not None]


def test_a_mixed_field_is_text_that_counts_as_a_number(tmp_path: Path) -> None:
    table = new_table(tmp_path, [[3, BIG], [2.5], ["abc"]])
    assert [row["v"] for row in table.query("fetch logs | sort id | fields v")] == ["3", str(BIG), "2.5", "abc"]
    assert [row["v"] for row in table.query("fetch logs | sort v | fields v")] == ["2.5", "3", str(BIG), "abc"]
    assert [row["data_types"] for row in table.query('describe logs | filter field == "v"')] == [["string"]]
    assert list(table.query("fetch logs | filter v < 3 | fields x = v + 1")) == [{"x": 3.5}]


def test_a_field_of_one_type_keeps_it(tmp_path: Path) -> None:
    table = new_table(tmp_path, [[3], [BIG]])
    assert list(table.query("fetch logs | summarize s = sum(v)")) == [{"s": BIG + 3}]
    (tmp_path / "doubles").mkdir()
    table = new_table(tmp_path / "doubles", [[2.5], [3]])
    assert [row["v"] for row in table.query("fetch logs | sort id | fields v")] == [2.5, 3.0]


def test_records_that_are_not_committed_count(tmp_path: Path) -> None:
    table = new_table(tmp_path, [[3]])
    with table.writer() as writer:
        writer.append([{"content": "m", "id": 1, "v": "abc"}])
        assert [row["v"] for row in table.query("fetch logs | sort id | fields v")] == ["3", "abc"]
