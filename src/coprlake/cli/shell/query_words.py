"""The words of a query: for colours, for completion, and to tell where a query ends. Never fails, whatever is typed."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_WORD = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*(?:.|\n)*?(?:\*/|\Z))
  | (?P<string>"{3}(?:.|\n)*?(?:"{3}(?!")|\Z)|"(?:\\(?:.|\n)|[^"\\])*(?:"|\Z)|'(?:\\(?:.|\n)|[^'\\])*(?:'|\Z))
  | (?P<quoted>`(?:\\(?:.|\n)|[^`\\])*(?:`|\Z))
  | (?P<variable>\$[A-Za-z_]\w*)
  | (?P<number>(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)[A-Za-z]*)
  | (?P<name>[A-Za-z_]\w*(?:\.\w+)*\.?)
  | (?P<space>\s+)
  | (?P<sign>.)
    """,
    re.VERBOSE,
)
_KEYWORDS = frozenset({"and", "or", "xor", "not", "in", "mod", "true", "false", "null", "asc", "desc"})
_LEAVING = ("exit", "quit", "\\q")
_OPENING = ("|", "[")


class Word(NamedTuple):
    """A piece of a query.

    Attributes:
        kind: comment, string, quoted, variable, number, name, space or sign.
        text: as it was written.
        start: its first character.
    """

    kind: str
    text: str
    start: int


def words(text: str) -> list[Word]:
    """All pieces of the text, one after the other."""
    return [Word(found.lastgroup or "sign", found[0], found.start()) for found in _WORD.finditer(text)]


def meant(found: list[Word]) -> list[Word]:
    """Without spaces and comments."""
    return [word for word in found if word.kind not in ("space", "comment")]


def classes(text: str) -> Iterator[tuple[str, str]]:
    """Each piece and what it is: also command, function, parameter and keyword."""
    found = words(text)
    before = "|"
    for place, word in enumerate(found):
        kind = word.kind
        if kind == "name":
            behind = found[place + 1].text if place + 1 < len(found) else ""
            if word.text.lower() in _KEYWORDS:
                kind = "keyword"
            elif before in _OPENING:
                kind = "command"
            elif behind == "(":
                kind = "function"
            elif behind == ":":
                kind = "parameter"
        yield kind, word.text
        if word.kind not in ("space", "comment"):
            before = word.text


def is_complete(text: str) -> bool:
    """Whether Enter runs it: everything but a query that ends too early. A blank line at the end runs that too."""
    stripped = text.strip()
    if not stripped or stripped.endswith(";") or is_order(stripped) or re.search(r"\n[ \t]*\n?\Z", text):
        return True
    first, _, rest = stripped.partition(" ")
    query = rest if first.lower() == "explain" else stripped
    if not query.strip():
        return True
    last = words(query)[-1]
    if last.text.startswith("/*") and not (last.text.endswith("*/") and len(last.text) > 3):
        return False
    from coprlake.language import parsing

    return parsing.is_complete(query)


def is_order(text: str) -> bool:
    """Whether it is for the shell, not a query: ``help``, ``exit``, and all that begins with a backslash."""
    first = text.split(None, 1)[0].lower() if text.strip() else ""
    return text.lstrip().startswith("\\") or first in (*_LEAVING, "help")


def split(text: str) -> list[str]:
    """The queries of a file: parted by semicolons or blank lines. An order to the shell is a line alone.

    A blank line before or behind a ``|`` parts nothing.
    """
    parts: list[str] = []
    found = words(text)
    start, place = 0, 0

    def end(stop: int) -> None:
        if meant(words(text[start:stop])):
            parts.append(text[start:stop].strip())

    while place < len(found):
        word = found[place]
        line = text[word.start :].split("\n", 1)[0]
        is_first = not meant(words(text[start : word.start]))
        is_new_line = not text[: word.start].rpartition("\n")[2].strip()
        if (is_new_line and word.text == "\\") or (is_first and is_order(line)):
            end(word.start)
            parts.append(line.strip().rstrip(";"))
            start = word.start + len(line)
            place = next((i for i, other in enumerate(found) if other.start >= start), len(found))
            continue
        if word.text == ";" or _parts_queries(found, place, text[start : word.start]):
            end(word.start)
            start = word.start + len(word.text)
        place += 1
    end(len(text))
    return parts


def _parts_queries(found: list[Word], place: int, before: str) -> bool:
    """Whether a blank line ends the query before it."""
    word = found[place]
    if word.kind != "space" or word.text.count("\n") < 2:
        return False
    known = meant(words(before))
    goes_on = bool(known) and known[-1].text in ("|", ",")
    return not goes_on and (place + 1 == len(found) or found[place + 1].text != "|")
