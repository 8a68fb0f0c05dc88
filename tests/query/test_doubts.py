"""What is told about a search in Python: only what is certain, and without changing the result."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

import coprlake
from coprlake import (
    SearchWarning,
    Table,
    UsageError,
    at_least,
    contains,
    create_table,
    equals,
    exists,
    one_of,
    open_table,
    term,
)
from coprlake.predicate.predicates import Predicate

ROWS = [
    {"content": "refused", "loglevel": "ERROR", "status": 500, "attributes": {"user_id": "bob"}},
    {"content": "accepted", "loglevel": "INFO", "status": 200, "attributes": {"user_id": "ann", "Zone": "a"}},
]

TOLD: dict[Predicate, str] = {
    term("bob", field="user_di"): "no record has a field user_di; did you mean user_id?",
    ~exists("user_di"): "no record has a field user_di; did you mean user_id?",
    equals("zone", "a"): "no record has a field zone; did you mean Zone?",
    equals("attributes.user_di", "bob"): "no record has a field attributes.user_di",
    equals("level", "ERROR"): "no record has a field level; did you mean loglevel?",
    equals("msg", "x"): "no record has a field msg; did you mean content?",
    equals("status", "abc"): "status is a number, which 'abc' is not; expected a number such as 500",
    at_least("status", "abc"): "status is a number, which 'abc' is not",
    one_of("status", [500, "x"]): "status is a number, which 'x' is not",
    contains("50", field="status"): "status is a number, in which no text is found",
    equals("loglevel", "eror"): "no record has the level eror; did you mean ERROR?",
    contains("refused") & equals("loglevel", "wran"): "did you mean WARN?",
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    made = create_table(tmp_path_factory.mktemp("doubts") / "t", partition_by=None)
    made.append(ROWS)
    return made


@pytest.mark.parametrize(("predicate", "told"), TOLD.items(), ids=map(str, TOLD))
def test_a_search_warns_and_a_deletion_is_refused(table: Table, predicate: Predicate, told: str) -> None:
    search = table.search(predicate)
    with pytest.warns(SearchWarning) as caught:
        count = search.count()
    assert told in str(caught[0].message)
    assert caught[0].filename == __file__  # the line that asks, not one of ours
    assert any(told in text for text in search.report.warnings)
    assert count == table.search(predicate, use_sketches=False).count()
    with pytest.raises(UsageError, match="nothing was deleted") as refused:
        table.delete(predicate)
    assert told in str(refused.value)
    assert table.search().count() == 2


@pytest.mark.parametrize(
    "predicate",
    [
        contains("refused"),
        term("bob", field="user_id"),
        equals("STATUS", "500"),
        equals("status", 5e2),
        equals("loglevel", "fatal"),
        ~exists("Zone"),
        equals("attributes.user_id", "bob"),
        one_of("loglevel", ["ERROR", "whatever"]),
    ],
    ids=str,
)
def test_what_may_be_meant_is_not_told(table: Table, predicate: Predicate) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", SearchWarning)
        search = table.search(predicate)
        search.count()
    assert search.report.warnings == []


def test_nothing_is_told_while_it_is_not_certain(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by=None)
    typo = equals("user_di", "bob") | equals("loglevel", "eror") | equals("status", "abc")
    assert table.search(typo).doubts() == []  # no records yet
    with table.writer() as writer:
        writer.append(ROWS)
        assert table.search(typo).doubts() == []  # more fields may come
    assert len(table.search(typo).doubts()) == 3
    table.append([{"content": "x", "attributes": {"status": "abc"}}])  # the number of other records is a text here
    assert [doubt.about for doubt in table.search(typo).doubts()] == ["field", "level"]
    foreign = table.search("refused", columns=table.schema.names).arrow()
    write_deltalake(tmp_path / "t", foreign, mode="append")
    assert open_table(tmp_path / "t").search(typo).doubts() == []  # a segment without an index


def test_retention_may_name_what_no_record_has_but_not_negate_it(table: Table) -> None:
    assert table.retain("1h", equals("kind", "debug")).rows == 0
    with pytest.raises(UsageError, match="no record has a field kind"):
        table.retain("1h", ~equals("kind", "debug"))


@given(
    field=st.sampled_from(["user_id", "Zone", "status", "loglevel", "content", "x", "usr"]), value=st.text(max_size=3)
)
def test_a_search_with_a_doubt_finds_what_it_asks_for(table: Table, field: str, value: str) -> None:
    rows = [{**row, **dict(row["attributes"].items())} for row in ROWS]  # type: ignore[attr-defined]
    expected = sum(str(row.get(field)).lower() == value.lower() for row in rows if field in row)
    assert table.search(equals(field, value)).count() == expected or field == "status"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda table: table.search(5), "expected a predicate or a text to search for, found 5"),
        (lambda table: table.search("x", order="newst"), "unknown order 'newst'; did you mean newest?"),
        (lambda table: table.search("x", columns=["contnet"]).arrow(), "did you mean content?"),
        (lambda table: table.search("x", since="yesterdai"), "did you mean yesterday?"),
        (lambda table: table.query("fetch lgs"), "did you mean logs?"),
        (lambda table: table.query(5), "expected the text of a query, found 5"),
        (lambda table: table.query("fetch logs | fiter x"), "did you mean filter?"),
        (lambda table: table.delete("refused"), "expected a predicate, found 'refused'"),
        (lambda table: coprlake.ReadOptions(format="parqet"), "did you mean parquet?"),
    ],
)
def test_python_is_told_what_was_meant(table: Table, call: Callable[[Table], Any], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        call(table)
    assert told in str(refused.value)


def test_a_misspelt_argument_is_an_error(table: Table) -> None:
    with pytest.raises(TypeError, match="limt"):
        table.search("x", limt=3)  # type: ignore[call-arg]


def test_a_query_warns_of_fields_and_levels(table: Table) -> None:
    with pytest.warns(SearchWarning, match="no field user_di, so it is null; did you mean user_id") as caught:
        query = table.query('fetch logs | filter user_di == "bob" or loglevel == "EROR"')
    assert caught[0].filename == __file__
    assert len(query.warnings) >= 1
    with pytest.warns(SearchWarning, match="no record has the level EROR"):
        table.query('fetch logs | filter loglevel == "EROR"')
