"""An argument of a wrong type is an error of ours that says what is expected, not a TypeError from deep inside."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import coprlake
from coprlake import ALL_FIELDS, Table, contains, create_table
from coprlake.errors import UsageError

X: Any = "x"
FIVE: Any = 5
NOTHING: Any = None
FRACTION: Any = 1.5
THREE: Any = (1, 2, 3)

CALLS: dict[str, tuple[Callable[[Table], Any], str]] = {
    "limit": (lambda table: table.search("a", limit=X), "the limit is 'x'; expected a whole number, 0 or more"),
    "fraction": (lambda table: table.search("a", limit=FRACTION), "the limit is 1.5"),
    "threads": (lambda table: table.search("a", threads=X), "the number of threads is 'x'; expected a whole number"),
    "context": (lambda table: table.search("a", context=X), "the context is 'x'; expected a whole number, 0 or more"),
    "three contexts": (lambda table: table.search("a", context=THREE), "or a pair of them"),
    "columns": (lambda table: table.search("a", columns=FIVE), "expected a list of names of columns"),
    "a column": (lambda table: table.search("a", columns="content"), "expected a list of names of columns"),
    "ingest": (lambda table: table.ingest(5), "cannot read 5; expected the path of a file or a folder"),
    "ingest a list": (lambda table: table.ingest([5]), "cannot read 5"),
    "ingest bytes": (lambda table: table.ingest(b"x"), "cannot read b'x'"),
    "into": (lambda table: coprlake.ingest(__file__, into=5), "cannot ingest into 5; expected a table, or the path"),
    "segment": (lambda table: table.ingest(__file__, segment_bytes=X), "segment_bytes is 'x'; expected a number of"),
    "open": (lambda table: coprlake.open_table(FIVE), "expected the path of a folder as a text or a Path, found 5"),
    "open nothing": (lambda table: coprlake.open_table(NOTHING), "found None"),
    "create": (lambda table: create_table(FIVE), "expected the path of a folder"),
    "partitions": (lambda table: create_table("x", partition_by=FIVE), "expected a list of names of columns"),
    "limits": (lambda table: table.query("fetch logs", limits=FIVE), "expected limits such as Limits(rows=1000"),
    "variables": (lambda table: table.query("fetch logs", variables=FIVE), "expected variables as a dict"),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_a_wrong_type_is_named(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, message = CALLS[name]
    with pytest.raises(UsageError) as caught:
        call(create_table(tmp_path / "table"))
    assert message in str(caught.value)


def test_a_field_may_be_called_star(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    table.append([{"content": "alpha", "*": "beta"}, {"content": "beta", "*": "gamma"}])
    assert [row["*"] for row in table.search(contains("beta", "*")).rows()] == ["beta"]
    assert table.search(contains("beta", ALL_FIELDS)).count() == 2
    assert [str(contains("x", "*")), str(contains("x", ALL_FIELDS))] == ['contains("*", "x")', 'contains(*, "x")']


def test_a_star_means_all_fields_of_a_table_without_such_a_column(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    table.append([{"content": "alpha", "user": "beta"}])
    assert table.search(contains("beta", "*")).count() == 1
