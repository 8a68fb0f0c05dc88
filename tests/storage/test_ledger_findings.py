"""What a review found: ways in which files that are taken for known would lose records, or double them."""

import signal
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from coprlake.errors import ConflictError
from coprlake.ingestion import ingest_intake, leave_out_known
from coprlake.intake.options import IntakeReport
from coprlake.intake.reading import Intake, ReadOptions, list_inputs
from coprlake.intake.sources.contents import joined_ranges
from coprlake.storage.known_files import without_known
from coprlake.table import Table, create_table, open_table


def lines(first: int, last: int, word: str = "old") -> str:
    return "".join(f"2026-01-01 00:{i // 60 % 60:02}:{i % 60:02} INFO {word} record {i}\n" for i in range(first, last))


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    monkeypatch.chdir(tmp_path)
    return create_table("table")


def found(word: str) -> int:
    return open_table("table").search(word).count()


def test_a_file_that_is_replaced_before_it_is_read_is_read_whole(table: Table) -> None:
    log = Path("app.log")
    log.write_text(lines(0, 50))
    table.ingest(log)
    log.write_text(lines(0, 60))
    ledger = table.ledger()
    with Intake([log]) as intake:
        leave_out_known(intake, ledger)
        assert intake.files[0].skip > 0
        log.rename("app.log.1")
        log.write_text(lines(0, 100, "new"))
        report = ingest_intake(table, intake, ledger=ledger)
    assert report.row_count == 100
    assert report.read.continued == 0
    assert "replaced" in "".join(report.read.warnings)
    table.ingest(["app.log", "app.log.1"])
    assert (found("new"), found("old")) == (100, 60)


def test_ranges_of_a_file_that_is_replaced_are_refused(table: Table) -> None:
    log = Path("app.log")
    log.write_text(lines(0, 50))
    table.ingest(log)
    log.write_text(lines(0, 200))
    (file,) = without_known(list_inputs([log]), table.ledger(), ReadOptions(), IntakeReport())
    assert file.size is not None
    bounds = [file.skip, log.read_bytes().index(b"2026", file.skip + 900), file.size]
    whole = replace(file, skip=0)
    ranges = [replace(whole, start=start, end=end) for start, end in pairwise(bounds)]
    ranges[0] = replace(ranges[0], hashed_from=0)
    with Intake.of(ranges) as intake:
        assert sum(batch.num_rows for batch in intake) == 150
        assert len(joined_ranges(intake.ranges)) == 1
    log.rename("app.log.1")
    log.write_text(lines(0, 200, "new"))
    with Intake.of(ranges) as intake, pytest.raises(ConflictError, match=r"replaced while .*nothing was committed"):
        list(intake)


def test_ranges_of_different_files_are_no_content(table: Table) -> None:
    log = Path("app.log")
    log.write_text(lines(0, 100))
    middle = log.read_bytes().index(b"2026", 900)
    (file,) = list_inputs([log])
    first = replace(file, end=middle, hashed_from=0)
    second = replace(file, start=middle, end=file.size)
    with Intake.of([first]) as intake:
        list(intake)
        ranges = intake.ranges
    log.rename("app.log.1")
    log.write_text(lines(0, 100, "new"))
    with Intake.of([second]) as intake:
        list(intake)
        assert joined_ranges(ranges + intake.ranges) == []


def test_an_archive_with_members_that_were_passed_over_is_not_known(table: Table) -> None:
    with zipfile.ZipFile("z.zip", "w") as archive:
        archive.writestr("a.log", lines(0, 1))
        archive.writestr("b.log", b"\x00\x01\x02\x00binary\nstuff NEEDLE\n" * 10)
    table.ingest("z.zip")
    report = table.ingest("z.zip", text=True)
    assert report.read.known == 1, "the member that was read"
    assert found("NEEDLE") == 10
    assert found("old") == 1


def test_an_archive_that_was_cut_is_not_known(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coprlake.intake.sources.archives.EXPANSION_FREE_BYTES", 100_000)
    with zipfile.ZipFile("y.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.log", lines(1, 2) * 9000)
        archive.writestr("b.log", lines(2, 3, "second"))
    table.ingest("y.zip", max_expansion=2)
    assert found("old") < 9000
    table.ingest("y.zip", max_expansion=0)
    assert found("old") >= 9000
    assert found("second") == 1


@pytest.mark.parametrize("when", ["while it is read", "before it is read"])
def test_an_archive_that_is_replaced_is_known_by_what_was_read(table: Table, when: str) -> None:
    def pack(name: str, *words: str) -> None:
        with zipfile.ZipFile(name, "w") as archive:
            for number, word in enumerate(words):
                archive.writestr(f"{number}.log", lines(number, number + 1, word))

    pack("w.zip", "one", "two")
    if when == "before it is read":
        table.ingest("w.zip")
        pack("w.zip", "one", "two", "three")
    pack("other.zip", "ONE-NEW", "TWO-NEW", "THREE-NEW")
    ledger = table.ledger()
    with Intake(["w.zip"]) as intake:
        leave_out_known(intake, ledger)
        if when == "while it is read":
            intake.first()
        Path("other.zip").replace("w.zip")
        ingest_intake(table, intake, ledger=ledger)
    table.ingest("w.zip")
    assert [found(word) for word in ("ONE-NEW", "TWO-NEW", "THREE-NEW")] == [1, 1, 1]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_members_are_known_by_their_content_not_their_name(table: Table, kind: str) -> None:
    def add(text: str) -> None:
        if kind == "zip":
            with zipfile.ZipFile("logs", "a") as archive:
                archive.writestr("app.log", text)
        else:
            Path("app.log").write_text(text)
            with tarfile.open("logs", "a") as packed:
                packed.add("app.log")

    for number, word in enumerate(("one", "two", "three")):
        add(lines(number, number + 1, word))
        report = table.ingest("logs")
        assert (report.row_count, report.read.known) == (1, number)
    assert [found(word) for word in ("one", "two", "three")] == [1, 1, 1]
    assert table.ingest("logs").row_count == 0


@pytest.mark.parametrize("more", ["", lines(100, 101)])
@pytest.mark.parametrize(
    ("first", "second"),
    [("host1/app.log", "host2/app.log"), ("job-1.log", "job-2.log"), ("node1", "node2"), ("a.log", "old/a.log.1")],
)
def test_files_that_are_not_one_after_rotation_are_different(table: Table, first: str, second: str, more: str) -> None:
    for name in (first, second):
        Path(name).parent.mkdir(exist_ok=True)
    Path(first).write_text(lines(0, 100))
    table.ingest(first)
    Path(first).unlink()
    Path(second).write_text(lines(0, 100) + more)
    assert table.ingest(second).row_count == 100 + len(more.splitlines())


@pytest.mark.parametrize(
    "name", ["a.log.1", "a.log.old", "a.log-20261118", "a.log.2026-11-18.1", "a.log.2.bak", "b/../a.log.3"]
)
def test_rotated_names(table: Table, name: str) -> None:
    Path("b").mkdir()
    Path("a.log").write_text(lines(0, 3))
    table.ingest("a.log")
    Path("a.log").rename(name)
    assert table.ingest(name).read.known == 1


def test_a_content_stands_for_one_rotated_file_only(table: Table) -> None:
    Path("a.log").write_text("started\n")
    table.ingest("a.log")
    Path("a.log").rename("a.log.2")
    Path("a.log.1").write_text("started\n")  # of the next run
    table.ingest("a.log*")
    assert table.count() == 2


@pytest.fixture
def alarm() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError("it does not end")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("cut", [2, 40, 41, 76, 78, 80])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_wide_text_that_had_no_whole_line_grows(table: Table, encoding: str, cut: int) -> None:
    text = "\ufeff" if encoding == "utf-16-be" else ""
    data = (text + "2026-01-01 00:00:00 INFO hello \u0a0a\u0a00\n2026-01-01 00:00:01 INFO two\n").encode(encoding)
    Path("u.log").write_bytes(data[:cut])
    table.ingest("u.log")
    Path("u.log").write_bytes(data)
    table.ingest("u.log")
    assert found("two") == 1
    assert found("hello") >= 1


@pytest.mark.parametrize("commit_bytes", [1, 500, 5000])
def test_every_file_is_known_however_often_is_committed(table: Table, commit_bytes: int) -> None:
    for number in range(3):
        Path(f"{number}.log").write_text(lines(number * 20, number * 20 + 20))
    assert table.ingest("*.log", commit_bytes=commit_bytes).row_count == 60
    again = open_table("table").ingest("*.log", commit_bytes=commit_bytes)
    assert (again.row_count, again.read.known) == (0, 3)
    assert open_table("table").count() == 60


@pytest.mark.parametrize("cell", ['"hello, {} x"', '"hello\n{} ""x"""', "{}"])
@pytest.mark.parametrize("cut", [0, 1, 9])
def test_a_large_table_with_quotes_grows(table: Table, cell: str, cut: int) -> None:
    row = "2026-01-01T00:00:00Z,INFO," + cell + "," + "x" * 80 + "\n"
    text = "timestamp,level,message,more\n" + "".join(row.format(i) for i in range(12_000))
    assert len(text) > 1 << 20
    Path("g.csv").write_text(text[: len(text) - cut])
    assert table.ingest("g.csv").row_count == 12_000
    Path("g.csv").write_text(text + row.format("last"))
    report = table.ingest("g.csv")
    assert (report.row_count, report.read.continued) == (1 + (cut > 0), 1)


def test_another_source_or_format_is_another_ingest(table: Table) -> None:
    Path("q.csv").write_text("timestamp,message\n2026-01-01T00:00:00Z,hello\n")
    assert table.ingest("q.csv", format="text").row_count == 2
    assert table.ingest("q.csv", format="csv").row_count == 1
    assert table.ingest("q.csv", format="csv", source="web-1").row_count == 1
    assert table.ingest("q.csv", format="csv", source="web-2").row_count == 1
    for options in ({"format": "text"}, {"format": "csv"}, {"format": "csv", "source": "web-1"}):
        assert table.ingest("q.csv", **options).read.known == 1
    with zipfile.ZipFile("z.zip", "w") as archive:
        archive.writestr("a.log", "a\n")
    for source in ("web-1", "web-2"):
        assert table.ingest("z.zip", source=source).row_count == 1
        assert table.ingest("z.zip", source=source).read.known == 1
    Path("a.log").write_text(lines(0, 5))
    table.ingest("a.log", source="web-1")
    Path("a.log").write_text(lines(0, 7))
    assert table.ingest("a.log", source="web-2").row_count == 7
    assert table.ingest("a.log", source="web-1").row_count == 2


def test_what_detection_found_counts_as_that_format(table: Table) -> None:
    Path("q.csv").write_text("timestamp,message\n2026-01-01T00:00:00Z,hello\n")
    table.ingest("q.csv")
    assert table.ingest("q.csv", format="csv").read.known == 1
    assert table.ingest("q.csv", format="text").row_count == 2


def test_what_is_new_is_read_whatever_it_begins_with(table: Table) -> None:
    Path("a.log").write_text(lines(0, 3000))
    table.ingest("a.log")
    with Path("a.log").open("ab") as log:
        log.write(b"PK\x03\x04" + bytes(5000) + b" NEEDLE\n" + lines(3000, 3010).encode())
    table.ingest("a.log")
    assert found("NEEDLE") == 1
    assert {f"record {i}" for i in range(3010)} <= {
        row["content"].split("INFO old ")[1].split("\n")[0] for row in table.search("old", columns=["content"]).rows()
    }


@pytest.mark.parametrize("first", ["job.1", "job-1", "app.log.3"])
def test_numbered_files_without_a_log_that_goes_on_are_different(table: Table, first: str) -> None:
    """The logs of two jobs with equal content, of which the first was removed: a lost line is worse than one twice."""
    second = first[:-1] + "9"
    Path(first).write_text(lines(0, 5))
    assert table.ingest(first).row_count == 5
    Path(first).unlink()
    Path(second).write_text(lines(0, 5))
    assert table.ingest(second).row_count == 5
    Path(second).rename(f"{second}.gz.bak")  # the same number: it was only renamed
    assert table.ingest(f"{second}.gz.bak").read.known == 1


@pytest.mark.parametrize("going_on", ["job", "job.1"])
def test_a_number_grows_if_there_is_a_log_that_goes_on(table: Table, going_on: str) -> None:
    Path("job.1").write_text(lines(0, 5))
    table.ingest("job.1")
    Path("job.1").rename("job.2")
    Path(going_on).write_text(lines(5, 7))
    assert table.ingest("job.2").read.known == 1
    assert table.ingest(going_on).row_count == 2


def test_a_number_grows_if_the_log_was_ingested_before(table: Table) -> None:
    Path("job").write_text(lines(0, 5))
    table.ingest("job")
    Path("job").rename("job.1")
    assert table.ingest("job.1").read.known == 1
    Path("job.1").rename("job.2")
    assert table.ingest("job.2").read.known == 1
