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

A query is a pipeline: each command works on the records of the one before it. [language.md](language.md) tells how the
parts go together, [functions.md](functions.md) lists the functions, [patterns.md](patterns.md) the patterns of `parse`.
Every example here is run by the tests on DuckDB and on Spark.

"""

FUNCTIONS_INTRODUCTION = """\
# Functions

<!-- Made by scripts/make_language_reference.py from coprlake.language.functions; a test compares. Change it there. -->

Names of functions do not depend on case. A parameter with `= value` may be left out, and is given by its name:
`contains(content, "refused", caseSensitive: false)`. `const` asks for a constant, `...` takes any number of arguments,
`T` is one type that is the same at every place. A function of null is null unless it says otherwise; a value that a
function cannot work with gives null, never an error. Every example here is run by the tests on DuckDB and on Spark.

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
