"""The syntax tree of a query as indented lines, to show how it was parsed."""

import json
import re
from collections.abc import Sequence

from coprlake.language import syntax
from coprlake.language.syntax import Argument, Value

_INDENT = "  "
_LONGEST = 80
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")
_RESERVED = frozenset({"true", "false", "null", "mod", "and", "or", "xor", "not", "in", "asc", "desc"})


def outline(pipeline: syntax.Pipeline) -> list[str]:
    """The tree as a line for each command, with its arguments indented below.

    Simple arguments share the line of their command if they fit.
    """
    lines: list[str] = []
    for number, command in enumerate(pipeline.commands):
        simple = [_simple_argument(argument) for argument in command.arguments]
        head = f"{'| ' if number else ''}{command.name}"
        whole = f"{head} {', '.join(text for text in simple if text)}".rstrip()
        if all(simple) and len(whole) <= _LONGEST:
            lines.append(whole)
            continue
        lines += [head, *_indented(_arguments(command.arguments))]
    return lines


def _indented(lines: Sequence[str]) -> list[str]:
    return [_INDENT + line for line in lines]


def _arguments(arguments: Sequence[Argument]) -> list[str]:
    return [line for argument in arguments for line in _argument(argument)]


def _label(argument: Argument) -> tuple[str, str]:
    """The text before and after the value."""
    before = f"{argument.name}: " if argument.name else f"{_name(argument.alias.text)} = " if argument.alias else ""
    return before, f" {argument.direction}" if argument.direction else ""


def _argument(argument: Argument) -> list[str]:
    before, behind = _label(argument)
    first, *more = _node(argument.value)
    if behind and more:
        return [f"{before}{first} ({behind.strip()})", *more]
    return [f"{before}{first}{behind}", *more]


def _simple_argument(argument: Argument) -> str | None:
    """The argument on one line, or None if it is nested too deeply."""
    value = argument.value
    before, behind = _label(argument)
    if isinstance(value, syntax.Group):
        parts = [_simple_argument(part) for part in value.arguments]
        inside = ", ".join(part for part in parts if part)
        return f"{before}{{{inside}}}{behind}" if all(parts) else None
    text = _leaf(value) or _flat(value)
    return None if text is None else f"{before}{text}{behind}"


def _node(node: Value) -> list[str]:
    text = _leaf(node) or _flat(node)
    if text is not None and len(text) <= _LONGEST:
        return [text]
    head, children = _opened(node)
    return [head, *_indented(children)]


def _opened(node: Value) -> tuple[str, list[str]]:
    """The line of a node, and the lines of its children."""
    if isinstance(node, syntax.Call):
        return f"{node.name}()", _arguments(node.arguments)
    if isinstance(node, syntax.Group):
        return "{}", _arguments(node.arguments)
    if isinstance(node, syntax.Block):
        return "[]", outline(node.pipeline)
    if isinstance(node, syntax.Logic):
        return node.operator, [line for part in node.parts for line in _node(part)]
    if isinstance(node, syntax.Binary):
        return node.operator, [*_node(node.left), *_node(node.right)]
    if isinstance(node, syntax.Negation):
        return "not", _node(node.operand)
    if isinstance(node, syntax.Minus):
        return "-", _node(node.operand)
    if isinstance(node, syntax.Within):
        return "in", [*_node(node.operand), *_node(node.choices)]
    if isinstance(node, syntax.Index):
        return "[]", [*_node(node.operand), *(_node(node.key) if node.key is not None else [])]
    if isinstance(node, syntax.Align):
        return f"@{_unit(node)}", [] if node.operand is None else _node(node.operand)
    return _leaf(node) or type(node).__name__, []


def _leaf(node: Value) -> str | None:
    """A node without parts on one line; None for others."""
    if isinstance(node, syntax.Literal):
        return json.dumps(node.value, ensure_ascii=False)
    if isinstance(node, syntax.Duration):
        return f"{node.count}{node.unit}"
    if isinstance(node, syntax.Name):
        return _name(node.text)
    if isinstance(node, syntax.Variable):
        return f"${node.name}"
    if isinstance(node, syntax.Minus):
        inner = _leaf(node.operand)
        return None if inner is None else f"-{inner}"
    if isinstance(node, syntax.Align):
        inner = "" if node.operand is None else _leaf(node.operand)
        return None if inner is None else f"{inner}@{_unit(node)}"
    if isinstance(node, syntax.Index):
        operand, key = _leaf(node.operand), "" if node.key is None else _leaf(node.key)
        return None if operand is None or key is None else f"{operand}[{key}]"
    if isinstance(node, syntax.Call) and not node.arguments:
        return f"{node.name}()"
    return None


def _flat(node: Value) -> str | None:
    """A node whose parts are all leaves on one line; None for others."""
    if isinstance(node, syntax.Call):
        parts = [_leaf_argument(argument) for argument in node.arguments]
        return f"{node.name}({', '.join(part for part in parts if part)})" if all(parts) else None
    if isinstance(node, syntax.Binary):
        left, right = _leaf(node.left), _leaf(node.right)
        return f"{left} {node.operator} {right}" if left and right else None
    if isinstance(node, syntax.Group):
        parts = [_leaf_argument(argument) for argument in node.arguments]
        return f"{{{', '.join(part for part in parts if part)}}}" if all(parts) else None
    if isinstance(node, syntax.Within) and isinstance(node.choices, syntax.Group):
        operand, choices = _leaf(node.operand), _flat(node.choices)
        return f"{operand} in {choices}" if operand and choices else None
    return None


def _leaf_argument(argument: Argument) -> str | None:
    before, behind = _label(argument)
    text = _leaf(argument.value)
    return None if text is None else f"{before}{text}{behind}"


def _unit(node: syntax.Align) -> str:
    return f"{node.count if node.count != 1 else ''}{node.unit}"


def _name(text: str) -> str:
    """A name, quoted if necessary."""
    if _PLAIN_NAME.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return "`" + text.replace("\\", "\\\\").replace("`", "\\`") + "`"
