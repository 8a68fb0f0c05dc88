"""A hook of mkdocs: pages of the site that live outside docs/, and links that lead out of it.

README.md is the home page; the other documents of the repository's root become pages too. A link to a file that is
not a page of the site keeps its text and loses its target.
"""

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/runs/README.md": "benchmark-runs.md",
}
"""Documents outside docs/ and their pages."""

_LINK: Final = re.compile(r"(?<!!)\[([^\]\[]*(?:\[[^\]]*\][^\]\[]*)*)\]\(([^)\s]+)\)")
_FENCED: Final = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add the documents of the root as pages."""
    for document, page in PAGES.items():
        path = ROOT / document
        if path.exists():
            files.append(File.generated(config, page, content=relinked(path.read_text(), document, page)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links of a page of docs/ to pages of the site."""
    name = page.file.src_uri
    return markdown if name in PAGES.values() else relinked(markdown, f"docs/{name}", name)


def relinked(text: str, document: str, page: str) -> str:
    """The text with its links changed from the document's place in the repository to the page's place on the site."""
    parts = _FENCED.split(text)
    parts[::2] = [_LINK.sub(lambda link: _link(link[1], link[2], document, page), part) for part in parts[::2]]
    return "".join(parts)


def _link(text: str, target: str, document: str, page: str) -> str:
    path, _, anchor = target.partition("#")
    if not path or "://" in path or path.startswith("mailto:"):
        return f"[{text}]({target})"
    place = posixpath.normpath(posixpath.join(posixpath.dirname(document), path))
    on_site = place.removeprefix("docs/") if place.startswith("docs/") else PAGES.get(place)
    if on_site is None or not (ROOT / place).is_file():
        return text
    relative = posixpath.relpath(on_site, posixpath.dirname(page) or ".")
    return f"[{text}]({relative}{'#' + anchor if anchor else ''})"
