"""The runner shares its time, goes on when a torture breaks down, and reports what failed."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import torture


def test_shares_of_time_are_those_of_the_run() -> None:
    alone = torture.seconds_of(torture.ORDER, 60, 1)
    assert sum(alone.values()) == pytest.approx(3600)
    both = torture.seconds_of(torture.ORDER, 60, 2)
    assert sum(both.values()) == pytest.approx(7200)
    assert max(both.values()) <= 3600
    assert torture.seconds_of(["kills"], 2, 2) == {"kills": 120}


@pytest.mark.slow
def test_a_short_run_reports_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--minutes", "2", "--only", "faults", "--cases", "3", "--seed", "4", "--json"]
    assert torture.main([*arguments, "--folder", str(tmp_path)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["faults"]["cases"] >= 3
    assert report["faults"]["failures"] == 0
    assert {"cases", "failures", "seconds", "counts", "examples"} <= report["faults"].keys()
    assert report["seed"] == 4
    assert not list(tmp_path.iterdir()), "nothing is left behind"


def test_a_torture_that_breaks_down_is_a_failure_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def elsewhere(name: str, *_: Any) -> dict[str, Any]:
        return torture._broken(5, name, "it broke down", 0.0).as_json()

    monkeypatch.setattr(torture, "elsewhere", elsewhere)
    assert torture.main(["--minutes", "0.01", "--only", "kills", "--only", "faults", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [report[name]["failures"] for name in ("kills", "faults")] == [1, 1]
    assert "seed 5" in report["kills"]["examples"][0]


def test_an_unknown_or_broken_torture_is_an_outcome(tmp_path: Path) -> None:
    outcome = torture.torture("unheard_of", 1, 1.0, tmp_path)
    assert "no such torture" in outcome.failures[0].what
    (tmp_path / "kills").write_text("not a folder")
    broken = torture.torture("outcome", 1, 1.0, tmp_path)
    assert "broke down" in broken.failures[0].what
