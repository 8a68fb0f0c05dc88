"""What a review found about what is taken in, and what is left behind."""

import errno
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

import coprlake
from coprlake import files
from coprlake.errors import StorageError, UsageError
from coprlake.intake.reading import Intake
from coprlake.intake.sources.inputs import Walk, list_inputs
from coprlake.query import duck
from coprlake.query.limits import Limits
from coprlake.spark.jobs.ingesting import ingest
from coprlake.spark.streams.checkpoints import sync_checkpoint
from coprlake.spark.streams.folder_stream import stream_folder

RECORDS = pa.table({"content": ["x", "y"], "p": [1, 2]})


def a_table(kind: str, path: Path) -> Path:
    """A table of a format with a partition, in a folder; returns the folder of the partition."""
    if kind == "Delta":
        write_deltalake(path, RECORDS, partition_by=["p"])
        DeltaTable(path).delete("p = 2")
        return path / "p=1"
    part = path / "data" / "p=1"
    part.mkdir(parents=True)
    pq.write_table(RECORDS, part / "a.parquet")
    mark = path / ("metadata/00000-abc.metadata.json" if kind == "Iceberg" else ".hoodie/hoodie.properties")
    mark.parent.mkdir()
    mark.write_text("{}")
    return part


@pytest.mark.parametrize("kind", ["Delta", "Iceberg", "Hudi"])
def test_a_folder_of_a_table_is_not_taken_for_logs(tmp_path: Path, kind: str) -> None:
    lake = tmp_path / "lake"
    table = lake / "sales"
    part = a_table(kind, table)
    (lake / "plain").mkdir()
    (lake / "plain" / "a.log").write_text("one\n")
    links = tmp_path / "links"
    links.mkdir()
    (links / "inner").symlink_to(part)
    for given in (lake, table, part, links / "inner", f"{lake}/**", f"{lake}/*", f"{part}/*.parquet"):
        with pytest.raises(UsageError, match=f"{kind} table") as failure:
            list_inputs([given])
        assert str(table) in str(failure.value) or str(given) in str(failure.value)
    with pytest.raises(UsageError, match=f"{kind} table"):
        list_inputs([links], Walk(follow_links=True))
    with pytest.raises(UsageError, match=f"{kind} table"):
        Intake([lake])
    file = next(part.glob("*.parquet"))
    assert [found.path for found in list_inputs([file, lake / "plain"])] == [str(file), f"{lake}/plain/a.log"]
    assert len(list_inputs([lake / "plain"])) == 1


def test_folders_with_like_names_are_read(tmp_path: Path) -> None:
    for name in ("_private/a.log", "metadata/b.json", "delta_log/c.log", "hoodie/d.log", ".hidden/_delta_log/e.json"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("{}\n")
    found = [Path(file.source).relative_to(tmp_path / "in").as_posix() for file in list_inputs([tmp_path / "in"])]
    assert found == ["_private/a.log", "delta_log/c.log", "hoodie/d.log", "metadata/b.json"]


def test_the_error_says_what_to_do(tmp_path: Path) -> None:
    a_table("Delta", tmp_path / "sales")
    with pytest.raises(UsageError, match=r"this folder is a Delta table.*coprlake search.*export"):
        list_inputs([tmp_path / "sales"])
    with pytest.raises(UsageError, match=r"there is a Delta table in it, at .*sales"):
        list_inputs([tmp_path])
    with pytest.raises(UsageError, match=r"this folder is a part of a Delta table at .*sales"):
        list_inputs([tmp_path / "sales" / "p=1"])


def test_spark_refuses_the_folder_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    a_table("Delta", tmp_path / "lake" / "sales")
    target = coprlake.create_table(tmp_path / "target")
    for folder in (tmp_path / "lake", tmp_path / "lake" / "sales", tmp_path / "lake" / "sales" / "p=1"):
        with pytest.raises(UsageError, match="Delta table"):
            ingest(spark, [folder], target)
        with pytest.raises(UsageError, match="Delta table"):
            stream_folder(spark, folder, target)
    assert target.search("").count() == 0


TEXT = pa.field("element", pa.string(), nullable=False)
MEMBER = pa.struct([pa.field("a", pa.string(), nullable=False), pa.field("b", pa.string())])


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (pa.list_(TEXT), [["x"], [], None], [None]),
        (pa.map_(pa.string(), TEXT.with_name("value")), [[("k", "x")], [], None], [("k", None)]),
        (MEMBER, [{"a": "x", "b": None}, None], {"a": None, "b": "y"}),
        (pa.list_(MEMBER), [[{"a": "x", "b": None}, None], None], [{"a": None, "b": "y"}]),
        (pa.struct([("m", pa.list_(TEXT))]), [{"m": ["x"]}, {"m": None}, None], {"m": ["x", None]}),
    ],
)
def test_nulls_inside_of_columns_are_refused(tmp_path: Path, kind: pa.DataType, good: list[Any], bad: Any) -> None:
    schema = pa.schema([("content", pa.string()), ("v", kind)])
    write_deltalake(tmp_path, pa.table({"content": ["first"], "v": pa.array(good[:1], kind)}, schema=schema))
    table = coprlake.open_table(tmp_path)
    loose = _all_nullable(kind)
    texts = [f"good{number}" for number in range(len(good))]
    table.append(pa.table({"content": texts, "v": pa.array(good, loose)}))
    with pytest.raises(UsageError, match=r"v.* must not be null \(NOT NULL\), but 1 value is"):
        table.append(pa.table({"content": [*texts, "bad"], "v": pa.array([*good, bad], loose)}).slice(1))
    table.append(pa.table({"content": [*texts, "bad"], "v": pa.array([*good, bad], loose)}).slice(0, len(good)))
    table.append(pa.table({"content": ["bad", *texts], "v": pa.array([bad, *good], loose)}).slice(1))
    found = coprlake.open_table(tmp_path).search("good").arrow()
    assert sorted(map(repr, found["v"].to_pylist())) == sorted(map(repr, 3 * good))
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 1 + 3 * len(good)


def _all_nullable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _all_nullable(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_all_nullable(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _all_nullable(field.type)) for field in kind])
    return kind


def test_a_missing_member_that_must_not_be_null_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("content", pa.string()), ("v", MEMBER)])
    write_deltalake(tmp_path, pa.table({"content": ["first"], "v": [{"a": "x", "b": "y"}]}, schema=schema))
    table = coprlake.open_table(tmp_path)
    for record in ({"content": "c", "v": {"b": "y"}}, {"content": "c", "v": {"a": None, "b": "y"}}):
        with pytest.raises(UsageError, match=r"v\.a must not be null"):
            table.append([record])
    table.append([{"content": "c", "v": {"a": "z", "b": "y"}}])
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 2


def test_nested_values_that_do_not_fit_become_json(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"content": ["first"], "v": [1]}))
    coprlake.open_table(tmp_path).append([{"content": "c", "v": {"a": None, "b": [True]}}])
    (row,) = coprlake.open_table(tmp_path).search("c").rows()
    assert json.loads(dict(row["attributes"])["v"]) == {"a": None, "b": [True]}


def test_a_key_of_a_map_is_named_as_text_whatever_its_type(tmp_path: Path) -> None:
    columns = {
        "im": pa.array([[(1, "needle"), (2, "other")], [(2, "needle")], None], pa.map_(pa.int64(), pa.string())),
        "sm": pa.array([[({"a": 1}, "needle")], [], None], pa.map_(pa.struct([("a", pa.int64())]), pa.string())),
    }
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"content": ["a", "b", "c"], **columns}), tmp_path / "t" / "a.parquet")
    table = coprlake.open_table(tmp_path / "t")
    for _ in ("without an index", "with one"):
        found = {
            key: [row["content"] for row in table.search(coprlake.contains("needle", field=f"im[{key}]")).rows()]
            for key in ("1", "2", "3", "one")
        }
        assert found == {"1": ["a"], "2": ["b"], "3": [], "one": []}
        assert table.search(coprlake.contains("needle", field="im.1")).count() == 1
        with pytest.raises(UsageError, match="cannot be asked for a key"):
            table.search(coprlake.contains("needle", field="sm[1]")).count()
        assert table.search(coprlake.contains("needle", field="sm")).count() == 1
        table.index()


LARGE_SORT = "select a from (select md5(i::varchar) || md5((i * 3)::varchar) a from range(2000000) t(i)) order by a"


def test_what_a_query_spills_is_private_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    database = duck._Database(Limits(threads=1))
    database.connection.execute("SET memory_limit = '60MiB'")
    reader = database.connection.sql(LARGE_SORT).to_arrow_reader(1000)
    assert reader.read_next_batch().num_rows == 1000
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert any(folder.iterdir()), "nothing was spilled"
    assert not list(work.iterdir())
    del reader
    database.close()
    assert not list(temporary.iterdir())


def test_a_query_with_a_limit_of_memory_spills_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    monkeypatch.chdir(tmp_path)
    database = duck._Database(Limits(memory_bytes=60 << 20, threads=1))
    with pytest.raises(duckdb.OutOfMemoryException):
        database.connection.execute(LARGE_SORT)
    assert not list(tmp_path.iterdir())
    database.close()


def test_a_checkpoint_is_synced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    sync, is_broken = files.sync_path, False

    def recorded(name: str) -> None:
        if is_broken and name.endswith("/offsets"):
            raise OSError(errno.EIO, "broken", name)
        sync(name)
        told.append(name)

    def synced() -> set[str]:
        told.clear()
        sync_checkpoint(f"file:{root}")
        inside = [Path(name).relative_to(root).as_posix() for name in told if Path(name).is_relative_to(root)]
        assert len(inside) == len(set(inside))
        return set(inside) | {"above" for name in told if not Path(name).is_relative_to(root)}

    def write(name: str, text: str = "v1") -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)

    monkeypatch.setattr(files, "sync_path", recorded)
    root = tmp_path / "a" / "checkpoint"
    write("metadata")
    write("offsets/0")
    write("sources/0/0")
    assert synced() == {"metadata", "offsets", "offsets/0", "sources", "sources/0", "sources/0/0", ".", "above"}
    assert {str(path) for path in root.parents} <= set(told), "the names of new folders above must survive, too"
    assert synced() == set()
    write("commits/0")
    write("offsets/1")
    is_broken = True
    with pytest.raises(StorageError):
        synced()
    is_broken = False
    assert synced() == {"commits", "commits/0", "offsets", "offsets/1", "."}, "what failed is not done"
    write("offsets/1", "longer")
    (root / "offsets" / "0").unlink()
    assert synced() == {"offsets", "offsets/1", "."}
    shutil.rmtree(root)
    write("metadata", "another")
    write("offsets/0")
    assert synced() == {"metadata", "offsets", "offsets/0", ".", "above"}, "another checkpoint in the same place"
