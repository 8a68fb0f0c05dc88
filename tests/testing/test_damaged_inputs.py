"""Defects that hostile bytes have found, each as small as it gets."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coprlake
from coprlake.errors import CoprlakeError, NotFoundError, UnreadableDataError, UnreadableTableError
from coprlake.files import Folder
from coprlake.storage.log.panics import panics_refused


def contents(path: Path, **options: str) -> list[str]:
    with coprlake.Intake([path], coprlake.ReadOptions(**options)) as intake:  # type: ignore[arg-type]
        return [line for batch in intake for line in batch.column("content").to_pylist()]


def test_a_block_of_csv_whose_rows_are_all_broken_is_kept_as_text(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    good = "".join(f"{number},x\n" for number in range(40))
    file.write_text("number,text\n" + good + "1,2,3,4\n" * 200)
    with coprlake.Intake([file], coprlake.ReadOptions(format="csv", block_bytes=64)) as intake:
        assert sum(map(len, intake)) == 240
    assert intake.report.broken == 200


def test_lines_that_a_quote_in_the_header_has_swallowed_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('time,"text\n' + "2026-11-18T01:02:03Z,needle\n" * 5)
    assert sum(line.count("needle") for line in contents(file, format="csv")) == 5


def test_a_name_with_a_zero_byte_is_not_found(tmp_path: Path) -> None:
    folder = Folder.of(tmp_path)
    for ask in (folder.read, folder.open, folder.data):
        with pytest.raises((NotFoundError, CoprlakeError)):
            ask("a\0b")


def test_a_folder_without_a_readable_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(UnreadableDataError, match=r"a\.parquet"):
        coprlake.open_table(tmp_path)


def test_a_panic_of_a_rust_library_is_an_error() -> None:
    class PanicException(BaseException):
        pass

    with pytest.raises(UnreadableTableError, match="index out of bounds"), panics_refused("/logs"):
        raise PanicException("index out of bounds")
    with pytest.raises(KeyboardInterrupt), panics_refused("/logs"):
        raise KeyboardInterrupt


def test_a_log_with_a_zero_byte_in_a_path_is_an_error(tmp_path: Path) -> None:
    table = coprlake.create_table(tmp_path / "t", partition_by=None)
    table.append(pa.table({"content": ["needle"]}))
    commit = max((tmp_path / "t/_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = "a%00b.parquet"
    commit.write_text("\n".join(map(json.dumps, actions)))
    with pytest.raises(CoprlakeError):
        coprlake.open_table(tmp_path / "t").search("needle", strict=True).arrow()


def test_a_column_whose_name_is_not_utf8_is_named_and_not_raised(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    pq.write_table(pa.table({"wordy": ["a"], "content": ["needle"]}), folder / "a.parquet", store_schema=False)
    whole = (folder / "a.parquet").read_bytes()
    (folder / "a.parquet").write_bytes(whole.replace(b"wordy", b"\xffordy"))
    with pytest.raises(CoprlakeError, match=r"a\.parquet"):
        coprlake.open_table(folder).search("needle").count()
    with coprlake.Intake([str(folder / "a.parquet")]) as intake:
        assert sum(batch.num_rows for batch in intake) == 0
    assert intake.report.unreadable == 1
