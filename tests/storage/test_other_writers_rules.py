"""Tables of other writers: their rules are kept or the change is refused, and their paths stay inside of the table."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

from coprlake.cli.main import cli
from coprlake.errors import CoprlakeError, UnreadableTableError, UsageError
from coprlake.predicate.build import contains, equals
from coprlake.segment.sidecar import sidecar_name
from coprlake.table import Table, open_table

RECORDS = pa.table({"id": [1, 2, 3], "content": ["one", "two", "three"]})


def by_hand(
    folder: Path,
    *,
    writer: int,
    features: list[str] | None = None,
    configuration: dict[str, str] | None = None,
    metadata: dict[str, Any] | None = None,
    nullable: bool = True,
) -> Table:
    """A table of three records whose log is written by hand, true to the protocol."""
    (folder / "_delta_log").mkdir(parents=True)
    pq.write_table(RECORDS, folder / "a.parquet")
    fields = [
        {"name": "id", "type": "long", "nullable": nullable, "metadata": metadata or {}},
        {"name": "content", "type": "string", "nullable": True, "metadata": {}},
    ]
    protocol: dict[str, Any] = {"minReaderVersion": 1 if writer < 7 else 3, "minWriterVersion": writer}
    if features is not None:
        protocol |= {"readerFeatures": [], "writerFeatures": features}
    actions = [
        {"protocol": protocol},
        {
            "metaData": {
                "id": "5f5f5f5f-0000-4000-8000-000000000000",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [],
                "configuration": configuration or {},
                "createdTime": 1_717_200_000_000,
            }
        },
        add_action("a.parquet", (folder / "a.parquet").stat().st_size),
    ]
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (folder / "_delta_log" / "00000000000000000000.json").write_text(lines)
    return open_table(folder)


def add_action(path: str, size: int) -> dict[str, Any]:
    add = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 1_717_200_000_000, "dataChange": True}
    return {"add": add | {"stats": '{"numRecords":3}'}}


def append(table: Table) -> None:
    table.append(pa.table({"id": [4], "content": ["four"]}))


def refused(change: Any, *words: str) -> None:
    with pytest.raises(CoprlakeError) as caught:
        change()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("writer", [2, 3, 4, 7])
def test_append_only_tables_are_appended_to_and_never_deleted_from(tmp_path: Path, writer: int) -> None:
    features = ["appendOnly"] if writer == 7 else None
    table = by_hand(tmp_path / "t", writer=writer, features=features, configuration={"delta.appendOnly": "true"})
    append(table)
    append(table)
    before = table.snapshot().version
    refused(lambda: table.delete(equals("id", 1)), "append-only")
    result = CliRunner().invoke(cli, ["delete", "one", table.uri, "--yes"])
    assert result.exit_code == 2
    assert "append-only" in result.output
    assert table.snapshot().version == before
    table.optimize(full=True)  # moves records, and takes none away
    assert table.search().count() == 5
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 5


def test_check_constraints_are_not_written_past(tmp_path: Path) -> None:
    write_deltalake(tmp_path, RECORDS)
    DeltaTable(tmp_path).alter.add_constraint({"small": "id < 10"})
    table = open_table(tmp_path)
    refused(lambda: append(table), "CHECK constraint small", "id < 10")
    assert table.search("two").count() == 1
    assert table.delete(equals("id", 3)).rows == 1  # what is left has met the rule
    assert table.search().count() == 2


@pytest.mark.parametrize(
    ("metadata", "word"),
    [
        ({"delta.generationExpression": "length(content)"}, "generated column id"),
        ({"delta.invariants": '{"expression":{"expression":"id > 0"}}'}, "invariant on the column id"),
    ],
)
@pytest.mark.parametrize("writer", [4, 7])
def test_columns_with_rules_are_not_written(tmp_path: Path, metadata: dict[str, Any], word: str, writer: int) -> None:
    features = ["generatedColumns", "invariants"] if writer == 7 else None
    table = by_hand(tmp_path / "t", writer=writer, features=features, metadata=metadata)
    refused(lambda: append(table), word, "append with the engine that created the table")
    assert table.search().count() == 3
    assert not [path for path in (tmp_path / "t").glob("*.parquet") if path.name != "a.parquet"]


@pytest.mark.parametrize(("writer", "features"), [(6, None), (7, ["identityColumns"])])
def test_identity_columns_are_refused_by_name(tmp_path: Path, writer: int, features: list[str] | None) -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    table = by_hand(tmp_path / "t", writer=writer, features=features, metadata=identity)
    refused(lambda: append(table), "identityColumns")
    refused(lambda: table.delete(equals("id", 1)), "identityColumns")
    assert table.search().count() == 3


def test_a_change_data_feed_allows_appends_alone(tmp_path: Path) -> None:
    write_deltalake(tmp_path, RECORDS, configuration={"delta.enableChangeDataFeed": "true"})
    table = open_table(tmp_path)
    append(table)
    refused(lambda: table.delete(equals("id", 1)), "change data feed")
    assert table.search().count() == 4
    changes = pa.table(DeltaTable(tmp_path).load_cdf(starting_version=0).read_all())
    assert changes.num_rows == 4


def test_not_null_is_kept(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("content", pa.string()),
            pa.field("inner", pa.struct([pa.field("a", pa.int64(), nullable=False)])),
        ]
    )
    write_deltalake(tmp_path, pa.table([[1], ["one"], [{"a": 1}]], schema=schema))
    table = open_table(tmp_path)
    refused(lambda: table.append([{"id": 2, "content": "x"}, {"id": None, "content": "y"}]), "id must not be null")
    refused(lambda: table.append([{"content": "x"}]), "id must not be null")
    assert table.search().count() == 1
    table.append([{"id": 2, "content": "x", "inner": {"a": 3}}, {"id": 3, "content": "y", "inner": None}])
    assert table.search(equals("inner.a", 3)).count() == 1
    inside = [{"id": 4, "inner": {"a": 5}}, {"id": 5, "inner": {"a": None}}]
    refused(lambda: table.append(inside), "inner.a must not be null")
    assert table.search().count() == 3
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 3


@pytest.mark.parametrize("features", [["rowTracking", "domainMetadata"], ["somethingNew"]])
def test_features_that_are_not_known_are_refused_by_name(tmp_path: Path, features: list[str]) -> None:
    table = by_hand(tmp_path / "t", writer=7, features=features)
    assert table.search("one").count() == 1
    for change in (lambda: append(table), lambda: table.delete(contains("one"))):
        with pytest.raises(UnreadableTableError, match=sorted(features)[0]):
            change()


def test_rules_that_nobody_uses_do_not_matter(tmp_path: Path) -> None:
    every = ["appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"]
    for number, (writer, features) in enumerate([(3, None), (4, None), (7, every)]):
        table = by_hand(tmp_path / str(number), writer=writer, features=features)
        append(table)
        assert table.delete(equals("id", 1)).rows == 1
        assert table.search().count() == 3


@pytest.mark.parametrize("path", ["../secret.parquet", "a/../../secret.parquet", "%2E%2E/secret.parquet"])
def test_a_path_out_of_the_table_is_refused(tmp_path: Path, path: str) -> None:
    by_hand(tmp_path / "t", writer=2)
    pq.write_table(RECORDS, tmp_path / "secret.parquet")
    size = (tmp_path / "secret.parquet").stat().st_size
    commit = tmp_path / "t" / "_delta_log" / "00000000000000000001.json"
    commit.write_text(json.dumps(add_action(path, size)) + "\n")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UnreadableTableError, match="leads out of it"):
        open_table(tmp_path / "t").index()
    assert sorted(tmp_path.rglob("*")) == before


def test_an_absolute_path_is_refused_with_advice(tmp_path: Path) -> None:
    by_hand(tmp_path / "t", writer=2)
    pq.write_table(RECORDS, tmp_path / "other.parquet")
    size = (tmp_path / "other.parquet").stat().st_size
    commit = tmp_path / "t" / "_delta_log" / "00000000000000000001.json"
    for path in (f"file://{quote(str(tmp_path))}/other.parquet", f"{tmp_path}/other.parquet"):
        commit.write_text(json.dumps(add_action(path, size)) + "\n")
        with pytest.raises(CoprlakeError):
            open_table(tmp_path / "t").search().count()


def test_sidecars_lie_inside_of_their_folder() -> None:
    assert sidecar_name("day=1/a..b.parquet") == "_coprlake/day=1/a..b.parquet.copr"
    for name in ("../a.parquet", "a/../../b.parquet", "/etc/a.parquet"):
        with pytest.raises(UsageError):
            sidecar_name(name)
