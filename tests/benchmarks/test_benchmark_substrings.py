"""The comparison of rule sets runs on little data, and says what it promises to say."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import substrings
from benchmarks.figures import SUBSTRINGS, substrings_table

pytestmark = pytest.mark.slow

SMALL = ["--queries", "4", "--rounds", "1"]


@pytest.fixture(autouse=True)
def _little_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(substrings, "LEAST_SECONDS", 0.0)


def test_both_rule_sets_have_all_figures_and_find_the_same_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert substrings.main(["--megabytes", "5", "--json", *SMALL]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["logs"], figures["queries"], figures["segments"]) == ("generated", 4, 1)
    assert figures["lines"]["contains_fragment"] >= 4
    for way in ("paper", "default"):
        assert 0 < figures[way]["index_percent"] < 100
        assert 0 < figures[way]["seal_seconds"] < figures[way]["ingest_seconds"]
        assert list(figures[way]["speedup_over_scan"]) == list(figures[way]["error_rate"]) == list(SUBSTRINGS)
        assert all(0 <= rate <= 1 for rate in figures[way]["error_rate"].values())
    assert figures["paper_8_bits_index_percent"] < figures["paper"]["index_percent"]
    assert figures["default"]["error_rate"]["contains_number"] < figures["paper"]["error_rate"]["contains_number"]
    table = substrings_table(figures)
    assert len(table.splitlines()) == 2 + len(SUBSTRINGS) + 1 + 2 + 3


def way_figures(speedup: float, error_rate: float, cost: float) -> dict[str, Any]:
    return {
        "index_percent": cost, "ingest_seconds": cost, "seal_seconds": cost,
        "speedup_over_scan": dict.fromkeys(SUBSTRINGS, speedup), "error_rate": dict.fromkeys(SUBSTRINGS, error_rate),
    }  # fmt: skip


def test_limits_are_reached_or_not() -> None:
    figures = substrings.ratios(way_figures(100.0, 0.1, 1.0), way_figures(95.0, 0.1, 1.15))
    missed = {check["name"].partition(":")[0] for check in figures["reached"] if not check["reached"]}
    assert missed == {"contains_ip", "contains_number", "contains_hex", "index_percent", "ingest_seconds"}
    assert [check["limit"] for check in figures["reached"] if check["name"].startswith("contains_ip")] == [50, 150]
    figures = substrings.ratios(way_figures(1000.0, 0.1, 1.0), way_figures(800.0, 0.2, 1.0))
    missed = {check["name"].partition(":")[0] for check in figures["reached"] if not check["reached"]}
    assert missed == {"contains_id", "term_id", "term_ip"}


def test_logs_of_your_own_are_taken_as_they_are_up_to_the_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "mine"
    logs.mkdir()
    for name in ("a.log", "b.log"):
        lines = [f"2026-11-16 03:55:00 INFO handled request{i:08d} from client{i % 7:08d}" for i in range(3000)]
        (logs / name).write_text("\n".join(lines))
    assert substrings.main(["--logs", str(logs), "--megabytes", "1", *SMALL]) == 0
    out = capsys.readouterr().out
    assert out.startswith("logs: mine, 0.4 MB")
    assert "contains(fragment)" in out
    assert str(tmp_path) not in out
    cut = tmp_path / "cut"
    cut.mkdir()
    assert substrings.prepare_logs(logs, 0.01, 1, cut) == "mine"
    assert [file.name for file in cut.iterdir()] == ["00000.log"]


def test_samples_are_what_logs_are_generated_after(tmp_path: Path) -> None:
    samples, logs = tmp_path / "samples", tmp_path / "logs"
    samples.mkdir()
    logs.mkdir()
    lines = [f"2026-11-16 03:55:{i % 60:02d} INFO handled request {i:08d}" for i in range(2000)]
    (samples / "Own_2k.log").write_text("\n".join(lines))
    assert substrings.prepare_logs(samples, 1, 1, logs) == "generated after the samples of samples"
    assert sum(file.stat().st_size for file in logs.iterdir()) == pytest.approx(1e6, rel=0.2)


@pytest.mark.parametrize(
    "arguments",
    [["--logs", "nowhere"], ["--logs", "empty"], ["--megabytes", "0"], ["--megabytes", "nan"], ["--queries", "0"],
     ["--rounds", "0"], ["--seed", "-1"]],
    ids=" ".join,
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert substrings.main(arguments) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line != "logs"]
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
