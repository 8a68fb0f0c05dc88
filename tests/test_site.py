"""The documentation site: it builds without a warning, every page can be reached, every public name is on it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import coprlake
from scripts.site_pages import PAGES, relinked

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it; dead links and anchors are errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_every_document_is_a_page_that_the_navigation_reaches(site: Path) -> None:
    nav = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    documents = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    listed = {*nav, *(f"decisions/{name}" for name in re.findall(r"\]\((\d+-\S+\.md)\)", index))}
    assert documents - listed == set()
    assert [name for name in nav if not (site / name.replace(".md", ".html").replace("README", "index")).exists()] == []


@pytest.mark.slow
def test_nothing_is_fetched_from_other_hosts(site: Path) -> None:
    page = (site / "index.html").read_text()
    loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?://[^\" >]+)", page)
    assert loaded == []


def test_every_public_name_is_on_the_page_for_python() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    described = {name.rpartition(".")[2] for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE)}
    public = {name for name in coprlake.__all__ if not name.startswith("_")}
    assert public - described == set()


def test_links_follow_a_document_to_its_place_on_the_site() -> None:
    text = "[a](docs/spark.md#x) [b](CHANGELOG.md) [c](src/coprlake/table.py) [d](#here)\n```\n[e](docs/no.md)\n```\n"
    assert relinked(text, "README.md", "index.md") == (
        "[a](spark.md#x) [b](changelog.md) c [d](#here)\n```\n[e](docs/no.md)\n```\n"
    )
    assert relinked("[map](../../ARCHITECTURE.md)", "docs/format/sketch.md", "format/sketch.md") == (
        "[map](../architecture.md)"
    )


def test_pages_outside_the_folder_exist() -> None:
    assert [name for name in PAGES if not (ROOT / name).exists()] == []
