"""Text inside of structs, lists and maps is found like any other, whatever the index knows of it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from coprlake.cli.main import cli
from coprlake.predicate.build import at_least, contains, equals, exists, one_of, prefix, regex, term
from coprlake.predicate.paths import Key, Member, path_of
from coprlake.predicate.predicates import ALL_FIELDS, ANY_VALUE, Predicate
from coprlake.segment import batch_indexing as indexing
from coprlake.table import Table, create_table, open_table
from coprlake.testing.naive_search import matches

START = datetime(2024, 6, 1, tzinfo=UTC)
HEADERS = pa.struct([("host", pa.string()), ("x.y", pa.string()), ("size", pa.int64())])
SCHEMA = pa.schema(
    [
        ("timestamp", pa.timestamp("us", "UTC")),
        ("id", pa.int64()),
        ("content", pa.string()),
        ("request", pa.struct([("headers", HEADERS), ("method", pa.string())])),
        ("request.method", pa.string()),
        ("labels", pa.list_(pa.string())),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("users", pa.list_(pa.struct([("name", pa.string()), ("age", pa.int32())]))),
        ("deep", pa.map_(pa.string(), pa.list_(pa.struct([("texts", pa.list_(pa.large_string()))])))),
        ("blobs", pa.list_(pa.binary())),
        ("codes", pa.list_(pa.int64())),
        ("attributes", pa.map_(pa.string(), pa.string())),
    ]
)
WORDS = ["alpha", "beta42", "10.0.0.7", "Gamma delta", "", "naïve", None]


def some_row(random: np.random.Generator, number: int) -> dict[str, Any]:
    def word() -> Any:
        return WORDS[int(random.integers(len(WORDS)))]

    def some(make: Callable[[], Any], most: int = 3) -> Any:
        return [make() for _ in range(int(random.integers(most)))] if random.random() < 0.8 else None

    def keyed(make: Callable[[], Any]) -> Any:
        keys = random.permutation(["k", "a.b", "x[y]", "host"])[: int(random.integers(4))]
        return [(str(key), make()) for key in keys] if random.random() < 0.8 else None

    def headers() -> Any:
        return {"host": word(), "x.y": word(), "size": int(random.integers(5))} if random.random() < 0.8 else None

    return {
        "timestamp": START + timedelta(seconds=number),
        "id": number,
        "content": word() or "line",
        "request": {"headers": headers(), "method": word()} if random.random() < 0.8 else None,
        "request.method": word(),
        "labels": some(word),
        "tags": keyed(word),
        "users": some(lambda: {"name": word(), "age": int(random.integers(5))} if random.random() < 0.8 else None),
        "deep": keyed(lambda: some(lambda: {"texts": some(word)})),
        "blobs": some(lambda: (word() or "x").encode()),
        "codes": some(lambda: int(random.integers(400, 405))),
        "attributes": [("host", word()), ("tags.k", word())] if random.random() < 0.5 else None,
    }


ROWS = [some_row(np.random.default_rng(1000 + number), number) for number in range(300)]
PREDICATES: list[Predicate] = [
    *(contains(text, ALL_FIELDS) for text in ("alpha", "eta4", "0.0", "GAMMA", "ï", "nowhere", "k")),
    term("10.0.0.7", ALL_FIELDS),
    ~contains("alpha", ALL_FIELDS),
    contains("alpha", ALL_FIELDS) & ~contains("beta", ALL_FIELDS),
    *(contains("alpha", field) for field in ("request", "request.headers", "request.headers.host", "request.method")),
    *(contains("beta", field) for field in ("labels", "tags", "users", "users.name", "deep", "blobs", "codes")),
    *(equals(field, "ALPHA") for field in ("tags.k", "tags[k]", 'tags["k"]', "tags.a.b", "tags[a.b]", "tags[x[y]]")),
    *(contains("a", field) for field in ("deep.k", "deep[a.b]", "deep[k].texts", "deep.k.texts", "deep.a.b")),
    equals("request.headers.x.y", "naïve"),
    prefix("Gam", "request.headers"),
    regex("^b.*2$", "users.name"),
    term("delta", "labels"),
    equals("request.headers.size", 3),
    at_least("users.age", 3),
    equals("codes", 404),
    one_of("codes", [400, "401"]),
    one_of("labels", ["alpha", "beta42"]),
    *(exists(field) for field in ("request.headers", "tags.k", "users.name", "labels", "host", "deep[k].texts")),
    ~exists("request.headers.host"),
    contains("alpha", "host"),
    contains("alpha", "attributes.host"),
    equals("attributes[tags.k]", "beta42"),
    contains("alpha", "attributes"),
    contains("alpha", "no.such.path"),
]


def sealed(folder: Path) -> Table:
    table = create_table(folder, schema=SCHEMA, partition_by=None)
    for first in range(0, len(ROWS), 100):
        table.append(pa.Table.from_pylist(ROWS[first : first + 100], SCHEMA))
    return table


def optimized(folder: Path) -> Table:
    table = sealed(folder)
    table.optimize()
    return table


def foreign(folder: Path) -> Table:
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(ROWS, SCHEMA), folder / "a.parquet", row_group_size=20)
    return open_table(folder)


def indexed(folder: Path) -> Table:
    table = foreign(folder)
    table.index()
    return table


def indexed_before(folder: Path) -> Table:
    """With sidecars as builds wrote them that knew nothing of nested text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexing, "is_nested", lambda kind: False)
        table = indexed(folder)
    sidecar = table.snapshot().segments[0].sidecar
    assert sidecar is not None
    assert sidecar.description.fields["tags"] == "no"
    return table


def half_before(folder: Path) -> Table:
    """Segments of both kinds, merged into one."""
    table = create_table(folder, schema=SCHEMA, partition_by=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexing, "is_nested", lambda kind: False)
        table.append(pa.Table.from_pylist(ROWS[:150], SCHEMA))
    table.append(pa.Table.from_pylist(ROWS[150:], SCHEMA))
    table.optimize()
    return table


VARIANTS = [sealed, optimized, foreign, indexed, indexed_before, half_before]


@pytest.mark.parametrize("make", VARIANTS, ids=lambda make: make.__name__)
def test_the_law_holds_for_nested_text(tmp_path: Path, make: Callable[[Path], Table]) -> None:
    table = make(tmp_path / "t")
    stored = {row["id"]: row for row in table.search().rows()}
    assert len(stored) == len(ROWS)
    assert table.verify(deep=True).is_sound or make is foreign
    for predicate in PREDICATES:
        expected = sorted(number for number, row in stored.items() if matches(predicate, row))
        for use_sketches in (True, False):
            found = table.search(predicate, columns=["id"], use_sketches=use_sketches).arrow()
            assert sorted(found.column("id").to_pylist()) == expected, (str(predicate), use_sketches)


def test_uncommitted_records_are_searched_too(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", schema=SCHEMA, partition_by=None)
    with table.writer() as writer:
        writer.append(pa.Table.from_pylist(ROWS, SCHEMA))
        for predicate in PREDICATES:
            expected = [row["id"] for row in ROWS if matches(predicate, row)]
            found = table.search(predicate, columns=["id"]).arrow().column("id").to_pylist()
            assert sorted(found) == expected, str(predicate)


def test_new_sidecars_prune_by_nested_text(tmp_path: Path) -> None:
    rows = [{"id": n, "tags": [("k", f"value{n}")], "req": {"host": f"host{n}", "size": n}} for n in range(200)]
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("tags", pa.map_(pa.string(), pa.string())),
            ("req", pa.struct([("host", pa.string()), ("size", pa.int64())])),
        ]
    )
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "a.parquet", row_group_size=5)
    table = open_table(tmp_path)
    table.index()
    for predicate in (
        term("value77", ALL_FIELDS),
        equals("tags.k", "value77"),
        term("host77", "req.host"),
        term("value77", "tags"),
    ):
        search = table.search(predicate)
        assert [row["id"] for row in search.rows()] == [77]
        assert search.report.batches_opened < 5, str(predicate)
    assert table.search(equals("req.size", 77)).count() == 1


def test_a_column_with_dots_wins_over_a_path() -> None:
    schema = pa.schema(
        [
            ("a", pa.struct([("b", pa.string()), ("b.c", pa.string())])),
            ("a.b", pa.string()),
            ("m", SCHEMA.field("tags").type),
        ]
    )
    path = path_of("a.b", schema)
    assert path is not None
    assert (path.column, path.steps) == ("a.b", ())
    assert path_of("a.b.c", schema) == ("a", (Member(1, "b.c"),))
    assert path_of("m[x].y", schema) is None
    assert path_of("m.x.y", schema) == ("m", (Key("x.y"),))
    assert path_of("a.z", schema) is None


def test_the_command_line_finds_nested_text(tmp_path: Path) -> None:
    table = sealed(tmp_path / "t")
    expected = {
        ("--all-fields",): sum(matches(contains("alpha", ALL_FIELDS), row) for row in ROWS),
        ("-f", "request.headers.host"): sum(matches(contains("alpha", "request.headers.host"), row) for row in ROWS),
        ("-f", "tags[a.b]"): sum(matches(contains("alpha", "tags[a.b]"), row) for row in ROWS),
    }
    for options, count in expected.items():
        result = CliRunner().invoke(cli, ["search", "alpha", table.uri, "-c", *options])
        assert result.output.strip() == str(count), result.output
        assert count
    where = CliRunner().invoke(cli, ["search", table.uri, "-c", "--where", "request.headers.size>=3"])
    assert where.output.strip() == str(sum(matches(at_least("request.headers.size", 3), row) for row in ROWS))


def test_a_plain_search_looks_at_every_value(tmp_path: Path) -> None:
    table = sealed(tmp_path / "t")
    assert table.search("alpha").count() == sum(matches(contains("alpha", ANY_VALUE), row) for row in ROWS)
    assert table.search(contains("alpha", "content")).count() == sum("alpha" in row["content"] for row in ROWS)
