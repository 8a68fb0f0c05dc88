"""The documents say what is true: examples run, links lead somewhere, figures come from a run."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coprlake
from benchmarks.figures import (
    load,
    paper_table,
    pipeline_table,
    query_table,
    sketch_table,
    store_table,
    substrings_table,
)
from benchmarks.picture import picture

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def examples_of(document: Path) -> list[str]:
    """The Python in a document; ``expression  # value`` is a claim: the text of the value, or how the array prints."""
    examples = []
    for example in re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL):
        lines = []
        for line in example.splitlines():
            claim = re.match(r"( *)([\w.]+\(.*?\)+(?:\.\w+)*) {2,}# (array\(\[.*?\]\)|\d+|\[.*?\])", line)
            if claim:
                indent, call, expected = claim.groups()
                line = f"{indent}assert _shown({call}) == {expected!r}, _shown({call})"
            lines.append(line)
        examples.append("\n".join(lines))
    return examples


@pytest.mark.parametrize(
    ("document", "claims"),
    [
        ("docs/sketch.md", 3),
        ("docs/language.md", 3),
        ("docs/python.md", 5),
        ("docs/ingesting.md", 4),
    ],
)
def test_the_examples_in_the_documents_run_as_written(
    document: str, claims: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = examples_of(ROOT / document)
    assert "\n".join(examples).count("assert _shown(") >= claims
    for example in examples:
        exec(compile(example, document, "exec"), {"_shown": _shown})


def test_the_program_in_the_document_on_spark_runs_as_written(tmp_path: Path) -> None:
    """In a process of its own: its paths are relative, and a session that is running already is in another folder."""
    program = "\n".join(examples_of(ROOT / "docs" / "spark.md"))
    assert program.count("assert _shown(") >= 6
    command = [sys.executable, "-c", f"_shown = repr\n{program}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def _shown(value: object) -> str:
    return f"array({value.tolist()})" if isinstance(value, np.ndarray) else repr(value)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", document.read_text()):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target


def test_every_public_name_can_be_imported_and_has_a_docstring() -> None:
    public = {name: getattr(coprlake, name) for name in coprlake.__all__}
    bare = [name for name, value in public.items() if callable(value) and not vars(value).get("__doc__", value.__doc__)]
    assert not bare
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = coprlake.no_such_name  # type: ignore[attr-defined]


TABLES: dict[str, Callable[[Any], str]] = {
    "store.json": store_table,
    "sketch.json": sketch_table,
    "pipeline.json": pipeline_table,
    "queries.json": query_table,
    "results.jsonl": paper_table,
    "substrings.json": substrings_table,
}
FIGURES = re.compile(r"<!-- figures: (\S+) -->\n\n((?:(?!<!-- ).)*?)\n\n<!-- end -->", re.DOTALL)
MARKED = [(document, run, text) for document in DOCUMENTS for run, text in FIGURES.findall(document.read_text())]


def test_documents_have_figures() -> None:
    assert len(MARKED) >= 3
    begun = sum(document.read_text().count("<!-- figures: ") for document in DOCUMENTS)
    assert len(MARKED) == begun  # none is empty, and none swallows the next


@pytest.mark.parametrize(("document", "run", "text"), MARKED, ids=[run for _, run, _ in MARKED])
def test_the_figures_in_a_document_come_from_the_run_it_names(document: Path, run: str, text: str) -> None:
    table = next(table for end, table in TABLES.items() if run.endswith(end))
    assert text == table(load(ROOT / run))


def test_the_picture_comes_from_the_run_that_the_page_shows() -> None:
    run = next(run for _, run, _ in MARKED if run.endswith("results.jsonl"))
    assert (ROOT / "docs" / "pictures" / "beside-others.svg").read_text() == picture(load(ROOT / run))


def test_nothing_names_a_path_of_somebodys_machine() -> None:
    for document in DOCUMENTS:
        assert not re.search(r"(/home/|/root/|/Users/)", document.read_text()), document


def test_every_guarantee_names_a_test_that_there_is() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) >= 25
    for row in rows:
        named = re.findall(r"`(test_\w+\.py)`", row.split("|")[2])
        assert named, row
        assert all(list((ROOT / "tests").rglob(name)) for name in named), row


def test_the_index_of_decisions_lists_each_with_its_title_and_status() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    rows = re.findall(r"^\| (\d+) \| \[(.+)\]\((\S+\.md)\) \| (.+) \|$", index, re.MULTILINE)
    listed = [(name, f"# {number}. {title}") for number, title, name, status in rows if status.strip()]
    assert listed == [(path.name, path.read_text().partition("\n")[0]) for path in sorted(folder.glob("[0-9]*.md"))]


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "docs/internals.md"])
def test_every_path_of_the_source_that_a_document_names_exists(document: str) -> None:
    named = set(re.findall(r"`([\w./-]+(?:\.py|\.lark|/))`", (ROOT / document).read_text()))
    assert len(named) >= 60
    roots = (ROOT / "src" / "coprlake", ROOT)
    assert not sorted(name for name in named if not any((root / name).exists() for root in roots))


def test_the_architecture_names_every_folder_of_the_source() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    folders = [path.parent.name for path in (ROOT / "src" / "coprlake").glob("*/__init__.py")]
    assert not [name for name in folders if f"`{name}/`" not in text]


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == coprlake.__version__  # type: ignore[index]
    assert (ROOT / "CHANGELOG.md").read_text().startswith(f"# Changelog\n\n## {coprlake.__version__} ")
