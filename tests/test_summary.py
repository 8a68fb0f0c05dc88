"""Objects show what they are, without reading or running anything, and harmlessly in a notebook."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from coprlake import Table, contains, create_table
from coprlake.ingestion import IngestReport
from coprlake.intake.options import IntakeReport
from coprlake.predicate.predicates import Not, Predicate
from coprlake.query.duck_scan import ScanReport
from coprlake.query.querying import QueryReport
from coprlake.query.report import SearchReport
from coprlake.query.searching import Candidates
from coprlake.segment.mutable import SegmentReport
from coprlake.sketch.sealing import SealReport
from coprlake.spark.streams.streaming import BatchReport
from coprlake.storage.deleting import DeleteReport, DeletionStatus
from coprlake.storage.indexing import IndexReport
from coprlake.storage.information import TableInfo
from coprlake.storage.optimizing import OptimizeReport
from coprlake.storage.vacuuming import VacuumReport
from coprlake.storage.verifying import VerifyReport
from coprlake.storage.writer import WriteReport
from coprlake.summary import Report

EVIL = '<script>alert("x")</script>&'


class Cells(HTMLParser):
    """The texts of a table, and the tags that it is made of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def cells(shown: Any) -> list[str]:
    found = Cells(shown._repr_html_())
    assert found.tags <= {"table", "caption", "tbody", "tr", "th", "td", "br"}
    return found.texts


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = create_table(tmp_path / "t", partition_by=None)
    table.append([{"id": n, "content": f"line {n}"} for n in range(1500)])
    return table


@dataclass(repr=False)
class Small(Report):
    always_shown = ("rows",)

    rows: int = 0
    raw_bytes: int = 0
    part: float = 0.0
    name: str = ""
    problems: list[str] = field(default_factory=list)
    inner: list[Report] = field(default_factory=list)


def test_a_report_leaves_out_what_is_nothing() -> None:
    assert repr(Small()) == "Small(rows=0)"
    assert (
        repr(Small(raw_bytes=1234567, part=1 / 3, name="a"))
        == "Small(rows=0, raw_bytes=1234567, part=0.3333, name='a')"
    )
    assert cells(Small(raw_bytes=1234567)) == ["Small", "rows", "0", "raw bytes", "1,234,567"]


def test_long_values_are_cut_and_reports_inside_are_counted() -> None:
    shown = Small(problems=[f"problem {n}" for n in range(50)], inner=[Small(), Small()], name="x" * 5000)
    assert len(repr(shown)) < 300
    assert "inner=2" in repr(shown)
    found = cells(shown)
    assert {"problem 0", "problem 19", "and 30 more"} <= set(found)
    assert "problem 20" not in found
    assert max(map(len, found)) < 1100


REPORTS: list[Report] = [
    SearchReport(predicate=contains(EVIL), notes=[EVIL], seconds={EVIL: 0.1}),
    QueryReport("duckdb", EVIL, sql=EVIL, warnings=[EVIL]),
    ScanReport("logs", EVIL, [EVIL], EVIL, SearchReport()),
    SealReport({EVIL: 1}, {EVIL: 0.5}),
    SegmentReport(EVIL, 1, 1, 10, 5, 0, 1, {EVIL: 3}, {EVIL: 0.1}),
    OptimizeReport(version=3, segments_before=4, segments_after=1),
    VacuumReport(dry_run=True, data_files=[EVIL]),
    VerifyReport(2, 10, data_problems=[EVIL]),
    IndexReport(indexed=1, problems=[EVIL]),
    TableInfo(EVIL, 3, [EVIL], {EVIL: "string"}, "paper", rows=7),
    WriteReport(version=3, row_count=7),
    DeleteReport(version=4, rows=2),
    DeletionStatus(4, datetime(2026, 11, 18, tzinfo=UTC), EVIL, 2, "hidden", files_left=[EVIL]),
    IntakeReport(files=1, records=7, warnings=[EVIL], warning_count=1),
    IngestReport(IntakeReport(warnings=[EVIL]), [WriteReport(version=3, row_count=7)], 0.5),
    BatchReport(1, IntakeReport(warnings=[EVIL]), 7, 100, 1, 0.5),
]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: type(report).__name__)
def test_every_report_is_short_and_harmless(report: Report) -> None:
    name = type(report).__name__
    text = repr(report)
    assert text.startswith(f"{name}(")
    assert len(text) < 1000
    assert "\n" not in text
    assert cells(report)[0] == name


def test_the_reports_say_what_matters() -> None:
    assert repr(REPORTS[7]).startswith("VerifyReport(is_sound=False, segments=2, rows=10, data_problems=[")
    assert repr(WriteReport()) == "WriteReport(version=None, row_count=0)"
    assert repr(REPORTS[14]).startswith("IngestReport(version=3, row_count=7, raw_bytes=0, ")
    assert repr(SearchReport(predicate=contains("a b"))).startswith("SearchReport(predicate='contains(")


def test_a_table_shows_its_size(table: Table) -> None:
    data_bytes = table.info().data_bytes
    assert repr(table).startswith("Table(uri='")
    assert repr(table).endswith(f", version={table.version}, segments=1, rows=1500, data_bytes={data_bytes})")
    shown = cells(table)
    assert shown[:5] == ["Table", "uri", table.uri, "version", str(table.version)]
    assert {"1,500", "content: string", "id: int64"} <= set(shown)


def test_a_table_whose_log_knows_no_counts_says_nothing_of_rows(tmp_path: Path, table: Table) -> None:
    for segment in table.snapshot().segments:
        object.__setattr__(segment.entry, "row_count", None)
    assert "rows" not in repr(table)


def test_showing_a_search_or_a_query_runs_nothing(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    search = table.search(contains(EVIL), since="2026-11-18", columns=["id"], order="newest", limit=3)
    query = table.query("fetch logs | fields id | limit 3")

    def fail(*_: object) -> None:
        raise AssertionError("something was run")

    monkeypatch.setattr(Candidates, "_stream", fail)
    monkeypatch.setattr("coprlake.query.querying.Query._run", fail)
    monkeypatch.setattr(Table, "_view", fail)
    assert "since='2026-11-18T00:00:00.000000Z', columns=('id',), order='newest', limit=3)" in repr(search)
    assert repr(search).startswith("Search(predicate='contains(")
    assert {"Search", "predicate", "since", "limit", "3"} <= set(cells(search))
    assert repr(query) == "Query(text='fetch logs | fields id | limit 3', columns=['id'], engine='duckdb')"
    assert cells(query) == [
        "Query",
        "text",
        "fetch logs | fields id | limit 3",
        "columns",
        "id: int64",
        "engine",
        "duckdb",
    ]
    assert repr(table.search()) == f"Search(predicate={str(table.search()._asked)!r})"


def test_a_predicate_that_is_nested_too_deeply_is_shown_all_the_same(table: Table) -> None:
    predicate: Predicate = contains("x")
    for _ in range(50_000):
        predicate = Not(predicate)
    assert repr(table.search(predicate)) == "Search(predicate='Not(...)')"
    assert "Not(...)" in repr(SearchReport(predicate=predicate))
