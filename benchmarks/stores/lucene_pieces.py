"""Which tokens of rules 1-5 (paper 5.1.1) must a line have for a text to stand in it? For stores with a dictionary.

A text is cut into its runs of one class, as a line is. A run inside of the text is a whole token of the line; the first
and the last run may go on in the line, unless the text is a whole term. Words that single separators link make longer
tokens (rules 4 and 5), which say more than the words, so that the words need not be asked for.
"""

import re
from dataclasses import dataclass

from coprlake.tokens.rules import SEPARATORS

_RUN = re.compile(
    rb"(?P<word>[0-9a-z]+)|(?P<mark>[!-/:-@\[-`{-~]+)|(?P<blank>[\x00-\x20\x7f]+)|(?P<foreign>[\x80-\xff]+)"
)


@dataclass(frozen=True)
class Piece:
    """A token of the line begins and ends with, or has inside, these bytes.

    Attributes:
        text: in lower case.
        open_start: the token may have more before it.
        open_end: the token may have more behind it.
        runs: how many runs the token has: 1 by rules 1-3, 3 by rule 4, 5 by rule 5.
    """

    text: bytes
    open_start: bool
    open_end: bool
    runs: int


def pieces_of(text: str, *, whole: bool) -> list[Piece]:
    """What a line must have; nothing at all if the text has only blanks.

    Args:
        text: what is looked for.
        whole: as a whole term; otherwise anywhere.
    """
    raw = text.encode("utf-8", "surrogatepass").lower()
    runs = [(str(match.lastgroup), match.start(), match.end()) for match in _RUN.finditer(raw)]
    spans = [
        (i, i + size) for size in (5, 3, 1) for i in range(len(runs) - size + 1) if _is_token(raw, runs[i : i + size])
    ]
    pieces = []
    for first, last in spans:
        if not any(start <= first and last <= end and (start, end) != (first, last) for start, end in spans):
            cut = raw[runs[first][1] : runs[last - 1][2]]
            at_start, at_end = first == 0 and not whole, last == len(runs) and not whole
            pieces.append(Piece(cut, at_start, at_end, last - first))
    return sorted(pieces, key=lambda piece: (piece.open_start, piece.open_end))  # those that are looked up come first


def words_of(text: str, *, whole: bool) -> list[Piece]:
    """The same for a dictionary of words only (rule 1)."""
    raw = text.encode("utf-8", "surrogatepass").lower()
    runs = _runs_of(raw)
    pieces = [
        Piece(raw[start:end], start == 0 and not whole, end == len(raw) and not whole, 1)
        for kind, start, end in runs
        if kind == "word"
    ]
    return sorted(pieces, key=lambda piece: (piece.open_start, piece.open_end))


def _runs_of(raw: bytes) -> list[tuple[str, int, int]]:
    """The class of each run, and where it stands."""
    return [(str(match.lastgroup), match.start(), match.end()) for match in _RUN.finditer(raw)]


def _is_token(raw: bytes, runs: list[tuple[str, int, int]]) -> bool:
    """Whether the runs are a token together."""
    if len(runs) == 1:
        return runs[0][0] != "blank"
    separators = b"." if len(runs) == 5 else SEPARATORS
    words, links = runs[::2], runs[1::2]
    return all(kind == "word" for kind, _, _ in words) and all(
        end - start == 1 and raw[start] in separators for _, start, end in links
    )
