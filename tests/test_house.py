"""The house rules: files, functions and folders that a reader can take in, and one module for each name."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import coprlake
import coprlake.spark

SOURCE = Path(__file__).parent.parent / "src" / "coprlake"
MOST_LINES_OF_A_FILE = 500
MOST_LINES_OF_A_FUNCTION = 80
MOST_MODULES_OF_A_FOLDER = 20
LONG_FUNCTIONS = {"dpl/running/machine.py:_run"}
"""The pattern machine: one loop over the steps of a program, which is slower and no clearer in parts."""

SAME_PART_IN_TWO_PLACES = {
    "daemon",  # and its old name, for one release
    "warming",
    "catalog",  # what functions there are, what commands
    "indexing",  # on one machine, with Spark
    "mutable",  # a sketch, a segment
    "optimizing",
    "options",  # of a search, of reading logs
    "querying",
    "registry",  # of functions, of commands
    "searching",
}


def modules() -> Iterator[Path]:
    return (path for path in SOURCE.rglob("*.py") if path.name not in ("__init__.py", "__main__.py"))


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def test_no_file_is_too_long() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert not {name: length for name, length in lengths.items() if length > MOST_LINES_OF_A_FILE}


def test_no_function_is_too_long() -> None:
    found = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                found[f"{name_of(path)}:{node.name}"] = node.end_lineno - node.lineno + 1
    long = {name: length for name, length in found.items() if length > MOST_LINES_OF_A_FUNCTION}
    assert long.keys() <= LONG_FUNCTIONS, long


def test_no_folder_is_a_heap() -> None:
    folders: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        folders[name_of(path.parent)].append(path.stem)
    assert not {name: sorted(own) for name, own in folders.items() if len(own) > MOST_MODULES_OF_A_FOLDER}


def test_two_modules_share_a_name_only_if_they_play_the_same_part() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        places[path.stem].append(name_of(path))
    shared = {name: sorted(own) for name, own in places.items() if len(own) > 1}
    assert not {name: own for name, own in shared.items() if name not in SAME_PART_IN_TWO_PLACES}
    assert all(len(own) == 2 for own in shared.values()), shared


@pytest.mark.parametrize("package", [coprlake, coprlake.spark], ids=lambda package: package.__name__)
def test_type_checkers_see_the_public_names_where_they_are_loaded_from(package: ModuleType) -> None:
    assert package.__file__ is not None
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text())
    named = {
        alias.name: f"{package.__name__}.{node.module}"
        for node in ast.walk(stub)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(named) == sorted(package.__all__)
    for name, module in named.items():
        assert getattr(package, name) is getattr(import_module(module), name), name
