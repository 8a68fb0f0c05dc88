"""Writes docs/commands.md and docs/functions.md, the reference of the query language, from its registries.

Run it from the root of the repository: ``python -m scripts.make_language_reference``. A test compares, and another runs
every example on both engines.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from coprlake.language.commands.catalog import COMMANDS
from coprlake.language.commands.registry import CommandInfo
from coprlake.language.functions.catalog import FUNCTIONS
from coprlake.language.functions.registry import Example, Function

DOCS = Path(__file__).parent.parent / "docs"

COMMANDS_INTRODUCTION = """\
# Commands

<!-- Made by scripts/make_language_reference.py from coprlake.language.commands; a test compares. Change it there. -->

A query is a pipeline: each command works on the records of the one before it. [language.md](language.md) explains how
the parts fit together, [functions.md](functions.md) lists the functions, and [patterns.md](patterns.md) describes the
patterns of `parse`. The tests run every example on DuckDB and on Spark.

"""

FUNCTIONS_INTRODUCTION = """\
# Functions

<!-- Made by scripts/make_language_reference.py from coprlake.language.functions; a test compares. Change it there. -->

Function names are case-insensitive. A parameter with `= value` is optional and is passed by name:
`contains(content, "refused", caseSensitive: false)`. `const` means that the argument must be a constant, `...` that
there can be any number of arguments, and `T` is the same type wherever it appears. Unless stated otherwise, a function
returns null for null, and null, never an error, for a value that it cannot handle. The tests run every
example on DuckDB and on Spark.

"""


def commands() -> str:
    """The text of docs/commands.md."""
    found = sorted(COMMANDS.values(), key=lambda info: info.name.lower())
    index = ", ".join(f"[{info.name}](#{info.name.lower()})" for info in found)
    return COMMANDS_INTRODUCTION + index + "\n\n" + "\n".join(map(_command, found))


def _command(info: CommandInfo) -> str:
    return f"## {info.name}\n\n`{info.synopsis}`\n\n{info.doc}\n\n{_examples(info.examples)}"


def functions() -> str:
    """The text of docs/functions.md."""
    groups: dict[str, list[Function]] = {}
    for function in FUNCTIONS.values():
        if function.group:
            groups.setdefault(function.group, []).append(function)
    parts = []
    for group in sorted(groups):
        members = sorted(groups[group], key=lambda function: function.name.lower())
        index = ", ".join(f"[{function.name}](#{function.name.lower()})" for function in members)
        parts.append(f"## {group.capitalize()}\n\n{index}\n\n" + "\n".join(map(_function, members)))
    return FUNCTIONS_INTRODUCTION + "\n".join(parts)


def _function(function: Function) -> str:
    return f"### {function.name}\n\n`{function.signature}`\n\n{function.doc}\n\n{_examples(function.examples)}"


def _examples(examples: Iterable[Example]) -> str:
    return "".join(_example(example) for example in examples)


def _example(example: Example) -> str:
    text = f"```dql\n{example.query}\n```\n"
    if example.rows:
        rows = "\n".join(json.dumps(row, ensure_ascii=False) for row in example.rows)
        text += f"```json\n{rows}\n```\n"
    return text


def main() -> None:
    """Write both."""
    (DOCS / "commands.md").write_text(commands())
    (DOCS / "functions.md").write_text(functions())


if __name__ == "__main__":
    main()
