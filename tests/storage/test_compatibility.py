"""Tables that earlier builds wrote are read, searched, extended, optimized and verified by this one."""

import json
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from coprlake import ALL_FIELDS, Table, contains, equals, exists, open_table, term
from coprlake.predicate.predicates import ANY_VALUE, EVERYTHING, Predicate
from coprlake.testing.naive_search import matches

ARCHIVES = sorted(Path(__file__).with_name("tables").glob("*/*.tar.gz"))
IDS = [f"{archive.parent.name}/{archive.name.removesuffix('.tar.gz')}" for archive in ARCHIVES]
SEARCHES: list[Predicate] = [
    EVERYTHING,
    term("10.3.2.38"),
    contains("7900010"),
    contains("refused the CONN"),
    contains("Zeitüber") & ~term("7"),
    term("depot_5/89"),
    equals("source", "web-1") | equals("source", "web 1/ü=%"),
    equals("loglevel", "ERROR"),
    term("ann-17", field="user"),
    contains("nn-3", field="user"),
    exists("status"),
    contains("shop-3.ex", field=ALL_FIELDS),
    term("eu-2", field=ALL_FIELDS) & ~term("tag-7", field=ALL_FIELDS),
    contains("absent from every record"),
    contains("ann-1", field=ANY_VALUE),
    term("50", field=ANY_VALUE),
    contains("shop-3.ex", field=ANY_VALUE) | contains("7900010", field=ANY_VALUE),
    contains("absent from every value", field=ANY_VALUE),
]


@pytest.fixture(params=ARCHIVES, ids=IDS)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[dict[str, Any]]]:
    """A table of an earlier build, and what it holds."""
    with tarfile.open(request.param) as tar:
        tar.extractall(tmp_path, filter="data")
    expected = [read(line) for line in (tmp_path / "expected.jsonl").read_text().splitlines()]
    return tmp_path / "table", expected


def read(line: str) -> dict[str, Any]:
    """A record of JSON; maps are lists of pairs, as Arrow gives them."""
    row: dict[str, Any] = json.loads(line)
    maps = {name: [tuple(pair) for pair in row[name]] for name in ("attributes", "labels") if row.get(name)}
    return row | maps


def told(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Records in an order of their own, as JSON."""
    plain = [row | {"timestamp": row["timestamp"].isoformat()} for row in rows]
    return sorted(json.dumps(row, sort_keys=True, default=str, ensure_ascii=False) for row in plain)


def check(table: Table, expected: list[dict[str, Any]]) -> None:
    """Every search finds what a plain filter finds, with and without the sketches."""
    kept = [json.dumps(row, sort_keys=True, ensure_ascii=False) for row in expected]
    for predicate in SEARCHES:
        wanted = sorted(kept[n] for n, row in enumerate(expected) if matches(predicate, row))
        for use_sketches in (True, False):
            search = table.search(predicate, use_sketches=use_sketches)
            assert told(search.rows()) == wanted, (predicate, use_sketches)
            assert not search.report.problems


def test_there_are_tables_of_every_kind() -> None:
    assert {"0.1.0/paper", "0.1.0/partitioned", "0.1.0/spilled", "0.1.0/spark"} <= set(IDS)


def test_an_old_table_is_read_and_searched(old: tuple[Path, list[dict[str, Any]]]) -> None:
    path, expected = old
    table = open_table(path)
    check(table, expected)
    report = table.verify(deep=True)
    assert report.rows == len(expected)
    assert not report.data_problems
    bare = sum(1 for segment in table.snapshot().segments if segment.sidecar is None)
    assert len(report.sidecar_problems) == bare <= 1
    absent = table.search(term("b1946ac92492d234"))
    assert absent.count() == 0
    assert absent.report.batches_opened <= 30 * bare, "the old sketches prune"


def test_an_old_table_answers_queries(old: tuple[Path, list[dict[str, Any]]]) -> None:
    path, expected = old
    query = 'fetch logs | filter contains(content, "refused") | summarize n = count(), by:{loglevel}'
    found = {row["loglevel"]: row["n"] for row in open_table(path).query(query).rows()}
    refused = [row["loglevel"] for row in expected if "refused" in row["content"]]
    assert found == {level: refused.count(level) for level in set(refused)}


def test_an_old_table_is_extended_and_kept_in_shape(old: tuple[Path, list[dict[str, Any]]]) -> None:
    path, expected = old
    table = open_table(path)
    fresh = {
        "source": "web-1",
        "loglevel": "INFO",
        "content": "one more from 10.3.2.38",
        "timestamp": "2026-11-18T00:00:00Z",
    }
    table.append([fresh])
    kept = told_of(table)
    check(table, kept)
    assert len(kept) == len(expected) + 1
    table.optimize(full=True)
    check(table, kept)
    table.index(rebuild=True)
    check(open_table(path), kept)
    table.delete(term("depot_5"))
    left = [row for row in kept if not matches(term("depot_5"), row)]
    assert len(left) < len(kept)
    check(table, left)
    table.vacuum(retention_hours=0)
    check(open_table(path), left)
    assert open_table(path).verify(deep=True).is_sound


def test_an_old_table_is_repartitioned_and_back(old: tuple[Path, list[dict[str, Any]]]) -> None:
    path, _ = old
    table = open_table(path)
    before = told_of(table)
    for layout, columns in (("none", []), ("day", ["day"]), ("none", [])):
        table.optimize(repartition=layout)  # type: ignore[arg-type]
        table = open_table(path)
        assert table.partition_by == columns
        assert _sorted(told_of(table)) == _sorted(before)
        assert table.verify(deep=True).is_sound
        assert table.search(term("depot_5")).count() == sum(matches(term("depot_5"), row) for row in before)
    table.vacuum(retention_hours=0)
    assert _sorted(told_of(open_table(path))) == _sorted(before)


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    """The records without their day, in an order of their own."""
    plain = [{name: value for name, value in row.items() if name != "day" and value is not None} for row in rows]
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in plain)


def told_of(table: Table) -> list[dict[str, Any]]:
    """The records of a table, read without any index."""
    return [read(line) for line in told(table.search(use_sketches=False).rows())]
