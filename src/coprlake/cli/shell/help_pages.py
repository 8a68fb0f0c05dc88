"""``help`` in the shell: the commands, the functions by group, and each of them with an example."""

import json
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from coprlake.cli.printing import figures
from coprlake.cli.shell.command_list import brief, commands, plain

if TYPE_CHECKING:
    from coprlake.language.functions.registry import Example

ORDERS = (
    ("explain QUERY", "run the query and show what it cost"),
    ("\\h, help [NAME]", "this page, or the entry of a command or function"),
    ("\\fields", "list the fields of the table"),
    ("\\limit N", "show at most N rows; 0 for all"),
    ("\\engine duckdb|spark", "choose the engine that runs queries"),
    ("\\timing on|off", "show or hide rows, time and pruning below each result"),
    ("\\q, exit, quit", "leave, like Ctrl-D"),
)
_KEYS = (
    ("Enter", "runs a complete query, otherwise starts a new line"),
    ("Alt-Enter", "always starts a new line"),
    ("Tab", "completes commands, functions, fields and parameters"),
    ("Ctrl-C", "stops a query, or clears the line"),
)
_WIDTH = 96


def help_text(name: str = "") -> str:
    """What there is, or what one command or function does.

    Raises:
        UsageError: there is none of that name.
    """
    name = name.strip().removesuffix("()")
    return _of(name) if name else _all()


def _all() -> str:
    from coprlake.language.functions.catalog import FUNCTIONS

    groups: dict[str, list[str]] = {}
    for function in FUNCTIONS.values():
        if function.group:
            groups.setdefault(function.group, []).append(function.name)
    functions = [
        (group, textwrap.fill(", ".join(sorted(names, key=str.lower)), _WIDTH - 20)) for group, names in groups.items()
    ]
    parts = {
        "A query is a pipeline of commands:": [
            (name, textwrap.fill(brief(info.doc), _WIDTH - 20)) for name, info in commands().items()
        ],
        "Functions:": functions,
        "The shell itself:": [*ORDERS, *_KEYS],
    }
    return "\n\n".join(
        f"{click.style(head, bold=True)}\n{_indented(figures.pairs(rows))}" for head, rows in parts.items()
    )


def _of(name: str) -> str:
    from coprlake.errors import UsageError
    from coprlake.language.functions.catalog import FUNCTIONS
    from coprlake.text.nearest_words import hint

    function = FUNCTIONS.get(name.lower())
    info = next((info for known, info in commands().items() if known.lower() == name.lower()), None)
    found = []
    if info is not None:
        found.append(_entry(info.synopsis, info.doc, info.examples))
    if function is not None and function.group:
        found.append(_entry(function.signature, function.doc, function.examples))
    if not found:
        known = [*commands(), *(each.name for each in FUNCTIONS.values() if each.group)]
        raise UsageError(f"there is no command or function {name}{hint(name, known)}")
    return "\n\n".join(found)


def _entry(head: str, doc: str, examples: "Sequence[Example]") -> str:
    """How it is written, what it does, and what it gives."""
    text = f"{click.style(head, bold=True)}\n{_filled(plain(doc))}"
    for example in examples:
        text += f"\n\n  {example.query}"
        text += "".join(f"\n  → {json.dumps(row, ensure_ascii=False, default=str)}" for row in example.rows)
    return text


def _filled(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())
