"""Bytes that are not UTF-8, and characters that drive a terminal."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from coprlake.cli.main import cli
from coprlake.cli.printing.harmless import harmless, harmless_json, one_line
from coprlake.predicate.build import contains, equals
from coprlake.predicate.predicates import ALL_FIELDS
from coprlake.table import create_table, open_table

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
        assert table.search(contains("ab", "content")).count() == 1
        assert table.search(contains("value", ALL_FIELDS)).count() == 1
        assert table.search(equals("key", "ab\udcffcd")).count() == 1  # as an argument of a command has such bytes
        assert table.search(equals("ab\udcffcd", "value")).count() == 1
        assert sorted(row["content"] for row in table.search().rows()) == [f"bad {MENDED}", "good line"]
        assert len(list(table.search("line", context=1).rows())) == 1
        assert table.index(rebuild=True).indexed == 1
    assert table.verify(deep=True).is_sound


EVIL = "a\x1b]0;owned\x07\x9b31m\u202eb\u2066"
"""An escape sequence, a bell, a C1 control character, and signs that turn a line around."""
DRIVING = ("\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\x85", "\u2028")


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


def assert_harmless(result: Result) -> None:
    assert not [sign for sign in DRIVING if sign in result.output], repr(result.output)


def test_file_names_in_warnings_and_errors_are_harmless(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / f"{EVIL}.log").write_bytes(b"2026-11-16T03:55:00Z INFO bad \xff\n")
    (folder / "new\nline: coprlake: error: gone.log").write_bytes(b"2026-11-16T03:55:00Z INFO bad \xff\n")
    (folder / os.fsdecode(b"\xff.log")).write_bytes(b"2026-11-16T03:55:00Z INFO bad \xff\n")
    result = run("ingest", folder, "--into", tmp_path / "t", "--engine", "local")
    assert result.exit_code == 0
    assert "not valid utf-8; invalid bytes became U+FFFD" in result.stderr
    assert_harmless(result)
    assert not [line for line in result.stderr.splitlines() if line.startswith("line: coprlake")]
    assert_harmless(run("ingest", folder, "--into", tmp_path / "u", "--engine", "local", "--json"))
    for arguments in (["search", "x", tmp_path / EVIL], ["ingest", tmp_path / EVIL, "--into", tmp_path / "t"]):
        result = run(*arguments)
        assert result.exit_code == 2
        assert_harmless(result)
    assert_harmless(run("search", "bad", tmp_path / "t", "-o", "table"))


def test_keys_columns_and_reports_are_harmless(tmp_path: Path) -> None:
    path = tmp_path / f"t{EVIL}\nline"
    pq.write_table(pa.table({"content": ["x"], EVIL: ["y"], "new\nline": ["z"]}), _made(path) / f"{EVIL}.parquet")
    table = ["--table", path]
    for arguments in (
        ["info", path],
        ["info", path, "--segments"],
        ["info", path, "--json"],
        ["explain", "x", path, "-f", EVIL],
        ["search", "x", path, "--stats"],
        ["search", "x", path, "-o", "table", "--columns", f"{EVIL},new\nline"],
        ["search", "x", path, "--where", f"{EVIL}{EVIL}=1"],
        ["search", "x", path, "--columns", f"{EVIL}{EVIL}"],
        ["search", path, "--where", EVIL],
        ["verify", path],
        ["verify", path, "--json"],
        ["query", "fetch logs | fields `content`", *table, "--explain"],
        ["query", f'fetch logs | filter nothing == "{EVIL}"', *table],
    ):
        assert_harmless(run(*arguments))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_json_keeps_its_meaning() -> None:
    text = json.dumps({EVIL: "\udcff"}, ensure_ascii=False)
    assert json.loads(harmless_json(text)) == {EVIL: "\udcff"}
    assert len(harmless(EVIL)) == len(EVIL)
    assert one_line("a\nb") == "a\u240ab"
