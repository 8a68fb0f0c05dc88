"""Each command loads only what it needs: a start costs what is imported."""

import subprocess
import sys
from pathlib import Path

import pytest

from coprlake import create_table
from coprlake.native.building import SUPPORTED_MACHINE, build_missing
from coprlake.native.bundle import machine

NEVER = {
    "pandas",
    "polars",
    "pyspark",
    "py4j",
    "hypothesis",
    "prompt_toolkit",
    "matplotlib",
    "pytest",
    "coprlake.testing",
    *(("numba", "llvmlite") if machine() == SUPPORTED_MACHINE else ()),
}
"""What no command needs that runs in this process, except for the shell."""

SEARCH = NEVER | {"duckdb", "sqlglot", "lark", "rich", "coprlake.intake", "coprlake.language.parsing", "coprlake.spark"}
WRITERS = {
    "coprlake.segment.mutable",
    "coprlake.storage.optimizing",
    "coprlake.storage.deleting",
    "coprlake.sketch.sealing",
}


@pytest.fixture(scope="module", autouse=True)
def _kernels() -> None:
    """As `make setup` leaves them."""
    build_missing()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("imports") / "logs"
    create_table(path).append([{"content": f"request {number} refused"} for number in range(50)])
    return path


def loaded(*arguments: object, exit_code: int = 0) -> set[str]:
    """The modules that a command has loaded when it ends."""
    script = (
        "import sys\n"
        "from coprlake.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: code = end.code\n"
        "print(code, *sorted(sys.modules), file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, stdin=subprocess.DEVNULL)
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code == str(exit_code), done.stderr
    return set(modules)


def test_a_search_that_finds_nothing(table: Path) -> None:
    assert not (SEARCH | WRITERS) & loaded("search", "nowhere", table, exit_code=1)


def test_a_search_that_finds_something(table: Path) -> None:
    assert not (SEARCH | WRITERS) & loaded("search", "refused", table)


def test_help() -> None:
    assert not (SEARCH | WRITERS | {"numpy", "pyarrow"}) & loaded("--help")
    assert not (SEARCH | WRITERS) & loaded("search", "--help")


def test_a_query(table: Path) -> None:
    unwanted = NEVER | WRITERS | {"coprlake.intake", "coprlake.spark", "sqlglot.dialects.spark"}
    found = loaded("query", "fetch logs | summarize n = count()", "--table", table)
    assert not unwanted & found
    assert "duckdb" in found


def test_an_ingest(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("2026-11-16T03:00:00Z a line\n")
    found = loaded("ingest", tmp_path / "a.log", "--into", tmp_path / "t", "--engine", "local")
    assert not (NEVER | {"duckdb", "sqlglot", "lark"}) & found


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = "import sys, coprlake; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    heavy = SEARCH | {"numpy", "pyarrow", "numba", "llvmlite", "deltalake", "click", "coprlake.table"}
    assert not heavy & set(done.stdout.split())
