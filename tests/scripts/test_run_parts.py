"""`make check` and `make test` run their parts, say how long each took, and fail if one fails."""

from pathlib import Path

import pytest

from scripts.run_parts import main

MAKEFILE = """\
good:
\t@echo all is well
bad:
\t@echo something is wrong && false
tests:
\t@echo "FAILED tests/test_it.py::test_one - wrong" && echo "3 passed" && false
"""


@pytest.fixture(autouse=True)
def _makefile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    monkeypatch.chdir(tmp_path)


def shown(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """The words of each line of the table at the end."""
    return [line.split()[:2] for line in capsys.readouterr().out.partition("\npart ")[2].splitlines()[1:]]


def test_the_output_of_each_part_bears_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["good"]) == 0
    assert "good        | all is well\n" in capsys.readouterr().out


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_part_that_fails_fails_the_run_but_stops_no_other(at_once: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--at-once", str(at_once), "bad", "good"]) == 1
    assert shown(capsys) == [["bad", "FAILED"], ["good", "passed"], ["all", "FAILED"]]


def test_all_parts_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["good"]) == 0
    assert shown(capsys) == [["good", "passed"], ["all", "passed"]]


def test_tests_that_failed_are_named_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tests", "good"]) == 1
    end = [["tests", "FAILED"], ["good", "passed"], ["FAILED", "tests/test_it.py::test_one"], ["all", "FAILED"]]
    assert shown(capsys) == end
