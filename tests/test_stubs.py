"""Our stubs of pyarrow say what is so: names, bases, parameters and the classes of results, against the real one."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

STUBS = Path(__file__).parent.parent / "stubs" / "pyarrow"
MODULES = sorted(path.stem for path in STUBS.glob("*.pyi") if path.stem != "__init__")
IN_STUBS_ONLY = {"Buffer.__buffer__"}
"""How type checkers name the buffer protocol, which classes in C follow without a method."""


def body_of(module: str) -> list[ast.stmt]:
    return ast.parse((STUBS / f"{module}.pyi").read_text()).body


def defined_by(statement: ast.stmt) -> str | None:
    """The public name that a statement of a stub defines."""
    name = None
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        name = statement.name
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        name = statement.target.id
    is_public = name is not None and (not name.startswith("_") or name.startswith("__"))
    return name if is_public else None


def bases_of(statement: ast.ClassDef) -> list[str]:
    """The bases without their parameters: of ``_TableLike[Array]``, ``_TableLike``."""
    return [ast.unparse(base).partition("[")[0] for base in statement.bases]


def classes_of(module: str) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in body_of(module) if isinstance(node, ast.ClassDef)}


def members_of(module: str, name: str) -> Iterator[ast.stmt]:
    """The members of a class, with those of bases that only the stubs have."""
    classes = classes_of(module)
    yield from classes[name].body
    for base in bases_of(classes[name]):
        if base.startswith("_") and base in classes:
            yield from members_of(module, base)


def public_classes() -> Iterator[tuple[str, str]]:
    for module in MODULES:
        yield from ((module, name) for name in classes_of(module) if not name.startswith("_"))


def parameters(of: ast.FunctionDef) -> tuple[list[str], list[str]]:
    """The names of parameters by position and by keyword only, without `self`."""
    positional = [arg.arg for arg in (*of.args.posonlyargs, *of.args.args) if arg.arg not in ("self", "cls")]
    return positional, [arg.arg for arg in of.args.kwonlyargs]


def real_parameters(of: Callable[..., Any]) -> list[str] | None:
    """The names of parameters; None if pyarrow does not tell."""
    try:
        found = [name for name in inspect.signature(of).parameters if name not in ("self", "cls")]
    except (TypeError, ValueError):
        found = ["args", "kwargs"]
    if found != ["args", "kwargs"]:
        return found
    written = re.match(r"\w+\((.*)\)$", (getattr(of, "__doc__", None) or "").partition("\n")[0])  # of a class in C
    if written is None:
        return None
    return [part.partition("=")[0].split()[-1] for part in written[1].split(", ") if part not in ("*", "/", "")]


def check_parameters(stub: ast.FunctionDef, real: Callable[..., Any], name: str) -> bool:
    """Whether they could be compared; a stub may leave parameters out, but not name or place others."""
    known = real_parameters(real)
    if known is None:
        return False
    positional, by_keyword = parameters(stub)
    assert set(positional + by_keyword) <= set(known), f"{name}{tuple(known)}"
    if not name.startswith("compute._"):
        assert positional == known[: len(positional)], f"{name}{tuple(known)}: another order"
    return True


@pytest.mark.parametrize("module", MODULES)
def test_every_name_exists(module: str) -> None:
    real = import_module(f"pyarrow.{module}")
    names = [name for name in map(defined_by, body_of(module)) if name]
    assert names
    assert [name for name in names if not hasattr(real, name)] == []
    if module == "lib":  # all of it is in `pyarrow` too
        assert [name for name in names if not hasattr(pa, name)] == []


@pytest.mark.parametrize("module", MODULES)
def test_functions_have_the_parameters(module: str) -> None:
    real = import_module(f"pyarrow.{module}")
    functions = [node for node in body_of(module) if isinstance(node, ast.FunctionDef)]
    compared = [check_parameters(node, getattr(real, node.name), f"{module}.{node.name}") for node in functions]
    assert all(compared)


@pytest.mark.parametrize(("module", "name"), list(public_classes()))
def test_classes_have_the_bases_and_members(module: str, name: str) -> None:
    real = getattr(import_module(f"pyarrow.{module}"), name)
    bases = [base for base in bases_of(classes_of(module)[name]) if not base.startswith("_")]
    kinds = {base.__name__ for base in real.__mro__} | {"NamedTuple", "enum.IntEnum"}
    assert set(bases) <= kinds
    for member in members_of(module, name):
        own = member.name if isinstance(member, ast.FunctionDef) else defined_by(member)
        if own is None or f"{name}.{own}" in IN_STUBS_ONLY:
            continue
        is_set_later = not hasattr(real, own) and f"self.{own} = " in inspect.getsource(real)
        assert is_set_later or hasattr(real, own), f"{name}.{own}"
        if isinstance(member, ast.FunctionDef) and not own.startswith("__"):
            is_property = any(ast.unparse(decorator) == "property" for decorator in member.decorator_list)
            assert is_property is not callable(getattr(real, own)), f"{name}.{own}"
            assert is_property or check_parameters(member, getattr(real, own), f"{name}.{own}")
        elif isinstance(member, ast.FunctionDef) and own == "__init__":
            check_parameters(member, real, name)


NOT_LISTED = {
    "and",  # keywords of Python, which `and_` and `or_` stand for
    "or",
    "index_in_meta_binary",  # for pyarrow itself
    "is_in_meta_binary",
    "day_time_interval_between",  # pyarrow has no class for the result
    "month_interval_between",
    "pivot_wider",  # only for groups
}


def test_all_functions_of_compute_are_listed() -> None:
    """So that a misspelt name is an error of types, and a right one is not."""
    listed = {name for name in map(defined_by, body_of("compute")) if name}
    functions = {name for name, value in vars(pc).items() if hasattr(value, "__arrow_compute_function__")}
    options = {name for name in vars(pc) if name.endswith("Options")}
    assert (functions | options) - listed == NOT_LISTED


SAMPLES: list[pa.Array] = [
    pa.array(["a", "b"]),
    pa.array([b"a", b"b"]),
    pa.array([1.5, 2.5]),
    pa.array([0.25, 0.5]),
    pa.array([1, 2]),
    pa.array([0, 1]),
    pa.array([True, False]),
    pa.array([0, 1], pa.timestamp("us")),
    pa.array([0, 1], pa.timestamp("us", "UTC")),
    pa.array([[1], [2, 3]]),
    pa.array([["a"], ["b"]]),
    pa.array([1, 1]).dictionary_encode(),
    pc.run_end_encode(pa.array([1, 1])),
]
SHAPES = {
    "_OfColumn": (1, pa.Array),
    "_Unary": (1, pa.Array),
    "_UnaryTest": (1, pa.BooleanArray),
    "_Binary": (2, pa.Array),
    "_BinaryTest": (2, pa.BooleanArray),
}


def functions_of_one_shape() -> Iterator[tuple[str, str]]:
    for node in body_of("compute"):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) in SHAPES:
            yield ast.unparse(node.target), ast.unparse(node.annotation)


@pytest.mark.parametrize(("name", "shape"), list(functions_of_one_shape()))
def test_functions_of_one_shape_return_what_the_stub_says(name: str, shape: str) -> None:
    """An array of an array, chunks of chunks, a scalar of a scalar, for each kind of values that the function takes."""
    count, of_array = SHAPES[shape]
    function, seen = getattr(pc, name), 0
    for values in SAMPLES:
        seconds: list[list[pa.Scalar]] = [[]] if count == 1 else [[other[0]] for other in SAMPLES]
        for others in seconds:
            try:
                found = function(values, *others)
            except (pa.ArrowException, TypeError):
                continue
            seen += 1
            assert isinstance(found, of_array)
            assert isinstance(function(pa.chunked_array([values]), *others), pa.ChunkedArray)
            if shape != "_OfColumn":
                assert isinstance(function(values[0], *others), pa.Scalar)
            if count == 2 and name != "list_element":  # which takes one index for all
                assert isinstance(function(values[0], pa.array(others * 2)), of_array)
                assert isinstance(function(values, pa.chunked_array([others * 2])), pa.ChunkedArray)
    assert seen
