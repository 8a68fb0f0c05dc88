"""Finds the known word that a misspelt one probably means: a field, a level, a function, a command, an option."""

import re
from collections.abc import Iterable
from typing import Final

_SEPARATORS: Final = re.compile(r"[\W_]+")
_LONGEST: Final = 64
_PREFIX_COST: Final = 1.5
_PART_COST: Final = 2.5
_WHOLE_COST: Final = 3.5
_SHORTEST_PREFIX: Final = 3
_SHORTEST_PART: Final = 4


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` probably means, or None if none is near.

    Near is, in this order: the same but for case and separators (``logLevel``, ``log_level``); a few letters wrong,
    missing, added or swapped (``eror``, ``stauts``), more in longer words; the beginning (``stat``) or
    the end (``level`` for ``loglevel``); a word with more around it (``statuscode`` for ``status``).
    """
    plain = _plain(word)
    if not plain or len(plain) > _LONGEST:
        return None
    costs = [
        (cost, plain[0] != _plain(name)[:1], abs(len(name) - len(word)), place, name)
        for place, name in enumerate(known)
        if (cost := _cost(plain, _plain(name))) is not None
    ]
    return min(costs)[-1] if costs else None


def hint(word: str, known: Iterable[str]) -> str:
    """``; did you mean x?``, or an empty string."""
    found = nearest(word, known)
    return f"; did you mean {found}?" if found else ""


def _plain(word: str) -> str:
    return _SEPARATORS.sub("", word.casefold()) or word.casefold()


def _cost(word: str, known: str) -> float | None:
    """How far two words are apart; None if too far to suggest one for the other."""
    if word == known:
        return 0
    shorter, longer = sorted((word, known), key=len)
    most = min(_most_errors(len(longer)), max(1, len(shorter) // 3))
    if len(longer) - len(shorter) <= most:
        distance = _distance(word, known, most)
        if distance <= most:
            return distance
    if word is shorter and len(word) >= _SHORTEST_PREFIX and known.startswith(word):
        return _PREFIX_COST
    if len(shorter) < _SHORTEST_PART or not (longer.startswith(shorter) or longer.endswith(shorter)):
        return None
    return _PART_COST if word is shorter else _WHOLE_COST


def _most_errors(length: int) -> int:
    """How many errors a word of this length may have and still be recognised."""
    return 0 if length < 3 else 1 if length <= 5 else 2 if length <= 8 else 3


def _distance(one: str, other: str, most: int) -> int:
    """The letters to change, add, remove or swap with their neighbours; `most` + 1 if there are more."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one):
        row = [i + 1]
        for j, wanted in enumerate(other):
            cost = min(last[j] + (letter != wanted), last[j + 1] + 1, row[j] + 1)
            if i and j and letter == other[j - 1] and one[i - 1] == wanted:
                cost = min(cost, before[j - 1] + 1)
            row.append(cost)
        if min(row) > most and (not i or min(last) > most):
            return most + 1
        before, last = last, row
    return min(last[-1], most + 1)
