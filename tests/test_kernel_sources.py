"""Compiled kernels are never older than the sources that they are made of."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import coprlake
from coprlake.kernel_sources import closure, digest_of

PACKAGE = Path(coprlake.__file__).parent
INNER = """
from coprlake.kernel import kernel
FACTOR = {factor}

@kernel
def scaled(number: int) -> int:
    return number * FACTOR + {added}
"""
OUTER = """
from coprlake.bits.inner import scaled
from coprlake.kernel import kernel

@kernel
def answer(number: int) -> int:
    return scaled(number)
"""
ASK = "from coprlake.bits.outer import answer; print(answer(4), sum(answer.stats.cache_hits.values()))"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package's lowest layer, with a kernel that contains one of another module."""
    package = tmp_path / "coprlake"
    (package / "bits").mkdir(parents=True)
    for file in (*PACKAGE.glob("*.py"), PACKAGE / "bits" / "__init__.py"):
        shutil.copy(file, package / file.relative_to(PACKAGE))
    shutil.copytree(PACKAGE / "native", package / "native", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "bits" / "outer.py").write_text(OUTER)
    return package


def ask(package: Path) -> tuple[int, int]:
    """The answer of a new process, and how many kernels it found in the cache."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_DISABLE_JIT": "0"}
    environment.pop("NUMBA_CACHE_DIR", None)
    asked = [sys.executable, "-c", ASK]
    shown = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout
    answer, hits = shown.split()
    return int(answer), int(hits)


def test_a_kernel_is_compiled_again_when_one_that_it_contains_has_changed(copied: Path) -> None:
    inner = copied / "bits" / "inner.py"
    inner.write_text(INNER.format(factor=2, added=0))
    assert ask(copied) == (8, 0)
    assert ask(copied) == (8, 1), "nothing has changed: the cache is used"
    inner.write_text(INNER.format(factor=2, added=1))
    assert ask(copied) == (9, 0), "another body"
    inner.write_text(INNER.format(factor=3, added=1))
    assert ask(copied) == (13, 0), "another constant"
    (copied / "bits" / "other.py").write_text("ELSEWHERE = 1\n")
    assert ask(copied) == (13, 1), "a module that it does not import"


def test_an_imported_module_counts_wherever_it_is() -> None:
    found = closure(str(PACKAGE / "tokens" / "scanner.py"))
    assert {"tokens/scanner.py", "tokens/rules.py", "bits/words.py", "kernel.py", "config.py"} <= found
    assert "sketch/mutable.py" not in found


def test_a_package_in_an_archive_has_the_same_digest(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "coprlake.zip", "w") as archive:
        for file in PACKAGE.rglob("*.py"):
            archive.write(file, file.relative_to(PACKAGE.parent))
    script = "from coprlake.bits import words; from coprlake.kernel_sources import digest_of\n"
    script += "print(digest_of(words.__file__), words.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "coprlake.zip")}
    asked = [sys.executable, "-c", script]
    shown = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout
    digest, path = shown.split()
    assert path.startswith(str(tmp_path / "coprlake.zip"))
    assert digest == digest_of(str(PACKAGE / "bits" / "words.py"))
