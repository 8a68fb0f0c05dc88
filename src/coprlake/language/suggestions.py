"""Suggest known words for misspelled ones."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word most similar to `word`, or None; a higher `cutoff` demands more similarity."""
    words = {name.lower(): name for name in known}
    lowered = word.lower()
    if lowered in words:
        return words[lowered]
    found = difflib.get_close_matches(lowered, words, n=1, cutoff=cutoff)
    return words[found[0]] if found else None


def hint(word: str, known: Iterable[str]) -> str:
    """``; did you mean x?``, or an empty string."""
    found = nearest(word, known)
    return f"; did you mean {found}?" if found else ""
