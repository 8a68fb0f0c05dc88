"""The documents say what is true: examples run, links lead somewhere, figures come from a run."""

import json
import re
from pathlib import Path

import pytest

import coprlake
from benchmarks.figures import sketch_table

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_the_readme_example_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    checked = 0
    lines = []
    for line in example.splitlines():
        claim = re.match(r"( *)(sketch\.candidates.*?) +# array\(\[(.*?)\]\)", line)
        if claim:
            indent, call, expected = claim.groups()
            line = f"{indent}assert {call}.tolist() == [{expected}]"
            checked += 1
        lines.append(line)
    exec(compile("\n".join(lines), "README.md", "exec"), names)
    assert checked == 3


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
        _ = coprlake.no_such_name


def test_the_figures_in_the_readme_come_from_the_run_it_names() -> None:
    text = (ROOT / "README.md").read_text()
    marker = re.search(r"<!-- figures: (\S+) -->\n\n(.*?)\n\n", text, re.DOTALL)
    assert marker
    assert marker[2] == sketch_table(json.loads((ROOT / marker[1]).read_text()))


def test_nothing_names_a_path_of_somebodys_machine() -> None:
    for document in DOCUMENTS:
        assert not re.search(r"(/home/|/root/|/Users/)", document.read_text()), document
