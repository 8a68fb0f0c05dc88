"""Files that were ingested before are passed over, and of files that have grown only what is new is read."""

import bz2
import gzip
import json
import os
import tempfile
import threading
import zipfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import example, given, settings
from hypothesis import strategies as st

import coprlake
from coprlake.errors import ConflictError, UsageError
from coprlake.ingestion import IngestReport
from coprlake.intake.reading import Intake, ReadOptions
from coprlake.intake.sources.contents import PIECE_BYTES, ContentHash, RangeContent, joined_ranges, piece_digests
from coprlake.storage.ledger import LEDGER_FOLDER, Ledger, page_name
from coprlake.storage.log.checkpointing import write_checkpoint
from coprlake.table import Table, create_table, open_table

LINE = "2026-11-16T03:55:{:02}Z INFO number {}\n"


def lines(first: int, last: int) -> str:
    return "".join(LINE.format(i % 60, i) for i in range(first, last))


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    monkeypatch.chdir(tmp_path)
    return create_table("table")


def told(report: IngestReport) -> tuple[int, int, int]:
    """Records, files that were known, files that had grown."""
    return report.row_count, report.read.known, report.read.continued


def contents(table: Table) -> Counter[str]:
    return Counter(row["content"] for row in table.search(columns=["content"]).rows())


def test_the_same_file_is_ingested_once(table: Table) -> None:
    Path("app.log").write_text(lines(0, 10))
    assert told(table.ingest("app.log")) == (10, 0, 0)
    assert told(table.ingest("app.log")) == (0, 1, 0)
    assert told(table.ingest("./app.log")) == (0, 1, 0)
    assert told(table.ingest(Path("app.log").absolute())) == (0, 1, 0)
    assert told(open_table("table").ingest([Path("app.log")])) == (0, 1, 0)
    assert told(coprlake.ingest("*.log", into="table")) == (0, 1, 0)
    assert table.count() == 10
    assert told(table.ingest("app.log", again=True)) == (10, 0, 0)
    assert table.count() == 20


def test_a_file_with_other_content_is_another_file(table: Table) -> None:
    Path("app.log").write_text(lines(0, 10))
    table.ingest("app.log")
    for text in (lines(5, 15), lines(0, 9), lines(0, 8) + "x" + lines(8, 12)):
        Path("app.log").write_text(text)
        assert told(table.ingest("app.log"))[1:] == (0, 0)


def test_what_has_grown_brings_what_is_new(table: Table) -> None:
    for count in (1, 2, 30, 31, 5000, 50_000):
        Path("app.log").write_text(lines(0, count))
        report = table.ingest("app.log")
        assert table.count() == count
        assert report.read.warnings == []
    assert report.row_count == 45_000
    assert set(contents(table).values()) == {1}


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_rotated_and_compressed_files_are_known(table: Table, pack: object) -> None:
    assert callable(pack)
    log = Path("logs/app.log")
    log.parent.mkdir()
    log.write_text(lines(0, 10))
    table.ingest("logs")
    log.write_text(lines(0, 20))  # grew once more, then it was rotated
    log.rename("logs/app.log.1")
    log.write_text(lines(20, 30))
    assert told(table.ingest("logs")) == (20, 0, 1)
    Path("logs/app.log.2.gz").write_bytes(pack(Path("logs/app.log.1").read_bytes()))
    log.rename("logs/app.log.1")
    log.write_text(lines(30, 31))
    assert told(table.ingest("logs")) == (1, 2, 0)
    Path("logs/app.log.2.gz").write_bytes(pack(lines(0, 20).encode() + lines(40, 42).encode()))
    assert told(table.ingest("logs")) == (2, 2, 1), "a compressed file that grew"
    assert set(contents(table).values()) == {1}
    assert table.count() == 33


def test_a_copy_of_a_file_that_is_still_there_is_a_file_of_its_own(table: Table) -> None:
    for host in ("web-1", "web-2"):
        Path(host).mkdir()
        Path(host, "boot.log").write_text("started\n")
    assert told(table.ingest("web-*")) == (2, 0, 0), "in one ingest, too"
    Path("web-3").mkdir()
    Path("web-3/boot.log").write_text("started\n")
    assert told(table.ingest("web-*")) == (1, 2, 0)
    Path("other.log").write_text("started\nand more\n")
    assert told(table.ingest("other.log")) == (2, 0, 0), "a short file that begins alike goes on with none"


CUT = [
    ("one\ntw", "o\nthree\n", ["one", "tw", "two", "three"]),
    ("one\ntwo", "\nthree\n", ["one", "two", "three"]),
    ("one\ntwo", "\r\nthree\n", ["one", "two", "three"]),
    (LINE.format(1, 1) + "Traceback (most recent call last):\n", "  File x\nValueError: y\n" + LINE.format(2, 2), None),
    (LINE.format(1, 1), "\tat frame\n" + LINE.format(2, 2), None),
]


@pytest.mark.parametrize(("first", "more", "expected"), CUT)
def test_a_record_that_was_cut_is_stored_whole_too(
    table: Table, first: str, more: str, expected: list[str] | None
) -> None:
    Path("a.log").write_bytes(first.encode())
    before = table.ingest("a.log").row_count
    Path("a.log").write_bytes((first + more).encode())
    report = table.ingest("a.log")
    with Intake(["a.log"]) as intake:
        whole = [row["content"] for batch in intake for row in batch.to_pylist()]
    assert not Counter(whole) - contents(table), "all records are there, none is in parts only"
    cut = "stored again, whole" in "".join(report.read.warnings)
    assert table.count() == len(whole) + cut
    assert before + report.row_count == table.count()
    if expected is not None:
        assert sorted(contents(table).elements()) == sorted(expected)


PARTS = [
    LINE.format(1, 1), LINE.format(2, 2), "plain\n", "\tat frame\n", "\n", "Caused by: x\n", "java.io.IOException: y\n",
    "Traceback (most recent call last):\n", '  File "x"\n', "ValueError: z\n", "}\n", "ä\N{GRINNING FACE}\n", "cr\r\n",
    '{"message": "json", "n": 1}\n', "x" * 100 + "\n", "Nov 16 03:55:00 host app[1]: syslog\n",
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=12),
    st.lists(st.integers(0, 600), min_size=1, max_size=4),
    st.sampled_from(["plain", "gzip"]),
    st.sampled_from([{}, {"multiline": ""}, {"multiline": "^2026"}, {"encoding": "latin-1"}, {"format": "text"}]),
)
@example(["plain\n"], [3], "plain", {})
@example(["cr\r\n", "plain\n"], [3], "plain", {})
@example([LINE.format(1, 1), "Caused by: x\n"], [36], "plain", {})
@example(["Traceback (most recent call last):\n", "ValueError: z\n"], [36], "plain", {})
def test_nothing_is_lost_or_split_wherever_a_file_was_cut(
    parts: list[str], cuts: list[int], kind: str, options: dict[str, Any]
) -> None:
    """However often a growing file is ingested, each record of the whole file is in the table."""
    whole = "".join(parts).encode()
    options = {"format": "text"} | options  # what is detected may change with more to see; the first one counts
    with tempfile.TemporaryDirectory() as folder:
        file, table = Path(folder, "a.log"), create_table(Path(folder, "table"))
        told_of = 0
        for size in [*sorted(cut % (len(whole) + 1) for cut in cuts), len(whole)]:
            file.write_bytes(gzip.compress(whole[:size]) if kind == "gzip" else whole[:size])
            report = table.ingest(file, **options)
            told_of += sum("stored again" in text for text in report.read.warnings)
            assert "from its beginning" not in "".join(report.read.warnings)
        with Intake([file], ReadOptions(**options)) as intake:
            expected = Counter(row["content"] for batch in intake for row in batch.to_pylist())
        found = contents(table)
        assert not expected - found
        assert (found - expected).total() <= 2 * told_of, "the record, and the line of it that was not complete"
        assert told(table.ingest(file, **options))[0] == 0


def test_tables_and_wide_text_grow(table: Table) -> None:
    Path("t.csv").write_text('time,message\n2026-01-01T00:00:00Z,"one, ""1"""\n2026-01-01T00:00:01Z,tw')
    assert table.ingest("t.csv").row_count == 2
    Path("t.csv").write_text(
        'time,message\n2026-01-01T00:00:00Z,"one, ""1"""\n2026-01-01T00:00:01Z,two\n2026-01-01T00:00:02Z,"a\nb"\n'
    )
    assert told(table.ingest("t.csv")) == (2, 0, 1)
    assert contents(table) == Counter(['one, "1"', "tw", "two", "a\nb"])
    Path("w.log").write_bytes("wide 1\nwi".encode("utf-16"))
    table.ingest("w.log")
    Path("w.log").write_bytes("wide 1\nwide 2\nwide 3\n".encode("utf-16"))
    assert told(table.ingest("w.log")) == (2, 0, 1)
    assert contents(table)["wide 3"] == contents(table)["wide 2"] == contents(table)["wide 1"] == 1


def test_archives_and_parquet(table: Table) -> None:
    with zipfile.ZipFile("logs.zip", "w") as archive:
        archive.writestr("a.log", "a\n")
    assert told(table.ingest("logs.zip")) == (1, 0, 0)
    assert told(table.ingest("logs.zip")) == (0, 1, 0)
    with zipfile.ZipFile("logs.zip", "a") as archive:
        archive.writestr("b.log", "b\n")
    assert told(table.ingest("logs.zip")) == (1, 1, 0), "of an archive that changed, only the new members"
    Path("logs.zip").rename("logs.zip.1")
    assert told(table.ingest("logs.zip.1")) == (0, 1, 0)
    create_table("other", partition_by=None).append([{"content": "in Parquet"}])
    (file,) = (path for path in Path("other").glob("*.parquet"))
    assert told(table.ingest(file)) == (1, 0, 0)
    assert told(table.ingest(file)) == (0, 1, 0)


def test_the_list_survives_checkpoints_optimize_vacuum_and_other_commits(table: Table) -> None:
    Path("a.log").write_text(lines(0, 5))
    table.ingest("a.log")
    table.append([{"content": "by hand"}])
    write_checkpoint(table.ledger()._log.folder, table.snapshot().version)
    for path in Path("table/_delta_log").glob("*.json"):
        if int(path.stem) < table.version:
            path.unlink()  # as log clean-up does
    for number in range(30):
        Path(f"{number}.txt").write_text(f"file {number}\n")
        open_table("table").ingest(f"{number}.txt")
    again = open_table("table")
    again.optimize()
    again.vacuum(retention_hours=0)
    assert len(again.ledger().live_names()) <= 8, "pages are merged as they become many"
    assert len(again.ledger().contents) == 31
    for name in (*(f"{number}.txt" for number in range(30)), "a.log"):
        assert told(open_table("table").ingest(name)) == (0, 1, 0)
    assert DeltaTable("table").to_pyarrow_table().num_rows == again.count() == 36


def test_old_pages_are_removed_by_vacuum(table: Table) -> None:
    for number in range(5):
        Path("a.log").write_text(lines(0, number + 1))
        table.ingest("a.log")
    for path in Path("table", LEDGER_FOLDER).iterdir():
        os.utime(path, (0, 0))
    table.vacuum()
    left = {f"{LEDGER_FOLDER}/{path.name}" for path in Path("table", LEDGER_FOLDER).iterdir()}
    assert left == table.ledger().live_names()
    assert len(table.ledger().contents) == 1, "a file that grew is listed once"
    assert told(table.ingest("a.log")) == (0, 1, 0)


def test_a_damaged_list_is_told_and_does_no_harm(table: Table) -> None:
    Path("a.log").write_text(lines(0, 5))
    table.ingest("a.log")
    (page,) = Path("table", LEDGER_FOLDER).iterdir()
    page.write_bytes(b"nonsense")
    report = table.ingest("a.log")
    assert report.row_count == 5
    assert "may be ingested again" in report.read.warnings[0]
    page.unlink()
    assert told(table.ingest("a.log")) == (0, 1, 0), "what was ingested since is known"


def test_two_ingests_of_the_same_file_at_once_commit_it_once(table: Table) -> None:
    Path("a.log").write_text(lines(0, 5))
    Path("b.log").write_text(lines(5, 10))
    first, second = open_table("table").ledger(), open_table("table").ledger()
    with Intake(["a.log"]) as intake:
        list(intake)
        found = intake.contents
    writer = open_table("table").writer()
    writer.append([{"content": "first"}])
    first.record(found, lambda once: writer.commit(once=once))
    late = open_table("table").writer()
    late.append([{"content": "second"}])
    with pytest.raises(ConflictError, match="somebody else has ingested this file"):
        second.record(found, lambda once: late.commit(once=once))
    assert open_table("table").count() == 1
    with Intake(["b.log"]) as intake:
        list(intake)
        other = intake.contents
    second.record(other, lambda once: late.commit(once=once))
    assert {one.path for one in open_table("table").ledger().contents} == {found[0].path, other[0].path}


def test_many_threads_ingest_the_same_files(table: Table) -> None:
    for number in range(6):
        Path(f"{number}.log").write_text(lines(number, number + 1))
    errors: list[BaseException] = []

    def work() -> None:
        for number in range(6):
            try:
                open_table("table").ingest(f"{number}.log")
            except ConflictError as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert set(contents(open_table("table")).values()) == {1}
    assert open_table("table").count() == 6


def test_a_failed_ingest_leaves_no_trace(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.log").write_text(lines(0, 5))
    with monkeypatch.context() as patched:
        patched.setattr("coprlake.storage.log.publishing.CommitPublisher.swap", _refuse)
        with pytest.raises(OSError, match="disk"):
            table.ingest("a.log")
    assert not open_table("table").ledger()
    assert told(table.ingest("a.log")) == (5, 0, 0)


def _refuse(*_: object) -> bool:
    raise OSError("no disk")


def test_after_a_delete_files_stay_known(table: Table) -> None:
    Path("a.log").write_text(lines(0, 5))
    table.ingest("a.log")
    table.delete(until="now")
    assert told(table.ingest("a.log")) == (0, 1, 0)
    assert told(table.ingest("a.log", again=True)) == (5, 0, 0)


def test_commits_in_between_know_the_files_that_were_read(table: Table) -> None:
    for number in range(5):
        Path(f"{number}.log").write_text(lines(number * 1000, number * 1000 + 1000))
    report = table.ingest("*.log", commit_bytes=40_000)
    assert len(report.written) > 1
    assert told(table.ingest("*.log")) == (0, 5, 0)
    assert table.count() == 5000


@given(st.binary(max_size=400), st.lists(st.integers(1, 399), max_size=5), st.integers(1, 64))
def test_the_hash_of_ranges_is_that_of_the_file(data: bytes, cuts: list[int], piece_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patched, tempfile.TemporaryDirectory() as folder:
        patched.setattr("coprlake.intake.sources.contents.PIECE_BYTES", piece_bytes)
        file = Path(folder, "a")
        file.write_bytes(data)
        whole = ContentHash()
        for place in range(0, len(data), 7):
            whole.update(data[place : place + 7])
        bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
        with file.open("rb") as raw:
            ranges = [
                RangeContent("a", start, end, data[:4096], piece_digests(raw, start, end, len(data)), "text")
                for start, end in pairwise(bounds)
            ]
        assert joined_ranges(reversed(ranges)) == ([whole.content("a", "text")] if data else [])
        assert len(ranges) < 2 or joined_ranges(ranges[1:]) == [] or len(ranges[0].digests) == 0


def test_unknown_options_are_told(table: Table) -> None:
    with pytest.raises(UsageError, match="did you mean source"):
        table.ingest("a.log", sorce="x")


def test_pages_have_names_that_the_log_knows(table: Table) -> None:
    Path("a.log").write_text("a\n")
    table.ingest("a.log")
    last = json.loads(sorted(Path("table/_delta_log").glob("*.json"))[-1].read_text().splitlines()[1])
    assert last["txn"]["appId"] == "coprlake.ingested"
    assert Path("table", page_name(last["txn"]["version"])).is_file()
    assert isinstance(open_table("table").ledger(), Ledger)
    assert PIECE_BYTES == 1 << 20
