"""Which kernels Python code calls, and which of their arguments they write to, as the sources say it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

_DECORATORS: Final = {"kernel", "cold_kernel", "long_kernel", "view_kernel"}
_NUMBERS: Final = {"i64", "len", "max", "min", "range", "word_of", "bit_length", "np.uint64", "np.uint32", "np.uint8"}
_NUMBER_TYPES: Final = re.compile(r"None|(?:tuple\[)?(?:int|bool|float|np\.u?int\d+|, )+\]?")
_DEFINED: Final = re.compile(rf"^@(?:{'|'.join(_DECORATORS)})\s+def (\w+)", re.MULTILINE)


@dataclass
class _Module:
    name: str
    tree: ast.Module
    kernels: dict[str, ast.FunctionDef] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)  # a local name, and what it means


def _is_kernel(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(decorator, ast.Name) and decorator.id in _DECORATORS for decorator in node.decorator_list
    )


class Sources:
    """The modules of the package."""

    def __init__(self, folder: Path) -> None:
        texts = {file: file.read_text("utf-8") for file in sorted(folder.rglob("*.py"))}
        names = {name for text in texts.values() for name in _DEFINED.findall(text)}
        mention = re.compile(rf"\b(?:{'|'.join(names) or '$^'})\b")
        self.modules: dict[str, _Module] = {}
        for file, text in texts.items():
            if mention.search(text):
                parts = file.relative_to(folder.parent).with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                self.modules[name] = _read(name, text)

    @cached_property
    def entries(self) -> dict[str, list[str]]:
        """The kernels that code outside kernels refers to, by module."""
        used: set[tuple[str, str]] = set()
        for module in self.modules.values():
            used |= {called for node in _outside_kernels(module.tree) if (called := self._kernel(module, node))}
        found: dict[str, list[str]] = {}
        for name, kernel in sorted(used):
            found.setdefault(name, []).append(kernel)
        return found

    def _kernel(self, module: _Module, node: ast.AST) -> tuple[str, str] | None:
        """The module and name of the kernel that an expression is."""
        if isinstance(node, ast.Name):
            if node.id in module.kernels:
                return module.name, node.id
            full = module.imported.get(node.id, "")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            full = f"{module.imported.get(node.value.id, '')}.{node.attr}"
        else:
            return None
        above, _, name = full.rpartition(".")
        other = self.modules.get(above)
        if other is None or not name:
            return None
        if name in other.kernels:
            return above, name
        return self._kernel(other, ast.Name(name)) if name in other.imported else None

    @cached_property
    def written(self) -> dict[tuple[str, str], set[int]]:
        """For each kernel the numbers of the parameters whose memory it may write to.

        A variable that is made of a parameter may be a view of it, so writing to its elements counts as well.
        """
        flows = {
            (module.name, name): self._flow(module, node)
            for module in self.modules.values()
            for name, node in module.kernels.items()
        }
        written = {key: flow.stored for key, flow in flows.items()}
        changed = True
        while changed:
            changed = False
            for key, flow in flows.items():
                passed = {made for called, number, made in flow.passed if number in written[called]}
                now = written[key].union(*passed)
                changed |= now != written[key]
                written[key] = now
        return written

    def _flow(self, module: _Module, function: ast.FunctionDef) -> "_Flow":
        made_of = self._parameters_behind_names(module, function)

        def behind(node: ast.AST) -> frozenset[int]:
            return frozenset().union(*(made_of.get(name, ()) for name in self._views(module, node)))

        flow = _Flow()
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                flow.stored |= behind(node.value)
            elif isinstance(node, ast.Call) and (called := self._kernel(module, node.func)):
                names = [argument.arg for argument in self.modules[called[0]].kernels[called[1]].args.args]
                flow.passed += [(called, number, behind(argument)) for number, argument in enumerate(node.args)]
                flow.passed += [(called, names.index(str(given.arg)), behind(given.value)) for given in node.keywords]
        return flow

    def _parameters_behind_names(self, module: _Module, function: ast.FunctionDef) -> dict[str, set[int]]:
        """The parameters that each variable may be a view of."""
        made_of = {argument.arg: {number} for number, argument in enumerate(function.args.args)}
        steps = [(targets, self._views(module, value)) for targets, value in _assignments(function)]
        size = -1
        while size != (size := sum(map(len, made_of.values()))):
            for targets, used in steps:
                for name in targets:
                    made_of.setdefault(name, set()).update(*(made_of.get(other, ()) for other in used))
        return made_of

    def _views(self, module: _Module, node: ast.AST) -> set[str]:
        """The variables that the value of an expression may be a view of; a number is a view of none."""
        if isinstance(node, ast.Name):
            return {node.id}
        if isinstance(node, ast.Subscript | ast.Attribute | ast.Starred | ast.NamedExpr):
            return self._views(module, node.value)
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Compare | ast.Constant):
            return set()  # kernels calculate with numbers only
        if isinstance(node, ast.IfExp):
            return self._views(module, node.body) | self._views(module, node.orelse)
        if isinstance(node, ast.Call) and self._gives_numbers(module, node.func):
            return set()
        return set().union(*(self._views(module, child) for child in ast.iter_child_nodes(node)))

    def _gives_numbers(self, module: _Module, function: ast.expr) -> bool:
        called = self._kernel(module, function)
        if called is None:
            return ast.unparse(function) in _NUMBERS
        returned = self.modules[called[0]].kernels[called[1]].returns
        return returned is not None and _NUMBER_TYPES.fullmatch(ast.unparse(returned)) is not None


@dataclass
class _Flow:
    """What a kernel does with its parameters: those it stores to, and those it passes to kernels, at which place."""

    stored: set[int] = field(default_factory=set)
    passed: list[tuple[tuple[str, str], int, frozenset[int]]] = field(default_factory=list)


def _read(name: str, text: str) -> _Module:
    module = _Module(name, ast.parse(text))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef) and _is_kernel(node):
            module.kernels[node.name] = node
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                module.imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                module.imported[alias.asname or alias.name] = alias.name
    return module


def _outside_kernels(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not _is_kernel(child):
            yield child
            yield from _outside_kernels(child)


def _assignments(function: ast.FunctionDef) -> Iterator[tuple[set[str], ast.AST]]:
    """The variables that are set, and the expressions that they are set to."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
            yield _variables_in(node.target), node.value
        elif isinstance(node, ast.For):
            yield _variables_in(node.target), node.iter


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[set[str], ast.AST]]:
    """One assignment for each variable of ``a, b = x, y``."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for inner, of in zip(target.elts, value.elts, strict=True):
            yield from _pairs(inner, of)
    else:
        yield _variables_in(target), value


def _variables_in(target: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
