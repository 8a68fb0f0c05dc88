"""The paper's evaluation on 2 MB, with every store that this machine has: from the lines to the page."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.paper import __main__ as paper
from benchmarks.paper import published
from benchmarks.paper.datasets import of_folder
from benchmarks.paper.report import checks
from benchmarks.paper.running import check_agreement, machine, run
from benchmarks.paper.scenarios import SCENARIOS, queries
from benchmarks.stores.base import Answer, Reader, Setting, Sizes, Store
from benchmarks.stores.catalog import stores

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = Path(tmp_path_factory.mktemp("paper")) / "run"
    assert paper.main(["--megabytes", "2", "--sets", "1M_generated", "--budget", "0.05", "--out", str(out)]) == 0
    return out


def test_every_store_is_in_the_results(outcome: Path) -> None:
    rows = [json.loads(line) for line in (outcome / "results.jsonl").read_text().splitlines()]
    assert [row["store"] for row in rows] == [store.name for store in stores()]
    for row, store in zip(rows, stores(), strict=True):
        if store.missing() is None:
            assert "problem" not in row, row
            assert set(row["timings"]) == set(SCENARIOS)
            assert row["data_bytes"] > 0
        else:
            assert row["problem"].startswith("not installed")


def test_the_page_and_the_figures_are_there(outcome: Path) -> None:
    text = (outcome / "README.md").read_text()
    for heading in (
        "## Data (Table 2)",
        "## Ingest and disk",
        "## Queries a second (Table 3)",
        "## Error rates",
        "## Conclusions",
    ):
        assert heading in text
    assert "COPR" in text
    with (outcome / "raw.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert {line["store"] for line in lines} == {store.name for store in stores()}
    assert {line["mode"] for line in lines} >= {"cold", "fresh", "warm"}
    assert json.loads((outcome / "machine.json").read_text())["cores"] >= 1


def test_an_interrupted_run_goes_on(outcome: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (outcome / "results.jsonl").read_text().splitlines()
    (outcome / "results.jsonl").write_text("\n".join(before[:-1]) + "\n")
    arguments = ["--megabytes", "2", "--sets", "1M_generated", "--budget", "0.05", "--out", str(outcome)]
    assert paper.main(arguments) == 0
    told = capsys.readouterr().err
    assert told.count(" s\n") + told.count("not there") == 1
    assert len((outcome / "results.jsonl").read_text().splitlines()) == len(before)


class _Broken(Store):
    name, title, settings = "broken", "Broken", "it fails"

    def ingest(self, content: object, source: object) -> None:
        raise MemoryError

    def finish_index(self) -> None: ...

    def finish_data(self) -> None: ...

    def sizes(self) -> Sizes:
        return Sizes(0, 0)

    def reader(self) -> Reader:
        raise AssertionError


class _Missing(_Broken):
    name, title = "missing", "Missing"

    @classmethod
    def missing(cls) -> str | None:
        return "run: pip install it"


def test_a_store_that_fails_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text("\n".join(f"line {i} of some-file" for i in range(500)) + "\n")
    data = of_folder(tmp_path / "logs", tmp_path)
    assert (data.lines, data.sources) == (500, 1)
    scan = next(store for store in stores() if store.name == "scan")
    said: list[str] = []
    rows = run([_Missing, _Broken, scan], [data], tmp_path, budget=0.01, timeout=120, say=said.append)
    assert rows[0]["problem"] == "not installed: run: pip install it"
    assert rows[1]["problem"].startswith("failed")
    assert rows[2]["lines"]


def test_stores_that_disagree_end_the_run() -> None:
    rows: list[dict[str, Any]] = [
        {"data": "x", "title": "A", "lines": {"term(ID)": [1]}},
        {"data": "x", "title": "B", "problem": "failed"},
        {"data": "x", "title": "C", "lines": {"term(ID)": [2]}},
    ]
    with pytest.raises(SystemExit, match="do not find the same lines"):
        check_agreement(rows)


def test_queries_are_the_same_every_time_and_as_in_the_paper() -> None:
    first, second = (queries("term(ID)", []), queries("contains(ID)", []))
    ids = [next(first).text for _ in range(5)]
    assert ids == [next(second).text for _ in range(5)]
    assert all(len(text) == 16 and text.isalpha() for text in ids)
    address = next(queries("term(IP)", [])).text
    assert [len(part) for part in address.split(".")] == [3, 3, 3]


def test_ratios_of_the_paper() -> None:
    assert published.speedup("term(ID)", "5M_generated", "copr") == pytest.approx(5185, rel=0.01)
    assert published.speedup("term(ID)", "1M_generated", "tantivy") is None
    assert checks([]) == []
    assert machine()["python"]
    assert Answer(lines=pa.array([], pa.string())).error_rate == 0.0
    assert Setting(Path()).copr_index_bytes is None
