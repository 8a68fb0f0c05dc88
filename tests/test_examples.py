"""The examples in docstrings run as written."""

import doctest
from pathlib import Path
from types import ModuleType

import pytest

import coprlake
from coprlake import ingestion, shortcuts
from coprlake.text import time_words

MODULES = [ingestion, shortcuts, time_words]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples(module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    found = [test for test in finder.find(module, globs=vars(module) | {"coprlake": coprlake}) if test.examples]
    assert found
    for number, test in enumerate(found):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        Path("app.log").write_text(
            "2026-11-16T03:55:00Z INFO GET /login from 10.1.2.3\n2026-11-16T03:55:01Z ERROR connection refused\n"
        )
        assert runner.run(test).failed == 0, test.name
