"""A small package of kernels with its bundle, and ways to ask it from new processes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import coprlake

PACKAGE = Path(coprlake.__file__).parent
KERNELS = Path(__file__).parent / "sample_kernels.py.txt"
CALLER = """
from coprlake.bits import sample_kernels

def names() -> list[str]:
    return [sample_kernels.{}]
"""


class Sample:
    """A copy of the package's lowest layer with kernels of every signature, each of which is called somewhere."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "coprlake"
        (self.package / "bits").mkdir(parents=True)
        for name in ("__init__.py", "kernel.py", "kernel_sources.py", "bits/__init__.py"):
            shutil.copy(PACKAGE / name, self.package / name)
        unwanted = shutil.ignore_patterns("__pycache__", "*.bundle")
        shutil.copytree(PACKAGE / "native", self.package / "native", ignore=unwanted)
        self.kernels = self.package / "bits" / "sample_kernels.py"
        self.kernels.write_text(KERNELS.read_text())
        names = [line.split("(")[0].removeprefix("def ") for line in KERNELS.read_text().splitlines() if "def " in line]
        self.caller = self.package / "bits" / "caller.py"
        self.caller.write_text(CALLER.format(", sample_kernels.".join(names)))

    def start(self, *arguments: str, cwd: str | None = None, **environment: str) -> "subprocess.Popen[str]":
        """A new process of this package."""
        settings = {**os.environ, "PYTHONPATH": str(self.package.parent), "NUMBA_DISABLE_JIT": "0"}
        settings["XDG_CACHE_HOME"] = str(self.package.parent / "cache")
        settings.pop("NUMBA_BOUNDSCHECK", None)
        command = [sys.executable, *arguments]
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=settings | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, **environment: str) -> str:
        """What a new process prints."""
        process = self.start(*arguments, **environment)
        printed, _ = process.communicate(timeout=300)
        assert process.returncode == 0, printed
        return printed

    def build(self) -> str:
        """Build the bundle."""
        return self.run("-m", "coprlake.native.building")

    def bundles(self) -> list[Path]:
        """All bundles that there are."""
        return sorted(self.package.parent.rglob("*.bundle"))


@pytest.fixture(scope="session")
def built_sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """The small package with its bundle; tests must not change it."""
    sample = Sample(tmp_path_factory.mktemp("sample"))
    printed = sample.build()
    assert "left out" not in printed
    return sample


@pytest.fixture
def sample(built_sample: Sample, tmp_path: Path) -> Sample:
    """A copy of it that a test may change."""
    shutil.copytree(built_sample.package, tmp_path / "coprlake")
    copied = Sample.__new__(Sample)
    copied.package = tmp_path / "coprlake"
    copied.kernels = copied.package / "bits" / "sample_kernels.py"
    copied.caller = copied.package / "bits" / "caller.py"
    return copied
