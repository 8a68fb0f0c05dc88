"""Imports go one way, and importing the package costs nothing."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import coprlake

SOURCE = Path(__file__).parent.parent / "src" / "coprlake"
LAYERS = [
    {
        "config",
        "deprecation",
        "errors",
        "extras",
        "files",
        "kernel",
        "kernel_sources",
        "native",
        "private_files",
        "records",
        "summary",
        "table_formats",
        "unchanging",
    },
    {"text"},
    {"bits"},
    {"sketch", "tokens"},
    {"predicate"},
    {"dpl"},
    {"language"},
    {"segment", "intake"},
    {"storage"},
    {"query"},
    {"shortcuts"},
    {"table"},
    {"ingestion"},
    {"spark"},
    {"generator"},
    {"testing"},
    {"cli"},
]
"""Each layer may import itself and what stands before it; ``sketch`` may import ``tokens``, not the reverse."""


def imports_of(path: Path) -> set[str]:
    """The parts of coprlake that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("coprlake.")}
    return found


def layer_of(part: str) -> int:
    return next(number for number, parts in enumerate(LAYERS) if part in parts)


FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    imported = imports_of(path)
    assert all(layer_of(other) <= layer_of(part) for other in imported), imported
    if part == "tokens":
        assert "sketch" not in imported


def module_of(path: Path) -> str:
    parts = ("coprlake", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in SOURCE.rglob("*.py")}


def imported_modules(module: str) -> set[str]:
    """The modules that a module imports when it is loaded or later; not those that only its types need."""
    found = set()
    pending: list[ast.AST] = [ast.parse(MODULES[module].read_text())]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending += node.orelse
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= below if below <= MODULES.keys() else below | {str(node.module)}
        pending += ast.iter_child_nodes(node)
    return found & MODULES.keys() - {module}


def test_no_module_imports_itself_through_others() -> None:
    graph = {module: imported_modules(module) for module in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"these modules import each other: {' <- '.join(error.args[1])}")


def test_no_drawers() -> None:
    drawers = {"utils", "core", "common", "helpers", "misc"}
    assert not [path for path in SOURCE.rglob("*") if path.stem in drawers]


def test_importing_coprlake_loads_no_kernels() -> None:
    script = "import sys, coprlake; print(coprlake.__version__, {'numba', 'numpy', 'pyarrow'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"{coprlake.__version__} set()"
