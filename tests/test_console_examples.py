"""Commands in the documents, run as a reader would type them: what they print is what the document shows.

A fenced block `console` has commands after ``$`` and their output. An ellipsis stands for anything within a line; one
that is a line by itself stands for any lines.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = ["README.md", "docs/tutorial.md"]


def commands_of(document: Path) -> list[tuple[str, str]]:
    """The commands of a document, each with the output that it shows."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            length = next(n for n, line in enumerate(lines, 1) if not line.endswith("\\"))
            found.append(("\n".join(lines[:length]), "\n".join(lines[length:])))
    return found


def pattern_of(output: str) -> str:
    """A regular expression for what the document shows."""
    lines = [
        "(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*?") + " *\n"
        for line in output.splitlines()
    ]
    return "".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_print_what_the_document_shows(document: str, tmp_path: Path) -> None:
    commands = commands_of(ROOT / document)
    assert len(commands) >= 3
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ours = {name: value for name, value in os.environ.items() if not name.startswith("COPRLAKE_")}
    environment = {**ours, "PATH": path, "COLUMNS": "120", "TZ": "UTC"}
    for command, expected in commands:
        if command.startswith("pip "):
            continue  # a test of its own installs the wheel
        done = subprocess.run(
            ["bash", "-c", f"{command}\n"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert re.fullmatch(pattern_of(expected), done.stdout), f"$ {command}\n{done.stdout}"
