"""Searches and queries give their results out in the same ways."""

import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pytest

from coprlake import NotFoundError, Query, Search, Table, contains, create_table

RECORDS = [{"id": n, "content": f"line {n} of c{n % 5}", "attributes": {"user": f"u{n}"}} for n in range(100)]
IDS = list(range(3, 100, 5))
Ask = Callable[[Table], Search | Query]


def search(table: Table) -> Search:
    return table.search(contains("c3"), columns=["id", "content"])


def query(table: Table) -> Query:
    return table.query('fetch logs | filter contains(content, "c3") | fields id, content')


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = create_table(tmp_path / "t", partition_by=None)
    table.append(RECORDS)
    return table


@pytest.mark.parametrize("ask", [search, query])
def test_results_in_every_form(table: Table, ask: Ask) -> None:
    results = ask(table)
    arrow = results.arrow()
    assert isinstance(arrow, pa.Table)
    assert arrow.schema == results.schema
    assert sorted(arrow.column("id").to_pylist()) == IDS
    assert sorted(results.pandas()["id"]) == IDS
    frame = results.polars()
    assert isinstance(frame, polars.DataFrame)
    assert sorted(frame["id"]) == IDS
    assert sorted(row["id"] for row in results.rows()) == IDS
    batches = list(results.batches())
    assert all(isinstance(batch, pa.RecordBatch) and batch.schema == results.schema for batch in batches)
    assert sorted(number for batch in batches for number in batch.column("id").to_pylist()) == IDS
    assert sorted(results.reader().read_all().column("id").to_pylist()) == IDS


@pytest.mark.parametrize("ask", [search, query])
def test_whoever_reads_arrow_streams_reads_results(table: Table, ask: Ask, tmp_path: Path) -> None:
    assert pa.table(ask(table)).num_rows == len(IDS)
    assert len(polars.DataFrame(ask(table))) == len(IDS)
    found = ask(table)  # by its name in the SQL
    with duckdb.connect() as connection:
        assert connection.sql("select count(*), max(id) from found").fetchall() == [(len(IDS), max(IDS))]
    assert found.schema.names == ["id", "content"]
    copy = create_table(tmp_path / "copy", partition_by=None)
    assert copy.append(ask(table)).row_count == len(IDS)


@pytest.mark.parametrize("ask", [search, query])
def test_the_schema_is_that_of_the_run(table: Table, ask: Ask) -> None:
    """Also if the table has grown by a column since the last one."""
    everything: Search | Query = table.search() if ask is search else table.query("fetch logs")
    assert "extra" not in everything.arrow().column_names
    table.append([{"id": 100, "content": "more", "extra": "x"}])
    assert everything.arrow().column("extra").to_pylist().count("x") == 1
    assert "extra" in everything.reader().read_all().column_names


@pytest.mark.parametrize("ask", [search, query])
def test_attributes_come_along_in_every_form(table: Table, ask: Ask) -> None:
    everything: Search | Query = table.search() if ask is search else table.query("fetch logs")
    assert everything.arrow().num_rows == len(everything.pandas()) == len(everything.polars()) == 100


@pytest.mark.parametrize("ask", [search, query])
def test_without_polars_the_error_says_what_to_install(table: Table, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(NotFoundError, match="pip install polars"):
        ask(table).polars()


def test_the_old_names_of_a_search_still_work_and_warn(table: Table) -> None:
    found = search(table)
    with pytest.warns(DeprecationWarning, match="Search.to_arrow is deprecated, use arrow"):
        assert found.to_arrow() == found.arrow()
    with pytest.warns(DeprecationWarning, match="Search.to_pandas is deprecated, use pandas"):
        assert found.to_pandas().equals(found.pandas())
