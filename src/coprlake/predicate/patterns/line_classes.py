r"""Character classes without the line feed, so that a pattern stays within a line unless it asks for more.

``[^x]``, ``\s`` and ``\W`` match a line feed in RE2. In a search they do not, as in ripgrep: otherwise ``a\s+b`` would
find an ``a`` at the end of one line and a ``b`` at the beginning of the next.
"""

import re
from typing import Final

_ATOM: Final = r"(?:\\x\{[0-9A-Fa-f]+\}|\\x[0-9A-Fa-f]{2}|\\[0-7]{1,3}|\\[^QEdDsSwWpP]|[^\\])"
_ITEM: Final = re.compile(
    rf"(?P<posix>\[:\^?[a-z]+:\])|(?P<escape>\\[dDsSwW]|\\[pP](?:\{{[^}}]*\}}|[^{{]))|(?P<low>{_ATOM})(?:-(?P<high>{_ATOM}))?",
    re.DOTALL,
)
_CONTROLS: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_LINE_FEED: Final = 10


class NotReadError(Exception):
    """The class is written in a way that this module does not know."""


def code_of(atom: str) -> int:
    """The code of a character as a pattern writes it."""
    if not atom.startswith("\\"):
        return ord(atom)
    kind, rest = atom[1], atom[2:]
    if kind == "x":
        return int(rest.strip("{}"), 16)
    if kind in "01234567":
        return int(atom[1:], 8)
    return _CONTROLS.get(kind, ord(kind))


def names_line_feed(source: str) -> bool:
    r"""Whether a class in brackets has a line feed as a member, or the end of a range, of its own: ``[\n\t]``.

    A negated class such as ``[^\n]`` names what it does not match.
    """
    atoms = [atom for item in _items(source) for atom in item.group("low", "high") if atom is not None]
    return not source.startswith("[^") and any(code_of(atom) == _LINE_FEED for atom in atoms)


def within_line(source: str) -> str:
    """The class, in brackets or an escape, without the line feed."""
    if source.startswith("[^"):
        return f"[^\\n{_guarded(source[2:-1])}]"
    if not source.startswith("["):
        return f"[^{_negated(source)}\\n]"
    kept, others = "", []
    for item in _items(source):
        low, high = item.group("low", "high")
        if low is None:
            others.append(f"[^{_negated(item.group())}\\n]")
        elif high is None or not code_of(low) < _LINE_FEED < code_of(high):
            kept += item.group()
        else:
            kept += f"{low}-\\x09\\x0b-{high}"
    if not others:
        return f"[{_guarded(kept)}]"
    return f"(?:{'|'.join([f'[{_guarded(kept)}]', *others] if kept else others)})"


def _items(source: str) -> list[re.Match[str]]:
    """What a class in brackets consists of."""
    inner = source.removeprefix("[").removeprefix("^").removesuffix("]") if source.startswith("[") else ""
    found, at = [], 0
    while at < len(inner):
        item = _ITEM.match(inner, at)
        if item is None:
            raise NotReadError
        found.append(item)
        at = item.end()
    return found


def _negated(escape: str) -> str:
    """The opposite of an escape, or of a class such as ``[:space:]``."""
    if escape.startswith("[:"):
        return f"[:{escape[3:]}" if escape.startswith("[:^") else f"[:^{escape[2:]}"
    return f"\\{escape[1].swapcase()}{escape[2:]}"


def _guarded(inner: str) -> str:
    """Escaped so that it can follow an opening bracket."""
    return f"\\{inner}" if inner[:1] in ("-", "]", "^") else inner
