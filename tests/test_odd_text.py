"""Bytes that are not UTF-8, and characters that drive a terminal."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coprlake.predicate.build import contains, equals
from coprlake.predicate.predicates import ALL_FIELDS
from coprlake.store import create_table, open_table

BAD = b"ab\xffcd"
MENDED = "ab\ufffdcd"


def strings(*values: bytes | None, kind: pa.DataType | None = None) -> pa.Array:
    """Text that is not valid, as another program may hand it over."""
    return pa.array(values, pa.binary()).view(pa.string()).cast(kind or pa.string())


def attributes(*pairs: tuple[bytes, bytes]) -> pa.Array:
    keys, items = strings(*(key for key, _ in pairs)), strings(*(item for _, item in pairs))
    return pa.MapArray.from_arrays(pa.array(range(len(pairs) + 1), pa.int32()), keys, items)


def odd_records() -> pa.Table:
    return pa.table(
        {
            "content": strings(b"good line", b"bad " + BAD),
            "source": strings(BAD, b"web"),
            "loglevel": strings(b"INFO", BAD),
            "attributes": attributes((BAD, b"value"), (b"key", BAD)),
            "list": pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), strings(BAD, b"fine")),
            "host": strings(BAD, BAD).dictionary_encode(),
        }
    )


@pytest.mark.parametrize("partition_by", ["day", "source", None])
def test_append_replaces_what_is_not_utf8(tmp_path: Path, partition_by: str | None) -> None:
    table = create_table(tmp_path / "t", partition_by=partition_by)
    table.append(odd_records())
    rows = sorted(table.search().rows(), key=lambda row: row["content"])
    assert [row["content"] for row in rows] == [f"bad {MENDED}", "good line"]
    assert [row["source"] for row in rows] == ["web", MENDED]
    assert [row["attributes"] for row in rows] == [[("key", MENDED)], [(MENDED, "value")]]
    assert [row["list"] for row in rows] == [["fine"], [MENDED]]
    assert {row["host"] for row in rows} == {MENDED}
    assert table.search(equals(MENDED, "value")).count() == 1
    assert table.search(equals("source", MENDED)).count() == 1
    assert table.verify(deep=True).is_sound


def test_append_leaves_valid_text_alone(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by=None)
    table.append(pa.table({"content": ["naïve 😀", "\x00\x1b[31m"], "source": ["ü", None]}))
    assert {row["content"] for row in table.search().rows()} == {"naïve 😀", "\x00\x1b[31m"}


def test_files_of_others_are_indexed_and_searched_as_they_are(tmp_path: Path) -> None:
    pq.write_table(odd_records(), tmp_path / "a.parquet", row_group_size=1)
    table = open_table(tmp_path)
    for _ in range(2):
        assert table.search(contains("ab")).count() == 1
        assert table.search(contains("value", ALL_FIELDS)).count() == 1
        assert table.search(equals("key", "ab\udcffcd")).count() == 1  # as an argument of a command has such bytes
        assert table.search(equals("ab\udcffcd", "value")).count() == 1
        assert sorted(row["content"] for row in table.search().rows()) == [f"bad {MENDED}", "good line"]
        assert len(list(table.search("line", context=1).rows())) == 1
        assert table.index(rebuild=True).indexed == 1
    assert table.verify(deep=True).is_sound
