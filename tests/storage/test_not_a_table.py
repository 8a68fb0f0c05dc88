"""Folders whose files do not all count, as parts of tables of any format, are never read as plain Parquet."""

import json
import os
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

from coprlake.cli.main import cli
from coprlake.errors import CoprlakeError, NotFoundError, UnreadableTableError
from coprlake.table import create_table, open_table, table_exists

START = datetime(2024, 6, 1, tzinfo=UTC)


def rows(first: int = 0, count: int = 10) -> pa.Table:
    times = [START + timedelta(hours=n) for n in range(first, first + count)]
    return pa.table(
        {
            "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
            "content": [f"line {n}" for n in range(first, first + count)],
            "kind": [f"k{n % 2}" for n in range(first, first + count)],
        }
    )


def iceberg_table(folder: Path, *, compressed: bool = False) -> None:
    """An Iceberg table (spec, format version 2) of two snapshots, the second of which rewrote the first."""
    data, metadata = folder / "data", folder / "metadata"
    data.mkdir(parents=True)
    metadata.mkdir()
    pq.write_table(rows(count=60), data / f"00000-0-{uuid.UUID(int=1)}-00001.parquet")
    pq.write_table(rows(count=10), data / f"00000-1-{uuid.UUID(int=2)}-00001.parquet")
    snapshots = [
        {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": 1_717_200_000_000 + number,
            "manifest-list": f"{folder}/metadata/snap-{number}-1-{uuid.UUID(int=number)}.avro",
            "summary": {"operation": operation},
            "schema-id": 0,
        }
        for number, operation in ((1, "append"), (2, "overwrite"))
    ]
    fields = [
        {"id": 1, "name": "timestamp", "required": False, "type": "timestamptz"},
        {"id": 2, "name": "content", "required": False, "type": "string"},
    ]
    document = {
        "format-version": 2,
        "table-uuid": str(uuid.UUID(int=3)),
        "location": str(folder),
        "last-sequence-number": 2,
        "last-updated-ms": 1_717_200_000_002,
        "last-column-id": 2,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": 2,
        "snapshots": snapshots,
    }
    name = f"00001-{uuid.UUID(int=4)}{'.gz' * compressed}.metadata.json"
    (metadata / name).write_text(json.dumps(document))
    (metadata / "version-hint.text").write_text("1")


def hudi_table(folder: Path) -> None:
    (folder / ".hoodie").mkdir(parents=True)
    (folder / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=logs\nhoodie.table.version=6\n")
    (folder / "day=1").mkdir()
    pq.write_table(rows(), folder / "day=1" / "f1_0-1-0_20240601000000000.parquet")


def delta_table(folder: Path) -> None:
    """Ten records in each of two partitions; those of the first were deleted, and its files are still there."""
    write_deltalake(folder, rows(), partition_by=["kind"])
    write_deltalake(folder, rows(10), partition_by=["kind"], mode="append")
    DeltaTable(folder).delete("kind = 'k0'")


def refused(path: str | Path) -> str:
    with pytest.raises(CoprlakeError) as caught:
        open_table(path)
    return str(caught.value)


@pytest.mark.parametrize("compressed", [False, True])
def test_an_iceberg_table_is_refused_with_advice(tmp_path: Path, compressed: bool) -> None:
    iceberg_table(tmp_path / "ice", compressed=compressed)
    for path in (tmp_path / "ice", tmp_path / "ice" / "data"):
        message = refused(path)
        assert "Iceberg table" in message
        assert "export" in message
    with pytest.raises(UnreadableTableError):
        open_table(tmp_path / "ice")
    assert "Iceberg table" in refused(f"file://{tmp_path}/ice")
    assert "Iceberg table" in refused(tmp_path)  # a folder of tables
    assert str(tmp_path / "ice") in refused(tmp_path)


def test_ingest_does_not_make_a_table_inside_of_another_format(tmp_path: Path) -> None:
    iceberg_table(tmp_path / "ice")
    (tmp_path / "a.log").write_text("2026-11-16T03:55:00Z INFO hello\n")
    with pytest.raises(UnreadableTableError):
        table_exists(tmp_path / "ice")
    result = CliRunner().invoke(cli, ["ingest", str(tmp_path / "a.log"), "--into", str(tmp_path / "ice")])
    assert result.exit_code == 2
    assert "Iceberg" in result.output
    assert not (tmp_path / "ice" / "_delta_log").exists()


def test_a_hudi_table_is_refused_with_advice(tmp_path: Path) -> None:
    hudi_table(tmp_path / "lake" / "logs")
    for path in (tmp_path / "lake" / "logs", tmp_path / "lake" / "logs" / "day=1", tmp_path / "lake"):
        assert "Hudi table" in refused(path)


def test_a_part_of_a_delta_table_names_the_table_to_open(tmp_path: Path) -> None:
    delta_table(tmp_path / "logs")
    part = tmp_path / "logs" / "kind=k0"
    assert len(list(part.glob("*.parquet"))) == 2  # what a reader of the folder would have found
    message = refused(part)
    assert f"open {tmp_path / 'logs'} instead" in message
    assert "Delta" in refused(f"file://{part}")
    result = CliRunner().invoke(cli, ["search", "line", str(part)])
    assert result.exit_code == 2
    assert str(tmp_path / "logs") in result.output
    assert open_table(tmp_path / "logs").search("line").count() == 10


def test_the_folder_above_delta_tables_names_one(tmp_path: Path) -> None:
    delta_table(tmp_path / "a" / "logs")
    with pytest.raises(NotFoundError, match="open a/logs in it"):
        open_table(tmp_path)
    assert not table_exists(tmp_path)


def test_links_do_not_hide_what_a_folder_is(tmp_path: Path) -> None:
    delta_table(tmp_path / "logs")
    iceberg_table(tmp_path / "ice")
    (tmp_path / "to_part").symlink_to(tmp_path / "logs" / "kind=k0")
    (tmp_path / "to_data").symlink_to(tmp_path / "ice" / "data")
    assert "Delta" in refused(tmp_path / "to_part")
    assert "Iceberg" in refused(tmp_path / "to_data")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner").symlink_to(tmp_path / "logs" / "kind=k0")
    assert "Delta" in refused(tmp_path / "folder")
    (tmp_path / "files").mkdir()
    one = next((tmp_path / "logs" / "kind=k0").glob("*.parquet"))
    (tmp_path / "files" / "a.parquet").symlink_to(one)
    assert "Delta" in refused(tmp_path / "files")


def test_a_folder_that_becomes_a_table_meanwhile_is_refused(tmp_path: Path) -> None:
    pq.write_table(rows(), tmp_path / "a.parquet")
    table = open_table(tmp_path)
    assert table.search().count() == 10
    iceberg_table(tmp_path / "inner")
    with pytest.raises(UnreadableTableError, match="Iceberg"):
        table.search().count()


def test_plain_folders_stay_tables(tmp_path: Path) -> None:
    """Other things called metadata are no sign of Iceberg; nor is a Delta table beside the folder."""
    folder = tmp_path / "plain"
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / "about.json").write_text("{}")
    (folder / "year=2024").mkdir()
    pq.write_table(rows(), folder / "year=2024" / "a.parquet")
    (tmp_path / "other").mkdir()
    pq.write_table(rows(), tmp_path / "other" / "b.parquet")
    (folder / "year=2025").symlink_to(tmp_path / "other")
    delta_table(tmp_path / "beside")
    assert open_table(folder).search("line").count() == 20


def test_folders_above_that_may_not_be_listed_are_passed_over(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    folder = tmp_path / "closed" / "open"
    folder.mkdir(parents=True)
    pq.write_table(rows(), folder / "a.parquet")
    (tmp_path / "closed" / "metadata").mkdir(mode=0)
    try:
        assert open_table(folder).search().count() == 10
    finally:
        (tmp_path / "closed" / "metadata").chmod(0o700)


def test_a_delta_table_with_iceberg_metadata_beside_is_a_delta_table(tmp_path: Path) -> None:
    """As UniForm writes it."""
    table = create_table(tmp_path / "logs", partition_by=None)
    table.append(rows())
    (tmp_path / "logs" / "metadata").mkdir()
    (tmp_path / "logs" / "metadata" / "v1.metadata.json").write_text("{}")
    assert open_table(tmp_path / "logs").search("line").count() == 10
