"""The documents say what is true: examples run, links lead somewhere, figures come from a run."""

import re
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


@pytest.mark.parametrize(("document", "claims"), [("README.md", 6), ("docs/sketch.md", 3), ("docs/language.md", 3)])
def test_the_examples_in_the_documents_run_as_written(
    document: str, claims: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = examples_of(ROOT / document)
    assert "\n".join(examples).count("assert _shown(") >= claims
    for example in examples:
        exec(compile(example, document, "exec"), {"_shown": _shown})


def test_the_program_in_the_document_on_spark_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = "\n".join(examples_of(ROOT / "docs" / "spark.md"))
    assert program.count("assert _shown(") >= 6
    exec(compile(program, "docs/spark.md", "exec"), {"_shown": _shown})


def _shown(value: object) -> str:
    return f"array({value.tolist()})" if isinstance(value, np.ndarray) else repr(value)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", document.read_text()):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target


def test_every_public_name_can_be_imported_and_is_documented() -> None:
    for name in coprlake.__all__:
        assert getattr(coprlake, name) is not None
    assert set(coprlake.__all__) <= set(dir(coprlake))
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
